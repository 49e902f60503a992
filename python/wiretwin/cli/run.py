"""``wiretwin run``: a program in a world, live or simulated."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.predict import ArgsArgument, RanksOption, prediction_table

if TYPE_CHECKING:
    from wiretwin.predict.records import Run

__all__ = ["register", "run_table"]


class WorldChoice(StrEnum):
    """Where the program runs."""

    live = "live"
    simulated = "simulated"


HELP = """Run an unmodified mpi4py program, for real or in the simulated world.

Live: several launches under mpiexec, each timed from after Init to before Finalize on the slowest
rank, and one more with timers around the MPI calls for the split of the time. Every launch is kept.
Simulated: as predict does, without freezing anything.

\b
Examples:
  wiretwin run prog.py --ranks 2
  wiretwin run prog.py --ranks 4 --launches 11 -o actual -- --points 512
  wiretwin run prog.py --world simulated --twin twin.toml --ranks 8
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def run(
        program: Annotated[
            Path, typer.Argument(help="A Python script that uses mpi4py.", show_default=False)
        ],
        args: ArgsArgument = None,
        world: Annotated[WorldChoice, typer.Option(help="Where it runs.")] = WorldChoice.live,
        ranks: RanksOption = 2,
        launches: Annotated[int, typer.Option(help="Launches that count (live).")] = 7,
        splits: Annotated[int, typer.Option(help="Launches with timers around the MPI calls (live).")] = 1,
        twin: Annotated[Path | None, typer.Option(help="The twin (simulated).", show_default=False)] = None,
        layer: Annotated[str, typer.Option(help="The layer of the twin (simulated).")] = "mpi4py/mpich",
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", help="Folder for the launches (live).", show_default="results/run-…"),
        ] = None,
        limit: Annotated[str, typer.Option(help="Longest time for one launch.")] = "60s",
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.errors import InputError, InterruptedRun
        from wiretwin.measure.quantity import parse_time

        limit_s = parse_time(limit, "--limit", least_s=1.0)
        if world is WorldChoice.simulated:
            from wiretwin.predict.predict import predict

            if twin is None:
                raise InputError(key="--twin", reason="is needed", allowed="a file written by `wiretwin fit`")
            try:
                prediction = predict(
                    program, args or [], twin=twin, ranks=ranks, layer=layer, limit_s=limit_s
                )
            except KeyboardInterrupt:
                raise InterruptedRun("interrupted") from None
            emit(prediction_table(prediction), form)
            return
        _live(program, args or [], ranks, launches, splits, out, limit_s, form)


def _live(
    program: Path,
    args: list[str],
    ranks: int,
    launches: int,
    splits: int,
    out: Path | None,
    limit_s: float,
    form: Format,
) -> None:
    from wiretwin.cli.folders import fresh
    from wiretwin.cli.progress import Bar
    from wiretwin.errors import InterruptedRun
    from wiretwin.predict.live import Job, run_interleaved
    from wiretwin.predict.records import Launch

    with fresh(out, "run") as folder, Bar(f"running {program.name}") as bar:
        job = Job(program, tuple(args), ranks, folder)

        def tell(job: Job, launch: Launch) -> None:
            done = len(job.launches) + len(job.splits)
            bar.stage(done, launches + splits, f"launch {done} took {launch.seconds:.3g} s")

        try:
            done = run_interleaved([job], launches=launches, splits=splits, limit_s=limit_s, on_launch=tell)
        except KeyboardInterrupt:
            kept = len(job.launches)
            said = (
                f"{kept} launch{'' if kept == 1 else 'es'} kept in {folder}" if kept else "nothing was kept"
            )
            raise InterruptedRun(f"interrupted; {said}") from None
    emit(run_table(done[0]), form)
    print(f"run: {job.folder}", file=sys.stderr)


def run_table(run: Run) -> Table:
    """Return one row a launch: its time, and its split where timers were on."""
    name = " ".join([run.program, *run.args])
    spread = run.seconds
    rows: list[tuple[object, ...]] = []
    for number, launch in enumerate(run.launches, 1):
        compute = mpi = None
        if launch.split:
            slowest = max(launch.split, key=lambda part: part.total_s)
            compute, mpi = slowest.compute_s, slowest.mpi_s
        rows.append((number, launch.seconds, compute, mpi))
    return Table(
        f"{name} on {run.ranks} ranks: {spread.value:.4g} s, from {spread.low:.4g} to {spread.high:.4g} s "
        f"({spread.meaning})",
        (
            Column("launch", "launch"),
            Column("seconds_s", "slowest rank [s]"),
            Column("compute_s", "of it compute [s]"),
            Column("mpi_s", "inside MPI [s]"),
        ),
        rows,
    )
