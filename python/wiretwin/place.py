"""Where the ranks of a launch live: this host, hosts of a testbed, or machines over ssh.

What starts processes is handed a `Place` and asks it for commands; it does not know which kind it is.
Rank r lives on ``place.hosts[r % len(place.hosts)]``.

- `HERE`: this host alone
- `wiretwin.testbed.Testbed`: hosts that are network namespaces of this machine
- `wiretwin.remote.Remote`: machines reached over ssh
"""

from __future__ import annotations

import os
import platform
import pwd
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from wiretwin import scratch, shared_memory
from wiretwin.errors import InputError

__all__ = [
    "HERE",
    "Apart",
    "Counters",
    "Here",
    "HostPlace",
    "Place",
    "as_user",
    "host_of",
    "interfaces",
    "read_counters",
    "with_env",
]


@dataclass(frozen=True, slots=True)
class Counters:
    """What an interface has carried since it was made, as the kernel counts it.

    With segmentation offload the kernel counts what it hands to the interface, which may be longer than
    the frames on a wire: packets are then fewer, and bytes lack the headers of the segments.
    """

    bytes_in: int
    bytes_out: int
    packets_in: int
    packets_out: int

    def __sub__(self, before: Counters) -> Counters:
        """Return what was carried since `before`."""
        return Counters(
            self.bytes_in - before.bytes_in,
            self.bytes_out - before.bytes_out,
            self.packets_in - before.packets_in,
            self.packets_out - before.packets_out,
        )


