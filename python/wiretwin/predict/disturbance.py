"""What the simulator takes of the core that it shares with a rank, where ranks leave it none of its own.

Between two stretches of that rank's work the simulator has run on its core, and has left caches and
predictions of branches that are the simulator's: stretches of 7 us take half as long again by it. So it
shares the core of the last rank and that of the first in turn, and by how much longer a rank's work takes
when it is disturbed, than in runs in which another rank was, is left out of it from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

__all__ = ["Disturbance"]

_MOST = 0.9
"""Of its work no more is ever taken for disturbance."""


class Disturbance:
    """Which rank has the simulator on its core in which run, and how much of its work is due to that.

    Parameters
    ----------
    ranks
        How many there are, as many as cores.
    """

    LEAST = 2
    """Runs after which each of the two ranks has been disturbed and left alone."""

    def __init__(self, ranks: int) -> None:
        self._last = ranks - 1
        self._disturbed: dict[int, list[float]] = {}
        self._alone: dict[int, list[float]] = {}

    def of(self, run: int) -> tuple[int, float]:
        """Return the rank of a run, by its number, and the share of its work to be left out."""
        rank = 0 if run % 2 else self._last
        disturbed, alone = self._disturbed.get(rank), self._alone.get(rank)
        if not disturbed or not alone or median(disturbed) <= 0.0:
            return rank, 0.0
        return rank, min(_MOST, max(0.0, 1.0 - median(alone) / median(disturbed)))

    def saw(self, rank: int, share: float, computed_s: Sequence[float]) -> None:
        """Take in what each rank computed in a run, for how many seconds, less a share of it for one rank."""
        for one, seconds in enumerate(computed_s):
            if one == rank:
                self._disturbed.setdefault(one, []).append(seconds / (1.0 - share))
            else:
                self._alone.setdefault(one, []).append(seconds)
