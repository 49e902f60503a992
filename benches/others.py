"""How much of a machine's processors other work has while a measurement is made."""

from __future__ import annotations

import os
import time
from pathlib import Path

__all__ = ["Others"]


class Others:
    """What is at work beside this process and its children, from when it is made.

    Children count once they have ended and been waited for.
    """

    def __init__(self) -> None:
        self._begun = self._so_far()

    def share(self) -> float:
        """Return the share of all cores, from 0 to 1, that others have had."""
        elapsed, busy, own = (now - before for now, before in zip(self._so_far(), self._begun, strict=True))
        return max(0.0, busy - own) / (elapsed * (os.cpu_count() or 1))

    @staticmethod
    def _so_far() -> tuple[float, float, float]:
        """Return the time, what the machine has worked and what of it was ours, in seconds."""
        # proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
        ticks = [int(word) for word in Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]]
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
        return time.monotonic(), busy, sum(os.times()[:4])
