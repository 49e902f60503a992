"""Runs on the cores of this machine."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from wiretwin.sweep.work import Result, Task, do

__all__ = ["Cores"]

MOST_DEATHS = 3
"""So many workers a run may take with it before it counts as failed."""


class Cores:
    """Worker processes; one that dies is replaced, and what was under way is done again."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        # One more waits for each worker, so that none of them waits for us.
        self.room = 2 * workers
        self._deaths: dict[tuple[int, int], int] = {}
        self._tasks: dict[Future[Result], Task] = {}
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
        try:
            self._tasks[self._pool.submit(do, task)] = task
        except BrokenProcessPool:
            # A worker has died since: what it did comes back with the others that were under way.
            self._tasks[broken()] = task

    def ended(self) -> Iterator[tuple[Task, Result]]:
        """Wait until at least one run has ended; yield those that have."""
        done, _ = wait(self._tasks, return_when=FIRST_COMPLETED)
        lost = []
        for future in done:
            task = self._tasks.pop(future)
            try:
                yield task, future.result()
            except BrokenProcessPool:
                lost.append(task)
        if not lost:
            return
        wait(self._tasks)
        for future, task in list(self._tasks.items()):
            del self._tasks[future]
            try:
                yield task, future.result()
            except BrokenProcessPool:
                lost.append(task)
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool = self._fresh()
        for task in sorted(lost, key=lambda task: (task.point, task.replication)):
            key = task.point, task.replication
            self._deaths[key] = self._deaths.get(key, 0) + 1
            if self._deaths[key] < MOST_DEATHS:
                self.submit(task)
            else:
                yield task, Result({}, None, f"{MOST_DEATHS} processes that did it have died", 0.0)

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
