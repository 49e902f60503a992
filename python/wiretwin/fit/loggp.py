"""LogGP by message size, endpoint and network apart.

The overheads and the gap come from the parametrised round trip of Hoefler, Lichei & Rehm (2007):
``PRTT(n, d, s)`` is the time of n messages of s bytes with a delay d before each but the first, and one
reply. The cost of one more message is ``(PRTT(n, d, s) - PRTT(1, 0, s)) / (n - 1)``; without delay it is
the gap g(s), and with a delay longer than a round trip it is ``d + o_s``, because the network has long
been idle when the delay ends.

The time inside the send and receive calls is measured besides (``send_busy``, ``recv_busy``), and reaches
sizes of which n messages would not fit into buffers. One method is used over all sizes, so that a change
of method is never taken for a change of protocol: the one that reaches the largest size, the round trip
if both do. The other is the cross-check.

``latency = one-way latency - o_s - o_r``, line by line, so the three add up exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiretwin.fit.segments import Piece
from wiretwin.fit.stats import ByLaunch, Interval, around, by_launch

__all__ = [
    "Composition",
    "Endpoint",
    "compose",
    "fetch",
    "gap",
    "in_turn",
    "overhead_recv",
    "overhead_send",
    "recv_over_stream",
    "rendezvous",
    "send_disagreement",
    "timed_alone",
]

Method = Literal["prtt", "send_busy", "recv_busy", "stream", "fetch"]
Launches = NDArray[np.int64]

# The loop `fetch` pauses for this and two round trips, and its sender stays away for as long again: a receive
# that takes half of this more than a round trip has waited for it.
_FETCH_PAUSE_NS = 20_000

# A send that starts to wait for the receiver takes at least so much longer at once, on top of noise.
_RENDEZVOUS_JUMP = 1.25

# Where it is known what a receive takes of a message that has come, both are longer by so much, and both
# factors together by this.
_EACH_JUMP, _BOTH_JUMP = 1.1, 1.5


@dataclass(frozen=True)
class Endpoint:
    """An overhead or gap by launch and size, and the loop it was measured by."""

    method: Method
    found: ByLaunch


def _step(summary: pl.DataFrame, loop: str) -> pl.DataFrame:
    return summary.filter(pl.col("loop") == loop)


def _one_more(summary: pl.DataFrame, *, delayed: bool) -> pl.DataFrame:
    """Return the cost of one more message of a parametrised round trip, with ``delay_ns`` still in it.

    ``PRTT(1, 0, s)`` of the same launch, or its echo where that is missing: the same exchange.
    """
    key = ["launch", "bytes"]
    prtt = _step(summary, "prtt")
    one = prtt.filter((pl.col("messages") == 1) & (pl.col("delay_ns") == 0))
    echo = _step(summary, "echo").join(one, on=key, how="anti")
    alone = pl.concat([one, echo]).select(*key, alone_ns="value_ns")
    many = prtt.filter((pl.col("messages") > 1) & ((pl.col("delay_ns") > 0) == delayed))
    return many.join(alone, on=key).with_columns(
        more_ns=(pl.col("value_ns") - pl.col("alone_ns")) / (pl.col("messages") - 1)
    )


def _single(rows: pl.DataFrame, value: str) -> pl.DataFrame:
    """Reduce to one row a launch and size: the median over numbers of messages and delays."""
    return (
        rows.group_by("launch", "bytes")
        .agg(pl.col(value).median(), pl.col("samples").sum())
        .sort("launch", "bytes")
    )


def _furthest(candidates: Sequence[tuple[Method, pl.DataFrame]], launches: Launches) -> list[Endpoint]:
    """Arrange candidates by launch and size, the one that reaches the largest size first."""
    found = [
        Endpoint(method, by_launch(rows, "each_ns", launches)) for method, rows in candidates if rows.height
    ]
    return sorted(found, key=lambda e: -int(e.found.sizes[-1]) if e.found.sizes.size else 1)


def _streams(summary: pl.DataFrame) -> pl.DataFrame:
    """Return, by launch and size, what a one-way stream says of one message: ``least_ns``, ``most_ns``.

    n messages and an acknowledgement take ``(n - 1) g`` more than the one-way latency of the message and
    half one of the acknowledgement, if what overlaps in the stream overlaps in the round trip, too;
    that is the least. They take at most n times as long as one, however much overlaps: that is the most.
    """
    echo = _step(summary, "echo")
    half = echo.select("launch", "bytes", half_ns=pl.col("value_ns") / 2)
    ack = (
        echo.filter(pl.col("bytes") > 0)
        .sort("bytes")
        .group_by("launch")
        .agg(ack_ns=pl.col("value_ns").first() / 2)
    )
    moving = pl.col("value_ns") - pl.col("ack_ns")
    return (
        _step(summary, "stream")
        .filter(pl.col("messages") > 1)
        .join(half, on=["launch", "bytes"])
        .join(ack, on="launch")
        .with_columns(
            least_ns=(moving - pl.col("half_ns")) / (pl.col("messages") - 1),
            most_ns=moving / pl.col("messages"),
        )
    )


def _busy(summary: pl.DataFrame, loop: str, clock_ns: float) -> pl.DataFrame:
    """Return the time inside a call, without the reading of the clock that is in it.

    Choice: at most what the stream gives each message. Both ends of a stream deal with every message of
    it, so neither is busy for longer with one; a call that is timed alone, after a pause, finds caches
    and branch predictors cold and shows more.
    """
    bound = _single(_streams(summary), "most_ns").select("launch", "bytes", "most_ns")
    # A stream that seems to take no longer than its acknowledgement bounds nothing: noise.
    bound = bound.filter(pl.col("most_ns") > 0)
    own = pl.col("value_ns") - clock_ns
    return (
        _step(summary, loop)
        .join(bound, on=["launch", "bytes"], how="left")
        .with_columns(alone_ns=own, each_ns=pl.min_horizontal(own, "most_ns"))
    )


def overhead_send(summary: pl.DataFrame, launches: Launches, clock_ns: float = 0.0) -> list[Endpoint]:
    """Return o_s by launch and size, by each method measured, the one to use first.

    A delay that is not longer than the round trip it must outlast measures something else and is left out.
    """
    delayed = _one_more(summary, delayed=True)
    delayed = delayed.filter(pl.col("delay_ns") > pl.col("alone_ns")).with_columns(
        each_ns=pl.col("more_ns") - pl.col("delay_ns")
    )
    busy = _busy(summary, "send_busy", clock_ns)
    return _furthest(
        [("prtt", _single(delayed, "each_ns")), ("send_busy", _single(busy, "each_ns"))], launches
    )


def overhead_recv(summary: pl.DataFrame, launches: Launches, clock_ns: float = 0.0) -> list[Endpoint]:
    """Return o_r by launch and size: the time inside the receive call of a message that has arrived."""
    busy = _busy(summary, "recv_busy", clock_ns)
    return _furthest([("recv_busy", _single(busy, "each_ns"))], launches)


def timed_alone(summary: pl.DataFrame, launches: Launches, clock_ns: float = 0.0) -> list[ByLaunch] | None:
    """Return the times inside a send and a receive as they were measured, whatever a stream allows.

    None where one of both loops was not run.
    """
    found = [_single(_busy(summary, loop, clock_ns), "alone_ns") for loop in ("send_busy", "recv_busy")]
    return [by_launch(rows, "alone_ns", launches) for rows in found] if all(r.height for r in found) else None


def recv_over_stream(summary: pl.DataFrame, clock_ns: float = 0.0) -> float | None:
    """Return by which share a receive timed alone exceeds what a stream allows, median over what exceeds."""
    busy = _busy(summary, "recv_busy", clock_ns).filter(pl.col("each_ns") < pl.col("alone_ns"))
    if not busy.height:
        return None
    return float(np.median(busy["alone_ns"].to_numpy() / busy["each_ns"].to_numpy() - 1))


def gap(summary: pl.DataFrame, launches: Launches, clock_ns: float = 0.0) -> list[Endpoint]:
    """Return g(s) by launch and size, by each method measured, the one to use first.

    By the stream it is the least that the stream allows, or the time inside a send where that is more (a
    sender cannot send before it is done with the message before), and never more than the stream's most.
    """
    close = _one_more(summary, delayed=False).with_columns(each_ns=pl.col("more_ns"))
    busy = _single(
        _step(summary, "send_busy").with_columns(inside_ns=pl.col("value_ns") - clock_ns), "inside_ns"
    )
    stream = (
        _streams(summary)
        .join(busy.select("launch", "bytes", "inside_ns"), on=["launch", "bytes"], how="left")
        .with_columns(each_ns=pl.min_horizontal(pl.max_horizontal("least_ns", "inside_ns"), "most_ns"))
    )
    return _furthest([("prtt", _single(close, "each_ns")), ("stream", _single(stream, "each_ns"))], launches)


def fetch(summary: pl.DataFrame, rendezvous_from: int | None, clock_ns: float = 0.0) -> Endpoint | None:
    """Return what a receive takes whose sender is away, or None if receivers take no data by themselves.

    They do if the receive of every size from `rendezvous_from` on is over before the sender can have been
    back. Smaller messages have come with their envelope, but for those that a library sends in pieces:
    these wait for the sender and are left out.
    """
    if rendezvous_from is None:
        return None
    echo = _step(summary, "echo").select("launch", "bytes", round_trip_ns="value_ns")
    rows = (
        _step(summary, "fetch")
        .join(echo, on=["launch", "bytes"])
        .with_columns(
            each_ns=pl.col("value_ns") - clock_ns,
            alone=pl.col("value_ns") <= pl.col("round_trip_ns") + _FETCH_PAUSE_NS / 2,
        )
    )
    large = rows.filter(pl.col("bytes") >= rendezvous_from)
    # A launch in which something else had the sender's core says nothing of the library.
    typical = large.group_by("bytes").agg(alone=pl.col("alone").mean() >= 0.5)
    if not typical.height or not typical["alone"].all():
        return None
    kept = _single(rows.filter("alone"), "each_ns")
    return Endpoint(
        "fetch", by_launch(kept, "each_ns", np.unique(kept["launch"].to_numpy()).astype(np.int64))
    )


@dataclass(frozen=True)
class Disagreement:
    """By how much two methods differ at the sizes that both have: (busy / round trip) - 1."""

    median: float
    worst: float
    worst_at_bytes: int


def send_disagreement(endpoints: Sequence[Endpoint]) -> Disagreement | None:
    """Compare the time inside the send call with o_s by round trip; None without common sizes."""
    by_method = {endpoint.method: endpoint.found for endpoint in endpoints}
    if not {"prtt", "send_busy"} <= by_method.keys():
        return None
    one, other = by_method["prtt"], by_method["send_busy"]
    common, a, b = np.intersect1d(one.sizes, other.sizes, return_indices=True)
    prtt = np.nanmedian(one.values[:, a], axis=0)
    busy = np.nanmedian(other.values[:, b], axis=0)
    sound = (prtt > 0) & (busy > 0)
    if not sound.any():
        return None
    share = busy[sound] / prtt[sound] - 1
    worst = int(np.argmax(np.abs(share)))
    return Disagreement(float(np.median(share)), float(share[worst]), int(common[sound][worst]))


def rendezvous(
    half_round_trip: Sequence[Piece], send: Sequence[Piece], timed: Sequence[ByLaunch] | None = None
) -> int | None:
    """Return the smallest size at which a message waits for its receiver, or None.

    It is the break that the round trip and the send have in common (their breaks snapped together) at which
    the send takes longer at once by most, a quarter at least, while the round trip does not get shorter:
    the send has begun to include the transfer. Copying the message into a buffer makes a send longer
    steadily, not at once.

    A library that takes another kind of buffer from some size on makes a send longer at once, too, but not
    the receive of a message that has come, whose data are still to be fetched or asked for in a rendezvous.
    Where both were timed, sends and receives, each is to take longer at once by a tenth at least, and by half
    in all, factor times factor. That is seen from what was measured on both sides of the round trip's break,
    for the line of one of them may go through it without a break of its own where it is noisy.
    """
    found: dict[int, float] = {}
    for earlier, later in pairwise(half_round_trip):
        at = later.from_bytes
        if later.at(at) < earlier.at(at):
            continue
        if timed is None:
            jump = _jump(send, at)
            waits = jump >= _RENDEZVOUS_JUMP
        else:
            sent, received = (_measured_jump(one, later) for one in timed)
            jump = sent * received
            waits = min(sent, received) >= _EACH_JUMP and jump >= _BOTH_JUMP
        if waits:
            found[at] = jump
    return max(found, key=lambda at: found[at], default=None)


def _jump(pieces: Sequence[Piece], at: int) -> float:
    """Return by which factor the pieces rise at a break; 1 if there is none."""
    for before, after in pairwise(pieces):
        if after.from_bytes == at:
            return after.at(at) / max(before.at(at), 1.0)
    return 1.0


def _measured_jump(found: ByLaunch, later: Piece) -> float:
    """Return by which factor what was measured rises over a break, beyond what the round trip's rate adds.

    From the last size before the break to the first after it; 1 if there is none.
    """
    known = ~np.isnan(found.values).all(axis=0)
    sizes, values = found.sizes[known], np.nanmedian(found.values[:, known], axis=0)
    below, above = np.flatnonzero(sizes < later.from_low), np.flatnonzero(sizes >= later.from_high)
    if not below.size or not above.size:
        return 1.0
    at, to = below[-1], above[0]
    steady = values[at] + later.rate.value * (sizes[to] - sizes[at])
    return float(values[to] / max(steady, 1.0))


def snapped(pieces: Sequence[Piece], guide: Sequence[Piece]) -> list[Piece]:
    """Move each break onto the guide's break that its interval holds, if it has one: one cause, one size."""
    result = [pieces[0]]
    for piece in pieces[1:]:
        held = [
            g.from_bytes
            for g in guide[1:]
            if piece.from_low <= g.from_bytes <= piece.from_high and g.from_bytes > result[-1].from_bytes
        ]
        if held:
            nearest = min(held, key=lambda size: abs(size - piece.from_bytes))
            piece = replace(piece, from_bytes=nearest)
        if piece.from_bytes > result[-1].from_bytes:
            result.append(piece)
        else:
            result[-1] = replace(piece, from_bytes=result[-1].from_bytes)
    return result


