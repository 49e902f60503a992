"""The simulated world from Python: tuples in, tuples out, errors with names."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from wiretwin._core import World


def flat(ps: int) -> list[dict[str, int]]:
    return [{"from_bytes": 0, "base_ps": ps, "per_byte_fs": 0}]


LAYER = {
    "call_ps": 10,
    "overhead_send": flat(110),
    "overhead_recv": flat(60),
    "latency": flat(1000),
    "gap": flat(0),
    "rendezvous_from_bytes": 1000,
    "unexpected_copy": None,
}


def model(ranks: int, **changes: Any) -> str:
    node = {"cores": ranks, "idle": "spin", "quantum_ps": 4000}
    whole: dict[str, Any] = {
        "nodes": [node],
        "placement": [0] * ranks,
        "intra": LAYER,
        "inter": None,
        "link": None,
    }
    return json.dumps(whole | changes)


def test_a_message_crosses_with_its_cost_and_its_id() -> None:
    world = World(2, model(2))
    world.post(0, ("enter", "Send", 12))
    send = world.post(0, ("send", 0, 1, 5, 8, "standard"))
    world.post(0, ("wait", [send], "all"))
    world.post(1, ("enter", "Recv", 13))
    receive = world.post(1, ("recv", 0, -1, -1, 8))
    assert send != receive
    world.post(1, ("wait", [receive], "all"))
    assert world.step() == [(0, [(send, 0, 5, 8, send)])]
    world.post(0, ("finish",))
    assert world.step() == [(1, [(receive, 0, 5, 8, send)])]
    assert world.now_ps(1) == 110 + 1000 + 60
    world.post(1, ("finish",))
    assert world.step() == []
    assert world.blocked() == []
    assert world.counts() == (1, 1, 0)
    totals = world.totals()
    assert {key: value.tolist() for key, value in totals.items()} == {
        "compute_ps": [0, 0],
        "endpoint_ps": [110, 60],
        "wire_ps": [0, 1010],
        "waiting_ps": [0, 100],
    }


def test_the_timeline_is_columns_that_leave_no_gap() -> None:
    world = World(2, model(2))
    world.post(0, ("compute", 300))
    world.post(0, ("enter", "Ssend", 3))
    send = world.post(0, ("send", 0, 1, 5, 8, "synchronous"))
    world.post(0, ("wait", [send], "all"))
    receive = world.post(1, ("recv", 0, 0, 5, 8))
    world.post(1, ("wait", [receive], "all"))
    while world.step():
        pass
    timeline = world.timeline()
    assert timeline["start_ps"].dtype == np.uint64
    assert world.names() == ["", "Ssend"]
    for rank in range(2):
        mine = timeline["rank"] == rank
        start, end = timeline["start_ps"][mine], timeline["end_ps"][mine]
        assert start[0] == 0
        assert (start[1:] == end[:-1]).all()
        assert end[-1] == world.now_ps(rank)
    inside = timeline["name_index"] == 1
    assert set(timeline["site"][inside].tolist()) == {3}
    assert World(1, model(1), timeline=False).timeline()["rank"].size == 0


def test_a_deadlock_is_explained() -> None:
    world = World(2, model(2))
    for rank in range(2):
        world.post(rank, ("enter", "recv", 40 + rank))
        receive = world.post(rank, ("recv", 3, 1 - rank, -1, 8))
        world.post(rank, ("wait", [receive], "all"))
    assert world.step() == []
    assert world.blocked() == [
        (0, "receive of a message from rank 1 with any tag in context 3", "recv", 40),
        (1, "receive of a message from rank 0 with any tag in context 3", "recv", 41),
    ]
    assert world.blocked_since_ps() == [(0, 10), (1, 10)]


def test_probe_test_cancel_and_yield() -> None:
    world = World(2, model(2))
    world.post(1, ("probe_now", 0, -1, -1))
    assert world.step() == [(1, None)]
    receive = world.post(1, ("recv", 0, 0, 9, 8))
    world.post(1, ("wait", (receive,), "test"))
    assert world.step() == [(1, [])]
    world.post(1, ("cancel", receive))
    world.post(1, ("wait", [receive], "all"))
    assert world.step() == [(1, [(receive, -2, -2, 0, 0)])]
    world.post(1, ("compute", 77))
    world.post(1, ("yield",))
    assert world.step() == [(1, None)]
    assert world.now_ps(1) == 77
    send = world.post(0, ("send", 0, 1, 9, 3, "standard"))
    world.post(1, ("probe", 0, 0, -1))
    assert world.step() == [(1, (0, 9, 3, send))]


@pytest.mark.parametrize(
    ("op", "error", "message"),
    [
        (("jump",), ValueError, "no operation 'jump'|no operation \"jump\""),
        (("send", 0, 5, 0, 1, "standard"), ValueError, "the peer is rank 5: ranks are 0 to 1"),
        (("send", 0, 1, 0, -1, "standard"), ValueError, "nbytes is -1, which is out of range"),
        (("send", 0, 1, -3, 1, "standard"), ValueError, "tag is -3, which is out of range"),
        (("send", 0, 1, 0, 1, "quick"), ValueError, "allowed: standard, synchronous, ready, buffered"),
        (("send", 0, 1, 0, 1), TypeError, "5 fields given, 6 wanted"),
        (("recv", 0, -2, 0, 1), ValueError, "source is -2; allowed: -1 for any"),
        (("compute", 1.5), TypeError, "ps is 1.5; allowed: an integer"),
        (("wait", [7], "all"), ValueError, "request 7 does not exist"),
        (("wait", [], "most"), ValueError, "allowed: all, any, some, test"),
        ((3,), TypeError, "the operation is not a string"),
    ],
)
def test_a_wrong_operation_is_refused(op: Any, error: type[Exception], message: str) -> None:
    world = World(2, model(2))
    with pytest.raises(error, match=message):
        world.post(0, op)
    world.post(0, ("yield",))
    assert world.step() == [(0, None)]


def test_a_wrong_model_is_refused_by_key() -> None:
    with pytest.raises(ValueError, match=r"placement\[1\] is 4; allowed: 0"):
        World(2, model(2, placement=[0, 4]))
    for order, said in (
        ([1, 1], "rank 1 twice; allowed: each rank once"),
        ([0], "a list of 1; allowed: one rank number for each of 2 ranks"),
        ([0, 2], "2; allowed: an integer from 0 to 1"),
    ):
        with pytest.raises(ValueError, match=f"order.*{said}"):
            World(2, model(2, order=order))
    World(2, model(2, order=[1, 0]))
    with pytest.raises(ValueError, match="not JSON"):
        World(1, "{")
    with pytest.raises(ValueError, match="ranks is 0"):
        World(0, model(1))


def test_equal_runs_have_equal_digests() -> None:
    def run(size: int) -> str:
        world = World(2, model(2))
        send = world.post(0, ("send", 0, 1, 5, size, "standard"))
        receive = world.post(1, ("recv", 0, 0, 5, 4096))
        world.post(0, ("wait", [send], "all"))
        world.post(1, ("wait", [receive], "all"))
        while world.step():
            pass
        return world.digest()

    assert run(8) == run(8)
    assert run(8) != run(2000)
