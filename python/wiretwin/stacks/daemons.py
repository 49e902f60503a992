"""Daemons of a session: under a mark of their own, by which they are found when it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wiretwin import keeper, process
from wiretwin.marks import LAUNCH, end_all, marked
from wiretwin.place import Place
from wiretwin.stacks.base import StackError, scratch

__all__ = ["Household", "household"]

GRACE_S = 2.0
"""How long daemons may take to obey a signal, seconds."""


@dataclass(frozen=True)
class Household:
    """Where a session's daemons live and what they are started with.

    Attributes
    ----------
    directory
        The session's own; with the same path on every host.
    mark
        Variables that every process of the session carries.
    """

    directory: Path
    mark: Mapping[str, str]

    def run(
        self,
        argv: Sequence[str],
        what: str,
        *,
        limit_s: float,
        env: Mapping[str, str],
        cwd: Path | None = None,
    ) -> str:
        """Run a command that may leave daemons behind; return what it printed.

        Its output goes to a file and its input comes from nowhere, because a daemon keeps what it inherits.

        Raises
        ------
        StackError
            It fails or does not end within the limit, with its last words.
        """
        log = self.directory / "log"
        with log.open("wb") as out:
            try:
                child = process.start(
                    argv,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env=dict(os.environ) | dict(env) | dict(self.mark),
                    cwd=cwd,
                )
            except OSError as error:
                raise StackError(f"{what}: {argv[0]}: {error.strerror or error}") from None
            try:
                code = child.wait(limit_s)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                raise StackError(f"{what}: not done within {limit_s:g} s{_said(log)}") from None
        if code != 0:
            raise StackError(f"{what} ended with {process.ending(code)}{_said(log)}")
        return log.read_text("utf-8", "replace")

    def end_all(self) -> None:
        """End every process that carries the mark: TERM, then KILL."""
        end_all(lambda: marked(self.mark[LAUNCH]), GRACE_S)


def _said(log: Path, lines: int = 8) -> str:
    text = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return ":\n" + "\n".join(text[-lines:]) if text else ""


@contextlib.contextmanager
def household(place: Place, *, owner: int | None = None) -> Iterator[Household]:
    """Make a directory and a mark for a session's daemons; end what is left of them afterwards.

    Parameters
    ----------
    owner
        The number of the user that the directory is to belong to, if not ours.
    """
    with scratch(place) as directory:
        if owner is not None and owner != os.geteuid():
            os.chown(directory, owner, -1)
            keeper.look_after(user=owner)
        home = Household(directory, {LAUNCH: str(directory)})
        try:
            yield home
        finally:
            home.end_all()
