"""Datatypes: a typemap as byte blocks, with packing and unpacking (MPI-4.1 chapter 5).

A type is a list of `(displacement, length)` byte blocks in the order of its typemap. Every
constructor is a repetition of an older type at given byte displacements, so one function builds all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import outside
from .constants import INTEGERS
from .failure import fail, refuse
from .names import refusing

ByteArray = npt.NDArray[np.uint8]

_ALIGNMENT_LIMIT = 16


@refusing
class Datatype:
    """`mpi4py.MPI.Datatype`: predefined and derived types."""

    __slots__ = (
        "_blocks",
        "_combiner",
        "_committed",
        "_contiguous",
        "_dtype",
        "_elements",
        "_index",
        "_lower",
        "_name",
        "_predefined",
        "_size",
        "_typechar",
        "_typestr",
        "_upper",
    )

    _blocks: tuple[tuple[int, int], ...]
    _combiner: int
    _committed: bool
    _contiguous: bool
    _dtype: np.dtype[Any] | None
    _elements: tuple[int, ...]
    _index: npt.NDArray[np.intp] | None
    _lower: int
    _name: str
    _predefined: bool
    _size: int
    _typechar: str
    _typestr: str
    _upper: int

    def __init__(self, datatype: Datatype | None = None) -> None:
        source = DATATYPE_NULL if datatype is None else datatype
        for slot in self.__slots__:
            setattr(self, slot, getattr(source, slot))

    @classmethod
    def _build(
        cls,
        blocks: Sequence[tuple[int, int]],
        lower: int,
        upper: int,
        dtype: np.dtype[Any] | None,
        elements: tuple[int, ...],
        combiner: str,
    ) -> Datatype:
        made = object.__new__(cls)
        made._blocks = tuple(_merge(blocks))
        made._lower = lower
        made._upper = upper
        made._dtype = dtype
        made._elements = elements
        made._combiner = INTEGERS["COMBINER_" + combiner]
        made._committed = False
        made._predefined = False
        made._name = ""
        made._typestr = made._typechar = "V"
        made._index = None
        made._size = size = sum(length for _, length in made._blocks)
        made._contiguous = lower == 0 and upper == size and (made._blocks == ((0, size),) or size == 0)
        return made

    @classmethod
    def _predefine(
        cls, name: str, dtype: np.dtype[Any], blocks: Sequence[tuple[int, int]], typestr: str, typechar: str
    ) -> Datatype:
        elements = tuple(length for _, length in blocks)
        made = cls._build(blocks, 0, dtype.itemsize, dtype, elements, "NAMED")
        made._name, made._typestr, made._typechar = name, typestr, typechar
        made._committed = made._predefined = True
        return made

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Datatype):
            return NotImplemented
        return self is other or (self._predefined and other._predefined and self._name == other._name)

    def __hash__(self) -> int:
        return hash(self._name) if self._predefined else id(self)

    def __bool__(self) -> bool:
        return self._name != "MPI_DATATYPE_NULL"

    def __reduce__(self) -> Any:
        if self._predefined:
            return (_by_name, (self._name,))
        return refuse("pickling a derived datatype", "send its description instead")

    # Sizes and extents.

    def Get_size(self) -> int:
        """Return the bytes of data in one element."""
        return self._size

    def Get_extent(self) -> tuple[int, int]:
        """Return lower bound and extent in bytes."""
        return self._lower, self._upper - self._lower

    def Get_true_extent(self) -> tuple[int, int]:
        """Return lower bound and extent of the data itself, in bytes."""
        if not self._blocks:
            return 0, 0
        low = min(start for start, _ in self._blocks)
        return low, max(start + length for start, length in self._blocks) - low

    size = property(Get_size)
    extent = property(lambda self: self.Get_extent()[1])
    lb = property(lambda self: self._lower)
    ub = property(lambda self: self._upper)
    true_lb = property(lambda self: self.Get_true_extent()[0])
    true_extent = property(lambda self: self.Get_true_extent()[1])
    true_ub = property(lambda self: sum(self.Get_true_extent()))
    combiner = property(lambda self: self._combiner)
    is_named = property(lambda self: self._combiner == INTEGERS["COMBINER_NAMED"])
    is_predefined = property(lambda self: self._predefined)
    typestr = property(lambda self: self._typestr if self._predefined else f"V{self.extent}")
    typechar = property(lambda self: self._typechar)

    # Constructors.

    def _repeat(self, parts: Sequence[tuple[int, int]], combiner: str) -> Datatype:
        """Place, for each `(displacement in bytes, length)`, `length` elements one after the other."""
        extent = self._upper - self._lower
        blocks: list[tuple[int, int]] = []
        marks: list[int] = []
        count = 0
        for displacement, length in parts:
            if length < 0:
                fail("ERR_ARG", f"block length is {length}, must be at least 0")
            if length == 0:
                continue
            count += length
            marks += [displacement + self._lower, displacement + (length - 1) * extent + self._upper]
            if self._contiguous:
                blocks.append((displacement, length * extent))
            else:
                for k in range(length):
                    shift = displacement + k * extent
                    blocks += [(start + shift, size) for start, size in self._blocks]
        lower, upper = (min(marks), max(marks)) if marks else (0, 0)
        return Datatype._build(blocks, lower, upper, self._dtype, self._elements * count, combiner)

    def Dup(self) -> Datatype:
        """Return a copy of this type."""
        made = self._repeat([(0, 1)], "DUP")
        made._lower, made._upper, made._committed = self._lower, self._upper, self._committed
        made._contiguous = self._contiguous
        return made

    Create_dup = Dup

    def Create_contiguous(self, count: int) -> Datatype:
        """Create `count` elements one after the other."""
        _at_least_zero("count", count)
        return self._repeat([(0, count)], "CONTIGUOUS")

    def Create_vector(self, count: int, blocklength: int, stride: int) -> Datatype:
        """Create `count` blocks, `stride` elements apart."""
        _at_least_zero("count", count)
        step = stride * (self._upper - self._lower)
        return self._repeat([(k * step, blocklength) for k in range(count)], "VECTOR")

    def Create_hvector(self, count: int, blocklength: int, stride: int) -> Datatype:
        """Create `count` blocks, `stride` bytes apart."""
        _at_least_zero("count", count)
        return self._repeat([(k * stride, blocklength) for k in range(count)], "HVECTOR")

    def Create_indexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Datatype:
        """Create blocks at displacements counted in elements."""
        extent = self._upper - self._lower
        pairs = _pairs(blocklengths, displacements)
        return self._repeat([(at * extent, length) for length, at in pairs], "INDEXED")

    def Create_hindexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Datatype:
        """Create blocks at displacements counted in bytes."""
        pairs = _pairs(blocklengths, displacements)
        return self._repeat([(at, length) for length, at in pairs], "HINDEXED")

    def Create_indexed_block(self, blocklength: int, displacements: Sequence[int]) -> Datatype:
        """Create blocks of one length at displacements counted in elements."""
        extent = self._upper - self._lower
        return self._repeat([(int(at) * extent, blocklength) for at in displacements], "INDEXED_BLOCK")

    def Create_hindexed_block(self, blocklength: int, displacements: Sequence[int]) -> Datatype:
        """Create blocks of one length at displacements counted in bytes."""
        return self._repeat([(int(at), blocklength) for at in displacements], "HINDEXED_BLOCK")

    @classmethod
    def Create_struct(
        cls, blocklengths: Sequence[int], displacements: Sequence[int], datatypes: Sequence[Datatype]
    ) -> Datatype:
        """Create blocks of different types at displacements counted in bytes."""
        if not len(blocklengths) == len(displacements) == len(datatypes):
            raise ValueError("blocklengths, displacements and datatypes differ in length")
        blocks: list[tuple[int, int]] = []
        elements: tuple[int, ...] = ()
        marks: list[int] = []
        align = 1
        dtypes: set[np.dtype[Any]] = set()
        for length, at, datatype in zip(blocklengths, displacements, datatypes, strict=True):
            part = datatype._repeat([(int(at), int(length))], "CONTIGUOUS")
            if length:
                marks += [part._lower, part._upper]
            blocks += part._blocks
            elements += part._elements
            if datatype._dtype is not None:
                dtypes.add(datatype._dtype)
            align = max([align, *(min(size, _ALIGNMENT_LIMIT) for size in part._elements)])
        lower, upper = (min(marks), max(marks)) if marks else (0, 0)
        upper += -(upper - lower) % align  # MPI-4.1 5.1.6: the extent is rounded up to the alignment
        dtype = dtypes.pop() if len(dtypes) == 1 else None
        return cls._build(blocks, lower, upper, dtype, elements, "STRUCT")

    def Create_subarray(
        self,
        sizes: Sequence[int],
        subsizes: Sequence[int],
        starts: Sequence[int],
        order: int = INTEGERS["ORDER_C"],
    ) -> Datatype:
        """Create a box inside an array of `sizes`."""
        if not len(sizes) == len(subsizes) == len(starts):
            raise ValueError("sizes, subsizes and starts differ in length")
        for axis, (size, sub, start) in enumerate(zip(sizes, subsizes, starts, strict=True)):
            if not 1 <= sub <= size or not 0 <= start <= size - sub:
                fail("ERR_ARG", f"axis {axis}: {sub} elements from {start} do not fit into {size}")
        axes = list(zip(sizes, subsizes, starts, strict=True))
        if order == INTEGERS["ORDER_F"]:
            axes.reverse()
        extent = self._upper - self._lower
        places = [0]
        for size, sub, start in axes[:-1]:
            places = [place * size + k for place in places for k in range(start, start + sub)]
        size, sub, start = axes[-1]
        made = self._repeat([((place * size + start) * extent, sub) for place in places], "SUBARRAY")
        total = extent
        for size, _, _ in axes:
            total *= size
        return made._resize(0, total)

    def Create_resized(self, lb: int, extent: int) -> Datatype:
        """Create a copy with another lower bound and extent, in bytes."""
        made = self._repeat([(0, 1)], "RESIZED")
        return made._resize(lb, extent)

    Resized = Create_resized

    def _resize(self, lower: int, extent: int) -> Datatype:
        self._lower, self._upper = lower, lower + extent
        size = self.Get_size()
        self._contiguous = lower == 0 and extent == size and self._blocks == ((0, size),)
        return self

    def Commit(self) -> Datatype:
        """Make the type ready for communication."""
        self._committed = True
        return self

    def Free(self) -> None:
        """Free the type: it becomes `DATATYPE_NULL`."""
        if self._predefined:
            fail("ERR_TYPE", f"{self._name} is predefined and cannot be freed")
        for slot in self.__slots__:
            setattr(self, slot, getattr(DATATYPE_NULL, slot))

    def free(self) -> None:
        """Free the type, as `Free`, unless it is predefined or null."""
        if not self._predefined:
            self.Free()

    def Get_name(self) -> str:
        """Return the name of the type."""
        return self._name

    def Set_name(self, name: str) -> None:
        """Name the type."""
        self._name = name

    name = property(Get_name, Set_name)

    def tocode(self) -> str:
        """Return the character of a predefined type, `d` for a double."""
        return str(self._typechar if self._predefined else self.typestr)

    @classmethod
    def fromcode(cls, code: str) -> Datatype:
        """Return the predefined type of a type string or character."""
        return lookup(code)

    def Pack_size(self, count: int, comm: Any) -> int:
        """Return an upper bound of the bytes that `count` packed elements take."""
        return count * self.Get_size()

    # Data.

    def _bytes_index(self) -> npt.NDArray[np.intp]:
        """Byte offsets of one element, in the order of the typemap."""
        if self._index is None:
            parts = [np.arange(start, start + length, dtype=np.intp) for start, length in self._blocks]
            self._index = np.concatenate(parts) if parts else np.empty(0, np.intp)
        return self._index

    def _places(self, raw: ByteArray, offset: int, count: int) -> npt.NDArray[np.intp]:
        index = self._bytes_index()
        starts = offset + np.arange(count, dtype=np.intp) * (self._upper - self._lower)
        places = (starts[:, None] + index[None, :]).reshape(-1)
        if places.size and (places.min() < 0 or places.max() >= raw.size):
            raise ValueError(
                f"message: {count} elements of {self._name or 'this datatype'} reach byte "
                f"{int(places.max()) if places.min() >= 0 else int(places.min())} of a buffer of "
                f"{raw.size} bytes"
            )
        return places

    def _pack(self, raw: ByteArray, offset: int, count: int, sent: bool = True) -> bytes:
        """Collect `count` elements from byte `offset` of `raw`."""
        if self._contiguous:
            length = count * self._upper
            if offset + length > raw.size:
                raise ValueError(
                    f"message: {count} elements of {self._name or 'this datatype'} from byte {offset} need "
                    f"{offset + length} bytes, the buffer has {raw.size}"
                )
            return outside.packed(raw[offset : offset + length], sent=sent)
        return outside.packed(raw[self._places(raw, offset, count)], sent=sent)

    def _unpack(self, raw: ByteArray, offset: int, data: bytes) -> None:
        """Store `data` as elements from byte `offset` of `raw`."""
        length = len(data)
        if self._contiguous:
            if offset + length > raw.size:
                raise ValueError(
                    f"message: {length} bytes from byte {offset} do not fit into a buffer of {raw.size} bytes"
                )
            raw[offset : offset + length] = np.frombuffer(data, np.uint8)
            return
        size = self.Get_size()
        count = -(-length // size) if size else 0
        places = self._places(raw, offset, count)[:length]
        raw[places] = np.frombuffer(data, np.uint8)


def _merge(blocks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join blocks that follow each other without a gap."""
    merged: list[tuple[int, int]] = []
    for start, length in blocks:
        if length == 0:
            continue
        if merged and merged[-1][0] + merged[-1][1] == start:
            merged[-1] = (merged[-1][0], merged[-1][1] + length)
        else:
            merged.append((start, length))
    return merged


