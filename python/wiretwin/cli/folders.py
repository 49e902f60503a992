"""Where a verb puts its result: when it is not told, and whether it can be put where it is told."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from wiretwin.errors import InputError, StorageError

__all__ = ["ForceOption", "fresh", "refuse_unwritable", "replaced"]

ForceOption = Annotated[
    bool,
    typer.Option("--force", help="Replace what an earlier command has left in the folder of --out."),
]
OURS = (
    "manifest.json",
    "prediction.json",
    "trace.json",
    "run.json",
    "launches.jsonl",
    "result/manifest.json",
)
"""A folder that holds one of these was made by a verb."""


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]


@contextlib.contextmanager
def replaced(given: Path | None, *, force: bool) -> Iterator[None]:
    """Put what a folder holds aside for as long as a verb fills it anew; remove it once that has ended well.

    When the verb fails, what it put aside is back where it was; or beside what was written until then.

    Raises
    ------
    InputError
        With `force`, the folder holds what no verb has made, or none is given.
    StorageError
        It cannot be put aside.
    """
    if force and given is None:
        raise InputError(key="--force", reason="replaces a folder", allowed="with --out")
    if not force or given is None or not given.exists() or (given.is_dir() and not any(given.iterdir())):
        yield
        return
    if not any((given / name).is_file() for name in OURS):
        allowed = f"a folder that a verb has made, which holds one of {', '.join(OURS)}"
        raise InputError(key="--out", value=str(given), reason="is not replaced", allowed=allowed)
    aside = given.with_name(f".{given.name}.before-{_stamp()}")
    try:
        given.rename(aside)
    except OSError as error:
        raise StorageError(given, f"not replaced: {error.strerror or error}") from error
    try:
        yield
    except BaseException:
        if given.exists():
            print(f"wiretwin: what {given} held before is in {aside}", file=sys.stderr)
        else:
            aside.rename(given)
        raise
    shutil.rmtree(aside, ignore_errors=True)


@contextlib.contextmanager
def fresh(given: Path | None, verb: str, *, force: bool = False) -> Iterator[Path]:
    """Give a new or empty folder: the one given, or ``results/VERB-DATE-TIME``; see `replaced` for `force`.

    When what follows fails before it has written anything, no empty folder is left behind.

    Raises
    ------
    InputError
        When the one given holds something already.
    StorageError
        When it cannot be made.
    """
    with replaced(given, force=force), _made(given, verb) as folder:
        yield folder


@contextlib.contextmanager
def _made(given: Path | None, verb: str) -> Iterator[Path]:
    folder = Path("results", f"{verb}-{_stamp()}") if given is None else given
    made: list[Path] = []
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            allowed = "a new or an empty folder, or --force"
            raise InputError(key="--out", value=str(folder), allowed=allowed)
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
    """Reject files that could not be written, before the work that would fill them.

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
