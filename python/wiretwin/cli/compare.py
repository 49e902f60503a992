"""``wiretwin compare``: a prediction beside the run it was made for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

if TYPE_CHECKING:
    from wiretwin.predict.records import Comparison

__all__ = ["comparison_table", "register", "split_table"]

HELP = """Compare a frozen prediction with a real run of the same program.

Prints predicted and actual time with their intervals and the error; with --split where the time
went, rank by rank: compute, endpoint, wire and waiting of the model beside compute and time inside
MPI of the real run. echo/twin: an echo of 64 KiB beside the run, over the twin's; far from 100 the host
was in another state than when it was measured.

\b
Examples:
  wiretwin compare results/predict-1 results/run-1
  wiretwin compare predicted actual --split --format csv
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def compare(
        prediction: Annotated[Path, typer.Argument(help="A folder of `predict`.", show_default=False)],
        run: Annotated[Path, typer.Argument(help="A folder of `run`.", show_default=False)],
        split: Annotated[
            bool, typer.Option("--split", help="Print the split by rank instead of the totals.")
        ] = False,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.predict.compare import compare as join

        comparison = join(prediction, run)
        if form is Format.table and not split:
            emit(comparison_table([comparison]), form)
            emit(split_table(comparison), form)
        else:
            emit(split_table(comparison) if split else comparison_table([comparison]), form)
        for note in comparison.notes:
            print(f"note: {note}", file=sys.stderr)


def comparison_table(comparisons: list[Comparison]) -> Table:
    """Return one row a program: predicted, actual, error."""
    from wiretwin.predict.compare import table

    frame = table(comparisons)
    return Table(
        "predicted against actual",
        (
            Column("program", "program"),
            Column("ranks", "ranks"),
            Column("state", "state"),
            Column("launches", "launches"),
            Column("predicted_s", "predicted [s]"),
            Column("predicted_low_s", "low"),
            Column("predicted_high_s", "high"),
            Column("actual_s", "actual [s]"),
            Column("actual_low_s", "low"),
            Column("actual_high_s", "high"),
            Column("error_percent", "error [%]", digits=3),
        ),
        frame.rows(),
    )


def split_table(comparison: Comparison) -> Table:
    """Return one row a rank: the model's parts beside the real run's."""
    from wiretwin.predict.compare import split_table as frame_of

    return Table(
        "where the time went",
        (
            Column("rank", "rank"),
            Column("model_compute_s", "model: compute [s]"),
            Column("model_endpoint_s", "endpoint [s]"),
            Column("model_wire_s", "wire [s]"),
            Column("model_waiting_s", "waiting [s]"),
            Column("real_compute_s", "real: compute [s]"),
            Column("real_mpi_s", "inside MPI [s]"),
        ),
        frame_of(comparison).rows(),
    )
