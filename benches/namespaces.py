"""Hosts as network namespaces, joined by a wire process: for the bench and the tests of the wire."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

LIMIT_S = 60.0
"""The most any step may take."""


def missing() -> str | None:
    """Why no hosts can be made here, or None."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    if shutil.which("ip") is None:
        return "needs `ip` (Debian: iproute2)"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun (the kernel module `tun`)"
    return None


def run(*command: str) -> str:
    """Run a command to its end; its standard output."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Hosts:
    """Namespaces with a TAP device each, and the wire process between them.

    >>> with Hosts({"medium": "duplex", "rate_bit_s": 10_000_000}) as hosts:
    ...     hosts.command(0, ["ping", "-c1", hosts.address(1)])
    """

    def __init__(self, wire: dict[str, Any], count: int = 2, cpus: Sequence[int] = ()) -> None:
        self.wire = wire
        self.cpus = cpus
        self.names = [f"wt{os.getpid()}-{number}" for number in range(count)]
        self.process: subprocess.Popen[str] | None = None
        self.ready: dict[str, Any] = {}
        self.said: list[dict[str, Any]] = []
        self._folder = tempfile.TemporaryDirectory()

    def address(self, host: int) -> str:
        """Return the IPv4 address of a host."""
        return f"10.77.0.{host + 1}"

    def command(self, host: int, command: list[str]) -> list[str]:
        """Return a command that runs another one on a host."""
        return ["ip", "netns", "exec", self.names[host], *command]

    def __enter__(self) -> Hosts:
        try:
            for name in self.names:
                run("ip", "netns", "add", name)
                run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
                run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
                run("ip", "-n", name, "link", "set", "lo", "up")
            self._start()
            for number, name in enumerate(self.names):
                run("ip", "-n", name, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
                for other, port in enumerate(self.ready["ports"]):
                    if other != number:
                        neighbour = [self.address(other), "lladdr", port["address"], "dev", "eth0"]
                        run("ip", "-n", name, "neighbour", "add", *neighbour)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def specification(self) -> dict[str, Any]:
        """Return what the wire process is told."""
        ports: list[dict[str, Any]] = [
            {"tap": "eth0", "name": f"h{number + 1}", "netns": f"/run/netns/{name}", "create": True}
            for number, name in enumerate(self.names)
        ]
        for port, cpu in zip(ports, self.cpus, strict=False):
            port["cpu"] = cpu
        base = {"format": "wiretwin-wire", "version": 1, "limit_s": LIMIT_S, "die_with_parent": True}
        return base | {"ports": ports} | self.wire

    def _start(self) -> None:
        path = Path(self._folder.name, "wire.json")
        path.write_text(json.dumps(self.specification()))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "wiretwin.wire", str(path)], stdout=subprocess.PIPE, text=True
        )
        self.ready = self.next_line()
        if self.ready["event"] != "ready":
            raise RuntimeError(f"the wire does not start: {self.ready}")

    def next_line(self) -> dict[str, Any]:
        """Wait for the next line of the wire process."""
        assert self.process is not None
        assert self.process.stdout is not None
        watchdog = threading.Timer(LIMIT_S, self.process.kill)
        watchdog.start()
        try:
            text = self.process.stdout.readline()
        finally:
            watchdog.cancel()
        if not text:
            raise RuntimeError(f"the wire said nothing; status {self.process.wait(timeout=LIMIT_S)}")
        line: dict[str, Any] = json.loads(text)
        self.said.append(line)
        return line

    def ask(self) -> dict[str, Any]:
        """Ask for the counters while the wire goes on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGUSR1)
        return self.next_line()

    def stop(self) -> dict[str, Any]:
        """End the wire and return its counters."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        counters = self.next_line()
        status = self.process.wait(timeout=LIMIT_S)
        if status != 0 or counters["event"] != "counters":
            raise RuntimeError(f"the wire ended with status {status}: {counters}")
        return counters

    def close(self) -> None:
        """End the wire if it still runs, and remove the namespaces."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.terminate()
                try:
                    self.process.wait(timeout=LIMIT_S)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
        there = set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()
        for name in self.names:
            if name in there:
                run("ip", "netns", "delete", name)
        self._folder.cleanup()

    @contextlib.contextmanager
    def on(self, host: int) -> Iterator[None]:
        """Be on a host: sockets that this thread makes belong there for good."""
        libc = ctypes.CDLL(None, use_errno=True)
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            there = os.open(f"/run/netns/{self.names[host]}", os.O_RDONLY)
            try:
                if libc.setns(there, 0) != 0:
                    raise OSError(ctypes.get_errno(), f"entering {self.names[host]}")
            finally:
                os.close(there)
            try:
                yield
            finally:
                if libc.setns(here, 0) != 0:
                    raise OSError(ctypes.get_errno(), "coming back")
        finally:
            os.close(here)
