"""Child processes that end: a time limit on every wait, and no descendant left behind.

Every process is started by `start`, so that the keeper of the run (`wiretwin.keeper`) ends it and all its
descendants where we cannot do it ourselves any more.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from wiretwin import keeper, scratch
from wiretwin.marks import GRACE_S, KILLED_S, await_gone

LOOK_S = 3.0
"""Between two questions whether a command can still come to its end, in seconds."""


_no_later_than: ContextVar[float] = ContextVar("no_later_than", default=math.inf)


def begun() -> float:
    """Return when this process was started, on the monotonic clock, to a hundredth of a second."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    # proc(5): field 22 is the start in ticks since boot; the first behind the name is the third.
    started = int(fields[22 - 3]) / os.sysconf("SC_CLK_TCK")
    return time.monotonic() - (time.clock_gettime(time.CLOCK_BOOTTIME) - started)


@contextlib.contextmanager
def no_longer_than(end: float) -> Iterator[None]:
    """Let no command that `run` starts within the block go on beyond `end`, on the monotonic clock."""
    token = _no_later_than.set(min(end, _no_later_than.get()))
    try:
        yield
    finally:
        _no_later_than.reset(token)


@dataclass(frozen=True, slots=True)
class Finished:
    """A child that ended by itself.

    Attributes
    ----------
    returncode
        Its exit status; negative for a signal, as in `subprocess`.
    stdout, stderr
        All it printed.
    seconds
        From its start to its end, on the wall clock.
    """

    returncode: int
    stdout: str
    stderr: str
    seconds: float

    def last_words(self, lines: int = 6) -> str:
        """Return the last non-empty lines of its error output (or of its output), as `closing` does."""
        text = self.stderr.strip() or self.stdout.strip()
        return "\n".join(closing([line for line in text.splitlines() if line.strip()], lines))


_FRAME = re.compile(r"\(\S*\+0x[0-9a-f]+\) ?\[0x[0-9a-f]+\]\s*$")
"""A line of a stack trace, as glibc's `backtrace_symbols` writes it."""
_STATUS = re.compile(
    r"^-{60,}\n(?:(?!-{60,}).*\n)*?.*(?:exited with non-zero status|Primary job )(?:.*\n)*?-{60,}\n?",
    re.MULTILINE,
)
"""A paragraph in which Open MPI's launcher says that a rank ended with another status than 0."""


def closing(said: Sequence[str], count: int) -> list[str]:
    """Return the last lines that a child said, and before them at most two lines that our own libraries said.

    Our provider names the cause in a line of its own; the library that it was loaded into follows with
    lines of its own about the number that it was given. A stack trace is left out where there are other
    lines, and what a launcher says of a rank's status: what failed stands before it.
    """
    said = _STATUS.sub("", "\n".join(said)).splitlines() or said
    said = [line for line in said if not _FRAME.search(line)] or said
    last = list(said[-count:])
    ours = list(dict.fromkeys(line for line in said[:-count] if "wiretwin: " in line))[:2]
    return [line for line in ours if line not in last] + last


def ending(returncode: int) -> str:
    """Return how a child ended, in words: ``status 3``, ``signal SIGKILL``."""
    if returncode >= 0:
        return f"status {returncode}"
    try:
        return f"signal {signal.Signals(-returncode).name}"
    except ValueError:
        return f"signal {-returncode}"


class TimeLimit(Exception):
    """A child ran into its limit and was ended."""

    def __init__(self, argv: Sequence[str], limit_s: float, finished: Finished) -> None:
        super().__init__(f"{argv[0]} did not end within {limit_s:g} s")
        self.finished = finished


