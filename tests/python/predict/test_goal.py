"""Schedules in GOAL: out of a recorded run, and replayed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from predict_help import wiretwin
from trace_help import MIXED, NOTHING, recorded

from wiretwin import trace


def test_goal_goes_out_and_comes_in_with_the_same_times() -> None:
    recorded(MIXED, 4)
    done = wiretwin("replay", "recorded", "--goal", "out.goal")
    assert (done.code, "operations of 4 ranks" in done.err) == (0, True), done.err
    text = Path("out.goal").read_text()
    assert text.startswith("num_ranks 4\n")
    assert (
        len(re.findall(r"^l\d+: send ", text, re.MULTILINE))
        == trace.operations(trace.Trace("recorded")).messages
    )
    # Without computation: when messages of any sender come hangs on how long that took.
    quiet = {"twin": "nothing", "network": "star:rate=10Gbit/s,delay=1us"}
    direct, by_goal = (trace.replay(one, compute_scale=0, **quiet) for one in ("recorded", "out.goal"))
    assert by_goal.messages == direct.messages
    # Calls cost nothing here; GOAL has no probes, which wait for a message before it is received.
    assert by_goal.seconds.value == pytest.approx(direct.seconds.value, rel=0.01)


GOAL = """num_ranks 2

rank 0 {
l1: calc 1000
l2: send 1250b to 1 tag 7
l2 requires l1
l3: recv 8b from 1 tag 8
l3 requires l2
}

rank 1 {
l1: recv 1250b from 0 tag 7
l2: calc 500 cpu 0
l2 requires l1
l3: send 8b to 0 tag 8 cpu 0 nic 0
l3 requires l2
l3 irequires l1
}
"""


def test_a_schedule_takes_what_its_lines_say() -> None:
    Path("two.goal").write_text(GOAL)

    def taken(rate: int, delay: int, scale: float = 1.0) -> int:
        network = f"back-to-back:rate={rate}Gbit/s,delay={delay}us"
        found = trace.replay("two.goal", twin="nothing", network=network, compute_scale=scale)
        return round(found.seconds.value * 1e12)

    base = taken(10, 1)
    # One after the other: 1000 and 500 ns of computation, two messages, at least of their own 1258 bytes.
    assert taken(10, 1, 3.0) - base == 3_000_000
    assert taken(10, 5) - base == 8_000_000
    assert (
        trace.replay("two.goal", twin="nothing", network="star:rate=10Gbit/s", unit="ps").seconds.value
        < base / 1e12
    )
    assert base - 3_500_000 == 10 * (taken(100, 1) - 3_500_000) >= 1258 * 800


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            "num_ranks 2",
            "ranks 2",
            "line 1: 'ranks 2' is not allowed here; allowed: num_ranks from 1 to 65536",
        ),
        (
            "to 1 tag 7",
            "to 2 tag 7",
            "line 5: 'l2: send 1250b to 2 tag 7' is not allowed here; allowed: ranks",
        ),
        (
            "l2 requires l1\nl3: recv",
            "l2 requires l9\nl3: recv",
            "an operation above the one that requires it",
        ),
        ("cpu 0\n", "cpu 1\n", "cpu 0 and nic 0"),
        ("calc 1000", "compute 1000", "line 4: 'l1: compute 1000' is not allowed here; allowed: send, recv,"),
        ("l3 irequires l1\n}", "", "ends early"),
    ],
)
def test_a_schedule_that_is_wrong_is_rejected_at_its_line(before: str, after: str, words: str) -> None:
    assert before in GOAL
    Path("wrong.goal").write_text(GOAL.replace(before, after, 1))
    done = wiretwin("replay", "wrong.goal", *NOTHING)
    assert (done.code, words in done.err) == (2, True), done.err


def test_a_schedule_that_never_ends_is_said() -> None:
    Path("stuck.goal").write_text(GOAL.replace("send 8b to 0 tag 8", "send 8b to 0 tag 9"))
    done = wiretwin("replay", "stuck.goal", *NOTHING)
    assert done.code == 4, done.err
    assert re.search(r"deadlock: 1 of 2 ranks.*rank 0 in a wait waits: receive", done.err, re.DOTALL), (
        done.err
    )
