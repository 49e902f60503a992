"""A folder that several machines keep alike: who writes a file in it tells the others.

Only whole files are passed on: one that was renamed into place, or was closed after writing. What a process
keeps writing to (its output, a log) stays where it is, so nothing crosses the network while ranks measure.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["LARGEST", "OWN", "Mirror", "Watch"]

LARGEST = 1 << 20
"""Longer files are not passed on, bytes."""
OWN = "own"
"""What is below this folder, every machine has for itself: shims built there."""
_LOCAL = ("stdout", "stderr", "owner", "log", OWN)
"""Names, or what they begin with, of what is not passed on."""
_IN_CLOSE_WRITE, _IN_MOVED_TO, _IN_CREATE = 0x8, 0x80, 0x100
_IN_NONBLOCK, _IN_CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC


class Mirror:
    """One machine's copy of the folder, and what it knows the others to have.

    Parameters
    ----------
    root
        The folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, tuple[int, ...]] = {}

    def changes(self) -> list[dict[str, Any]]:
        """Return what is new, changed or gone since the last look, as messages for the others."""
        found: list[dict[str, Any]] = []
        seen: set[str] = set()
        for path, status in self._walk(self.root):
            name = str(path.relative_to(self.root))
            seen.add(name)
            folder = path.is_dir()
            state = (0,) if folder else (status.st_mtime_ns, status.st_size, status.st_ino)
            if self._known.get(name) == state:
                continue
            mode = status.st_mode & 0o7777
            if folder:
                found.append({"do": "folder", "path": name, "mode": mode})
            else:
                try:
                    data = path.read_bytes()
                except OSError:
                    continue
                text = base64.b64encode(data).decode()
                found.append({"do": "file", "path": name, "mode": mode, "data": text})
            self._known[name] = state
        for name in sorted(set(self._known) - seen):
            del self._known[name]
            found.append({"do": "gone", "path": name})
        return found

    def _walk(self, folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
        """Yield folders before what is in them; sockets, links and what is not passed on are left out."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            if entry.name.startswith(_LOCAL):
                continue
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    yield Path(entry.path), status
                    yield from self._walk(Path(entry.path))
                elif entry.is_file(follow_symlinks=False) and status.st_size <= LARGEST:
                    yield Path(entry.path), status

    def take(self, message: dict[str, Any]) -> None:
        """Do to this copy what another machine did to its own.

        Raises
        ------
        OSError
            It cannot be done.
        ValueError
            The path leads out of the folder.
        """
        name = str(message["path"])
        path = self.root / name
        if ".." in Path(name).parts or not path.is_relative_to(self.root):
            raise ValueError(f"{name!r} is not a path within the folder")
        match message["do"]:
            case "gone":
                self._known.pop(name, None)
                _remove(path)
            case "folder":
                path.mkdir(exist_ok=True)
                path.chmod(message["mode"])
                self._known[name] = (0,)
            case "file":
                data = base64.b64decode(message["data"])
                with contextlib.suppress(OSError):
                    if path.read_bytes() == data:  # the same folder, seen from two machines
                        status = path.stat()
                        self._known[name] = (status.st_mtime_ns, status.st_size, status.st_ino)
                        return
                aside = path.with_name(f"{OWN}-{os.getpid()}-{path.name}")
                aside.write_bytes(data)
                aside.chmod(message["mode"])
                status = aside.stat()
                self._known[name] = (status.st_mtime_ns, status.st_size, status.st_ino)
                aside.rename(path)


def _remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it, if it is there."""
    import shutil

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


class Watch:
    """A descriptor that becomes readable when a file below a folder is complete (``inotify(7)``).

    Parameters
    ----------
    root
        The folder.

    Raises
    ------
    OSError
        The kernel gives no more of them.
    """

    def __init__(self, root: Path) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._library.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "inotify")
        self.add(root)

    def fileno(self) -> int:
        """Return the descriptor."""
        return int(self._descriptor)

    def add(self, folder: Path) -> None:
        """Watch a folder as well; nothing happens if it is watched, or gone."""
        mask = _IN_CLOSE_WRITE | _IN_MOVED_TO | _IN_CREATE
        if self._library.inotify_add_watch(self._descriptor, os.fsencode(folder), mask) < 0:
            number = ctypes.get_errno()
            if number not in (errno.ENOENT, errno.ENOTDIR):
                raise OSError(number, os.strerror(number), str(folder))

    def read(self) -> bool:
        """Take what has happened; whether something that may concern others has.

        A file that was only begun does not: its end is told as well.
        """
        head = struct.Struct("iIII")
        concerns = False
        while True:
            try:
                octets = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return concerns
            at = 0
            while at < len(octets):
                _, mask, _, length = head.unpack_from(octets, at)
                name = octets[at + head.size : at + head.size + length].rstrip(b"\0").decode(errors="replace")
                directory = bool(mask & 0x40000000)
                finished = bool(mask & (_IN_CLOSE_WRITE | _IN_MOVED_TO))
                concerns |= (finished or directory) and not name.startswith(_LOCAL)
                at += head.size + length

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)
