"""How far the time of a real run may lie from a prediction: an interval that is to hold 95 % of them.

What a prediction is held against is the median of several launches of the program, and what it was made of
was measured in other launches. Three things set the two apart, and none knows of the others, so that their
widths add as squares, on logarithms, for noise is a factor:

- the passes that the computation was measured in are a few launches of the same processes; their scatter is
  that of launches, with Student's quantile for how few they are;
- the launches of the real run scatter as the passes do, and their median with them;
- the twin's costs lie within their own intervals.

What the model leaves out is not in the interval: ``docs/accuracy.md`` shows how often it does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev

__all__ = ["LAUNCHES", "interval"]

LAUNCHES = 7
"""Launches of the real run whose median the interval is for: as many as `wiretwin run` makes by itself."""
CONFIDENCE = 0.95
_MEDIAN = math.pi / 2
"""The variance of a median over that of a mean, of normal noise."""
_WIDEST = 50.0
"""The logarithm of a factor beyond which an interval says no more by being wider."""


def interval(seconds: float, passes: Sequence[float], ends: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the interval around a prediction of `seconds`.

    Parameters
    ----------
    seconds
        What is predicted.
    passes
        The same from the computation of each measuring pass alone; with fewer than two its scatter is not
        known, and adds nothing.
    ends
        The same from both ends of the twin's intervals; without any they add nothing.
    """
    known = [seconds, *passes, *ends]
    if min(known) <= 0.0:  # there is no factor between nothing and something
        return min(known), max(known)
    scatter = _scatter([math.log(one) for one in passes])
    sides = [math.log(one / seconds) for one in ends]
    below = min(_WIDEST, math.hypot(scatter, min([0.0, *sides])))
    above = min(_WIDEST, math.hypot(scatter, max([0.0, *sides])))
    return seconds * math.exp(-below), seconds * math.exp(above)


def _scatter(logs: Sequence[float]) -> float:
    """Return how far the median of `LAUNCHES` launches may lie from that of these."""
    count = len(logs)
    if count < 2 or (deviation := stdev(logs)) == 0.0:
        return 0.0
    from scipy.special import stdtrit

    quantile = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    # The median of two is their mean.
    factor = 1.0 if count == 2 else _MEDIAN
    return quantile * deviation * math.sqrt(factor / count + _MEDIAN / LAUNCHES)
