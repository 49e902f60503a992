"""What a stretch of no computation measures: the clock's own cost, and the way into a call and back."""

from __future__ import annotations

import statistics
from typing import Any

from .comm import COMM_WORLD
from .constants import PROC_NULL
from .rank import OwnWork, Rank, Sites, current

_CALLS = 600
_WARM = 200
_FOUND: list[int] = []


class _Recorder:
    """A world in which nothing happens, and a source that notes what it is told."""

    placement = (0,)
    apart = False
    size = 1
    away = None
    bias_ns = 0
    own = OwnWork()

    def __init__(self) -> None:
        self.sites = Sites()
        self.source = self
        self.world = self
        self.measured_ps: list[int] = []

    def post(self, rank: int, op: tuple[Any, ...]) -> int:
        """Do nothing."""
        return 0

    def enter(self, rank: int, ps: int, name: str, site: int) -> None:
        """Do nothing."""

    def leave(self, rank: int) -> None:
        """Do nothing."""

    def exchange(self, *asked: Any) -> tuple[int, int]:
        """Do nothing."""
        return 0, 0

    def give_way(self) -> Any:
        """Do nothing."""

    def charge(self, rank: int, call: int, digest: int, site: tuple[str, int], measured_ps: int) -> int:
        """Note what was measured."""
        self.measured_ps.append(measured_ps)
        return 0


def clock_bias_ns() -> int:
    """Return the median of what successive sends to PROC_NULL measure between them, in nanoseconds.

    It is found once in a process. Every measured stretch is shortened by it; a live run has the same
    way into a call and back as part of the call.
    """
    if not _FOUND:
        recorder = _Recorder()
        before = getattr(current, "rank", None)
        context, COMM_WORLD._context = COMM_WORLD._context, 0
        current.rank = Rank(0, recorder)  # type: ignore[arg-type]
        send = COMM_WORLD.Send
        try:
            for _ in range(_CALLS):
                send(None, PROC_NULL)
            # Nearly every program begins with these; here they are Python, which is slow at first.
            for _ in range(_WARM):
                COMM_WORLD.Get_size()
                COMM_WORLD.Get_rank()
        finally:
            COMM_WORLD._context = context
            if before is None:
                del current.rank
            else:
                current.rank = before
        _FOUND.append(int(statistics.median(recorder.measured_ps[_WARM:])) // 1000)
    return _FOUND[0]
