"""Machines reached over ssh, by mpiexec, or by srun in an allocation of Slurm, as a `wiretwin.place.Place`.

No directory is shared: each machine keeps a copy of one under the same path, and this process carries what
appears in one to the others. Ranks are started from here; launchers of MPI and the daemons of PVM
start theirs in the same way from the first machine, which therefore must be let in at the others.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import secrets
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wiretwin import process, scratch
from wiretwin.errors import InputError, MeasureError
from wiretwin.marks import LAUNCH
from wiretwin.place import Counters, HostPlace
from wiretwin.remote.agent import NONCE
from wiretwin.remote.folder import OWN, Mirror
from wiretwin.remote.machine import BUILD_S, AnyLogin, Login, Machine, RemoteHost
from wiretwin.remote.mpiexec import launched
from wiretwin.remote.slurm import allocated, node
from wiretwin.stacks.base import StackError

__all__ = ["Remote"]

PARENT = Path("/tmp")
"""Where the folder is made on every machine: what every one of them has, and paths stay short."""
PING_S = 6.0
"""How long a machine may take to say that it is there, seconds."""
LOGIN_S = 20.0

_AGENT = """#!/bin/sh
# A remote shell for launchers: HOST [-n] [-x] [-l USER] COMMAND...
while [ $# -gt 0 ]; do
  case $1 in
    -l) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=$1; shift