@dataclass(frozen=True)
class Line:
    """One derived or adjusted line from a size on."""

    from_bytes: int
    base: Interval
    rate: Interval
    source: Piece | None
    """The piece it is of, None for a difference of pieces."""


def lines(pieces: Sequence[Piece]) -> list[Line]:
    """Return the pieces as lines; one that `snapped` has moved below its zero begins at 0."""
    return [_moved(p, p.from_bytes, max(p.at(p.from_bytes), 0.0), p.rate.value) for p in pieces]


@dataclass(frozen=True)
class Composition:
    """The three parts of the one-way latency, and what had to be put right for them to add up."""

    send: list[Line]
    latency: list[Line]
    recv: list[Line]
    negative_latency_ns: float
    """By how much the overheads exceeded the one-way latency where a line begins, at worst; 0 if nowhere."""
    negative_latency_at_bytes: int
    reduced_share: float
    """Largest share of the two overheads together that was taken away, at the beginning or end of a line."""


def compose(
    half: Sequence[Piece],
    send: Sequence[Piece],
    recv: Sequence[Piece],
    *,
    largest: int,
    confidence: float,
    keep_overlap: bool = False,
) -> Composition:
    """Split the one-way latency into send, latency and receive.

    Between any two neighbouring breaks of the three, all are straight lines. Where the overheads exceed
    the one-way latency, because sender and receiver work at the same time or because the calls wait for
    each other, both are reduced in proportion until the latency is 0, or left as measured with a negative
    latency. Their rates are reduced likewise in either case, so that the latency never falls as messages
    grow.

    Parameters
    ----------
    half, send, recv
        The pieces, launches in the same order; the breaks of send and recv snapped to those of half.
    largest
        The largest measured size in bytes, up to which reductions are reported.
    confidence
        Of the intervals.
    keep_overlap
        Leave the overheads as measured where together they exceed the one-way latency.
    """
    breaks = sorted({p.from_bytes for pieces in (half, send, recv) for p in pieces})
    sends: list[Line] = []
    latencies: list[Line] = []
    recvs: list[Line] = []
    worst, worst_at, reduced = 0.0, 0, 0.0
    for start, end in zip(breaks, [*(b - 1 for b in breaks[1:]), max(largest, breaks[-1])], strict=True):
        h, s, r = (_holding(pieces, start) for pieces in (half, send, recv))
        whole, parts = max(h.at(start), 0.0), max(s.at(start), 0.0) + max(r.at(start), 0.0)
        by_value = min(1.0, whole / parts) if parts > 0 and not keep_overlap else 1.0
        if parts - whole > worst:
            worst, worst_at = parts - whole, start
        rates = s.rate.value + r.rate.value
        by_rate = min(1.0, h.rate.value / rates) if rates > 0 else 1.0
        value = {"s": by_value * max(s.at(start), 0.0), "r": by_value * max(r.at(start), 0.0)}
        rate = {"s": by_rate * s.rate.value, "r": by_rate * r.rate.value}
        for size in (start, end):
            before = parts + rates * (size - start)
            after = sum(value.values()) + sum(rate.values()) * (size - start)
            if before > 0:
                reduced = max(reduced, 1 - after / before)
        # What is left where the overheads were reduced is rounding, not latency.
        latency_rate = h.rate.value - rate["s"] - rate["r"] if by_rate == 1 else 0.0
        latency = whole - value["s"] - value["r"] if by_value == 1 else 0.0
        sends.append(_moved(s, start, value["s"], rate["s"]))
        recvs.append(_moved(r, start, value["r"], rate["r"]))
        latencies.append(_difference(h, s, r, start, latency, latency_rate, confidence))
    return Composition(
        send=_merged(sends),
        latency=_merged(latencies),
        recv=_merged(recvs),
        negative_latency_ns=worst,
        negative_latency_at_bytes=worst_at,
        reduced_share=reduced if reduced > 1e-12 else 0.0,
    )


