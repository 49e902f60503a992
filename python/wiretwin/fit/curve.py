"""The figures of Lin et al. (1995), read off the measured curve of round trips by size.

``t_0`` is the one-way latency of 4 bytes; ``r_max`` the largest 2 M / RTT; ``n_half`` the smallest size at
which half of ``r_max`` is reached, interpolated between measured sizes. None of the three is a fitted
constant: real curves are not a Hockney line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wiretwin.fit.stats import Array, ByLaunch, Interval, around, interval, median, wider

__all__ = ["CurveFigures", "curve_figures"]

T_0_BYTES = 4
_LOG_2 = float(np.log(2.0))


@dataclass(frozen=True)
class CurveFigures:
    """The three figures with their intervals and where they were read."""

    t_0_ns: Interval
    t_0_bytes: int
    """4, or the smallest size above 0 where 4 was not measured."""
    t_0_samples: int
    r_max: Interval
    """Bytes per ns."""
    r_max_bytes: int
    """The size at which it is reached."""
    n_half_bytes: Interval
    launches: int
    samples: int


def curve_figures(echo: ByLaunch, confidence: float = 0.95) -> CurveFigures:
    """Read the figures off round trips by launch and size; at least one size above 0 and two launches.

    Choice: a largest value over many noisy sizes is too large, and by more the more sizes there are. So
    each launch is read at the size where the *other* launches are fastest: what is chosen on some
    launches is measured on another, and ``r_max`` is the typical of these readings. Where launches
    agree it is the top of the curve to the last digit; where they differ by a tenth the top of the curve
    would be 6 % too high. ``n_half`` is read off the typical curve at half of that.

    The interval of ``r_max`` is that of the readings, extended to hold that of the fastest size; that of
    ``n_half`` is of the sizes at which the launches' own curves reach half of ``r_max``, extended to hold
    where the typical curve reaches half of either end.

    Parameters
    ----------
    echo
        Round trips by launch and size, in ns. Launches that lack most sizes and sizes that other launches
        lack are not used for ``r_max`` and ``n_half``.
    confidence
        Of the intervals.
    """
    positive = echo.sizes > 0
    sizes, rtt = echo.sizes[positive].astype(np.float64), echo.values[:, positive]
    at = int(np.flatnonzero(sizes == T_0_BYTES)[0]) if (sizes == T_0_BYTES).any() else 0
    t_0 = interval(rtt[:, at] / 2, confidence)
    samples, t_0_bytes = echo.samples[positive], int(sizes[at])
    t_0_samples = int(samples[at])
    sizes, rtt, samples = _complete(sizes, rtt, samples)
    launches = rtt.shape[0]
    log_rate = np.log(2.0 * sizes) - np.log(rtt)
    whole = median(log_rate)
    best = np.array(
        [log_rate[k, int(np.argmax(median(np.delete(log_rate, k, axis=0))))] for k in range(launches)]
    )
    top = int(np.argmax(whole))
    readings, at_top = (interval(one, confidence, log=False) for one in (best, log_rate[:, top]))
    r_max = _holding(_holding(wider(readings), at_top.low), at_top.high)

    def reached(curve: Array, rate: float) -> float:
        return float(np.log(_first_reaching(sizes, curve, rate - _LOG_2)))

    n_half = around(
        reached(whole, r_max.value), np.array([reached(curve, r_max.value) for curve in log_rate]), confidence
    )
    for rate in (r_max.low, r_max.high, float(whole[top])):
        n_half = _holding(n_half, reached(whole, rate))
    return CurveFigures(
        t_0_ns=t_0,
        t_0_bytes=t_0_bytes,
        t_0_samples=t_0_samples,
        r_max=_exp(r_max),
        r_max_bytes=int(sizes[top]),
        n_half_bytes=_exp(n_half),
        launches=launches,
        samples=int(samples.sum()),
    )


def _complete(sizes: Array, rtt: Array, samples: NDArray[np.int64]) -> tuple[Array, Array, NDArray[np.int64]]:
    """Keep the launches that have most sizes, and of the sizes those that all of these have."""
    have = np.isfinite(rtt)
    rows = 2 * have.sum(axis=1) > sizes.size
    if rows.sum() < 2 or not have[rows].all(axis=0).any():
        rows = have.any(axis=1)
    columns = have[rows].all(axis=0)
    return sizes[columns], rtt[np.ix_(rows, columns)], samples[columns]


def _exp(found: Interval) -> Interval:
    with np.errstate(over="ignore"):
        return Interval(*(float(np.exp(v)) for v in (found.value, found.low, found.high)))


def _first_reaching(sizes: Array, log_rate: Array, target: float) -> float:
    """Return the smallest size at which a curve reaches a rate, on lines between logarithms of both.

    The smallest size itself if it reaches it already, the largest one if none does.
    """
    above = np.flatnonzero(log_rate >= target)
    if not above.size:
        return float(sizes[-1])
    k = int(above[0])
    if k == 0:
        return float(sizes[0])
    low, high = np.log(sizes[k - 1]), np.log(sizes[k])
    share = (target - log_rate[k - 1]) / (log_rate[k] - log_rate[k - 1])
    return float(np.exp(low + share * (high - low)))


def _holding(found: Interval, value: float) -> Interval:
    return Interval(found.value, min(found.low, value), max(found.high, value))
