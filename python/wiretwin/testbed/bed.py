"""A testbed as its users see it: brought up, found again, entered, taken down."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from wiretwin.errors import InputError, MeasureError
from wiretwin.marks import RUN
from wiretwin.place import Counters, HostPlace, with_env
from wiretwin.testbed.keeper import SCRIPT, SETUP_LIMIT_S, STAY
from wiretwin.testbed.plan import Link, Plan, make_plan
from wiretwin.testbed.processes import end_processes, marked_by
from wiretwin.testbed.state import Folder, Identity, ask, base, checked_name, folders, locked

__all__ = ["DEFAULT_NAME", "Testbed", "clean", "survey", "take_down"]

DEFAULT_NAME = "default"
ENDING_S = 1.0
"""How long a keeper that does not answer is given to be gone."""
DOWN_LIMIT_S = 15.0
"""How long a keeper may take to take its testbed down before it is killed."""


@dataclass(frozen=True, slots=True)
class BedHost:
    """One host of a testbed; a `wiretwin.place.HostPlace`."""

    name: str
    address: str
    interface: str
    core: int | None
    folder: Path
    rootless: bool

    def command(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> list[str]:
        """Return the command that runs `argv` on this host; see `wiretwin.place.HostPlace`."""
        if user is not None:
            self._check_user(user)
        return self.entering(with_env(argv, env), *(["--user", user] if user is not None else []))

    def entering(self, argv: Sequence[str], *options: str) -> list[str]:
        """Return the command with options of `wiretwin.testbed.enter`."""
        way = str(Folder(self.folder).way / SCRIPT)
        return [sys.executable, "-B", "-I", "-S", way, str(self.folder), *options, self.name, *argv]

    def entering_strictly(self, argv: Sequence[str], user: str | None = None) -> list[str]:
        """Return the command, which is rejected there if the host does not see the working directory."""
        if user is not None:
            self._check_user(user)
        return self.entering(argv, "--strict", *(["--user", user] if user is not None else []))

    def _check_user(self, user: str) -> None:
        import pwd

        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            raise InputError(key="user", value=user, reason="is no user of this machine") from None
        if entry.pw_uid != os.geteuid() and (self.rootless or os.geteuid() != 0):
            raise InputError(
                key="user", value=user, reason="is another user", allowed="in a testbed that root made, any"
            )


class Testbed:
    """Hosts that are namespaces of this machine; a `wiretwin.place.Place`.

    A context manager that takes the testbed down at its end. `up` makes one, `find` finds one that stands.
    """

    __test__ = False  # not a test, whatever its name

    def __init__(self, folder: Folder, state: dict[str, Any], keeper: subprocess.Popen[bytes] | None) -> None:
        self.folder = folder
        self._state = state
        self._process = keeper
        self._lifeline: int | None = None
        self._hosts = tuple(
            BedHost(
                host["name"],
                host["address"],
                host["interface"],
                host["core"],
                folder.path,
                state.get("user") is not None,
            )
            for host in state["hosts"]
        )

    @classmethod
    def up(
        cls,
        hosts: int = 2,
        link: Link | None = None,
        *,
        name: str | None = None,
        share: Sequence[str | Path] = (),
        stay: bool = False,
        rootless: bool | None = None,
    ) -> Self:
        """Make a testbed.

        Parameters
        ----------
        hosts
            How many, 1 to 64: ``h1``, ``h2``, …
        link
            What joins them; by default virtual Ethernet as fast as it goes.
        name
            By which others find it; by default one that nobody else has.
        share
            Folders that the hosts see although they lie in ``/tmp``, ``/run`` or ``/dev/shm``, of which every
            host has its own.
        stay
            It outlives this process. Otherwise it is taken down when this process ends, however it ends.
        rootless
            Made inside a user namespace, as ordinary users can where the system lets them; by default by all
            but root.

        Raises
        ------
        InputError
            An argument is wrong, or there is one of that name.
        MeasureError
            It cannot be made here; the text says what would help. Nothing is left of it.
        """
        link = link or Link()
        plan = make_plan(hosts, link, share)
        if name is not None:
            checked_name(name)
        rootless = os.geteuid() != 0 if rootless is None else rootless
        _check_machine(link)
        order = {
            "base": str(base()),
            "name": name,
            "plan": plan.to_json(),
            "rootless": rootless,
            "interpreter": _interpreter(),
        }
        reader, writer = os.pipe2(os.O_CLOEXEC)
        process: subprocess.Popen[bytes] | None = None
        last_words = os.memfd_create("last words")
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "wiretwin.testbed.keeper", json.dumps(order), str(reader)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=last_words,
                pass_fds=(reader,),
                env={key: value for key, value in os.environ.items() if key != RUN},
                start_new_session=True,
            )
            folder = _await_ready(process, rootless, last_words)
            state = folder.read("state.json")
            if state is None:
                raise MeasureError(f"testbed {folder.name!r}: its state is missing in {folder.path}")
            if stay:
                os.write(writer, STAY)
            bed = cls(folder, state, process)
            bed._lifeline = writer
            return bed
        except BaseException:
            # The keeper sees the end of its lifeline, and takes down what there is.
            os.close(writer)
            if process is not None:
                _wait(process)
            raise
        finally:
            if process is not None and process.stdout is not None:
                process.stdout.close()
            os.close(last_words)
            os.close(reader)

    @classmethod
    def find(cls, name: str = DEFAULT_NAME) -> Self:
        """Return a testbed that stands, whoever made it.

        Raises
        ------
        InputError
            There is none of that name.
        MeasureError
            There was one, and its keeper has been killed.
        """
        folder = next((one for one in folders() if one.name == name), None)
        state = folder.read("state.json") if folder is not None else None
        if folder is None:
            there = ", ".join(one.name for one in folders() if one.alive)
            allowed = there or "none is up; `wiretwin testbed up` makes one"
            raise InputError(key="testbed", value=name, reason="is not up", allowed=allowed)
        if not folder.alive:
            raise MeasureError(
                f"testbed {name!r} is gone: its keeper was ended; "
                "`wiretwin testbed clean` removes what is left"
            )
        if state is None:
            raise MeasureError(f"testbed {name!r} is being made; try again")
        return cls(folder, state, None)

    @property
    def name(self) -> str:
        """By which others find it."""
        return self.folder.name

    @property
    def hosts(self) -> Sequence[HostPlace]:
        """Its hosts, in order."""
        return self._hosts

    def host(self, name: str) -> BedHost:
        """Return a host by its name.

        Raises
        ------
        InputError
            There is none of that name.
        """
        for host in self._hosts:
            if host.name == name:
                return host
        names = ", ".join(host.name for host in self._hosts)
        raise InputError(key=f"testbed {self.name!r}", value=name, reason="is no host", allowed=names)

    @property
    def visible(self) -> Sequence[str]:
        """Folders that its hosts see although they lie in one that each has for itself."""
        plan = self.folder.read("plan.json")
        return Plan.from_json(plan).visible if plan is not None else ()

    @property
    def agent(self) -> Path | None:
        """Its remote shell, which works on every host and here, also for other users."""
        return self.folder.agent

    @property
    def directory(self) -> Path:
        """The folder that every host sees under the same path; everybody may write to it."""
        return self.folder.shared

    def counters(self) -> Mapping[str, Counters]:
        """Return what the interface of each host has carried so far.

        Raises
        ------
        MeasureError
            The testbed is gone, or a host has lost its interface.
        """
        found = ask(self.folder, {"do": "counters"})
        lost = [name for name, numbers in found.items() if numbers is None]
        if lost or "error" in found:
            reason = found.get("error") or f"{lost[0]} has lost its interface"
            raise MeasureError(f"testbed {self.name!r}: {reason}")
        return {name: Counters(*numbers) for name, numbers in found.items()}

    def wire_counters(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return what the wire has counted so far on the way to each host, queue by queue.

        A queue says its ``queue`` (a class, ``others``, or ``all`` where there is one), ``sent``,
        ``sent_bytes`` and ``drops``, and of background load ``background`` and ``background_drops``: frames,
        but for the bytes.

        Raises
        ------
        MeasureError
            The testbed is gone, or its link is no wire.
        """
        found = ask(self.folder, {"do": "wire"})
        if "error" in found:
            raise MeasureError(f"testbed {self.name!r}: {found['error']}")
        plan = self.folder.read("plan.json")
        names = Plan.from_json(plan).link.outputs.queues if plan is not None else []
        counted = {}
        for port in found["ports"]:
            whole = {
                "sent": port["delivered"],
                "sent_bytes": port["delivered_bytes"],
                "drops": port["queue_drops"] + port["switch_drops"] + port["rule_drops"],
                "background": 0,
                "background_drops": 0,
            }
            queues = port.get("queues", [whole])
            counted[port["name"]] = [
                {"queue": name} | queue for name, queue in zip(names, queues, strict=True)
            ]
        return counted

    def trouble(self) -> str | None:
        """Say what has become of it, if something has."""
        gone = f"testbed {self.name!r} is gone: its keeper was ended"
        keeper = self.folder.keeper
        if keeper is None or not keeper.alive:
            return gone
        try:
            found = ask(self.folder, {"do": "trouble"})
        except MeasureError as error:
            # One that is being ended stops answering before it is gone.
            return gone if keeper.ends_within(ENDING_S) else str(error)
        reason = found.get("trouble") or found.get("error")
        return f"testbed {self.name!r}: {reason}" if reason else None

    def among(self, numbers: Sequence[int]) -> Testbed:
        """Return this testbed with some of its hosts; see `wiretwin.place.Place`."""
        some = [self._state["hosts"][number] for number in numbers]
        return Testbed(self.folder, self._state | {"hosts": some}, None)

    def describe(self) -> dict[str, Any]:
        """Return hosts and link, for a manifest."""
        return {
            "kind": "testbed",
            "hosts": [{"name": host.name, "address": host.address} for host in self._hosts],
            "link": self._state["link"],
            "congestion": self._state["congestion"],
            "rootless": self._state.get("user") is not None,
        }

    @property
    def created_utc(self) -> str:
        """When it was made."""
        return str(self._state["created_utc"])

    def down(self) -> None:
        """Take it down: end what runs in it, remove what it left. Does nothing the second time."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        if self.folder.path.is_dir():
            _take_down(self.folder)
        if self._process is not None:
            _wait(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()


def take_down(name: str = DEFAULT_NAME) -> None:
    """Take down a testbed, whoever made it and whatever has become of it.

    Raises
    ------
    InputError
        There is none of that name.
    """
    folder = next((one for one in folders() if one.name == name), None)
    if folder is None:
        there = ", ".join(one.name for one in folders()) or "none is up"
        raise InputError(key="testbed", value=name, reason="is not up", allowed=there)
    _take_down(folder)


@dataclass(frozen=True, slots=True)
class Seen:
    """A testbed as `survey` finds it.

    Attributes
    ----------
    name, hosts, link, created_utc
        What it is; those it has not said yet are ``None``.
    state
        ``up``, ``being made``, or what is wrong with it.
    """

    name: str
    hosts: int | None
    link: str | None
    created_utc: str | None
    state: str


def survey() -> list[Seen]:
    """Look at every testbed of this user, also at what a crash left."""
    found = []
    for folder in folders():
        plan, state = folder.read("plan.json"), folder.read("state.json")
        known = Plan.from_json(plan) if plan is not None else None
        if not folder.alive:
            words = "left by a keeper that was killed; `wiretwin testbed clean` removes it"
        elif state is None:
            words = "being made"
        else:
            words = Testbed(folder, state, None).trouble() or "up"
        found.append(
            Seen(
                folder.name,
                known.count if known else None,
                known.link.words if known else None,
                str(state["created_utc"]) if state else None,
                words,
            )
        )
    return found


def clean() -> list[str]:
    """Remove what is left of testbeds whose keepers are gone; returns their names."""
    if not folders():
        return []
    cleaned = []
    with locked():
        for folder in folders():
            if not folder.alive:
                end_processes(marked_by(folder.path))
                folder.remove()
                cleaned.append(folder.name)
    return cleaned


def _take_down(folder: Folder) -> None:
    keeper = folder.keeper
    if keeper is not None and keeper.alive:
        _end(keeper, signal.SIGTERM, DOWN_LIMIT_S)
        if keeper.alive:
            _end(keeper, signal.SIGKILL, DOWN_LIMIT_S)
    _remove(folder)


def _remove(folder: Folder) -> None:
    """Remove what a keeper that is gone left."""
    if not folder.path.parent.is_dir():
        return
    with locked():
        if folder.path.is_dir():
            end_processes(marked_by(folder.path))
            folder.remove()


def _end(process: Identity, number: int, limit_s: float) -> None:
    """Send a signal and wait until the process has ended, or the limit is over."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if not process.alive:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, number)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(limit_s * 1000)
    finally:
        os.close(descriptor)


