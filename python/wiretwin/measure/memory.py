"""Memory of the messages that are measured: in ordinary pages, with known bytes."""

from __future__ import annotations

import contextlib
import mmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["fill", "ordinary"]

MAPPED_FROM = 1 << 17
"""Where glibc, too, begins to map memory for a block of its own."""


def ordinary(size: int) -> NDArray[np.uint8]:
    """Return zeroed memory in pages of the ordinary size, whatever was allocated before.

    NumPy asks for huge pages from 4 MiB on, and smaller arrays may come to lie in what it leaves behind; a
    library that has the kernel copy between processes takes half as long there. A curve over sizes must not
    bend where luck or NumPy changes the pages. Small arrays are left to the allocator's bins.
    """
    import numpy as np

    if size < MAPPED_FROM:
        return np.zeros(size, dtype=np.uint8)
    region = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without huge pages has nothing to refuse
            region.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(region, dtype=np.uint8, count=size)


def fill(array: NDArray[np.uint8]) -> None:
    """Write bytes that depend on their place and on how many they are."""
    import numpy as np

    size = len(array)
    turn = (np.arange(256, dtype=np.uint32) * 167 + 13 + size).astype(np.uint8)
    whole = size - size % 256
    array[:whole].reshape(-1, 256)[:] = turn
    array[whole:] = turn[: size - whole]
