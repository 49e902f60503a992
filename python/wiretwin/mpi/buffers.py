"""Buffer specifications as mpi4py takes them: `data`, `[data, type]`, `[data, counts, displs, type]`.

The rules and messages follow mpi4py 4.1, `msgbuffer.pxi`; the code is our own.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import outside, touch
from .constants import PROC_NULL
from .datatype import BYTE, ByteArray, Datatype, lookup
from .failure import fail
from .rank import here


class BottomType(int):
    """Type of `MPI.BOTTOM`: addresses in the datatype are absolute."""

    def __repr__(self) -> str:
        return "BOTTOM"

    __str__ = __repr__


class InPlaceType(int):
    """Type of `MPI.IN_PLACE`."""

    def __repr__(self) -> str:
        return "IN_PLACE"

    __str__ = __repr__


BOTTOM = BottomType(0)
IN_PLACE = InPlaceType(-1)

_EMPTY: ByteArray = np.empty(0, np.uint8)
_DTYPES: dict[np.dtype[Any], Datatype] = {}
"""Those that have been met."""
_CASTABLE = frozenset(np.dtype(code) for code in "bBhHiIlLqQfd?")
"""Those whose memory Python shows as bytes without numpy."""


class Buffer:
    """`count` elements of a datatype from a byte offset of some memory."""

    __slots__ = ("absolute", "count", "datatype", "offset", "raw")

    def __init__(self, raw: ByteArray, offset: int, count: int, datatype: Datatype) -> None:
        self.raw = raw
        self.offset = offset
        self.count = count
        self.datatype = datatype
        self.absolute = False

    @property
    def nbytes(self) -> int:
        """The bytes of data."""
        return self.count * self.datatype._size

    def pack(self, *, sent: bool = True) -> bytes:
        """Return the data, one element after the other; `sent` unless the rank keeps it for itself."""
        if self.absolute:
            extent = self.datatype.extent
            return b"".join(
                ctypes.string_at(start + k * extent, length)
                for k in range(self.count)
                for start, length in self.datatype._blocks
            )
        raw, datatype = self.raw, self.datatype
        if datatype._contiguous and raw.size == self.count * datatype._size < outside.LEAST:
            return raw.tobytes()
        return datatype._pack(raw, self.offset, self.count, sent)

    def unpack(self, data: bytes) -> None:
        """Store packed data, which may be shorter than the buffer; charge for the memory's state."""
        if len(data) < touch.LEAST:
            self._store(data)
            return
        end = self.offset + len(data)
        contiguous = not self.absolute and self.datatype._contiguous and end <= self.raw.size
        here().touch(touch.before_copy_ns(self.raw[self.offset : end]) if contiguous else 0)
        self._store(data)

    def copy_own(self, data: bytes) -> None:
        """Store what the rank sends to itself: the copy is its own work."""
        if len(data) < touch.LEAST:
            self._store(data)
        else:
            here().work("copy", lambda: self._store(data))

    def _store(self, data: bytes) -> None:
        if self.absolute:
            at = 0
            for k in range(self.count):
                for start, length in self.datatype._blocks:
                    piece = data[at : at + length]
                    ctypes.memmove(start + k * self.datatype.extent, piece, len(piece))
                    at += length
            return
        if self.datatype._contiguous and not self.offset and len(data) == self.raw.size:
            memoryview(self.raw)[:] = data  # type: ignore[arg-type]
            return
        self.datatype._unpack(self.raw, self.offset, data)

    def part(self, index: int, count: int) -> Buffer:
        """Return `count` elements from element `index`."""
        return Buffer(self.raw, self.offset + index * self.datatype.extent, count, self.datatype)


class Plain:
    """The memory of a whole array of numbers that is small: what most calls receive into."""

    __slots__ = ("nbytes", "view")

    def __init__(self, array: Any) -> None:
        self.nbytes = array.nbytes
        self.view = memoryview(array).cast("B")

    def unpack(self, data: bytes) -> None:
        """Store packed data, which may be shorter than the memory."""
        self.view[: len(data)] = data


NOTHING = Buffer(_EMPTY, 0, 0, BYTE)
"""What a call to PROC_NULL sends and receives."""


def raw_bytes(data: Any, writable: bool) -> tuple[ByteArray, Datatype | None]:
    """Return the memory of `data` as bytes, and the datatype of its elements if it has one.

    Raises
    ------
    BufferError
        When the memory is not contiguous, or read only where it must be written.
    TypeError
        When `data` is no buffer.
    """
    if data is None:
        return _EMPTY, BYTE
    if isinstance(data, np.ndarray):
        flags = data.flags
        if not flags.c_contiguous:
            if not flags.f_contiguous:
                raise BufferError("ndarray is not contiguous")
            data = data.T
            flags = data.flags
        if writable and not flags.writeable:
            raise BufferError("Object is not writable.")
        dtype = data.dtype
        raw = np.frombuffer(data, np.uint8) if data.size else _EMPTY
        datatype = _DTYPES.get(dtype)
        if datatype is None:
            datatype = _from_dtype(dtype)
            if datatype is not None:
                _DTYPES[dtype] = datatype
        return raw, datatype
    view = memoryview(data)
    if writable and view.readonly:
        raise BufferError("Object is not writable.")
    if not view.contiguous:
        raise BufferError("buffer is not contiguous")
    raw = np.frombuffer(view, np.uint8) if view.nbytes else _EMPTY
    form = view.format or "B"
    form = form[1:] if form[0] in "@<=" else form
    return raw, _or_none(form)


