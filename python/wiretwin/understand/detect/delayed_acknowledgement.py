"""Nagle's algorithm against delayed acknowledgements.

A second small write waits until the first is acknowledged (RFC 896), and the receiver holds its
acknowledgement back in case it has data to send with it (RFC 1122, 4.2.3.2): 40 ms on Linux, to which the
tick of the kernel's timer adds up to 10 ms. One-way latency then takes 40 to 50 ms if both sides write
twice, half of that if one does, beside what its bytes take to move.
"""

from __future__ import annotations

import numpy as np

from wiretwin.stacks.layers import nature_of
from wiretwin.understand.compare import lower
from wiretwin.understand.finding import CounterRun, Finding
from wiretwin.understand.view import View

__all__ = ["NAME", "find", "gone"]

NAME = "delayed-acknowledgement"
BANDS_MS = ((19.0, 26.0), (38.0, 52.0))
"""One-way latency with one side writing twice, and with both."""
CONTRAST = 5.0
"""Choice: what is stalled takes at least so many times as long as what is not, the size before it above all:
a curve that climbs into a band, as where the ends of a layer wait for a core, is no stall."""


def find(view: View) -> list[Finding]:
    """Look for latencies in the bands, without what the bytes take, beside quick ones of the layer."""
    if not nature_of(view.layer).stalls or view.effective.get("nodelay") is True:
        return []
    echo_sizes, echo = view.typical_us("echo")
    if not echo:
        return []
    best = max((size / one.value for size, one in zip(echo_sizes, echo, strict=True)), default=0.0)
    found = []
    for loop in ("two_write", "echo"):
        sizes, times = view.typical_us(loop)
        stalled = []
        before = min(one.value for one in echo)
        for size, time in zip(sizes, times, strict=True):
            own_ms = (time.value - _moving_us(view, int(size), best)) / 1000
            quick = before
            if loop == "two_write":
                quick = echo[int(np.argmin(np.abs(echo_sizes - size)))].value
            within = any(low <= own_ms <= high for low, high in BANDS_MS)
            if within and time.value >= CONTRAST * quick:
                stalled.append((int(size), time.value, quick))
            else:
                before = time.value
        if not stalled:
            continue
        size, slow, quick = stalled[0]
        pieces = "written in two pieces " if loop == "two_write" else ""
        evidence = [
            f"the one-way latency of {size} B {pieces}takes {slow / 1000:.1f} ms; the layer can do it in "
            f"{quick / 1000:.3f} ms",
            "that is the 40 ms for which Linux holds an acknowledgement back"
            + (", for each direction" if slow > 30000 else ", in one direction"),
        ]
        known = view.effective.get("nodelay") is False
        if known:
            evidence.append("TCP_NODELAY is off")
        counter = None
        if "nagle" in view.words:
            layer = "+".join([view.layer, *(word for word in view.words if word != "nagle")])
            counter = CounterRun("TCP_NODELAY on", layer)
        found.append(
            Finding(
                NAME,
                view.name,
                tuple(one[0] for one in stalled),
                tuple(evidence),
                "likely" if known else "possible",
                counter,
                loop=loop,
            )
        )
    return found


def _moving_us(view: View, size: int, best: float) -> float:
    """Return what the bytes themselves take, at the layer's best rate (bytes/us) or on the link."""
    rate = float(view.link.get("rate_bit_s") or 0)
    carried = max((one.factor for one in view.accounts if one.bytes == size), default=1.0) * size
    on_link = 8e6 * carried / rate if rate else 0.0
    delay = float(view.link.get("delay_ns") or 0) / 1000
    return max(on_link, size / best if best else 0.0) + delay


def gone(finding: Finding, before: View, after: View) -> bool | None:
    """Whether the same size takes less than a fifth as long."""
    return lower(before, after, finding.sizes[0], loop=finding.loop, times=CONTRAST)
