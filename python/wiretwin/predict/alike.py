"""Ranks that do the same: their computation is measured on some of them, others in each pass.

What a rank does is told by its trace: which calls it makes where, how long its messages are, how many it
waits for. Peers and contents are not in that. Ranks of one trace do the same work, unless the data decide:
then those that are measured differ by more than noise, and all have to be measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from wiretwin.mpi.recording import Recording

__all__ = ["differ", "groups", "sample"]

_DIFFER = 1.5
"""By so much a rank's computation exceeds another's of the same trace in the same pass: that is no noise."""
_WORTH_PS = 10_000_000_000
"""Ranks that compute for less may differ by the first touch of a page or a slice of other work."""


def groups(recording: Recording, durations_ps: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the ranks by what they do, in the order of the first of each group."""
    found: dict[object, list[int]] = {}
    for rank, trace in enumerate(recording.traces):
        key = trace.kind(), len(durations_ps[rank])
        found.setdefault(key, []).append(rank)
    return list(found.values())


def sample(alike: Sequence[Sequence[int]], each: int, turn: int, seed: int) -> dict[int, int]:
    """Return for every rank the one of its group that is measured in its place, in one pass.

    Parameters
    ----------
    alike
        The groups.
    each
        How many of a group are measured; all of one that has no more.
    turn, seed
        Which pass it is, and what the ranks are drawn by.
    """
    random = Random(f"{seed} {turn}")
    found = {}
    for group in alike:
        chosen = sorted(random.sample(list(group), min(each, len(group))))
        for place, rank in enumerate(group):
            found[rank] = rank if rank in chosen else chosen[place % len(chosen)]
    return found


def differ(alike: Sequence[Sequence[int]], total_ps: Mapping[int, int]) -> bool:
    """Return whether measured ranks of a group computed for times that differ by more than noise."""
    for group in alike:
        found = [total_ps[rank] for rank in group if rank in total_ps]
        if found and max(found) > max(_WORTH_PS, _DIFFER * min(found)):
            return True
    return False
