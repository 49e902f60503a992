"""Numbers as mpi4py takes them where the standard has a C int: ranks, tags, roots, colours."""

from __future__ import annotations

from typing import Any

__all__ = ["c_int"]


def c_int(value: Any) -> int:
    """Return a number as a C int, cut off at the point as mpi4py's conversion does (``dest=size / 2``).

    Raises
    ------
    TypeError
        It is no number.
    """
    if type(value) is int:
        return value
    if isinstance(value, (str, bytes)) or not (hasattr(value, "__int__") or hasattr(value, "__index__")):
        raise TypeError("an integer is required")
    return int(value)
