"""Text files that a user names: whatever else the name stands for is rejected at once, with the reason."""

from __future__ import annotations

import os
import re
import select
import stat
import time
from collections.abc import Collection
from pathlib import Path

from wiretwin.errors import InputError

__all__ = ["MOST_BYTES", "read_text"]

MOST_BYTES = 4 << 20
"""The largest text that is read: a thousand times a twin of every layer here."""
PATIENCE_S = 0.5
"""The longest that a pipe may be silent, seconds."""
_PIECE = 1 << 16
_FIRST_KEY = re.compile(rb'\s*\{\s*"([^"\\]*)"\s*:')


def read_text(
    path: str | os.PathLike[str], *, most: int = MOST_BYTES, keys: Collection[str] | None = None
) -> str:
    """Return the text of a file, or of a pipe that somebody writes to.

    Parameters
    ----------
    path
        As the user gave it.
    most
        The most that it may hold, bytes.
    keys
        Of the JSON object that is expected. More than `MOST_BYTES` are read only of a text that begins as an
        object does whose first key is one of these, for the rest of a large file takes long to reject.

    Raises
    ------
    InputError
        It cannot be read, is no file, is too large, or is not UTF-8; it is large and does not begin as the
        object that is expected; a pipe that nobody writes to, or from which nothing comes for half a second.
    """
    file = Path(path)
    try:
        # Opening a pipe to which nobody writes would wait for a writer.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            data = _read(descriptor, file, most, keys)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InputError(file, reason=f"cannot be read: {error.strerror or error}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(file, reason=f"not a text file: byte {error.start} is not UTF-8") from error


def _read(descriptor: int, file: Path, most: int, keys: Collection[str] | None) -> bytes:
    status = os.fstat(descriptor)
    pipe = stat.S_ISFIFO(status.st_mode)
    if not pipe and not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device"
        raise InputError(file, reason=f"is {kind}", allowed="a text file")
    too_large = InputError(file, reason="is too large", allowed=f"at most {most} bytes")
    if status.st_size > most:
        raise too_large
    data = bytearray()
    silent_since = time.monotonic()
    while True:
        try:
            piece = os.read(descriptor, _PIECE)
        except BlockingIOError:
            left = silent_since + PATIENCE_S - time.monotonic()
            if left <= 0:
                raise InputError(
                    file, reason="is a pipe from which nothing comes", allowed="a text file"
                ) from None
            select.select([descriptor], [], [], left)
            continue
        if not piece:
            break
        data += piece
        if len(data) > most:
            raise too_large
        if keys is not None and max(status.st_size, len(data)) > MOST_BYTES:
            _check_beginning(data, file, keys)
            keys = None
        silent_since = time.monotonic()
    if pipe and not data:
        raise InputError(file, reason="is a pipe to which nobody writes", allowed="a text file")
    return bytes(data)


def _check_beginning(data: bytearray, file: Path, keys: Collection[str]) -> None:
    """Reject a large text that begins as no JSON object with one of `keys`."""
    first = _FIRST_KEY.match(data)
    if first is None or first[1].decode("utf-8", "replace") not in keys:
        begins = repr(data[:16].decode("utf-8", "replace"))
        wanted = f"of more than {MOST_BYTES} bytes a JSON object whose first key is one of"
        raise InputError(file, "its beginning", begins, f"{wanted} {', '.join(sorted(keys))}")
