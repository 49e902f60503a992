"""What a testbed leaves on disk, so that another process finds it: one folder each.

    BASE/NAME/keeper.json    its keeper, from the first moment
    BASE/NAME/plan.json      what was asked for
    BASE/NAME/state.json     what there is, once it is complete
    BASE/NAME/keeper.log     what its keeper had to say
    BASE/NAME/agent          the remote shell
    BASE/NAME/shared/        the folder that all hosts see

BASE is ``wiretwin-UID`` in shared memory, or where that is full in the folder for temporary files, or what
WIRETWIN_TESTBEDS names, and belongs to that user.
A testbed lives as long as its keeper: a folder whose keeper is gone is what a crash left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import socket
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretwin import scratch, shared_memory
from wiretwin.errors import InputError, MeasureError
from wiretwin.place import HERE
from wiretwin.testbed.kernel import process_start

__all__ = ["Folder", "Identity", "ask", "base", "folders", "locked"]

NAME = re.compile(r"[a-z][a-z0-9-]{0,15}")
BASE_VARIABLE = "WIRETWIN_TESTBEDS"
"""Environment variable that names another BASE; a short path, since sockets lie in it."""
ANSWER_S = 10.0
"""How long a keeper may take to answer a question."""
REMOVED_S = 5.0
"""How long a folder may be written to while it is removed, by a process that is just being ended."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, told apart from a later one with the same number."""

    pid: int
    start: int

    @classmethod
    def of(cls, pid: int) -> Identity:
        """Name a process that is there."""
        start = process_start(pid)
        if start is None:
            raise ProcessLookupError(pid)
        return cls(pid, start)

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return process_start(self.pid) == self.start

    def ends_within(self, limit_s: float) -> bool:
        """Wait until it has ended, so long at most; whether it has."""
        try:
            process = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            if not self.alive:  # the number is another's by now
                return True
            ended, _, _ = select.select([process], [], [], limit_s)
            return bool(ended)
        finally:
            os.close(process)


def base(*, make: bool = False) -> Path:
    """Return the folder of all testbeds of this user.

    Raises
    ------
    MeasureError
        Someone else has made it.
    """
    given = os.environ.get(BASE_VARIABLE)
    path = Path(given) if given else _parent() / f"wiretwin-{os.geteuid()}"
    if make:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o755)
            path.chmod(0o755)
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise MeasureError(
                f"{path} is not a folder of this user alone: testbeds are kept there; remove it first"
            )
    return path


def _parent() -> Path:
    """Return where the folder of all testbeds is, or where there is room for it."""
    both = (shared_memory.FOLDER, scratch.temporary())
    there = (parent for parent in both if (parent / f"wiretwin-{os.geteuid()}").is_dir())
    return next(there, HERE.directory)


@contextlib.contextmanager
def locked(path: Path | None = None) -> Iterator[Path]:
    """Hold the lock on making and removing folders of testbeds; yields `base` (or `path`), which is there.

    The last to leave an empty base removes it.
    """
    while True:
        if path is None:
            path = base(make=True)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            path.mkdir(mode=0o755, exist_ok=True)
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                break
        os.close(descriptor)  # removed by the one who held the lock before
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            path.rmdir()
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one testbed."""

    path: Path

    @property
    def name(self) -> str:
        """The testbed's name."""
        return self.path.name

    @property
    def shared(self) -> Path:
        """The folder that all its hosts see."""
        return self.path / "shared"

    @property
    def socket(self) -> Path:
        """Where its keeper answers."""
        return self.shared / ".keeper"

    @property
    def agent(self) -> Path:
        """Its remote shell, seen by all its hosts."""
        return self.shared / ".agent"

    @property
    def way(self) -> Path:
        """What it takes to enter its hosts, seen by all of them."""
        return self.shared / ".way"

    @classmethod
    def create(cls, base: Path, name: str) -> Folder:
        """Make the folder of a testbed that this process keeps; call it with the lock held.

        Raises
        ------
        FileExistsError
            There is one of that name.
        """
        folder = cls(base / name)
        folder.path.mkdir(mode=0o755)
        folder.path.chmod(0o755)
        folder.shared.mkdir()
        folder.shared.chmod(0o1777)
        own = Identity.of(os.getpid())
        folder.write("keeper.json", {"pid": own.pid, "start": own.start})
        return folder

    def write(self, name: str, value: dict[str, Any]) -> Path:
        """Write a file so that it is whole or absent."""
        path = self.path / name
        aside = self.path / f".{name}.part"
        aside.write_text(json.dumps(value, indent=1) + "\n")
        aside.replace(path)
        return path

    def read(self, name: str) -> dict[str, Any] | None:
        """Read a file; nothing if it is not there or no JSON object."""
        try:
            value = json.loads((self.path / name).read_text())
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    @property
    def keeper(self) -> Identity | None:
        """The process that holds it; nothing if it was killed in its first moment."""
        found = self.read("keeper.json")
        try:
            return Identity(int(found["pid"]), int(found["start"])) if found else None
        except (KeyError, TypeError, ValueError):
            return None

    @property
    def alive(self) -> bool:
        """Whether its keeper lives; true to the letter only with the lock held."""
        keeper = self.keeper
        return keeper is not None and keeper.alive

    def remove(self) -> None:
        """Remove it with all that is in it; again where something that is being ended still writes there."""
        deadline = time.monotonic() + REMOVED_S
        while self.path.exists() and time.monotonic() < deadline:
            shutil.rmtree(self.path, ignore_errors=True)


def folders() -> list[Folder]:
    """Find the folders of all testbeds of this user, by name."""
    with contextlib.suppress(FileNotFoundError):
        return [Folder(path) for path in sorted(base().iterdir()) if path.is_dir()]
    return []


def checked_name(name: str) -> str:
    """Reject a name that is no name of a testbed."""
    if not NAME.fullmatch(name):
        allowed = "a letter, then up to 15 small letters, digits or hyphens"
        raise InputError(key="--name", value=name, allowed=allowed)
    return name


def ask(folder: Folder, question: dict[str, Any]) -> dict[str, Any]:
    """Ask a keeper and return its answer.

    Raises
    ------
    MeasureError
        It does not answer.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
            line.settimeout(ANSWER_S)
            line.connect(str(folder.socket))
            line.send(json.dumps(question).encode())
            answer = json.loads(line.recv(1 << 20) or b"null")
    except (OSError, ValueError) as error:
        raise MeasureError(f"testbed {folder.name!r}: its keeper does not answer: {error}") from None
    if not isinstance(answer, dict):
        raise MeasureError(f"testbed {folder.name!r}: its keeper ended in mid-answer")
    return answer
