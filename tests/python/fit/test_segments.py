"""Segments: exact on exact lines, never a negative rate, breaks where they are and nowhere else."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, kstest

from wiretwin.fit.segments import MIN_SIZES, Piece, _all_lines, _divide, fit_segments
from wiretwin.fit.stats import Array
from wiretwin.fit.synthetic import HALF_OCTAVES, Lines, Noise, noisy
from wiretwin.plot.data import BREAK_P

STRAIGHT = Lines(((0, 800.0, 0.1),))
KINK = Lines(((0, 800.0, 0.3), (8192, 2848.0, 0.05)))
JUMP = Lines(((0, 800.0, 0.1), (8192, 3000.0, 0.1)))
STEPPED = Lines(((0, 1400.0, 0.1), (8192, 2800.0, 0.026), (400_000, -2800.0, 0.04)))
BUSY = Noise(launch=0.05, step=0.03, spoilt=0.05)


def exact(curve: Lines, launches: int = 3) -> Array:
    return np.tile(curve(HALF_OCTAVES), (launches, 1))


def fitted(pieces: list[Piece], sizes: Array) -> Array:
    starts = np.array([p.from_bytes for p in pieces])
    which = np.searchsorted(starts, sizes, side="right") - 1
    return np.array([pieces[w].at(float(s)) for w, s in zip(which, sizes, strict=True)])


@pytest.mark.parametrize("curve", [STRAIGHT, KINK, JUMP, STEPPED])
def test_exact_lines_come_back_exactly(curve: Lines) -> None:
    pieces = fit_segments(HALF_OCTAVES, exact(curve))
    assert len(pieces) == len(curve.lines)
    for piece, (start, base, rate) in zip(pieces, curve.lines, strict=True):
        assert piece.base.value == pytest.approx(base, rel=1e-6)
        assert piece.rate.value == pytest.approx(rate, rel=1e-6)
        assert piece.from_low <= start <= piece.from_high or start == piece.from_bytes == 0


def test_a_bend_between_two_sizes_is_put_where_the_lines_meet() -> None:
    curve = Lines(((0, 800.0, 0.3), (7000, 2550.0, 0.05)))
    assert 7000 not in HALF_OCTAVES
    assert abs(fit_segments(HALF_OCTAVES, exact(curve))[1].from_bytes - 7000) <= 1


def test_a_jump_begins_at_the_smallest_size_seen_beyond_it() -> None:
    curve = Lines(((0, 800.0, 0.1), (7000, 3000.0, 0.1)))
    piece = fit_segments(HALF_OCTAVES, exact(curve))[1]
    assert piece.from_bytes == 8192
    assert piece.from_low <= 5794 < 7000 <= piece.from_high


def test_a_step_below_the_tolerance_makes_no_break() -> None:
    step = np.where(HALF_OCTAVES < 8192, 1.0, 1.02)
    values = np.tile(STRAIGHT(HALF_OCTAVES) * step, (5, 1))
    assert len(fit_segments(HALF_OCTAVES, values)) == 1
    assert len(fit_segments(HALF_OCTAVES, values, tolerance=0.001)) == 2


def test_a_falling_curve_is_fitted_level() -> None:
    values = np.tile(1000 - 0.0001 * HALF_OCTAVES, (3, 1))
    assert all(piece.rate.value == 0 for piece in fit_segments(HALF_OCTAVES, values))


def test_two_sizes_are_a_line_and_one_is_level() -> None:
    (piece,) = fit_segments(np.array([4, 8]), np.tile([100.0, 140.0], (2, 1)))
    assert (piece.base.value, piece.rate.value) == (pytest.approx(60), pytest.approx(10))
    (piece,) = fit_segments(np.array([4]), np.array([[100.0], [120.0], [110.0]]))
    assert (piece.base.value, piece.rate.value) == (pytest.approx(110), 0)


def test_launches_that_lack_sizes_are_used_where_they_have_them() -> None:
    values = exact(STEPPED, 5)
    values[4, 10:] = np.nan
    values[3, :5] = np.nan
    pieces = fit_segments(HALF_OCTAVES, values)
    np.testing.assert_allclose(fitted(pieces, HALF_OCTAVES), STEPPED(HALF_OCTAVES), rtol=1e-6)


@given(
    st.lists(st.floats(1, 1e7), min_size=3, max_size=16),
    st.integers(2, 5),
    st.randoms(use_true_random=False),
)
@settings(max_examples=150, deadline=None)
def test_no_rate_and_no_time_is_ever_negative(times: list[float], launches: int, random: object) -> None:
    sizes = np.unique(np.logspace(0, 20, len(times), base=2).astype(np.int64))
    seed = random.getrandbits(32)  # type: ignore[attr-defined]
    values = noisy(np.array(times[: sizes.size]), launches, BUSY, np.random.default_rng(seed))
    pieces = fit_segments(sizes, values)
    starts = [p.from_bytes for p in pieces]
    assert starts == sorted(set(starts))
    assert starts[0] == 0
    for piece in pieces:
        assert piece.rate.value >= 0
        assert piece.rate.low >= 0
        assert piece.at(piece.from_bytes) >= -1e-6 * abs(piece.base.value)
        assert piece.base.low <= piece.base.value <= piece.base.high
        assert piece.rate.low <= piece.rate.value <= piece.rate.high


@given(st.lists(st.floats(1, 1e5), min_size=6, max_size=10), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_the_division_is_the_best_of_all(times: list[float], most: int) -> None:
    x, y = np.arange(1.0, len(times) + 1), np.array(times)
    cost = _all_lines(x, y, 1 / (0.02 * y) ** 2).cost
    n = x.size
    candidates = []
    for breaks in range(min(most, n // 2)):
        for cut in combinations(range(1, n), breaks):
            starts = [0, *cut]
            ends = [*(c - 1 for c in cut), n - 1]
            if all(e - s >= 1 for s, e in zip(starts, ends, strict=True)):
                total = sum(cost[s, e] for s, e in zip(starts, ends, strict=True))
                candidates.append((n * np.log1p(total / n) + 1.25 * 3 * np.log(n) * breaks, starts))
    starts = _divide(cost, 2, most)
    ends = [*(s - 1 for s in starts[1:]), n - 1]
    total = sum(cost[s, e] for s, e in zip(starts, ends, strict=True))
    found = n * np.log1p(total / n) + 1.25 * 3 * np.log(n) * (len(starts) - 1)
    assert found == pytest.approx(min(c for c, _ in candidates))


@given(st.dictionaries(st.floats(1, 1e6), st.floats(0.5, 1e4), min_size=2, max_size=8))
@settings(max_examples=150, deadline=None)
def test_an_admissible_line_costs_least_of_all_admissible_ones(points: dict[float, float]) -> None:
    x, y = (np.array(column) for column in zip(*sorted(points.items()), strict=True))
    w = 1 / y**2
    lines = _all_lines(x, y, w)
    base, rate, cost = lines.base[0, -1], lines.rate[0, -1], lines.cost[0, -1]
    assert rate >= 0
    assert base >= -1e-9 * y.max()
    assert cost == pytest.approx(float((w * (y - base - rate * x) ** 2).sum()), rel=1e-6, abs=1e-8)
    for other_base in np.linspace(0, y.max(), 15):
        for other_rate in np.linspace(0, (y / x).max(), 15):
            assert (w * (y - other_base - other_rate * x) ** 2).sum() >= cost * (1 - 1e-6) - 1e-9


RUNS = 120


def pieces_of(curve: Lines, launches: int, noise: Noise, seed: int) -> list[Piece]:
    return fit_segments(
        HALF_OCTAVES, noisy(curve(HALF_OCTAVES), launches, noise, np.random.default_rng(seed))
    )


@pytest.mark.parametrize("launches", [3, 5, 10])
@pytest.mark.parametrize("noise", [Noise(), BUSY], ids=["ordinary", "busy"])
def test_a_straight_curve_rarely_gets_a_break(launches: int, noise: Noise) -> None:
    breaks = [pieces_of(STRAIGHT, launches, noise, seed)[1:] for seed in range(RUNS)]
    spurious = sum(map(bool, breaks))
    stated = 0.1 if launches < 5 else 0.05
    assert binomtest(spurious, RUNS, stated, alternative="greater").pvalue > 0.001, f"{spurious} of {RUNS}"
    called = sum(any((one.break_p or 0.0) < BREAK_P for one in found) for found in breaks)
    assert called <= 1, f"{called} of {spurious} breaks of a straight curve are called a change of behaviour"


@pytest.mark.parametrize("launches", [3, 5, 10])
def test_breaks_are_found_and_intervals_cover_at_their_stated_rate(launches: int) -> None:
    covered: dict[str, list[bool]] = {}
    found = called = 0
    for seed in range(RUNS):
        pieces = pieces_of(STEPPED, launches, Noise(), seed)
        called += sum((one.break_p or 0.0) < BREAK_P for one in pieces[1:])
        if len(pieces) != 3:
            continue
        found += 1
        for k, (piece, (start, base, rate)) in enumerate(zip(pieces, STEPPED.lines, strict=True)):
            covered.setdefault(f"base {k}", []).append(piece.base.low <= base <= piece.base.high)
            covered.setdefault(f"rate {k}", []).append(piece.rate.low <= rate <= piece.rate.high)
            if k:
                covered.setdefault(f"break {k}", []).append(piece.from_low <= start <= piece.from_high)
    assert binomtest(found, RUNS, 0.93, alternative="less").pvalue > 0.001, f"{found} of {RUNS}"
    assert called > 2 * RUNS * (0.75 if launches < 5 else 0.95), f"only {called} breaks are called a change"
    for name, hits in covered.items():
        chance = binomtest(sum(hits), len(hits), 0.95, alternative="less").pvalue
        assert chance > 0.001, f"{name}: {sum(hits)} of {len(hits)}"


def test_lack_of_fit_is_uniform_for_lines_and_small_for_a_bow() -> None:
    noise = Noise(spoilt=0.0)
    sizes = np.arange(1000, 13000, 1000)
    line, bow = 800 + 0.1 * sizes, 800 + 0.1 * sizes * (1 + 0.1 * np.sin(sizes / 4000))
    straight, bent = [], []
    for seed in range(200):
        for times, out in ((line, straight), (bow, bent)):
            values = noisy(times, 5, noise, np.random.default_rng(seed))
            (piece,) = fit_segments(sizes, values, max_segments=1)
            assert piece.lack_of_fit_p is not None
            out.append(piece.lack_of_fit_p)
    assert kstest(straight, "uniform").pvalue > 0.001
    assert np.median(bent) < 0.05


def test_lack_of_fit_needs_launches_and_sizes() -> None:
    assert fit_segments(HALF_OCTAVES, exact(STRAIGHT, 1))[0].lack_of_fit_p is None
    assert fit_segments(np.array([1, 8]), np.array([[1.0, 2.0], [1.1, 2.3]]))[0].lack_of_fit_p is None


def test_no_segment_rests_on_fewer_sizes_than_stated() -> None:
    for seed in range(40):
        for piece in pieces_of(STEPPED, 3, BUSY, seed):
            assert piece.last - piece.first + 1 >= MIN_SIZES
