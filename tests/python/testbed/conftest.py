"""Nothing may be left behind: counted before and after every test of a testbed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from wiretwin import keeper

TOKEN = "WIRETWIN_CENSUS"
KINDS = ("net", "uts", "ipc", "mnt", "user")
LIMIT_S = 10.0


@dataclass(frozen=True)
class Census:
    """What there is on this machine that a testbed could leave behind.

    Processes are told from others' by a variable that everything started from a test inherits.
    """

    processes: frozenset[str]
    namespaces: frozenset[str]
    mounts: tuple[str, ...]
    interfaces: frozenset[str]
    folders: frozenset[str]

    @classmethod
    def take(cls, token: str, base: Path) -> Census:
        processes, namespaces = set(), set()
        own = {kind: os.stat(f"/proc/self/ns/{kind}").st_ino for kind in KINDS}
        for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
            with contextlib.suppress(OSError):
                if pid == os.getpid() or f"{TOKEN}={token}".encode() not in environment(pid):
                    continue
                processes.add(f"{pid} {Path(f'/proc/{pid}/cmdline').read_bytes()[:200]!r}")
                for kind, inode in own.items():
                    found = os.stat(f"/proc/{pid}/ns/{kind}").st_ino
                    if found != inode:
                        namespaces.add(f"{kind} {found}")
        mounts = [line.split(" ", 6)[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        # Where `ip netns` of others pins its namespaces; nothing here uses it.
        mounts = [path for path in mounts if not path.startswith("/run/netns")]
        return cls(
            frozenset(processes),
            frozenset(namespaces),
            tuple(sorted(mounts)),
            frozenset(os.listdir("/sys/class/net")),
            frozenset(str(path) for path in base.rglob("*")) if base.is_dir() else frozenset(),
        )


def environment(pid: int) -> list[bytes]:
    state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1]
    return [] if state in b"ZX" else Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


@pytest.fixture(autouse=True, scope="session")
def kept() -> None:
    """Start the keeper of the tests' own process, which outlives them, before anything is counted."""
    keeper.name()


@pytest.fixture(autouse=True)
def census(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Give the test a place for its testbeds, and fail it if anything is left when it is over."""
    memory = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    base = Path(tempfile.mkdtemp(prefix="wt-", dir=memory))
    base.chmod(0o755)
    token = base.name
    monkeypatch.setenv("WIRETWIN_TESTBEDS", str(base / "b"))
    monkeypatch.setenv(TOKEN, token)
    before = Census.take(token, base)
    try:
        yield base
        deadline = time.monotonic() + LIMIT_S
        # What was told to end may still be on its way; it has until the limit.
        while (after := Census.take(token, base)) != before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert after == before
    finally:
        for line in Census.take(token, base).processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), signal.SIGKILL)
        shutil.rmtree(base, ignore_errors=True)
