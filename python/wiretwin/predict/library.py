"""The MPI library that an mpi4py script runs on, live, and the command that starts its ranks."""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wiretwin.errors import InputError, ProgramError
from wiretwin.place import HERE, Apart, Place
from wiretwin.predict.model import LAYER
from wiretwin.stacks.layers import refusal
from wiretwin.stacks.mpi import MpiSession
from wiretwin.stacks.scripts import of_script

__all__ = ["Library", "launcher", "library"]


@dataclass(frozen=True, slots=True)
class Library:
    """A library that is up at a place.

    Attributes
    ----------
    layer
        Its name as a layer, ``mpi4py/mpich``.
    words
        The launcher's command, which the number of ranks and the program follow.
    name
        The library and its version, and that of mpi4py.
    env
        Variables for the launcher and the ranks.
    exports
        The launcher's word that a variable's name follows which is to reach ranks on other machines; none if
        all of its own do.
    """

    layer: str
    words: Sequence[str]
    name: str
    env: Mapping[str, str] = field(default_factory=dict)
    exports: str | None = None

    def command(self, ranks: int, variables: Iterable[str] = ()) -> list[str]:
        """Return the words that start the program behind them on `ranks` ranks, with these variables."""
        names = variables if self.exports is not None else ()
        handed_on = [word for name in names for word in (str(self.exports), name)]
        return [*self.words, "-n", str(ranks), *handed_on]


@contextlib.contextmanager
def library(layer: str = LAYER, place: Place = HERE) -> Iterator[Library]:
    """Bring a library up at a place, for scripts.

    Raises
    ------
    InputError
        It carries no scripts, or is not to be had at this place: with the reason and the cure.
    ProgramError
        The launcher is missing.
    """
    configuration = of_script(layer)
    mpi4py = f"mpi4py {importlib.metadata.version('mpi4py')}"
    if configuration.name == LAYER:
        yield Library(LAYER, launcher(place), f"mpich {importlib.metadata.version('mpich')}, {mpi4py}")
        return
    if refused := refusal(configuration, place):
        raise InputError(key="--layer", value=layer, reason=refused.reason, allowed=f"after `{refused.cure}`")
    stack = configuration.kind.stack
    assert stack is not None, "a layer of mpi4py is a messaging library's"
    with stack.up(place, configuration.options) as session:
        assert isinstance(session, MpiSession), "a library of MPI has a launcher"
        name = f"{session.report['launcher']}, {mpi4py}"
        yield Library(configuration.name, session.launcher, name, session.env, session.exports)


def launcher(place: Place = HERE) -> list[str]:
    """Return the command that starts processes with this environment's MPI, on the hosts in turn.

    Raises
    ------
    ProgramError
        There is no such command.
    """
    mpiexec = Path(sys.executable).parent / "mpiexec"
    if not mpiexec.exists():
        raise ProgramError(
            f"no mpiexec beside {sys.executable}: install the package mpich into its environment"
        )
    reach: list[str] = []
    if place.agent is not None:
        names = ",".join(host.name for host in place.hosts)
        reach = ["-launcher", "rsh", "-launcher-exec", str(place.agent), "-hosts", names]
    if isinstance(place, Apart):
        reach += ["-localhost", place.hosts[0].address]  # which its own name need not lead the others to
    return [str(mpiexec), *reach]
