"""What calls of each kind take in a loop, from launches that made such loops (`wiretwin.loops`)."""

from __future__ import annotations

import polars as pl

from wiretwin.fit.stats import held, interval
from wiretwin.loops import LOOPED
from wiretwin.twin import Figure, LoopedCall

__all__ = ["LOOP", "SHARED", "looped_calls", "typical"]

LOOP, SHARED = "later_", "shared_"
"""What names of samples of loops begin with, and those of loops of two ranks on one core."""
MIN_LAUNCHES = 2


def looped_calls(summary: pl.DataFrame, confidence: float) -> tuple[LoopedCall, ...]:
    """Return what an iteration takes of each loop that at least two launches have run.

    Parameters
    ----------
    summary
        Rows of one layer, as `wiretwin.fit.stats.summarise` gives them.
    confidence
        Of the intervals.
    """
    fitted = []
    for kind in LOOPED:
        loops = (summary.filter(pl.col("loop") == name + kind) for name in (LOOP, SHARED))
        takes, shared = (typical(rows, confidence) for rows in loops)
        if takes is not None:
            fitted.append(LoopedCall(kind=kind, takes_us=takes, one_core_us=shared))
    return tuple(fitted)


def typical(rows: pl.DataFrame, confidence: float) -> Figure | None:
    """Return what an iteration of a loop takes the typical launch, in us; none of fewer than two launches.

    Parameters
    ----------
    rows
        Of one step of a layer, one each launch.
    confidence
        Of the interval.
    """
    if rows.height < MIN_LAUNCHES:
        return None
    found = interval(rows["value_ns"].to_numpy() / 1e3, confidence)
    return Figure(**held(found, Figure.RANGE), launches=rows.height, samples=int(rows["samples"].sum()))
