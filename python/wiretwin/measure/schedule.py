"""Which loops are run at which sizes: the published size lists, and the steps of one launch."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from wiretwin.errors import InputError
from wiretwin.quantity import MAX_SIZE, parse_size
from wiretwin.stacks.word import INTERRUPT

__all__ = [
    "DEFAULT_SIZES",
    "FIRST",
    "FIRST_STEP",
    "NAMED_SIZES",
    "Purpose",
    "Step",
    "lin",
    "lin_fine",
    "netpipe",
    "parse_sizes",
    "powers",
    "steps",
]

Purpose = Literal["curves", "fit", "collectives", "nonblocking", "one-sided", "pairs", "load"]
"""What the samples are for: ``curves`` measures round trips only, ``fit`` the endpoint costs too; the others
are what any number of ranks do together (`wiretwin.measure.together`)."""

DEFAULT_SIZES = "netpipe-base"
SIZE_GRAMMAR = (
    "names (lin, lin-fine, netpipe, netpipe-base, powers), sizes (4, 64KiB), doublings (1KiB..1MiB) and"
    " steps (4..8KiB+96), joined by commas"
)


def powers(first: int = 1, last: int = 1 << 20) -> list[int]:
    """List `first`, doubled as long as it is at most `last`."""
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= 2
    return sizes


def lin() -> list[int]:
    """List the large-message sizes of Lin et al. 1995: 4 B, doubled to 1 MiB."""
    return powers(4, 1 << 20)


def lin_fine() -> list[int]:
    """List the small-message sizes of Lin et al. 1995: 4 + 96 k bytes, to 8 KB."""
    return list(range(4, 8193, 96))


def netpipe(last: int = 1 << 20, perturbation: int = 3, first: int = 1) -> list[int]:
    """List the sizes of NetPIPE 2.x (Snell, Mikler & Gustafson 1996) up to `last` bytes.

    From 1 the size grows by an increment that doubles after every second size beyond the first
    three; once the increment exceeds ``perturbation + 1`` each size is measured at that many bytes
    less and more, too.

    Parameters
    ----------
    last
        The largest base size, bytes.
    perturbation
        Bytes to either side, 3 as published; 0 gives the base sizes alone.
    first
        Sizes below are left out.
    """
    sizes = []
    size, increment, number = 1, 1, 0
    while size <= last:
        near = (-perturbation, 0, perturbation) if perturbation and increment > perturbation + 1 else (0,)
        sizes += [size + offset for offset in near]
        size += increment
        number += 1
        if number > 2 and number % 2:
            increment *= 2
    return [size for size in sizes if size >= first]


def _netpipe_base() -> list[int]:
    return netpipe(perturbation=0)


NAMED_SIZES: dict[str, Callable[[], list[int]]] = {
    "lin": lin,
    "lin-fine": lin_fine,
    "netpipe": netpipe,
    "netpipe-base": _netpipe_base,
    "powers": powers,
}


def parse_sizes(text: str, key: str = "--sizes") -> list[int]:
    """Read a list of sizes: ``lin``, ``1,4,1KiB..1MiB``, ``netpipe,2MiB``; sorted, each once.

    Raises
    ------
    InputError
        A part that is none of the forms; the part is named.
    """
    sizes: set[int] = set()
    for part in text.split(","):
        word = part.strip()
        if word in NAMED_SIZES:
            sizes.update(NAMED_SIZES[word]())
        elif match := re.fullmatch(r"([^.+]+(?:\.\d+)?[^.+]*)\.\.([^+]+)(?:\+([^+]+))?", word):
            first, last = parse_size(match[1], key), parse_size(match[2], key)
            if first > last:
                raise InputError(key=key, value=word, reason="runs backwards", allowed="FIRST..LAST, rising")
            if match[3] is None:
                sizes.update(powers(first, last))
            else:
                sizes.update(range(first, last + 1, parse_size(match[3], key)))
        elif re.fullmatch(r"\d.*", word):
            sizes.add(parse_size(word, key))
        else:
            raise InputError(key=key, value=word, reason="is not a size list", allowed=SIZE_GRAMMAR)
    if len(sizes) > 2000:
        raise InputError(
            key=key, value=text, reason=f"gives {len(sizes)} sizes", allowed="at most 2000 sizes"
        )
    return sorted(sizes)


@dataclass(frozen=True)
class Step:
    """One step of a launch, as the probe protocol has it.

    Attributes
    ----------
    loop
        The loop's name.
    bytes
        Size of one message; 0 for a loop that moves nothing.
    messages
        Messages per sample, for the loops that send several.
    delay_ns
        Spinning between sends (``prtt``), or how much is computed (``beside``).
    warmup
        Iterations thrown away before the first sample.
    min_samples, max_samples
        Bounds on the number of samples.
    budget_ms
        Time after which no further sample is begun, once there are `min_samples`.
    batch
        Iterations per sample; 0 lets the probe choose.
    """

    loop: str
    bytes: int
    messages: int = 1
    delay_ns: int = 0
    warmup: int = 16
    min_samples: int = 10
    max_samples: int = 250
    budget_ms: float = 10.0
    batch: int = 0

    def spec(self) -> dict[str, Any]:
        """Return the step as the probe's JSON has it."""
        return asdict(self)