def _from_dtype(dtype: np.dtype[Any]) -> Datatype | None:
    if dtype.byteorder == ">":
        raise BufferError(f"format string {dtype.str!r} with non-native byte order")
    return _or_none(dtype.char)


def _or_none(code: str) -> Datatype | None:
    try:
        return lookup(code)
    except KeyError:
        return None


def as_datatype(datatype: Any) -> Datatype:
    """Return a datatype from itself or from its type string."""
    return datatype if isinstance(datatype, Datatype) else lookup(datatype)


def _basic(data: Any, datatype: Any, writable: bool) -> tuple[ByteArray, Datatype, bool]:
    if data is BOTTOM or (data is None and datatype is not None):
        return _EMPTY, as_datatype(datatype), True
    raw, own = raw_bytes(data, writable)
    if datatype is not None:
        return raw, as_datatype(datatype), False
    if own is None:
        form = memoryview(data).format
        raise KeyError(f"cannot map {form!r} to MPI datatype")
    return raw, own, False


def is_buffer(message: Any) -> bool:
    """Tell whether an object gives access to its memory."""
    if isinstance(message, (np.ndarray, bytes, bytearray, memoryview)):
        return True
    if isinstance(message, (list, tuple)):
        return False
    try:
        memoryview(message)
    except TypeError:
        return False
    except BufferError:
        return True
    return True


def simple(message: Any, writable: bool, peer: int, blocks: int = 1) -> Buffer:
    """Resolve a message of one block, or of `blocks` equal blocks.

    Raises
    ------
    ValueError, TypeError, KeyError, BufferError
        As mpi4py, with its words.
    """
    if peer == PROC_NULL:
        return NOTHING
    if type(message) is np.ndarray and blocks == 1:
        # What most calls are given: a whole array of numbers. All that follows would find the same.
        known, flags = _DTYPES.get(message.dtype), message.flags
        if known is not None and flags.c_contiguous and (flags.writeable or not writable):
            raw = np.frombuffer(message, np.uint8) if message.size else _EMPTY
            return Buffer(raw, 0, message.size, known)
    o_count: Any = None
    o_displ: Any = None
    o_type: Any = None
    if isinstance(message, (list, tuple)):
        if len(message) == 2:
            data, o_count = message
            if isinstance(o_count, (Datatype, str)):
                o_count, o_type = None, o_count
            elif isinstance(o_count, (tuple, list)):
                o_count, o_displ = o_count
        elif len(message) == 3:
            data, o_count, o_type = message
            if isinstance(o_count, (tuple, list)):
                o_count, o_displ = o_count
        elif len(message) == 4:
            data, o_count, o_displ, o_type = message
        else:
            raise ValueError("message: expecting 2 to 4 items")
    elif is_buffer(message):
        data = message
    else:
        raise TypeError("message: expecting buffer or list/tuple")
    raw, datatype, absolute = _basic(data, o_type, writable)
    lower, extent = datatype.Get_extent()
    length = raw.size
    offset = 0
    if o_displ is not None:
        displ = operator.index(o_displ)
        if displ < 0:
            raise ValueError(f"message: negative displacement {displ}")
        if displ > 0:
            if not datatype:
                raise ValueError("message: cannot handle displacement, datatype is null")
            if extent <= 0:
                raise ValueError(
                    f"message: cannot handle displacement, datatype extent {extent} "
                    f"(lb:{lower}, ub:{lower + extent})"
                )
            if displ * extent > length:
                raise ValueError(
                    f"message: displacement {displ} out of bounds, number of datatype entries "
                    f"{length // extent}"
                )
            offset = displ * extent
            length -= offset
    if o_count is not None:
        count = operator.index(o_count)
        if count < 0:
            raise ValueError(f"message: negative count {count}")
        if count > 0 and data is None:
            raise ValueError(f"message: buffer is None but count is {count}")
    elif length > 0:
        entries = _entries(datatype, length)
        if blocks < 2:
            count = entries
        else:
            if entries % blocks:
                raise ValueError(
                    f"message: cannot infer count, number of entries {entries} is not a multiple of "
                    f"required number of blocks {blocks}"
                )
            count = entries // blocks
    else:
        count = 0
    if not datatype._committed:
        _check_type(datatype)
    made = Buffer(raw, offset, count, datatype)
    made.absolute = absolute
    return made


