"""What a message that comes takes of a rank that computes, on its core: a line by the message's length.

A rank that waits for a message has its kernel's work on it in the message's time. One that computes loses its
core for so long. The loop ``interrupt`` tells: of a time that rank 0 spends looking at the clock, while a
message comes from another host, it counts what passes between two looks that are far apart (detours;
Beckman et al. 2006, "The Influence of Operating Systems on the Performance of Collective Operations at
Extreme Scale").

The median of a launch counts, so what interrupts a rank otherwise, now and then, does not. The line of a
launch has the median slope between two sizes (Theil-Sen), and what is left of the median size above it.
Messages that wait for their receiver are left out: of these only an envelope comes.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl

from wiretwin.fit.stats import held, interval
from wiretwin.stacks.word import INTERRUPT
from wiretwin.twin import Figure, Interrupt

__all__ = ["interrupt"]

MIN_LAUNCHES = 2


def interrupt(summary: pl.DataFrame, rendezvous_from: int | None, confidence: float) -> Interrupt | None:
    """Fit the line; none where fewer than two launches have the loop at two sizes.

    Parameters
    ----------
    summary
        Rows of one layer, as `wiretwin.fit.stats.summarise` gives them.
    rendezvous_from
        The smallest message that waits for its receiver, bytes; none if no message does.
    confidence
        Of the intervals.
    """
    rows = summary.filter((pl.col("loop") == INTERRUPT) & (pl.col("bytes") < (rendezvous_from or 1 << 62)))
    bases, rates, samples = [], [], 0
    for _, launch in rows.group_by("launch", maintain_order=True):
        sizes = launch["bytes"].to_numpy().astype(np.float64)
        taken = launch["value_ns"].to_numpy()
        slopes = [
            (taken[b] - taken[a]) / (sizes[b] - sizes[a]) for a, b in combinations(range(sizes.size), 2)
        ]
        if slopes:
            rates.append(max(0.0, float(np.median(slopes))))
            bases.append(max(0.0, float(np.median(taken - rates[-1] * sizes))))
            samples += int(launch["samples"].sum())
    if len(bases) < MIN_LAUNCHES:
        return None

    def figure(of_launches: list[float]) -> Figure:
        found = held(interval(np.array(of_launches), confidence), Figure.RANGE)
        return Figure(**found, launches=len(of_launches), samples=samples)

    return Interrupt(takes_us=figure([base / 1e3 for base in bases]), per_byte_ns=figure(rates))
