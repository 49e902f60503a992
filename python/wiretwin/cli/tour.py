"""``wiretwin tour``: the whole loop on this machine, ending in a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wiretwin.cli.folders import ForceOption, fresh
from wiretwin.cli.format import Format, FormatOption, emit

__all__ = ["register"]

HELP = """Go once round the loop on this machine, in about a minute, and write a report.

Measures the messaging layers of this host, fits a twin, predicts five mpi4py programs, runs them for
real, compares, and leaves everything in a folder; its report.html opens in any browser, offline.

\b
Examples:
  wiretwin tour
  wiretwin tour -o first --format json
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def tour(
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", help="Folder for everything.", show_default="results/tour-…"),
        ] = None,
        force: ForceOption = False,
        budget: Annotated[str, typer.Option(help="Time for measuring, with its unit.")] = "26s",
        launches: Annotated[int, typer.Option(help="Real launches of each program, 1 to 1000.")] = 7,
        seed: Annotated[int, typer.Option(help="Of launch orders and of the simulated world.")] = 1,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.cli.compare import comparison_table
        from wiretwin.cli.fit import say_left_out
        from wiretwin.cli.measure import summary_table
        from wiretwin.cli.progress import Bar
        from wiretwin.errors import InputError, require
        from wiretwin.predict.compare import LOST, lost_share
        from wiretwin.quantity import parse_time
        from wiretwin.tour import Step, expected_s
        from wiretwin.tour import tour as go_round

        if not 1 <= launches <= 1000:
            raise InputError(key="--launches", value=launches, allowed="1 to 1000")
        measure_s = parse_time(budget, "--budget", least_s=5.0)
        require("report")
        expected = expected_s(measure_s, launches)
        with fresh(out, "tour", force=force) as folder, Bar("touring") as bar:
            print(f"the loop takes about {expected:.0f} s on a host with nothing else to do", file=sys.stderr)

            def tell(step: Step) -> None:
                bar.show(step.elapsed_s, step.remaining_s, step.words)

            done = go_round(folder, measure_s=measure_s, launches=launches, seed=seed, tell=tell)
        if form is Format.table and done.result is not None:
            emit(summary_table(done.result), form)
        emit(comparison_table(done.comparisons), form)
        if done.twin is not None:
            say_left_out(done.twin)
        lost = max((lost_share(one.run) or 0.0 for one in done.comparisons), default=0.0)
        if lost >= LOST:
            print(
                f"note: the host was busy: for up to {100 * lost:.0f} % of a program's actual time a rank "
                "had no core, which a prediction knows nothing of",
                file=sys.stderr,
            )
        took = f"the loop took {done.seconds:.0f} s, about {expected:.0f} were expected"
        print(f"{took}; twin: {folder / 'twin.toml'}", file=sys.stderr)
        print(f"report: {done.report}", file=sys.stderr)
