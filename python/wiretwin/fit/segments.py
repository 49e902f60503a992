"""Segments: straight lines by message size, with the sizes at which the behaviour changes.

The model is ``a + b m`` on each stretch of sizes, with ``b >= 0`` and nowhere a negative time; where one
stretch ends and the next begins the line may bend or jump. The stretches are found by dynamic
programming over the measured sizes (Bellman & Roth 1969), which gives the best division for each number
of stretches, and the number of stretches by a penalty on the same scale as Schwarz's (1978).

Times span five decades, so an error counts by its share of the time. A deviation below ``tolerance`` is
not worth a break, however small the noise: real curves have ripples (cache lines, vector lengths) of a
few percent, and a model that follows each of them predicts no better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, gammaincinv

from wiretwin.fit.stats import Array, Interval, around, median

__all__ = ["MIN_SIZES", "Piece", "fit_segments"]

Sizes = NDArray[np.int64]

MIN_SIZES = 3
"""Smallest number of measured sizes that a segment rests on."""

_MAX_SEGMENTS = 8
# Parameters of one more segment: constant, rate, place.
_PER_BREAK = 3
_PENALTY = 1.25
_NOISE_WINDOW = 7
# A deviation further out than so many standard deviations is spoilt and counts as none.
_REACH = 5.0
_LEAST_SCALE_NS = 1.0


@dataclass(frozen=True)
class Piece:
    """One fitted segment, in ns and ns per byte, with what each launch says by itself."""

    first: int
    last: int
    """Indices of its first and last measured size."""
    from_bytes: int
    from_low: int
    from_high: int
    """Where its beginning may lie; all 0 for the first piece."""
    base: Interval
    rate: Interval
    base_by_launch: Array
    rate_by_launch: Array
    lack_of_fit_p: float | None
    break_p: float | None = None
    """The chance of so bad a line through this piece and the one before, if one line were the truth."""

    def at(self, size: float) -> float:
        """Time at a size, in ns."""
        return self.base.value + self.rate.value * size


@dataclass(frozen=True)
class _Lines:
    """Best admissible line over every stretch of sizes ``i..j`` (upper triangle)."""

    base: Array
    rate: Array
    cost: Array


def fit_segments(
    sizes: Sizes,
    values: Array,
    *,
    scale: Array | None = None,
    confidence: float = 0.95,
    tolerance: float = 0.02,
    min_sizes: int = MIN_SIZES,
    max_segments: int = _MAX_SEGMENTS,
) -> list[Piece]:
    """Fit segments to a quantity by launch and size.

    Parameters
    ----------
    sizes
        Measured sizes in bytes, ascending.
    values
        Launches by sizes, in ns; NaN where a launch lacks a size. Every size needs at least one launch.
    scale
        What an error at each size is a share of, in ns; by default the value itself. For a quantity that
        is a small difference of large times, the large time.
    confidence
        Of the intervals of base and rate, and of the place of a break.
    tolerance
        Share of the scale below which a deviation is not worth a break.
    min_sizes
        Fewest sizes under a segment, at least 2.
    max_segments
        Most segments.
    """
    x = sizes.astype(np.float64)
    clean = _clean(values)
    measured, values = values, clean.values
    # Where a difference comes out negative by noise, the time is taken as none.
    centre = np.maximum(clean.centre, 0.0)
    share = np.maximum(centre if scale is None else scale, _LEAST_SCALE_NS)
    for last_pass in (False, True):
        weight = 1.0 / (clean.noise**2 + (tolerance * share) ** 2)
        lines = _all_lines(x, centre, weight)
        starts = _divide(lines.cost, min(min_sizes, x.size), max_segments)
        if not last_pass and scale is None:
            # A share of a noisy time favours what came out short by chance; of the fitted time it does not.
            share = np.maximum(_fitted(lines, starts, x), _LEAST_SCALE_NS)
            clean = replace(clean, noise=clean.noise * share / np.maximum(centre, _LEAST_SCALE_NS))
    ends = [*(s - 1 for s in starts[1:]), x.size - 1]
    pieces: list[Piece] = []
    for number, (i, j) in enumerate(zip(starts, ends, strict=True)):
        base, rate = float(lines.base[i, j]), float(lines.rate[i, j])
        break_p = None
        if number == 0:
            start, low, high = 0, 0, 0
        else:
            before = pieces[-1]
            low_at, high_at = _place(lines.cost, before.first, i, j, min_sizes, confidence)
            low, high = int(sizes[low_at - 1]) + 1, int(sizes[high_at])
            start = _begin(before, base, rate, int(sizes[i - 1]), int(sizes[i]))
            both = slice(before.first, j + 1)
            # Of what was measured: cleaned launches agree so well that noise would look like a bend.
            break_p = _lack_of_fit(x[both], measured[:, both], 1.0 / share[both] ** 2)
        base_by, rate_by = _launch_lines(x[i : j + 1], values[:, i : j + 1], weight[i : j + 1], rate == 0)
        pieces.append(
            Piece(
                first=i,
                last=j,
                from_bytes=start,
                from_low=min(low, start),
                from_high=max(high, start),
                base=around(base, base_by, confidence).clipped(-rate * start),
                rate=around(rate, rate_by, confidence).clipped(0.0),
                base_by_launch=base_by,
                rate_by_launch=rate_by,
                lack_of_fit_p=_lack_of_fit(x[i : j + 1], values[:, i : j + 1], weight[i : j + 1]),
                break_p=break_p,
            )
        )
    return pieces


@dataclass(frozen=True)
class _Clean:
    """A quantity by size, cleaned of single spoilt values."""

    centre: Array
    """The typical launch."""
    noise: Array
    """Standard error of the centre without what a launch has in common over its sizes."""
    values: Array
    """Launches by sizes: the centre and its deviations, spoilt ones taken out."""


def _clean(values: Array) -> _Clean:
    """Find the typical launch by size and take out values far from it.

    Work is on logarithms where every value is positive, and deviations are taken back to times to first
    order, so that what a line through them estimates is the typical time and not the mean of a skewed one.
    """
    finite = np.isfinite(values)
    positive = bool((values[finite] > 0).all())
    y = np.log(values, where=finite, out=np.full_like(values, np.nan)) if positive else values
    launches = finite.sum(axis=0)
    centre = np.empty(values.shape[1])
    for count in np.unique(launches):
        same = launches == count
        some = np.sort(y[:, same], axis=0)[:count]  # NaN sorts last
        centre[same] = median(some)
    apart = y - centre
    common = np.zeros((values.shape[0], 1))
    if positive:
        some_size = finite.any(axis=1)
        common[some_size] = np.nanmedian(apart[some_size], axis=1, keepdims=True)
    apart = apart - common
    spread = _smoothed(_spread(apart, launches))
    reach = np.where(spread > 0, _REACH * spread, np.inf)
    with np.errstate(invalid="ignore"):
        apart = np.where(np.abs(apart) > reach, 0.0, apart) + common
    # A median of normal values has pi / 2 times the variance of their mean.
    noise = spread * np.where(launches > 2, np.sqrt(np.pi / 2), 1.0) / np.sqrt(launches)
    if positive:
        value = np.exp(centre)
        return _Clean(value, value * noise, value * (1 + apart))
    return _Clean(centre, noise, centre + apart)


def _spread(x: Array, launches: NDArray[np.int64]) -> Array:
    """Return the standard deviation by size, from the middle half of the launches.

    The interquartile range of few values is too small, its median (which is what smoothing keeps) more so
    than its mean: 1 - 1.6 / n of a normal distribution's from 4 values on; for 2 and 3 that is more than
    enough.
    """
    with np.errstate(invalid="ignore"):
        low, high = np.nanquantile(x, (0.25, 0.75), axis=0)
    return np.asarray(np.where(launches > 1, (high - low) / 1.349 / (1 - 1.6 / launches), 0.0))


def _smoothed(x: Array) -> Array:
    """Median over neighbouring sizes: a few launches say little about the noise at one size."""
    half = _NOISE_WINDOW // 2
    padded = np.pad(x, half, mode="reflect") if x.size > half else np.full(x.size + 2 * half, np.median(x))
    windows = np.lib.stride_tricks.sliding_window_view(padded, _NOISE_WINDOW)
    return np.asarray(np.median(windows, axis=1), dtype=np.float64)


def _all_lines(x: Array, y: Array, w: Array) -> _Lines:
    """Weighted least squares over every stretch, with a rate and a time that are not negative.

    The admissible line with the least cost is the free one if it is admissible, else the best on one of
    the two bounds: level, or through zero where the stretch begins (after the size before it).
    """

    def sums(v: Array) -> Array:
        return np.asarray(np.cumsum(np.triu(np.broadcast_to(v, (v.size, v.size))), axis=1))

    s, sx, sy = sums(w), sums(w * x), sums(w * y)
    sxx, sxy, syy = sums(w * x * x), sums(w * x * y), sums(w * y * y)
    upper = np.triu(np.ones_like(s, dtype=bool))
    s = np.where(upper, s, 1.0)
    mean_x, mean_y = sx / s, sy / s
    cxx, cxy, cyy = sxx - s * mean_x**2, sxy - s * mean_x * mean_y, syy - s * mean_y**2
    usable = cxx > 1e-12 * np.maximum(sxx, 1e-300)
    rate = np.where(usable, cxy / np.where(usable, cxx, 1.0), 0.0)
    cost = cyy - rate * cxy
    origin = np.concatenate(([0.0], x[:-1]))[:, None]
    base = mean_y - rate * mean_x
    level = rate < 0
    rate, base = np.where(level, 0.0, rate), np.where(level, mean_y, base)
    cost = np.where(level, cyy, cost)
    # Through (origin, 0): rate = sum w (x - o) y / sum w (x - o)^2.
    below = base + rate * origin < 0
    oxx = sxx - 2 * origin * sx + origin**2 * s
    oxy = sxy - origin * sy
    through = np.maximum(oxy / np.where(oxx > 0, oxx, 1.0), 0.0)
    rate = np.where(below, through, rate)
    base = np.where(below, -through * origin, base)
    cost = np.where(below, syy - 2 * through * oxy + through**2 * oxx, cost)
    return _Lines(base, rate, np.where(upper, np.maximum(cost, 0.0), np.inf))


def _divide(cost: Array, min_sizes: int, max_segments: int) -> list[int]:
    """Return the first index of each stretch in the best division."""
    n = cost.shape[0]
    most = max(1, min(max_segments, n // min_sizes))
    i, j = np.indices(cost.shape)
    allowed = np.where(j - i + 1 >= min_sizes, cost, np.inf)
    best = np.full((most, n), np.inf)
    back = np.zeros((most, n), dtype=np.int64)
    best[0] = allowed[0]
    for k in range(1, most):
        # Stretch k begins at i, the ones before it end at i - 1.
        total = best[k - 1][:-1, None] + allowed[1:]
        back[k] = np.argmin(total, axis=0) + 1
        best[k] = np.take_along_axis(total, back[k][None] - 1, axis=0)[0]
    criterion = n * np.log1p(best[:, n - 1] / n) + _PENALTY * _PER_BREAK * np.log(n) * np.arange(most)
    count = int(np.argmin(criterion))
    starts, end = [], n - 1
    for k in range(count, -1, -1):
        start = int(back[k, end]) if k else 0
        starts.append(start)
        end = start - 1
    return starts[::-1]


def _fitted(lines: _Lines, starts: Sequence[int], x: Array) -> Array:
    """Return the fitted time at each measured size."""
    ends = np.array([*starts[1:], x.size]) - 1
    which = np.repeat(np.arange(len(starts)), ends + 1 - np.asarray(starts))
    base, rate = lines.base[starts, ends], lines.rate[starts, ends]
    return np.asarray(base[which] + rate[which] * x)


def _place(
    cost: Array, first: int, here: int, last: int, min_sizes: int, confidence: float
) -> tuple[int, int]:
    """Return the smallest and largest index at which the later of two stretches may begin.

    All places whose profile criterion is within the chi-squared quantile (one degree of freedom) of the
    best one's, given the stretches' outer ends.
    """
    places = np.arange(first + min_sizes, last - min_sizes + 2)
    n = last - first + 1
    total = cost[first, places - 1] + cost[places, last]
    criterion = n * np.log1p(total / n)
    # The quantile of chi-squared with one degree of freedom; scipy.stats takes most of a second to load.
    most = criterion.min() + 2 * gammaincinv(0.5, confidence)
    within = places[criterion <= most]
    return min(int(within.min()), here), max(int(within.max()), here)


def _begin(before: Piece, base: float, rate: float, last: int, first: int) -> int:
    """Return where a segment begins: at the bend if the lines meet between the two sizes, else at a jump.

    Of a jump all that is known is that it lies above ``last`` and not above ``first``: the smallest size
    seen to behave in the new way.
    """
    if rate != before.rate.value:
        meet = (before.base.value - base) / (rate - before.rate.value)
        if last < meet <= first:
            return int(np.ceil(meet))
    return first


def _launch_lines(x: Array, values: Array, weight: Array, level: bool) -> tuple[Array, Array]:
    """Return base and rate of the free line of each launch; NaN for a launch with fewer than two sizes.

    The bases of a piece that is level are those of the launches' level lines.
    """
    have = np.isfinite(values)
    w = np.where(have, weight, 0.0)
    y = np.where(have, values, 0.0)
    s = w.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_x, mean_y = (w * x).sum(axis=1) / s, (w * y).sum(axis=1) / s
        dx = x - mean_x[:, None]
        rate = (w * dx * (y - mean_y[:, None])).sum(axis=1) / (w * dx * dx).sum(axis=1)
    rate = np.where(have.sum(axis=1) >= 2, rate, np.nan)
    return mean_y if level else mean_y - rate * mean_x, rate


def _lack_of_fit(x: Array, values: Array, weight: Array) -> float | None:
    """Return the chance of so bad a line if the truth were one: lack of fit against pure error.

    Each launch's own line is taken out first, so what launches have in common with themselves (a fast or
    a slow one) does not count. The residuals of ``L`` launches at ``n`` sizes then lie in ``n - 2``
    dimensions each, and their mean against their scatter is F with ``n - 2`` and ``(n - 2)(L - 1)``
    degrees of freedom. None with two sizes or fewer, or fewer than two complete launches.
    """
    y = values[np.isfinite(values).all(axis=1)]
    launches, n = y.shape
    if launches < 2 or n < 3:
        return None
    root = np.sqrt(weight)
    design = np.column_stack((np.ones(n), x / x.max())) * root[:, None]
    q, _ = np.linalg.qr(design)
    z = y * root
    residual = z - (z @ q) @ q.T
    mean = residual.mean(axis=0)
    between = float(((residual - mean) ** 2).sum())
    lack = launches * float((mean**2).sum())
    if between <= 1e-20 * float((z**2).sum()):
        return None if lack <= 1e-20 * float((z**2).sum()) else 0.0
    freedom = n - 2
    ratio = (lack / freedom) / (between / (freedom * (launches - 1)))
    return float(fdtrc(freedom, freedom * (launches - 1), ratio))
