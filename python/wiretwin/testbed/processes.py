"""The processes that live in the namespaces of a testbed: found, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from wiretwin.marks import await_gone
from wiretwin.testbed.private import MARK

__all__ = ["ProcessInfo", "end_processes", "inode", "marked_by", "processes"]

LIMIT_S = 5.0
"""How long killed processes may take to be gone."""
_KINDS = ("net", "uts", "ipc", "mnt")


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """A process of this machine.

    Attributes
    ----------
    pid
        Its number.
    spaces
        The namespaces it lives in, by kind and inode.
    """

    pid: int
    spaces: frozenset[tuple[str, int]]


def inode(descriptor: int) -> int:
    """Return the number of the namespace that a descriptor refers to."""
    return os.fstat(descriptor).st_ino


def processes() -> Iterator[ProcessInfo]:
    """Yield every process that does not live where this one does."""
    own = _spaces(os.getpid())
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                spaces = _spaces(int(entry))
                if spaces != own:
                    yield ProcessInfo(int(entry), spaces)


def _spaces(pid: int) -> frozenset[tuple[str, int]]:
    return frozenset((kind, os.stat(f"/proc/{pid}/ns/{kind}").st_ino) for kind in _KINDS)


def marked_by(folder: Path) -> Callable[[ProcessInfo], bool]:
    """Tell the processes whose root holds the mark of the testbed kept in a folder.

    Numbers of namespaces are used again once a testbed is gone; the mark is not.
    """

    def marked(found: ProcessInfo) -> bool:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{found.pid}/root{MARK}").read_text()
            return text.splitlines()[0] == str(folder)
        return False

    return marked


def end_processes(belongs: Callable[[ProcessInfo], bool]) -> int:
    """Kill the processes that belong to a testbed until there are none; returns how many there were.

    Waits for a few seconds at most.
    """
    deadline = time.monotonic() + LIMIT_S
    ended: set[int] = set()
    while True:
        found = {one.pid for one in processes() if belongs(one)}
        if not found or time.monotonic() > deadline:
            return len(ended)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        ended |= found
        await_gone(found, deadline - time.monotonic())
