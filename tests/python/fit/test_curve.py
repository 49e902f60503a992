"""t_0, r_max and n_half: exact on exact curves, and covered at the stated rate on noisy ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from wiretwin.fit.curve import curve_figures
from wiretwin.fit.stats import Array, ByLaunch
from wiretwin.fit.synthetic import HALF_OCTAVES, Lines, Noise, noisy

STRAIGHT = Lines(((0, 800.0, 0.1),))
STEPPED = Lines(((0, 1400.0, 0.1), (8192, 2800.0, 0.026), (400_000, -2800.0, 0.04)))


def echo(times: Array, sizes: Array | None = None) -> ByLaunch:
    at = HALF_OCTAVES if sizes is None else np.asarray(sizes, dtype=np.int64)
    return ByLaunch(at, times, np.full(at.size, 9))


def measured(curve: Lines) -> tuple[float, float, float]:
    """Return what the figures' definitions give on the curve itself, by other means than the code's."""
    rate = HALF_OCTAVES / curve(HALF_OCTAVES)
    fine = np.exp(np.linspace(0, np.log(HALF_OCTAVES[-1]), 400_001))
    between = np.exp(np.interp(np.log(fine), np.log(HALF_OCTAVES), np.log(rate)))
    return float(curve(4)), float(rate.max()), float(fine[np.argmax(between >= rate.max() / 2)])


@pytest.mark.parametrize("curve", [STRAIGHT, STEPPED], ids=["straight", "stepped"])
def test_an_exact_curve_gives_its_exact_figures(curve: Lines) -> None:
    t_0, r_max, n_half = measured(curve)
    found = curve_figures(echo(np.tile(2 * curve(HALF_OCTAVES), (3, 1))))
    assert found.t_0_ns.value == pytest.approx(t_0)
    assert found.r_max.value == pytest.approx(r_max)
    assert found.n_half_bytes.value == pytest.approx(n_half, rel=1e-4)
    assert found.t_0_bytes == 4
    assert found.launches == 3
    assert found.samples == 9 * HALF_OCTAVES.size


def test_a_hockney_line_has_n_half_at_t_0_times_r_max() -> None:
    sizes = np.unique(np.round(2 ** np.arange(2, 30, 0.05)).astype(np.int64))
    found = curve_figures(echo(np.tile(2 * STRAIGHT(sizes), (2, 1)), sizes))
    assert found.n_half_bytes.value == pytest.approx(800 / 0.1, rel=1e-3)
    assert found.r_max.value == pytest.approx(1 / 0.1, rel=1e-4)


def test_without_4_bytes_the_smallest_size_above_0_stands_for_it() -> None:
    sizes = np.array([0, 16, 64, 4096])
    found = curve_figures(echo(np.tile(2 * STRAIGHT(sizes), (2, 1)), sizes))
    assert found.t_0_bytes == 16
    assert found.t_0_ns.value == pytest.approx(801.6)


def test_a_curve_that_starts_at_half_its_rate_has_n_half_there() -> None:
    sizes = np.array([4, 8, 16])
    flat = Lines(((0, 0.0, 1.0),))
    found = curve_figures(echo(np.tile(2 * flat(sizes), (2, 1)), sizes))
    assert found.n_half_bytes.value == pytest.approx(4)


def test_an_interrupted_launch_does_not_spoil_the_figures() -> None:
    times = np.tile(2 * STRAIGHT(HALF_OCTAVES), (4, 1))
    times[3, 5:] = np.nan
    whole, cut = curve_figures(echo(times[:3])), curve_figures(echo(times))
    assert cut.r_max == whole.r_max
    assert cut.n_half_bytes == whole.n_half_bytes


def test_noise_does_not_make_the_peak_higher() -> None:
    noise = Noise(launch=0.02, step=0.1, spoilt=0.0)
    truth = measured(STRAIGHT)[1]
    shares = []
    for seed in range(150):
        times = noisy(2 * STRAIGHT(HALF_OCTAVES), 5, noise, np.random.default_rng(seed))
        shares.append(curve_figures(echo(times)).r_max.value / truth)
    assert abs(np.mean(shares) - 1) < 0.025
    assert np.mean([s - 1 for s in shares]) < 0.01


@pytest.mark.parametrize("curve", [STRAIGHT, STEPPED], ids=["straight", "stepped"])
@pytest.mark.parametrize("launches", [3, 5, 10])
def test_intervals_cover_the_figures_at_their_stated_rate(curve: Lines, launches: int) -> None:
    truth = measured(curve)
    runs, covered = 150, np.zeros(3, dtype=int)
    for seed in range(runs):
        times = noisy(2 * curve(HALF_OCTAVES), launches, Noise(), np.random.default_rng(seed))
        found = curve_figures(echo(times))
        figures = (found.t_0_ns, found.r_max, found.n_half_bytes)
        covered += [f.low <= t <= f.high for f, t in zip(figures, truth, strict=True)]
    for name, count in zip(("t_0", "r_max", "n_half"), covered.tolist(), strict=True):
        chance = binomtest(count, runs, 0.95, alternative="less").pvalue
        assert chance > 0.001, f"{name}: {count} of {runs}"
