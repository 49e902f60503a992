"""What a call takes more after computation, which has left little of the library in caches and predictors.

The loop ``cold`` tells, at two lengths of work: an echo behind work, and that work, less what both take
apart, each behind its own kind. What the work is longer for coming behind a message is in it as well: a
script's computation is measured with no library beside it.
"""

from __future__ import annotations

import polars as pl

from wiretwin.fit.stats import held, interval
from wiretwin.twin import Cold, Figure

__all__ = ["LOOP", "cold"]

LOOP = "cold"
MIN_LAUNCHES = 2


def cold(summary: pl.DataFrame, confidence: float) -> tuple[Cold, ...]:
    """Return what a call takes more by length of work, the shortest first; none of fewer than two launches.

    Parameters
    ----------
    summary
        Rows of one layer, as `wiretwin.fit.stats.summarise` gives them.
    confidence
        Of the intervals.
    """
    found = []
    rows = summary.filter(pl.col("loop") == LOOP)
    for (delay_ns,), of_work in sorted(rows.group_by("delay_ns"), key=lambda group: group[0]):
        launches = of_work.height
        if launches < MIN_LAUNCHES:
            continue
        typical = held(interval(of_work["value_ns"].to_numpy() / 1e3, confidence), Figure.RANGE)
        takes = Figure(**typical, launches=launches, samples=int(of_work["samples"].sum()))
        found.append(Cold(after_us=delay_ns / 1e3, takes_us=takes))
    return tuple(found)
