"""Shared memory that an MPI job leaves when it is ended by force.

MPICH gives back its segment in Finalize; a job that aborts or is killed leaves one of about 2 MB in
`/dev/shm`. What appeared while our job ran, is ours and is mapped by nobody any more is removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["none_left"]

_FOLDER = Path("/dev/shm")
_PATTERN = "mpich_shm_*"


@contextlib.contextmanager
def none_left() -> Iterator[None]:
    """Remove on the way out the segments that appeared inside and that no process maps."""
    before = set(_FOLDER.glob(_PATTERN))
    try:
        yield
    finally:
        made = set(_FOLDER.glob(_PATTERN)) - before
        if made:
            mapped = _mapped()
            for segment in made:
                with contextlib.suppress(OSError):
                    if segment.stat().st_uid == os.getuid() and str(segment) not in mapped:
                        segment.unlink()


def _mapped() -> set[str]:
    """Return the segments that a living process has in its memory."""
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            for line in maps.read_text("utf-8", "replace").splitlines():
                path = line.partition("/")[2]
                if path.startswith("dev/shm/"):
                    found.add("/" + path)
    return found
