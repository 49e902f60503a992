"""Runs on a Dask cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from wiretwin import keeper, scratch, shared_memory
from wiretwin.errors import InputError, MeasureError, StorageError
from wiretwin.sweep.work import Result, Task, do

__all__ = ["Cluster"]

CONNECT_LIMIT_S = 20
"""For the scheduler to answer, and for its first worker."""
SILENCE_LIMIT_S = 60
"""Without a worker for so long, a sweep ends."""


class Cluster:
    """A scheduler and its workers: one that runs, by its address, or one of our own (``local``).

    A worker that dies has its runs done by another; the scheduler sees to that.
    """

    def __init__(self, address: str, workers: int) -> None:
        import dask.config
        import distributed

        # What the package has no types for is taken as it comes.
        # What goes wrong with a cluster is an error of ours, told once, in place of its log.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        connect: Any = distributed.Client
        start: Any = distributed.LocalCluster
        completed: Any = distributed.as_completed
        self._own: Any = None
        self._stack = contextlib.ExitStack()
        try:
            if address == "local":
                _room_for(workers)
                folder = str(self._stack.enter_context(scratch.folder(what="dask")))
                self._stack.enter_context(dask.config.set({"temporary-directory": folder}))
                run = keeper.environment({})
                # The first of them are started as this process is, those that replace one as `env` says.
                with _variables(run):
                    self._own = start(
                        n_workers=workers,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address=None,
                        local_directory=folder,
                        env=run,
                    )
            self._client: Any = connect(self._own or address, timeout=CONNECT_LIMIT_S)
        except (OSError, ValueError, TimeoutError) as error:
            self._stack.close()
            raise InputError(
                key="--dask", value=address, reason=f"does not answer: {str(error) or 'no word'}",
                allowed="the address of a scheduler, such as tcp://host:8786, or local",
            ) from None  # fmt: skip
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_LIMIT_S)
            self._same_version()
        except BaseException as error:
            self.close()
            if isinstance(error, TimeoutError):
                raise MeasureError(f"--dask {address}: no worker came within {CONNECT_LIMIT_S} s") from None
            raise
        self.room = 2 * max(1, sum(self._client.nthreads().values()))
        # Keys are the scheduler's: those of another sweep that it serves must not be ours.
        self._name = f"wiretwin-{uuid.uuid4().hex}"
        self._tasks: dict[str, Task] = {}
        self._coming: Any = completed(with_results=False)

    def _same_version(self) -> None:
        """Reject workers with another wiretwin: their runs would not be ours."""
        import wiretwin

        for worker, version in self._client.run(_version).items():
            if version != wiretwin.__version__:
                raise InputError(
                    key="--dask", value=worker, reason=f"has wiretwin {version}",
                    allowed=f"workers with wiretwin {wiretwin.__version__}, as here",
                )  # fmt: skip

    def submit(self, task: Task) -> None:
        """Hand over a run."""
        key = f"{self._name}-{task.point}-{task.replication}"
        with _connected():
            future = self._client.submit(do, task, key=key, pure=False)
        self._tasks[future.key] = task
        self._coming.add(future)

    def ended(self) -> Iterator[tuple[Task, Result]]:
        """Wait until at least one run has ended; yield those that have.

        Raises
        ------
        MeasureError
            There has been no worker for `SILENCE_LIMIT_S` seconds, or the scheduler is gone.
        """
        with _connected():
            came = [self._one(self._next())]
            while not self._coming.is_empty() and self._coming.has_ready():
                came.append(self._one(self._next()))
        yield from came

    def _next(self) -> Any:
        import distributed

        wait: Any = distributed.wait
        while True:
            with contextlib.suppress(TimeoutError):
                wait(list(self._coming.futures), timeout=SILENCE_LIMIT_S, return_when="FIRST_COMPLETED")
                return next(self._coming)
            if not self._client.nthreads():
                raise MeasureError(f"--dask: there has been no worker for {SILENCE_LIMIT_S} s")

    def _one(self, future: Any) -> tuple[Task, Result]:
        import distributed

        task = self._tasks.pop(future.key)
        error = future.exception()
        if error is None:
            return task, future.result()
        if isinstance(error, distributed.KilledWorker):
            return task, Result.of_lost(f"workers that did it have died: {error}")
        return task, Result({}, None, f"{type(error).__name__}: {error}", 0.0)

    def close(self) -> None:
        """Leave the cluster; one of our own ends, and runs under way are lost."""
        with self._stack:
            self._client.close()
            if self._own is not None:
                self._own.close()


def _room_for(workers: int) -> None:
    """Reject a cluster of our own where its semaphores find no room."""
    found, needed = shared_memory.room(), workers * shared_memory.WORKER_BYTES
    if found is not None and found.free < needed:
        raise StorageError(
            shared_memory.FOLDER,
            f"full: {found}, and a cluster of {workers} workers needs {needed >> 10} KiB there; "
            "without --dask a sweep needs none",
        )


@contextlib.contextmanager
def _variables(more: Mapping[str, str]) -> Iterator[None]:
    """Have variables in our environment for a moment, for what takes it as it is."""
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _connected() -> Iterator[None]:
    """Say so where the scheduler is gone."""
    try:
        yield
    except (concurrent.futures.CancelledError, asyncio.CancelledError, OSError) as error:
        raise MeasureError(f"--dask: the scheduler is gone: {type(error).__name__}") from error


def _version() -> str:
    import wiretwin

    return wiretwin.__version__
