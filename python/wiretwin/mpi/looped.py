"""Loops of calls between two simulated ranks: what their messages take, and what of their time is our own.

A simulated rank's calls are Python of this package, and what they do before and after the call proper (look
at buffers, serialise objects) or within it (combine numbers) is measured with what the program computes. That
is right for a program's own numbers and objects; what calls with the smallest ones take is not the program's.
"""

from __future__ import annotations

import gc
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import greenlet

from wiretwin import _core
from wiretwin.loops import COLLECTIVES, FAMILIES, collective_calls, iterations, streams

from .away import Away
from .comm import COMM_WORLD, open_world
from .compute import ComputeSource, Given, Measured
from .rank import OwnWork, Rank
from .recording import Recorder, Recording, Solo
from .runtime import Runtime

__all__ = ["FREE", "Notes", "own_work", "recorded_loops", "run_loops", "times_ns"]


@dataclass(frozen=True, slots=True)
class _Often:
    """How often the loops are gone through; of each, how many iterations are made before, and looked at."""

    rounds: int
    warm: int
    iterations: int


_AT_A_STRETCH = _Often(1, 4, 12)
_IN_ROUNDS = _Often(3, 2, 5)
"""Where calls are measured: a core that is slower for a while is so for all of them."""

_REFERENCE = "Barrier"
"""It does no work within."""
_SWEEPS, _STILL_NS = 1000, 1e-6
_NOTHING = [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}]
FREE = {
    "nodes": [{"cores": 2, "idle": "spin", "quantum_ps": 4_000_000_000}],
    "placement": [0, 0],
    "intra": {"call_ps": 0, "rendezvous_from_bytes": None}
    | dict.fromkeys(("overhead_send", "overhead_recv", "latency", "gap"), _NOTHING),
    "inter": None,
    "link": None,
}
"""Messages that cost nothing."""


@lru_cache(maxsize=2)
def own_work(*, alone: bool = False) -> OwnWork:
    """Find what calls with the smallest messages and objects leave to be measured; once in a process.

    Parameters
    ----------
    alone
        As a rank leaves it that runs alone (`wiretwin.mpi.recording.Solo`), from a recording of the same
        loops: it is answered sooner, and the kernel is asked for how long it was away.
    """
    pairs: dict[tuple[str, str], list[float]] = {}
    within: dict[str, list[float]] = {}
    if not alone:
        _note(pairs, within, None)
    else:
        for rank in range(2):
            _note(pairs, within, Solo(recorded_loops(), rank))
    return OwnWork(*(_by_name(found) for found in (*_sides(pairs), _means(within))))


@lru_cache(maxsize=1)
def recorded_loops() -> Recording:
    """Record the loops; once in a process."""
    recorder = Recorder(2)
    _run(json.dumps(FREE), Notes(), _every, _ignore, _ignore, recorder)
    return recorder.recording


def _every(world: Any) -> list[tuple[str, Callable[[], Any]]]:
    """Return all loops; what an iteration does is followed by a barrier, by which all calls are compared."""

    def followed(iteration: Callable[[], Any]) -> Callable[[], Any]:
        def both() -> None:
            iteration()
            world.Barrier()

        return both

    loops = [*iterations(world).items(), *streams(world).items()]
    return [(kind, followed(iteration)) for kind, iteration in loops]


def _ignore(rank: Rank, kind: str) -> None:
    """Keep nothing."""


def _note(
    pairs: dict[tuple[str, str], list[float]], within: dict[str, list[float]], solo: Solo | None
) -> None:
    """Run the loops, of both ranks or of one alone; add what was measured, in nanoseconds.

    Between one call and the next, to `pairs`; of each piece of work within a call, to `within`.
    """
    source = Notes()
    found: dict[tuple[int, str, str, str], list[float]] = {}

    def note(rank: Rank, kind: str) -> None:
        for before, name, ns in source.taken(rank.index):
            found.setdefault((rank.index, kind, before, name), []).append(ns)

    _run(json.dumps(FREE), source, _every, lambda rank, kind: source.taken(rank.index), note, solo)
    for (_, _, before, name), took in found.items():
        if before == name in COLLECTIVES and name != _REFERENCE:
            within.setdefault(name, []).append(statistics.median(took))
        else:
            pairs.setdefault((before, name), []).append(statistics.median(took))


def _means(found: Mapping[Any, Sequence[float]]) -> dict[Any, float]:
    """Return the means, over ranks and loops."""
    return {key: statistics.fmean(values) for key, values in found.items()}


