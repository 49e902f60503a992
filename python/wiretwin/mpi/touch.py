"""What the first touch of received memory costs.

A real library writes a message into the program's buffer; where the buffer's pages have never been
touched, the kernel maps and clears them on the way, and for large messages into fresh arrays that
takes longer than the copy itself. The simulator stores messages outside the program's time; so it
touches the pages first, and charges what that takes. The copy is the twin's. Memory whose pages are all
there costs nothing, whatever its cache lines are like: these are the copy's business.
"""

from __future__ import annotations

import ctypes
import mmap
from time import thread_time_ns

import numpy as np
import numpy.typing as npt

#: Shorter messages are not looked at, in bytes: the clock would cost more than it finds.
LEAST = 1 << 14
_PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


def _present(memory: npt.NDArray[np.uint8]) -> bool:
    """Tell whether all pages of `memory` are mapped (mincore(2)); False if the kernel does not say."""
    start = memory.ctypes.data
    first = start - start % _PAGE
    pages = -(-(start + memory.size - first) // _PAGE)
    there = (ctypes.c_ubyte * pages)()
    failed = _libc.mincore(ctypes.c_void_p(first), ctypes.c_size_t(pages * _PAGE), there)
    return not failed and all(page & 1 for page in there)


def first_touch_ns(memory: npt.NDArray[np.uint8]) -> int:
    """Touch every page of `memory`, its content unchanged; return what the first touch took, in ns.

    The pages are touched twice, and what the second time takes is not counted: it is the walk.
    """
    if _present(memory):
        return 0
    pages = memory[::_PAGE]
    begin = thread_time_ns()
    np.add(pages, 0, out=pages)
    middle = thread_time_ns()
    np.add(pages, 0, out=pages)
    end = thread_time_ns()
    return max(0, (middle - begin) - (end - middle))
