"""The folders that runs make, by name: whose they are, which are abandoned, and how they are removed.

The name of a folder holds the name of its run; its file `owner` says which process made it, by number and
time of start, which together no other process has. Only the standard library is used, since `wiretwin.keeper`
runs without anything else.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

__all__ = ["OWNER", "PREFIX", "TOKEN", "abandoned", "remove", "remove_of_run", "started", "sweep"]

PREFIX = "wiretwin-"
OWNER = "owner"
TOKEN = 4
"""How many letters of a folder's name tell its run; so many more tell it from the others of the run."""
_START = 22 - 3
"""The time of start in ``/proc/PID/stat``, counted from behind the name (proc(5): field 22)."""


def remove(path: Path) -> bool:
    """Remove a folder; return whether it is gone.

    It may not be, as where a process that ends still writes into it. The file that names its owner goes last,
    so that what is left is found again.
    """
    with contextlib.suppress(OSError):
        for one in path.iterdir():
            if one.is_dir() and not one.is_symlink():
                shutil.rmtree(one, ignore_errors=True)
            elif one.name != OWNER:
                one.unlink(missing_ok=True)
        if all(one.name == OWNER for one in path.iterdir()):
            shutil.rmtree(path, ignore_errors=True)
    return not path.exists()


def remove_of_run(parent: Path, token: str, owner: int) -> bool:
    """Remove the folders of a run that has ended, except those of a living process other than its `owner`.

    Returns whether all are gone.
    """
    is_gone = True
    for path in parent.glob(f"{PREFIX}*{token}{'?' * TOKEN}"):
        try:
            pid, begun = (path / OWNER).read_text().split()
            theirs = int(pid) != owner and started(int(pid)) == begun
        except (OSError, ValueError):
            theirs = False  # it was killed before it could say so
        if not theirs and not remove(path):
            is_gone = False
    return is_gone


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
        remove(path)
    return found


def started(pid: int) -> str:
    """Return when a process was started, in ticks since boot; nothing if there is none."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[_START]
