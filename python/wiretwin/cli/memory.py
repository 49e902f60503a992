"""Too little memory: told before a library that cannot bear it is imported, or where something else meets it.

Polars and OpenBLAS end the process, or wait for ever, where the system gives them no memory for their
threads; nothing can be told after that. So the limit of the process is looked at before.
"""

from __future__ import annotations

import errno
import resource
import sys
from collections.abc import Sequence
from types import ModuleType

from wiretwin.errors import MemoryShortage

__all__ = ["NEEDS", "shortage", "watch_imports"]

NEEDS = {"numpy": 200 << 20, "polars": 3 << 30}
"""The address space that a library takes, with what stands on it, on a machine of two cores: bytes."""
_WORDS = ("failed to map segment", "cannot allocate memory", "malloc of size")


class _Watch:
    """Finds no module: looks at the limit before the others look for one."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        need = NEEDS.get(name)
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if need is not None and limit != resource.RLIM_INFINITY and limit < need:
            raise MemoryShortage(
                f"too little memory for {name}: the address space of this process is limited to "
                f"{limit >> 20} MiB, {name} takes {need >> 20} MiB\n`ulimit -v unlimited` lifts the limit"
            )


def watch_imports() -> None:
    """From now on, a library for which there is too little memory is not imported; once is enough."""
    if not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())


def shortage(error: BaseException) -> MemoryShortage | None:
    """Return the condition that an error stands for, if it came for want of memory."""
    said = str(error).strip() or type(error).__name__
    short = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    if not short and not any(words in said.lower() for words in _WORDS):
        return None
    return MemoryShortage(f"too little memory: {said}")
