"""PVM 3: a virtual machine of our own, one daemon on each host, up for a session and halted after it.

A daemon keeps its files where ``PVM_TMP`` says. Each daemon of a session gets a folder of its own there, so
one that already runs for the same user is neither used nor disturbed, and what a daemon leaves goes with the
folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretwin import process, scratch
from wiretwin.marks import LAUNCH
from wiretwin.place import HERE, Place
from wiretwin.stacks.apart import ApartSession
from wiretwin.stacks.base import Refusal, Session, Stack, StackError
from wiretwin.stacks.build import Shim
from wiretwin.stacks.daemons import household
from wiretwin.stacks.foreground import await_condition, daemon, end_elsewhere
from wiretwin.stacks.nature import Nature
from wiretwin.stacks.word import Word, fixed

__all__ = ["Pvm"]

UP_LIMIT_S = 20.0
"""The longest the daemons may take to come up, seconds."""
DOWN_LIMIT_S = 5.0
"""The longest they may take to obey ``halt``, seconds, before they are ended."""
PACKAGES = "pvm pvm-dev"
_SHIM = Shim("pvm.c", "cc", PACKAGES, ("-lpvm3",))

_AGENT = """#!/bin/sh
# The remote shell that pvmd starts its fellows with: HOST [-n] [-l USER] COMMAND...
options= host=
while [ $# -gt 0 ]; do
  case $1 in
    -l) options="$options -l $2"; shift 2 ;;
    -*) shift ;;
    *) if [ -z "$host" ]; then host=$1; shift; else break; fi ;;
  esac
