"""Large messages of a rank that is measured alone: not stored, but read by another core.

A real library moves large messages without asking the program's allocator for memory. Were the
simulator to do so, the allocator would change its ways (glibc moves its threshold for mapped blocks
with every block freed) and with them the page faults of the program, which are a large part of what
computation on fresh arrays costs. A rank that runs alone sends to nobody, so its large messages are
not stored at all: a stand-in of their length goes the way of the message.

But in a real run the receiver, on its own core, reads the message, and memory that another core has
read costs more to write again: programs do write again what they have sent. So a thread on another
core, where there is one, reads what is sent. It is no thread of Python: the interpreter's own memory
would go to the other core with it, and be missed in the stretch that follows.

A message received into such memory meets the same lines. So what was read is remembered for a while, and
`wiretwin.mpi.touch` asks for it.
"""

from __future__ import annotations

import mmap
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from wiretwin._core import Reader

Bytes = npt.NDArray[np.uint8]

#: Messages below this are ordinary bytes: the allocator serves them from its small bins.
LEAST = 1 << 14
#: How many pieces of memory are remembered that the other core has read.
_REMEMBERED = 64


class _State:
    active = False
    reader: Reader | None = None
    zeros: Any = None
    size = 0
    read: ClassVar[dict[int, int]] = {}
    """Memory that the other core has read and nothing was received into since: its end, by its start."""


def activate(reader_cpu: int | None) -> None:
    """From now on, large messages that are sent are read on `reader_cpu`, if one is given, and not kept."""
    _State.active = True
    if reader_cpu is not None:
        _State.reader = Reader(reader_cpu)


def packed(data: Bytes, *, sent: bool = True) -> bytes:
    """Return a copy of `data`, or its stand-in.

    Parameters
    ----------
    data
        What is to be copied.
    sent
        Whether another rank reads it; what a rank gives to itself is kept, outside the allocator.
    """
    if not _State.active or data.size < LEAST:
        return data.tobytes()
    if not sent:
        view = memory(data.size)
        view[:] = data
        return cast(bytes, view.data)
    if _State.reader is not None:
        whole = np.ascontiguousarray(data)
        _State.reader.read(whole)
        _remember(whole)
    if _State.size < data.size:
        _State.zeros = memoryview(mmap.mmap(-1, data.size)).toreadonly()
        _State.size = data.size
    return cast(bytes, _State.zeros[: data.size])


def _remember(memory: Bytes) -> None:
    start = memory.ctypes.data
    _State.read.pop(start, None)
    _State.read[start] = start + memory.size
    if len(_State.read) > _REMEMBERED:
        del _State.read[next(iter(_State.read))]


def was_read(memory: Bytes) -> bool:
    """Return whether another core has read of `memory` since it was last asked for; forgets it then."""
    first = memory.ctypes.data
    last = first + memory.size
    found = [start for start, end in _State.read.items() if start < last and end > first]
    for start in found:
        del _State.read[start]
    return bool(found)


def is_stand_in(value: object) -> bool:
    """Return whether `value` only has the length of a message."""
    return isinstance(value, memoryview) and value.readonly


def memory(nbytes: int) -> Bytes:
    """Return writable zeroed bytes outside the allocator, at least one; freed with the last view."""
    region: Any = mmap.mmap(-1, max(1, nbytes))
    return np.frombuffer(region, np.uint8, count=nbytes)
