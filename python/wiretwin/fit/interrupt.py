"""What a message that comes takes of a rank that computes, on its core: a line by the message's length.

A rank that waits for a message has its kernel's work on it in the message's time. One that computes loses its
core for so long. The loop ``interrupt`` tells: of a time that rank 0 spends looking at the clock, while a
message comes from another host, it counts what passes between two looks that are far apart (detours;
Beckman et al. 2006, "The Influence of Operating Systems on the Performance of Collective Operations at
Extreme Scale").

The median of a launch counts, so what interrupts a rank otherwise, now and then, does not. The line of a
launch has the median slope between two sizes (Theil-Sen), and what is left of the median size above it.
Messages that wait for their receiver are left out: of these only an envelope comes.

A message that comes while the kernel is at work on another one takes less, for nothing has to be woken.
Several messages one behind the other tell how much: each after the first takes so much less than one alone.
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
    bases, rates, saved, samples = [], [], [], 0
    for _, launch in rows.group_by("launch", maintain_order=True):
        alone = launch.filter(pl.col("messages") == 1)
        sizes = alone["bytes"].to_numpy().astype(np.float64)
        taken = alone["value_ns"].to_numpy()
        slopes = [
            (taken[b] - taken[a]) / (sizes[b] - sizes[a]) for a, b in combinations(range(sizes.size), 2)
        ]
        if slopes:
            rates.append(max(0.0, float(np.median(slopes))))
            bases.append(max(0.0, float(np.median(taken - rates[-1] * sizes))))
            saved += _saved(launch)
            samples += int(launch["samples"].sum())
    if len(bases) < MIN_LAUNCHES:
        return None

    def figure(of_launches: list[float]) -> Figure:
        found = held(interval(np.array(of_launches), confidence), Figure.RANGE)
        return Figure(**found, launches=len(of_launches), samples=samples)

    return Interrupt(
        takes_us=figure([base / 1e3 for base in bases]),
        per_byte_ns=figure(rates),
        saved_us=figure(saved) if len(saved) >= MIN_LAUNCHES else None,
    )


def _saved(launch: pl.DataFrame) -> list[float]:
    """Return how much less, in us, each further one of several takes than one alone; none without both."""
    several = launch.filter(pl.col("messages") > 1)
    alone = launch.filter(pl.col("messages") == 1).select("bytes", alone_ns="value_ns")
    both = several.join(alone, on="bytes").with_columns(
        next_ns=(pl.col("value_ns") - pl.col("alone_ns")) / (pl.col("messages") - 1)
    )
    return [max(0.0, (one["alone_ns"] - one["next_ns"]) / 1e3) for one in both.iter_rows(named=True)]
