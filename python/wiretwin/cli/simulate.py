"""``wiretwin simulate``: one run of a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.numbers import whole

__all__ = ["register"]

HELP = """Run a scenario in the simulated world, once.

A scenario is a file: a local network and messages on it, or a fitted twin and a program on it. The same
scenario and seed give the same run on any machine; its digest is printed. See `wiretwin sweep` for many.

\b
Examples:
  wiretwin simulate scenario.toml
  wiretwin simulate scenario.toml --seed 7 --format json
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def simulate(
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

        found = Scenario.read(scenario)
        outcome = run(found, seed=seed)
        columns = (Column("metric", "metric"), Column("value", "value", digits=6))
        emit(Table(found.name or str(scenario), columns, list(outcome.metrics.items())), form)
        print(f"digest {outcome.digest}", file=sys.stderr)