def _pairs(lengths: Sequence[int], displacements: Sequence[int]) -> list[tuple[int, int]]:
    if len(lengths) != len(displacements):
        raise ValueError(f"{len(lengths)} block lengths but {len(displacements)} displacements")
    return [(int(length), int(at)) for length, at in zip(lengths, displacements, strict=True)]


def _at_least_zero(what: str, value: int) -> None:
    if value < 0:
        fail("ERR_COUNT" if what == "count" else "ERR_ARG", f"{what} is {value}, must be at least 0")


def _simple(name: str, dtype: str, typestr: str = "", typechar: str = "") -> Datatype:
    numpy_dtype = np.dtype(dtype)
    return Datatype._predefine(
        name,
        numpy_dtype,
        [(0, numpy_dtype.itemsize)],
        typestr or numpy_dtype.str.lstrip("<|="),
        typechar or numpy_dtype.char,
    )


def _pair(name: str, value: str) -> Datatype:
    dtype = np.dtype([("value", value), ("index", "i4")], align=True)
    blocks = [(0, np.dtype(value).itemsize), (dtype.fields["index"][1], 4)] if dtype.fields else []
    made = Datatype._predefine(name, dtype, blocks, f"V{dtype.itemsize}", "V")
    made._elements = tuple(length for _, length in blocks)
    return made


