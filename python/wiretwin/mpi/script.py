"""A program as given by the user: found, read and compiled before anything runs."""

from __future__ import annotations

import os
import types
from pathlib import Path

from wiretwin.errors import InputError

#: What a program may be, in words.
ALLOWED = "the file of a Python script that uses mpi4py"


def load(script: str | os.PathLike[str]) -> tuple[Path, types.CodeType]:
    """Return the absolute path of a script and its code.

    Raises
    ------
    InputError
        When it cannot be read or does not parse; the message names the line.
    """
    path = Path(script).absolute()
    try:
        source_text = path.read_bytes()
    except OSError as error:
        raise InputError(path, reason=f"cannot be read: {error.strerror}") from None
    try:
        code = compile(source_text, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(path, f"line {line}" if line else None, reason=f"is not Python: {error}") from None
    return path, code


def checked(script: str | os.PathLike[str]) -> Path:
    """Return the path of a script that is there and parses, whatever it is called.

    Raises
    ------
    InputError
        When it is not; the message says what is allowed.
    """
    path = Path(script)
    if not path.exists():
        raise InputError(key="program", value=str(path), reason="no such file", allowed=ALLOWED)
    if path.is_dir():
        raise InputError(key="program", value=str(path), reason="is a folder", allowed=ALLOWED)
    load(path)
    return path
