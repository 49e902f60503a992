"""When a layer has been measured enough: the interval between launches, or the time.

Samples of one launch share their process placement, memory layout and moment, so they say nothing
about the next launch. What is estimated is therefore where the medians of the launches lie, with the same
estimator and interval as everywhere (`wiretwin.fit.stats.interval`). Looking after each launch makes
the rule stop a little early now and then; the intervals that are reported come from all launches
afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["LEAST_LAUNCHES", "Verdict", "Watch", "half_width"]

LEAST_LAUNCHES = 3
"""Fewer launches have no interval worth the name."""


def half_width(medians: Sequence[float], confidence: float = 0.95) -> float:
    """Return the half width of the interval between launches as a share of the value.

    0.05 stands for ± 5 %; infinite with fewer than two launches.

    Parameters
    ----------
    medians
        One median per launch, above 0.
    confidence
        Of the interval.
    """
    from wiretwin.fit.stats import interval

    return interval(medians, confidence).relative_width if len(medians) > 1 else math.inf


@dataclass(frozen=True)
class Verdict:
    """Whether one configuration is done.

    Attributes
    ----------
    stop
        ``narrow``, ``budget``, or nothing: go on.
    words
        Why, with the figure that decided.
    """

    stop: str | None
    words: str


@dataclass
class Watch:
    """The medians of one configuration, launch by launch.

    Parameters
    ----------
    precision
        The relative half width wanted at every size.
    launches
        Launches before it may stop for being narrow. The budget stops it earlier, but never before
        `LEAST_LAUNCHES`.
    """

    precision: float
    launches: int
    medians: dict[Hashable, list[float]] = field(default_factory=dict)
    seen: int = 0

    def add(self, medians: Mapping[int, float]) -> None:
        """Take in one launch: the median round trip by size."""
        self.seen += 1
        for size, median in medians.items():
            if median > 0:
                self.medians.setdefault(size, []).append(median)

    def widest(self) -> tuple[Hashable, float]:
        """Return the size whose interval is widest, and its relative half width."""
        widths = {size: half_width(values) for size, values in self.medians.items()}
        if not widths:
            return None, math.inf
        size = max(widths, key=lambda key: widths[key])
        return size, widths[size]

    def verdict(self, *, out_of_time: bool) -> Verdict:
        """Decide whether to go on.

        Parameters
        ----------
        out_of_time
            The budget has no room for another launch.
        """
        size, width = self.widest()
        shown = f"± {100 * width:.1f} %" if math.isfinite(width) else "unknown"
        words = f"after {self.seen} launches the widest interval between launches is {shown} at {size} B"
        if self.seen < LEAST_LAUNCHES:
            return Verdict(None, words)
        if width <= self.precision and self.seen >= self.launches:
            return Verdict("narrow", words)
        return Verdict("budget" if out_of_time else None, words)
