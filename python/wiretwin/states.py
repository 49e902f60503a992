"""The states of a host: how far apart its ranks are, launch by launch.

Messages through shared memory cost what the caches between two cores make them cost, and which cores
those are may change under a program: a scheduler moves processes, a hypervisor moves its processors. The
round trip of a cache line between the two ranks (`wiretwin._core.crossing_ns`) tells, within a
millisecond and without a library, so it is made just before and just after whatever is timed. Launches
that lie apart by more than noise are different states, and are never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

__all__ = ["APART", "Ends", "Named", "groups", "name", "state_of"]

#: Before and after: nanoseconds of a cache line there and back.
Ends = tuple[float, float]

APART = 1.6
"""Times that lie further apart than by this factor, with none between, are of different states. Choice:
within a state they scatter by up to 1.8 over a minute in small steps, and between states by 3 at once."""
LEAST = 2
"""Launches that make a state: what was seen once has no interval."""


class _Range(Protocol):
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


class Named(Protocol):
    """A state: its name, and from where to where its launches lie."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def crossing_ns(self) -> _Range:
        """How far its ranks are apart."""
        ...


S = TypeVar("S", bound=Named)


def groups(crossings: Sequence[Ends | None]) -> list[list[int]]:
    """Sort launches into states, nearest first; return the indices of each state's launches.

    The data say how many states there are: the times of all launches, before and after, in order, are cut
    wherever the next is further away than by a factor of `APART`. A launch whose two times fall on
    different sides has seen a change and belongs to no state, as one without times; a state of fewer than
    `LEAST` launches is none.

    Parameters
    ----------
    crossings
        For each launch the time before and after, in nanoseconds; None where it is not known.
    """
    times = sorted(time for ends in crossings if ends is not None for time in ends)
    cuts = [math.sqrt(low * high) for low, high in pairwise(times) if high > APART * low]
    found: list[list[int]] = [[] for _ in range(len(cuts) + 1)]
    for index, ends in enumerate(crossings):
        if ends is not None:
            before, after = (sum(time > cut for cut in cuts) for time in ends)
            if before == after:
                found[before].append(index)
    return [members for members in found if len(members) >= LEAST]


def name(place: int, count: int) -> str:
    """Name a state by its place among `count`: near and far, with others between."""
    if count == 1:
        return "only"
    if place in (0, count - 1):
        return "far" if place else "near"
    return "middle" if count == 3 else f"middle-{place}"


def state_of(crossing: Ends | None, states: Sequence[S]) -> S | None:
    """Return the state that a launch was in, before and after; None if in none of them, or not known.

    A time belongs to the state whose range is nearest to it, if that is within a factor of `APART`.
    """
    if crossing is None:
        return None
    before, after = (_nearest(time, states) for time in crossing)
    return before if before is after else None


def _nearest(time: float, states: Sequence[S]) -> S | None:
    def away(state: S) -> float:
        return max(state.crossing_ns.low / time, time / state.crossing_ns.high)

    nearest = min(states, key=away, default=None)
    return nearest if nearest is not None and away(nearest) <= APART else None
