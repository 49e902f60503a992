"""What a simulated run was doing when its time was over, in words.

An alarm comes a little before the limit that the parent process enforces. It interrupts the program
wherever it is, as long as the interpreter gets to run now and then; where it does not (inside a long call of
a library) or where the program takes the alarm for itself, the parent ends the run without these words.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .rank import current

if TYPE_CHECKING:
    from .runtime import Runtime

_exit = os._exit  # while a program runs, `os._exit` is another function, which ends one rank
STATUS = 124
"""The exit status of a process that ended for this reason."""
_RECENT = 1000
"""How many of a rank's last calls have to be at the same line for the message to say so."""
_LONG_S = 0.1
"""A rank that has not called MPI for this long is said to compute, in seconds of its thread's CPU time."""


@contextlib.contextmanager
def watched(runtime: Runtime, ends_s: float | None) -> Iterator[None]:
    """End the process with words about the run, should it still go on at `ends_s` of the monotonic clock."""
    if ends_s is None:
        yield
        return

    def over(_: int, frame: types.FrameType | None) -> None:
        os.write(2, words(runtime, frame).encode())
        _exit(STATUS)

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, ends_s - time.monotonic()))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def words(runtime: Runtime, frame: types.FrameType | None) -> str:
    """Say where the rank is whose turn it is, and what calls it has made; `frame` is the innermost one."""
    calls = sum(len(rank.durations_ps) for rank in runtime.ranks)
    rank = getattr(current, "rank", None)
    if rank is None:
        return f"{calls} calls of MPI were made until then"
    recent = rank.call_sites[-_RECENT:]
    computed_s = (time.thread_time_ns() - rank.left_ns) / 1e9
    if computed_s < _LONG_S and len(recent) == _RECENT and len(set(recent)) == 1:
        return (
            f"{calls} calls of MPI were made until then, {len(rank.durations_ps)} of them by rank "
            f"{rank.index}, the last {_RECENT} all {rank.inside} at {runtime.sites.text(recent[0])}"
        )
    said = (
        f"rank {rank.index} was at {runtime.sites.text(runtime.sites.find(frame))}, after "
        f"{len(rank.durations_ps)} calls of MPI ({calls} by all ranks)"
    )
    return f"{said}, and had computed for {computed_s:.1f} s" if computed_s >= _LONG_S else said
