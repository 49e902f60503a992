"""When to stop: on synthetic streams of launches with known spread."""

from __future__ import annotations

import math
import random

import pytest

from wiretwin.measure.adaptive import Watch, half_width


def test_half_width_is_students_t_on_logarithms() -> None:
    """Against a hand calculation for three launches: t(0.975, 2) = 4.30265 (any table)."""
    medians = [1.0, 1.1, 1.05]
    logs = [math.log(value) for value in medians]
    mean = sum(logs) / 3
    deviation = math.sqrt(sum((value - mean) ** 2 for value in logs) / 2)
    assert half_width(medians) == pytest.approx(math.sinh(4.30265 * deviation / math.sqrt(3)), rel=1e-5)


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