def _interpreter() -> str:
    """Return a Python that every user may run, or else ours."""
    for path in (sys.executable, os.path.realpath(sys.executable), shutil.which("python3", path="/usr/bin")):
        if path is not None and _for_everyone(Path(path)):
            return path
    return sys.executable


def _for_everyone(path: Path) -> bool:
    """Whether every user may run a program: it, and all folders on the way to it."""
    try:
        parts = [path, *path.parents, *path.resolve().parents]
        return all(part.stat().st_mode & stat.S_IXOTH for part in parts)
    except OSError:
        return False


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait for a keeper that has been told to end, and kill it if it does not."""
    try:
        process.wait(DOWN_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _await_ready(process: subprocess.Popen[bytes], rootless: bool, last_words: int) -> Folder:
    """Wait for the keeper's word; returns the testbed's folder."""
    assert process.stdout is not None
    deadline = time.monotonic() + SETUP_LIMIT_S
    said = b""
    while b"\n" not in said:
        left = deadline - time.monotonic()
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, left))
        part = os.read(process.stdout.fileno(), 4096) if readable else b""
        if not part:
            break
        said += part
    try:
        event = json.loads(said)
    except ValueError:
        lines = os.pread(last_words, 1 << 20, 0).decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "without a word")
        event = {"event": "error", "reason": f"its keeper ended: {last}"}
    if event["event"] == "ready":
        return Folder(Path(event["folder"]))
    if event["event"] == "taken":
        raise InputError(
            key="--name",
            value=event["name"],
            reason="is up already",
            allowed="another name, or `wiretwin testbed down` first",
        )
    raise MeasureError(f"the testbed cannot be made: {event['reason']}{_cure(event['reason'], rootless)}")


def _cure(reason: str, rootless: bool) -> str:
    """Say what would help, if it is a matter of rights."""
    if not any(word in reason for word in ("not permitted", "denied", "No space left")):
        return ""
    if rootless:
        return (
            "; run as root, or let users make namespaces: user.max_user_namespaces above 0, "
            "kernel.unprivileged_userns_clone 1, kernel.apparmor_restrict_unprivileged_userns 0"
        )
    return "; root needs CAP_SYS_ADMIN and CAP_NET_ADMIN, in a container for instance by --privileged"


def _check_machine(link: Link) -> None:
    """Reject what cannot work before anything is made."""
    if sys.platform != "linux":
        raise MeasureError("a testbed is made of Linux network namespaces; this system has none")
    if link.kind == "wire" and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        there = os.path.exists("/dev/net/tun")
        raise MeasureError(
            "--link wire needs the TAP devices of /dev/net/tun, "
            + ("which this user may not open: run as root" if there else "which is not there: modprobe tun")
        )