def _sides(pairs: Mapping[tuple[str, str], Sequence[float]]) -> tuple[dict[str, float], dict[str, float]]:
    """Return what the way out of each call takes, and that into it, from what lies between pairs of calls.

    By least squares: each side is the mean of what the other one leaves of its pairs, in turn until none
    changes. What is the one's and what the other's cannot be told: a `Send` has as much before as after it.
    NumPy has computed nothing yet when a program begins, and is not asked.
    """
    took = _means(pairs)
    out, into = (dict.fromkeys((name for pair in took for name in pair), 0.0) for _ in range(2))
    for _ in range(_SWEEPS):
        before = dict(out)
        for side, other, own, at in ((out, into, 0, 1), (into, out, 1, 0)):
            left: dict[str, list[float]] = {}
            for pair, ns in took.items():
                left.setdefault(pair[own], []).append(ns - other[pair[at]])
            side.update(_means(left))
        if max(abs(ns - before[name]) for name, ns in out.items()) < _STILL_NS:
            break
    shift = (into["Send"] - out["Send"]) / 2
    return (
        {name: ns + shift for name, ns in out.items()},
        {name: ns - shift for name, ns in into.items()},
    )


def _by_name(found: Mapping[str, float]) -> dict[str, int]:
    """Return what was found of each call for those that share its code, too."""
    return {name: round(ns) for kind, ns in found.items() for name in FAMILIES.get(kind, (kind,))}


def times_ns(model_json: str, *, collective: bool = False) -> dict[str, float]:
    """Return what an iteration of each loop (`LOOPED`) takes the slower rank of a model of two.

    Nothing is computed; an iteration takes what its messages do, in nanoseconds. With `collective` only
    loops of collective calls are run.
    """
    loops = collective_calls if collective else iterations
    begun = [0, 0]
    found: dict[str, float] = {}

    def begin(rank: Rank, kind: str) -> None:
        begun[rank.index] = rank.runtime.clock_ps(rank.index)

    def end(rank: Rank, kind: str) -> None:
        took = rank.runtime.clock_ps(rank.index) - begun[rank.index]
        found[kind] = max(found.get(kind, 0.0), took / 1e3 / _AT_A_STRETCH.iterations)

    _run(model_json, Given(), lambda world: loops(world).items(), begin, end, often=_AT_A_STRETCH)
    return found


class Notes(Measured):
    """Notes what was measured, by rank, with the call before each stretch and the one that it ended in."""

    runtime: Runtime

    def __init__(self) -> None:
        super().__init__()
        self._before = ["", ""]
        self._found: tuple[list[tuple[str, str, float]], ...] = ([], [])

    def charge(self, rank: int, call: int, digest: int, site: tuple[str, int], measured_ps: int) -> int:
        """Note a stretch, in nanoseconds."""
        name = self.runtime.ranks[rank].inside
        self._found[rank].append((self._before[rank], name, measured_ps / 1e3))
        self._before[rank] = name
        return 0

    def taken(self, rank: int) -> list[tuple[str, str, float]]:
        """Return what has been noted of a rank since the last time."""
        found = self._found[rank][:]
        self._found[rank].clear()
        return found


def _run(
    model_json: str,
    source: ComputeSource,
    loops: Callable[[Any], Iterable[tuple[str, Callable[[], Any]]]],
    begin: Callable[[Rank, str], Any],
    end: Callable[[Rank, str], Any],
    recorder: Recorder | Solo | None = None,
    often: _Often = _IN_ROUNDS,
) -> None:
    """Run loops, made of a communicator, as two ranks; `begin` and `end` are called before and after each.

    With a `Solo`, only its rank runs, as it does when a program is measured.
    """

    def body(world: Any, rank: Rank) -> None:
        made = list(loops(world))
        for _ in range(often.rounds):
            for kind, iteration in made:
                for _ in range(often.warm):
                    iteration()
                world.Barrier()
                begin(rank, kind)
                for _ in range(often.iterations):
                    iteration()
                end(rank, kind)

    run_loops(model_json, source, body, recorder)


def run_loops(
    model_json: str,
    source: ComputeSource,
    body: Callable[[Any, Rank], None],
    recorder: Recorder | Solo | None = None,
) -> None:
    """Run `body`, given the communicator and the rank, as two ranks; with a `Solo`, as its rank alone."""
    open_world(2)
    source.begin(2)
    world = _core.World(2, model_json, seed=1, timeline=False)
    opened = world if recorder is None else recorder.open(world)
    away = Away() if isinstance(recorder, Solo) else None
    placement = json.loads(model_json)["placement"]
    hosts = [f"node{host}" for host in range(max(placement) + 1)]
    runtime = Runtime(opened, 2, placement, hosts, source, away, bias_ns=0)
    runtime.apart = len(hosts) == 2
    if recorder is not None:
        recorder.furnish(runtime)
        runtime.only = recorder.only
    runtime.exits = []
    if isinstance(source, Notes):
        source.runtime = runtime

    def whole(rank: Rank) -> None:
        rank.begin()
        body(COMM_WORLD, rank)
        runtime._end(rank, 0)

    for rank in runtime.ranks:
        rank.greenlet = greenlet.greenlet(lambda _, rank=rank: whole(rank), parent=runtime.hub)
    idle = SimpleNamespace(put=lambda view: None)
    enabled = gc.isenabled()
    gc.disable()
    try:
        runtime.run(idle, (None, None))  # type: ignore[arg-type]
    finally:
        runtime.forks.close()
        if enabled:
            gc.enable()
