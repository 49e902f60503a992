"""Shared memory and files that outlive a job ended by force, found and removed.

MPICH, UCX, Open MPI and libfabric give their segments back in Finalize; a job that is killed leaves them in
``/dev/shm``, as Python's `multiprocessing` does its semaphores, LAM in the tables of System V. The proxy of
MPICH's launcher describes the host to its ranks in a file of ``/tmp``, which it removes at its end unless it
is killed. What appeared while our job ran, belongs to the user it ran as and is used by nobody any more is
removed. Only the standard library is used, since `wiretwin.keeper` runs without anything else.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Leftovers", "described", "descriptions", "none_left", "remove_since"]

_FOLDER = Path("/dev/shm")
_PROC = Path("/proc")
_PATTERNS = (
    "mpich_*",
    "ucx_shm_posix_*",
    "vader_segment.*",
    "sm_segment.*",
    "psm2_shm.*",
    "[0-9]*:[0-9]*:[0-9]*",  # the provider shm of libfabric: PID:DOMAIN:ENDPOINT
    "sem.mp-*",
)
_HYDRA = ("/tmp", "hydra_hwloc_xmlfile_*")
"""Where MPICH's proxies describe their host; `TMPDIR` does not change it."""
_PROXY = "hydra_pmi_proxy"
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
"""To how many seconds the start of a process is known."""
_IPC_RMID = 0
"""``shmctl(2)``, ``semctl(2)``: remove."""
_GETPID = 11
"""``semctl(2)``: who has last worked on a semaphore."""


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
        files |= frozenset(descriptions())
        segments, semaphores = _table("shm"), _table("sem")
        return cls(
            files, frozenset(row["shmid"] for row in segments), frozenset(row["semid"] for row in semaphores)
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "files": sorted(map(str, self.files)),
            "segments": sorted(self.segments),
            "semaphores": sorted(self.semaphores),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Leftovers:
        """Read what `to_json` has made."""
        return cls(
            frozenset(map(Path, values["files"])),
            frozenset(values["segments"]),
            frozenset(values["semaphores"]),
        )

    def lost_since(self, uid: int, makers: Collection[int] | None = None) -> Leftovers:
        """Return what has appeared since, belongs to `uid` and is used by nobody any more.

        A file is used by who maps it or has it open, which comes before, the description of a host by any of
        MPICH's proxies that was there when it was made; a segment by who is attached or has
        made it, semaphores by who has last worked on them. Files have the names of a library; what has only a
        number may be anyone's.

        Parameters
        ----------
        makers
            Processes, of which one has to have made a segment, or has to have last worked on semaphores; by
            default any.
        """
        now = Leftovers.now()
        files = now.files - self.files
        used = _used() if files else set()
        library = ctypes.CDLL(None, use_errno=True)

        def lost_by(pid: int) -> bool:
            theirs = makers is None or pid in makers
            return theirs and not (pid > 0 and Path("/proc", str(pid)).exists())

        return Leftovers(
            frozenset(path for path in files if _owner(path) == uid and str(path) not in used),
            frozenset(
                row["shmid"]
                for row in _table("shm")
                if row["shmid"] not in self.segments
                and row["uid"] == uid
                and not row["nattch"]
                and lost_by(row["cpid"])
            ),
            frozenset(
                row["semid"]
                for row in _table("sem")
                if row["semid"] not in self.semaphores
                and row["uid"] == uid
                and lost_by(library.semctl(row["semid"], 0, _GETPID))
            ),
        )


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None


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


def remove_since(before: Leftovers, uid: int, makers: Collection[int] | None = None) -> None:
    """Remove what is not in `before`, belongs to `uid` and is used by nobody; see `Leftovers.lost_since`."""
    library = ctypes.CDLL(None, use_errno=True)
    lost = before.lost_since(uid, makers)
    for path in lost.files:
        with contextlib.suppress(OSError):
            path.unlink()
    for number in lost.segments:
        library.shmctl(number, _IPC_RMID, None)
    for number in lost.semaphores:
        library.semctl(number, 0, _IPC_RMID)


def descriptions() -> Iterator[Path]:
    """Find the files in which MPICH's proxies describe this host."""
    folder, pattern = _HYDRA
    return Path(folder).glob(pattern)


def _used() -> set[str]:
    """Return the files that a living process has in its memory or open, or that its proxy may have made.

    Open ones are looked at first: what is mapped between the two looks is found by the second. A process that
    has been killed and has yet to be given a core to end on is none of the living.
    """
    found = set()
    for one in _living():
        links: list[str] = []
        with contextlib.suppress(OSError):  # it may have ended since
            links = os.listdir(one / "fd")
        for link in links:
            with contextlib.suppress(OSError):
                path = os.readlink(one / "fd" / link)
                if path.startswith("/dev/shm/"):
                    found.add(path)
    for one in _living():
        with contextlib.suppress(OSError):
            for line in (one / "maps").read_text("utf-8", "replace").splitlines():
                path = line.partition("/")[2]
                if path.startswith("dev/shm/"):
                    found.add("/" + path)
    return found | described()


def described() -> set[str]:
    """Return the descriptions that were made when one of the proxies that live now was there."""
    # Between the two clocks no more than the instant between their readings.
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    begun = []
    for one in _living():
        with contextlib.suppress(OSError, ValueError):
            name, _, fields = (one / "stat").read_text("utf-8", "replace").partition("(")[2].rpartition(")")
            if name == _PROXY:
                # proc(5): field 22 is the start in ticks since boot; the first behind the name is the third.
                begun.append(booted + (int(fields.split()[22 - 3]) - 1) * _TICK_S)
    first = min(begun, default=float("inf"))
    found = set()
    for path in descriptions():
        with contextlib.suppress(OSError):
            if path.stat().st_mtime >= first:
                found.add(str(path))
    return found


def _living() -> list[Path]:
    return [one for one in _PROC.glob("[0-9]*") if not _dying(one)]


def _dying(process: Path) -> bool:
    """Whether a process is beyond doing anything: SIGKILL is on its way to it, or it has ended."""
    try:
        lines = (process / "status").read_text("utf-8", "replace").splitlines()
    except OSError:
        return True
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    return status.get("State", "").strip()[:1] in ("Z", "X") or bool(pending >> (signal.SIGKILL - 1) & 1)
