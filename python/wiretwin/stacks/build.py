"""Shims are built where they run: compiled once per compiler, library and source, then kept.

The name of a built shim is the digest of its preprocessed source, which holds the library's headers, and
of the compiler's command; so a change of any of them builds anew and nothing is ever built over. Two
processes that build the same shim at once both succeed: each writes aside and renames.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wiretwin import process, scratch
from wiretwin.errors import MeasureError
from wiretwin.place import Apart, Place
from wiretwin.stacks.base import Refusal, StackError

__all__ = ["SOURCES", "Shim", "build", "build_listed", "cache_folder"]

SOURCES = Path(__file__).resolve().parent / "shim"
"""Where the sources of the shims are."""
LIMIT_S = 120.0
"""The longest one run of a compiler may take, seconds."""
COMPILER = "gcc libc6-dev"
"""Debian's packages of a C compiler."""
FLAGS = ("-std=gnu11", "-O2", "-g", "-fPIC", "-Wall", "-Wextra")
_SHOWN = 12


def cache_folder() -> Path:
    """Return the user's folder of built shims, made if need be; nobody else can write to it.

    ``$XDG_CACHE_HOME/wiretwin/shims``, by default under ``~/.cache``; where that cannot be written, a
    folder of this user's among the temporary files.

    Raises
    ------
    StackError
        Neither can be used.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    refused = []
    for folder in (
        Path(base, "wiretwin", "shims"),
        scratch.temporary() / f"wiretwin-{os.getuid()}" / "shims",
    ):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # What is loaded from here runs as this user: nobody else may have put it there.
            for one in (folder.parent, folder):
                status = one.stat()
                if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    raise PermissionError(1, "others may write to it", str(one))
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError as error:
            refused.append(f"{error.filename or folder}: {error.strerror or error}")
    raise StackError(f"no folder for built shims: {'; '.join(refused)}", "export XDG_CACHE_HOME=/some/folder")


def build_listed(source: str, compiler: str, text: str) -> Path:
    """Return the shared object of a shim that is compiled for a list of functions, as `build` does.

    Parameters
    ----------
    source
        The file's name in `SOURCES`: ``sim.c`` includes what ``SIM_LIST`` names.
    compiler
        The command of the compiler or of the library's wrapper around it.
    text
        The list: a macro with a function's name in each line.

    Raises
    ------
    StackError
        As `build`.
    """
    name = source.removesuffix(".c")
    listed = cache_folder() / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.inc"
    if not listed.is_file():
        partial = listed.with_suffix(f".{os.getpid()}")
        partial.write_text(text)
        partial.replace(listed)
    return build(source, (compiler,), ("-ldl",), (f'-D{name.upper()}_LIST="{listed}"',))


@cache
def build(
    source: str, compiler: tuple[str, ...], libraries: tuple[str, ...] = (), flags: tuple[str, ...] = ()
) -> Path:
    """Return the shared object of a shim, compiled if it is not there yet.

    Parameters
    ----------
    source
        The file's name in `SOURCES`: ``mpi.c``.
    compiler
        The command of the compiler or of the library's wrapper around it.
    libraries
        Words for the linker, after the source: ``-lpvm3``.
    flags
        Further words for the compiler: ``-I/usr/include/tirpc``.

    Raises
    ------
    StackError
        The compiler is not there or rejects, with what it said.
    """
    path = SOURCES / source
    front = [*compiler, *FLAGS, *flags, "-I", str(SOURCES)]
    # Without line marks, which name the folder that is worked in: it is one shim wherever that is.
    text = _run([*front, "-E", "-P", str(path)], source, compiler)
    digest = hashlib.sha256()
    for part in (*compiler, *FLAGS, *flags, *libraries, text):
        digest.update(part.encode() + b"\0")
    name = f"{Path(source).stem}-{digest.hexdigest()[:24]}.so"
    made = cache_folder() / name
    if not _usable(made):
        with _aside(made) as aside:
            _run([*front, "-shared", "-o", str(aside), str(path), *libraries], source, compiler)
            aside.chmod(0o755)
            os.replace(aside, made)
    return made


@dataclass(frozen=True, slots=True)
class Shim:
    """A shim with everything that building it takes.

    Attributes
    ----------
    source
        The file's name in `SOURCES`: ``mpi.c``.
    compiler
        The compiler or the library's wrapper around it.
    packages
        Debian's packages that bring the library's headers, beside those of a C compiler.
    libraries, flags
        As for `build`.
    """

    source: str
    compiler: str
    packages: str = ""
    libraries: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def refusal(self) -> Refusal | None:
        """Say what is missing here to build it, which is tried unless it has been built before."""
        cure = f"apt-get install --no-install-recommends {COMPILER} {self.packages}".rstrip()
        if shutil.which(self.compiler) is None:
            return Refusal(f"no C compiler `{self.compiler}`", cure)
        try:
            build(self.source, (self.compiler,), self.libraries, self.flags)
        except StackError as error:
            return Refusal(_missing(str(error)), error.cure or cure)
        return None

    def at(self, place: Place) -> Path:
        """Return the shared object at a place: each of several machines builds its own, by one path.

        Raises
        ------
        StackError
            As `build`, of the first machine that cannot.
        """
        if not isinstance(place, Apart):
            return build(self.source, (self.compiler,), self.libraries, self.flags)
        try:
            return place.build(self.source, (self.compiler,), self.libraries, self.flags)
        except MeasureError as error:
            raise StackError(str(error)) from None


def _missing(said: str) -> str:
    """Name what a compiler did not find; all that it said, on one line, where it is something else."""
    if header := re.search(r"fatal error: (\S+): No such file", said):
        return f"no header `{header[1]}`"
    if library := re.search(r"cannot find -l([^\s:]+)", said):
        return f"no library `lib{library[1]}.so`"
    return "; ".join(said.splitlines())


def _usable(made: Path) -> bool:
    """Whether a shim is there and is ours."""
    try:
        status = made.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and status.st_size > 0


@contextlib.contextmanager
def _aside(made: Path) -> Iterator[Path]:
    """Yield a name beside `made`; whatever is left of it afterwards is removed."""
    descriptor, name = tempfile.mkstemp(prefix=f".{made.stem}-", suffix=".so", dir=made.parent)
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _run(argv: Sequence[str], source: str, compiler: Sequence[str]) -> str:
    """Run the compiler; return what it printed."""
    place = f"building the shim {source} with {compiler[0]}"
    try:
        done = process.run(argv, limit_s=LIMIT_S)
    except FileNotFoundError:
        raise StackError(f"{place}: no such compiler") from None
    except OSError as error:
        raise StackError(f"{place}: {error.strerror or error}") from None
    except process.TimeLimit as late:
        raise StackError(f"{place}: {late}") from None
    if done.returncode != 0:
        words = done.last_words(_SHOWN) or "it gave no reason"
        raise StackError(f"{place} ended with {process.ending(done.returncode)}:\n{words}")
    return done.stdout
