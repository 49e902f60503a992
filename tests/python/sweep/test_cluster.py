"""A sweep on a real scheduler with two workers, one of which is killed."""

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

from wiretwin.errors import InputError
from wiretwin.sweep.run import sweep

SCENARIO = """
[network]
stack = "fore/aal5"
host = "sparc2"
switch = "asx100"
load = [{ share = 0.4 }]
[echo]
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


def test_a_worker_that_is_killed_has_its_runs_done_by_the_other(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO)
    one, two, three = (tmp_path / f"{name}.log" for name in ("scheduler", "worker-1", "worker-2"))
    scheduler = ("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with contextlib.ExitStack() as stack:
        running = stack.enter_context(started(*scheduler, log=one))
        address = said(one, r"Scheduler at:\s+(tcp://\S+)", running)
        worker = (
            "dask_worker",
            address,
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--host",
            "127.0.0.1",
        )
        first = stack.enter_context(started(*worker, log=two))
        second = stack.enter_context(started(*worker, log=three))
        for log, running in ((two, first), (three, second)):
            said(log, r"(Registered to)", running)
        killed: list[int] = []

        def kill(done: int, total: int, words: str) -> None:
            if done == 2 and not killed:
                killed.append(done)
                first.send_signal(signal.SIGKILL)

        found = sweep(file, OVER, tmp_path / "far", replications=3, dask=address, progress=kill)
        assert killed == [2]
        assert first.wait(LIMIT_S) == -signal.SIGKILL
        assert len(found.folder.runs) == 6
        assert not found.folder.failed
    near = sweep(file, OVER, tmp_path / "near", replications=3, workers=1)
    assert near.digest == found.digest


def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO)
    with pytest.raises(InputError, match="--dask: 'carrier://pigeon'"):
        sweep(file, OVER, tmp_path / "far", dask="carrier://pigeon")
