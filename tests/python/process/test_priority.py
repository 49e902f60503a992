"""A real-time priority: taken where asked for, refused where it is none, given back."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wiretwin import priority

PROGRAM = """
import os
from wiretwin import priority
priority.take(above=1)
print(os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)
priority.give_back()
print(os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)
"""


def run(value: str) -> subprocess.CompletedProcess[str]:
    env = dict(os.environ, **{priority.VARIABLE: value})
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=60
    )


def test_nothing_happens_unless_it_is_asked_for() -> None:
    assert run("").stdout.split("\n")[:2] == ["0 0", "0 0"]


@pytest.mark.parametrize("value", ["0", "98", "-3", "high", "5.5"])
def test_what_is_no_priority_is_refused_with_what_is_allowed(value: str) -> None:
    assert f"WIRETWIN_PRIORITY = {value!r}; allowed is 1 to 97" in run(value).stderr


def test_a_priority_is_taken_and_given_back() -> None:
    done = run("3")
    if os.geteuid() != 0 and "PermissionError" in done.stderr:
        return  # the error says so itself
    assert done.stdout.split("\n")[:2] == [f"{os.SCHED_FIFO} 4", f"{os.SCHED_OTHER} 0"]
