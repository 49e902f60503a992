"""Folders for the time of a run, and those that a run left which was killed with its keeper.

The name of a folder holds the name of its run, so that the run's keeper (`wiretwin.keeper`) removes it
however the run ends. It also says in its file `owner` which process made it: number and time of start, which
together no other process has. Where the keeper was killed as well, with a whole session or control group, the
next run removes what dead owners have left: in shared memory it would hold memory until the next boot.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import string
import tempfile
from collections.abc import Iterator
from pathlib import Path

from wiretwin import folders, keeper
from wiretwin.errors import StorageError
from wiretwin.shared_memory import FOLDER

__all__ = ["folder", "parents", "program", "temporary"]

_LETTERS = string.ascii_lowercase + string.digits


@contextlib.contextmanager
def folder(parent: Path | None = None, what: str = "") -> Iterator[Path]:
    """Make a folder that goes with the block, or soon after this process if that is killed.

    Parameters
    ----------
    parent
        Where; by default where temporary files go.
    what
        A word for its name, if it is to have one.

    Raises
    ------
    StorageError
        It cannot be made, as where the disk is full.
    """
    parent = temporary() if parent is None else parent
    _sweep_once(parent)
    keeper.look_after(folder=parent)
    try:
        made = _make(parent, f"{folders.PREFIX}{what}-" if what else folders.PREFIX, keeper.name())
        try:
            (made / folders.OWNER).write_text(f"{os.getpid()} {folders.started(os.getpid())}\n")
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as error:
        raise StorageError(parent, f"no folder can be made in it: {error.strerror or error}") from error
    try:
        yield made
    finally:
        folders.remove(made)


def program(path: Path, text: str) -> None:
    """Write a text that can be executed, as anybody: at its path it is whole and executable, or not there.

    The folder may be one that several machines keep alike (`wiretwin.remote.folder`), and a machine may look
    into it at any instant. It passes on nothing whose name begins with ``own``, and what it has passed on
    before its mode was set would stay without it.
    """
    aside = path.with_name(f"own-{path.name}")
    aside.write_text(text)
    aside.chmod(0o755)
    aside.rename(path)


def _make(parent: Path, prefix: str, token: str) -> Path:
    while True:
        made = parent / f"{prefix}{token}{''.join(secrets.choice(_LETTERS) for _ in range(folders.TOKEN))}"
        with contextlib.suppress(FileExistsError):
            made.mkdir(0o700)
            return made


def parents() -> list[Path]:
    """List the places where runs on this host make their folders."""
    return list(dict.fromkeys([FOLDER, temporary()]))


def temporary() -> Path:
    """Return where temporary files go: ``TMPDIR``, ``TEMP`` or ``TMP``, or else ``/tmp``.

    `tempfile.gettempdir` says the same, but writes a file on trial when it is first asked, which stays if the
    process is killed at that moment. What this finds is what `tempfile` uses from then on.

    Raises
    ------
    FileNotFoundError
        There is none that can be written to.
    """
    if tempfile.tempdir is None:
        named = [os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)]
        tempfile.tempdir = next((one for one in map(os.path.abspath, [*named, "/tmp"]) if _takes(one)), None)
    return Path(tempfile.gettempdir())


def _takes(folder: str) -> bool:
    """Whether a folder is there, may be written to, and its file system has room."""
    with contextlib.suppress(OSError):
        return (
            Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK) and os.statvfs(folder).f_bavail > 0
        )
    return False


@functools.cache
def _sweep_once(parent: Path) -> None:
    folders.sweep(parent)
