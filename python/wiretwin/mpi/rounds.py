"""Schedules of collective calls: those of the core, and those that a rank can only know for itself."""

from __future__ import annotations

from functools import lru_cache

from wiretwin import _core

Step = tuple[str, int, int, int]
"""`send`, `recv`, `reduce` or `copy`; peer; offset and length in bytes."""

Rounds = list[list[Step]]

_DOUBLED_BYTES = 8
"""Up to here an ``Allreduce`` of ranks on hosts of their own goes by recursive doubling."""


@lru_cache(maxsize=4096)
def rounds(
    collective: str,
    rank: int,
    size: int,
    root: int,
    nbytes: int,
    unit: int = 1,
    commutative: bool = True,
    apart: bool = False,
) -> Rounds:
    """Return the rounds of one rank, by the algorithm the core picks for the size.

    Where the ranks are `apart`, each on a host of its own, it is for an ``Allreduce`` the one that MPICH 4
    and 5 pick by the rules in their library, which know no other length. Within a host they have other ways,
    of the device.
    """
    if size == 1:
        return []
    algorithm = "auto"
    if apart and collective == "allreduce" and commutative and nbytes > _DOUBLED_BYTES:
        pieces = nbytes // unit >= 1 << (size.bit_length() - 1)
        algorithm = "reduce_scatter_allgather" if pieces else "recursive_doubling"
    return _core.schedule(
        collective, algorithm, rank, size, max(root, 0), nbytes, unit=unit, commutative=commutative
    )


@lru_cache(maxsize=1024)
def rounds_of(
    collective: str,
    rank: int,
    lengths: tuple[int, ...],
    incoming: tuple[int, ...] | None = None,
    unit: int = 1,
    commutative: bool = True,
) -> Rounds:
    """Return the rounds of one rank when every rank's block has its own length."""
    size = len(lengths)
    if size == 1:
        return []
    return _core.schedule(
        collective,
        "auto",
        rank,
        size,
        counts=lengths,
        recv_counts=incoming,
        unit=unit,
        commutative=commutative,
    )


def gather_linear(rank: int, root: int, lengths: list[int]) -> Rounds:
    """Gatherv: every rank sends to the root. `lengths`: of all at the root, elsewhere one's own."""
    if rank != root:
        return [[("send", root, 0, lengths[0])]] if lengths[0] else []
    return [[("recv", peer, 0, n) for peer, n in enumerate(lengths) if n and peer != root]]


def scatter_linear(rank: int, root: int, lengths: list[int]) -> Rounds:
    """Scatterv: the root sends to every rank. `lengths`: of all at the root, elsewhere one's own."""
    if rank != root:
        return [[("recv", root, 0, lengths[0])]] if lengths[0] else []
    return [[("send", peer, 0, n) for peer, n in enumerate(lengths) if n and peer != root]]
