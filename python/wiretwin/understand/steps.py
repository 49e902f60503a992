"""Steps of a curve: where it rises between two neighbouring sizes more than the lines beside them say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wiretwin.fit.stats import Array, Interval, interval
from wiretwin.understand.view import View

__all__ = ["LEAST_SHARE", "Jump", "jumps"]

LEAST_SHARE = 0.15
"""Choice: a rise of less than this share of the time before it is no step."""
BESIDE = 3
"""Sizes on either side through which the line beside a step is drawn."""


@dataclass(frozen=True)
class Jump:
    """A step between two measured sizes.

    Attributes
    ----------
    before, after
        The sizes.
    rise_us
        How much the one-way latency rises between them beyond the line before.
    share
        That, over the one-way latency before it.
    """

    before: int
    after: int
    rise_us: Interval
    share: float


def jumps(view: View, least_share: float = LEAST_SHARE) -> list[Jump]:
    """Find the steps upwards of one-way latencies, the largest share first.

    Lines through up to three sizes before and after are continued across the gap. The rise is what neither of
    them explains, the lesser of the two: a curve that only turns steeper has none. Each launch is asked,
    and the interval between launches must lie above 0. Slopes are at least 0; where one side has a single
    size, the other side's slope serves both.

    Parameters
    ----------
    view
        At least two launches and three sizes.
    least_share
        The least rise, as a share of the time before.
    """
    sizes, values = view.half_us()
    whole = np.isfinite(values).all(axis=1)
    values = values[whole]
    if values.shape[0] < 2 or sizes.size < 3:
        return []
    found = []
    for at in range(1, sizes.size):
        beside = []
        if at > 1:
            beside.append(_slope(sizes[:at], values[:, :at], last=True))
        if sizes.size - at > 1:
            beside.append(_slope(sizes[at:], values[:, at:], last=False))
        slope = np.maximum(np.max(beside, axis=0), 0.0)
        rises = values[:, at] - values[:, at - 1] - slope * (sizes[at] - sizes[at - 1])
        rise = interval(rises, log=False)
        share = rise.value / float(np.median(values[:, at - 1]))
        if rise.low > 0 and share >= least_share:
            found.append(Jump(int(sizes[at - 1]), int(sizes[at]), rise, share))
    return sorted(found, key=lambda jump: -jump.share)


def _slope(sizes: Array, values: Array, *, last: bool) -> Array:
    """Return the slope by launch of a line through the sizes nearest to the step."""
    x, y = (sizes[-BESIDE:], values[:, -BESIDE:]) if last else (sizes[:BESIDE], values[:, :BESIDE])
    centred = x - x.mean()
    slopes: Array = (y * centred).sum(axis=1) / float((centred**2).sum())
    return slopes
