"""When to stop: on synthetic streams of launches with known spread."""

from __future__ import annotations

import math
import random

import pytest

from wiretwin.measure.adaptive import Watch, half_width


def test_half_width_is_students_t_on_logarithms() -> None:
    """Against a hand calculation: t(0.975, 3) = 3.18245 (any table)."""
    medians = [1.0, 1.1, 0.9, 1.05]
    logs = [math.log(value) for value in medians]
    mean = sum(logs) / 4
    deviation = math.sqrt(sum((value - mean) ** 2 for value in logs) / 3)
    assert half_width(medians) == pytest.approx(math.expm1(3.18245 * deviation / 2), rel=1e-5)


def test_fewer_than_two_launches_have_no_interval() -> None:
    assert half_width([]) == math.inf
    assert half_width([5.0]) == math.inf


def test_half_width_does_not_depend_on_the_scale() -> None:
    medians = [3.0, 4.0, 3.5]
    assert half_width(medians) == pytest.approx(half_width([1000 * value for value in medians]))


def test_the_interval_covers_the_truth_at_its_rate() -> None:
    """2000 seeded streams of 5 launches: 95 % intervals cover the true value 93 to 97 % of the time."""
    stream = random.Random(11)
    covered = 0
    for _ in range(2000):
        medians = [math.exp(stream.gauss(0, 0.2)) for _ in range(5)]
        centre = math.exp(sum(map(math.log, medians)) / 5)
        width = 1 + half_width(medians)
        covered += centre / width <= 1 <= centre * width
    assert 0.93 <= covered / 2000 <= 0.97


def launches(watch: Watch, spread: float, limit: int, seed: int = 3) -> tuple[str | None, int, str]:
    """Feed launches of two sizes until the watch stops; the time is up after `limit`."""
    stream = random.Random(seed)
    for number in range(1, 1000):
        watch.add({4: math.exp(stream.gauss(3, spread)), 64: math.exp(stream.gauss(4, spread / 2))})
        verdict = watch.verdict(out_of_time=number >= limit)
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


def test_a_noisy_stream_stops_when_the_time_is_up() -> None:
    stop, number, words = launches(Watch(0.01, 3), 0.5, 9)
    assert (stop, number) == ("budget", 9)
    assert "at 4 B" in words


def test_three_launches_are_made_even_without_time() -> None:
    assert launches(Watch(0.01, 7), 0.5, 1)[:2] == ("budget", 3)


def test_the_widest_size_decides() -> None:
    watch = Watch(0.05, 3)
    for small, large in ((1.0, 5.0), (1.0, 9.0), (1.0, 7.0)):
        watch.add({4: small, 1 << 20: large})
    size, width = watch.widest()
    assert size == 1 << 20
    assert width > 0.5
    assert watch.verdict(out_of_time=False).stop is None


def test_a_stream_without_medians_never_is_narrow() -> None:
    watch = Watch(0.05, 3)
    for _ in range(5):
        watch.add({})
    assert watch.verdict(out_of_time=False).stop is None
    assert watch.verdict(out_of_time=True).stop == "budget"
