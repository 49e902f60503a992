"""A word of a configuration's name: what ``+spin`` changes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "ALL_LOOPS",
    "BLOCKING",
    "COLD",
    "COMPILED",
    "FETCH",
    "FIRST",
    "INTERRUPT",
    "LOAD",
    "NONBLOCKING",
    "OF_MPI_2_2",
    "ONE_CORE",
    "ONE_SIDED",
    "OVER_MESSAGES",
    "PAIRS",
    "SHARING",
    "STALLING",
    "TOGETHER",
    "Word",
    "fixed",
]

COMPILED = (sys.executable, "-P", "-m", "wiretwin.probe")
"""The command of a compiled probe."""
INTERRUPT = "interrupt"
"""A loop of two ranks that live on two hosts."""
ALL_LOOPS = frozenset({"echo", "two_write", "stream", "prtt", "send_busy", "recv_busy", "call", INTERRUPT})
"""The loops of two ranks that every probe has."""
FETCH = frozenset({"fetch"})
"""Besides, for a probe whose library can send without waiting."""
COLD = frozenset({"cold"})
"""And for a probe of scripts, which compute between their calls."""
ONE_CORE = frozenset({"one_core", "slice", "beside"})
"""Besides, for a library that is told, or does not need to be told, that ranks share a core."""
SHARING = ONE_CORE | {"one_core_recv", "one_core_probe", "one_core_any", "one_core_there"}
"""And for a probe that also tells what its ranks do there in calls of other kinds."""
FIRST = frozenset({"first"})
"""Besides, for a probe that tells what the first call of each kind takes in a fresh process."""
BLOCKING = (
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "reduce_scatter",
    "gatherv",
    "scatterv",
    "allgatherv",
    "alltoallv",
    "alltoallw",
    "reduce_scatter_block",
)
"""The collective calls of MPI that are measured, by their names without ``MPI_``."""
OF_MPI_2_2 = frozenset({"reduce_scatter_block"})
"""Those of them that came with MPI 2.2."""
NONBLOCKING = tuple(f"i{name}{end}" for name in BLOCKING for end in ("", "_busy"))
"""The same calls without waiting, from MPI 3 on: the whole, and what of it is left beside computation."""
ONE_SIDED = (
    "put",
    "get",
    "accumulate",
    "get_accumulate",
    "fetch_and_op",
    "compare_and_swap",
    "put_stream",
    "get_stream",
)
"""What one rank does to the memory of another, from MPI 3 on."""
PAIRS = ("pairs", "bidirectional")
"""Streams of pairs of ranks, one way and both ways, over any layer that loses nothing."""
LOAD = ("load",)
"""Messages of pairs of ranks, each sent when it is due, over such a layer."""
OVER_MESSAGES = frozenset([*PAIRS, *LOAD])
"""What any number of ranks do together over any layer that loses nothing."""
TOGETHER = frozenset([*BLOCKING, *NONBLOCKING, *ONE_SIDED]) | OVER_MESSAGES
"""What any number of ranks do together, for a probe whose library has calls for all of it."""
STALLING = frozenset({"echo", "two_write"})
"""Where messages sent one after the other wait for each other's acknowledgement, for 40 ms at a time, the
other loops have no overhead or gap to tell."""


@dataclass(frozen=True)
class Word:
    """A variant: what ``+word`` changes.

    Attributes
    ----------
    pattern
        Regular expression of the word; its groups are given to `options`.
    written
        How it is shown in help.
    summary
        One line.
    options
        The options it sets, from the match.
    loops
        The loops that make sense with it.
    max_bytes
        The largest message it leaves; ``None`` if it does not bound it.
    """

    pattern: str
    written: str
    summary: str
    options: Callable[[re.Match[str]], Mapping[str, Any]]
    loops: frozenset[str] = ALL_LOOPS | FETCH | SHARING | FIRST | TOGETHER
    max_bytes: int | None = None


def fixed(
    word: str,
    summary: str,
    *,
    loops: frozenset[str] = ALL_LOOPS | FETCH | SHARING | FIRST | TOGETHER,
    max_bytes: int | None = None,
    **options: Any,
) -> Word:
    """Make a word that is written in one way only and sets `options`."""
    return Word(re.escape(word), word, summary, lambda _: options, loops, max_bytes)
