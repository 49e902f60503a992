"""What a call takes more after computation, which has left little of the library in caches and predictors.

The loop ``cold`` tells, at two lengths of work: an echo behind work, and that work, less what both take
apart, each behind its own kind. What the work is longer for coming behind a message is in it as well: a
script's computation is measured with no library beside it.
"""

from __future__ import annotations

import polars as pl

from wiretwin.fit.looped import typical
from wiretwin.twin import Cold

__all__ = ["LOOP", "cold"]

LOOP = "cold"


def cold(summary: pl.DataFrame, confidence: float) -> tuple[Cold, ...]:
    """Return what a call takes more by length of work, the shortest first; none of fewer than two launches.

    Parameters
    ----------
    summary
        Rows of one layer, as `wiretwin.fit.stats.summarise` gives them.
    confidence
        Of the intervals.
    """
    rows = summary.filter(pl.col("loop") == LOOP)
    found = []
    for (delay_ns,), of_work in sorted(rows.group_by("delay_ns"), key=lambda group: group[0]):
        if takes := typical(of_work, confidence):
            found.append(Cold(after_us=delay_ns / 1e3, takes_us=takes))
    return tuple(found)
