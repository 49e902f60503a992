"""Estimates between launches: against scipy, against known samples, and by their coverage."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from scipy import stats as scipy_stats

from wiretwin.errors import InputError
from wiretwin.fit.settled import settled
from wiretwin.fit.stats import Array, Interval, by_launch, ends, interval, median, summarise

STATED = 0.95
ALPHA = 0.001


def frame(rows: list[tuple[object, ...]]) -> pl.DataFrame:
    names = ("launch", "layer", "loop", "bytes", "messages", "delay_ns", "batch", "index", "value_ns")
    return pl.DataFrame(rows, schema=list(names), orient="row")


def step(launch: int, size: int, values: list[int], batch: int = 1) -> list[tuple[object, ...]]:
    return [(launch, "a", "echo", size, 1, 0, batch, k, v) for k, v in enumerate(values)]


def test_the_first_iteration_is_left_out_and_a_batch_is_divided() -> None:
    summary = summarise(frame(step(1, 4, [9000, 200, 220, 400], batch=2) + step(2, 4, [70])))
    assert summary["value_ns"].to_list() == [110.0, 70.0]
    assert summary["samples"].to_list() == [3, 1]


def test_a_missing_column_or_an_impossible_batch_is_named() -> None:
    rows = frame(step(1, 4, [1, 2]))
    with pytest.raises(InputError, match="samples lack the column 'batch'"):
        summarise(rows.drop("batch"))
    with pytest.raises(InputError, match="batch = 0; allowed is 1 and above"):
        summarise(rows.with_columns(batch=0))


def test_sizes_that_few_launches_have_are_left_out() -> None:
    rows = [r for n in (1, 2, 3, 4, 5) for r in step(n, 4, [0, 10 * n])]
    rows += [r for n in (1, 2, 3) for r in step(n, 8, [0, 20 * n])]
    rows += [r for n in (1, 2) for r in step(n, 16, [0, 30 * n])]
    found = by_launch(summarise(frame(rows)))
    assert found.sizes.tolist() == [4, 8]
    np.testing.assert_array_equal(found.values[:, 0], [10, 20, 30, 40, 50])
    np.testing.assert_array_equal(found.values[:, 1], [20, 40, 60, np.nan, np.nan])
    assert found.samples.tolist() == [5, 3]


def test_averaged_neighbours_of_a_line_stay_on_it() -> None:
    rows = [r for size in range(2, 800, 2) for r in step(1, size, [0, 100 + 3 * size])]
    rows += [r for size in (10_000, 20_000) for r in step(1, size, [0, 100 + 3 * size])]
    few = by_launch(summarise(frame(rows))).at_most(50)
    assert 30 < few.sizes.size <= 50
    np.testing.assert_allclose(few.values[0], 100 + 3 * few.sizes, atol=3)
    assert few.samples.sum() == 401
    assert few.sizes[-2:].tolist() == [10_000, 20_000]
    assert few.at_most(50) is few


def test_seven_launches_have_the_interval_of_hettmansperger_and_sheather() -> None:
    """By hand: all seven cover 126 of 128, the inner five 112 of 128; 95 % lies between."""
    x = np.array([3.0, 1.0, 10.0, 4.0, 6.0, 5.0, 2.0])
    inside = (126 / 128 - 0.95) / (126 / 128 - 112 / 128)
    share = 6 * inside / (1 + 5 * inside)
    found = interval(x, log=False)
    assert found.value == 4.0
    assert found.low == pytest.approx((1 - share) * 1.0 + share * 2.0)
    assert found.high == pytest.approx((1 - share) * 10.0 + share * 6.0)


def test_two_launches_have_the_interval_of_student() -> None:
    x = np.array([10.0, 11.0])
    low, high = scipy_stats.t.interval(0.95, 1, x.mean(), x.std(ddof=1) / math.sqrt(2))
    found = interval(x, log=False)
    assert (found.value, found.low, found.high) == pytest.approx((10.5, low, high))


def test_the_value_is_one_that_was_measured() -> None:
    """Two launches in one state and one in another: no value between them, and none is named."""
    found = interval([64.0, 68.0, 202.0])
    assert found.value == pytest.approx(68.0)
    assert not found.settled


def test_an_interval_is_settled_within_a_factor_of_two() -> None:
    assert settled(1.0, 2.0)
    assert not settled(1.0, 2.01)
    assert not settled(0.0, 0.0)
    assert not settled(None, 2.0)
    assert not settled(1.0, math.inf)


def test_one_spoilt_launch_moves_the_value_little() -> None:
    clean = np.array([100.0, 101.0, 99.0, 100.5, 99.5])
    spoilt = clean.copy()
    spoilt[0] = 1000.0
    assert abs(interval(spoilt).value / 100 - 1) < 0.05
    assert interval(spoilt).low <= 100 <= interval(spoilt).high


def test_launches_that_read_the_same_but_for_one_keep_their_width() -> None:
    assert interval([100.0, 100.0, 100.0, 100.0, 150.0]).relative_width > 0.1


def test_one_launch_says_nothing_about_the_next() -> None:
    found = interval([7.0])
    assert (found.value, found.low, found.high) == (pytest.approx(7.0), 0.0, math.inf)
    with pytest.raises(InputError, match="no launch has a value"):
        interval([math.nan])


def test_intervals_separate_only_without_a_common_value() -> None:
    assert Interval(1, 0, 2).separate_from(Interval(4, 3, 5))
    assert Interval(4, 3, 5).separate_from(Interval(1, 0, 2))
    assert not Interval(1, 0, 3).separate_from(Interval(4, 3, 5))


def normal(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return random.normal(0, 0.03, shape)


def spoilt(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return normal(random, shape) + (random.random(shape) < 0.05) * random.exponential(0.3, shape)


def heavy_tails(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return 0.03 * random.standard_cauchy(shape)


def one_sided(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return random.exponential(0.3, shape)


def two_states(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Three of ten launches take three times as long."""
    return normal(random, shape) + (random.random(shape) < 0.3) * math.log(3)


