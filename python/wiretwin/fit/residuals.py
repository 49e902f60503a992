"""What the fitted lines leave of a layer's times, and whether that is too much to go unsaid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wiretwin.fit.stats import Array

__all__ = ["LARGE", "ONE_SIDED", "Doubt", "doubts"]

LARGE = 0.1
"""A residual above this share of the fitted time is large."""
ONE_SIDED = 0.02
"""Residuals that lie on one side of their line count from this share on: what a fit takes as good enough."""
_LEAST_SIZES = 6
_MOST_BUT = 0.9


@dataclass(frozen=True)
class Doubt:
    """A place where the fitted lines do not say what was measured.

    Attributes
    ----------
    layer
        The layer.
    from_bytes, to_bytes
        The first and the last size concerned.
    residual
        Measured less fitted time as a share of the fitted one: the largest, or the median of the one-sided.
    sizes
        How many sizes; 1 for a residual that is large, more for those that lie on one side.
    """

    layer: str
    from_bytes: int
    to_bytes: int
    residual: float
    sizes: int

    def __str__(self) -> str:
        side = "longer" if self.residual > 0 else "shorter"
        share = f"{float(f'{100 * abs(self.residual):.2g}'):g} %"
        if self.sizes == 1:
            what = f"at {self.from_bytes} B the measured time is {share} {side} than the fitted one"
        else:
            what = (
                f"from {self.from_bytes} to {self.to_bytes} B the measured times are {side} than the fitted "
                f"line, by {share} in the middle"
            )
        return f"{self.layer}: {what}"


def doubts(layer: str, sizes: Array, measured: Array, fitted: Array, starts: Sequence[int]) -> list[Doubt]:
    """Return what a reader of a fit should know: the largest residual if it is large, stretches on one side.

    Parameters
    ----------
    layer
        The layer's name.
    sizes
        Measured sizes in bytes, ascending.
    measured, fitted
        Times at these sizes, in one unit; a size without a fitted time is NaN.
    starts
        Where the segments begin, in bytes.
    """
    known = np.isfinite(fitted) & (fitted > 0) & np.isfinite(measured)
    sizes, residual = sizes[known], measured[known] / fitted[known] - 1.0
    if not sizes.size:
        return []
    found = []
    worst = int(np.argmax(np.abs(residual)))
    if abs(residual[worst]) > LARGE:
        found.append(Doubt(layer, int(sizes[worst]), int(sizes[worst]), float(residual[worst]), 1))
    segment = np.searchsorted(np.asarray(sorted(starts)), sizes, side="right")
    for number in np.unique(segment):
        here = segment == number
        part, middle = residual[here], float(np.median(residual[here]))
        one_side = np.mean(np.sign(part) == np.sign(middle))
        if part.size >= _LEAST_SIZES and abs(middle) > ONE_SIDED and one_side >= _MOST_BUT:
            ends = sizes[here]
            found.append(Doubt(layer, int(ends[0]), int(ends[-1]), middle, int(part.size)))
    return found
