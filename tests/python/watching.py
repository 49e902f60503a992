"""Acting on a launch under way: what tests that kill, stop or interrupt something share.

A launch is one of this test if its processes carry the launch's mark and the `PYTEST_OF` that the test set,
a file if its group is this process's own: what other tests and other users of the host do at the same time is
not looked at.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path

import psutil

from wiretwin.marks import LAUNCH

FOLDER = "wiretwin-"
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "LAMRANK")
"""Where the launchers of MPICH, Open MPI and LAM tell a process its rank."""
PAUSE_S = 0.05
GROUPS = 100_000
"""Numbers of groups from here on have no name on any host."""


class Watch(threading.Thread):
    """Acts once, on the ranks of the first launch of which one has said something; `join` tells what failed.

    Parameters
    ----------
    said
        What a rank must have written to its standard output.
    act
        Called with the launch's processes in the order of their ranks.
    limit_s
        How long to wait for it, in seconds.
    """

    def __init__(self, said: bytes, act: Callable[[list[psutil.Process]], object], limit_s: float) -> None:
        super().__init__(daemon=True)
        self._said, self._act, self._pauses = said, act, int(limit_s / PAUSE_S)
        self._problem: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            pause = threading.Event()
            for _ in range(self._pauses):
                for folder, ranks in launches().items():
                    if ranks and self._said in said(folder):
                        # Who was being started when the list was made is on the next one.
                        self._act(launches().get(folder, ranks))
                        return
                pause.wait(PAUSE_S)
            raise AssertionError(f"no rank said {self._said!r}; at work: {launches()}")
        except BaseException as problem:
            self._problem = problem

    def join(self, timeout: float | None = None) -> None:
        super().join(timeout)
        if self._problem is not None:
            raise self._problem


def becomes(expected: object, look: Callable[[], object], limit_s: float = 10.0) -> None:
    """Hold that `look` gives what is expected, at once or when what ends just now has ended.

    What jobs of others make and remove within a moment is seen by a look in between, and by no second one.
    """
    pause = threading.Event()
    for _ in range(int(limit_s / PAUSE_S)):
        found = look()
        if found == expected:
            return
        pause.wait(PAUSE_S)
    raise AssertionError(f"{found!r}, not {expected!r}, for {limit_s:g} s")


@contextlib.contextmanager
def own_group() -> Iterator[None]:
    """Have what this process and all that it starts make belong to a group of their own, where it may.

    A job that ended by force leaves files whose names and user tell nothing of who made them, and a session
    of another test on this host removes those of its jobs no earlier than it ends. By the group `made_here`
    knows whose they are, at once. Only root may take a group: elsewhere all files of the user count.
    """
    before = os.getresgid()
    group = GROUPS + os.getpid()
    with contextlib.suppress(OSError):
        os.setresgid(group, group, group)
    try:
        yield
    finally:
        os.setresgid(*before)


def made_here(path: Path) -> bool:
    """Whether a file that is there was made by this process or by one that it started; see `own_group`."""
    try:
        return path.stat().st_gid == os.getegid()
    except OSError:
        return False


def marked_processes() -> dict[int, str]:
    """Return the command line of every process that carries the mark of a launch or session of this test."""
    return {one.pid: " ".join(words) for one, words, _ in _marked()}


def launches() -> dict[Path, list[psutil.Process]]:
    """Return the processes that are at work by the folder of their launch, each in the order of its ranks.

    A process has its rank in the name of its specification, or in the environment from its launcher. The
    numbers of processes tell nothing: they begin anew when they have reached their end.
    """
    found: dict[Path, list[tuple[int, psutil.Process]]] = {}
    for process, words, environment in _marked():
        if "python" not in words[0] or not any("probe" in word for word in words[1:4]):
            continue
        for folder in (parent for word in words for parent in Path(word).parents):
            if folder.name.startswith(FOLDER):
                found.setdefault(folder, []).append((_rank(words, environment), process))
                break
    return {folder: [one for _, one in sorted(found[folder], key=itemgetter(0))] for folder in found}


def said(folder: Path) -> bytes:
    """Return all that the ranks of a launch have written; nothing of what has been removed by now."""
    texts = []
    for file in sorted(folder.glob("stdout-*")):
        try:
            texts.append(file.read_bytes())
        except OSError:
            continue
    return b"".join(texts)


def _rank(words: list[str], environment: dict[str, str]) -> int:
    """Return the rank of a process; -1 where nothing says it."""
    own = re.fullmatch(r"spec-(\d+)\.json", Path(words[-1]).name)
    return int(own[1] if own else next((environment[key] for key in RANKS if key in environment), "-1"))


def _marked() -> list[tuple[psutil.Process, list[str], dict[str, str]]]:
    found = []
    for process in psutil.process_iter():
        try:
            environment, words = process.environ(), process.cmdline()
        except psutil.Error:
            continue
        if words and LAUNCH in environment and environment.get("PYTEST_OF") == str(os.getpid()):
            found.append((process, words, environment))
    return found
