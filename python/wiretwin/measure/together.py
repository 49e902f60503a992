"""What any number of ranks do together: the purposes, their loops and sizes, and the steps of one launch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from wiretwin.errors import InputError
from wiretwin.measure.schedule import QUICK_BYTES, Step
from wiretwin.stacks.word import BLOCKING, LOAD, NONBLOCKING, ONE_SIDED, PAIRS

__all__ = ["PURPOSES", "Together", "chosen", "delays_of", "named", "overlapped", "steps"]

SIZES = "4,16,64,256,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB"
FIXED = {"barrier": 0, "ibarrier": 0, "ibarrier_busy": 0, "fetch_and_op": 4, "compare_and_swap": 4}
"""Loops of one size, in bytes: 0 where no message has a length, 4 for those of one number."""
_SUMMED = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block")
SUMS = frozenset(
    ["accumulate", "get_accumulate", *_SUMMED, *(f"i{one}{end}" for one in _SUMMED for end in ("", "_busy"))]
)
"""Loops that sum numbers of `NUMBER_BYTES` bytes, and take no other sizes."""
NUMBER_BYTES = 4
STREAMS = frozenset([*PAIRS, "put_stream", "get_stream"])
"""Loops of several messages an iteration."""
WINDOW = 64
"""So many at most, as the OSU benchmarks have it,"""
WINDOW_BYTES = 4 << 20
"""and at most so many bytes together, as long as these are `LEAST_WINDOW` messages."""
LEAST_WINDOW = 4
LOADS = (0.1, 0.5, 0.8, 0.95)
"""Shares of the messages that a layer carries one after the other, at which latency is looked at."""
LOAD_SAMPLES = (100, 5000)
"""Messages of a load in a launch, at least and at most."""
SETTLED_SHARE = 0.2
"""Time of what is known well enough, as a share of that of what is not."""


@dataclass(frozen=True)
class Together:
    """What ranks are measured for.

    Attributes
    ----------
    loops
        All loops there are.
    usual
        Those that are run where none are asked for.
    sizes
        The sizes that are taken where none are asked for.
    what
        In words.
    """

    loops: tuple[str, ...]
    usual: tuple[str, ...]
    sizes: str
    what: str


_USUAL = BLOCKING[:9]
PURPOSES: Mapping[str, Together] = {
    "collectives": Together(BLOCKING, _USUAL, SIZES, "collective calls"),
    "nonblocking": Together(
        NONBLOCKING,
        tuple(name for name in NONBLOCKING if name[1:].removesuffix("_busy") in _USUAL),
        SIZES,
        "collective calls that do not wait",
    ),
    "one-sided": Together(ONE_SIDED, ONE_SIDED, SIZES, "calls of which the target knows nothing"),
    "pairs": Together(PAIRS, PAIRS, SIZES, "streams of several pairs at once"),
    "load": Together((PAIRS[0], *LOAD), (PAIRS[0], *LOAD), "64,1KiB,16KiB", "latency under a load"),
}
"""What is measured on any number of ranks, by the name of its purpose."""


def overlapped(loop: str) -> str | None:
    """Return the plain loop of one whose ranks compute meanwhile; nothing for any other."""
    return loop.removesuffix("_busy") if loop.endswith("_busy") else None


def chosen(purpose: str, loops: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the loops of a purpose that were asked for, in its order; a busy one brings its plain one.

    Raises
    ------
    InputError
        One of them is not of that purpose.
    """
    known = PURPOSES[purpose]
    if loops is None:
        return known.usual
    named = [word.strip() for word in loops.split(",")] if isinstance(loops, str) else list(loops)
    for name in named:
        if name not in known.loops:
            raise InputError(
                key="--loops", value=name, reason=f"is no loop of {purpose}", allowed=", ".join(known.loops)
            )
    wanted = {*named, *(plain for name in named if (plain := overlapped(name)) is not None)}
    return tuple(name for name in known.loops if name in wanted)


def named(loop: str, delay_ns: int) -> str:
    """Return a loop as it is told apart from the same one at another load."""
    return f"{loop} every {delay_ns} ns" if delay_ns else loop


def delays_of(one_way_ns: Mapping[int, float]) -> dict[int, tuple[int, ...]]:
    """Return by size the times from one message to the next at each of `LOADS`, nanoseconds.

    Parameters
    ----------
    one_way_ns
        By size, what an iteration of ``pairs`` takes.
    """
    return {
        size: tuple(max(1, round(time / window(size) / share)) for share in LOADS)
        for size, time in one_way_ns.items()
    }


def window(size: int) -> int:
    """Return the messages of an iteration of a stream."""
    return max(LEAST_WINDOW, min(WINDOW, WINDOW_BYTES // max(size, 1)))


def steps(
    loops: Sequence[str],
    sizes: Sequence[int],
    *,
    seconds: float,
    max_bytes: int,
    short: bool,
    settled: Collection[object] = (),
    delays_ns: Mapping[int, Sequence[int]] | None = None,
) -> list[Step]:
    """Make the schedule of one launch: each loop at each size it takes, one after the other.

    Parameters
    ----------
    loops
        As `chosen`; a busy loop follows its plain one, which tells how long to compute.
    sizes
        Sizes in bytes, rising; a loop without messages has the one size 0, a sum those of whole numbers.
    seconds
        What the steps may take together, in even shares; what is settled has `SETTLED_SHARE` of one.
    max_bytes
        The layer's largest message.
    short
        Fewer samples that each step takes even beyond its share of the time.
    settled
        Loops, as `named`, and sizes that are known well enough.
    delays_ns
        As `delays_of`; without them, as in a first launch, there is no load.
    """
    plan: list[tuple[str, int, int]] = []
    for loop in loops:
        for size in (FIXED[loop],) if loop in FIXED else sizes:
            if _takes(loop, size, max_bytes):
                delays = (delays_ns or {}).get(size, ()) if loop in LOAD else (0,)
                plan += [(loop, size, delay) for delay in delays]
    weights = [SETTLED_SHARE if (named(loop, delay), size) in settled else 1.0 for loop, size, delay in plan]
    least, warmup = (3, 2) if short else (6, 8)
    made = []
    for (loop, size, delay), weight in zip(plan, weights, strict=True):
        few, most = LOAD_SAMPLES if loop in LOAD else (least, Step.max_samples)
        made.append(
            Step(
                loop=loop,
                bytes=size,
                messages=window(size) if loop in STREAMS else 1,
                delay_ns=delay,
                warmup=0 if size > QUICK_BYTES and short else warmup,
                min_samples=few,
                max_samples=most,
                budget_ms=round(max(0.2, 1000.0 * seconds * weight / sum(weights)), 3),
                batch=1,
            )
        )
    return made


def _takes(loop: str, size: int, max_bytes: int) -> bool:
    """Whether a loop has messages of this size on a layer."""
    if loop in SUMS and (size < NUMBER_BYTES or size % NUMBER_BYTES):
        return False
    return size <= max_bytes