class HostPlace(Protocol):
    """One host of a place."""

    @property
    def name(self) -> str:
        """Its name, which resolves to `address` on every host of the place."""

    @property
    def address(self) -> str:
        """Its IP address as the other hosts see it."""

    @property
    def interface(self) -> str:
        """The interface that has `address`: ``eth0``, ``lo``."""

    @property
    def core(self) -> int | None:
        """The CPU that all it runs stays on; ``None`` if it has more than one."""

    def command(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> list[str]:
        """Return the command that, started here, runs `argv` on that host.

        Standard streams, exit status and signals pass through. `argv` is a program and its arguments,
        not words for a shell. Where that host can see the caller's working directory, it starts there.

        Parameters
        ----------
        env
            Variables set for it, besides those that host gives it (those of the caller, where the host is
            on this machine).
        user
            Who it runs as; by default whoever runs this process. Another than oneself needs root.

        Raises
        ------
        InputError
            No such user, or not permitted to be it.
        """


class Place(Protocol):
    """One or more hosts, and what they share."""

    @property
    def hosts(self) -> Sequence[HostPlace]:
        """One or more; rank r lives on ``hosts[r % len(hosts)]``."""

    @property
    def agent(self) -> Path | None:
        """A remote shell, ``AGENT [-l USER] HOST COMMAND…``, as launchers of MPI and PVM use one.

        It takes the words as ``rsh`` does: joined by blanks and read by a shell there. It works on every
        host of the place. ``None`` on a single host.
        """

    @property
    def directory(self) -> Path:
        """A directory with the same path and content on every host, for what belongs to a launch.

        Whoever makes something in it removes it.
        """

    def counters(self) -> Mapping[str, Counters]:
        """Return what the interface of each host has carried so far, by the host's name.

        Raises
        ------
        MeasureError
            A host is gone.
        """

    def trouble(self) -> str | None:
        """Say what has become of the place, if something has: a host gone, a wire that ended."""

    def among(self, numbers: Sequence[int]) -> Place:
        """Return the place with some of its hosts, by their places in `hosts`; it goes when this one does."""

    def describe(self) -> dict[str, Any]:
        """Describe the place for a manifest: hosts, link and its parameters."""


def interfaces(place: Place) -> str:
    """Return the interfaces of a place's hosts, joined by commas, each once."""
    return ",".join(dict.fromkeys(host.interface for host in place.hosts))


@runtime_checkable
class Apart(Protocol):
    """What a place adds whose hosts are other machines, with programs and processes of their own."""

    @property
    def pins(self) -> tuple[int, int] | None:
        """A CPU for each of two ranks; none if the machines have too few."""

    def build(
        self, source: str, compiler: Sequence[str], libraries: Sequence[str], flags: Sequence[str]
    ) -> Path:
        """Build a shim on every machine; return its path, the same on each."""

    def refusal(self, layer: str) -> tuple[str, str] | None:
        """Say why a layer cannot run on one of them, and the line that may change it."""

    @property
    def own(self) -> Path:
        """A folder that every machine has for itself under the same path; it goes with the place."""

    def gather(self, files: Sequence[Path]) -> None:
        """Bring here files of the folder that are not carried by themselves, from whichever machine has them.

        Their names begin with ``log``: processes write to them for long. The first MiB of each is brought.

        Raises
        ------
        MeasureError
            A machine is lost.
        """

    def end(self, mark: str) -> None:
        """End what carries the mark of a launch or a session on any of them, with what it leaves."""


def host_of(place: Place, rank: int) -> HostPlace:
    """Return the host that a rank lives on."""
    return place.hosts[rank % len(place.hosts)]


def cores_of(place: Place, ranks: int) -> tuple[int, ...] | None:
    """Return the CPU of each rank, where every host has one; else nothing."""
    cores = [host_of(place, rank).core for rank in range(ranks)]
    found = tuple(core for core in cores if core is not None)
    return found if len(found) == ranks else None


def with_env(argv: Sequence[str], env: Mapping[str, str] | None) -> list[str]:
    """Return the command with variables set by ``env`` of the system, if there are any."""
    return ["env", *(f"{key}={value}" for key, value in env.items()), *argv] if env else list(argv)


def as_user(argv: Sequence[str], user: str | None) -> list[str]:
    """Return the command as another user of this machine, by ``setpriv`` of util-linux.

    Raises
    ------
    InputError
        No such user, or this process may not be another one.
    """
    if user is None:
        return list(argv)
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise InputError(key="user", value=user, reason="is no user of this machine") from None
    if entry.pw_uid == os.geteuid():
        return list(argv)
    if os.geteuid() != 0:
        raise InputError(
            key="user", value=user, reason="is another user", allowed=f"{_own_name()}; as root, any"
        )
    ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups"]
    who = {"HOME": entry.pw_dir, "USER": user, "LOGNAME": user}
    return ["setpriv", *ids, "--", *with_env(argv, who)]


def _own_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"the user with number {os.geteuid()}"


def read_counters(text: str, interface: str) -> Counters | None:
    """Find an interface in the text of ``/proc/net/dev``; nothing if it is not there."""
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if colon and name.strip() == interface:
            numbers = [int(word) for word in rest.split()]
            return Counters(numbers[0], numbers[8], numbers[1], numbers[9])
    return None


@dataclass(frozen=True, slots=True)
class _ThisHost:
    name: str
    address: str = "127.0.0.1"
    interface: str = "lo"
    core: int | None = None

    def command(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> list[str]:
        return as_user(with_env(argv, env), user)


class Here:
    """The machine we run on, alone; its ranks meet on the loopback interface."""

    agent: Path | None = None

    @property
    def hosts(self) -> Sequence[HostPlace]:
        """The one host, named as it names itself."""
        return (_ThisHost(platform.node() or "localhost"),)

    @property
    def directory(self) -> Path:
        """Where directories of launches are made: in memory where there is room for them.

        Paths are short there as well, which the name of a Unix socket must be.
        """
        found = shared_memory.room()
        roomy = found is not None and found.free >= shared_memory.ROOM_BYTES
        return shared_memory.FOLDER if roomy else scratch.temporary()

    def counters(self) -> Mapping[str, Counters]:
        """Return what the loopback interface has carried, whoever sent it."""
        (host,) = self.hosts
        found = read_counters(Path("/proc/self/net/dev").read_text(), host.interface)
        return {} if found is None else {host.name: found}

    def trouble(self) -> str | None:
        """Nothing ever: this host is here."""
        return None

    def among(self, numbers: Sequence[int]) -> Here:
        """Return this place, which has one host."""
        return self

    def describe(self) -> dict[str, Any]:
        """Name the one host."""
        (host,) = self.hosts
        return {"kind": "here", "hosts": [{"name": host.name, "address": host.address}]}


HERE = Here()
"""This host alone."""
