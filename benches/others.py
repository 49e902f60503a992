"""How much of a machine's processors other work has while a measurement is made."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

__all__ = ["Others"]


class Others:
    """What is at work beside this process, what it has started, and what is said to be ours as well.

    Parameters
    ----------
    ours
        Processes whose work is ours as well, and that of all that they start: the keeper of a testbed,
        for one, which starts the wire and every rank. What ends in init's hands counts as ours too,
        since launchers of MPI leave their daemons to it.
    """

    def __init__(self, ours: Iterable[int] = ()) -> None:
        self._ours = {os.getpid(), *ours}
        self._begun = self._so_far()

    def share(self) -> float:
        """Return the share of all cores, from 0 to 1, that others have had."""
        elapsed, busy, own = (now - before for now, before in zip(self._so_far(), self._begun, strict=True))
        return max(0.0, busy - own) / (elapsed * (os.cpu_count() or 1))

    def _so_far(self) -> tuple[float, float, float]:
        """Return the time, what the machine has worked and what of it was ours, in seconds."""
        # proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
        ticks = [int(word) for word in Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]]
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
        own = {}
        for pid in self._ours:
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                own |= {one.pid: one for one in (process, *process.children(recursive=True))}
        return (
            time.monotonic(),
            busy,
            sum(map(_worked, own.values())) + _worked(psutil.Process(1), range(2, 4)),
        )


def _worked(process: psutil.Process, fields: Iterable[int] = range(4)) -> float:
    """Return what a process and those that it has waited for have worked, in seconds; 0 where it is gone."""
    with contextlib.suppress(psutil.Error):
        times = process.cpu_times()  # user, system, and both of those that it has waited for
        return sum(times[field] for field in fields)
    return 0.0