def outgoing(message: Any, peer: int, *, writable: bool = False) -> bytes:
    """Return the data of a message of one block to `peer`, which `simple` would resolve and pack.

    Raises
    ------
    ValueError, TypeError, KeyError, BufferError
        As `simple`.
    """
    if type(message) is np.ndarray and message.dtype in _DTYPES and message.nbytes < outside.LEAST:
        flags = message.flags
        if flags.carray if writable else flags.c_contiguous:
            return message.tobytes()
    return simple(message, writable, peer).pack()


def incoming(message: Any, peer: int) -> Buffer | Plain:
    """Resolve what is received from `peer` into, as `simple` does.

    Raises
    ------
    ValueError, TypeError, KeyError, BufferError
        As `simple`.
    """
    if (
        type(message) is np.ndarray
        and peer != PROC_NULL
        and message.dtype in _CASTABLE
        and message.flags.carray
        and 0 < message.nbytes < touch.LEAST
    ):
        return Plain(message)
    return simple(message, True, peer)


def _entries(datatype: Datatype, length: int) -> int:
    lower, extent = datatype.Get_extent()
    if not datatype:
        raise ValueError("message: cannot infer count, datatype is null")
    if extent <= 0:
        raise ValueError(
            f"message: cannot infer count, datatype extent {extent} (lb:{lower}, ub:{lower + extent})"
        )
    if length % extent:
        raise ValueError(
            f"message: cannot infer count, buffer length {length} is not a multiple of datatype extent "
            f"{extent} (lb:{lower}, ub:{lower + extent})"
        )
    return length // extent


def _check_type(datatype: Datatype) -> None:
    fail("ERR_TYPE", "datatype has not been committed" if datatype else "null datatype")


class Vector:
    """One buffer per rank of a communicator, in one piece of memory."""

    __slots__ = ("counts", "datatype", "displacements", "raw")

    def __init__(
        self, raw: ByteArray, counts: list[int], displacements: list[int], datatype: Datatype
    ) -> None:
        self.raw = raw
        self.counts = counts
        self.displacements = displacements
        self.datatype = datatype

    def part(self, rank: int) -> Buffer:
        """Return the buffer of one rank."""
        offset = self.displacements[rank] * self.datatype.extent
        return Buffer(self.raw, offset, self.counts[rank], self.datatype)


def vector(message: Any, writable: bool, blocks: int) -> Vector:
    """Resolve a message with a count and a displacement for each of `blocks` ranks.

    Raises
    ------
    ValueError, TypeError, KeyError, BufferError
        As mpi4py, with its words.
    """
    o_counts: Any = None
    o_displs: Any = None
    o_type: Any = None
    if isinstance(message, (list, tuple)):
        if len(message) == 2:
            data, o_counts = message
            if isinstance(o_counts, (Datatype, str)):
                o_counts, o_type = None, o_counts
            elif isinstance(o_counts, tuple):
                o_counts, o_displs = o_counts
        elif len(message) == 3:
            data, o_counts, o_type = message
            if isinstance(o_counts, tuple):
                o_counts, o_displs = o_counts
        elif len(message) == 4:
            data, o_counts, o_displs, o_type = message
        else:
            raise ValueError("message: expecting 2 to 4 items")
    elif is_buffer(message):
        data = message
    else:
        raise TypeError("message: expecting buffer or list/tuple")
    raw, datatype, absolute = _basic(data, o_type, writable)
    if absolute:
        fail("ERR_BUFFER", "BOTTOM has no place in a call with counts and displacements")
    if not datatype._committed:
        _check_type(datatype)
    if o_counts is None:
        entries = _entries(datatype, raw.size) if raw.size else 0
        counts = [entries // blocks + (entries % blocks > i) for i in range(blocks)]
    else:
        counts = _integers(o_counts, blocks)
    if o_displs is None:
        displacements, at = [], 0
        for count in counts:
            displacements.append(at)
            at += count
    elif _is_integer(o_displs):
        displacements = [operator.index(o_displs) * i for i in range(blocks)]
    else:
        displacements = _integers(o_displs, blocks)
    for count in counts:
        if count < 0:
            fail("ERR_COUNT", f"negative count, value is {count}")
    return Vector(raw, counts, displacements, datatype)


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer))


def _integers(values: Any, expected: int) -> list[int]:
    if _is_integer(values):
        return [operator.index(values)] * expected
    if isinstance(values, np.ndarray):
        values = values.reshape(-1)
    made = [operator.index(value) for value in _sequence(values)]
    if len(made) != expected:
        raise ValueError(f"expecting {expected} items, got {len(made)}")
    return made


def _sequence(values: Any) -> Sequence[Any]:
    return values if isinstance(values, (list, tuple)) else list(values)