case $host in
{cases}  *) echo "no machine $host in this run" >&2; exit 2 ;;
esac
exec {reach} "${{{mark}:+{mark}=${mark}}} $*"
"""


class Remote:
    """Machines over ssh; made by `Remote.up`."""

    def __init__(
        self,
        directory: Path,
        machines: Sequence[Machine],
        hosts: Sequence[RemoteHost],
        facts: Sequence[Mapping[str, Any]],
        mirror: Mirror,
    ) -> None:
        self._directory = directory
        self._machines = tuple(machines)
        self._hosts = tuple(hosts)
        self._facts = tuple(facts)
        self._mirror = mirror
        self._turn = threading.Lock()
        self._agent_checked = False

    @classmethod
    @contextlib.contextmanager
    def up(
        cls, words: Sequence[str], *, options: Sequence[str] = (), python: str = "python3"
    ) -> Iterator[Remote]:
        """Log in at each machine, check it, and make the folder there; leave nothing behind at the end.

        Parameters
        ----------
        words
            The machines as ssh knows them, at least two.
        options
            Options for ssh, as after its ``-o``.
        python
            The Python of the machines that has wiretwin.

        Raises
        ------
        InputError
            Fewer than two machines, or a word that is none.
        MeasureError
            A machine cannot be reached, cannot be logged in at, has not the same wiretwin, or has no way to
            the others.
        """
        _check(words, options)
        with cls._up([Login(word, tuple(options), python) for word in words]) as made:
            yield made

    @classmethod
    @contextlib.contextmanager
    def launched(cls, words: Sequence[str], *, python: str = "python3") -> Iterator[Remote]:
        """Reach each machine by ``mpiexec``; as `up`.

        Parameters
        ----------
        words
            The machines as ``mpiexec`` knows them, at least two.
        python
            The Python of the machines that has wiretwin.

        Raises
        ------
        InputError
            Fewer than two machines, or a word that is none.
        MeasureError
            A machine cannot be reached, or has not the same wiretwin.
        """
        _check(words, ())
        with cls._up([launched(word, python) for word in words]) as made:
            yield made

    @classmethod
    @contextlib.contextmanager
    def allocated(cls, words: Sequence[str] = (), *, python: str = "python3") -> Iterator[Remote]:
        """Reach the nodes of the allocation that this process runs in, by srun; as `up`.

        Parameters
        ----------
        words
            Nodes of it, at least two; by default all.
        python
            The Python of the nodes that has wiretwin.

        Raises
        ------
        InputError
            There is no allocation of two nodes or more, or a word is none of its nodes.
        MeasureError
            Slurm does not answer, or a node cannot be reached or has not the same wiretwin.
        """
        job, nodes = allocated()
        for word in words:
            if word not in nodes:
                allowed = f"nodes of the allocation: {', '.join(nodes)}"
                raise InputError(key="--between", value=word, allowed=allowed)
        with cls._up([node(name, job, python) for name in words or nodes]) as made:
            yield made

    @classmethod
    @contextlib.contextmanager
    def _up(cls, logins: Sequence[AnyLogin]) -> Iterator[Remote]:
        with scratch.folder(PARENT, logins[0].by) as directory, contextlib.ExitStack() as stack:
            mirror = Mirror(directory)
            place: list[Remote] = []

            def changed(machine: Machine, message: dict[str, Any]) -> None:
                if place:
                    place[0]._carry(machine, message)

            machines = []
            for login in logins:
                machine = Machine(login, changed)
                stack.callback(machine.close)
                machines.append(machine)
            nonce = secrets.token_hex(16)
            (directory / NONCE).write_text(nonce)
            facts = [machine.ask("join", folder=str(directory), nonce=nonce) for machine in machines]
            mirror.changes()
            made = cls(directory, machines, (), facts, mirror)
            routes = made._routes()
            made._hosts = tuple(
                RemoteHost(machine.login, route["address"], route["interface"], made.settle)
                for machine, route in zip(machines, routes, strict=True)
            )
            made._write_agent()
            place.append(made)
            yield made

    def _routes(self) -> list[Mapping[str, str]]:
        """Find the address and interface of each machine on its way to the next, and of that back."""
        reached = []
        for machine, facts in zip(self._machines, self._facts, strict=True):
            if machine.login.address is not None:
                reached.append(machine.login.address)
                continue
            if len(facts["reached"]) != 4:
                raise MeasureError(
                    f"{machine.login.word}: its sshd does not say by which address it was reached"
                )
            reached.append(facts["reached"][2])
        first, *others = self._machines
        routes = [first.ask("route", to=reached[1])]
        routes += [machine.ask("route", to=routes[0]["address"]) for machine in others]
        return routes

    def _write_agent(self) -> None:
        cases = "".join(
            f"  {host.address}) to={shlex.quote(machine.login.word)} ;;\n"
            for machine, host in zip(self._machines, self._hosts, strict=True)
        )
        reach = self._machines[0].login.for_any
        scratch.program(self._directory / "agent", _AGENT.format(cases=cases, reach=reach, mark=LAUNCH))

    @property
    def hosts(self) -> Sequence[HostPlace]:
        """The machines, named by their addresses."""
        return self._hosts

    @property
    def agent(self) -> Path | None:
        """A remote shell that calls ssh, srun or mpiexec; it works on the first machine.

        Raises
        ------
        StackError
            The first machine is not let in at another one.
        """
        path = self._directory / "agent"
        if not self._agent_checked:
            for host in self._hosts[1:]:
                argv = self._hosts[0].command([str(path), host.name, "true"])
                try:
                    done = process.run(argv, limit_s=LOGIN_S)
                    said, code = done.last_words(2), done.returncode
                except process.TimeLimit as late:
                    said, code = str(late), 1
                if code != 0:
                    first = self._machines[0].login.word
                    raise StackError(
                        f"{first} is not let in at {host.login.word} by {host.login.by}, by which launchers "
                        f"start ranks there: {said or 'no reason given'}"
                    )
            self._agent_checked = True
        return path

    @property
    def directory(self) -> Path:
        """The folder that every machine has a copy of."""
        return self._directory

    @property
    def pins(self) -> tuple[int, int] | None:
        """A CPU for each of two ranks: on two machines the first choice of each, on one its two."""
        first, second = self._facts[0], self._facts[1 if len(self._facts) > 1 else 0]
        if len(first["cpus"]) < 2 or len(second["cpus"]) < 2:
            return None
        same = first["boot"] == second["boot"]
        return int(first["cpus"][0]), int(second["cpus"][1 if same else 0])

    def settle(self) -> None:
        """Carry what has changed in this process's copy to all machines; returns when it is there.

        Raises
        ------
        StackError
            A machine is lost, or rejects.
        """
        with self._turn:
            messages = self._mirror.changes()
        if messages:
            try:
                for machine in self._machines:
                    machine.ask("put", messages=messages)
            except MeasureError as error:
                raise StackError(str(error)) from None

    def _carry(self, source: Machine, message: dict[str, Any]) -> None:
        """Take a change of one machine's copy, and hand it to the others. Runs in that machine's thread."""
        with self._turn, contextlib.suppress(OSError, ValueError):
            self._mirror.take(message)
        for machine in self._machines:
            if machine is not source:
                machine.tell("put", messages=[message])

    @property
    def own(self) -> Path:
        """A folder that every machine has for itself; see `wiretwin.place.Apart`."""
        return self._directory / OWN

    def gather(self, files: Sequence[Path]) -> None:
        """Bring here files that are not carried by themselves; see `wiretwin.place.Apart`."""
        names = [str(file.relative_to(self._directory)) for file in files]
        for machine in self._machines:
            for name, text in machine.ask("read", names=names).items():
                if name in names:
                    (self._directory / name).write_bytes(base64.b64decode(text))

    def end(self, mark: str) -> None:
        """End what carries a mark on any machine, and remove shared memory that it leaves."""
        for machine in self._machines:
            with contextlib.suppress(MeasureError):
                machine.ask("end", mark=mark)

    def build(
        self, source: str, compiler: Sequence[str], libraries: Sequence[str], flags: Sequence[str]
    ) -> Path:
        """Build a shim on every machine by its own compiler; return its path, the same on each.

        Raises
        ------
        MeasureError
            One of them cannot.
        """
        words = [source, *compiler, *libraries, *flags]
        digest = hashlib.sha256("\0".join(words).encode()).hexdigest()[:24]
        path = ""
        for host, machine in zip(self._hosts, self._machines, strict=True):
            path = machine.ask(
                "build",
                BUILD_S,
                source=source,
                compiler=[host.there(word) for word in compiler],
                libraries=list(libraries),
                flags=list(flags),
                digest=digest,
            )
        return Path(path)

    def refusal(self, layer: str) -> tuple[str, str] | None:
        """Say why a layer cannot run on one of the machines, and what may change that."""
        for machine in self._machines:
            found = machine.ask("refusal", layer=layer)
            if found is not None:
                return f"{machine.login.word}: {found[0]}", found[1]
        return None

    def counters(self) -> Mapping[str, Counters]:
        """Return what each machine's interface has carried; see `wiretwin.place.Place`."""
        found = {}
        for host, machine in zip(self._hosts, self._machines, strict=True):
            numbers = machine.ask("counters", interface=host.interface)
            if numbers is None:
                raise MeasureError(f"{machine.login.word} has lost its interface {host.interface}")
            found[host.name] = Counters(*numbers)
        return found

    def trouble(self) -> str | None:
        """Ask every machine whether it is there; say which is not."""
        for machine in self._machines:
            try:
                machine.ask("ping", PING_S)
            except MeasureError as error:
                return str(error)
        return None

    def among(self, numbers: Sequence[int]) -> Remote:
        """Return some of the machines; what changes in the folder still goes to all. See `Place`."""
        machines, hosts, facts = (
            [every[number] for number in numbers] for every in (self._machines, self._hosts, self._facts)
        )
        return Remote(self._directory, machines, hosts, facts, self._mirror)  # type: ignore[arg-type]

    def describe(self) -> dict[str, Any]:
        """Return the machines with what they are, for a manifest."""
        return {
            "kind": self._machines[0].login.by,
            "hosts": [
                {
                    "name": machine.login.word,
                    "address": host.address,
                    "interface": host.interface,
                    "host": facts["host"],
                }
                for machine, host, facts in zip(self._machines, self._hosts, self._facts, strict=True)
            ],
        }


def _check(words: Sequence[str], options: Sequence[str]) -> None:
    if len(words) < 2:
        raise InputError(key="--between", value=" ".join(words), allowed="two machines or more")
    for word in words:
        if not word or word.startswith("-") or any(char.isspace() for char in word):
            raise InputError(key="--between", value=word, allowed="names of machines as ssh knows them")
    for option in options:
        if "=" not in option:
            raise InputError(
                key="--ssh-option",
                value=option,
                allowed="NAME=VALUE, such as Port=2222 or IdentityFile=/path",
            )
