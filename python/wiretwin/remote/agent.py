"""What runs on each machine of a place: its copy of the folder, and what is to be done there.

Started over ssh by `wiretwin.remote.machine`. It reads one JSON object a line from its standard input and
writes one a line to its standard output: answers, which carry the number of their question, and files that
appeared in the folder. When its input ends, however that comes about, it ends every process of the place
that lives on this machine, removes the folder, and ends.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wiretwin.errors import WiretwinError
from wiretwin.marks import end_all, marked
from wiretwin.place import Here, HostPlace, read_counters
from wiretwin.remote.folder import LARGEST, OWN, Mirror, Watch

__all__ = ["main"]

NONCE = "nonce"
"""The file by which a folder that is shared already is recognised."""
GRACE_S = 1.0
"""How long processes may take to obey a signal, seconds."""


class _Several(Here):
    """One of several machines, for what asks no more than that."""

    @property
    def hosts(self) -> Sequence[HostPlace]:
        """Two of them."""
        return (*super().hosts, *super().hosts)

    def describe(self) -> dict[str, Any]:
        """Name the kind."""
        return {"kind": "ssh"}


class Agent:
    """One machine's end of a place."""

    def __init__(self) -> None:
        self.mirror: Mirror | None = None
        self.watch: Watch | None = None
        self.owner = False
        self.before: Any = None
        self._rest = b""

    def serve(self) -> None:
        """Answer until the input ends."""
        poll = select.poll()
        poll.register(0, select.POLLIN | select.POLLHUP)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == 0:
                    octets = os.read(0, 1 << 16)
                    if not octets:
                        return
                    *lines, self._rest = (self._rest + octets).split(b"\n")
                    for line in lines:
                        self._answer(json.loads(line))
                        if self.watch is not None and descriptor == 0:
                            with contextlib.suppress(ValueError):
                                poll.register(self.watch.fileno(), select.POLLIN)
                elif self.watch is not None and self.watch.read():
                    self._tell()

    def _tell(self) -> None:
        """Pass on what this machine's processes have put into the folder.

        What they remove is not passed on: whoever made the folder removes it.
        """
        assert self.mirror is not None
        for message in self.mirror.changes():
            self._note_folder(message)
            if message["do"] != "gone":
                _say({"event": "change", "message": message})

    def _note_folder(self, message: dict[str, Any]) -> None:
        assert self.mirror is not None
        if message["do"] == "folder" and self.watch is not None:
            self.watch.add(self.mirror.root / str(message["path"]))

    def _answer(self, question: dict[str, Any]) -> None:
        do: dict[str, Callable[[dict[str, Any]], Any]] = {
            "join": self._join,
            "route": _route,
            "put": self._put,
            "counters": _counters,
            "build": self._build,
            "refusal": _refusal,
            "end": self._end,
            "read": self._read,
            "ping": lambda _: None,
        }
        try:
            answer = {"value": do[question["ask"]](question)}
        except (WiretwinError, OSError, ValueError) as error:
            answer = {"error": str(error)}
        _say({"number": question["number"], **answer})

    def _join(self, question: dict[str, Any]) -> dict[str, Any]:
        """Make the folder, or find that it is shared; return what this machine is."""
        from wiretwin import leftovers
        from wiretwin.measure import host

        root = Path(question["folder"])
        self.before = leftovers.Leftovers.now()
        shared = _text(root / NONCE) == question["nonce"]
        if not shared:
            root.mkdir(mode=0o700)
            self.owner = True
            (root / NONCE).write_text(question["nonce"])
            (root / "owner").write_text(_identity())
        (root / OWN).mkdir(exist_ok=True)
        self.mirror = Mirror(root)
        self.mirror.changes()
        self.watch = Watch(root)
        return {
            "shared": shared,
            "host": host.describe(),
            "cpus": list(host.measuring_cpus() or ()),
            "boot": _text(Path("/proc/sys/kernel/random/boot_id")),
            "reached": os.environ.get("SSH_CONNECTION", "").split(),
        }

    def _put(self, question: dict[str, Any]) -> None:
        assert self.mirror is not None
        for message in question["messages"]:
            self.mirror.take(message)
            self._note_folder(message)

    def _read(self, question: dict[str, Any]) -> dict[str, str]:
        """Return the beginnings of those files that are here, as base64 by name."""
        assert self.mirror is not None
        found = {}
        for name in question["names"]:
            with contextlib.suppress(FileNotFoundError), (self.mirror.root / name).open("rb") as file:
                found[name] = base64.b64encode(file.read(LARGEST)).decode()
        return found

    def _build(self, question: dict[str, Any]) -> str:
        """Build a shim with this machine's compiler; return where every machine has its own."""
        from wiretwin.stacks.build import build

        assert self.mirror is not None
        words = (tuple(question[key]) for key in ("compiler", "libraries", "flags"))
        made = build(question["source"], *words)
        path = self.mirror.root / OWN / f"{Path(question['source']).stem}-{question['digest']}.so"
        aside = path.with_name(f"{path.name}.{os.getpid()}")
        shutil.copyfile(made, aside)
        aside.chmod(0o755)
        aside.rename(path)
        return str(path)

    def _end(self, question: dict[str, Any]) -> None:
        """End the processes whose mark begins so, and remove the shared memory they leave."""
        from wiretwin import leftovers

        end_all(lambda: marked(question["mark"]), GRACE_S)
        if self.before is not None:
            leftovers.remove_since(self.before, os.geteuid())

    def close(self) -> None:
        """End everything, remove everything."""
        if self.mirror is None:
            return
        self._end({"mark": str(self.mirror.root)})
        if self.owner:
            shutil.rmtree(self.mirror.root, ignore_errors=True)


def _say(message: dict[str, Any]) -> None:
    octets = json.dumps(message).encode() + b"\n"
    while octets:
        octets = octets[os.write(1, octets) :]


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _identity() -> str:
    """Say who owns a folder, as `wiretwin.scratch` reads it."""
    start = Path("/proc/self/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[22 - 3]
    return f"{os.getpid()} {start}\n"


def _route(question: dict[str, Any]) -> dict[str, str]:
    """Return this machine's address and interface on the way to another."""
    family = socket.AF_INET6 if ":" in question["to"] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((question["to"], 9))
        address = str(probe.getsockname()[0])
    import psutil

    for interface, entries in psutil.net_if_addrs().items():
        if any(entry.address.partition("%")[0] == address for entry in entries):
            return {"address": address, "interface": interface}
    raise ValueError(f"no interface has the address {address}, from which {question['to']} is reached")


def _counters(question: dict[str, Any]) -> list[int] | None:
    found = read_counters(Path("/proc/self/net/dev").read_text(), question["interface"])
    return [found.bytes_in, found.bytes_out, found.packets_in, found.packets_out] if found else None


def _refusal(question: dict[str, Any]) -> list[str] | None:
    """Say why a layer cannot run on this machine."""
    from wiretwin.stacks.layers import parse_layer, refusal

    refused = refusal(parse_layer(question["layer"]), _Several())
    return None if refused is None else [refused.reason, refused.cure]


def main() -> None:
    """Serve until the input ends, or a signal comes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    agent = Agent()
    try:
        with contextlib.suppress(BrokenPipeError):
            agent.serve()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        agent.close()
