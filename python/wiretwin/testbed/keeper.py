"""The keeper of a testbed: the process that makes it, holds it, and takes it down.

``python -m wiretwin.testbed.keeper ORDER LIFELINE``, the order being JSON.

All namespaces are held by this process alone, so that a testbed is whole or gone: whatever happens to the
keeper, the kernel removes namespaces, interfaces and mounts with it. It ends, and cleans up, when it is
told to (SIGTERM) and when the lifeline, a pipe, is closed by whoever made it before it was told to stay. It
prints one line when everything stands, or why it does not.

It also does what only it can: it reads the interfaces' counters, and starts commands in the hosts for
ordinary users of a testbed made by root, for whom the agent asks (`wiretwin.testbed.enter`).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from wiretwin.place import Counters, read_counters
from wiretwin.testbed import kernel, network, private
from wiretwin.testbed.plan import INTERFACE, Host, Plan
from wiretwin.testbed.processes import end_processes, inode, marked_by
from wiretwin.testbed.state import Folder, locked

STAY = b"s"
SCRIPT = "wiretwin/testbed/enter.py"
"""The way into a host, below `Folder.way`."""
SETUP_LIMIT_S = 60
"""Longest time to make a testbed; it takes well below a second."""
WIRE_LIMIT_S = 30.0
"""How long the wire may take to start."""
WIRE_ENDING_S = 1.0
"""How long a wire is given to be gone when an interface is."""
WIRE_LIFE_S = 7 * 86_400
"""How long it carries frames: a week."""
WIRE_PRIORITY = 10
"""Its real-time priority: before all ordinary processes, whose frames it holds."""
OWN = ("net", "uts", "ipc", "mnt")
"""Namespaces of each host."""
_REQUEST = 1 << 20


class _Broken(Exception):
    """The testbed cannot be made; the text is for people."""


def in_child(work: Callable[[], None], what: str) -> None:
    """Do something in a child of its own, so that this process stays where it is.

    Raises
    ------
    _Broken
        With the child's words, if it fails.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            traceback.print_exc()
            os.write(writer, _words(error).encode()[:2000])
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read().decode("utf-8", "replace")
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise _Broken(f"{what}: {said or 'ended without a word'}")


def _words(error: BaseException) -> str:
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}"
    if isinstance(error, _Broken):
        return str(error)
    return f"{type(error).__name__}: {error}"


