"""``wiretwin compare``: a prediction beside the run it was made for, or two results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.gate import Gating

if TYPE_CHECKING:
    from wiretwin.predict.records import Comparison, Prediction
    from wiretwin.understand.changes import Changes

__all__ = ["changes_table", "comparison_table", "register", "split_table"]

HELP = """Compare two results, two predictions, or a recorded prediction with a real run of the same program.

Of two results, before and after a change: by layer and size the ratio of times with its interval, what
changed beyond noise, what did not change by more than --change, what is inconclusive, what only one of them
has; with -o as a page with a figure.

With --fail-above, for a project's tests: status 1 when a layer of the second result is slower by more, which
the whole interval shows, and again when the layer is measured once more; what was measured again is kept
beside that result. "Inconclusive" is a word of its own, with status 0. A baseline (`wiretwin baseline`) in
place of a result stands for its newest.

Of two predictions of a program, on two networks or twins: where each was made for, the time of each and where
it goes. (What joins the hosts is in the predictions: `wiretwin predict --network` makes them.)

Of a prediction and a run:

Prints predicted and actual time with their intervals and the error; with --split where the time
went, rank by rank: compute, endpoint, wire and waiting of the model beside compute and time inside
MPI of the real run; with -o as a record that `wiretwin report --comparison` shows.

