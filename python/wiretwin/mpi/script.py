"""A program as given by the user: found, read and compiled before anything runs."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError

from .preimport import step_aside

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


def as_main(path: Path, args: Sequence[str]) -> dict[str, Any]:
    """Make this process one that was begun as ``python PATH ARGS``; returns the names that its code runs in.

    Modules of ours that the script has files of its own for are taken out of the way.
    """
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=str(path), __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = module
    sys.argv = [str(path), *args]
    sys.path.insert(0, str(path.parent))
    step_aside(path.parent)
    return module.__dict__


def defer_init(mpi: Any) -> None:
    """Let a program's own calls of Init in `mpi4py.MPI` do nothing, where MPI was begun before it."""
    import mpi4py

    begun: list[bool] = []

    @wraps(mpi.Init)
    def init() -> None:
        begun.append(True)

    @wraps(mpi.Init_thread)
    def init_thread(required: int = mpi.THREAD_MULTIPLE) -> int:
        init()
        return int(mpi.Query_thread())

    mpi.Init, mpi.Init_thread = init, init_thread
    mpi.Is_initialized = wraps(mpi.Is_initialized)(lambda: bool(mpi4py.rc.initialize or begun))
