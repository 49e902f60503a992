"""Estimates between launches: the launch, not the iteration, is the unit of repetition.

A launch contributes one number per size, the median of its samples after the first. What is reported of a
handful of launches is their median, with an interval between order statistics: from six launches on it
covers the median of whatever the launches are drawn from, without a normal distribution or any other
being assumed.

Choice: the interval of Hettmansperger & Sheather (1986), which goes between the two neighbouring pairs of
launches whose exact coverage (the sign test's, a binomial probability) lies to either side of what is
asked. Below six launches the whole range covers less than 95 %; it is stretched about its middle by the
ratio of Student's quantiles at the coverage asked and at its own. ``docs/explanation/measuring.md`` has
its coverage over simulated launches, `benches/coverage.py` computes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wiretwin.errors import InputError
from wiretwin.fit.settled import settled
from wiretwin.student import quantile

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "COLUMNS",
    "ByLaunch",
    "Interval",
    "around",
    "by_launch",
    "ends",
    "held",
    "interval",
    "median",
    "summarise",
    "wider",
]

Array = NDArray[np.float64]

COLUMNS = ("launch", "layer", "loop", "bytes", "messages", "delay_ns", "batch", "index", "value_ns")
"""The columns of a table of samples that a fit reads."""

_FOUND_ON_THE_SAME = 1.1
_STRETCHES_95 = {2: 12.70620473617469, 3: 2.6831753948316894, 4: 1.5060651610990428, 5: 1.0836665618114059}
"""What `_stretch` gives for 95 %, which is what measuring needs."""


@dataclass(frozen=True)
class Interval:
    """A value with its confidence interval, ``low <= value <= high``, in the unit of what it is of."""

    value: float
    low: float
    high: float

    @property
    def relative_width(self) -> float:
        """Half the interval's width over its value; infinite for a value of 0 with any width."""
        half = (self.high - self.low) / 2
        if half == 0:
            return 0.0
        return half / abs(self.value) if self.value else float("inf")

    @property
    def settled(self) -> bool:
        """Whether the interval is narrow enough to name a value, by its ends."""
        return settled(self.low, self.high)

    def clipped(self, low: float) -> Interval:
        """Return the interval with nothing below ``low``."""
        return Interval(max(low, self.value), max(low, self.low), max(low, self.high))

    def moved_to(self, value: float, factor: float = 1.0) -> Interval:
        """Return an interval ``factor`` times as wide around another value.

        Made of the widths to either side, none of which is negative: were the ends moved, rounding could
        put one on the wrong side of the value.
        """
        below, above = self.value - self.low, self.high - self.value
        return Interval(value, value - factor * below, value + factor * above)

    def separate_from(self, other: Interval) -> bool:
        """Whether the two intervals have no value in common."""
        return self.high < other.low or other.high < self.low


def median(values: ArrayLike) -> Array:
    """Return the typical launch: the median along the first axis; every value must be finite."""
    return np.asarray(np.median(np.asarray(values, dtype=np.float64), axis=0))


@lru_cache(maxsize=1024)
def _coverage(launches: int, depth: int) -> float:
    """Return how often the launches at `depth` from either end (from 1) have the true median between them."""
    return 1.0 - sum(math.comb(launches, below) for below in range(depth)) / 2.0 ** (launches - 1)


@lru_cache(maxsize=1024)
def _depth(launches: int, confidence: float) -> tuple[int, float]:
    """Return between which order statistics the interval ends: a depth, and the share of the next one.

    Hettmansperger & Sheather (1986), equation 2.3.
    """
    depth = 1
    while _coverage(launches, depth + 1) >= confidence:
        depth += 1
    outer, inner = _coverage(launches, depth), _coverage(launches, depth + 1)
    inside = (outer - confidence) / (outer - inner)
    return depth, (launches - depth) * inside / (depth + (launches - 2 * depth) * inside)


@lru_cache(maxsize=1024)
def _stretch(launches: int, confidence: float) -> float:
    """Return how many times its width the range of all launches needs for a coverage above its own."""
    known = _STRETCHES_95.get(launches)
    if confidence == 0.95 and known is not None:
        return known
    wanted, own = (quantile(launches - 1, 0.5 + share / 2) for share in (confidence, _coverage(launches, 1)))
    return wanted / own


def ends(values: ArrayLike, confidence: float = 0.95) -> tuple[Array, Array]:
    """Return both ends of the interval for the median along the first axis; every value must be finite.

    With a single launch the interval has no ends: minus infinity and infinity.

    Parameters
    ----------
    values
        Launches by whatever else; on the scale on which they are to be interpolated.
    confidence
        Of the interval, above 0 and below 1.
    """
    x = np.sort(np.asarray(values, dtype=np.float64), axis=0)
    launches = x.shape[0]
    if launches < 2:
        return np.full(x.shape[1:], -np.inf), np.full(x.shape[1:], np.inf)
    if confidence > _coverage(launches, 1):
        middle, half = (x[0] + x[-1]) / 2, _stretch(launches, confidence) * (x[-1] - x[0]) / 2
        return np.asarray(middle - half), np.asarray(middle + half)
    depth, share = _depth(launches, confidence)
    low = (1 - share) * x[depth - 1] + share * x[depth]
    high = (1 - share) * x[launches - depth] + share * x[launches - depth - 1]
    return np.asarray(low), np.asarray(high)


