"""Reduction operations, and the order in which MPICH 5.0.2 combines the contributions of ranks.

The orders were read off results of the wheel: sums of floats over 3 to 6 ranks agree bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from wiretwin._core import combined

from .buffers import Buffer
from .datatype import Datatype
from .failure import fail
from .names import refusing

Array = npt.NDArray[Any]
Combine = Callable[[Array, Array], Array]

_INTEGER, _FLOAT, _COMPLEX, _LOGICAL, _BYTE, _PAIR = "integer", "float", "complex", "logical", "byte", "pair"


def _kind(datatype: Datatype) -> str | None:
    """Group of a datatype in MPI-4.1 6.9.2, None for derived types."""
    if not datatype._predefined or datatype._dtype is None:
        return None
    if datatype._name in ("MPI_BYTE", "MPI_PACKED"):
        return _BYTE
    if datatype._name == "MPI_LOGICAL":
        return _LOGICAL
    return {"i": _INTEGER, "u": _INTEGER, "f": _FLOAT, "c": _COMPLEX, "b": _LOGICAL, "V": _PAIR}[
        datatype._dtype.kind
    ]


def _logical(function: Any) -> Combine:
    return lambda a, b: function(a != 0, b != 0).astype(a.dtype)


def _located(better: Any) -> Combine:
    def combine(a: Array, b: Array) -> Array:
        out = b.copy()
        take = better(a["value"], b["value"])
        out[take] = a[take]
        same = a["value"] == b["value"]
        out["index"][same] = np.minimum(a["index"][same], b["index"][same])
        return out

    return combine


def _compiled(name: str, otherwise: Combine) -> Combine:
    """Return an operation as libraries have it in compiled loops, without NumPy where there is such a loop.

    What NumPy does the first time that it computes is then left to the program, as in a real run.
    """

    def combine(a: Array, b: Array) -> Array:
        found = combined(name, a, b)
        return otherwise(a, b) if found is None else found

    return combine


_COMBINE: dict[str, tuple[Combine, frozenset[str]]] = {
    "SUM": (_compiled("SUM", np.add), frozenset({_INTEGER, _FLOAT, _COMPLEX})),
    "PROD": (_compiled("PROD", np.multiply), frozenset({_INTEGER, _FLOAT, _COMPLEX})),
    "MAX": (_compiled("MAX", lambda a, b: np.where(a > b, a, b)), frozenset({_INTEGER, _FLOAT})),
    "MIN": (_compiled("MIN", lambda a, b: np.where(a < b, a, b)), frozenset({_INTEGER, _FLOAT})),
    "LAND": (_logical(np.logical_and), frozenset({_INTEGER, _LOGICAL})),
    "LOR": (_logical(np.logical_or), frozenset({_INTEGER, _LOGICAL})),
    "LXOR": (_logical(np.logical_xor), frozenset({_INTEGER, _LOGICAL})),
    "BAND": (np.bitwise_and, frozenset({_INTEGER, _BYTE})),
    "BOR": (np.bitwise_or, frozenset({_INTEGER, _BYTE})),
    "BXOR": (np.bitwise_xor, frozenset({_INTEGER, _BYTE})),
    "MAXLOC": (_located(np.greater), frozenset({_PAIR})),
    "MINLOC": (_located(np.less), frozenset({_PAIR})),
    "REPLACE": (lambda a, b: b, frozenset()),
    "NO_OP": (lambda a, b: a, frozenset()),
}


def _pick_located(x: Any, y: Any, first: bool) -> Any:
    (u, i), (v, j) = x, y
    if first:
        return (u, i)
    if u == v:
        return (v, j) if j < i else (u, i)
    return (v, j)


_OBJECTS: dict[str, Callable[[Any, Any], Any]] = {
    "MAX": lambda x, y: y if y > x else x,
    "MIN": lambda x, y: y if y < x else x,
    "SUM": lambda x, y: x + y,
    "PROD": lambda x, y: x * y,
    "BAND": lambda x, y: x & y,
    "BOR": lambda x, y: x | y,
    "BXOR": lambda x, y: x ^ y,
    "LAND": lambda x, y: bool(x) & bool(y),
    "LOR": lambda x, y: bool(x) | bool(y),
    "LXOR": lambda x, y: bool(x) ^ bool(y),
    "MAXLOC": lambda x, y: _pick_located(x, y, x[0] > y[0]),
    "MINLOC": lambda x, y: _pick_located(x, y, x[0] < y[0]),
    "REPLACE": lambda x, y: y,
    "NO_OP": lambda x, y: x,
}


@refusing
class Op:
    """`mpi4py.MPI.Op`."""

    __slots__ = ("_commute", "_function", "_name")

    _commute: bool
    _function: Callable[..., Any] | None
    _name: str

    def __init__(self, op: Op | None = None) -> None:
        self._name = op._name if op is not None else "OP_NULL"
        self._function = op._function if op is not None else None
        self._commute = op._commute if op is not None else False

    @classmethod
    def _predefine(cls, name: str) -> Op:
        made = cls()
        made._name = name
        made._commute = name not in ("REPLACE", "NO_OP")
        return made

    @classmethod
    def Create(cls, function: Callable[[Any, Any, Datatype], None], commute: bool = False) -> Op:
        """Create an operation: `function(inbuf, inoutbuf, datatype)` combines into `inoutbuf`."""
        made = cls()
        made._name = ""
        made._function = function
        made._commute = bool(commute)
        return made

    def Free(self) -> None:
        """Free the operation: it becomes `OP_NULL`."""
        if self.is_predefined:
            fail("ERR_OP", f"MPI_{self._name} is predefined and cannot be freed")
        self._name, self._function = "OP_NULL", None

    def free(self) -> None:
        """Free the operation, as `Free`, unless it is predefined or null."""
        if not self.is_predefined:
            self.Free()

    def Is_commutative(self) -> bool:
        """Tell whether the operation commutes."""
        return self._commute

    @property
    def is_commutative(self) -> bool:
        """Whether the operation commutes."""
        return self._commute

    @property
    def is_predefined(self) -> bool:
        """Whether the operation is predefined."""
        return self._function is None

    def Reduce_local(self, inbuf: Any, inoutbuf: Any) -> None:
        """Combine `inbuf` into `inoutbuf`, here."""
        from .buffers import simple

        left, right = simple(inbuf, False, 0, 0), simple(inoutbuf, True, 0, 0)
        if left.datatype != right.datatype:
            raise ValueError("mismatch in inbuf and inoutbuf MPI datatypes")
        if left.count != right.count:
            raise ValueError(f"mismatch in inbuf count {left.count} and inoutbuf count {right.count}")
        combine = self._combiner(left.datatype)
        right.unpack(_bytes(combine(self._array(left.pack(sent=False), left.datatype), _of(right, self))))

    def __call__(self, x: Any, y: Any) -> Any:
        """Combine two objects."""
        if self._function is not None:
            return self._function(x, y, _null())
        return _OBJECTS[self._name](x, y)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Op):
            return NotImplemented
        return self is other or (self._function is other._function and self._name == other._name)

    def __hash__(self) -> int:
        return hash((self._name, self._function))

    def __bool__(self) -> bool:
        return self._name != "OP_NULL"

    def __reduce__(self) -> Any:
        if self.is_predefined:
            return (_by_name, (self._name,))
        raise ValueError("cannot pickle user-defined reduction operation")

    def _combiner(self, datatype: Datatype) -> Combine:
        """Return what combines two arrays of `datatype`.

        Raises
        ------
        MPIException
            ERR_OP, when the operation is not defined for the datatype.
        """
        if self._function is not None:
            function = self._function

            def user(a: Array, b: Array) -> Array:
                inout = bytearray(_bytes(b))
                function(memoryview(bytearray(_bytes(a))), memoryview(inout), datatype)
                return np.frombuffer(inout, b.dtype)

            return user
        if not self:
            fail("ERR_OP", "null operation")
        combine, kinds = _COMBINE[self._name]
        if _kind(datatype) not in kinds:
            fail("ERR_OP", f"MPI_{self._name} is not defined for {datatype._name or 'a derived datatype'}")
        return combine

    def _array(self, data: bytes, datatype: Datatype) -> Array:
        """View packed data as an array on which the operation works."""
        if datatype._name == "MPI_LOGICAL" or datatype._dtype is None or not datatype._predefined:
            return np.frombuffer(data, "i4" if datatype._name == "MPI_LOGICAL" else "u1")
        dtype = datatype._dtype
        if dtype.kind == "V":
            return unpack_pairs(data, datatype)
        return np.frombuffer(data, dtype)


def unpack_pairs(data: bytes, datatype: Datatype) -> Array:
    """View packed pairs of value and index as an array of the two fields."""
    fields = datatype._dtype.fields if datatype._dtype is not None else None
    assert fields is not None
    return np.frombuffer(data, np.dtype([("value", fields["value"][0]), ("index", "i4")]))


def _bytes(array: Array) -> bytes:
    return array.tobytes()


def _of(buffer: Buffer, op: Op) -> Array:
    return op._array(buffer.pack(sent=False), buffer.datatype)


def _null() -> Datatype:
    from .datatype import DATATYPE_NULL

    return DATATYPE_NULL


OPS: dict[str, Op] = {name: Op._predefine(name) for name in ("OP_NULL", *_COMBINE)}
"""The predefined operations by name."""


def _by_name(name: str) -> Op:
    return OPS[name]


def fold_power_of_two(items: Sequence[Any], combine: Callable[[Any, Any], Any]) -> list[Any]:
    """Combine the first pairs of ranks so that a power of two remains."""
    power = 1 << (len(items).bit_length() - 1)
    rest = len(items) - power
    return [combine(items[2 * i], items[2 * i + 1]) for i in range(rest)] + list(items[2 * rest :])


def recursive_doubling(items: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Allreduce, and long Reduce: neighbours first, after folding to a power of two."""
    values = fold_power_of_two(items, combine)
    while len(values) > 1:
        values = [combine(values[i], values[i + 1]) for i in range(0, len(values), 2)]
    return values[0]