done
exec {agent} $options "$host" env {common} PVM_TMP={folder}/"$host" "$@"
"""


def _root() -> Path:
    return Path(os.environ.get("PVM_ROOT") or "/usr/lib/pvm3")


@dataclass(frozen=True)
class _Machine:
    """A virtual machine: where its files are and how its programs are called."""

    place: Place
    directory: Path

    def folder(self, name: str) -> Path:
        """Return what is ``PVM_TMP`` on a host."""
        return self.directory / name

    @property
    def common(self) -> dict[str, str]:
        """Return the variables that are the same on every host."""
        return {
            "PVM_ROOT": str(_root()),
            "PVM_ALLOW_ROOT": "1",
            "PVM_DPATH": str(_root() / "lib" / "pvmd"),
            LAUNCH: str(self.directory),
        }

    def env(self, name: str) -> dict[str, str]:
        """Return the variables of a host."""
        variables = {**self.common, "PVM_TMP": str(self.folder(name))}
        if self.place.agent is not None:
            variables["PVM_RSH"] = str(self.directory / "rsh")
        return variables

    def prepare(self) -> None:
        """Make the folders of the hosts and the remote shell that hands on their names."""
        for host in self.place.hosts:
            self.folder(host.name).mkdir(mode=0o700)
        if self.place.agent is not None:
            words = " ".join(f"{key}={shlex.quote(value)}" for key, value in self.common.items())
            text = _AGENT.format(
                agent=shlex.quote(str(self.place.agent)),
                common=words,
                folder=shlex.quote(str(self.directory)),
            )
            scratch.program(self.directory / "rsh", text)

    def console(self, words: str, limit_s: float) -> str:
        """Give the console lines to read; return what it printed. Starts a daemon if none is there."""
        host = self.place.hosts[0]
        script = f"printf {shlex.quote(words)} | {shlex.quote(str(_root() / 'lib' / 'pvm'))}"
        done = process.run(host.command(["sh", "-c", script], env=self.env(host.name)), limit_s=limit_s)
        return done.stdout + done.stderr

    def listening(self) -> bool:
        """Whether the first daemon has said where it listens."""
        folder = self.folder(self.place.hosts[0].name)
        return any(path.stat().st_size for path in folder.glob("pvmd.*"))

    def log(self) -> str:
        """Return the last words of the daemons."""
        lines = []
        for host in self.place.hosts:
            for path in sorted(self.folder(host.name).glob("pvml.*")):
                said = [line for line in path.read_text("utf-8", "replace").splitlines() if line.strip()]
                lines += [f"{host.name}: {line}" for line in said[-3:]]
        with contextlib.suppress(OSError):
            lines += (self.directory / "pvmd.log").read_text("utf-8", "replace").splitlines()[-3:]
        return "\n".join(lines) or "it left no word"


class _PvmSession(ApartSession):
    daemons = True


class Pvm(Stack):
    """PVM 3 through its C library."""

    name = "pvm/pvm3"
    summary = "pvm_send and pvm_recv of PVM 3 through its daemons (normal route), XDR encoding; sleeping"
    options: Mapping[str, Any] = {"route": "normal", "encoding": "default"}
    words: tuple[Word, ...] = (
        fixed("advise", "task to task (PvmRouteDirect), where PVM grants it", route="direct"),
        fixed("raw", "PvmDataRaw: bytes as they are, copied into PVM's buffers", encoding="raw"),
        fixed("inplace", "PvmDataInPlace: bytes as they are, taken at the send", encoding="inplace"),
    )
    max_bytes = 1 << 30
    nature = Nature(leaves_daemons="advise")

    def refusal(self, options: Mapping[str, Any], place: Place = HERE) -> Refusal | None:
        """Look for the daemon, and build the shim."""
        for program in ("pvmd", "pvm"):
            path = _root() / "lib" / program
            if not os.access(path, os.X_OK):
                return Refusal(f"no `{path}`", f"apt-get install --no-install-recommends {PACKAGES}")
        return _SHIM.refusal()

    @contextlib.contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        """Build the shim and bring a virtual machine of our own up."""
        shim = _SHIM.at(place)
        with household(place) as home:
            machine = _Machine(place, home.directory)
            machine.prepare()
            with _daemons(machine):
                report = {"pvmd": str(_root() / "lib" / "pvmd"), "daemons": len(place.hosts)}
                env = {host.name: machine.env(host.name) for host in place.hosts}
                for variables in env.values():
                    del variables[LAUNCH]  # a rank carries the mark of its launch
                yield _PvmSession(place, shim=shim, options=options, report=report, env=env)


@contextlib.contextmanager
def _daemons(machine: _Machine) -> Iterator[None]:
    place = machine.place
    first = place.hosts[0]
    # pvmd asks the name service for its own name; a single host needs no name.
    name = first.name if place.agent is not None else first.address
    argv = [str(_root() / "lib" / "pvmd"), f"-n{name}"]
    try:
        with daemon(first, argv, env=machine.env(first.name), log=machine.directory / "pvmd.log") as master:
            try:
                _wait_for(machine, master)
                _add(machine)
                yield
            finally:
                _halt(machine, master)
    except OSError as error:
        raise StackError(f"pvmd on {first.name}: {error.strerror or error}") from None
    finally:
        end_elsewhere(place, str(machine.directory))


def _wait_for(machine: _Machine, master: subprocess.Popen[bytes]) -> None:
    """Wait until the first daemon listens."""
    await_condition(lambda: master.poll() is not None or machine.listening(), UP_LIMIT_S)
    host = machine.place.hosts[0].name
    if master.poll() is not None:
        ended = process.ending(master.returncode)
        raise StackError(f"pvmd on {host} ended with {ended}:\n{machine.log()}")
    if not machine.listening():
        raise StackError(f"pvmd on {host} did not listen within {UP_LIMIT_S:g} s:\n{machine.log()}")


def _add(machine: _Machine) -> None:
    """Add the other hosts to the virtual machine."""
    hosts = machine.place.hosts
    if len(hosts) == 1:
        return
    lines = "".join(f"add {host.name}\\n" for host in hosts[1:])
    try:
        said = machine.console(f"{lines}conf\\nquit\\n", UP_LIMIT_S * len(hosts))
    except process.TimeLimit as late:
        words = late.finished.last_words()
        raise StackError(f"PVM's console did not add the hosts: {late}\n{words}\n{machine.log()}") from None
    match = re.search(r"^(?:pvm> )*(\d+) hosts?, \d+ data format", said, re.MULTILINE)
    if match is None or int(match[1]) != len(hosts):
        raise StackError(
            f"{match[1] if match else 'none'} of {len(hosts)} hosts joined the virtual machine:\n"
            f"{said.strip()}\n{machine.log()}"
        )


def _halt(machine: _Machine, master: subprocess.Popen[bytes]) -> None:
    """Ask the daemons to end. The console would start one if none were there."""
    if master.poll() is not None:
        return
    with contextlib.suppress(OSError, process.TimeLimit):
        machine.console("halt\\n", DOWN_LIMIT_S)
    await_condition(lambda: master.poll() is not None, DOWN_LIMIT_S)
