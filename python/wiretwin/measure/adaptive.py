"""When a layer has been measured enough: the interval between launches, or the time.

Samples of one launch share their process placement, memory layout and moment, so they say nothing
about the next launch. What is estimated is therefore where the medians of the launches lie, with the same
estimator and interval as everywhere (`wiretwin.fit.stats.interval`). Looking after each launch makes
the rule stop a little early now and then; the intervals that are reported come from all launches
afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["LEAST_LAUNCHES", "Verdict", "Watch", "half_width"]

Key = int | tuple[str, int]
"""A size in bytes, or a loop and a size."""
LEAST_LAUNCHES = 3
"""Fewer launches cannot be asked for, and settle no size: their interval is hardly worth the name."""


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
        ``narrow``; ``launches``: as many as were asked for; or nothing: go on.
    words
        Why, with the figure that decided.
    """

    stop: Literal["narrow", "launches"] | None
    words: str


@dataclass
class Watch:
    """The medians of one configuration, launch by launch.

    Parameters
    ----------
    precision
        The relative half width wanted at every size.
    launches
        Launches before it may stop.
    """

    precision: float
    launches: int
    medians: dict[Key, list[float]] = field(default_factory=dict)
    seen: int = 0

    def add(self, medians: Mapping[Key, float]) -> None:
        """Take in one launch: its medians by size, or by loop and size. One without any does not count."""
        self.seen += bool(medians)
        for size, median in medians.items():
            if median > 0:
                self.medians.setdefault(size, []).append(median)

    def widest(self) -> tuple[Key | None, float]:
        """Return where the interval is widest, and its relative half width."""
        widths = {size: half_width(values) for size, values in self.medians.items()}
        if not widths:
            return None, math.inf
        size = max(widths, key=lambda key: widths[key])
        return size, widths[size]

    def settled(self) -> set[Key]:
        """Return the sizes whose interval is narrow already: their time is better spent on the others."""
        if self.seen < LEAST_LAUNCHES:
            return set()
        return {size for size, values in self.medians.items() if half_width(values) <= self.precision}

    def words(self) -> str:
        """Say how far it has come."""
        size, width = self.widest()
        shown = f"± {100 * width:.1f} %" if width <= 1 else "wider than ± 100 %"
        shown = shown if math.isfinite(width) else "unknown"
        launches = "1 launch" if self.seen == 1 else f"{self.seen} launches"
        where = f"at {size[1]} B of {size[0]}" if isinstance(size, tuple) else f"at {size} B"
        return f"after {launches} the widest interval between launches is {shown} {where}"

    def verdict(self, *, enough: bool = False) -> Verdict:
        """Decide whether to go on.

        Parameters
        ----------
        enough
            Stop after the launches asked for, wide or not: there is no budget that would.
        """
        _, width = self.widest()
        if self.seen >= self.launches:
            if width <= self.precision:
                return Verdict("narrow", self.words())
            if enough:
                return Verdict("launches", self.words())
        return Verdict(None, self.words())
