"""Sweeps on a real scheduler with two workers: one is killed, then the scheduler."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wiretwin.errors import InputError, MeasureError
from wiretwin.sweep.run import Progress, Sweep, sweep

SCENARIO = """
[network]
preset = "asx100"
load = [{ share = 0.4 }]
[echo]
stack = "fore/aal5"
size = "1 KiB"
rounds = 2000
"""
OVER = ["echo.size=4 B,8 B"]
LIMIT_S = 120


@contextlib.contextmanager
def started(*words: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open(log, "wb") as out:
        running = subprocess.Popen([sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
                                   stdout=out, stderr=out, cwd=log.parent)  # fmt: skip
        try:
            yield running
        finally:
            running.kill()
            running.wait()


def said(log: Path, pattern: str, running: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + LIMIT_S
    while not (found := re.search(pattern, log.read_text())):
        assert running.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
    return found[1]


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Run a scheduler and two workers: its address, and the three of them."""
    scheduler = ("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(started(*scheduler, log=folder / "scheduler.log"))]
        address = said(folder / "scheduler.log", r"Scheduler at:\s+(tcp://\S+)", running[0])
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        logs = [folder / f"worker-{number}.log" for number in (1, 2)]
        for log in logs:
            running.append(stack.enter_context(started("dask_worker", address, *options, log=log)))
        for log, worker in zip(logs, running[1:], strict=True):
            said(log, r"(Registered to)", worker)
        yield address, running


def test_who_is_killed_has_its_runs_done_by_others(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO)
    killed: list[int] = []
    with cluster(tmp_path) as (address, (scheduler, first, _)):

        def kill(whom: subprocess.Popen[bytes], after: int) -> Progress:
            def told(done: int, total: int, words: str) -> None:
                if done == after:
                    killed.append(done)
                    whom.kill()

            return told

        found = sweep(file, OVER, tmp_path / "far", replications=3, dask=address, progress=kill(first, 2))
        assert first.wait(LIMIT_S) == -signal.SIGKILL
        assert len(found.folder.runs) == 6
        assert not found.folder.failed

        def other(done: int, total: int, words: str) -> None:
            """Run another sweep on the same scheduler while this one is under way."""
            if done == 1:
                over = ["echo.size=16 B"]
                beside.append(sweep(file, over, tmp_path / "beside", replications=1, dask=address))
                kill(scheduler, 1)(done, total, words)

        beside: list[Sweep] = []
        with pytest.raises(MeasureError, match=r"the scheduler is gone: .* of 6 runs are kept in"):
            sweep(file, OVER, tmp_path / "cut", replications=3, dask=address, progress=other)
    assert killed == [2, 1]
    near = sweep(file, OVER, tmp_path / "near", replications=3, workers=1)
    assert near.digest == found.digest
    assert sweep(file, OVER, tmp_path / "cut", replications=3, workers=1).digest == near.digest
    alone = sweep(file, ["echo.size=16 B"], tmp_path / "alone", replications=1, workers=1)
    assert [one.digest for one in beside] == [alone.digest]


def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO)
    with pytest.raises(InputError, match="--dask: 'carrier://pigeon'"):
        sweep(file, OVER, tmp_path / "far", dask="carrier://pigeon")
