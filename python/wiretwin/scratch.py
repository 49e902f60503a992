"""Folders for the time of a run, and those that a run left which was killed with its keeper.

The name of a folder holds the name of its run, so that the run's keeper (`wiretwin.keeper`) removes it
however the run ends. It also says in its file `owner` which process made it: number and time of start, which
together no other process has. Where the keeper was killed as well, with a whole session or control group, the
next run removes what dead owners have left: in shared memory it would hold memory until the next boot.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import string
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["abandoned", "folder", "parents", "remove_of_run", "started", "sweep"]

PREFIX = "wiretwin-"
OWNER = "owner"
TOKEN = 4
"""How many letters of a folder's name tell its run; so many more tell it from the others of the run."""
_LETTERS = string.ascii_lowercase + string.digits
_START = 22 - 3
"""The time of start in ``/proc/PID/stat``, counted from behind the name (proc(5): field 22)."""


@contextlib.contextmanager
def folder(parent: Path | None = None, what: str = "") -> Iterator[Path]:
    """Make a folder that goes with the block, or soon after this process if that is killed.

    Parameters
    ----------
    parent
        Where; by default where temporary files go.
    what
        A word for its name, if it is to have one.

    Raises
    ------
    StorageError
        It cannot be made, as where the disk is full.
    """
    from wiretwin import keeper
    from wiretwin.errors import StorageError

    parent = Path(tempfile.gettempdir()) if parent is None else parent
    _sweep_once(parent)
    keeper.look_after(folder=parent)
    try:
        made = _make(parent, f"{PREFIX}{what}-" if what else PREFIX, keeper.name())
        try:
            (made / OWNER).write_text(f"{os.getpid()} {started(os.getpid())}\n")
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        raise StorageError(parent, f"no folder can be made in it: {error.strerror or error}") from error
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _make(parent: Path, prefix: str, token: str) -> Path:
    while True:
        made = parent / f"{prefix}{token}{''.join(secrets.choice(_LETTERS) for _ in range(TOKEN))}"
        with contextlib.suppress(FileExistsError):
            made.mkdir(0o700)
            return made


def parents() -> list[Path]:
    """List the places where runs on this host make their folders."""
    from wiretwin.shared_memory import FOLDER

    return list(dict.fromkeys([FOLDER, Path(tempfile.gettempdir())]))


def remove_of_run(parent: Path, token: str, owner: int) -> None:
    """Remove the folders of a run that has ended, except those of a living process other than its `owner`."""
    for path in parent.glob(f"{PREFIX}*{token}{'?' * TOKEN}"):
        try:
            pid, begun = (path / OWNER).read_text().split()
            theirs = int(pid) != owner and started(int(pid)) == begun
        except (OSError, ValueError):
            theirs = False  # it was killed before it could say so
        if not theirs:
            shutil.rmtree(path, ignore_errors=True)


def abandoned(parent: Path) -> list[Path]:
    """List folders in `parent` whose owner is dead; those that name no owner are let be.

    They are this user's; for root, whose stacks give theirs to who runs the daemons, everybody's.
    """
    found = []
    for path in sorted(parent.glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError, ValueError):
            pid, begun = (path / OWNER).read_text().split()
            if os.geteuid() in (0, path.stat().st_uid) and started(int(pid)) != begun:
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


def started(pid: int) -> str:
    """Return when a process was started, in ticks since boot; nothing if there is none."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[_START]