@pytest.mark.parametrize("launches", [3, 4, 5, 6, 7, 10, 20])
@pytest.mark.parametrize("kind", [normal, spoilt, heavy_tails, one_sided, two_states])
def test_intervals_cover_the_median_of_any_launches_at_their_stated_rate(
    launches: int, kind: Callable[[np.random.Generator, tuple[int, int]], Array]
) -> None:
    truth = float(np.median(kind(np.random.default_rng(99), (1, 1_000_000))))
    runs = 4000
    low, high = ends(kind(np.random.default_rng(launches), (launches, runs)), STATED)
    covered = int(((low <= truth) & (truth <= high)).sum())
    # Half a per cent of grace between two order statistics; three launches of a skewed kind cost two.
    grace = 0.02 if launches == 3 else 0.005
    chance = scipy_stats.binomtest(covered, runs, STATED - grace, alternative="less").pvalue
    assert chance > ALPHA, f"{covered} of {runs}"


def test_an_interval_of_more_confidence_holds_one_of_less() -> None:
    x = np.random.default_rng(4).normal(0, 1, (7, 500))
    before = (median(x), median(x))
    for confidence in (0.3, 0.5, 0.8, 0.95, 0.98, 0.99, 0.999):
        low, high = ends(x, confidence)
        assert (low <= before[0] + 1e-12).all()
        assert (high >= before[1] - 1e-12).all()
        before = (low, high)


def test_the_stretches_that_are_written_down_are_those_of_student() -> None:
    for launches in (2, 3, 4, 5):
        x = np.arange(launches, dtype=np.float64)
        own = 1 - 2.0 ** (1 - launches)
        wanted, have = (scipy_stats.t.ppf(0.5 + share / 2, launches - 1) for share in (STATED, own))
        assert ends(x, STATED)[1] - ends(x, STATED)[0] == pytest.approx(wanted / have * (launches - 1))
        np.testing.assert_allclose(ends(x, STATED * (1 - 1e-12)), ends(x, STATED), rtol=1e-6)
