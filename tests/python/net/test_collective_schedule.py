"""Schedules of collectives from Python."""

from __future__ import annotations

from typing import Any

import pytest

from wiretwin._core import schedule, schedule_layout


def test_a_broadcast_is_a_binomial_tree() -> None:
    assert schedule("bcast", "auto", 0, 4, 0, 10) == [[("send", 2, 0, 10)], [("send", 1, 0, 10)]]
    assert schedule("bcast", "binomial", 3, 4, 0, 10) == [[("recv", 2, 0, 10)]]


def test_a_reduction_receives_and_then_combines() -> None:
    assert schedule("allreduce", "recursive_doubling", 0, 2, 0, 8) == [
        [("send", 1, 0, 8), ("recv", 1, 0, 8), ("reduce", 1, 0, 8)]
    ]
    kinds = {step[0] for part in schedule("scan", "auto", 1, 2, 0, 8) for step in part}
    assert kinds == {"send", "recv", "reduce", "copy"}


@pytest.mark.parametrize("collective", ["bcast", "reduce", "allreduce", "gather", "scatter", "allgather"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_what_is_sent_is_received(collective: str, size: int) -> None:
    for nbytes in (8, 4096, 1 << 20):
        sent: list[tuple[int, int, int]] = []
        received: list[tuple[int, int, int]] = []
        for rank in range(size):
            for steps in schedule(collective, "auto", rank, size, size - 1, nbytes):
                sent += [(rank, peer, n) for kind, peer, _, n in steps if kind == "send"]
                received += [(peer, rank, n) for kind, peer, _, n in steps if kind == "recv"]
        assert sorted(sent) == sorted(received)


def test_the_layout_names_the_algorithm_and_the_places() -> None:
    assert schedule_layout("alltoall", "auto", 1, 8, 0, 256) == {
        "algorithm": "brucks",
        "input": (0, 2048),
        "output": (2048, 2048),
        "workspace_bytes": 5 * 2048,
    }
    uneven = schedule_layout("allgather", "ring", 1, 3, counts=[4, 0, 6])
    assert uneven["output"] == (0, 10)
    assert uneven["input"] == (4, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("swap", "auto", 0, 2), 'no collective "swap"; allowed: bcast, reduce'),
        (("bcast", "ring", 0, 2), 'no algorithm "ring" for this call; allowed: auto, binomial'),
        (("bcast", "quick", 0, 2), 'no algorithm "quick"; allowed: auto, binomial'),
        (("bcast", "auto", 2, 2), "rank is 2; allowed: 0 to 1"),
        (("bcast", "auto", 0, 2, 5), "root is 5; allowed: 0 to 1"),
    ],
)
def test_a_wrong_call_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        schedule(*arguments)
