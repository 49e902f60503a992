"""What measuring passes of a program's computation make together."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low

from wiretwin.mpi.compute import Pass
from wiretwin.predict.records import Statistic

__all__ = ["times_by_pass", "typical", "typical_sleep"]


def typical(passes: Sequence[Pass], statistic: Statistic) -> list[list[int]]:
    """Return the statistic over the passes for every stretch of every rank.

    Medians of short stretches add up to less than the median of their sum, for a stretch is rarely
    faster than usual and often slower; so the medians of a rank are scaled to the median of the
    passes' sums.
    """
    ranks = range(len(passes[0].durations_ps))
    if statistic == "minimum":
        return [
            [min(values) for values in zip(*(one.durations_ps[rank] for one in passes), strict=True)]
            for rank in ranks
        ]
    chosen = []
    for rank in ranks:
        rows = [one.durations_ps[rank] for one in passes]
        medians = [median_low(values) for values in zip(*rows, strict=True)]
        wanted, total = median_low([sum(row) for row in rows]), sum(medians)
        chosen.append([value * wanted // total for value in medians] if total else medians)
    return chosen


def typical_sleep(passes: Sequence[Pass], chosen: Sequence[Sequence[int]]) -> list[dict[int, int]]:
    """Return by rank and stretch the median over the passes of how long of it no core was needed."""
    found = []
    for rank, durations in enumerate(chosen):
        rows = [one.asleep_ps[rank] if one.asleep_ps else {} for one in passes]
        medians = {at: median_low([row.get(at, 0) for row in rows]) for at in sorted(set().union(*rows))}
        found.append({at: min(ps, durations[at]) for at, ps in medians.items() if ps})
    return found


def times_by_pass(
    seconds: float, passes: Sequence[Pass], chosen: Sequence[Sequence[int]], ranks_a_core: int
) -> list[float]:
    """Return what the run would take were its computation that of each pass, as sums of the busiest rank go.

    What is not computation takes what it took: a pass says nothing of it. On a core that ranks share, the
    others' computation is in the way of each.
    """
    total = max(map(sum, chosen)) or 1
    computed = min(seconds, ranks_a_core * total / 1e12)
    return [seconds + computed * (max(map(sum, one.durations_ps)) / total - 1) for one in passes]
