"""Shared memory that outlives a job ended by force, found and removed.

MPICH, UCX and Open MPI give their segments back in Finalize; a job that is killed leaves them in
``/dev/shm``, LAM in the tables of System V. What appeared while our job ran, belongs to the user it ran as
and is used by nobody any more is removed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Leftovers", "none_left"]

_FOLDER = Path("/dev/shm")
_PATTERNS = ("mpich_shm_*", "mpich_*", "ucx_shm_posix_*", "vader_segment.*", "sm_segment.*", "psm2_shm.*")
_IPC_RMID = 0
"""``shmctl(2)``, ``semctl(2)``: remove."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What there is at an instant: files of shared memory, System V segments and semaphores by number."""

    files: frozenset[Path]
    segments: frozenset[int]
    semaphores: frozenset[int]

    @classmethod
    def now(cls) -> Leftovers:
        """Look."""
        files = frozenset(path for pattern in _PATTERNS for path in _FOLDER.glob(pattern))
        segments, semaphores = _table("shm"), _table("sem")
        return cls(
            files, frozenset(row["shmid"] for row in segments), frozenset(row["semid"] for row in semaphores)
        )


def _table(kind: str) -> list[dict[str, int]]:
    """Read ``/proc/sysvipc/shm`` or ``sem``: a row each, by the names of the columns."""
    try:
        head, *rows = Path("/proc/sysvipc", kind).read_text().splitlines()
    except (OSError, ValueError):
        return []
    names = head.split()
    return [dict(zip(names, map(int, row.split()), strict=False)) for row in rows]


@contextlib.contextmanager
def none_left(uid: int) -> Iterator[None]:
    """Remove on the way out what appeared inside, belongs to `uid` and is used by nobody."""
    before = Leftovers.now()
    try:
        yield
    finally:
        remove_since(before, uid)


def remove_since(before: Leftovers, uid: int) -> None:
    """Remove what is not in `before`, belongs to `uid` and is used by nobody."""
    after = Leftovers.now()
    if made := after.files - before.files:
        mapped = _mapped()
        for path in made:
            with contextlib.suppress(OSError):
                if path.stat().st_uid == uid and str(path) not in mapped:
                    path.unlink()
    library = ctypes.CDLL(None, use_errno=True)
    orphans = set()
    for row in _table("shm"):
        if row["shmid"] not in before.segments and row["uid"] == uid and not row["nattch"]:
            if not Path("/proc", str(row["cpid"])).exists():
                library.shmctl(row["shmid"], _IPC_RMID, None)
            else:
                orphans.add(row["cpid"])
    for row in _table("sem"):
        # A semaphore does not tell its maker: it goes when no job of this user is at work any more.
        if row["semid"] not in before.semaphores and row["uid"] == uid and not orphans:
            library.semctl(row["semid"], 0, _IPC_RMID)


def _mapped() -> set[str]:
    """Return the files of shared memory that a living process has in its memory."""
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            for line in maps.read_text("utf-8", "replace").splitlines():
                path = line.partition("/")[2]
                if path.startswith("dev/shm/"):
                    found.add("/" + path)
    return found


def own() -> int:
    """Return the user number that launches of ours run as."""
    return os.geteuid()
