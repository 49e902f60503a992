"""Then and now: the same sweep over Ethernet of today and over a fabric with credits, between hosts of today.

The hosts' profile is the paper's with other numbers, those that can be measured by a process measured on a
machine of today (`measured`). What is read off: the time of one byte, the largest throughput, the size that
reaches half of it, and the switch-over, the first size from which rendezvous is faster than sending at once.
"""

from __future__ import annotations

import os
import socket
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wiretwin.model.gigabit import Setting
from wiretwin.model.netpipe import Signature, bases, netpipe

if TYPE_CHECKING:
    from wiretwin.fit.stats import Interval

__all__ = ["MEASURED", "Found", "measured", "now", "switch_over"]

Found = tuple[str, str, float]
"""Case, metric and value."""

RATES_Gbit_s = (10, 25, 100, 400)
MOST, QUICK_MOST = 1 << 22, 1 << 18
ALL_EAGER, ALL_RENDEZVOUS = 1 << 31, 1
WINDOW_KIB = 4096

THEN = (
    Setting("sk-net", 1500, library="mpi"),
    Setting("sk-net", 9000, library="mpi"),
    Setting("gnic-ii", 1500, library="mpi-mvich"),
)
"""The paper's hosts, with MPI that is nobody's over TCP, and with MVICH."""

TODAY = Setting(
    "today-nic",
    9000,
    library="mpi",
    asked_kib=WINDOW_KIB,
    host="today",
    driver="today-vi",
    tcp="linux_modern",
)
FABRIC = replace(TODAY, library="mpi-mvich", asked_kib=None, device="adapter")


def _half(curve: Signature) -> float:
    """Return the size that reaches half of the largest throughput, between sizes by straight lines."""
    rates, half = curve.throughput_Mbit_s, curve.peak_Mbit_s / 2
    at = next(at for at, rate in enumerate(rates) if rate >= half)
    if at == 0:
        return float(curve.sizes_bytes[0])
    left, right = curve.sizes_bytes[at - 1], curve.sizes_bytes[at]
    return left + (right - left) * (half - rates[at - 1]) / (rates[at] - rates[at - 1])


def switch_over(eager: Signature, rendezvous: Signature) -> int | None:
    """Return the first size from which rendezvous is the faster one at all sizes; none if it never is."""
    pairs = zip(eager.sizes_bytes, eager.time_us, rendezvous.time_us, strict=True)
    found = None
    for size, at_once, asked in pairs:
        if asked >= at_once:
            found = None
        elif found is None:
            found = size
    return found


def _most_eager(one: Setting) -> int:
    """Return a length that no message reaches; over VIs the longest that finds buffers."""
    return ALL_EAGER if one.most_eager_bytes is None else one.most_eager_bytes


def now(quick: bool) -> tuple[list[Found], list[str]]:
    """Then and now, by network."""
    found: list[Found] = []
    runs: list[str] = []
    rates = (10, 400) if quick else RATES_Gbit_s
    today = [replace(one, rate_Gbit_s=rate) for one in (TODAY, FABRIC) for rate in rates]
    for one in (*THEN, *today):
        most = min(QUICK_MOST if quick else MOST, _most_eager(one))
        wanted = bases(most - 1)
        curve = netpipe(one, wanted)
        eager = netpipe(replace(one, switch_over=_most_eager(one)), wanted)
        asked = netpipe(replace(one, switch_over=ALL_RENDEZVOUS), wanted)
        runs += [curve.digest, eager.digest, asked.digest]
        found += [
            (one.case, "latency_us", curve.time_us[0]),
            (one.case, "throughput_Mbit_s", curve.peak_Mbit_s),
            (one.case, "n_half_bytes", _half(curve)),
        ]
        at = switch_over(eager, asked)
        if at is not None:
            found.append((one.case, "switch_over_bytes", float(at)))
    return found, runs


# This machine

MEASURED = (
    "trap_us",
    "socket_us",
    "segment_us",
    "context_switch_us",
    "copy_ns_per_byte",
    "warm_share",
)
"""What of a host's profile is measured."""

REPEATS = 2000
TURNS = 5
ROUNDS = 7
"""Times that all of it is measured, one after the other: between them lie the intervals."""
CONFIDENCE = 0.9
COPY_COLD, COPY_WARM = 64 << 20, 64 << 10


def _quickest_us(body: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median over turns of what one call takes; other work lengthens few of them."""
    times = []
    for _ in range(TURNS):
        begun = time.perf_counter_ns()
        for _ in range(repeats):
            body()
        times.append((time.perf_counter_ns() - begun) / repeats / 1e3)
    return statistics.median(times)


def _through_us(one: socket.socket, other: socket.socket) -> float:
    """Return what a byte takes from one socket to another of the same process, without sleeping."""

    def body() -> None:
        one.send(b"x")
        other.recv(1)

    return _quickest_us(body)


def _loopback() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    for end in (one, other):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one, other


def _copy_ns(octets: int) -> float:
    source, sink = np.ones(octets, np.uint8), np.zeros(octets, np.uint8)
    repeats = max(1, (16 << 20) // octets)
    return _quickest_us(lambda: np.copyto(sink, source), repeats) * 1e3 / octets


def measured(folder: Path) -> dict[str, Interval]:
    """Measure this machine: what of a host's profile a process can see, by the profile's keys.

    Each with its 90 % interval between rounds, in which all of it is measured anew; what this machine is like
    on another day is not in them.

    Parameters
    ----------
    folder
        Where the samples of a wake-up go.
    """
    from wiretwin.fit.stats import interval

    rounds = [_round(folder / f"round-{number}") for number in range(ROUNDS)]
    return {key: interval([one[key] for one in rounds], CONFIDENCE) for key in MEASURED}


def _round(folder: Path) -> dict[str, float]:
    """Measure all once; the samples of a wake-up go to a folder that is not there yet."""
    from wiretwin import fit, measure

    call = _quickest_us(lambda: abs(1))
    trap = _quickest_us(os.getppid) - call
    one, other = socket.socketpair()
    with one, other:
        within = _through_us(one, other)
        # Of Python's part of a call there is as much in one that asks for nothing.
        own = 2 * _quickest_us(one.fileno)
    one, other = _loopback()
    with one, other:
        loopback = _through_us(one, other)
    sleepers = measure("socket/unix", sizes=[1, 64, 4096], budget="2s", out=folder)
    if sleepers.manifest.state == "interrupted":
        raise KeyboardInterrupt
    woken = fit(sleepers).layer("socket/unix").at("half_round_trip", 1) / 1e3
    cold, warm = _copy_ns(COPY_COLD), _copy_ns(COPY_WARM)
    least = 0.01
    found = (
        max(trap, least),
        max((within - own) / 2 - trap, least),
        max((loopback - within) / 2, least),
        max(woken - (within - own), least),
        cold,
        min(warm / cold, 1.0),
    )
    return dict(zip(MEASURED, found, strict=True))
