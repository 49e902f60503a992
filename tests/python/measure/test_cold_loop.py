"""The loop of calls behind computation, on a clock of its own."""

from __future__ import annotations

from typing import Any

import pytest

from wiretwin.measure import loops_mpi4py
from wiretwin.measure.loops_mpi4py import Cold

PIECE, MESSAGE, COLD_PIECE, COLD_MESSAGE = 10_000, 2000, 3000, 4000


class Clock:
    """A rank whose work and messages take so long, and longer behind one of the other kind."""

    def __init__(self) -> None:
        self.ns, self.behind, self.did = 0, "nothing", ""

    def piece(self, name: str) -> None:
        self.ns += PIECE + (COLD_PIECE if self.behind == "message" else 0)
        self.behind, self.did = "work", self.did + name

    def message(self, *_: Any, **__: Any) -> None:
        self.ns += MESSAGE + (COLD_MESSAGE if self.behind == "work" else 0)
        self.behind, self.did = "message", self.did + "-"

    Send = Recv = message


@pytest.mark.parametrize(("work_ns", "pieces"), [(20_000, 2), (80_000, 8), (0, 1)])
def test_what_both_take_more_for_following_each_other_is_told(
    work_ns: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    work = [lambda name=name: clock.piece(name) for name in "abcd"]
    monkeypatch.setattr(loops_mpi4py, "now", lambda: clock.ns)
    monkeypatch.setattr(loops_mpi4py, "pieces_of_work", lambda: work)
    loop = Cold(clock, {"messages": 1, "delay_ns": work_ns, "bytes": 8})  # type: ignore[arg-type]
    assert loop.pieces() == pieces
    clock.did = ""
    assert loop.lead(2, 3) == [3 * (COLD_PIECE + COLD_MESSAGE)] * 2
    if pieces == 2:
        # To count the pieces; an order and an echo; and in the next iteration the next pieces are timed.
        assert clock.did.startswith("abcdabcd--ab----cdabcd--cd----abcdab")