FIRST = "first"
"""The loop of first calls (`wiretwin.measure.first_mpi4py`)."""
FIRST_STEP = Step(FIRST, 0, warmup=0, min_samples=1, max_samples=1, batch=1)
TWO_WRITE_SIZES = (64, 1024)
"""The two-write loop is run at the sizes nearest to these: its question is not how its time grows but
whether it stalls (Nagle's algorithm against delayed acknowledgements), at 40 ms an iteration."""
INTERRUPTING = (4, 1024, 8192)
"""So is ``interrupt``: what a message takes of who computes is a line, and long ones wait for their
receiver."""
INTERRUPTS = 4
"""Messages one behind the other, of the smallest size: the kernel is awake when the second one comes."""
STREAM_WINDOW = 1 << 20
"""Bytes that one ``stream`` sample moves at least, unless that takes over `STREAM_MESSAGES` messages."""
STREAM_MESSAGES = 64
SETTLED_SHARE = 0.2
"""Time of a size that is known well enough, as a share of that of one that is not."""
QUICK_BYTES = 1 << 16
"""Messages up to here are so short that a step ends with its share of the time, not its least samples."""
LEAST_STREAMED = 6
"""So many sizes up to `QUICK_BYTES` have ``stream`` in every launch with all loops, if there are as many."""
PRTT_MESSAGES = 16
PRTT_LIMIT = 1 << 16
"""Largest message of the parametrised round trip: `PRTT_MESSAGES` of them stay within what layers
buffer, so that a send never waits for the receiver."""


BESIDE_NS = 40_000_000
"""A computation beside a rank that waits: ten slices of the usual tick of 4 ms, of which the first and the
last may be cut short."""
THERE_NS = 1_000_000
"""A computation before a message that has come is received: a part of a slice, of many looks."""
COLD_NS = (50_000, 400_000)
"""Work between one echo and the next: scripts have both."""
ONCE = {
    "slice": 4, "beside": 2, "one_core_recv": 5, "one_core_probe": 5, "one_core_any": 5, "one_core_there": 5,
    "cold": 40,
}  # fmt: skip
"""Loops of which a sample takes long, most of them several time slices, and how many a launch takes."""


def _coarse(sizes: Sequence[int]) -> list[int]:
    """Return the sizes of the loops that a line is fitted to, of rising sizes that are measured."""
    quick = [size for size in sizes if size <= QUICK_BYTES]
    return sorted({*quick[::2], *sizes[len(quick) :: 4], sizes[-1]})


def _streamed(coarse: Sequence[int]) -> list[int]:
    """Return the sizes of ``stream`` in a short launch: a line has to be found in them all the same."""
    quick = [size for size in coarse if size <= QUICK_BYTES]
    fewer = quick[::2] if len(quick) >= 2 * LEAST_STREAMED else quick
    return [*fewer, *coarse[len(quick) :]]


def _warmup(usual: int, messages: int, *, slow: bool, short: bool) -> int:
    """Return the iterations before the samples, after the first of all.

    Long messages need few, and many in an iteration are a warm-up of their own: where time is short, the
    first iteration is enough for the one, and one more for the other.
    """
    if slow:
        return 0 if short else usual // 4
    return min(usual, 1) if short and messages > 1 else usual


