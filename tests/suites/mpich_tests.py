"""MPICH's own tests, from the folder ``test/mpi`` of its sources: programs in C that need only its helpers.

Each line of a ``testlist.in`` or ``testlist`` is a case, with as many ranks as it says but at most
`MOST_RANKS`. Left out is what is expected to fail, what is judged by another program, what sets variables of
MPICH's, what draws types from a pool of its own, and `LEFT_OUT`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["MOST_RANKS", "programs"]

MOST_RANKS = 4
FOLDERS = (
    "attr", "coll", "comm", "datatype", "errhan", "group", "info", "init", "part", "pt2pt", "rma", "session",
    "topo",
)  # fmt: skip
LEFT_OUT = frozenset({"win_large_shm", "large_message", "pt2pt_large", "coll_large", "manyrma2"})
"""Gigabytes of memory, and a test of minutes."""
_LIMIT_S = 60.0
_HELPERS = ("mtest", "mtest_common")
_CONFIGURED = """
#define HAVE_STDARG_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define HAVE_UNISTD_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_STDINT_H 1
#define HAVE_LONG_LONG 1
#define HAVE_LONG_DOUBLE 1
#define HAVE_USLEEP 1
#define THREAD_PACKAGE_NAME THREAD_PACKAGE_NONE
#define THREAD_PACKAGE_NONE 0
#define THREAD_PACKAGE_POSIX 1
#define MTEST_HAVE_MIN_MPI_VERSION(major, minor) 1
"""
_NO_THREADS = """
int MTest_init_thread_pkg(void) { return 0; }
int MTest_finalize_thread_pkg(void) { return 0; }
"""


def programs(sources: Path, compiler: str, to: Path) -> Iterator[tuple[str, int, list[str]]]:
    """Build the programs; for each case its name, its number of ranks, and the program with its arguments.

    Parameters
    ----------
    sources
        The folder ``test/mpi``.
    compiler
        MPICH's wrapper around the C compiler.
    to
        Where they are built, once.

    Raises
    ------
    subprocess.CalledProcessError
        The helpers cannot be compiled.
    """
    if not (to / "done").exists():
        _build(sources, compiler, to)
    for folder in FOLDERS:
        (lines, *_) = filter(Path.exists, (sources / folder / name for name in ("testlist.in", "testlist")))
        for line in lines.read_text().splitlines():
            words = line.split()
            if len(words) < 2 or not words[1].isdigit() or line.startswith("#"):
                continue
            program = to / folder / words[0]
            if re.search(r"xfail|resultTest|env=", line) or words[0] in LEFT_OUT or not program.exists():
                continue
            args = [word.removeprefix("arg=") for word in words[2:] if word.startswith("arg=")]
            ranks = min(int(words[1]), MOST_RANKS)
            yield " ".join([f"{folder}/{words[0]}", str(ranks), *args]), ranks, [str(program), *args]


def _build(sources: Path, compiler: str, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    (to / "mpitestconf.h").write_text(_CONFIGURED)
    (to / "mtest_mpix.h").write_text("")
    (to / "threads.c").write_text(_NO_THREADS)
    command = [compiler, "-w", "-O1", "-I", str(to), "-I", str(sources / "include")]
    helpers = [str(to / f"{name}.o") for name in (*_HELPERS, "threads")]
    for name in (*_HELPERS, "threads"):
        source = to / "threads.c" if name == "threads" else sources / "util" / f"{name}.c"
        subprocess.run([*command, "-c", source, "-o", to / f"{name}.o"], check=True, timeout=_LIMIT_S)
    for folder in FOLDERS:
        (to / folder).mkdir()
        for source in sorted((sources / folder).glob("*.c")):
            made = to / folder / source.stem
            # What needs more than the helpers is none of the cases.
            subprocess.run(
                [*command, source, *helpers, "-o", made, "-lm"],
                check=False, capture_output=True, timeout=_LIMIT_S,
            )  # fmt: skip
    (to / "done").touch()
