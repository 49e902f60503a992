"""A prediction beside the run it was made for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import polars as pl

from wiretwin.errors import InputError
from wiretwin.predict.records import Comparison, Prediction, Run, median, read

#: Length of the echo beside each launch, as `wiretwin.mpi.live` makes it.
ECHO_BYTES = 1 << 16
#: Within this factor of the twin's echo, the host is taken to be in the state it was measured in.
SAME_HOST = 1.35


def compare(prediction: Prediction | str | Path, run: Run | str | Path) -> Comparison:
    """Join a prediction and a run of the same program, arguments, ranks and layer.

    Parameters
    ----------
    prediction, run
        Records, or the folders or files that hold them.

    Raises
    ------
    InputError
        When they are not of the same thing, naming what differs; or a file is not what it should be.
    """
    prediction = prediction if isinstance(prediction, Prediction) else read(Prediction, Path(prediction))
    run = run if isinstance(run, Run) else read(Run, Path(run))
    for key in ("program", "program_sha256", "args", "ranks", "layer"):
        predicted, actual = getattr(prediction, key), getattr(run, key)
        if predicted != actual:
            raise InputError(
                key=key, value=actual, allowed=f"{predicted!r}, what the prediction was made for, in the run"
            )
    if run.seconds.value == 0.0:
        raise InputError(key="seconds.value", value=0.0, allowed="a time above 0, in the run")
    notes = []
    if datetime.fromisoformat(prediction.frozen_utc) >= datetime.fromisoformat(run.started_utc):
        notes.append("the prediction was frozen after the run had started")
    notes += prediction.warnings
    ratio = echo_ratio(prediction, run)
    if ratio is not None and not 1 / SAME_HOST <= ratio <= SAME_HOST:
        notes.append(
            f"the host talked otherwise than the twin has it: an echo of 64 KiB beside the run took "
            f"{100 * ratio:.0f} % of the twin's"
        )
    return Comparison(
        prediction=prediction,
        run=run,
        error=prediction.seconds.value / run.seconds.value - 1.0,
        notes=notes,
    )


def echo_ratio(prediction: Prediction, run: Run) -> float | None:
    """Return the echo of 64 KiB beside the run over the prediction's network's; none if not known.

    The median over the launches that count. Far from 1, the host was in another state when the
    program ran than when the twin was measured, and the prediction is of the other state.
    """
    beside = [one.echo_us for one in run.launches if one.echo_us is not None and one.split is None]
    if not beside:
        return None
    layer = prediction.network.get("intra", {})
    modelled_us = 0.0
    for quantity in ("overhead_send", "latency", "overhead_recv"):
        for segment in reversed(layer.get(quantity, [])):
            if segment["from_bytes"] <= ECHO_BYTES:
                modelled_us += (segment["base_ps"] + segment["per_byte_fs"] * ECHO_BYTES / 1000) / 1e6
                break
    return median(beside) / modelled_us if modelled_us > 0 else None


def table(comparisons: Sequence[Comparison]) -> pl.DataFrame:
    """Return one row a program: predicted, interval, actual, interval, error; times in seconds."""
    return pl.DataFrame(
        [
            {
                "program": " ".join([c.prediction.program, *c.prediction.args]),
                "ranks": c.prediction.ranks,
                "predicted_s": c.prediction.seconds.value,
                "predicted_low_s": c.prediction.seconds.low,
                "predicted_high_s": c.prediction.seconds.high,
                "actual_s": c.run.seconds.value,
                "actual_low_s": c.run.seconds.low,
                "actual_high_s": c.run.seconds.high,
                "error_percent": 100.0 * c.error,
                "echo_percent": None if (ratio := echo_ratio(c.prediction, c.run)) is None else 100.0 * ratio,
            }
            for c in comparisons
        ]
    )


def split_table(comparison: Comparison) -> pl.DataFrame:
    """Return one row a rank: the model's four parts beside the real run's two, in seconds."""
    real = {part.rank: part for part in comparison.run.split}
    rows = []
    for model in comparison.prediction.per_rank:
        measured = real.get(model.rank)
        rows.append(
            {
                "rank": model.rank,
                "model_compute_s": model.compute_s,
                "model_endpoint_s": model.endpoint_s,
                "model_wire_s": model.wire_s,
                "model_waiting_s": model.waiting_s,
                "real_compute_s": None if measured is None else measured.compute_s,
                "real_mpi_s": None if measured is None else measured.mpi_s,
            }
        )
    return pl.DataFrame(rows)


def worst_and_median(comparisons: Sequence[Comparison]) -> tuple[float, float]:
    """Return the largest and the median absolute error, as fractions of the actual times."""
    errors = [abs(c.error) for c in comparisons]
    return max(errors), median(errors)
