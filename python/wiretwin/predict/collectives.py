"""Which algorithm for which collective: the one with the least predicted time, and Open MPI's rules file.

The messages of each algorithm are simulated on the twin's hosts and the network. What is not simulated is
the arithmetic of reductions, which the algorithms share.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wiretwin import _core
from wiretwin.errors import InputError, SimulationError
from wiretwin.predict.model import AnyNetwork, Side, Site
from wiretwin.predict.records import DEFAULT_SEED
from wiretwin.twin import Twin

__all__ = [
    "MPICH",
    "OPENMPI",
    "SIZES",
    "Choice",
    "Library",
    "choose",
    "offered",
    "openmpi_rules",
    "rounds",
    "starts",
]

Library = Literal["openmpi", "mpich"]

SIZES = tuple(4**power for power in range(1, 11))
"""Lengths of messages in bytes, 4 to 1 MiB: of a whole broadcast or reduction, of one block of the others."""
ELEMENT = 4
"""Bytes of an element; algorithms that cut a message into a piece for each rank need one for each."""

OPENMPI: dict[str, tuple[int, dict[str, int]]] = {
    "allgather": (0, {"brucks": 2, "recursive_doubling": 3, "ring": 4}),
    "allreduce": (2, {"recursive_doubling": 3, "ring": 4, "reduce_scatter_allgather": 6}),
    "alltoall": (3, {"scattered": 1, "pairwise": 2, "brucks": 3}),
    "barrier": (6, {"dissemination": 4, "recursive_doubling": 3, "binomial": 6, "linear": 1}),
    "bcast": (
        7,
        {
            "binomial": 6,
            "linear": 1,
            "scatter_recursive_doubling_allgather": 8,
            "scatter_ring_allgather": 9,
        },
    ),
    "reduce": (11, {"binomial": 5, "linear": 1, "reduce_scatter_gather": 7}),
}
"""By collective Open MPI's number of it and of each algorithm that has a schedule here.

Collectives are numbered as in ``COLLTYPE`` of Open MPI 4.1's ``coll_base_functions.h``, algorithms as
``ompi_info --param coll tuned -l 9`` of 4.1.4 lists them for ``coll_tuned_*_algorithm``. There a barrier by
dissemination is ``bruck`` and one by a binomial tree ``tree``, an all-to-all that starts everything at once
``linear``, and Rabenseifner's algorithm what is called by its two halves here.
"""
MPICH: dict[str, tuple[str, ...]] = {
    "allgather": ("brucks", "recursive_doubling", "ring"),
    "allreduce": ("recursive_doubling", "reduce_scatter_allgather"),
    "alltoall": ("brucks", "pairwise", "scattered"),
    "bcast": ("binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather"),
    "reduce": ("binomial", "reduce_scatter_gather"),
}
"""By collective the algorithms that MPICH 4.0 and 5.0 have a name for, and that have a schedule here.

A barrier has one schedule there, dissemination, so there is nothing to choose.
"""
PIECES = ("reduce_scatter", "scatter_", "ring")
"""Beginnings of algorithms that cut a broadcast or reduction into pieces."""
MOST_AT_ONCE = 32
"""With more ranks than this the all-to-all simulated here starts in batches, Open MPI's at once."""


@dataclass(frozen=True)
class Choice:
    """The fastest algorithm of a collective for a length.

    Attributes
    ----------
    collective, algorithm
        By name as `wiretwin._core.schedule` has them.
    nbytes
        The length of a message as in `SIZES`, bytes; 0 of a barrier.
    seconds
        Predicted until the last rank has ended, by algorithm, the fastest first.
    """

    collective: str
    nbytes: int
    seconds: dict[str, float]

    @property
    def algorithm(self) -> str:
        """The fastest."""
        return next(iter(self.seconds))


def choose(
    *,
    ranks: int,
    twin: str | Path | Twin | None,
    network: AnyNetwork | None,
    ranks_per_host: int = 1,
    layer: str | None = None,
    sizes: Sequence[int] = SIZES,
    library: Library = "openmpi",
) -> list[Choice]:
    """Return the fastest algorithm of each collective for each length.

    Parameters
    ----------
    ranks
        2 to 1024.
    twin, network, ranks_per_host
        As for `wiretwin.predict`.
    layer
        The layer of the twin that the messages take; by default that of the library.
    sizes
        Lengths in bytes, each a multiple of 4.
    library
        Whose algorithms.

    Raises
    ------
    InputError
        An input is wrong.
    """
    if not 2 <= ranks <= 1024:
        raise InputError(key="--ranks", value=ranks, allowed="2 to 1024 with --export")
    for size in sizes:
        if size < ELEMENT or size % ELEMENT:
            raise InputError(key="--size", value=size, allowed=f"multiples of {ELEMENT} bytes")
    layer = layer or f"mpi/{library}"
    site = Site.of(ranks, network, None if network is None else ranks_per_host, layer)
    fitted = site.twin_for(twin)
    state = None if fitted is None else next((one.name for one in fitted.layer(layer).states), None)
    side: Side = "value"
    model = json.dumps(site.model(fitted, layer, side, state))
    made = []
    known = (
        {name: tuple(numbers) for name, (_, numbers) in OPENMPI.items()} if library == "openmpi" else MPICH
    )
    for collective, algorithms in known.items():
        for nbytes in (0,) if collective == "barrier" else sorted(set(sizes)):
            timed = {
                algorithm: _seconds(collective, algorithm, ranks, nbytes, model, library)
                for algorithm in algorithms
                if offered(collective, algorithm, ranks, nbytes, library)
            }
            made.append(Choice(collective, nbytes, dict(sorted(timed.items(), key=lambda one: one[1]))))
    return made


