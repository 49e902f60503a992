"""Where a verb puts its result: when it is not told, and whether it can be put where it is told."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from wiretwin.errors import InputError, StorageError

__all__ = ["fresh", "refuse_unwritable"]


@contextlib.contextmanager
def fresh(given: Path | None, verb: str) -> Iterator[Path]:
    """Give a new or empty folder: the one given, or ``results/VERB-DATE-TIME``.

    When what follows fails before it has written anything, no empty folder is left behind.

    Raises
    ------
    InputError
        When the one given holds something already.
    StorageError
        When it cannot be made.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
    folder = Path("results", f"{verb}-{stamp}") if given is None else given
    made: list[Path] = []
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(key="--out", value=str(folder), allowed="a new or an empty folder")
        made = [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(folder, error.strerror or str(error)) from error
    try:
        yield folder
    except BaseException:
        with contextlib.suppress(OSError):  # not empty: what was written stays
            for one in made:
                one.rmdir()
        raise


def refuse_unwritable(*files: Path | None) -> None:
    """Refuse files that could not be written, before the work that would fill them.

    Raises
    ------
    StorageError
        One is a folder, or in a folder that is not there or may not be written.
    """
    for file in files:
        if file is None:
            continue
        found = None
        if file.is_dir():
            found = errno.EISDIR
        elif not file.parent.is_dir():
            found = errno.ENOENT
        elif not os.access(file.parent, os.W_OK):
            found = errno.EACCES
        if found is not None:
            raise StorageError(file, f"not written: {os.strerror(found)}")
