"""What the state of received memory costs: pages to be touched first, lines that another core holds.

A real library writes a message into the program's buffer; where the buffer's pages have never been
touched, the kernel maps and clears them on the way, and for large messages into fresh arrays that
takes longer than the copy itself. The simulator stores messages outside the program's time; so it
touches the pages first, and charges what that takes. The copy is the twin's.

Memory whose pages are all there costs nothing more than the copy, unless the rank has sent it: then the core
of the receiver holds its lines too (see `wiretwin.mpi.outside`), and has to give them up. A program that sums
around a ring receives into what it has sent before; the twin's copy goes to memory that was not.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from time import thread_time_ns

import numpy as np
import numpy.typing as npt

from . import outside

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


def before_copy_ns(memory: npt.NDArray[np.uint8]) -> int:
    """Bring `memory` into the state that a copy of the twin finds, its content lost; return the price in ns.

    Every page is touched, or all is overwritten, twice: what the second time takes is the walk, and is
    not counted. The filling is the C library's, which takes lines over as a large copy does: all at once;
    a loop that reads what it writes would wait for one after the other, ten times as long.
    """
    if not _present(memory):
        return _second_time_less(lambda: memory[::_PAGE].fill(0))
    return _second_time_less(lambda: memory.fill(0)) if outside.was_read(memory) else 0


def _second_time_less(write: Callable[[], None]) -> int:
    begin = thread_time_ns()
    write()
    middle = thread_time_ns()
    write()
    end = thread_time_ns()
    return max(0, (middle - begin) - (end - middle))
