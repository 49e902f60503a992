"""``wiretwin simulate``: one run of a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.numbers import whole
from wiretwin.cli.simulated import NETWORKS_HELP, Simulated, with_simulated

if TYPE_CHECKING:
    from wiretwin.scenario import Outcome

__all__ = ["outcome_table", "register"]

HELP = f"""Run a scenario in the simulated world, once.

A scenario is a file: a network, and on it an echo, a program, or several programs at once. The same
scenario and seed give the same run on any machine; its digest is printed. See `wiretwin sweep` for many.
With --network and its like the scenario runs elsewhere than its file says.

{NETWORKS_HELP}
\b
Examples:
  wiretwin simulate scenario.toml
  wiretwin simulate scenario.toml --seed 7 --format json
  wiretwin simulate scenario.toml --network an2:credits=none
"""


def outcome_table(title: str, outcome: Outcome) -> Table:
    """Return one row a metric."""
    columns = (Column("metric", "metric"), Column("value", "value", digits=6))
    return Table(title, columns, list(outcome.metrics.items()))


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    @with_simulated()
    def simulate(
        model: Simulated,
        scenario: Annotated[Path, typer.Argument(help="The scenario's file.")],
        seed: Annotated[
            int | None,
            typer.Option(
                parser=whole("--seed"),
                metavar="<0 or more>",
                help="In place of the scenario's own.",
                show_default="the scenario's",
            ),
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.scenario import Scenario
        from wiretwin.scenario import simulate as run

        found = model.moved(Scenario.read(scenario))
        outcome = run(found, seed=seed)
        emit(outcome_table(found.name or str(scenario), outcome), form)
        print(f"digest {outcome.digest}", file=sys.stderr)
