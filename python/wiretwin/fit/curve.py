"""The figures of Lin et al. (1995), read off the measured curve of round trips by size.

``t_0`` is half the round trip of 4 bytes; ``r_max`` the largest 2 M / RTT; ``n_half`` the smallest size at
which half of ``r_max`` is reached, interpolated between measured sizes. None of the three is a fitted
constant: real curves are not a Hockney line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wiretwin.fit.stats import Array, ByLaunch, Interval, interval, locate, student, wider

__all__ = ["CurveFigures", "curve_figures"]

T_0_BYTES = 4
_RESAMPLES = 200
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


def curve_figures(echo: ByLaunch, confidence: float = 0.95, seed: int = 0) -> CurveFigures:
    """Read the figures off round trips by launch and size; at least one size above 0 and two launches.

    Choice: a largest value over many noisy sizes is too large, and by more the more sizes there are. So
    each launch is read at the size where the *other* launches are fastest: what is chosen on some
    launches is measured on another, and ``r_max`` is the typical of these readings. Where launches
    agree it is the top of the curve to the last digit; where they differ by a tenth the top of the curve
    would be 6 % too high. ``n_half`` is read off the typical curve at half of that.

    The standard errors are those of resampled launches (bootstrap), or of the readings if that is more,
    and the intervals Student's with them, extended to hold the top of the curve.

    Parameters
    ----------
    echo
        Round trips by launch and size, in ns. Launches that lack most sizes and sizes that other launches
        lack are not used for ``r_max`` and ``n_half``.
    confidence
        Of the intervals.
    seed
        Of the resampling.
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
    whole = locate(log_rate).value
    best = np.array(
        [log_rate[k, int(np.argmax(locate(np.delete(log_rate, k, axis=0)).value))] for k in range(launches)]
    )
    read = locate(best)
    log_r_max = float(read.value)
    half = log_r_max - _LOG_2
    log_n_half = float(np.log(_first_reaching(sizes, whole, half)))
    random = np.random.default_rng(seed)
    drawn = locate(log_rate[random.integers(0, launches, (launches, _RESAMPLES))]).value
    tops = drawn.max(axis=1)
    reached = np.log([_first_reaching(sizes, c, top - _LOG_2) for c, top in zip(drawn, tops, strict=True)])
    # Resampled launches scatter by (L - 1) / L of the variance between launches.
    factor = student(read.freedom, confidence) * np.sqrt(launches / (launches - 1))
    error = max(float(tops.std()), float(read.error) * np.sqrt((launches - 1) / launches))
    r_max = _exp(wider(_symmetric(log_r_max, factor * error)))
    n_half = _exp(wider(_symmetric(log_n_half, factor * float(reached.std()))))
    return CurveFigures(
        t_0_ns=t_0,
        t_0_bytes=t_0_bytes,
        t_0_samples=t_0_samples,
        r_max=_holding(r_max, float(np.exp(whole.max()))),
        r_max_bytes=int(sizes[int(np.argmax(whole))]),
        n_half_bytes=_holding(n_half, _first_reaching(sizes, whole, float(whole.max()) - _LOG_2)),
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


def _symmetric(value: float, half: float) -> Interval:
    return Interval(value, value - half, value + half)


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