def _make_null() -> Datatype:
    null = object.__new__(Datatype)
    for slot, value in {
        "_blocks": (),
        "_combiner": INTEGERS["COMBINER_NAMED"],
        "_committed": False,
        "_contiguous": True,
        "_dtype": None,
        "_elements": (),
        "_index": None,
        "_lower": 0,
        "_name": "MPI_DATATYPE_NULL",
        "_predefined": True,
        "_size": 0,
        "_typechar": "V",
        "_typestr": "V0",
        "_upper": 0,
    }.items():
        setattr(null, slot, value)
    return null


DATATYPE_NULL = _make_null()

PREDEFINED: dict[str, Datatype] = {
    "DATATYPE_NULL": DATATYPE_NULL,
    "PACKED": _simple("MPI_PACKED", "u1"),
    "BYTE": _simple("MPI_BYTE", "u1"),
    "AINT": _simple("MPI_AINT", "i8", typechar="p"),
    "OFFSET": _simple("MPI_OFFSET", "i8", typechar="p"),
    "COUNT": _simple("MPI_COUNT", "i8", typechar="p"),
    "CHAR": _simple("MPI_CHAR", "i1", "S1", "c"),
    "WCHAR": _simple("MPI_WCHAR", "u4", "U1", "U"),
    "SIGNED_CHAR": _simple("MPI_SIGNED_CHAR", "i1"),
    "SHORT": _simple("MPI_SHORT", "i2"),
    "INT": _simple("MPI_INT", "i4"),
    "LONG": _simple("MPI_LONG", "i8"),
    "LONG_LONG": _simple("MPI_LONG_LONG_INT", "i8", typechar="q"),
    "UNSIGNED_CHAR": _simple("MPI_UNSIGNED_CHAR", "u1"),
    "UNSIGNED_SHORT": _simple("MPI_UNSIGNED_SHORT", "u2"),
    "UNSIGNED": _simple("MPI_UNSIGNED", "u4"),
    "UNSIGNED_LONG": _simple("MPI_UNSIGNED_LONG", "u8"),
    "UNSIGNED_LONG_LONG": _simple("MPI_UNSIGNED_LONG_LONG", "u8", typechar="Q"),
    "FLOAT": _simple("MPI_FLOAT", "f4"),
    "DOUBLE": _simple("MPI_DOUBLE", "f8"),
    "LONG_DOUBLE": _simple("MPI_LONG_DOUBLE", "g"),
    "C_BOOL": _simple("MPI_C_BOOL", "?"),
    "CXX_BOOL": _simple("MPI_CXX_BOOL", "?"),
    "INT8_T": _simple("MPI_INT8_T", "i1"),
    "INT16_T": _simple("MPI_INT16_T", "i2"),
    "INT32_T": _simple("MPI_INT32_T", "i4"),
    "INT64_T": _simple("MPI_INT64_T", "i8"),
    "UINT8_T": _simple("MPI_UINT8_T", "u1"),
    "UINT16_T": _simple("MPI_UINT16_T", "u2"),
    "UINT32_T": _simple("MPI_UINT32_T", "u4"),
    "UINT64_T": _simple("MPI_UINT64_T", "u8"),
    "FLOAT16_T": _simple("MPIX_C_FLOAT16", "f2"),
    "C_COMPLEX": _simple("MPI_C_COMPLEX", "c8"),
    "C_DOUBLE_COMPLEX": _simple("MPI_C_DOUBLE_COMPLEX", "c16"),
    "C_LONG_DOUBLE_COMPLEX": _simple("MPI_C_LONG_DOUBLE_COMPLEX", "G"),
    "CHARACTER": _simple("MPI_CHARACTER", "i1", "S1", "c"),
    "LOGICAL": _simple("MPI_LOGICAL", "i4"),
    "INTEGER": _simple("MPI_INTEGER", "i4"),
    "REAL": _simple("MPI_REAL", "f4"),
    "DOUBLE_PRECISION": _simple("MPI_DOUBLE_PRECISION", "f8"),
    "COMPLEX": _simple("MPI_COMPLEX", "c8"),
    "DOUBLE_COMPLEX": _simple("MPI_DOUBLE_COMPLEX", "c16"),
    "INTEGER1": _simple("MPI_INTEGER1", "i1"),
    "INTEGER2": _simple("MPI_INTEGER2", "i2"),
    "INTEGER4": _simple("MPI_INTEGER4", "i4"),
    "INTEGER8": _simple("MPI_INTEGER8", "i8"),
    "REAL4": _simple("MPI_REAL4", "f4"),
    "REAL8": _simple("MPI_REAL8", "f8"),
    "COMPLEX8": _simple("MPI_COMPLEX8", "c8"),
    "COMPLEX16": _simple("MPI_COMPLEX16", "c16"),
    "INT_INT": _pair("MPI_2INT", "i4"),
    "SHORT_INT": _pair("MPI_SHORT_INT", "i2"),
    "LONG_INT": _pair("MPI_LONG_INT", "i8"),
    "FLOAT_INT": _pair("MPI_FLOAT_INT", "f4"),
    "DOUBLE_INT": _pair("MPI_DOUBLE_INT", "f8"),
}
"""The predefined types by their mpi4py name."""

