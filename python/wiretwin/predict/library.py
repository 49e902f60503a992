"""The MPI library that a program runs on, live, and the command that starts its ranks."""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wiretwin import scratch
from wiretwin.errors import InputError, ProgramError
from wiretwin.place import HERE, Apart, Place
from wiretwin.predict.model import LAYER
from wiretwin.predict.timer import Timer
from wiretwin.stacks import simulated
from wiretwin.stacks.layers import Configuration, parse_layer, refusal
from wiretwin.stacks.mpi import MpiSession
from wiretwin.stacks.scripts import of_script

__all__ = ["Library", "launcher", "library", "library_of"]


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
    timer
        What times the ranks of an executable file; none for scripts, which time themselves.
    """

    layer: str
    words: Sequence[str]
    name: str
    env: Mapping[str, str] = field(default_factory=dict)
    exports: str | None = None
    timer: Timer | None = None

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
    with _up(configuration, layer, place) as session:
        name = f"{session.report['launcher']}, {mpi4py}"
        yield Library(configuration.name, session.launcher, name, session.env, session.exports)


@contextlib.contextmanager
def library_of(programs: Sequence[Path], layer: str | None = None, place: Place = HERE) -> Iterator[Library]:
    """Bring up at a place the library of programs: of scripts, or of executable files built for it.

    Parameters
    ----------
    programs
        One or more, all scripts or all executable files for one library.
    layer
        That of the library, where its variant is not the usual one; by default ``mpi4py/mpich`` for scripts.

    Raises
    ------
    InputError
        The programs are for several libraries, the layer is another library's, or it is not to be had here.
    ProgramError, StackError
        The launcher is missing; what times the ranks cannot be built.
    """
    executable = [simulated.is_executable(program) for program in programs]
    if not any(executable):
        with library(layer or LAYER, place) as on:
            yield on
        return
    needs = [simulated.needed(program) for program in programs]
    if not all(executable) or len({one.name for one in needs}) > 1:
        raise InputError(key="program", reason="one library at a time", allowed="programs for the same one")
    found = needs[0]
    if isinstance(place, Apart):
        allowed = "here and on hosts of a testbed; on other machines, scripts"
        raise InputError(key="program", value=str(programs[0]), reason="is compiled", allowed=allowed)
    configuration = parse_layer(layer or found.layer, "--layer")
    if configuration.kind.name != found.layer:
        allowed = f"{found.layer} or a variant of it: the program is built for it"
        raise InputError(key="--layer", value=layer, allowed=allowed)
    if found.name == "mpich":
        # The one that is simulated: its functions are those of Debian's.
        if configuration.options["wait"] == "yield":
            raise InputError(key="--layer", value=layer, reason="only what measures it gives way")
        if configuration.options["edition"] != "wheel":
            configuration = parse_layer(f"{layer or found.layer}+wheel", "--layer")
    with _up(configuration, layer or found.layer, place) as session, scratch.folder(what="names") as names:
        yield Library(
            layer or found.layer,
            session.launcher,
            str(session.report["launcher"]),
            {**session.env, **found.paths(names)},
            session.exports,
            Timer(found),
        )


@contextlib.contextmanager
def _up(configuration: Configuration, layer: str, place: Place) -> Iterator[MpiSession]:
    """Bring a library up that has a launcher of its own."""
    if refused := refusal(configuration, place):
        raise InputError(key="--layer", value=layer, reason=refused.reason, allowed=f"after `{refused.cure}`")
    stack = configuration.kind.stack
    assert stack is not None, "a layer of MPI is a messaging library's"
    with stack.up(place, configuration.options) as session:
        assert isinstance(session, MpiSession), "a library of MPI has a launcher"
        yield session


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