class Keeper:
    """Makes and holds the namespaces.

    Attributes
    ----------
    folder
        The testbed's folder.
    plan
        What to make.
    namespaces
        Descriptors by host and namespace.
    """

    def __init__(self, folder: Folder, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.namespaces: dict[str, dict[str, int]] = {}
        self.bridge: int | None = None
        self.wire: subprocess.Popen[bytes] | None = None
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.user: int | None = None
        machine = sorted(os.sched_getaffinity(0))
        self.cores = self.plan.cores(machine)
        self.taken_from = self.plan.taken_from(machine)

    # Making.

    def become_root_of_a_namespace(self) -> None:
        """Enter a new user namespace, in which this user is root."""
        uid, gid = os.geteuid(), os.getegid()
        kernel.unshare("user")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
        # The machine's network this process may not enter again: its home is one of its own.
        kernel.unshare("net")
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.user = os.open("/proc/self/ns/user", os.O_RDONLY | os.O_CLOEXEC)

    def make(self) -> None:
        """Make everything.

        Raises
        ------
        _Broken
            Something cannot be made; what was made goes with this process.
        """
        import pyroute2  # noqa: F401  # once, for all children

        table = self.folder.path / "hosts"
        private.write_hosts(table, self.plan.hosts)
        for host in self.plan.hosts:
            self.namespaces[host.name] = self._new_namespaces(OWN)
        nets = {name: spaces["net"] for name, spaces in self.namespaces.items()}
        for host in self.plan.hosts:
            self._inside(
                host,
                partial(private.furnish, host, self.folder.path, table, self.plan.visible),
                f"the private folders of {host.name}",
            )
        if self.plan.link.kind == "wire":
            self._start_wire()
        else:
            self.bridge = self._new_namespaces(("net",))["net"]
            bridge = self.bridge

            def join() -> None:
                kernel.enter(bridge, "net")
                network.make_bridges(self.plan.link)
                network.join_hosts(self.plan.hosts, self.plan.link, nets)

            in_child(join, "the bridges")
        for host in self.plan.hosts:
            self._inside(
                host,
                partial(network.set_up_host, host, self.plan.hosts, self.plan.link),
                f"the interface of {host.name}",
            )

    def _new_namespaces(self, names: tuple[str, ...]) -> dict[str, int]:
        """Make namespaces and hold them open."""
        ready_reader, ready_writer = os.pipe2(os.O_CLOEXEC)
        go_reader, go_writer = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            try:
                os.close(ready_reader)
                os.close(go_writer)
                kernel.unshare(*names)
                os.write(ready_writer, b"k")
                os.read(go_reader, 1)
            except OSError as error:
                os.write(ready_writer, _words(error).encode()[:500])
            finally:
                os._exit(0)
        os.close(ready_writer)
        os.close(go_reader)
        try:
            said = os.read(ready_reader, 500)
            if said != b"k":
                raise _Broken(said.decode() or "no new namespaces")
            return {name: os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names}
        finally:
            os.close(go_writer)
            os.close(ready_reader)
            os.waitpid(pid, 0)

    def _inside(self, host: Host, work: Callable[[], None], what: str) -> None:
        def enter_and_work() -> None:
            for name, descriptor in self.namespaces[host.name].items():
                kernel.enter(descriptor, name)
            work()

        in_child(enter_and_work, what)

    def _start_wire(self) -> None:
        """Start the user-space wire, whose TAP devices are the hosts' interfaces."""
        ports: list[dict[str, Any]] = [
            {
                "tap": INTERFACE,
                "name": host.name,
                "netns": f"/proc/{os.getpid()}/fd/{self.namespaces[host.name]['net']}",
                "create": True,
            }
            for host in self.plan.hosts
        ]
        spec = {
            "format": "wiretwin-wire",
            "version": 1,
            **self.plan.link.wire(),
            "ports": ports,
            "limit_s": WIRE_LIFE_S,
            "die_with_parent": True,
        }
        for port, core in zip(ports, self.taken_from or (), strict=False):
            port["cpu"] = core
        if os.geteuid() == 0 and self.user is None:
            spec["priority"] = WIRE_PRIORITY
        path = self.folder.write("wire.json", spec)
        with open(self.folder.path / "wire.log", "wb") as log:
            self.wire = subprocess.Popen(
                [sys.executable, "-P", "-m", "wiretwin.wire", str(path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self.wire.stdout is not None
        readable, _, _ = select.select([self.wire.stdout], [], [], WIRE_LIMIT_S)
        line = self.wire.stdout.readline() if readable else b""
        if b'"ready"' not in line:
            self._end_wire()
            log_text = (self.folder.path / "wire.log").read_text("utf-8", "replace")
            words = [*log_text.strip().splitlines(), line.decode("utf-8", "replace").strip()]
            raise _Broken(f"the wire did not start: {next(filter(None, reversed(words)), 'no word')}")

    def _end_wire(self) -> None:
        if self.wire is None:
            return
        self.wire.terminate()
        try:
            self.wire.wait(2.0)
        except subprocess.TimeoutExpired:
            self.wire.kill()
            self.wire.wait()

    # Holding.

    def state(self) -> dict[str, Any]:
        """Return what others need to enter the hosts."""
        described: dict[str, Any] = {
            "id": os.urandom(8).hex(),
            "created_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "keeper": {"pid": os.getpid(), "start": kernel.process_start(os.getpid())},
            "link": self.plan.link.describe(),
            "congestion": network.CONGESTION,
            "hosts": [
                {
                    "name": host.name,
                    "address": host.address,
                    "interface": INTERFACE,
                    "descriptors": self.namespaces[host.name],
                    "inodes": {name: inode(fd) for name, fd in self.namespaces[host.name].items()},
                    "core": self.core(host.name),
                }
                for host in self.plan.hosts
            ],
        }
        described["user"] = self.user
        return described

    def core(self, host: str) -> int | None:
        """Return the core that a host has, if it has one of its own."""
        if self.cores is None:
            return None
        return next(core for one, core in zip(self.plan.hosts, self.cores, strict=True) if one.name == host)

    def counters(self, host: str) -> Counters | None:
        """Read what a host's interface has carried."""
        kernel.enter(self.namespaces[host]["net"], "net")
        try:
            text = Path("/proc/thread-self/net/dev").read_text()
        finally:
            kernel.enter(self.home, "net")
        return read_counters(text, INTERFACE)

    def wire_counters(self) -> dict[str, Any]:
        """Ask the wire, if there is one, for what it has counted."""
        if self.wire is None or self.wire.stdout is None:
            return {"error": "has no wire: only --link wire counts by queue"}
        self.wire.send_signal(signal.SIGUSR1)
        readable, _, _ = select.select([self.wire.stdout], [], [], WIRE_LIMIT_S)
        line = self.wire.stdout.readline() if readable else b""
        try:
            return dict(json.loads(line))
        except ValueError:
            return {"error": "its wire does not answer"}

    def trouble(self) -> str | None:
        """Say what has gone wrong with what is held."""
        lost = next((host.name for host in self.plan.hosts if self.counters(host.name) is None), None)
        if self.wire is not None:
            # A wire that is being ended takes its interfaces with it before it is gone itself.
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.wire.wait(0.0 if lost is None else WIRE_ENDING_S)
                how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
                return f"its wire {how}"
        return None if lost is None else f"{lost} has lost its interface {INTERFACE}"

    def take_down(self) -> None:
        """End what runs in the hosts, then the wire, and remove the folder."""
        held = {(name, inode(fd)) for spaces in self.namespaces.values() for name, fd in spaces.items()}
        if self.bridge is not None:
            held.add(("net", inode(self.bridge)))
        end_processes(lambda found: bool(found.spaces & held))
        self._end_wire()
        with locked(self.folder.path.parent):
            self.folder.remove()


class Service:
    """Answers questions on a socket in the shared folder, and runs commands for ordinary users."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        self.listener.bind(str(keeper.folder.socket))
        os.chmod(keeper.folder.socket, 0o666)
        self.listener.listen(64)
        self.running: dict[int, socket.socket] = {}
        """Commands by process number, with the line to who asked."""

    def serve(self, lifeline: int) -> None:
        """Serve until the end: SIGTERM, or a lifeline that is closed."""
        wake_reader, wake_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_writer)
        ended = False

        def end(*_: object) -> None:
            nonlocal ended
            ended = True

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        poll.register(lifeline, select.POLLIN)
        poll.register(wake_reader, select.POLLIN)
        poll.register(self.listener, select.POLLIN)
        self.poll = poll
        self.lines: dict[int, int] = {}
        while not ended:
            for descriptor, _ in poll.poll():
                if descriptor == wake_reader:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_reader, 4096)
                elif descriptor == lifeline:
                    if os.read(lifeline, 1) != STAY:
                        return
                    poll.unregister(lifeline)
                elif descriptor == self.listener.fileno():
                    self._accept()
                else:
                    self._hung_up(descriptor)
            self._reap()

    def _accept(self) -> None:
        try:
            line, _ = self.listener.accept()
        except OSError:
            return
        line.settimeout(1.0)
        kept = False
        descriptors: list[int] = []
        try:
            data, descriptors, _, _ = socket.recv_fds(line, _REQUEST, 3)
            question = json.loads(data)
            if question.get("do") == "run":
                credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
                pid = self._run(question, descriptors, *struct.unpack("3i", credentials)[1:])
                self.running[pid] = line
                self.lines[line.fileno()] = pid
                self.poll.register(line, select.POLLIN)
                kept = True
            else:
                line.send(json.dumps(self._answer(question)).encode())
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            with contextlib.suppress(OSError):
                line.send(json.dumps({"error": _words(error)}).encode())
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
            if not kept:
                line.close()

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        if question.get("do") == "counters":
            found = {host.name: self.keeper.counters(host.name) for host in self.keeper.plan.hosts}
            return {
                name: [one.bytes_in, one.bytes_out, one.packets_in, one.packets_out] if one else None
                for name, one in found.items()
            }
        if question.get("do") == "wire":
            return self.keeper.wire_counters()
        if question.get("do") == "trouble":
            return {"trouble": self.keeper.trouble()}
        return {"error": "asks for something unknown"}

    def _run(self, question: dict[str, Any], streams: list[int], uid: int, gid: int) -> int:
        """Start a command in a host as whoever asked; returns its process number."""
        from wiretwin.testbed import enter

        spaces = self.keeper.namespaces[question["host"]]
        command, environment, folder = question["command"], question["env"], question["cwd"]
        core = self.keeper.core(question["host"])
        if len(streams) != 3:
            raise ValueError("three streams belong to a command")
        pid = os.fork()
        if pid:
            return pid
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            kernel.parent_death_signal(signal.SIGKILL)
            for place, descriptor in enumerate(streams):
                os.dup2(descriptor, place)
            for name in OWN:
                kernel.enter(spaces[name], name)
            enter.stay_on(core)
            enter.become(uid, gid)
            enter.go_to(folder, strict=False)
            os.execve("/bin/sh", ["sh", "-c", command], environment)
        except BaseException as error:
            os.write(2, f"wiretwin: {_words(error)}\n".encode())
        finally:
            os._exit(126)

    def _hung_up(self, descriptor: int) -> None:
        """Who asked for a command has gone: so does the command."""
        pid = self.lines[descriptor]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)

    def _reap(self) -> None:
        for pid in list(self.running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                line = self.running.pop(pid)
                self.poll.unregister(line)
                del self.lines[line.fileno()]
                with contextlib.suppress(OSError):
                    line.send(json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode())
                line.close()


class _Taken(Exception):
    """There is a testbed of that name."""


def make_folder(base: Path, name: str | None) -> Folder:
    """Make the folder of a new testbed; what a crash left under its name goes first.

    Raises
    ------
    _Taken
        There is one of that name.
    """
    with locked(base):
        if name is None:
            while True:
                with contextlib.suppress(FileExistsError):
                    return Folder.create(base, f"t-{os.urandom(4).hex()}")
        old = Folder(base / name)
        if old.path.is_dir():
            if old.alive:
                raise _Taken
            end_processes(marked_by(old.path))
            old.remove()
        return Folder.create(base, name)


def lay_way(folder: Folder, interpreter: str) -> None:
    """Put the way into the hosts, and the agent, where every host and every user finds them."""
    from wiretwin.testbed import enter

    package = (folder.way / SCRIPT).parent
    package.mkdir(parents=True)
    for module in (kernel, enter):
        assert module.__file__ is not None
        shutil.copyfile(module.__file__, package / Path(module.__file__).name)
    for part in (package, package.parent):
        (part / "__init__.py").touch()
    way = [interpreter, "-B", "-I", "-S", str(folder.way / SCRIPT), str(folder.path), "--rsh"]
    folder.agent.write_text(f'#!/bin/sh\nexec {shlex.join(way)} "$@"\n')
    folder.agent.chmod(0o755)


def say(**event: Any) -> None:
    """Tell whoever waits for us; if nobody does any more, the lifeline says so, too."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(event).encode() + b"\n")


def main(argv: list[str]) -> int:
    """Make, hold, take down."""
    order, lifeline = json.loads(argv[0]), int(argv[1])
    os.set_inheritable(lifeline, False)
    os.umask(0o022)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.alarm(SETUP_LIMIT_S)
    try:
        folder = make_folder(Path(order["base"]), order["name"])
    except _Taken:
        say(event="taken", name=order["name"])
        return 1
    except OSError as error:
        say(event="error", reason=_words(error))
        return 1
    keeper = Keeper(folder, Plan.from_json(order["plan"]))
    try:
        folder.write("plan.json", order["plan"])
        os.dup2(os.open(folder.path / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644), 2)
        lay_way(folder, order["interpreter"])
        os.chdir("/")
        if order["rootless"]:
            keeper.become_root_of_a_namespace()
        keeper.make()
        service = Service(keeper)
        folder.write("state.json", keeper.state())
        signal.alarm(0)
        say(event="ready", folder=str(folder.path))
        os.dup2(2, 1)  # whoever reads the pipe sees its end
        service.serve(lifeline)
        return 0
    except ImportError as error:
        # In a namespace of its own a user may no longer read what a right of the machine's let it read.
        traceback.print_exc()
        say(
            event="error",
            reason=f"{error}: the files of {sys.executable} cannot be read from a user's namespace",
        )
        return 1
    except (_Broken, OSError) as error:
        traceback.print_exc()
        say(event="error", reason=_words(error)[:1000])
        return 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        keeper.take_down()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
