"""``wiretwin run``: a program in a world, live or simulated."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wiretwin.cli.folders import ForceOption, fresh
from wiretwin.cli.format import Column, Format, FormatOption, Table, emit, show_printed
from wiretwin.cli.predict import (
    ArgsArgument,
    is_compiled,
    prediction_table,
)
from wiretwin.cli.simulated import NETWORKS_HELP, Simulated, with_simulated
from wiretwin.cli.where import LINKS_HELP, Where, with_place

if TYPE_CHECKING:
    from wiretwin.predict.named import NamedRun, Point
    from wiretwin.predict.records import Run

__all__ = ["register", "run_table"]


class WorldChoice(StrEnum):
    """Where the program runs."""

    live = "live"
    simulated = "simulated"


LIMITS = {"netpipe": "600s"}
"""Of programs that take longer than others, when none is given."""

NEGLIGIBLE_PS = 1_000_000_000
"""Computation of a script, 1 ms a rank, that is not measured again for a run that records nothing."""

HELP = f"""Run a program in a world: an unmodified mpi4py script or a compiled one, live or simulated.

Live: several launches under mpiexec, each timed from after Init to before Finalize on the slowest
rank, and one more with timers around the MPI calls for the split of the time. Every launch is kept, and
what the ranks print in the first is shown, each line behind its rank.
Simulated: as predict does, without recording anything, and computation of at most 1 ms a rank is measured
once. A program of your own that was compiled for MPICH or Open MPI runs in both worlds, under the library
that it is built for; simulated, the network and the time are.

