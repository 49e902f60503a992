"""Time of a stretch in which the rank's own thread did not run, by what it was away for.

What lies between two calls is measured as CPU time of the thread that calls MPI, for time without a core is
the host's and not the program's. But a program may wait there, and then waits in a real run too: for a
process that it has started, for its other threads, for a disk, for a while. The kernel counts how long
a thread was ready to run and had no core (`/proc/thread-self/schedstat`); what else the clock on the wall
shows beyond the CPU time, the thread was blocked. What for follows from what has been counted meanwhile: the
CPU time of processes that have ended, that of other threads, blocks that were read or written.
"""

from __future__ import annotations

import contextlib
import os
import resource
from time import perf_counter_ns, process_time_ns, thread_time_ns

__all__ = ["KINDS", "UNKNOWN", "Away"]

UNKNOWN = "what cannot be told"
KINDS = ("processes that it started", "its other threads", "files", UNKNOWN)
"""What a rank was blocked for."""
_ASLEEP = KINDS[2:]
"""What needs no core of the host meanwhile."""
_LOOK_FROM_NS = 30_000
"""A shorter absence is an interrupt, or a look for whether to give way."""

_SHARE = 0.05
"""Of the time that a thread was blocked: others that computed for so long are what it waited for, on a busy
host as well; one that only looks on takes less."""


class Away:
    """Watches one thread, which makes it.

    Attributes
    ----------
    blocked_ns
        How long the thread was blocked inside stretches, by `KINDS`.
    asleep_ns
        How long of the last stretch nobody needed its core.
    """

    def __init__(self) -> None:
        self.blocked_ns = dict.fromkeys(KINDS, 0)
        self.asleep_ns = 0
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self._counts = self._counted()
        self._wall_ns = self._cpu_ns = self._others_ns = self._queued_ns = 0
        self.begin()

    def begin(self) -> None:
        """Begin a stretch."""
        # A thread of ours reads what is sent, inside the calls.
        self._others_ns = process_time_ns() - thread_time_ns()
        self._queued_ns = self._queued()
        self._wall_ns, self._cpu_ns = perf_counter_ns(), thread_time_ns()

    def took_ns(self) -> int:
        """Return how long the thread has been blocked since the stretch began, and note what for."""
        cpu_ns, wall_ns = thread_time_ns(), perf_counter_ns()
        self.asleep_ns = 0
        gap_ns = (wall_ns - self._wall_ns) - (cpu_ns - self._cpu_ns)
        if gap_ns < _LOOK_FROM_NS or self._file is None:
            return 0
        counts = self._counted()
        blocked_ns = gap_ns - (self._queued() - self._queued_ns)
        grown = [now > before for now, before in zip(counts, self._counts, strict=True)]
        others_ns = process_time_ns() - thread_time_ns() - self._others_ns
        grown.insert(1, others_ns > _SHARE * blocked_ns)
        self._counts = counts
        if blocked_ns < _LOOK_FROM_NS:
            return 0
        kind = next((kind for kind, more in zip(KINDS, grown, strict=False) if more), UNKNOWN)
        self.blocked_ns[kind] += blocked_ns
        if kind in _ASLEEP:
            self.asleep_ns = blocked_ns
        return blocked_ns

    def _queued(self) -> int:
        """How long the thread has been ready to run without a core, in nanoseconds."""
        if self._file is None:
            return 0
        try:
            return int(os.pread(self._file, 128, 0).split()[1])
        except (OSError, ValueError, IndexError):
            return 0

    def _counted(self) -> tuple[float, int]:
        """Return what processes that have ended took, in seconds; blocks read and written."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = resource.getrusage(resource.RUSAGE_THREAD)
        return ended.ru_utime + ended.ru_stime, own.ru_inblock + own.ru_oublock
