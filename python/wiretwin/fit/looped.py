"""What calls of each kind take in a loop, from launches that made such loops (`wiretwin.loops`)."""

from __future__ import annotations

import polars as pl

from wiretwin.fit.stats import interval
from wiretwin.loops import LOOPED
from wiretwin.twin import Figure, LoopedCall

__all__ = ["LOOP", "looped_calls"]

LOOP = "later_"
"""What names of samples of loops begin with."""
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
        rows = summary.filter(pl.col("loop") == LOOP + kind)
        if rows.height < MIN_LAUNCHES:
            continue
        typical = interval(rows["value_ns"].to_numpy() / 1e3, confidence)
        figure = Figure(
            value=typical.value,
            low=typical.low,
            high=typical.high,
            launches=rows.height,
            samples=int(rows["samples"].sum()),
        )
        fitted.append(LoopedCall(kind=kind, takes_us=figure))
    return tuple(fitted)
