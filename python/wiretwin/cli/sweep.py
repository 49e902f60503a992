"""``wiretwin sweep``: many runs of a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.simulated import NETWORKS_HELP, Simulated, with_simulated

if TYPE_CHECKING:
    from wiretwin.sweep.run import Sweep

__all__ = ["register"]

HELP = f"""Run a scenario at every combination of values, with several seeds each, on all cores.

A key is that of the scenario's file, or its end where only one key ends so. A range counts its ends in.
Replication i has the same seed at every point. Every run is kept as it ends: after an interrupt the same
command goes on. A worker that dies has its runs done again. The digest of a sweep is the same wherever
its runs were done.

{NETWORKS_HELP}
\b
Examples:
  wiretwin sweep echo.toml --over share=0.1:0.9:0.2 --over echo.size=4B,4KiB -o swept
  wiretwin sweep echo.toml --over share=0.5 --until latency_us=5% --most 200 -o narrow
  wiretwin sweep echo.toml --over share=0.1:0.9:0.1 --dask tcp://host:8786 -o far
  wiretwin sweep ring.toml --network star:rate=1Gbit/s --over network.rate=1Gbit/s,10Gbit/s -o rates
"""


def table(found: Sweep, metrics: list[str], title: str) -> Table:
    """Return a row for each point: its values, and of each metric mean, low and high."""
    columns = [Column(axis.key, axis.key) for axis in found.axes] + [Column("runs", "runs")]
    for metric in metrics:
        columns += [Column(metric, metric)]
        columns += [Column(f"{metric}_{end}", end, people=len(metrics) <= 3) for end in ("low", "high")]
    rows = []
    for number, point in enumerate(found.points):
        row: list[object] = [*point.values(), sum(run.error is None for run in found.folder.of(number))]
        for metric in metrics:
            at = found.at(number, metric)
            row += [at.mean if at.count else None, at.low, at.high]
        rows.append(row)
    return Table(title, columns, rows)


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    @with_simulated()
    def sweep(
        model: Simulated,
        scenario: Annotated[Path, typer.Argument(help="The scenario's file.")],
        over: Annotated[list[str], typer.Option(help="KEY=a,b,c or KEY=low:high:step; again for more keys.")],
        out: Annotated[Path, typer.Option("--out", "-o", help="The folder for every run.")],
        replications: Annotated[int, typer.Option(help="Runs at each point.")] = 5,
        until: Annotated[
            str | None,
            typer.Option(help="METRIC=SHARE: go on until its interval is so narrow.", show_default="no"),
        ] = None,
        most: Annotated[
            int | None,
            typer.Option(help="With --until: runs at a point.", show_default="10 times --replications"),
        ] = None,
        confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
        workers: Annotated[
            int | None, typer.Option(help="Processes on this machine.", show_default="its cores")
        ] = None,
        dask: Annotated[
            str | None,
            typer.Option(help="A Dask scheduler's address, or local.", show_default="no cluster"),
        ] = None,
        metrics: Annotated[
            str | None, typer.Option(help="Metrics to print, joined by commas.", show_default="all")
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.cli.progress import Bar
        from wiretwin.errors import InputError, SimulationError
        from wiretwin.quantity import parse_share
        from wiretwin.scenario import Scenario
        from wiretwin.sweep.run import sweep as run

        narrow = None
        if until is not None:
            metric, equals, share = until.partition("=")
            if not equals:
                raise InputError(key="--until", value=until, allowed="METRIC=SHARE, such as latency_us=5%")
            narrow = (metric, parse_share(share, "--until"))
        elif most is not None:
            raise InputError(key="--most", value=most, reason="is given without --until", allowed="both")
        found = model.moved(Scenario.read(scenario))
        with Bar("sweep") as bar:
            result = run(
                found, over, out, replications=replications, until=narrow, most=most, confidence=confidence,
                workers=workers, dask=dask, progress=bar.stage,
            )  # fmt: skip
        known = result.metrics
        chosen = metrics.split(",") if metrics else list(known)
        for metric in chosen:
            if known and metric not in known:
                raise InputError(key="--metrics", value=metric, allowed=", ".join(known))
        emit(table(result, chosen, found.name or str(scenario)), form)
        print(f"result: {out}", file=sys.stderr)
        print(f"digest {result.digest}", file=sys.stderr)
        if failed := result.folder.failed:
            first = failed[0]
            point = ", ".join(f"{key}={value}" for key, value in result.points[first.point].items())
            raise SimulationError(f"{len(failed)} runs failed; the first, at {point}: {first.error}")
