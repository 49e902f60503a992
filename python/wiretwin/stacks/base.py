"""What a stack is: a messaging library that brings its own daemons, launchers and ways to fail.

A `Stack` says what it needs on the machine and is brought up at a `Place`; the `Session` that results
knows how ranks are started, and is brought down again whatever happens. Schedules, loops and records are
not its business: a rank is a probe process, and reaches the library through a shim.
"""

from __future__ import annotations

import abc
import contextlib
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiretwin.errors import MeasureError
from wiretwin.place import Place
from wiretwin.quantity import MAX_SIZE
from wiretwin.scratch import folder
from wiretwin.stacks.nature import Nature
from wiretwin.stacks.word import ALL_LOOPS, COMPILED, OVER_MESSAGES, Word

__all__ = ["Command", "Refusal", "Session", "Stack", "StackError", "by_signal", "scratch"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something cannot run here.

    Attributes
    ----------
    reason
        What is missing or in the way.
    cure
        The one line that changes it.
    """

    reason: str
    cure: str

    def __str__(self) -> str:
        return f"{self.reason}; `{self.cure}`"


class StackError(MeasureError):
    """A stack could not be brought up, or its shim not be built.

    Parameters
    ----------
    message
        Complete: what, where, and the last words of what was run.
    cure
        The line that may change it.
    """

    def __init__(self, message: str, cure: str | None = None) -> None:
        super().__init__(message if cure is None else f"{message}\n`{cure}` may cure it")
        self.cure = cure


@dataclass(frozen=True, slots=True)
class Command:
    """A process to be started on this machine.

    Attributes
    ----------
    argv
        The program and its arguments; another host of the place is reached from within it.
    env
        Variables set for it besides ours.
    """

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)


def by_signal(number: int) -> tuple[str, bool]:
    """Say that a rank was ended by a signal; whether one ended it that nobody of ours had sent."""
    if number == signal.SIGALRM:
        return "limit_s: not done within the limit", False
    return f"a rank was ended by signal {number} ({signal.Signals(number).name})", True


class Session(abc.ABC):
    """A stack that is up at a place.

    Attributes
    ----------
    place
        The hosts on which the stack is up.
    shim
        The shared object that the probes load; ``None`` for a probe that knows its library.
    options
        Options for the probe.
    measuring
        Further ones for the measuring loops, which may take liberties that a program may not.
    together
        One launcher starts all ranks from one specification, whose ``rank`` and ``size`` are null;
        otherwise each rank is started by a command and a specification of its own.
    rank_variable
        The environment variable in which the launcher tells a rank its number.
    free
        Ranks are not to be pinned: the launcher binds them.
    daemons
        Something stays up between launches, and is to be brought up anew after a launch that failed.
    report
        What the manifest keeps besides what the probe reports: launcher, versions, environment.
    """

    together: bool = True
    rank_variable: str | None = None
    free: bool = False
    daemons: bool = False
    measuring: Mapping[str, Any] = {}

    def __init__(
        self,
        place: Place,
        *,
        shim: Path | None = None,
        options: Mapping[str, Any] | None = None,
        report: Mapping[str, Any] | None = None,
    ) -> None:
        self.place = place
        self.shim = shim
        self.options: dict[str, Any] = dict(options or {})
        self.report: dict[str, Any] = dict(report or {})

    @abc.abstractmethod
    def commands(self, probe: Sequence[str], specs: Sequence[Path], ranks: int) -> list[Command]:
        """Return what starts `ranks` ranks.

        Parameters
        ----------
        probe
            The command of a rank, which the path of its specification follows.
        specs
            One specification if the ranks are started together, else one for each rank.
        ranks
            How many.
        """

    @staticmethod
    def hydra(output: str) -> tuple[str, bool] | None:
        """Read how a rank ended in what Hydra prints, the launcher of MPICH and its descendants."""
        match = re.search(r"EXIT STRING: (.+) \(signal (\d+)\)", output)
        return None if match is None else by_signal(int(match[2]))

    def last_words(self, output: str) -> tuple[str, bool] | None:
        """Say how a rank ended, as far as the launcher's output tells, and whether a signal ended it."""
        return self.hydra(output)

    def after(self, *, clean: bool) -> None:  # noqa: B027 - most leave nothing
        """Remove what a launch may leave: called when all its processes have ended."""


class Stack(abc.ABC):
    """A messaging library.

    Attributes
    ----------
    name
        ``mpi/openmpi``.
    summary
        One line for people.
    options
        Defaults.
    words
        Its variants.
    editions
        Those of its words that stand for another installation of it, which may be there or not.
    opt_in
        Runs only when asked for by name: large, proprietary, or slow.
    probe
        The command of a rank.
    max_bytes
        Its largest message.
    loops
        The loops it has.
    nature
        What else it is like.
    """

    name: str
    summary: str
    options: Mapping[str, Any] = {}
    words: Sequence[Word] = ()
    editions: tuple[str, ...] = ()
    opt_in: bool = False
    probe: tuple[str, ...] = COMPILED
    max_bytes: int = MAX_SIZE
    loops: frozenset[str] = ALL_LOOPS | OVER_MESSAGES
    nature: Nature = Nature()

    def largest(self, options: Mapping[str, Any]) -> int:
        """Return its largest message with these options, in bytes, where no word alone decides it."""
        return self.max_bytes

    @abc.abstractmethod
    def refusal(self, options: Mapping[str, Any], place: Place) -> Refusal | None:
        """Say why it cannot run at a place with these options; nothing is started but a compiler."""

    @abc.abstractmethod
    def up(self, place: Place, options: Mapping[str, Any]) -> AbstractContextManager[Session]:
        """Bring it up at a place; down again at the end of the context, whatever has happened.

        Raises
        ------
        StackError
            It does not come up, with the reason.
        """


@contextlib.contextmanager
def scratch(place: Place) -> Iterator[Path]:
    """Make a directory of a session's own, with the same path on every host of the place."""
    with folder(place.directory, "stack") as directory:
        directory.chmod(0o755)
        yield directory
