"""``wiretwin replay``: a recorded run, done again over any network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from wiretwin.cli.folders import ForceOption, fresh
from wiretwin.cli.format import Format, FormatOption, emit
from wiretwin.cli.predict import prediction_table
from wiretwin.cli.simulated import NETWORKS_HELP, Simulated, with_simulated

__all__ = ["register"]

HELP = f"""Predict how long a recorded run takes elsewhere: over another network, with other hosts.

The ranks do again what `wiretwin trace` has recorded, what a trace in OTF2 has, that of Score-P, or what a
schedule in GOAL says, that of LogGOPSim.
Collectives take MPICH's algorithms. Where the program chose its way by the time, as with MPI_ANY_SOURCE, it
goes the way that it went when it was recorded. With --ranks, a run of a regular pattern becomes that of more
ranks.

{NETWORKS_HELP}
\b
Examples:
  wiretwin replay recorded --twin twin.toml
  wiretwin replay recorded --twin nothing --network fat-tree:hosts=16,rate=100Gbit/s
  wiretwin replay recorded --twin twin.toml --network star:rate=1Gbit/s --compute-scale 0.5 -o elsewhere
  wiretwin replay recorded --ranks 64 --twin nothing --network fat-tree:hosts=64,rate=100Gbit/s
  wiretwin replay recorded --goal schedule.goal
  wiretwin replay scorep/traces.otf2 --twin nothing --network star:rate=10Gbit/s
  wiretwin replay schedule.goal --twin nothing --network star:rate=10Gbit/s
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    @with_simulated()
    def replay(
        model: Simulated,
        trace: Annotated[
            Path,
            typer.Argument(help="A folder of `wiretwin trace`, or an OTF2 or GOAL file.", show_default=False),
        ],
        ranks: Annotated[
            int | None,
            typer.Option(
                "--ranks",
                "-n",
                help="How many ranks do it: others than were recorded do what those did that lie alike on a "
                "line or a grid.",
                show_default="as many as were recorded",
            ),
        ] = None,
        compute_scale: Annotated[
            float, typer.Option(help="How much longer computation takes than it did.")
        ] = 1.0,
        seed: Annotated[int, typer.Option(help="Of the simulated world.")] = 1,
        goal: Annotated[
            Path | None,
            typer.Option(
                help="Write a schedule in GOAL to this file in place of a replay.", show_default="none"
            ),
        ] = None,
        unit: Annotated[str, typer.Option(help="Of times in GOAL: ns or ps.")] = "ns",
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", help="Folder for the recorded prediction.", show_default="none"),
        ] = None,
        force: ForceOption = False,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.errors import InputError, StorageError
        from wiretwin.trace.goal import write_goal
        from wiretwin.trace.replay import read_operations
        from wiretwin.trace.replay import replay as run_replay

        if goal is not None:
            if any(value is not None for value in model.keywords.values()) or out is not None:
                raise InputError(key="--goal", value=str(goal), allowed="without a twin, a network and --out")
            made = read_operations(trace, compute_scale=compute_scale, unit=unit, ranks=ranks)
            try:
                count = write_goal(made, goal, unit=unit)
            except OSError as error:
                raise StorageError(goal, f"not written: {error.strerror or error}") from error
            print(f"GOAL: {goal} ({count} operations of {made.ranks} ranks)", file=sys.stderr)
            return
        if force and out is None:
            raise InputError(key="--force", reason="replaces a folder", allowed="with --out")
        given: dict[str, Any] = {**model.keywords, "ranks": ranks, "compute_scale": compute_scale}
        given |= {"unit": unit, "seed": seed}
        if out is None:
            prediction = run_replay(trace, **given)
        else:
            with fresh(out, "replay", force=force) as folder:
                prediction = run_replay(trace, **given, out=folder)
        emit(prediction_table(prediction), form)
        for warning in prediction.warnings:
            print(f"note: {warning}", file=sys.stderr)
        if out is not None:
            print(f"recorded {prediction.frozen_utc} as {prediction.digest[:16]}: {out}", file=sys.stderr)
