"""`mpi4py.MPI.Status`."""

from __future__ import annotations

from .constants import ANY_SOURCE, ANY_TAG, UNDEFINED
from .datatype import BYTE, Datatype
from .names import refusing


@refusing
class Status:
    """What was received: source, tag, length, error."""

    __slots__ = ("_cancelled", "_error", "_nbytes", "_source", "_tag")

    _cancelled: bool
    _error: int
    _nbytes: int
    _source: int
    _tag: int

    def __init__(self, status: Status | None = None) -> None:
        self._source = status._source if status else ANY_SOURCE
        self._tag = status._tag if status else ANY_TAG
        self._nbytes = status._nbytes if status else 0
        self._error = status._error if status else 0
        self._cancelled = status._cancelled if status else False

    def _set(self, source: int, tag: int, nbytes: int, error: int = 0, cancelled: bool = False) -> None:
        self._source, self._tag, self._nbytes = source, tag, nbytes
        self._error, self._cancelled = error, cancelled

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return all(getattr(self, slot) == getattr(other, slot) for slot in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def Get_source(self) -> int:
        """Return the rank of the sender."""
        return self._source

    def Set_source(self, source: int) -> None:
        """Set the rank of the sender."""
        self._source = source

    def Get_tag(self) -> int:
        """Return the tag."""
        return self._tag

    def Set_tag(self, tag: int) -> None:
        """Set the tag."""
        self._tag = tag

    def Get_error(self) -> int:
        """Return the error class."""
        return self._error

    def Set_error(self, error: int) -> None:
        """Set the error class."""
        self._error = error

    def Get_count(self, datatype: Datatype = BYTE) -> int:
        """Return the number of whole elements, or UNDEFINED if there is a rest."""
        size = datatype.Get_size()
        if size == 0:
            return 0
        return self._nbytes // size if self._nbytes % size == 0 else UNDEFINED

    def Get_elements(self, datatype: Datatype) -> int:
        """Return the number of basic elements."""
        sizes = datatype._elements
        total = sum(sizes)
        if total == 0:
            return 0
        whole, rest = divmod(self._nbytes, total)
        count = whole * len(sizes)
        for size in sizes:
            if rest < size:
                break
            rest -= size
            count += 1
        return count if rest == 0 else UNDEFINED

    def Set_elements(self, datatype: Datatype, count: int) -> None:
        """Set the length in elements."""
        self._nbytes = datatype.Get_size() * count

    def Is_cancelled(self) -> bool:
        """Tell whether the request was cancelled."""
        return self._cancelled

    def Set_cancelled(self, flag: bool) -> None:
        """Set whether the request was cancelled."""
        self._cancelled = flag

    source = property(Get_source, Set_source)
    tag = property(Get_tag, Set_tag)
    error = property(Get_error, Set_error)
    count = property(Get_count)
    cancelled = property(Is_cancelled, Set_cancelled)
