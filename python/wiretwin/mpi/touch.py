"""What the first touch of received memory costs.

A real library writes a message into the program's buffer; where the buffer's pages have never been
touched, each costs a page fault, and for large messages into fresh arrays that is more than the
copy itself. The simulator stores messages outside the program's time, so it counts the faults of
storing and charges them at what a fault costs on this host. The copy is the twin's.
"""

from __future__ import annotations

import mmap
import resource
import statistics
from time import thread_time_ns

import numpy as np

#: Shorter messages are not looked at, in bytes: counting would cost more than it finds.
LEAST = 1 << 14

_PAGES = 512
_ROUNDS = 7
_FOUND: list[int] = []


def faults() -> int:
    """Return the page faults of this thread so far that needed no input from a device."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def fault_ps() -> int:
    """Return what one page fault costs on this host, in picoseconds: the median of a few rounds.

    A round writes one byte to each page of a fresh mapping, and again: the difference, by the
    faults that the first writing took.
    """
    if not _FOUND:
        costs = []
        for _ in range(_ROUNDS):
            with mmap.mmap(-1, _PAGES * mmap.PAGESIZE) as region:
                pages = np.frombuffer(region, np.uint8)[:: mmap.PAGESIZE]
                before, begin = faults(), thread_time_ns()
                pages[:] = 1
                middle, after = thread_time_ns(), faults()
                pages[:] = 2
                end = thread_time_ns()
                del pages
            if after > before:
                costs.append(1000 * max(0, (middle - begin) - (end - middle)) // (after - before))
        _FOUND.append(int(statistics.median(costs)) if costs else 0)
    return _FOUND[0]
