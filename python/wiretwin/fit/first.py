"""What a rank's first call of each kind takes beyond a later one, from launches that make all kinds.

Each launch makes the calls in another order (`wiretwin.measure.first_mpi4py`). What the first call of a kind
takes beyond its later ones is the sum of what kinds have in common and this one is the first to need (objects
are pickled, collectives set up, a received object is looked for), and of what is its own. The parts are those
that leave the least sum of absolute deviations, none of them negative: a rank that lost its core in a call
is then one far value among many, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiretwin.fit.stats import around, interval
from wiretwin.loops import COLLECTIVES, FAMILIES
from wiretwin.twin import Figure, FirstCall

__all__ = ["EARLY", "LOOP", "early_messages", "first_calls"]

MIN_LAUNCHES = 4
LOOP, PEER = "first_", "_peer"
"""What names of samples of first calls begin with, and those of rank 1 end with."""
EARLY = "early_"
"""What names of samples of messages begin with that come before their receive; their length follows."""
LOOKING = ("recv", "sendrecv", "reduce", "allreduce", "scan", "exscan")
"""Calls of mpi4py that look for a message before they post its receive (``MPI_Mprobe``)."""
_OBJECTS = tuple(kind for kind in FAMILIES if kind.islower())
_COMMON: tuple[tuple[str, ...], ...] = (
    _OBJECTS,
    ("recv", "irecv", "sendrecv"),
    COLLECTIVES,
    tuple(kind for kind in COLLECTIVES if kind in _OBJECTS),
    ("reduce", "allreduce", "Reduce", "Allreduce"),
    ("reduce", "allreduce"),
    ("Reduce", "Allreduce"),
    ("gather", "scatter", "allgather", "alltoall"),
    ("Gather", "Scatter", "Allgather", "Alltoall"),
    ("alltoall", "Alltoall"),
    ("isend", "irecv", "Isend", "Irecv"),
)
"""Kinds that may have something in common. Within a host, a launch that is left out is told to 9.5 us a call
with the last six but ``("alltoall", "Alltoall")``, and to 11.6 without those five. That pair is for ranks
between hosts, where the first exchange among all has MPICH make a pool of requests (69 pages): with it a
launch is told to 23 us, without it to 32. 28 launches each."""
_WEIGHINGS, _SWEEPS = 40, 40
_STILL_NS, _CLOSE_NS = 1.0, 100.0


def first_calls(samples: pl.DataFrame, confidence: float) -> tuple[FirstCall, ...]:
    """Fit what first calls take; nothing where fewer than `MIN_LAUNCHES` have made them.

    Parameters
    ----------
    samples
        Of the layer, in the order in which they were taken.
    confidence
        Of the intervals.
    """
    found = samples.filter(pl.col("loop").str.starts_with(LOOP))
    by_launch = [_excesses(part) for part in found.partition_by("launch", maintain_order=True)]
    if len(by_launch) < MIN_LAUNCHES:
        return ()
    kinds = [kind for kind in FAMILIES if any(kind == call for launch in by_launch for call, _, _ in launch)]
    parts = [group for one in _COMMON if (group := tuple(kind for kind in one if kind in kinds))]
    parts += [(kind,) for kind in kinds]
    designs = [(_needs(launch, parts), np.array([ns for _, _, ns in launch])) for launch in by_launch]
    whole = _least(np.vstack([design for design, _ in designs]), np.concatenate([ns for _, ns in designs]))
    # Each launch without its own deviations: what it alone would make of one part, the others as they are.
    single = np.array([_alone(design, ns, whole) for design, ns in designs])
    fitted = []
    for place, part in enumerate(parts):
        one = around(whole[place], single[:, place], confidence)
        known = int(np.isfinite(single[:, place]).sum())
        if one.value <= 0.0 or known < 2:
            continue
        value, low, high = (max(0.0, ns) / 1e3 for ns in (one.value, one.low, one.high))
        calls = tuple(call for kind in part for call in FAMILIES[kind])
        fitted.append(
            FirstCall(
                calls=calls,
                takes_us=Figure(value=value, low=low, high=high, launches=known, samples=known),
            )
        )
    return tuple(fitted)


def early_messages(samples: pl.DataFrame, confidence: float) -> tuple[FirstCall, ...]:
    """Fit what the first message of some length takes that comes before its receive; by rising length.

    Each length has what it takes beyond what shorter ones have brought. One that takes nothing beyond noise
    is not among them, nor is any where fewer than `MIN_LAUNCHES` have sent such messages.

    Parameters
    ----------
    samples
        Of the layer, in the order in which they were taken.
    confidence
        Of the intervals.
    """
    found = samples.filter(pl.col("loop").str.starts_with(EARLY))
    excess: dict[int, list[float]] = {}
    for part in found.partition_by("launch", "loop", maintain_order=True):
        first, *later = part["value_ns"].to_list()
        if later:
            size = int(part["loop"][0].removeprefix(EARLY))
            excess.setdefault(size, []).append((first - float(np.median(later))) / 1e3)
    fitted = []
    for size, us in sorted(excess.items()):
        if len(us) < MIN_LAUNCHES:
            continue
        one = interval(np.array(us), confidence)
        if one.low > 0.0:
            takes = Figure(value=one.value, low=one.low, high=one.high, launches=len(us), samples=len(us))
            fitted.append(FirstCall(calls=LOOKING, takes_us=takes, early_from_bytes=size))
    return tuple(fitted)


def _excesses(launch: pl.DataFrame) -> list[tuple[str, bool, float]]:
    """Return the calls of a launch in order: kind, whether rank 1 made it, its first less its median, ns."""
    found: dict[str, list[float]] = {}
    for loop, value in launch.select("loop", "value_ns").iter_rows():
        found.setdefault(loop, []).append(float(value))
    calls = []
    for loop, (first, *later) in found.items():
        name = loop.removeprefix(LOOP)
        if later:
            calls.append((name.removesuffix(PEER), name.endswith(PEER), first - float(np.median(later))))
    return calls


def _needs(launch: Sequence[tuple[str, bool, float]], parts: Sequence[tuple[str, ...]]) -> NDArray[np.bool_]:
    """Return which parts each call of a launch is the first of its rank to need."""
    needs = np.zeros((len(launch), len(parts)), dtype=bool)
    had: dict[bool, set[int]] = {False: set(), True: set()}
    for row, (kind, peer, _) in enumerate(launch):
        for place, part in enumerate(parts):
            if kind in part and place not in had[peer]:
                had[peer].add(place)
                needs[row, place] = True
    return needs


def _least(needs: NDArray[np.bool_], ns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what parts take, none negative, so that the absolute deviations add up to the least.

    Squares with the weight of each call's inverse deviation come to the same, again and again (Schlossmacher
    1973); each of them is least by Hildreth's method, part by part.
    """
    design = needs.astype(np.float64)
    parts = np.zeros(design.shape[1])
    weights = np.ones(len(ns))
    for _ in range(_WEIGHINGS):
        before = parts.copy()
        products = design.T @ (weights[:, None] * design)
        wanted = design.T @ (weights * ns)
        scale = np.maximum(products.diagonal(), np.finfo(np.float64).tiny)
        for _ in range(_SWEEPS):
            for place in range(len(parts)):
                lack = wanted[place] - products[place] @ parts
                parts[place] = max(0.0, parts[place] + lack / scale[place])
        weights = 1.0 / np.maximum(np.abs(ns - design @ parts), _CLOSE_NS)
        if np.abs(parts - before).max(initial=0.0) < _STILL_NS:
            break
    return parts


def _alone(
    needs: NDArray[np.bool_], ns: NDArray[np.float64], parts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what one launch makes of each part where the others are as fitted; NaN where it says nothing."""
    left = ns - needs @ parts
    found = np.full(len(parts), np.nan)
    for place in np.flatnonzero(needs.any(axis=0)):
        found[place] = parts[place] + float(np.median(left[needs[:, place]]))
    return found