for _alias, _of in {
    "TWOINT": "INT_INT",
    "FLOAT32_T": "FLOAT",
    "FLOAT64_T": "DOUBLE",
    "C_FLOAT_COMPLEX": "C_COMPLEX",
    "UNSIGNED_INT": "UNSIGNED",
    "SIGNED_SHORT": "SHORT",
    "SIGNED_INT": "INT",
    "SIGNED_LONG": "LONG",
    "SIGNED_LONG_LONG": "LONG_LONG",
    "BOOL": "C_BOOL",
    "SINT8_T": "INT8_T",
    "SINT16_T": "INT16_T",
    "SINT32_T": "INT32_T",
    "SINT64_T": "INT64_T",
    "F_BOOL": "LOGICAL",
    "F_INT": "INTEGER",
    "F_FLOAT": "REAL",
    "F_DOUBLE": "DOUBLE_PRECISION",
    "F_COMPLEX": "COMPLEX",
    "F_FLOAT_COMPLEX": "COMPLEX",
    "F_DOUBLE_COMPLEX": "DOUBLE_COMPLEX",
}.items():
    PREDEFINED[_alias] = PREDEFINED[_of]

_NAMES = {datatype._name: datatype for datatype in PREDEFINED.values()}

_CODES: dict[str, str] = {
    "?": "C_BOOL", "b": "SIGNED_CHAR", "h": "SHORT", "i": "INT", "l": "LONG", "q": "LONG_LONG",
    "p": "AINT", "B": "UNSIGNED_CHAR", "H": "UNSIGNED_SHORT", "I": "UNSIGNED", "L": "UNSIGNED_LONG",
    "Q": "UNSIGNED_LONG_LONG", "e": "FLOAT16_T", "f": "FLOAT", "d": "DOUBLE", "g": "LONG_DOUBLE",
    "Zf": "C_COMPLEX", "Zd": "C_DOUBLE_COMPLEX", "Zg": "C_LONG_DOUBLE_COMPLEX",
    "F": "C_COMPLEX", "D": "C_DOUBLE_COMPLEX", "G": "C_LONG_DOUBLE_COMPLEX",
    "b1": "C_BOOL", "i1": "SIGNED_CHAR", "i2": "SHORT", "i4": "INT", "i8": "LONG",
    "u1": "UNSIGNED_CHAR", "u2": "UNSIGNED_SHORT", "u4": "UNSIGNED", "u8": "UNSIGNED_LONG",
    "f2": "FLOAT16_T", "f4": "FLOAT", "f8": "DOUBLE", "f16": "LONG_DOUBLE", "c8": "C_COMPLEX",
    "c16": "C_DOUBLE_COMPLEX", "c32": "C_LONG_DOUBLE_COMPLEX", "c": "CHAR", "S": "CHAR", "S1": "CHAR",
    "s": "CHAR", "1s": "CHAR", "U": "WCHAR", "U1": "WCHAR", "w": "WCHAR", "1w": "WCHAR",
}  # fmt: skip

TYPEDICT: dict[str, Datatype] = {code: PREDEFINED[name] for code, name in _CODES.items()}
"""Predefined types by character code, buffer format and type string."""


def lookup(key: Any) -> Datatype:
    """Return the datatype that a code stands for.

    Raises
    ------
    KeyError
        When there is none.
    """
    try:
        return TYPEDICT[key]
    except (KeyError, TypeError):
        raise KeyError(f"cannot map {key!r} to MPI datatype") from None


def _by_name(name: str) -> Datatype:
    return _NAMES[name]


BYTE = PREDEFINED["BYTE"]