def in_turn(
    split: Composition, send: Sequence[Piece], recv: Sequence[Piece], nbytes: int, exchange_ns: float
) -> bool:
    """Return whether ranks that exchange messages are busy with both, one after the other.

    They are if the exchange takes a time that is nearer to what both ends were measured to be busy for than
    to what is left of it after `compose` has made both fit into the one-way latency.

    Parameters
    ----------
    split, send, recv
        What `compose` has made of the pieces.
    nbytes
        The length of the messages.
    exchange_ns
        What each rank takes to send one and receive one, in nanoseconds.
    """
    left = sum(_on(lines, nbytes) for lines in (split.send, split.recv))
    alone = sum(max(_holding(pieces, nbytes).at(nbytes), 0.0) for pieces in (send, recv))
    return exchange_ns > (left + alone) / 2


def _on(lines: Sequence[Line], nbytes: int) -> float:
    line = next(one for one in reversed(lines) if one.from_bytes <= nbytes)
    return line.base.value + line.rate.value * nbytes


def _holding(pieces: Sequence[Piece], size: int) -> Piece:
    return next(p for p in reversed(pieces) if p.from_bytes <= size)


def _moved(piece: Piece, start: int, value: float, rate: float) -> Line:
    """Return the piece's line through another value and rate; its intervals move along."""
    kept = abs(rate - piece.rate.value) <= 1e-12 * piece.rate.value
    if kept and abs(value - piece.at(start)) <= 1e-9 * abs(value):
        return Line(start, piece.base, piece.rate, piece)
    factor = rate / piece.rate.value if piece.rate.value else 1.0
    return Line(
        start,
        piece.base.moved_to(value - rate * start).clipped(-rate * start),
        piece.rate.moved_to(rate, factor).clipped(0.0),
        piece,
    )


def _difference(
    h: Piece, s: Piece, r: Piece, start: int, value: float, rate: float, confidence: float
) -> Line:
    """Return the latency's line with the interval of the launches' own differences."""
    base = value - rate * start
    of_base = h.base_by_launch - s.base_by_launch - r.base_by_launch
    of_rate = h.rate_by_launch - s.rate_by_launch - r.rate_by_launch
    return Line(
        start,
        around(base, of_base, confidence).clipped(min(base, -rate * start)),
        around(rate, of_rate, confidence).clipped(0.0),
        None,
    )


def _merged(lines: Sequence[Line]) -> list[Line]:
    """Join neighbouring lines that are one and the same."""
    result: list[Line] = []
    for line in lines:
        same = result and (result[-1].base, result[-1].rate) == (line.base, line.rate)
        if not same:
            result.append(line)
    return result
