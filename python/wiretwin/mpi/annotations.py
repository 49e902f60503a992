"""`mpi4py.typing` of a simulated program: names for annotations, which are not checked here."""

from __future__ import annotations

import types
from typing import Any, SupportsIndex, TypeVar

from .buffers import BottomType, InPlaceType
from .datatype import Datatype

_BUFFERS = ("SupportsBuffer", "SupportsDLPack", "SupportsCAI", "Buffer")
_SPECS = ("BufSpec", "BufSpecB", "BufSpecV", "BufSpecW", "TargetSpec")
_TYPES: dict[str, Any] = {
    "Aint": SupportsIndex,
    "Bottom": BottomType | None,
    "Count": SupportsIndex,
    "Displ": SupportsIndex,
    "InPlace": InPlaceType | None,
    "Offset": SupportsIndex,
    "TypeSpec": Datatype | str,
}


def module() -> types.ModuleType:
    """Return the module; buffers and what is given with them are of any type."""
    made = types.ModuleType("mpi4py.typing", "Types for annotations (simulated).")
    made.__dict__.update(dict.fromkeys((*_BUFFERS, *_SPECS), Any), **_TYPES)
    made.__dict__["__all__"] = [*_BUFFERS, *_TYPES, *_SPECS]
    made.__dict__.update({name: TypeVar(name) for name in "STUV"})
    return made