def interval(values: ArrayLike, confidence: float = 0.95, *, log: bool = True) -> Interval:
    """Return the typical launch of one quantity with its interval.

    Parameters
    ----------
    values
        One number per launch; those that are NaN are left out.
    confidence
        Of the interval, between 0 and 1.
    log
        Work on logarithms, for a quantity that is positive and whose noise is a factor. Ignored if any
        value is not positive.
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if not x.size:
        raise InputError(reason="no launch has a value; at least one is needed")
    log = log and bool((x > 0).all())
    if x.size < 2:
        return Interval(float(x[0]), 0.0 if log else -np.inf, np.inf)
    y = np.log(x) if log else x
    found = [float(one) for one in (median(y), *ends(y, confidence))]
    if not log:
        return Interval(*found)
    with np.errstate(over="ignore"):
        value, low, high = (float(np.exp(one)) for one in found)
    return Interval(value, min(low, value), max(high, value))


def held(found: Interval, bounds: tuple[float, float]) -> dict[str, float]:
    """Return value and interval, which of two launches may reach further than a twin can hold."""
    least, most = bounds
    return {"value": found.value, "low": max(found.low, least), "high": min(found.high, most)}


def wider(found: Interval) -> Interval:
    """Return an interval for something that was chosen by the same launches: a tenth wider each way.

    Choice: breaks, weights, what counts as spoilt and where a curve is highest are all found on the
    launches that then give the interval; without this, 95 % intervals cover 90 to 93 %.
    """
    return found.moved_to(found.value, _FOUND_ON_THE_SAME)


def around(value: float, launches: Array, confidence: float) -> Interval:
    """Return the interval of the launches' own values, extended to hold the value fitted to all of them.

    Launches without one are NaN; with fewer than two, nothing is known and the interval has no width.
    """
    x = launches[np.isfinite(launches)]
    if x.size < 2:
        return Interval(value, value, value)
    own = wider(interval(x, confidence, log=False))
    return Interval(value, min(value, own.low), max(value, own.high))


def summarise(samples: pl.DataFrame) -> pl.DataFrame:
    """Reduce samples to one number per launch, layer, loop and step: the median time of one iteration.

    The first iteration (``index`` 0) is left out wherever there are others.

    Returns
    -------
    DataFrame
        ``launch, layer, loop, bytes, messages, delay_ns, value_ns`` (median of ``value_ns / batch``) and
        ``samples``, sorted.
    """
    import polars as pl

    absent = [name for name in COLUMNS if name not in samples.columns]
    if absent:
        raise InputError(reason=f"samples lack the column {absent[0]!r}; needed are {', '.join(COLUMNS)}")
    if samples["batch"].min() == 0:
        raise InputError(reason="samples have batch = 0; allowed is 1 and above")
    step = ["launch", "layer", "loop", "bytes", "messages", "delay_ns"]
    later = (pl.col("index") > 0) | (pl.len().over(step) == 1)
    return (
        samples.filter(later)
        .with_columns(each=pl.col("value_ns").cast(pl.Float64) / pl.col("batch"))
        .group_by(step)
        .agg(pl.col("each").median().alias("value_ns"), pl.len().alias("samples"))
        .sort(step)
    )


@dataclass(frozen=True)
class ByLaunch:
    """A quantity by launch and size, NaN where a launch lacks a size."""

    sizes: NDArray[np.int64]
    values: Array
    """Launches by sizes, in ns."""
    samples: NDArray[np.int64]
    """By size, over all launches."""

    def at_most(self, count: int) -> ByLaunch:
        """Return at most ``count`` sizes: close ones are averaged, which keeps a line a line."""
        if self.sizes.size <= count:
            return self
        # Neighbours are those within a ratio, the smallest that leaves few enough.
        ratio = 1e-3
        key = np.arange(self.sizes.size)
        while np.unique(key).size > count:
            key = np.floor(np.log1p(self.sizes) / ratio).astype(np.int64)
            ratio *= 1.25
        starts = np.flatnonzero(np.diff(key, prepend=key[0] - 1))
        members = np.diff(np.append(starts, self.sizes.size))
        sizes = np.add.reduceat(self.sizes, starts) // members
        values = np.add.reduceat(self.values, starts, axis=1) / members
        return ByLaunch(sizes, values, np.add.reduceat(self.samples, starts))


def by_launch(
    summary: pl.DataFrame, value: str = "value_ns", launches: NDArray[np.int64] | None = None
) -> ByLaunch:
    """Arrange a summary of one layer and loop by launch and size.

    Parameters
    ----------
    summary
        Rows with ``launch``, ``bytes``, ``samples`` and the value; at most one a launch and size.
    value
        The column to arrange.
    launches
        The launches in the order of the rows wanted; by default those there are.

    Sizes that fewer than half of the launches with any size have (an interrupted launch, a size tried
    once) are left out.
    """
    if launches is None:
        launches = np.unique(summary["launch"].to_numpy()).astype(np.int64)
    sizes = np.unique(summary["bytes"].to_numpy()).astype(np.int64)
    row = np.searchsorted(launches, summary["launch"].to_numpy())
    column = np.searchsorted(sizes, summary["bytes"].to_numpy())
    values = np.full((launches.size, sizes.size), np.nan)
    values[row, column] = summary[value].to_numpy()
    samples = np.zeros(sizes.size, dtype=np.int64)
    np.add.at(samples, column, summary["samples"].to_numpy().astype(np.int64))
    have = np.isfinite(values)
    wanted = (2 * have.sum(axis=0) >= have.any(axis=1).sum()) & have.any(axis=0)
    return ByLaunch(sizes[wanted], values[:, wanted], samples[wanted])
