"""The interval of a prediction holds what it says, where the model is right."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest

from wiretwin.predict.spread import LAUNCHES, interval

ROUNDS = 4000


@pytest.mark.parametrize("passes", [2, 3, 5, 9])
@pytest.mark.parametrize("twin", [0.0, 0.05])
def test_the_median_of_a_real_run_lies_inside_as_often_as_said(passes: int, twin: float) -> None:
    """Passes and launches scatter by 5 %, and the twin is off by what it says of itself."""
    draw = random.Random(1)
    inside = 0
    for _ in range(ROUNDS):
        computed = [math.exp(draw.gauss(0, 0.05)) for _ in range(passes)]
        off = math.exp(draw.gauss(0, twin / 1.96))
        actual = off * median(math.exp(draw.gauss(0, 0.05)) for _ in range(LAUNCHES))
        value = median(computed)
        low, high = interval(value, computed, [[value * math.exp(-twin), value * math.exp(twin)]])
        inside += low <= actual <= high
    assert 0.94 <= inside / ROUNDS <= 0.98


def test_what_does_not_scatter_adds_nothing_and_one_pass_tells_nothing() -> None:
    assert interval(2.0, [2.0, 2.0, 2.0], []) == (2.0, 2.0)
    assert interval(2.0, [2.0], [[1.0, 4.0]]) == pytest.approx((1.0, 4.0))
    # Both ends on one side: the other is the value's own.
    assert interval(2.0, [], [[3.0, 4.0]]) == pytest.approx((2.0, 4.0))


def test_widths_that_know_nothing_of_each_other_add_as_squares() -> None:
    alone, _ = interval(1.0, [0.9, 1.0, 1.1], [])
    both, _ = interval(1.0, [0.9, 1.0, 1.1], [[0.8, 1.2]])
    assert math.log(both) ** 2 == pytest.approx(math.log(alone) ** 2 + math.log(0.8) ** 2)
    # And so do those of a twin's parts, to either side by what each reaches there.
    low, high = interval(1.0, [], [[0.8, 1.2], [1.0, 1.3]])
    assert low == pytest.approx(0.8)
    assert math.log(high) ** 2 == pytest.approx(math.log(1.2) ** 2 + math.log(1.3) ** 2)


def test_times_of_nothing_have_the_range() -> None:
    assert interval(1.0, [0.0, 1.0], [[2.0]]) == (0.0, 2.0)
    low, high = interval(1.0, [1e-300, 1.0], [])
    assert 0.0 < low < 1.0 < high < math.inf


def test_ranks_dealt_to_cores_anew_in_each_launch_scatter_its_median() -> None:
    draw = random.Random(2)
    deals = [1.0, 1.1, 1.3]
    low, high = interval(1.1, [], [], deals)
    actual = [median(draw.choice(deals) for _ in range(LAUNCHES)) for _ in range(ROUNDS)]
    assert sum(low * (1 - 1e-9) <= one <= high * (1 + 1e-9) for one in actual) / ROUNDS >= 0.94
    # The median of seven from a hundred is hardly ever among the ten least or greatest.
    low, high = interval(50.0, [], [], [float(one) for one in range(1, 101)])
    assert 10 < low < 50 < high < 90


def test_time_blocked_for_what_cannot_be_told_may_be_all_or_none() -> None:
    assert interval(2.0, [], [], untold=0.5) == pytest.approx((1.5, 2.5))