The compiled programs are echo, stream, cast, ring, jacobi, mm (matrix multiplication), pde, pde1 and pde2
(Poisson's equation on a square, on a cube, and by multigrid), md and md-coarse (molecular dynamics) and
netpipe (the one-way latency over NetPIPE's sizes), their parameters key=value. Live they run on
--layer socket/tcp, socket/unix, shm or a messaging library such as mpi/openmpi: once, or with -o as often as
a script, every launch kept. A script runs on the MPICH of the Python package, or with --layer on another
library, such as mpi/openmpi or mpi/openmpi+direct.
Simulated, what their work costs is given: add=0.8ns (ring), stencil-point=2ns (jacobi),
multiply-add=0.3ns (mm), sor-point=2ns (pde), relax-point=2ns (pde1), smooth-point=2ns and
transfer-point=2ns (pde2), atom-pair=2ns (md). The ranks of mm, md and the pdes form a mesh of down= x
across= ranks, as square as their number allows if that is left out.

With --hosts the ranks live on hosts of a testbed, in turn, one for each if --ranks is left out; see
`wiretwin testbed`. With --between they live on two machines over ssh, with --launcher srun on the nodes of
this job of Slurm; a script that is not there is sent there, with the Python files beside it.

{LINKS_HELP}
{NETWORKS_HELP}
\b
Examples:
  wiretwin run prog.py --ranks 2
  wiretwin run prog.py --ranks 4 --launches 11 -o actual -- --points 512
  wiretwin run prog.py --world simulated --twin twin.toml --ranks 8
  wiretwin run ./a.out --ranks 2 -o actual
  wiretwin run ./a.out --world simulated --twin twin.toml --stack mpi/mpich --ranks 8
  wiretwin run prog.py --stack mpi/openmpi+direct --hosts 2
  wiretwin run jacobi --layer shm --ranks 2 -- rows=512 columns=512
  wiretwin run ring --layer mpi/openmpi --ranks 4
  wiretwin run echo --layer shm --launches 11 -o echoes
  wiretwin run ring --world simulated --twin twin.toml --ranks 4 -- elements=1000 add=0.8ns
  wiretwin run ring --world simulated --twin twin.toml --ranks 64 --network star:rate=10Gbit/s -- add=0.8ns
  wiretwin run mm --world simulated --network asx100 --stack pvm-advise/tcp/aal5 --ranks 4 -- multiply-add=1us
  wiretwin run mm --world simulated --network an2 --beside ttcp:stack=framed/tcp/aal5 -- multiply-add=1us
  wiretwin run ring --world simulated --twin twin.toml --trace ring.json -- elements=1000 add=0.8ns
  wiretwin run mm --hosts 4 --ranks 4 --stack mpi/mpich --link wire --rate 100Mbit -- n=128 rounds=2
  wiretwin run md --hosts 4 --ranks 4 --stack pvm/pvm3+advise -- steps=20
  wiretwin run netpipe --layer shm -- most=65536 trial_us=1000
  wiretwin run jacobi --hosts 4 --ranks 4 --link shared --rate 10Mbit -- rows=128 columns=128
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    @with_simulated()
    @with_place
    def run(
        where: Where,
        model: Simulated,
        program: Annotated[
            Path,
            typer.Argument(
                help="A Python script that uses mpi4py; a program of your own for MPICH or Open MPI; or "
                "echo, stream, ring, jacobi, mm, pde, md, netpipe.",
                show_default=False,
            ),
        ],
        args: ArgsArgument = None,
        world: Annotated[WorldChoice, typer.Option(help="Where it runs.")] = WorldChoice.live,
        ranks: Annotated[
            int | None,
            typer.Option(
                "--ranks", "-n", help="How many ranks.", show_default="2; with --hosts one for each"
            ),
        ] = None,
        launches: Annotated[int, typer.Option(help="Launches that count (live).")] = 7,
        splits: Annotated[int, typer.Option(help="Launches with timers around the MPI calls (live).")] = 1,
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", help="Folder for the launches (live).", show_default="results/run-…"),
        ] = None,
        force: ForceOption = False,
        trace: Annotated[
            Path | None,
            typer.Option(
                help="What each rank did when, for Perfetto (a compiled program, simulated).",
                show_default="none",
            ),
        ] = None,
        beside: Annotated[
            list[str] | None,
            typer.Option(
                help="Another compiled program, calls or ttcp at the same time (simulated): "
                "NAME:stack=…,hosts=0+1,key=value. May be given again.",
                show_default="none",
            ),
        ] = None,
        limit: Annotated[
            str | None,
            typer.Option(help="Longest time for one launch.", show_default="60s; of netpipe 600s"),
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.errors import InputError, InterruptedRun
        from wiretwin.quantity import parse_time

        if ranks is None:
            ranks = max(2, where.options["hosts"] or 2)
        if world is WorldChoice.live:
            model.refuse("with --world simulated")
        limit_s = parse_time(limit or LIMITS.get(program.name, "60s"), "--limit", least_s=1.0)
        if trace is not None and (world is not WorldChoice.simulated or not is_compiled(program)):
            allowed = "with --world simulated and a compiled program; `predict -o` keeps a script's timeline"
            raise InputError(key="--trace", value=str(trace), allowed=allowed)
        if beside:
            if world is not WorldChoice.simulated or not is_compiled(program) or (trace or limit) is not None:
                allowed = "with --world simulated and a compiled program, without --trace and --limit"
                raise InputError(key="--beside", value=beside[0], allowed=allowed)
            _together(program.name, args or [], ranks, model, beside, form)
            return
        if is_compiled(program):
            if out is not None and world is not WorldChoice.live:
                raise InputError(key="--out", value=str(out), allowed="with --world live")
            if force and out is None:
                raise InputError(key="--force", reason="replaces a folder", allowed="with --out")
            try:
                if out is not None:
                    _repeated(
                        program.name,
                        args or [],
                        ranks,
                        model.layer,
                        launches,
                        out,
                        force,
                        limit_s,
                        where,
                        form,
                    )
                else:
                    _named(
                        program.name,
                        args or [],
                        world,
                        ranks,
                        model,
                        limit_s,
                        where,
                        trace,
                        form,
                    )
            except KeyboardInterrupt:
                raise InterruptedRun("interrupted") from None
            return
        if world is WorldChoice.simulated:
            where.refuse("with --world live")
            from wiretwin.predict.executable import predict_executable
            from wiretwin.predict.predict import predict
            from wiretwin.stacks.simulated import is_executable

            common: dict[str, Any] = {"ranks": ranks, **model.keywords, "limit_s": limit_s}
            try:
                if is_executable(program):
                    prediction = predict_executable(program, args or [], passes=1, ends=False, **common)
                else:
                    prediction = predict(program, args or [], negligible_ps=NEGLIGIBLE_PS, **common)
            except KeyboardInterrupt:
                raise InterruptedRun("interrupted") from None
            show_printed(prediction.printed, form)
            emit(prediction_table(prediction), form)
            for warning in prediction.warnings:
                print(f"note: {warning}", file=sys.stderr)
            return
        _live(program, args or [], ranks, model.layer, launches, splits, out, force, limit_s, where, form)


def _repeated(
    name: str,
    words: list[str],
    ranks: int,
    layer: str | None,
    launches: int,
    out: Path,
    force: bool,
    limit_s: float,
    where: Where,
    form: Format,
) -> None:
    from wiretwin.cli.progress import Bar
    from wiretwin.predict.named import DEFAULT_LAYER, NAMED
    from wiretwin.predict.records import Launch
    from wiretwin.predict.repeats import run_repeatedly

    with (
        where.place(round_trips=False) as place,
        fresh(out, "run", force=force) as folder,
        Bar(f"running {name}") as bar,
    ):
        done = 0

        def tell(launch: Launch) -> None:
            nonlocal done
            done += 1
            bar.stage(done, launches, f"launch {done} took {launch.seconds:.3g} s")

        run = run_repeatedly(
            NAMED[name],
            words,
            folder,
            layer=layer or DEFAULT_LAYER,
            ranks=ranks,
            launches=launches,
            limit_s=limit_s,
            place=place,
            on_launch=tell,
        )
    emit(run_table(run), form)
    print(f"run: {folder}", file=sys.stderr)


def _named(
    name: str,
    words: list[str],
    world: WorldChoice,
    ranks: int,
    model: Simulated,
    limit_s: float,
    where: Where,
    trace: Path | None,
    form: Format,
) -> None:
    from wiretwin.predict.named import DEFAULT_LAYER, NAMED, run_live, run_simulated

    if world is WorldChoice.live:
        with where.place(round_trips=False) as place:
            done = run_live(
                NAMED[name],
                words,
                layer=model.layer or DEFAULT_LAYER,
                ranks=ranks,
                limit_s=limit_s,
                place=place,
            )
        emit(named_table(done), form)
        return
    where.refuse("with --world live")
    done = run_simulated(
        NAMED[name],
        words,
        ranks=ranks,
        **model.keywords,
        limit_s=limit_s,
        trace=trace,
    )
    emit(named_table(done), form)
    for warning in done.warnings:
        print(f"note: {warning}", file=sys.stderr)


def _together(
    name: str, words: list[str], ranks: int, model: Simulated, beside: list[str], form: Format
) -> None:
    """Run a program and others at once, as a scenario of them does."""
    from wiretwin.cli.simulate import outcome_table
    from wiretwin.errors import InputError
    from wiretwin.model.network import words_of
    from wiretwin.scenario import Scenario, simulate

    main = words_of(",".join(words), {"name": name, "stack": model.layer, "ranks": ranks})
    programs: list[dict[str, Any]] = []
    for given in [
        main,
        *(words_of(text.partition(":")[2], {"name": text.partition(":")[0]}) for text in beside),
    ]:
        table: dict[str, Any] = {
            key: given.pop(key) for key in ("name", "label", "stack", "ranks", "hosts") if key in given
        }
        if "hosts" in table:
            numbers = str(table["hosts"]).split("+")
            if not all(number.isdecimal() for number in numbers):
                raise InputError(key="--beside hosts", value=table["hosts"], allowed="numbers, such as 0+2+3")
            table["hosts"] = [int(number) for number in numbers]
        programs.append({**table, "parameters": given})
    document = {"program": programs, "network": model.network, "ranks_per_host": model.ranks_per_host}
    twin = None if model.twin is None else str(model.twin)
    scenario = Scenario.of({**document, "twin": twin}, "--beside")
    emit(outcome_table(" and ".join(scenario.labels), simulate(scenario)), form)


def named_table(run: NamedRun) -> Table:
    """Return one row a rank: its time, where it went, the digest of its result; or what was measured."""
    measured = [one for one in run.ranks if one.points]
    if measured:
        return measured_table(run, measured[0].points)
    parts = list(run.ranks[0].parts_s)
    words = " ".join(f"{key}={value}" for key, value in run.parameters.items())
    return Table(
        f"{run.program.name} {words} on {len(run.ranks)} ranks, {run.world}, {run.layer}: "
        f"{run.seconds:.4g} s"
        + "".join(f"; {count} {what.replace('_', ' ')}" for what, count in run.congestion.items()),
        (
            Column("rank", "rank"),
            Column("total_s", "total [s]"),
            *(Column(f"{part}_s", f"{part} [s]") for part in parts),
            Column("digest", "digest"),
            Column("verified", "verified"),
        ),
        [
            (one.rank, one.total_s, *(one.parts_s[part] for part in parts), one.digest, one.verified)
            for one in run.ranks
        ],
    )


def measured_table(run: NamedRun, points: Sequence[Point]) -> Table:
    """Return one row a size: the one-way latency, and what that makes in NetPIPE's megabits of 2^20."""
    right = "" if all(one.verified for one in run.ranks) else "; messages came back wrong"
    return Table(
        f"{run.program.name} between 2 of {len(run.ranks)} ranks, {run.world}, {run.layer}{right}",
        (
            Column("bytes", "size"),
            Column("time_us", "the one-way latency [us]"),
            Column("throughput_Mbit_s", "throughput [2^20 bit/s]"),
            Column("rounds", "round trips"),
        ),
        [
            (one.bytes, one.time_ns / 1e3, 8 * one.bytes / 2**20 / (one.time_ns / 1e9), one.rounds)
            for one in points
        ],
    )


def _live(
    program: Path,
    args: list[str],
    ranks: int,
    layer: str | None,
    launches: int,
    splits: int,
    out: Path | None,
    force: bool,
    limit_s: float,
    where: Where,
    form: Format,
) -> None:
    from wiretwin.cli.progress import Bar
    from wiretwin.errors import InterruptedRun
    from wiretwin.predict.live import Job, checked, run_interleaved
    from wiretwin.predict.model import LAYER
    from wiretwin.predict.records import Launch
    from wiretwin.stacks.scripts import of_script
    from wiretwin.stacks.simulated import is_executable

    checked(program)  # before machines are reached, which takes longer and may fail for other reasons
    if not is_executable(program):
        of_script(layer or LAYER)
    with (
        fresh(out, "run", force=force) as folder,
        where.place(round_trips=False, program=program) as place,
        Bar(f"running {program.name}") as bar,
    ):
        job = Job(program, tuple(args), ranks, folder)

        def tell(job: Job, launch: Launch) -> None:
            done = len(job.launches) + len(job.splits)
            bar.stage(done, launches + splits, f"launch {done} took {launch.seconds:.3g} s")

        try:
            done = run_interleaved(
                [job],
                launches=launches,
                splits=splits,
                limit_s=limit_s,
                on_launch=tell,
                place=place,
                layer=layer,
            )
        except KeyboardInterrupt:
            kept = len(job.launches)
            said = (
                f"{kept} launch{'' if kept == 1 else 'es'} kept in {folder}" if kept else "nothing was kept"
            )
            raise InterruptedRun(f"interrupted; {said}") from None
    show_printed(done[0].printed, form)
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