def recursive_halving(items: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Short Reduce_scatter_block: the far half first, after folding to a power of two."""
    values = fold_power_of_two(items, combine)
    while len(values) > 1:
        half = len(values) // 2
        values = [combine(values[i], values[i + half]) for i in range(half)]
    return values[0]


def binomial(items: Sequence[Any], combine: Callable[[Any, Any], Any], root: int) -> Any:
    """Short Reduce: a binomial tree over ranks counted from the root."""
    size = len(items)
    values = [items[(i + root) % size] for i in range(size)]
    step = 1
    while step < size:
        for i in range(0, size - step, 2 * step):
            values[i] = combine(values[i], values[i + step])
        step *= 2
    return values[0]


def backwards(items: Sequence[Any], combine: Callable[[Any, Any], Any], rank: int) -> Any:
    """Long Reduce_scatter_block (pairwise): own block, then those of the ranks before."""
    size = len(items)
    value = items[rank]
    for k in range(1, size):
        value = combine(value, items[(rank - k) % size])
    return value


def prefix(items: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Scan at the last of `items`: partial results of recursive doubling."""
    size = len(items)
    rank = size - 1
    partial = list(items)
    result = items[rank]
    mask = 1
    while mask < size:
        merged = list(partial)
        for i in range(size):
            other = i ^ mask
            if other < size:
                low, high = min(i, other), max(i, other)
                merged[i] = combine(partial[low], partial[high])
        if rank & mask:
            result = combine(partial[rank ^ mask], result)
        partial = merged
        mask *= 2
    return result
