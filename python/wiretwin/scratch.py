"""Folders for the time of a run, and those that a run left which was killed.

A folder says in its file `owner` which process made it: number and time of start, which together no other
process has. A process that is killed cannot remove its folders (in shared memory they hold memory until
the next boot), so the next run removes what dead owners have left.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["abandoned", "folder", "parents", "sweep"]

PREFIX = "wiretwin-"
OWNER = "owner"
_START = 22 - 3
"""The time of start in ``/proc/PID/stat``, counted from behind the name (proc(5): field 22)."""


@contextlib.contextmanager
def folder(parent: Path | None = None, what: str = "") -> Iterator[Path]:
    """Make a folder that goes with the block, or with the next run if this process is killed.

    Parameters
    ----------
    parent
        Where; by default where temporary files go.
    what
        A word for its name, if it is to have one.
    """
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    _sweep_once(parent)
    made = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{what}-" if what else PREFIX, dir=parent))
    try:
        (made / OWNER).write_text(f"{os.getpid()} {_started(os.getpid())}\n")
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def parents() -> list[Path]:
    """List the places where runs on this host make their folders."""
    from wiretwin.place import HERE

    return list(dict.fromkeys([HERE.directory, Path(tempfile.gettempdir())]))


def abandoned(parent: Path) -> list[Path]:
    """List folders in `parent` whose owner is dead; those that name no owner are let be.

    They are this user's; for root, whose stacks give theirs to who runs the daemons, everybody's.
    """
    found = []
    for path in sorted(parent.glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError, ValueError):
            pid, started = (path / OWNER).read_text().split()
            if os.geteuid() in (0, path.stat().st_uid) and _started(int(pid)) != started:
                found.append(path)
    return found


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of dead owners in `parent`; return them."""
    found = abandoned(parent)
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    return found


@functools.cache
def _sweep_once(parent: Path) -> None:
    sweep(parent)


def _started(pid: int) -> str:
    """Return when a process was started, in ticks since boot; nothing if there is none."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[_START]
