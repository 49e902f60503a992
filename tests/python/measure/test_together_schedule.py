"""The schedule of what ranks do together, and figures of it from samples that are known."""

from __future__ import annotations

import polars as pl
import pytest

from wiretwin.fit.together import MEAN, single_times, together_table
from wiretwin.measure.adaptive import Watch
from wiretwin.measure.together import LOADS, PURPOSES, WINDOW, chosen, delays_of, steps, window


def sizes(loop: str, asked: list[int]) -> list[int]:
    made = steps([loop], asked, seconds=1.0, max_bytes=1 << 20, short=False)
    return [one.bytes for one in made]


def test_a_busy_loop_brings_the_plain_one_before_it() -> None:
    assert chosen("nonblocking", "ibcast_busy") == ("ibcast", "ibcast_busy")
    assert chosen("collectives", ["bcast", "barrier"]) == ("barrier", "bcast")
    assert chosen("collectives", None) == PURPOSES["collectives"].usual


def test_a_loop_has_the_sizes_that_it_takes() -> None:
    asked = [1, 4, 6, 64, 2 << 20]
    assert sizes("barrier", asked) == [0]
    assert sizes("bcast", asked) == [1, 4, 6, 64]
    assert sizes("allreduce", asked) == [4, 64]
    assert sizes("iallreduce_busy", asked) == [4, 64]
    assert sizes("reduce_scatter_block", asked) == sizes("ireduce_scatter_block", asked) == [4, 64]
    assert sizes("alltoallw", asked) == [1, 4, 6, 64]
    assert sizes("fetch_and_op", asked) == [4]


def test_steps_share_the_time_and_what_is_settled_has_less_of_it() -> None:
    made = steps(
        ["bcast"], [4, 64], seconds=1.2, max_bytes=64, short=False, settled={("bcast", 4), ("reduce", 64)}
    )
    assert [one.budget_ms for one in made] == [200.0, 1000.0]


def test_a_stream_has_as_many_messages_as_the_osu_benchmarks_and_fewer_where_they_are_long() -> None:
    (short,) = steps(["pairs"], [4], seconds=1.0, max_bytes=1 << 30, short=False)
    assert short.messages == WINDOW == 64
    assert [window(size) for size in (1 << 16, 1 << 19, 1 << 28)] == [64, 8, 4]


def test_there_is_no_load_before_a_launch_has_told_what_is_carried() -> None:
    asked = {"sizes": [64, 1024], "seconds": 1.0, "max_bytes": 1 << 20, "short": False}
    loops = ["pairs", "load"]
    assert {one.loop for one in steps(loops, **asked)} == {"pairs"}  # type: ignore[arg-type]
    delays = delays_of({64: 64_000.0})
    assert delays == {64: tuple(round(1000.0 / share) for share in LOADS)}
    later = steps(loops, delays_ns=delays, **asked)  # type: ignore[arg-type]
    assert [(one.bytes, one.delay_ns) for one in later if one.loop == "load"] == [
        (64, delay) for delay in delays[64]
    ]


def test_what_is_widest_is_named_by_its_loop() -> None:
    watch = Watch(0.05, 3)
    for number in range(3):
        watch.add({("bcast", 4): 10.0, ("reduce", 64): 10.0 + number})
    assert watch.settled() == {("bcast", 4)}
    assert watch.words().endswith("at 64 B of reduce")


def row(loop: str, launch: int, index: int, value: float, **more: int) -> dict[str, object]:
    plain = {"bytes": 64, "messages": 1, "delay_ns": 0, "batch": 1} | more
    return {"launch": launch, "layer": "x", "loop": loop, "index": index, "value_ns": round(value), **plain}


def table(rows: list[dict[str, object]], ranks: int = 2) -> list[dict[str, object]]:
    """Figures of samples, to each of which a mean of half as much is added."""
    both = [
        one | {"loop": f"{one['loop']}{end}", "value_ns": int(str(one["value_ns"])) // part}
        for one in rows
        for end, part in (("", 1), (MEAN, 2))
    ]
    return together_table(pl.DataFrame(both), ranks).to_dicts()


def test_percentiles_are_of_single_calls_and_the_value_is_of_launches() -> None:
    rows = [
        row("bcast", launch, index, 1000 * (1 + (index == 100)) if index else 9e6)
        for launch in range(1, 6)
        for index in range(101)
    ]
    (found,) = table(rows)
    assert found["value_us"] == pytest.approx(1.0)
    assert found["mean_us"] == pytest.approx(0.5)
    assert (found["p50_us"], found["p95_us"], found["most_us"]) == (1.0, 1.0, 2.0)
    assert len(single_times(pl.DataFrame(rows), "x", "bcast", 64)) == 500


def test_what_is_left_of_a_busy_call_tells_what_is_hidden() -> None:
    rows = [row(loop, 1, 1, value) for loop, value in (("ibcast", 8000), ("ibcast_busy", 2000))]
    plain, busy = table(rows)
    assert plain["overlap"] is None
    assert busy["overlap"] == pytest.approx(0.75)
    slower = [row(loop, 1, 1, value) for loop, value in (("ibcast", 8000), ("ibcast_busy", 9000))]
    assert table(slower)[1]["overlap"] == 0.0


def test_rates_are_of_all_pairs_and_a_load_is_a_share_of_them() -> None:
    rows = [row("pairs", 1, 1, 64_000, messages=64), row("bidirectional", 1, 1, 64_000, messages=64)]
    rows.append(row("load", 1, 1, 5000, delay_ns=2000))
    pairs, both, load = table(rows, ranks=4)
    assert pairs["messages_per_s"] == pytest.approx(2e6)
    assert pairs["rate_MB_s"] == pytest.approx(128.0)
    assert both["messages_per_s"] == pytest.approx(4e6)
    assert load["load"] == pytest.approx(0.5)
    assert load["messages_per_s"] == pytest.approx(1e6)
