"""Student's distribution, without SciPy: what predicts and simulates needs nothing else of it."""

from __future__ import annotations

import math
from functools import lru_cache

__all__ = ["quantile"]


def _within(degrees: int, angle: float) -> float:
    """Return the probability of a value nearer to 0 than ``sqrt(degrees) tan(angle)``.

    Abramowitz & Stegun (1964), equations 26.7.3 and 26.7.4.
    """
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    if degrees == 1:
        return 2 * angle / math.pi
    term = total = cosine if odd else 1.0
    for step in range(3 if odd else 2, degrees - 1, 2):
        term *= (step - 1) / step * cosine * cosine
        total += term
    return 2 * (angle + sine * total) / math.pi if odd else sine * total


@lru_cache(maxsize=1024)
def quantile(degrees: int, probability: float) -> float:
    """Return the value that Student's distribution stays below with a probability.

    Parameters
    ----------
    degrees
        Degrees of freedom, at least 1.
    probability
        Above 0 and below 1.
    """
    if probability < 0.5:
        return -quantile(degrees, 1.0 - probability)
    wanted = 2 * probability - 1.0
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(degrees, middle) < wanted else (low, middle)
    return math.sqrt(degrees) * math.tan(low)
