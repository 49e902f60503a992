"""Memory that the program's allocator never sees.

A real library moves large messages without asking the program's allocator for memory. Were the
simulator to do so, the allocator would change its ways (glibc moves its threshold for mapped blocks
with every block freed) and with them the page faults of the program, which are a large part of what
computation on fresh arrays costs. While a rank is measured alone, large packed messages therefore
live in mappings of their own.
"""

from __future__ import annotations

import mmap
from typing import Any, cast

import numpy as np
import numpy.typing as npt

#: Messages below this are ordinary bytes: the allocator serves them from its small bins.
LEAST = 1 << 16

_active = [False]


def activate() -> None:
    """From now on, keep large packed messages outside."""
    _active[0] = True


def packed(data: npt.NDArray[np.uint8]) -> bytes:
    """Return a copy of `data` as bytes, or as a view of bytes that live outside."""
    if not _active[0] or data.size < LEAST:
        return data.tobytes()
    view = memory(data.size)
    view[:] = data
    return cast(bytes, view.data)


def memory(nbytes: int) -> npt.NDArray[np.uint8]:
    """Return writable zeroed bytes outside the allocator, at least one; freed with the last view."""
    region: Any = mmap.mmap(-1, max(1, nbytes))
    return np.frombuffer(region, np.uint8, count=nbytes)
