"""A script on machines that may not see the file that the user has named."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from wiretwin import process, scratch
from wiretwin.errors import InputError, MeasureError
from wiretwin.place import Place
from wiretwin.predict.records import sha256_of

__all__ = ["brought"]

LOOK_S = 30.0
"""How long a machine may take to look at a file, seconds."""
LARGEST = 1 << 20
"""Longer files are not carried to other machines, bytes."""
MOST_FILES = 1000


@contextlib.contextmanager
def brought(program: Path, place: Place) -> Iterator[Path]:
    """Yield where all machines of a place have a script: where it is, or a copy of it.

    Where a machine has not the same file under the same path, the script is copied to all, with the modules
    in its folder and the packages below it, for as long as the block lasts. What else it reads has to be
    there already.

    Raises
    ------
    InputError
        The script is longer than what is carried, or has too many modules beside it.
    MeasureError
        A machine does not answer.
    """
    program = Path(os.path.abspath(program))
    if all(_has(place, number, program) for number in range(len(place.hosts))):
        yield program
        return
    if program.stat().st_size > LARGEST:
        allowed = f"{LARGEST} bytes at most, or a file that all machines see"
        raise InputError(program, reason="is not on all machines and too long to be copied", allowed=allowed)
    with scratch.folder(place.directory, "program") as folder:
        for file in [program, *_modules(program)]:
            there = folder / file.relative_to(program.parent)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, there)
        yield folder / program.name


def _has(place: Place, number: int, program: Path) -> bool:
    host = place.hosts[number]
    try:
        done = process.run(host.command(["sha256sum", str(program)]), limit_s=LOOK_S)
    except process.TimeLimit as late:
        raise MeasureError(f"{host.name}: {late}") from None
    return done.stdout.startswith(sha256_of(program))


def _modules(program: Path) -> list[Path]:
    """Return the modules beside a script, and those of packages beside it."""
    folders, found = [program.parent], []
    while folders:
        for entry in sorted(folders.pop().iterdir()):
            if entry.is_dir() and (entry / "__init__.py").is_file():
                folders.append(entry)
            elif entry.suffix == ".py" and entry != program and entry.stat().st_size <= LARGEST:
                found.append(entry)
        if len(found) > MOST_FILES:
            allowed = f"{MOST_FILES} modules at most, or a folder that all machines see"
            raise InputError(program.parent, reason="has too many modules to be copied", allowed=allowed)
    return found