\b
Examples:
  wiretwin compare results/predict-1 results/run-1
  wiretwin compare on-star on-fat-tree
  wiretwin compare predicted actual --split --format csv
  wiretwin compare predicted actual -o compared.json
  wiretwin compare results/measure-1 results/measure-2 --change 5% -o changes.html
  wiretwin compare baselines/main new --fail-above 10% --junit gate.xml --markdown gate.md
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def compare(
        prediction: Annotated[
            Path, typer.Argument(help="A folder of `predict`, or a result.", show_default=False)
        ],
        run: Annotated[
            Path,
            typer.Argument(help="A folder of `run` or of `predict`, or a result.", show_default=False),
        ],
        split: Annotated[
            bool, typer.Option("--split", help="Print the split by rank instead of the totals.")
        ] = False,
        loop: Annotated[
            str | None,
            typer.Option(
                help="The loop compared, of two results; all: every one that ranks did together.",
                show_default="echo, or all",
            ),
        ] = None,
        change: Annotated[
            str | None,
            typer.Option(
                help="Of two results: a size has not changed where a change of so much is excluded.",
                show_default="10%",
            ),
        ] = None,
        fail_above: Annotated[
            str | None,
            typer.Option(
                help="Of two results: end with status 1 when the second is slower by more.",
                show_default="none",
            ),
        ] = None,
        again: Annotated[
            int, typer.Option(help="With --fail-above: measure so often again before that.")
        ] = 1,
        junit: Annotated[
            Path | None,
            typer.Option(help="With --fail-above: the outcome as JUnit's XML.", show_default="none"),
        ] = None,
        markdown: Annotated[
            Path | None,
            typer.Option(help="With --fail-above: the outcome as Markdown.", show_default="none"),
        ] = None,
        out: Annotated[
            Path | None,
            typer.Option(
                "--out",
                "-o",
                help="Of two results a page; of a prediction and a run a record for `wiretwin report`.",
                show_default="none",
            ),
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.errors import InputError
        from wiretwin.understand.baselines import newest

        prediction, run = newest(prediction), newest(run)
        for folder in (prediction, run):
            if not folder.exists():
                allowed = "a folder of `predict` or `run`, or a result of `measure`"
                raise InputError(folder, reason="no such file or folder", allowed=allowed)
        results = [(folder / "manifest.json").exists() for folder in (prediction, run)]
        if all(results):
            if split:
                raise InputError(key="--split", reason="is for programs", allowed="a prediction and a run")
            passing = _results(
                prediction, run, loop, change, out, form, Gating.of(fail_above, again, junit, markdown)
            )
            if not passing:
                raise typer.Exit(1)
            return
        if any(results):
            other = run if results[0] else prediction
            raise InputError(other, reason="is no result, and the other is", allowed="two results")
        if loop is not None:
            raise InputError(key="--loop", value=loop, reason="is for results", allowed="two results")
        for name, text in (("--change", change), ("--fail-above", fail_above)):
            if text is not None:
                raise InputError(key=name, value=text, reason="is for results", allowed="two results")
        if all(
            not folder.is_file() and (folder / "prediction.json").exists() for folder in (prediction, run)
        ):
            for key, value in (("--split", split or None), ("--out", out)):
                if value is not None:
                    raise InputError(key=key, reason="is for a run", allowed="a prediction and a run")
            from wiretwin.predict.records import Prediction, read

            emit(predictions_table([read(Prediction, folder) for folder in (prediction, run)]), form)
            return
        from wiretwin.predict.compare import compare as join

        comparison = join(prediction, run)
        if form is Format.table and not split:
            emit(comparison_table([comparison]), form)
            emit(split_table(comparison), form)
        else:
            emit(split_table(comparison) if split else comparison_table([comparison]), form)
        if comparison.printed is not None:
            said = {
                "same": "the same in both worlds",
                "but for numbers": "the same in both worlds but for numbers",
                "different": "not the same in both worlds",
            }
            print(f"printed: {said[comparison.printed]}", file=sys.stderr)
        for note in comparison.notes:
            print(f"note: {note}", file=sys.stderr)
        if out is not None:
            from wiretwin.results import write_atomically

            write_atomically(out, comparison.to_json())
            print(f"comparison: {out}", file=sys.stderr)


def _results(
    before: Path,
    after: Path,
    loop: str | None,
    change: str | None,
    out: Path | None,
    form: Format,
    gating: Gating,
) -> bool:
    """Compare two results, print the table and write the page; whether they pass the gate."""
    from wiretwin.cli.fit import open_result
    from wiretwin.quantity import parse_share
    from wiretwin.understand.changes import DEFAULT_CHANGE, changes

    share = DEFAULT_CHANGE if change is None else parse_share(change, "--change")
    found = changes(
        open_result(before, salvage=False), open_result(after, salvage=False), loop=loop, change=share
    )
    emit(changes_table(found), form)
    for line in found.summary():
        print(line, file=sys.stderr)
    if out is not None:
        from wiretwin.report.changes import write

        print(f"page: {write(found, out)}", file=sys.stderr)
    return gating.passes(found, before, after)


def changes_table(found: Changes) -> Table:
    """Return one row a configuration and size."""
    return Table(
        "after against before",
        (
            Column("layer", "layer"),
            Column("size_bytes", "size [B]"),
            Column("before_us", "before [us]"),
            Column("after_us", "after [us]"),
            Column("ratio", "after / before"),
            Column("ratio_low", "low"),
            Column("ratio_high", "high"),
            Column("verdict", "verdict"),
            Column("p", "p", people=False),
            Column("launches_before", "launches before", people=False),
            Column("launches_after", "launches after", people=False),
        ),
        [
            (
                row.layer,
                row.bytes,
                row.before_us,
                row.after_us,
                row.ratio,
                row.low,
                row.high,
                row.verdict,
                row.p,
                row.launches_before,
                row.launches_after,
            )
            for row in found.rows
        ],
    )


def predictions_table(predictions: Sequence[Prediction]) -> Table:
    """Return one row a prediction: where, how long, and where the slowest rank's time goes."""
    from wiretwin.predict.compare import where

    rows = []
    for one in predictions:
        slowest = max(one.per_rank, key=lambda rank: rank.total_s)
        parts = (slowest.compute_s, slowest.endpoint_s, slowest.wire_s, slowest.waiting_s)
        spread, first = one.seconds, predictions[0].seconds.value
        name = " ".join([one.program, *one.args])
        row = (name, one.ranks, one.layer, where(one), spread.value, spread.low, spread.high)
        rows.append((*row, spread.value / first if first else None, *parts))
    return Table(
        "predictions",
        (
            Column("program", "program"),
            Column("ranks", "ranks"),
            Column("layer", "layer"),
            Column("network", "network"),
            Column("predicted_s", "predicted [s]", ends=("predicted_low_s", "predicted_high_s")),
            Column("predicted_low_s", "low"),
            Column("predicted_high_s", "high"),
            Column("ratio", "to the first"),
            *(Column(f"{part}_s", f"{part} [s]") for part in ("compute", "endpoint", "wire", "waiting")),
        ),
        rows,
    )


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
            Column("predicted_s", "predicted [s]", ends=("predicted_low_s", "predicted_high_s")),
            Column("predicted_low_s", "low"),
            Column("predicted_high_s", "high"),
            Column("actual_s", "actual [s]", ends=("actual_low_s", "actual_high_s")),
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
            Column("model_total_s", "sum [s]"),
            Column("real_launch", "real: launch"),
            Column("real_compute_s", "compute [s]"),
            Column("real_mpi_s", "inside MPI [s]"),
            Column("real_total_s", "sum [s]"),
        ),
        frame_of(comparison).rows(),
    )
