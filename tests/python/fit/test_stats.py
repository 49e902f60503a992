"""Estimates between launches: against scipy, against known samples, and by their coverage."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats as scipy_stats

from wiretwin.errors import InputError
from wiretwin.fit.stats import Interval, by_launch, interval, locate, student, summarise

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


def test_few_launches_without_outliers_are_a_plain_t_interval() -> None:
    x = np.array([10.0, 11.0, 12.0, 13.0, 14.0])
    found = interval(x, log=False)
    low, high = scipy_stats.t.interval(0.95, 4, x.mean(), x.std(ddof=1) / math.sqrt(5))
    assert (found.value, found.low, found.high) == pytest.approx((12.0, low, high))


def test_many_launches_are_trimmed_as_scipy_trims() -> None:
    x = np.random.default_rng(3).normal(100, 5, 20)
    found = locate(x)
    assert float(found.value) == pytest.approx(scipy_stats.trim_mean(x, 0.2))
    oracle = scipy_stats.ttest_ind(x, x + 50.0, trim=0.2, equal_var=False)
    # Two samples with the same winsorised variance: the pooled error is sqrt(2) times that of one.
    assert float(found.error) == pytest.approx(50.0 / abs(oracle.statistic) / math.sqrt(2))
    assert found.freedom == 11


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
    assert student(0, 0.95) == math.inf
    with pytest.raises(InputError, match="no launch has a value"):
        interval([math.nan])


def test_intervals_separate_only_without_a_common_value() -> None:
    assert Interval(1, 0, 2).separate_from(Interval(4, 3, 5))
    assert Interval(4, 3, 5).separate_from(Interval(1, 0, 2))
    assert not Interval(1, 0, 3).separate_from(Interval(4, 3, 5))


@pytest.mark.parametrize("launches", [3, 5, 7, 10, 20])
@pytest.mark.parametrize("spoilt", [0.0, 0.05])
def test_intervals_cover_the_typical_launch_at_their_stated_rate(launches: int, spoilt: float) -> None:
    random = np.random.default_rng(launches)
    runs = 2000
    x = random.normal(0, 0.03, (launches, runs))
    x += (random.random(x.shape) < spoilt) * random.exponential(0.3, x.shape)
    found = locate(x)
    covered = int((np.abs(found.value) <= student(found.freedom, STATED) * found.error).sum())
    # One per cent of grace: winsorising by the launches' own scatter costs that much.
    chance = scipy_stats.binomtest(covered, runs, STATED - 0.01, alternative="less").pvalue
    assert chance > ALPHA, f"{covered} of {runs}"
