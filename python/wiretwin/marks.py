"""Processes told by a mark in their environment: found, and ended.

What starts a process puts a mark there that all its descendants inherit, also those that have left their
parents, their session and their process group. Only the standard library is used, since `wiretwin.keeper`
runs without anything else.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["KILLED_S", "LAUNCH", "RUN", "await_gone", "end_all", "marked"]

LAUNCH = "WIRETWIN_LAUNCH"
"""Environment variable of every process of a launch or of a stack: the path of its folder."""
RUN = "WIRETWIN_RUN"
"""Environment variable of everything that a process of ours has started: the name of its run, below the
names of the runs that have started it."""
GRACE_S = 1.0
"""How long a process may take to obey SIGTERM before it is killed, in seconds."""
KILLED_S = 10.0
"""How long a killed process may take to be gone, on a busy host, before we go on."""


def marked(mark: str, variable: str = LAUNCH) -> set[int]:
    """Find the processes, other than this one, whose mark is this one or lies below it."""
    whole = f"{variable}={mark}".encode()
    below = whole + b"/"
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                variables = Path("/proc", entry, "environ").read_bytes().split(b"\0")
                if any(one == whole or one.startswith(below) for one in variables):
                    found.add(int(entry))
    return found


def end_all(find: Callable[[], set[int]], grace_s: float = GRACE_S) -> None:
    """End the processes that are found: TERM, and KILL after `grace_s` seconds, until none is found any more.

    What was being started at a look is found by the next one. A killed process is waited for `KILLED_S`
    seconds at most.
    """
    deadline = time.monotonic() + grace_s + KILLED_S
    number, limit_s = signal.SIGTERM, grace_s
    while (left := find()) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        await_gone(left, limit_s)
        number, limit_s = signal.SIGKILL, max(0.0, deadline - time.monotonic())


def await_gone(pids: set[int], limit_s: float) -> None:
    """Wait until all have ended, at most `limit_s` seconds."""
    deadline = time.monotonic() + limit_s
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        finally:
            os.close(descriptor)
