"""When to stop: on synthetic streams of launches with known spread."""

from __future__ import annotations

import math
import random

import pytest

from wiretwin.fit.stats import interval
from wiretwin.measure.adaptive import Watch, half_width


def test_half_width_is_that_of_the_interval_which_is_reported() -> None:
    medians = [1.0, 1.1, 1.05, 1.02, 1.04, 1.2, 1.01]
    assert half_width(medians) == interval(medians).relative_width


def test_one_spoilt_launch_of_many_does_not_decide() -> None:
    quiet = [100.0 + k / 10 for k in range(15)]
    assert half_width([*quiet, 100_000.0]) < 0.02


def test_fewer_than_two_launches_have_no_interval() -> None:
    assert half_width([]) == math.inf
    assert half_width([5.0]) == math.inf


def test_half_width_does_not_depend_on_the_scale() -> None:
    medians = [3.0, 4.0, 3.5]
    assert half_width(medians) == pytest.approx(half_width([1000 * value for value in medians]))


def launches(watch: Watch, spread: float, limit: int, seed: int = 3) -> tuple[str | None, int, str]:
    """Feed launches of two sizes until the watch stops; from `limit` on it has no budget that would."""
    stream = random.Random(seed)
    for number in range(1, 1000):
        watch.add({4: math.exp(stream.gauss(3, spread)), 64: math.exp(stream.gauss(4, spread / 2))})
        verdict = watch.verdict(enough=number >= limit)
        if verdict.stop:
            return verdict.stop, number, verdict.words
    return None, 1000, ""


def test_a_quiet_stream_is_narrow_after_the_launches_asked_for() -> None:
    assert launches(Watch(0.05, 7), 0.001, 100)[:2] == ("narrow", 7)
    assert launches(Watch(0.05, 3), 0.001, 100)[:2] == ("narrow", 3)


def test_a_noisy_stream_goes_on_until_it_is_narrow() -> None:
    stop, number, words = launches(Watch(0.05, 3), 0.15, 900)
    assert stop == "narrow"
    assert 15 < number < 200
    assert f"after {number} launches the widest interval between launches is ±" in words


def test_a_noisy_stream_without_a_budget_stops_after_the_launches_asked_for() -> None:
    stop, number, words = launches(Watch(0.01, 9), 0.5, 1)
    assert (stop, number) == ("launches", 9)
    assert "at 4 B" in words


def test_a_width_that_says_nothing_is_not_printed_in_full() -> None:
    watch = Watch(0.05, 3)
    for median in (64.0, 202.0):
        watch.add({4: median})
    assert (
        watch.words() == "after 2 launches the widest interval between launches is wider than ± 100 % at 4 B"
    )


def test_sizes_settle_by_themselves_and_not_before_three_launches() -> None:
    watch = Watch(0.05, 7)
    for number in range(5):
        watch.add({4: 10.0 + number / 100, 64: 10.0 * (1 + number % 2)})
        assert watch.settled() == ({4} if number >= 2 else set())


def test_the_widest_size_decides() -> None:
    watch = Watch(0.05, 3)
    for small, large in ((1.0, 5.0), (1.0, 9.0), (1.0, 7.0)):
        watch.add({4: small, 1 << 20: large})
    size, width = watch.widest()
    assert size == 1 << 20
    assert width > 0.5
    assert watch.verdict().stop is None


def test_a_stream_without_medians_never_is_narrow() -> None:
    watch = Watch(0.05, 3)
    for _ in range(5):
        watch.add({})
    assert watch.verdict().stop is None
    assert watch.verdict(enough=True).stop is None
