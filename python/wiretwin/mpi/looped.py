"""Loops of calls between two simulated ranks: what their messages take, and what of their time is our own.

A simulated rank's calls are Python of this package, and what they do before and after the call proper (look
at buffers, serialise objects) or within it (combine numbers) is measured with what the program computes. That
is right for a program's own numbers and objects; what calls with the smallest ones take is not the program's.
"""

from __future__ import annotations

import gc
import json
import statistics
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import greenlet

from wiretwin import _core
from wiretwin.loops import COLLECTIVES, FAMILIES, iterations, streams

from .comm import COMM_WORLD, open_world
from .compute import ComputeSource, Given, Measured
from .rank import OwnWork, Rank
from .runtime import Runtime

__all__ = ["own_work", "times_ns"]

_WARM, _ITERATIONS = 4, 12
_NOTHING = [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}]
_FREE = {
    "nodes": [{"cores": 2, "idle": "spin", "quantum_ps": 4_000_000_000}],
    "placement": [0, 0],
    "intra": {"call_ps": 0, "rendezvous_from_bytes": None}
    | dict.fromkeys(("overhead_send", "overhead_recv", "latency", "gap"), _NOTHING),
    "inter": None,
    "link": None,
}
"""Messages that cost nothing."""


@lru_cache(maxsize=1)
def own_work() -> OwnWork:
    """Find what calls with the smallest messages and objects leave to be measured; once in a process."""
    source = _Notes()
    before: dict[str, list[float]] = {}
    within: dict[str, list[float]] = {}

    def note(rank: Rank, kind: str) -> None:
        stretches = source.taken(rank.index)
        for name in dict.fromkeys(name for name, _ in stretches):
            took = [ns for one, ns in stretches if one == name]
            each = len(took) // _ITERATIONS
            if each > 1 and kind in COLLECTIVES:  # the call's beginning, and what is done within it
                sums = [sum(took[at + 1 : at + each]) for at in range(0, each * _ITERATIONS, each)]
                within.setdefault(name, []).append(statistics.median(sums) / (each - 1))
                took = took[::each]
            if name == kind or kind not in COLLECTIVES:
                before.setdefault(name, []).append(statistics.median(took))

    _run(
        json.dumps(_FREE),
        source,
        lambda world: iterations(world) | streams(world),
        lambda rank, kind: source.taken(rank.index),
        note,
    )
    return OwnWork(*(_by_name(found) for found in (before, within)))


def _by_name(found: Mapping[str, list[float]]) -> dict[str, int]:
    """Return the mean over ranks, of each call and those that share its code."""
    return {
        name: round(statistics.fmean(values))
        for kind, values in found.items()
        for name in FAMILIES.get(kind, (kind,))
    }


def times_ns(model_json: str) -> dict[str, float]:
    """Return what an iteration of each loop (`LOOPED`) takes the slower rank of a model of two.

    Nothing is computed; an iteration takes what its messages do, in nanoseconds.
    """
    begun = [0, 0]
    found: dict[str, float] = {}

    def begin(rank: Rank, kind: str) -> None:
        begun[rank.index] = rank.runtime.clock_ps(rank.index)

    def end(rank: Rank, kind: str) -> None:
        took = rank.runtime.clock_ps(rank.index) - begun[rank.index]
        found[kind] = max(found.get(kind, 0.0), took / 1e3 / _ITERATIONS)

    _run(model_json, Given(), iterations, begin, end)
    return found


class _Notes(Measured):
    """Notes what was measured, by rank, with the call that each stretch ended in."""

    runtime: Runtime

    def __init__(self) -> None:
        super().__init__()
        self._found: tuple[list[tuple[str, float]], ...] = ([], [])

    def charge(self, rank: int, call: int, digest: int, site: tuple[str, int], measured_ps: int) -> int:
        """Note a stretch, in nanoseconds."""
        self._found[rank].append((self.runtime.ranks[rank].inside, measured_ps / 1e3))
        return 0

    def taken(self, rank: int) -> list[tuple[str, float]]:
        """Return what has been noted of a rank since the last time."""
        found = self._found[rank][:]
        self._found[rank].clear()
        return found


def _run(
    model_json: str,
    source: ComputeSource,
    loops: Callable[[Any], Mapping[str, Callable[[], Any]]],
    begin: Callable[[Rank, str], Any],
    end: Callable[[Rank, str], Any],
) -> None:
    """Run loops, made of a communicator, as two ranks; `begin` and `end` are called before and after each."""
    open_world(2)
    source.begin(2)
    world = _core.World(2, model_json, seed=1, timeline=False)
    runtime = Runtime(world, 2, [0, 0], ["host"], source, bias_ns=0)
    runtime.exits = []
    if isinstance(source, _Notes):
        source.runtime = runtime

    def body(rank: Rank) -> None:
        rank.begin()
        for kind, iteration in loops(COMM_WORLD).items():
            for _ in range(_WARM):
                iteration()
            COMM_WORLD.Barrier()
            begin(rank, kind)
            for _ in range(_ITERATIONS):
                iteration()
            end(rank, kind)
        runtime._end(rank, 0)

    for rank in runtime.ranks:
        rank.greenlet = greenlet.greenlet(lambda _, rank=rank: body(rank), parent=runtime.hub)
    idle = SimpleNamespace(put=lambda view: None)
    enabled = gc.isenabled()
    gc.disable()
    try:
        runtime.run(idle, (None, None))  # type: ignore[arg-type]
    finally:
        runtime.forks.close()
        if enabled:
            gc.enable()
