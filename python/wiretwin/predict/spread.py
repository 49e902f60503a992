"""How far the time of a real run may lie from a prediction: an interval that is to hold 95 % of them.

What a prediction is held against is the median of several launches of the program, and what it was made of
was measured in other launches. Five things set the two apart, and none knows of the others, so that their
widths add as squares, on logarithms, for noise is a factor:

- the passes that the computation was measured in are a few launches of the same processes; their scatter is
  that of launches, with Student's quantile for how few they are and for what launches of other programs on
  record add to them (`wiretwin.predict.learnt.Launches`);
- the launches of the real run scatter as the passes do, and their median with them;
- the twin's costs lie within their own intervals, each part of it, which loops of its own have measured, by
  its own;
- where ranks share cores, which of them share one is drawn anew in each launch;
- what the model leaves out, as far as predictions on record show it (`wiretwin.predict.learnt.Errors`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from statistics import variance
from typing import TYPE_CHECKING

from wiretwin.student import quantile

if TYPE_CHECKING:
    from wiretwin.predict.learnt import Errors, Launches

__all__ = ["LAUNCHES", "interval", "meaning", "uncertainty"]

LAUNCHES = 7
"""Launches of the real run whose median the interval is for: as many as `wiretwin run` makes by itself."""
CONFIDENCE = 0.95
_MEDIAN = math.pi / 2
"""The variance of a median over that of a mean, of normal noise."""
_WIDEST = 50.0
"""The logarithm of a factor beyond which an interval says no more by being wider."""


def interval(
    seconds: float,
    passes: Sequence[float],
    ends: Sequence[Sequence[float]],
    deals: Sequence[float] = (),
    untold: float = 0.0,
    *,
    known: Launches | None = None,
    errors: Errors | None = None,
    compute_share: float = 0.0,
) -> tuple[float, float]:
    """Return the ends of the interval around a prediction of `seconds`.

    Parameters
    ----------
    seconds
        What is predicted.
    passes
        The same from the computation of each measuring pass alone; with fewer than two the program's own
        scatter is not known.
    ends
        The same from both ends of the intervals of each part of the twin; without any they add nothing.
    deals
        The same from each way to deal the ranks to cores, all as likely; without any they add nothing.
    untold
        By how much of `seconds` passes differ in how long a rank was blocked for what cannot be told.
    known
        How launches of programs on record scatter; without it the passes speak for themselves, and fewer than
        two add nothing.
    errors
        What the model is wrong by; without it that is left out.
    compute_share
        The share of the time that the busiest rank, or the cores that ranks share, computed.
    """
    found = [seconds, *passes, *chain.from_iterable(ends), *deals]
    if min(found) <= 0.0:  # there is no factor between nothing and something
        return min(found), max(found)
    scatter = _scatter([math.log(one) for one in passes], known)
    dealt = [math.log(one / seconds) for one in _dealt(deals)]
    share = min(0.99, untold / seconds)
    parts = [[math.log(one / seconds) for one in both] for both in ends]
    parts += [[math.log1p(-share), math.log1p(share)], dealt]
    below, above = (math.hypot(scatter, *(end([0.0, *part]) for part in parts)) for end in (min, max))
    if errors is not None:
        below, above = (errors.with_noise(one, seconds, compute_share) for one in (below, above))
    below, above = min(_WIDEST, below), min(_WIDEST, above)
    return seconds * math.exp(-below), seconds * math.exp(above)


def meaning(fixed: bool, no_ends: bool, dealt: bool, programs: int) -> str:
    """Say what the interval of a prediction is made of.

    Parameters
    ----------
    fixed
        The computation was not measured.
    no_ends
        There is no twin with intervals.
    dealt
        Ranks share cores, and may be dealt to them in several ways.
    programs
        How many programs its errors were learnt from.
    """
    parts = [] if fixed else ["the scatter of the measuring passes"]
    if not no_ends:
        parts.append("the twin's intervals")
    if dealt:
        parts.append("which ranks share a core")
    if programs:
        parts.append(f"what predictions of {programs} programs on record were wrong by")
    if not parts:
        return "none: the computation is as told, and nothing else is known to vary"
    said = " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]
    return f"95 % of medians of {LAUNCHES} launches, by {said}"


def uncertainty(logs: Sequence[float]) -> float:
    """Return the standard error of the median of normal noise; infinite of less than two values."""
    return math.sqrt(_MEDIAN * variance(logs) / len(logs)) if len(logs) > 1 else math.inf


def _dealt(deals: Sequence[float]) -> list[float]:
    """Return between which of the times of as likely deals the median of `LAUNCHES` launches lies."""
    found = []
    for number, time in enumerate(sorted(deals), start=1):
        share = number / len(deals)
        most = range(LAUNCHES // 2 + 1, LAUNCHES + 1)
        below = sum(math.comb(LAUNCHES, one) * share**one * (1 - share) ** (LAUNCHES - one) for one in most)
        if below > (1 - CONFIDENCE) / 2:
            found.append(time)
        if below >= (1 + CONFIDENCE) / 2:
            break
    return found


def _scatter(logs: Sequence[float], known: Launches | None) -> float:
    """Return how far the median of `LAUNCHES` launches may lie from that of these."""
    count = len(logs)
    if count == 0:
        return 0.0
    if known is not None:
        spread, degrees = known.with_passes(logs)
    elif count > 1:
        spread, degrees = variance(logs), count - 1
    else:
        return 0.0
    if spread == 0.0:
        return 0.0
    wide = quantile(degrees, (1 + CONFIDENCE) / 2)
    # The median of one or two is their mean.
    factor = 1.0 if count <= 2 else _MEDIAN
    return wide * math.sqrt(spread * (factor / count + _MEDIAN / LAUNCHES))
