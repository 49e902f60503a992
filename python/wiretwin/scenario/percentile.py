"""The percentile that scenarios report."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["late"]


def late(ascending: Sequence[float]) -> float:
    """Return the 99th percentile, nearest rank: the least value that 99 % of all are not above; NaN of none.

    Examples
    --------
    >>> late([1.0, 2.0, 3.0])
    3.0
    >>> late([float(number) for number in range(1, 201)])
    198.0
    """
    return ascending[-(-99 * len(ascending) // 100) - 1] if ascending else math.nan
