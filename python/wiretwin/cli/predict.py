"""``wiretwin predict``: how long a program will run, recorded before it does."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.folders import ForceOption, fresh
from wiretwin.cli.format import Column, Format, FormatOption, Table, emit, show_printed
from wiretwin.cli.simulated import NETWORKS_HELP, Simulated, with_simulated

if TYPE_CHECKING:
    from wiretwin.predict.records import Prediction

__all__ = [
    "ArgsArgument",
    "RanksOption",
    "StatisticChoice",
    "is_compiled",
    "prediction_table",
    "register",
]


class StatisticChoice(StrEnum):
    """What is made of the passes, stretch by stretch."""

    median = "median"
    minimum = "minimum"


ArgsArgument = Annotated[
    list[str] | None, typer.Argument(help="The program's own arguments, after --.", show_default=False)
]
RanksOption = Annotated[int, typer.Option("--ranks", "-n", help="How many ranks.")]
HELP = f"""Predict how long a program runs: an unmodified mpi4py script, a compiled one, or your own.

It runs on the host of a twin; or, with --network, on many such hosts, joined by a network whose lines the
messages share; or on a network that has hosts of its own, under a --stack in place of a twin.

The program runs in the simulated world, its computation is measured in several passes, and the
prediction is recorded with a digest, so that it can be compared with the run that comes after it.

A program of your own that was compiled for MPICH or Open MPI, ./a.out, runs under it, in virtual time.

The compiled programs and their key=value parameters are those of `wiretwin run`. What their work costs is
measured in passes on shared memory, or given: add=0.8ns.

{NETWORKS_HELP}
\b
Examples:
  wiretwin predict prog.py --ranks 2 --twin twin.toml
  wiretwin predict prog.py --ranks 8 --twin twin.toml -o predicted -- --points 512
  wiretwin predict prog.py --twin twin.toml --compute 0us --format json
  wiretwin predict prog.py --twin other.toml --compute replay:predicted
  wiretwin predict prog.py --ranks 64 --twin twin.toml --network fat-tree:hosts=64,rate=100Gbit/s
  wiretwin predict prog.py --ranks 9 --twin twin.toml --network star:rate=10Gbit/s --fidelity packet
  wiretwin predict prog.py --ranks 4 --network asx100 --stack mpi-lam/tcp/aal5
  wiretwin predict jacobi --twin twin.toml --layer shm -o predicted -- rows=512 columns=512
  wiretwin predict ./a.out --twin twin.toml --stack mpi/mpich --ranks 16 --network star:rate=10Gbit/s
