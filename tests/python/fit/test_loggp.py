"""LogGP: known machines come back, and what cannot add up is put right and said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from wiretwin.fit import loggp
from wiretwin.fit.segments import Piece
from wiretwin.fit.stats import ByLaunch, Interval, summarise
from wiretwin.fit.synthetic import HALF_OCTAVES, Lines, Machine

MACHINE = Machine(
    send=Lines(((0, 300.0, 0.02), (8192, 900.0, 0.01))),
    recv=Lines(((0, 400.0, 0.03), (8192, 500.0, 0.02))),
    latency=Lines(((0, 200.0, 0.01),)),
    gap=Lines(((0, 500.0, 0.05), (8192, 1000.0, 0.035))),
)
SIZES = HALF_OCTAVES[::2]


def summary_of(machine: Machine, **options: object) -> tuple[pl.DataFrame, np.ndarray]:
    summary = summarise(machine.samples(launches=3, **options))  # type: ignore[arg-type]
    return summary, np.unique(summary["launch"].to_numpy()).astype(np.int64)


def test_overheads_and_gap_come_back_from_an_exact_machine() -> None:
    summary, launches = summary_of(MACHINE)
    send = loggp.overhead_send(summary, launches)
    assert [e.method for e in send] == ["prtt", "send_busy"]
    for endpoint in send:
        np.testing.assert_allclose(endpoint.found.values[0], MACHINE.send(SIZES), rtol=5e-3, atol=1)
    (recv,) = loggp.overhead_recv(summary, launches)
    np.testing.assert_allclose(recv.found.values[0], MACHINE.recv(SIZES), rtol=2e-3, atol=1)
    between = loggp.gap(summary, launches)
    assert [e.method for e in between] == ["prtt", "stream"]
    for endpoint in between:
        np.testing.assert_allclose(endpoint.found.values[0], MACHINE.gap(SIZES), rtol=2e-3, atol=1)


def test_the_method_that_reaches_further_comes_first() -> None:
    summary, launches = summary_of(MACHINE, prtt_limit=65536)
    assert [e.method for e in loggp.overhead_send(summary, launches)] == ["send_busy", "prtt"]
    assert [e.method for e in loggp.gap(summary, launches)] == ["stream", "prtt"]


def test_the_clock_that_is_read_inside_is_taken_off() -> None:
    summary, launches = summary_of(MACHINE, loops=("echo", "recv_busy", "send_busy"))
    (recv,) = loggp.overhead_recv(summary, launches, clock_ns=25.0)
    (send,) = loggp.overhead_send(summary, launches, clock_ns=25.0)
    np.testing.assert_allclose(recv.found.values[0], MACHINE.recv(SIZES) - 25, rtol=2e-3, atol=1)
    np.testing.assert_allclose(send.found.values[0], MACHINE.send(SIZES) - 25, rtol=2e-3, atol=1)


def test_a_delay_shorter_than_the_round_trip_is_not_used() -> None:
    summary, launches = summary_of(MACHINE, loops=("echo", "prtt"))
    short = summary.with_columns(delay_ns=pl.when(pl.col("delay_ns") > 0).then(10).otherwise(0))
    assert loggp.overhead_send(short, launches) == []


def test_the_echo_stands_in_for_a_missing_single_round_trip() -> None:
    summary, launches = summary_of(MACHINE)
    without = summary.filter(~((pl.col("loop") == "prtt") & (pl.col("messages") == 1)))
    (found, *_), (whole, *_) = (loggp.gap(s, launches) for s in (without, summary))
    np.testing.assert_allclose(found.found.values, whole.found.values, rtol=1e-3)


def test_an_end_is_not_busier_with_a_message_than_a_stream_allows() -> None:
    summary, launches = summary_of(MACHINE)
    cold = pl.when(pl.col("loop") == "recv_busy").then(pl.col("value_ns") * 3).otherwise(pl.col("value_ns"))
    summary = summary.with_columns(value_ns=cold)
    (recv,) = loggp.overhead_recv(summary, launches)
    most = (15 * MACHINE.gap(SIZES) + MACHINE.half_round_trip(SIZES)) / 16
    expected = np.minimum(3 * MACHINE.recv(SIZES), most)
    assert (expected < 3 * MACHINE.recv(SIZES)).any()
    np.testing.assert_allclose(recv.found.values[0], expected, rtol=2e-3, atol=1)
    assert (loggp.recv_over_stream(summary) or 0) > 0.5
    assert loggp.recv_over_stream(summary_of(MACHINE)[0]) is None


def test_a_stream_is_not_faster_than_its_sender() -> None:
    busy = replace(MACHINE, send=Lines(((0, 400.0, 0.08),)), gap=Lines(((0, 450.0, 0.04),)))
    summary, launches = summary_of(busy, loops=("echo", "stream", "send_busy"))
    (found,) = loggp.gap(summary, launches)
    most = (15 * busy.gap(SIZES) + busy.half_round_trip(SIZES)) / 16
    expected = np.minimum(np.maximum(busy.gap(SIZES), busy.send(SIZES)), most)
    assert (expected > busy.gap(SIZES)).any()
    np.testing.assert_allclose(found.found.values[0], expected, rtol=2e-3, atol=1)


def test_methods_that_disagree_are_told_with_the_worst_size() -> None:
    summary, launches = summary_of(MACHINE)
    longer = pl.col("value_ns") * pl.when(pl.col("bytes") == 64).then(1.5).otherwise(1.1)
    busy = pl.when(pl.col("loop") == "send_busy").then(longer).otherwise(pl.col("value_ns"))
    apart = loggp.send_disagreement(loggp.overhead_send(summary.with_columns(value_ns=busy), launches))
    assert apart is not None
    assert apart.median == pytest.approx(0.1, abs=0.01)
    assert apart.worst == pytest.approx(0.5, abs=0.01)
    assert apart.worst_at_bytes == 64
    assert loggp.send_disagreement(loggp.overhead_recv(summary, launches)) is None


def piece(start: int, base: float, rate: float, low: int | None = None, high: int | None = None) -> Piece:
    def exactly(value: float) -> Interval:
        return Interval(value, value, value)

    return Piece(
        first=0,
        last=2,
        from_bytes=start,
        from_low=start if low is None else low,
        from_high=start if high is None else high,
        base=exactly(base),
        rate=exactly(rate),
        base_by_launch=np.array([base, base]),
        rate_by_launch=np.array([rate, rate]),
        lack_of_fit_p=None,
    )


def value(lines: list[loggp.Line], size: int) -> float:
    line = next(x for x in reversed(lines) if x.from_bytes <= size)
    return line.base.value + line.rate.value * size


def test_three_parts_that_fit_are_left_as_they_are() -> None:
    half = [piece(0, 900, 0.06), piece(8192, 1600, 0.04)]
    send, recv = [piece(0, 300, 0.02)], [piece(0, 400, 0.03), piece(8192, 700, 0.01)]
    split = loggp.compose(half, send, recv, largest=1 << 20, confidence=0.95)
    assert (split.negative_latency_ns, split.reduced_share) == (0, 0)
    assert [x.source for x in split.send] == send
    assert [x.source for x in split.recv] == recv
    assert value(split.latency, 0) == pytest.approx(200)
    assert value(split.latency, 10000) == pytest.approx(1600 + 400 - 300 - 200 - 700 - 100)


def test_overheads_that_overlap_are_reduced_in_proportion_and_said() -> None:
    half, send, recv = [piece(0, 1000, 0.03)], [piece(0, 900, 0.03)], [piece(0, 300, 0.01)]
    split = loggp.compose(half, send, recv, largest=1 << 20, confidence=0.95)
    assert split.negative_latency_ns == pytest.approx(200)
    assert split.negative_latency_at_bytes == 0
    assert split.reduced_share == pytest.approx(1 - (1000 + 0.03 * 2**20) / (1200 + 0.04 * 2**20))
    assert (value(split.send, 0), value(split.recv, 0)) == (pytest.approx(750), pytest.approx(250))
    for size in (0, 1000, 1 << 20):
        parts = sum(value(x, size) for x in (split.send, split.latency, split.recv))
        assert parts == pytest.approx(1000 + 0.03 * size)
        assert value(split.latency, size) == 0


def test_what_is_reduced_stays_within_its_interval_whatever_is_rounded() -> None:
    """Of intervals without width, a last digit decides."""
    stream = np.random.default_rng(3)
    for _ in range(50):
        low, high = stream.uniform(1, 2), stream.uniform(2, 4)
        starts = (0, int(stream.integers(1, 1 << 16)))
        half = [piece(0, 1e3 * low, 0.1 * low), piece(starts[1], 1e3 * high, 0.1 * low)]
        send = [piece(start, float(stream.uniform(-9e3, 9e3)), 0.1 * high) for start in starts]
        recv = [piece(start, float(stream.uniform(-9e3, 9e3)), 0.1 * low) for start in starts]
        split = loggp.compose(half, send, recv, largest=1 << 20, confidence=0.95)
        for line in (*split.send, *split.recv, *split.latency):
            for found in (line.base, line.rate):
                assert found.low <= found.value <= found.high, found


def test_overheads_that_overlap_are_kept_on_request_with_a_negative_latency() -> None:
    half, send, recv = [piece(0, 1000, 0.05)], [piece(0, 900, 0.03)], [piece(0, 300, 0.01)]
    split = loggp.compose(half, send, recv, largest=1 << 20, confidence=0.95, keep_overlap=True)
    assert split.negative_latency_ns == pytest.approx(200)
    assert split.reduced_share == 0
    assert (value(split.send, 0), value(split.recv, 0)) == (900, 300)
    assert value(split.latency, 0) == pytest.approx(-200)
    assert split.latency[0].base.low <= -200


def test_the_latency_never_falls_as_messages_grow() -> None:
    half, send, recv = [piece(0, 1000, 0.03)], [piece(0, 100, 0.03)], [piece(0, 100, 0.03)]
    split = loggp.compose(half, send, recv, largest=10_000, confidence=0.95)
    assert value(split.latency, 0) == value(split.latency, 10_000) == 800
    assert split.negative_latency_ns == 0
    assert split.reduced_share == pytest.approx(1 - (200 + 0.03 * 1e4) / (200 + 0.06 * 1e4))


def test_breaks_move_onto_those_of_the_round_trip_within_their_intervals() -> None:
    guide = [piece(0, 1, 0), piece(8192, 1, 0)]
    held = [piece(0, 1, 0), piece(32768, 2, 0, 2049, 32768)]
    free = [piece(0, 1, 0), piece(32768, 2, 0, 16385, 32768)]
    assert loggp.snapped(held, guide)[1].from_bytes == 8192
    assert loggp.snapped(free, guide)[1].from_bytes == 32768


def test_a_piece_that_moves_below_its_zero_begins_at_zero() -> None:
    pieces = [piece(0, 8, 0.0005), piece(2048, -13.5458, 0.0127522, 769, 24576)]
    moved = loggp.snapped(pieces, [piece(0, 1, 0), piece(1024, 1, 0)])
    assert moved[1].from_bytes == 1024
    assert moved[1].at(1024) < 0
    before, after = loggp.lines(moved)
    assert (before.base, before.rate) == (pieces[0].base, pieces[0].rate)
    assert value([after], 1024) == pytest.approx(0, abs=1e-12)
    assert after.rate == pieces[1].rate
    assert after.base.low <= after.base.value <= after.base.high


HALF = [piece(0, 1000, 0.05), piece(8192, 2500, 0.05, 5793, 8192)]


def test_a_send_that_takes_longer_at_once_where_the_round_trip_breaks_is_rendezvous() -> None:
    send = [piece(0, 400, 0.01), piece(8192, 2000, 0.04, 4097, 8192)]
    assert loggp.rendezvous(HALF, send) == 8192


@pytest.mark.parametrize(
    "send",
    [
        [piece(0, 400, 0.01)],
        [piece(0, 400, 0.01), piece(1024, 2000, 0.04, 513, 1024)],
        [piece(0, 400, 0.01), piece(6000, 2000, 0.04, 4097, 6144)],
        [piece(0, 400, 0.01), piece(8192, 430, 0.05 - 0.04, 4097, 8192)],
        [piece(0, 400, 0.01), piece(8192, 200, 0.01, 4097, 8192)],
    ],
    ids=["no break", "elsewhere", "near by", "too little", "shorter"],
)
def test_other_breaks_are_not_rendezvous(send: list[Piece]) -> None:
    assert loggp.rendezvous(HALF, send) is None


AT = (1024, 2048, 3072, 4096, 6144, 12288, 24576)


def inside_call(base: float, rate: float, jumps: dict[int, float]) -> ByLaunch:
    """Return times inside a call, the same in three launches: a line that rises at sizes by factors."""
    at_once = [np.prod([by for size, by in jumps.items() if n >= size]) for n in AT]
    values = np.array([[(base + rate * n) * by for n, by in zip(AT, at_once, strict=True)]] * 3)
    return ByLaunch(np.array(AT), values, np.full(len(AT), 3))


@pytest.mark.parametrize(
    ("recv", "size"),
    [
        ({}, None),
        ({8192: 1.05}, None),
        ({8192: 1.8}, 8192),
        ({4096: 1.8}, None),
    ],
    ids=["no break", "too little", "at once", "elsewhere"],
)
def test_a_receive_that_takes_no_longer_at_once_tells_another_buffer_from_rendezvous(
    recv: dict[int, float], size: int | None
) -> None:
    send = [piece(0, 400, 0.02)]  # whose line goes through the break
    assert (
        loggp.rendezvous(HALF, send, [inside_call(400, 0.02, {8192: 2.5}), inside_call(500, 0.02, recv)])
        == size
    )


def test_of_two_breaks_that_may_be_rendezvous_it_is_the_higher_one() -> None:
    half = [HALF[0], piece(4096, 1400, 0.05, 3073, 4096), piece(8192, 4000, 0.05, 6145, 8192)]
    ends = [inside_call(400, 0.02, {4096: 1.6, 8192: 2.5}), inside_call(500, 0.02, {4096: 1.5, 8192: 2.5})]
    assert loggp.rendezvous(half, [piece(0, 400, 0.02)], ends) == 8192
    assert loggp.rendezvous(half[:2], [piece(0, 400, 0.02)], ends) == 4096


def test_a_round_trip_that_gets_shorter_is_not_rendezvous() -> None:
    send = [piece(0, 400, 0.01), piece(8192, 2000, 0.04, 4097, 8192)]
    faster = [HALF[0], replace(HALF[1], base=Interval(500, 500, 500))]
    assert loggp.rendezvous(faster, send) is None
