"""Ranks that do the same: their computation is measured on some of them, others in each pass.

What a rank does is told by its trace: which calls it makes where, how long its messages are, how many it
waits for. Peers and contents are not in that. Ranks of one trace do the same work, unless the data decide:
then those that are measured differ by more than noise, and all have to be measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from wiretwin.mpi.recording import Recording

__all__ = ["ENOUGH", "differ", "each", "groups", "sample"]

_MEASURED = 8
"""How many ranks a pass measures, shared evenly among the groups."""
_FEWEST, _MOST = 2, 4
"""The least and the most ranks of a group that a pass measures; it measures all of a smaller group."""

ENOUGH = 3
"""How often ranks are measured before a difference between them counts as real and not as noise."""
_DIFFER = 1.5
"""Ranks differ where the least that one computed is more than the most of another times this."""
_WORTH_PS = 10_000_000_000
"""Ranks that compute for less may differ by the first touch of a page or a slice of other work."""


def groups(recording: Recording, durations_ps: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the ranks by what they do, in the order of the first of each group."""
    found: dict[object, list[int]] = {}
    for rank, trace in enumerate(recording.traces):
        key = trace.kind(), len(durations_ps[rank])
        found.setdefault(key, []).append(rank)
    return list(found.values())


def each(alike: Sequence[Sequence[int]]) -> int:
    """Return how many of each group are measured in a pass; all of one that has no more."""
    return min(_MOST, max(_FEWEST, _MEASURED // len(alike)))


def sample(alike: Sequence[Sequence[int]], turn: int, seed: int) -> dict[int, int]:
    """Return for every rank the one of its group that is measured in its place, in one pass.

    Parameters
    ----------
    alike
        The groups.
    turn, seed
        Which pass it is, and what the ranks are drawn by.
    """
    random = Random(f"{seed} {turn}")
    found = {}
    for group in alike:
        chosen = sorted(random.sample(list(group), min(each(alike), len(group))))
        for place, rank in enumerate(group):
            found[rank] = rank if rank in chosen else chosen[place % len(chosen)]
    return found


def differ(alike: Sequence[Sequence[int]], totals_ps: Mapping[int, Sequence[int]]) -> bool:
    """Return whether measured ranks of a group computed for times that differ each time by much.

    With work beside it on the core's other hardware thread, or a slice of work in between, a rank may take
    twice as long, but not whenever it is measured.

    Parameters
    ----------
    alike
        The groups.
    totals_ps
        By rank for how long it computed each time that it was measured, in picoseconds.
    """
    for group in alike:
        found = [totals_ps[rank] for rank in group if rank in totals_ps]
        if found and max(map(min, found)) > max(_WORTH_PS, _DIFFER * min(map(max, found))):
            return True
    return False
