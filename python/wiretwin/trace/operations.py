"""From a recorded run to what its ranks ask of a simulated world, with collectives as messages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.trace.format import Trace, rejected

__all__ = ["MOST_RANKS", "Operations", "operations"]

MOST_RANKS = 65_536
"""How many ranks a recorded run is extended to at most."""


@dataclass(frozen=True)
class Operations:
    """What each rank does, as `wiretwin._core.World.replay` takes it.

    Attributes
    ----------
    traces
        By rank, with what its computations take.
    sha256
        Of the file that says so, in hexadecimal; of a recorded run, of its manifest.
    """

    traces: list[_core.RankTrace]
    sha256: str

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return len(self.traces)

    @property
    def messages(self) -> int:
        """How many messages are sent."""
        return sum(trace.sends() for trace in self.traces)


def operations(trace: Trace, *, compute_scale: float = 1.0, ranks: int | None = None) -> Operations:
    """Return what the ranks of a recorded run do, its collectives by the algorithms of MPICH.

    A receive takes the message that it took in the recorded run, and a wait is for the requests that it had
    completed then. Probes are left out: what they found is received by the receive behind them.

    Parameters
    ----------
    trace
        The recorded run.
    compute_scale
        How much longer computation takes than it did then.
    ranks
        As many ranks in place of those that were recorded, from 1 to 65,536. Each does what a recorded one
        did that lies as it does on a line or a grid of ranks, with neighbours, with one rank by its number,
        or with all others in turn; its messages are as long and its computation takes as long.

    Raises
    ------
    InputError
        A rank's file is damaged; the run used what is not recorded; ranks do not agree on a collective; what
        they do does not follow from their places.
    """
    if ranks is not None and not 1 <= ranks <= MOST_RANKS:
        raise InputError(key="--ranks", value=ranks, allowed=f"1 to {MOST_RANKS}")
    more = None if ranks == trace.ranks else ranks
    with rejected():
        traces = _core.read_recording(trace.path, trace.ranks, compute_scale, more)
    return Operations(traces, hashlib.sha256((trace.path / Trace.MANIFEST).read_bytes()).hexdigest())
