"""From a recorded run to what its ranks ask of a simulated world, with collectives as messages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from wiretwin import _core
from wiretwin.trace.format import Trace, rejected

__all__ = ["Operations", "operations"]


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


def operations(trace: Trace, *, compute_scale: float = 1.0) -> Operations:
    """Return what the ranks of a recorded run do, its collectives by the algorithms of MPICH.

    A receive takes the message that it took in the recorded run, and a wait is for the requests that it had
    completed then. Probes are left out: what they found is received by the receive behind them.

    Parameters
    ----------
    trace
        The recorded run.
    compute_scale
        How much longer computation takes than it did then.

    Raises
    ------
    InputError
        A rank's file is damaged; the run used what is not recorded; ranks do not agree on a collective.
    """
    with rejected():
        traces = _core.read_recording(trace.path, trace.ranks, compute_scale)
    return Operations(traces, hashlib.sha256((trace.path / Trace.MANIFEST).read_bytes()).hexdigest())
