"""Processes that a rank forks: they may do anything but call MPI.

A forked process is a copy of the rank, with all of the simulated world in it, and would go on as that
rank. It therefore tells the rank's own process through a pipe which function it called, and that process
ends the run with this reason.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, NoReturn
from weakref import WeakSet

from wiretwin.errors import ProgramError

if TYPE_CHECKING:
    from .runtime import Runtime

_exit = os._exit  # while a program runs, `os._exit` is another function, which ends one rank
_LATE_S = 1.0
"""How long a forked process is waited for at the end of a run, should it call MPI then, in seconds."""
_MOST = 4096
"""The longest message in bytes: a pipe takes one of this length as a whole (POSIX, PIPE_BUF on Linux)."""
_ALL: WeakSet[Forks] = WeakSet()


class Forks:
    """The pipe from the forked processes of one run to the process of the ranks, which has to `close` it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._read, self._write = os.pipe()
        self._forked = False
        self.here = True
        """Whether this is the process of the ranks, rather than a forked one."""
        _ALL.add(self)

    def say(self, words: str) -> NoReturn:
        """Tell the process of the ranks, from a forked one, what was called, and end this one."""
        os.write(self._write, words.encode()[: _MOST - 1] + b"\n")
        _exit(ProgramError.exit_code)

    def heard(self) -> str:
        """Return what a forked process has said; waits a while for those that are still there."""
        if not self._forked:
            return ""
        os.close(self._write)  # the others have it as long as they are there
        self._write = -1
        if not select.select([self._read], [], [], _LATE_S)[0]:
            return ""
        return os.read(self._read, _MOST).decode("utf-8", "replace").partition("\n")[0]

    def close(self) -> None:
        """Give the pipe back."""
        for end in (self._read, self._write):
            if end >= 0:
                os.close(end)
        self._read = self._write = -1
        _ALL.discard(self)

    def _in_child(self) -> None:
        self.here = False
        for rank in self._runtime.ranks:
            rank.thread = -1  # every call is looked at from now on

    def _in_parent(self) -> None:
        self._forked = True


def _after_in_child() -> None:
    for one in list(_ALL):
        one._in_child()


def _after_in_parent() -> None:
    for one in list(_ALL):
        one._in_parent()


os.register_at_fork(after_in_child=_after_in_child, after_in_parent=_after_in_parent)