_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def single_threaded(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which BLAS and OpenMP run one thread."""
    return dict(os.environ if base is None else base) | dict.fromkeys(_THREADS, "1")


def threaded_as_asked(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which BLAS and OpenMP run as many threads as it says, or one."""
    return dict.fromkeys(_THREADS, "1") | dict(os.environ if base is None else base)


def threads_asked() -> int:
    """Return how many threads OpenMP is asked for in each process (`OMP_NUM_THREADS`), 1 where it is not.

    Of a list, one number for each level of nested regions, the first counts (OpenMP 5.0, 6.2).
    """
    first = os.environ.get("OMP_NUM_THREADS", "1").split(",")[0].strip()
    return max(1, int(first)) if first.isascii() and first.isdigit() else 1


def start(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, **more: Any
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, under the run's keeper.

    Parameters
    ----------
    env
        Its environment, by default ours.
    more
        As of `subprocess.Popen`; standard input comes from nowhere unless said otherwise.
    """
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(argv, env=keeper.environment(env), start_new_session=True, **more)


def end_tree(process: subprocess.Popen[bytes], grace_s: float = GRACE_S) -> None:
    """End a child and all its descendants: TERM, then KILL after `grace_s` seconds."""
    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.terminate()
    process.terminate()
    _, alive = psutil.wait_procs(family, timeout=grace_s)
    for member in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    try:
        process.wait(grace_s if not alive else 0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    await_gone({member.pid for member in alive}, KILLED_S)


@contextlib.contextmanager
def child(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
) -> Iterator[tuple[subprocess.Popen[bytes], Path, Path]]:
    """Start a child in a session of its own, its output going to files; leave nothing of it behind.

    Yields the process and the files of its standard output and error. Output goes to files so that
    a grandchild that keeps a pipe open can never hang the reader.
    """
    with scratch.folder() as folder:
        out, err = folder / "stdout", folder / "stderr"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = start(argv, stdout=stdout, stderr=stderr, env=env, cwd=cwd, pass_fds=tuple(pass_fds))
        try:
            yield process, out, err
        finally:
            if process.poll() is None:
                end_tree(process)
            _end_group(process.pid)


def _end_group(group: int) -> None:
    """End what a child, which is gone, has started and left behind: it is still of its process group."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
    members = set()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(ValueError, OSError):
            if os.getpgid(int(entry)) == group:
                members.add(int(entry))
    # Until they are given a core to end on, they are still there.
    await_gone(members, KILLED_S)


def run(
    argv: Sequence[str],
    *,
    limit_s: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    futile: Callable[[], object] | None = None,
) -> Finished:
    """Run a command to its end.

    Parameters
    ----------
    futile
        Asked now and then: whether it can only wait for its limit, and is to be ended at once.

    Raises
    ------
    TimeLimit
        When it has not ended after `limit_s` seconds, or when `no_longer_than` says; it and its descendants
        are gone by then.
    """
    start = time.monotonic()
    limit_s = max(0.0, min(limit_s, _no_later_than.get() - start))
    with child(argv, env=env, cwd=cwd) as (process, out, err):
        timed_out = False
        while process.returncode is None:
            left_s = start + limit_s - time.monotonic()
            try:
                process.wait(left_s if futile is None else min(left_s, LOOK_S))
            except subprocess.TimeoutExpired:
                timed_out = time.monotonic() >= start + limit_s
                if timed_out or (futile is not None and futile()):
                    end_tree(process)
        finished = Finished(
            process.returncode,
            out.read_text("utf-8", "replace"),
            err.read_text("utf-8", "replace"),
            time.monotonic() - start,
        )
    if timed_out:
        raise TimeLimit(argv, limit_s, finished)
    return finished


def killed_children(pid: int) -> dict[int, tuple[str, int]]:
    """Find the children of a process that a signal has ended and that it has yet to ask for.

    Returns
    -------
    dict
        Their names and the signals, by process number.
    """
    found = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        for member in psutil.Process(pid).children():
            with contextlib.suppress(OSError):
                head, _, rest = (
                    Path("/proc", str(member.pid), "stat").read_text("utf-8", "replace").rpartition(")")
                )
                fields = rest.split()
                # proc(5): field 3 is the state, the last one how it ended, as waitpid(2) gives it.
                if fields[0] == "Z" and os.WIFSIGNALED(status := int(fields[-1])):
                    found[member.pid] = (head.partition("(")[2], os.WTERMSIG(status))
    return found
