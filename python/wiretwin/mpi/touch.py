"""What the first touch of received memory costs.

A real library writes a message into the program's buffer; where the buffer's pages have never been
touched, the kernel maps and clears them on the way, and for large messages into fresh arrays that
takes longer than the copy itself. The simulator stores messages outside the program's time; so it
touches the pages first, and charges what that takes. The copy is the twin's.
"""

from __future__ import annotations

import mmap
from time import thread_time_ns

import numpy as np
import numpy.typing as npt

#: Shorter messages are not looked at, in bytes: the clock would cost more than it finds.
LEAST = 1 << 14


def first_touch_ns(memory: npt.NDArray[np.uint8]) -> int:
    """Touch every page of `memory`, its content unchanged; return what the first touch took, in ns.

    The pages are touched twice, and what the second time takes is not counted: it is the walk.
    """
    pages = memory[:: mmap.PAGESIZE]
    begin = thread_time_ns()
    np.add(pages, 0, out=pages)
    middle = thread_time_ns()
    np.add(pages, 0, out=pages)
    end = thread_time_ns()
    return max(0, (middle - begin) - (end - middle))
