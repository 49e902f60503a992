"""Estimates between launches: the launch, not the iteration, is the unit of repetition.

A launch contributes one number per size, the median of its samples after the first. The estimators
here take such numbers from a handful of launches, of which one or two may be spoiled by whatever else
the host was doing, and say where the typical launch lies and how sure that is.

Choice: below 16 launches, the mean of values winsorised at the median +- 8 scaled median absolute
deviations, with Student's t; from 16 launches on, the mean trimmed by a fifth at each end with
Yuen's (1974) winsorised standard error. Both were chosen by their coverage over simulated launches, in
``docs/explanation/fitting.md``; a percentile bootstrap of the median covers 75 % instead of 95 % with
three launches, and a studentised one has no finite width there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy import stats as distributions

from wiretwin.errors import InputError

__all__ = [
    "COLUMNS",
    "ByLaunch",
    "Interval",
    "Located",
    "around",
    "by_launch",
    "interval",
    "locate",
    "student",
    "summarise",
    "wider",
]

Array = NDArray[np.float64]

COLUMNS = ("launch", "layer", "loop", "bytes", "messages", "delay_ns", "batch", "index", "value_ns")
"""The columns of a table of samples that a fit reads."""

_TRIM_FROM_LAUNCHES = 16
_TRIM = 0.2
_WINSOR = 8.0
_FOUND_ON_THE_SAME = 1.1
# Of a normal distribution: standard deviation / median absolute deviation.
_MAD_TO_SIGMA = 1.482602218505602


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


@dataclass(frozen=True)
class Located:
    """Where the typical launch lies, its standard error and the error's degrees of freedom, by column."""

    value: Array
    error: Array
    freedom: int


def locate(values: ArrayLike) -> Located:
    """Locate the typical launch along the first axis; every value must be finite.

    With a single launch the standard error is infinite, with no degrees of freedom.
    """
    x = np.asarray(values, dtype=np.float64)
    launches = x.shape[0]
    if launches < 2:
        return Located(x.mean(axis=0), np.full(x.shape[1:], np.inf), 0)
    if launches < _TRIM_FROM_LAUNCHES:
        if launches > 3:
            median = np.median(x, axis=0)
            reach = _WINSOR * _MAD_TO_SIGMA * np.median(np.abs(x - median), axis=0)
            # More than half the launches read the same: nothing says what an outlier is.
            reach = np.where(reach > 0, reach, np.inf)
            x = np.clip(x, median - reach, median + reach)
        return Located(x.mean(axis=0), x.std(axis=0, ddof=1) / np.sqrt(launches), launches - 1)
    cut = int(_TRIM * launches)
    kept = launches - 2 * cut
    x = np.sort(x, axis=0)
    value = x[cut : launches - cut].mean(axis=0)
    x[:cut], x[launches - cut :] = x[cut], x[launches - cut - 1]
    error = x.std(axis=0, ddof=1) * np.sqrt((launches - 1) / (kept * (kept - 1)))
    return Located(value, error, kept - 1)


@lru_cache(maxsize=256)
def student(freedom: int, confidence: float) -> float:
    """Two-sided quantile of Student's t; infinite without degrees of freedom."""
    return float(distributions.t.ppf(0.5 + confidence / 2, freedom)) if freedom > 0 else float("inf")


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
    found = locate(np.log(x) if log else x)
    half = student(found.freedom, confidence) * float(found.error)
    value = float(found.value)
    if not np.isfinite(half):
        return Interval(float(np.exp(value)) if log else value, 0.0 if log else -np.inf, np.inf)
    if log:
        return Interval(*(float(np.exp(v)) for v in (value, value - half, value + half)))
    return Interval(value, value - half, value + half)


def wider(found: Interval) -> Interval:
    """Return an interval for something that was chosen by the same launches: a tenth wider each way.

    Choice: breaks, weights, what counts as spoilt and where a curve is highest are all found on the
    launches that then give the interval; without this, 95 % intervals cover 92 to 93 %.
    """
    return Interval(
        found.value,
        found.value - _FOUND_ON_THE_SAME * (found.value - found.low),
        found.value + _FOUND_ON_THE_SAME * (found.high - found.value),
    )


def around(value: float, launches: Array, confidence: float) -> Interval:
    """Return the interval of the launches' own values, extended to hold the value fitted to all of them.

    Launches without one are NaN; with fewer than two, nothing is known and the interval has no width.
    """
    x = launches[np.isfinite(launches)]
    if x.size < 2:
        return Interval(value, value, value)
    found = locate(x)
    half = student(found.freedom, confidence) * float(found.error)
    centre = float(found.value)
    own = wider(Interval(centre, centre - half, centre + half))
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
