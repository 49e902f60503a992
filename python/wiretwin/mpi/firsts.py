"""What of a measured rank's first calls is this package's own: code that no core has run for a while.

A twin has what the first call of each kind takes for real, with all that mpi4py and the library do in it. A
rank that is measured makes the calls of this package instead, and what its first ones leave to be measured
beyond later ones (`wiretwin.mpi.looped`) is no computation of the program. So before its program begins, a
rank makes the calls that it is going to make, in their order, with the smallest messages, three times each:
what the first leaves beyond the others is taken off its own first call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import fmean
from typing import Any

from wiretwin.loops import FAMILIES, single_calls

from .looped import FREE, Notes, own_work, run_loops
from .rank import OwnWork, Rank
from .recording import Recorder, Recording, Solo

__all__ = ["own_work_with_firsts", "recorded_firsts"]

_TIMES = 3
_BETWEEN = "Barrier"
"""What is called between the others: what its own first call takes is not looked at."""
_KIND = {name: kind for kind, names in FAMILIES.items() for name in names}
_SENDS = {"recv": "send", "Recv": "Send", "irecv": "isend", "Irecv": "Isend"}
"""Kinds that receive, by the loop in which the other rank makes them."""

Stretch = tuple[str, str, float]


@lru_cache(maxsize=1)
def recorded_firsts(calls: tuple[str, ...], rank: int) -> Recording:
    """Record calls as `own_work_with_firsts` makes them; once in a process.

    Parameters
    ----------
    calls
        Names of calls, in the order of the first of each.
    rank
        Who makes them in the program: as rank 0, the root of collective calls, or another.
    """
    recorder = Recorder(2)
    run_loops(json.dumps(FREE), Notes(), _body(calls, min(rank, 1), [], None), recorder)
    return recorder.recording


def own_work_with_firsts(calls: tuple[str, ...], rank: int) -> OwnWork:
    """Return what calls leave to be measured, and beyond that what the first of each of these does.

    The first ones are measured first, when little of their code is in the core's caches.

    Parameters
    ----------
    calls, rank
        As for `recorded_firsts`, which is asked for the same.
    """
    me, source = min(rank, 1), Notes()
    found: list[list[list[Stretch]]] = []
    answers = Solo(recorded_firsts(calls, rank), me)
    run_loops(json.dumps(FREE), source, _body(calls, me, found, source), answers)
    out, into, within = _beyond_later(found)
    return replace(own_work(alone=True), first_out_ns=out, first_into_ns=into, first_within_ns=within)


def _beyond_later(found: Sequence[Sequence[Sequence[Stretch]]]) -> list[dict[str, int]]:
    """Return what first calls take out, into and within more than the mean of later ones, where that is more.

    A stretch between two calls belongs to the one that it leads into, before a barrier to the one before it.
    """
    out: dict[str, int] = {}
    into: dict[str, int] = {}
    within: dict[str, int] = {}
    for first, *later in found:
        if any(len(one) != len(first) for one in later):
            continue
        for place, (before, name, ns) in enumerate(first):
            more = round(ns - fmean(one[place][2] for one in later))
            if before == name:
                within[name] = within.get(name, 0) + more
            elif name == _BETWEEN:
                out.setdefault(before, more)
            else:
                into.setdefault(name, more)
    return [{name: ns for name, ns in one.items() if ns > 0} for one in (out, into, within)]


def _body(
    calls: Sequence[str], me: int, found: list[list[list[Stretch]]], source: Notes | None
) -> Callable[[Any, Rank], None]:
    """Return what a rank does: each kind of call a few times, a barrier after each; of `me`, all is noted."""

    def body(world: Any, rank: Rank) -> None:
        made = single_calls(world)
        kinds = dict.fromkeys(_KIND[name] for name in calls if name in _KIND and name != _BETWEEN)
        for _ in range(_TIMES):
            world.Barrier()
        if source is not None:
            source.taken(rank.index)
        for kind in kinds:
            loop = _SENDS.get(kind, kind)
            sender = me if loop == kind else 1 - me
            times = []
            for _ in range(_TIMES):
                made[loop](sender)
                world.Barrier()
                if source is not None:
                    times.append(source.taken(rank.index))
            found.append(times)

    return body
