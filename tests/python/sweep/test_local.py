"""Worker processes of a sweep: one run that kills those that do it takes no other with it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from wiretwin.sweep.local import MOST_DEATHS, Cores
from wiretwin.sweep.work import Result, Task

POISON = """
import os, signal
from wiretwin.sweep.work import Result

def do(task):
    if task.scenario["dies"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return Result({}, f"{task.point} {task.replication}", None, 0.0)
"""


def test_a_run_that_kills_its_workers_is_given_up_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "poison.py").write_text(POISON)
    monkeypatch.syspath_prepend(tmp_path)
    tasks = [Task(point, 0, {"dies": point == 1}, 0) for point in range(6)]
    pool = Cores(1, importlib.import_module("poison").do)
    waiting, found = list(tasks), dict[int, Result]()
    try:
        under_way = 0
        while len(found) < len(tasks):
            while waiting and under_way < pool.room:
                pool.submit(waiting.pop(0))
                under_way += 1
            for task, came in pool.ended():
                assert task.point not in found, "done twice"
                found[task.point] = came
                under_way -= 1
    finally:
        pool.close()
    dead = found.pop(1)
    assert dead.lost
    assert dead.error == f"{MOST_DEATHS} processes that did it have died"
    assert {point: came.digest for point, came in found.items()} == {
        point: f"{point} 0" for point in (0, 2, 3, 4, 5)
    }