def steps(
    sizes: Sequence[int],
    purpose: Purpose,
    *,
    seconds: float,
    max_bytes: int = MAX_SIZE,
    loops: frozenset[str] | None = None,
    short: bool = False,
    delays_ns: dict[int, int] | None = None,
    settled: Collection[int] = (),
    whole: bool = True,
) -> list[Step]:
    """Make the schedule of one launch.

    Parameters
    ----------
    sizes
        Message sizes in bytes; those above `max_bytes` are left out.
    purpose
        ``curves``: ``echo`` at each size, ``two_write`` at two. ``fit``: besides, ``call``, at the smallest
        size those of ranks on one core and ``cold``, before all ``first``, at three ``interrupt``, at the
        smallest of these that of several messages as well, at every second size ``send_busy``, ``recv_busy``,
        ``fetch`` and ``stream``, at every fourth ``prtt``. Above `QUICK_BYTES` it is every fourth and the
        largest: there a step takes what it must, whatever its share.
        A short launch has ``stream`` at half of these sizes, where they are many.
    seconds
        What the steps may take together; ``echo`` gets half of it for ``fit``, nine tenths for ``curves``.
    max_bytes
        The layer's largest message.
    loops
        The loops the layer has; by default all.
    short
        Fewer samples that each step takes even beyond its share of the time, and fewer before them.
    delays_ns
        By size, the delay of the delayed ``prtt`` steps: longer than a round trip (Hoefler et al.
        2007, section 3). Sizes without one get no delayed step; they are known after a first launch.
    settled
        Sizes that are known well enough: their echo gets `SETTLED_SHARE` of the time of another size's.
    whole
        With the loops besides ``echo``; without them, but for ``cold``, a launch is over in half of the time.
    """
    usable = [size for size in sizes if size <= max_bytes]
    plan: list[tuple[str, int, int, int]] = [("echo", size, 1, 0) for size in usable]
    others: list[tuple[str, int, int, int]] = []
    splittable = [size for size in usable if size >= 2]
    if splittable and whole:
        nearest = {min(splittable, key=lambda size: abs(size - wanted)) for wanted in TWO_WRITE_SIZES}
        others += [("two_write", size, 1, 0) for size in sorted(nearest)]
    if purpose == "fit" and usable and loops is not None and "cold" in loops:
        others += [("cold", usable[0], 1, work) for work in COLD_NS]
    if purpose == "fit" and usable and whole:
        coarse = _coarse(usable)
        quick = [size for size in usable if size <= QUICK_BYTES]
        others.append(("call", 0, 1, 0))
        for size in coarse:
            others += [("send_busy", size, 1, 0), ("recv_busy", size, 1, 0)]
            if loops is not None and "fetch" in loops:
                others.append(("fetch", size, 1, 0))
        if loops is not None and INTERRUPT in loops:
            near = (
                {min(quick, key=lambda size: abs(size - wanted)) for wanted in INTERRUPTING} if quick else ()
            )
            others += [(INTERRUPT, size, 1, 0) for size in sorted(near)]
            others += [(INTERRUPT, size, INTERRUPTS, 0) for size in sorted(near)[:1]]
        for size in _streamed(coarse) if short else coarse:
            messages = max(4, min(STREAM_MESSAGES, STREAM_WINDOW // size))
            others.append(("stream", size, messages, 0))
        for size in [size for size in coarse if size <= PRTT_LIMIT][::2]:
            others += [("prtt", size, 1, 0), ("prtt", size, PRTT_MESSAGES, 0)]
            if delays_ns and size in delays_ns:
                others.append(("prtt", size, PRTT_MESSAGES, delays_ns[size]))
        if loops is not None:  # last, for they move the ranks to one core
            others += [("one_core", usable[0], 1, 0), ("slice", 0, 1, 0), ("beside", 0, 1, BESIDE_NS)]
            others += [(f"one_core_{call}", usable[0], 1, 0) for call in ("recv", "probe", "any")]
            others.append(("one_core_there", 0, 1, THERE_NS))
    result = []
    if purpose == "fit" and usable and loops is not None and FIRST in loops:
        result.append(FIRST_STEP)
    min_samples, warmup = (4, 4) if short else (10, 16)
    if loops is not None:
        plan, others = ([step for step in group if step[0] in loops] for group in (plan, others))
    echo_share = 0.5 if any(loop not in ("two_write", "cold") for loop, *_ in others) else 0.9
    for group, share in ((plan, echo_share), (others, 1 - echo_share)):
        known = [SETTLED_SHARE if loop == "echo" and size in settled else 1.0 for loop, size, *_ in group]
        for (loop, size, messages, delay), weight in zip(group, known, strict=True):
            budget_ms = max(0.5, 1000.0 * seconds * share * weight / sum(known))
            stalls = loop == "two_write"
            slow = size > QUICK_BYTES
            if loop in ONCE:
                count = ONCE[loop]
                once = Step(
                    loop, size, delay_ns=delay, warmup=0, min_samples=count, max_samples=count, batch=1
                )
                result.append(once)
                continue
            result.append(
                Step(
                    loop=loop,
                    bytes=size,
                    messages=messages,
                    delay_ns=delay,
                    warmup=2 if stalls else _warmup(warmup, messages, slow=slow, short=short),
                    min_samples=min(5, min_samples) if stalls else 2 if slow and short else min_samples,
                    budget_ms=round(budget_ms, 3),
                )
            )
    return result