def offered(collective: str, algorithm: str, ranks: int, nbytes: int, library: Library = "openmpi") -> bool:
    """Return whether the library sends the messages that are simulated here, not others in their place.

    Checked against Open MPI 4.1 and MPICH 4.0 and 5.0, by the messages that each sends.
    """
    cut = collective in ("bcast", "reduce", "allreduce") and algorithm.startswith(PIECES)
    if cut and nbytes < ranks * ELEMENT:
        return False
    doubles = "recursive_doubling" in algorithm and collective != "allreduce"
    halves = algorithm.startswith("reduce_scatter") and (library == "openmpi" or collective == "reduce")
    if doubles or halves:
        return ranks & (ranks - 1) == 0
    return library == "mpich" or algorithm != "scattered" or ranks <= MOST_AT_ONCE


def rounds(
    collective: str, algorithm: str, rank: int, ranks: int, nbytes: int, library: Library = "openmpi"
) -> list[list[tuple[str, int, int, int]]]:
    """Return what a rank does, as `wiretwin._core.schedule` has it for MPICH, or with Open MPI's broadcast.

    In its tree a rank sends to those whose number has one more bit, the lowest first
    (``ompi_coll_base_topo_build_bmtree`` of ``coll_base_topo.c``).
    """
    if library == "mpich" or (collective, algorithm) != ("bcast", "binomial"):
        return _core.schedule(collective, algorithm, rank, ranks, 0, nbytes, unit=ELEMENT)
    above = 1 << rank.bit_length()
    made = [[("recv", rank ^ (above >> 1), 0, nbytes)]] if rank else []
    while rank + above < ranks:
        made.append([("send", rank + above, 0, nbytes)])
        above <<= 1
    return made


def _seconds(collective: str, algorithm: str, ranks: int, nbytes: int, model: str, library: Library) -> float:
    traces = []
    for rank in range(ranks):
        trace, request = _core.RankTrace(), 0
        for steps in rounds(collective, algorithm, rank, ranks, nbytes, library):
            begun = []
            for what, other, _, length in sorted(steps, key=lambda one: one[0] != "recv"):
                if what not in ("recv", "send"):
                    continue
                request += 1
                begun.append(request)
                if what == "recv":
                    trace.append(("recv", 0, other, 0, length), request)
                else:
                    trace.append(("send", 0, other, 0, length, "standard"), request)
            if begun:
                trace.append(("wait", begun, "all"))
        trace.append(("finish",))
        traces.append(trace)
    world = _core.World(ranks, model, seed=DEFAULT_SEED, timeline=False)
    if not world.replay(traces):
        raise SimulationError(f"{collective} by {algorithm}: ranks wait for what never comes")
    return max(world.now_ps(rank) for rank in range(ranks)) / 1e12


def starts(choices: Sequence[Choice], collective: str) -> list[tuple[int, str]]:
    """Return from which length on, bytes, which algorithm is a collective's; the first from 0."""
    found: list[tuple[int, str]] = []
    for one in sorted((one for one in choices if one.collective == collective), key=lambda one: one.nbytes):
        if not found or found[-1][1] != one.algorithm:
            found.append((one.nbytes if found else 0, one.algorithm))
    return found


def openmpi_rules(choices: Sequence[Choice], ranks: int) -> str:
    """Return choices as ``coll_tuned_dynamic_rules_filename`` of Open MPI reads them.

    They hold for communicators of so many ranks; others get algorithm 0, which leaves it to Open MPI. A rule
    holds from its length on, and the first from 0. Open MPI counts all blocks of an allgather or all-to-all.
    Without segments: the algorithms are simulated so. The format is that of ``coll_tuned_dynamic_file.c``.
    """
    given = {one.collective for one in choices}
    lines = [f"{len(given)}  # collectives, for {ranks} ranks; reductions by commutative operations only"]
    for collective in sorted(given):
        number, numbers = OPENMPI[collective]
        scale = ranks if collective in ("allgather", "alltoall") else 1
        rules = [(start * scale, algorithm) for start, algorithm in starts(choices, collective)]
        lines += [f"{number}  # {collective}", "2  # numbers of ranks", f"{ranks}", f"{len(rules)}  # rules"]
        for start, algorithm in rules:
            lines.append(f"{start} {numbers[algorithm]} 0 0  # from these bytes on {algorithm}")
        lines += [f"{ranks + 1}  # and above", "1", "0 0 0 0"]
    return "\n".join(lines) + "\n"