"""


#: The compiled programs' names, known without loading what runs them.
COMPILED_PROGRAMS = (
    "echo",
    "stream",
    "cast",
    "ring",
    "jacobi",
    "mm",
    "pde",
    "pde1",
    "pde2",
    "md",
    "md-coarse",
    "netpipe",
)


def is_compiled(program: Path) -> bool:
    """Return whether a program is named that is compiled in; a file of that name has its folder before it.

    Raises
    ------
    InputError
        It is a bare word, and neither a program nor a file.
    """
    if program.parent != Path():
        return False
    if program.name not in COMPILED_PROGRAMS and not program.suffix and not program.exists():
        from wiretwin.errors import InputError

        raise InputError(
            key="program",
            value=program.name,
            reason="is neither a file nor a program",
            allowed="a Python script that uses mpi4py (.py), an executable file built for MPI, or "
            + ", ".join(COMPILED_PROGRAMS),
        )
    return program.name in COMPILED_PROGRAMS


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    @with_simulated()
    def predict(
        model: Simulated,
        program: Annotated[
            Path,
            typer.Argument(
                help="A Python script that uses mpi4py; a compiled program; or one of your own, ./a.out.",
                show_default=False,
            ),
        ],
        args: ArgsArgument = None,
        ranks: RanksOption = 2,
        passes: Annotated[
            int | None,
            typer.Option(
                help="How often the computation is measured.",
                show_default="5; up to 15 of a script that computes for under 10 ms or whose passes differ",
            ),
        ] = None,
        statistic: Annotated[
            StatisticChoice, typer.Option(help="What is made of the passes, stretch by stretch.")
        ] = StatisticChoice.median,
        compute: Annotated[
            str,
            typer.Option(
                help="measured; or a time for every stretch between two calls: 20us; or replay:FOLDER, the "
                "computation of an earlier prediction."
            ),
        ] = "measured",
        seed: Annotated[int, typer.Option(help="Of the simulated world.")] = 1,
        out: Annotated[
            Path | None,
            typer.Option(
                "--out", "-o", help="Folder for the recorded prediction.", show_default="results/predict-…"
            ),
        ] = None,
        force: ForceOption = False,
        limit: Annotated[str, typer.Option(help="Longest time for one simulated run.")] = "120s",
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.cli.progress import Bar
        from wiretwin.errors import InputError, InterruptedRun
        from wiretwin.predict.compiled import predict_compiled
        from wiretwin.predict.executable import predict_executable
        from wiretwin.predict.named import NAMED
        from wiretwin.predict.predict import predict as run_prediction
        from wiretwin.predict.records import DEFAULT_PASSES
        from wiretwin.quantity import parse_time
        from wiretwin.stacks.simulated import is_executable

        limit_s = parse_time(limit, "--limit", least_s=1.0)
        compiled = is_compiled(program)
        if compiled and compute != "measured":
            raise InputError(
                key="--compute", value=compute, reason="is for scripts",
                allowed="the price of a compiled program's work among its parameters, such as add=0.8ns",
            )  # fmt: skip
        compute_ps, replay = _compute(compute)
        executable = not compiled and is_executable(program)
        if executable and replay is not None:
            raise InputError(
                key="--compute", value=compute, reason="is for scripts", allowed="measured, or a time: 20us"
            )
        stages = (
            (passes or DEFAULT_PASSES) + (1 if compiled or executable else 2) if compute == "measured" else 1
        )
        begun = [0]
        try:
            with fresh(out, "predict", force=force) as folder, Bar(f"predicting {program.name}") as bar:

                def tell(words: str) -> None:
                    bar.stage(min(begun[0], stages - 1), stages, words)
                    begun[0] += 1

                if compiled:
                    prediction = predict_compiled(
                        NAMED[program.name],
                        args or [],
                        ranks=ranks,
                        **model.keywords,
                        passes=passes,
                        statistic=statistic.value,
                        seed=seed,
                        out=folder,
                        limit_s=limit_s,
                        on_stage=tell,
                    )
                elif executable:
                    prediction = predict_executable(
                        program,
                        args or [],
                        ranks=ranks,
                        **model.keywords,
                        passes=passes,
                        statistic=statistic.value,
                        compute_ps=compute_ps,
                        seed=seed,
                        out=folder,
                        limit_s=limit_s,
                        on_stage=tell,
                    )
                else:
                    prediction = run_prediction(
                        program,
                        args or [],
                        ranks=ranks,
                        **model.keywords,
                        passes=passes,
                        statistic=statistic.value,
                        compute_ps=compute_ps,
                        replay=replay,
                        seed=seed,
                        out=folder,
                        limit_s=limit_s,
                        on_stage=tell,
                    )
        except KeyboardInterrupt:
            raise InterruptedRun(
                f"interrupted in stage {begun[0]} of {stages}; nothing was recorded"
            ) from None
        show_printed(prediction.printed, form)
        emit(prediction_table(prediction), form)
        for warning in prediction.warnings:
            print(f"note: {warning}", file=sys.stderr)
        print(f"recorded {prediction.frozen_utc} as {prediction.digest[:16]}: {folder}", file=sys.stderr)


def _compute(text: str) -> tuple[int | None, Path | None]:
    """Return the given picoseconds, or the folder to replay, or neither: measured."""
    from wiretwin.errors import InputError
    from wiretwin.quantity import parse_time

    if text == "measured":
        return None, None
    if text.startswith("replay:"):
        return None, Path(text.removeprefix("replay:"))
    try:
        return round(1e12 * parse_time(text, "--compute")), None
    except InputError as error:
        allowed = f"measured, replay:FOLDER, or {error.allowed}"
        raise InputError(key="--compute", value=text, reason=error.reason, allowed=allowed) from None


def prediction_table(prediction: Prediction) -> Table:
    """Return the prediction's total and, rank by rank, where the time goes."""
    name = " ".join([prediction.program, *prediction.args])
    rows: list[tuple[object, ...]] = [
        (part.rank, part.total_s, part.compute_s, part.endpoint_s, part.wire_s, part.waiting_s)
        for part in prediction.per_rank
    ]
    spread = prediction.seconds
    return Table(
        f"{name} on {prediction.ranks} ranks: {spread.value:.4g} s, "
        f"from {spread.low:.4g} to {spread.high:.4g} s",
        (
            Column("rank", "rank"),
            Column("total_s", "total [s]"),
            Column("compute_s", "compute [s]"),
            Column("endpoint_s", "endpoint [s]"),
            Column("wire_s", "wire [s]"),
            Column("waiting_s", "waiting [s]"),
        ),
        rows,
    )
