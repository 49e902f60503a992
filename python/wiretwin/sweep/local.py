"""Runs on the cores of this machine."""

from __future__ import annotations

import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from subprocess import Popen

from wiretwin import process
from wiretwin.sweep.work import Result, Task, do

__all__ = ["Cores"]

MOST_DEATHS = 3
"""So many processes that did it a run may take with it before it counts as failed."""
AHEAD = 2
"""How many runs a worker is handed: one that it does, and one that waits, so that it never waits for us."""


@dataclass
class _Worker:
    """A process, and the runs it has been handed: it does the first of them."""

    process: Popen[bytes]
    line: Connection
    tasks: deque[Task] = field(default_factory=deque)


class Cores:
    """Worker processes; one that dies is replaced, and what it was handed is done again.

    Parameters
    ----------
    workers
        How many.
    work
        What does a run: a function of a module that the workers can import.
    """

    def __init__(self, workers: int, work: Callable[[Task], Result] = do) -> None:
        self.room = AHEAD * workers
        self._work = work
        self._deaths: dict[tuple[int, int], int] = {}
        self._waiting: deque[Task] = deque()
        self._workers: list[_Worker] = []
        try:
            for _ in range(workers):
                self._workers.append(self._fresh())
        except BaseException:
            self.close()
            raise

    def _fresh(self) -> _Worker:
        # A line of its own, since what a run prints is not for us.
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            argv = [sys.executable, "-P", "-m", "wiretwin.sweep.local", str(number)]
            started = process.start(argv, pass_fds=(number,))
        line = Connection(ours.detach())
        # A worker that is gone by now is found when its end is waited for.
        _tell(line, sys.path)
        _tell(line, self._work)
        return _Worker(started, line)

    def submit(self, task: Task) -> None:
        """Hand over a run."""
        self._waiting.append(task)
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting:
            worker = min(self._workers, key=lambda one: len(one.tasks))
            if len(worker.tasks) >= AHEAD:
                return
            task = self._waiting.popleft()
            worker.tasks.append(task)
            _tell(worker.line, task)

    def ended(self) -> Iterator[tuple[Task, Result]]:
        """Wait until at least one run has ended; yield those that have."""
        while True:
            ready = wait([worker.line for worker in self._workers])
            came = [self._hear(worker) for worker in list(self._workers) if worker.line in ready]
            self._hand_out()
            found = [one for one in came if one is not None]
            if found:
                yield from found
                return

    def _hear(self, worker: _Worker) -> tuple[Task, Result] | None:
        try:
            result: Result = worker.line.recv()
        except (EOFError, OSError):
            return self._replace(worker)
        return worker.tasks.popleft(), result

    def _replace(self, worker: _Worker) -> tuple[Task, Result] | None:
        """Start another worker for one that has died; the run it was doing is done again, or is lost."""
        self._workers.remove(worker)
        _end(worker)
        self._workers.append(self._fresh())
        if not worker.tasks:
            return None
        task = worker.tasks.popleft()
        self._waiting.extendleft(reversed(worker.tasks))
        key = task.point, task.replication
        self._deaths[key] = self._deaths.get(key, 0) + 1
        if self._deaths[key] < MOST_DEATHS:
            self._waiting.appendleft(task)
            return None
        return task, Result.of_lost(f"{MOST_DEATHS} processes that did it have died")

    def close(self) -> None:
        """End all processes; runs under way are lost."""
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            _end(worker)


def _tell(line: Connection, message: object) -> None:
    try:
        line.send(message)
    except OSError:
        return  # it has died, as the end of its line says


def _end(worker: _Worker) -> None:
    if worker.process.poll() is None:
        process.end_tree(worker.process)
    worker.line.close()


def _main(number: int) -> None:
    line = Connection(number)
    os.set_inheritable(number, False)
    try:
        sys.path[:] = line.recv()  # by which the module of what comes next is found
        work: Callable[[Task], Result] = line.recv()
        while True:
            line.send(work(line.recv()))
    except (EOFError, BrokenPipeError):
        return


if __name__ == "__main__":
    _main(int(sys.argv[1]))
