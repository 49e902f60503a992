"""Two real processes for each layer run every loop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from probes import LOOPS, run_pair, step


def samples_of(
    directory: Path, schedule: list[dict[str, Any]], **changes: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    (status, lines, err), other = run_pair(directory, schedule, **changes)
    assert (status, err) == (0, ""), lines
    assert other == (0, [], ""), "rank 1 is silent"
    assert lines[0]["event"] == "hello"
    assert lines[-1]["event"] == "done"
    crossing = lines[-1]["crossing_ns"]
    assert crossing is None or (len(crossing) == 2 and min(crossing) > 0)
    samples = lines[1:-1]
    assert [line["event"] for line in samples] == ["samples"] * len(schedule)
    assert [line["step"] for line in samples] == list(range(len(schedule)))
    return lines[0], samples


@pytest.mark.parametrize(
    ("layer", "wait"),
    [
        ("socket/tcp", "block"),
        ("socket/tcp", "yield"),
        ("socket/unix", "block"),
        ("socket/unix", "yield"),
        ("socket/udp", "block"),
        ("socket/udp", "yield"),
        ("shm", "yield"),
        ("pcaal/udp", "block"),
        ("pcaal/udp", "yield"),
        ("mpi-mvich/shm", "yield"),
        ("mpi-mvich/udp", "yield"),
    ],
)
def test_every_loop_gives_its_samples_at_every_size(tmp_path: Path, layer: str, wait: str) -> None:
    sizes = {
        "socket/udp": [0, 1, 4, 4096, 65507],
        "shm": [0, 1, 4, 56, 57, 4096, 1 << 20],
        "mpi-mvich/shm": [0, 1, 4, 4096, 16383, 16384, 1 << 20],
        "mpi-mvich/udp": [0, 1, 4, 4096, 16383, 16384, 1 << 20],
    }.get(layer, [1, 4, 4096, 1 << 16 if layer == "pcaal/udp" else 1 << 20])
    schedule = [
        step(loop=loop, bytes=size, messages=2, delay_ns=1000 if loop == "prtt" else 0)
        for size in sizes
        for loop in LOOPS
        if not (loop == "two_write" and size < 2)
    ]
    options: dict[str, Any] = {"wait": wait}
    if layer == "socket/udp":
        options["loss_limit_ms"] = 30_000  # a rank that waits for its turn on a busy host is no loss
    hello, samples = samples_of(tmp_path, schedule, layer=layer, options=options)
    assert hello["protocol"] == 1
    assert hello["layer"] == layer
    assert hello["effective"]["wait"] == wait
    assert hello["clock"]["cost_ns"] > 0
    for asked, got in zip(schedule, samples, strict=True):
        assert (got["loop"], got["bytes"], got["messages"]) == (asked["loop"], asked["bytes"], 2)
        assert got["lost"] == 0
        assert len(got["values_ns"]) == 5
        assert all(value > 0 for value in got["values_ns"])
        assert got["first_ns"] > 0
        if asked["loop"] == "prtt":
            assert got["delay_ns"] == 1000
            assert min(got["values_ns"]) >= 1000
        if asked["loop"] == "recv_busy":
            assert got["pause_ns"] >= 20_000, "the leader chose a pause and says which"


def test_options_are_reported_as_the_kernel_has_them(tmp_path: Path) -> None:
    options = {"nodelay": False, "send_buffer_bytes": 20_000, "receive_buffer_bytes": 30_000}
    hello, _ = samples_of(tmp_path, [step()], options=options)
    assert hello["effective"]["nodelay"] is False
    # Linux doubles what is asked for (socket(7)).
    assert hello["effective"]["send_buffer_bytes"] == 40_000
    assert hello["effective"]["receive_buffer_bytes"] == 60_000
    assert hello["effective"]["congestion"]


def test_a_sample_is_a_batch_and_the_clock_is_a_hundredth_of_it(tmp_path: Path) -> None:
    schedule = [step(loop="call", min_samples=50, max_samples=50), step(batch=3), step(loop="call", batch=1)]
    hello, samples = samples_of(tmp_path, schedule)
    batches = [sample["batch"] for sample in samples]
    assert batches[0] > 1, "a call takes less than a hundred readings of the clock"
    assert batches[1:] == [3, 1]
    assert hello["clock"]["resolution_ns"] >= 1


def test_the_minimum_is_taken_although_the_budget_is_spent(tmp_path: Path) -> None:
    _, samples = samples_of(tmp_path, [step(min_samples=40, max_samples=1000, budget_ms=0.001)])
    assert len(samples[0]["values_ns"]) == 40


def test_the_core_asked_for_is_the_core_reported(tmp_path: Path) -> None:
    core = max(os.sched_getaffinity(0))
    hello, _ = samples_of(tmp_path, [step()], pin_cpu=core)
    assert hello["effective"]["cores"] == [core]


def test_an_empty_schedule_is_done_at_once(tmp_path: Path) -> None:
    _, samples = samples_of(tmp_path, [])
    assert samples == []
