"""Whether an interval is narrow enough to name a value: light, for whatever prints one."""

from __future__ import annotations

__all__ = ["NOT_SETTLED", "SETTLED", "settled"]

SETTLED = 2.0
"""An interval whose ends lie further apart than by this factor names no value."""
NOT_SETTLED = "not settled"
"""What is said in place of the value."""


def settled(low: float | None, high: float | None) -> bool:
    """Whether an interval of a positive quantity is at most a factor of `SETTLED` wide.

    One that is not there, not finite or begins at 0 or below is not settled.
    """
    return low is not None and high is not None and 0.0 < low <= high <= SETTLED * low
