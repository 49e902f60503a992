"""Runs on the cores of this machine."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from wiretwin.sweep.work import Result, Task, do

__all__ = ["Cores"]

MOST_DEATHS = 3
"""So many processes that did it alone a run may take with it before it counts as failed."""


class Cores:
    """Worker processes; one that dies is replaced, and what was under way is done again.

    Which of the runs under way was to blame cannot be told, so each of them is done again alone, and only one
    that dies then has itself to thank for it.
    """

    def __init__(self, workers: int, work: Callable[[Task], Result] = do) -> None:
        self.workers = workers
        # One more waits for each worker, so that none of them waits for us.
        self.room = 2 * workers
        self._work = work
        self._deaths: dict[tuple[int, int], int] = {}
        self._tasks: dict[Future[Result], Task] = {}
        self._suspects: deque[Task] = deque()
        self._held: deque[Task] = deque()
        self._alone = False
        self._pool = self._fresh()

    def _fresh(self) -> ProcessPoolExecutor:
        # An interrupt is for the process that the user started; it ends the workers.
        return ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=signal.signal,
            initargs=(signal.SIGINT, signal.SIG_IGN),
        )

    def submit(self, task: Task) -> None:
        """Hand over a run."""
        if self._alone or self._suspects:
            self._held.append(task)
        else:
            self._begin(task)

    def _begin(self, task: Task) -> None:
        try:
            self._tasks[self._pool.submit(self._work, task)] = task
        except BrokenProcessPool:
            # A worker has died since: what it did comes back with the others that were under way.
            self._tasks[broken()] = task

    def ended(self) -> Iterator[tuple[Task, Result]]:
        """Wait until at least one run has ended, or died with its worker; yield those that have ended."""
        lost: list[Task] = []
        yield from self._take(wait(self._tasks, return_when=FIRST_COMPLETED).done, lost)
        if lost:
            yield from self._take(wait(self._tasks).done, lost)
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = self._fresh()
            yield from self._blame(lost)
        if not self._tasks:
            self._alone = bool(self._suspects)
            waiting = [self._suspects.popleft()] if self._alone else list(self._held)
            if not self._alone:
                self._held.clear()
            for task in waiting:
                self._begin(task)

    def _take(self, done: set[Future[Result]], lost: list[Task]) -> Iterator[tuple[Task, Result]]:
        for future in done:
            task = self._tasks.pop(future)
            try:
                yield task, future.result()
            except BrokenProcessPool:
                lost.append(task)

    def _blame(self, lost: list[Task]) -> Iterator[tuple[Task, Result]]:
        """Set apart what died; yield a run that did so alone too often."""
        if not self._alone:
            self._suspects.extend(sorted(lost, key=lambda task: (task.point, task.replication)))
            return
        (task,) = lost
        key = task.point, task.replication
        self._deaths[key] = self._deaths.get(key, 0) + 1
        if self._deaths[key] < MOST_DEATHS:
            self._suspects.appendleft(task)
        else:
            yield task, Result.of_lost(f"{MOST_DEATHS} processes that did it alone have died")

    def close(self) -> None:
        """End all processes; runs under way are lost."""
        for process in list((self._pool._processes or {}).values()):
            process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)


def broken() -> Future[Result]:
    """Return a run that ended with its worker."""
    future: Future[Result] = Future()
    future.set_exception(BrokenProcessPool("a worker has died"))
    return future
