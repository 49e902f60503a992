"""One more packet: a step where the message no longer fits into the packets before.

A datagram is cut into fragments of the MTU less the header of IP, a stream into segments of the MTU less
those of IP and TCP. The step is seen twice, in the time and in the packets counted on the interface.
"""

from __future__ import annotations

from wiretwin.stacks.layers import nature_of
from wiretwin.stacks.nature import Nature
from wiretwin.understand.finding import CounterRun, Finding
from wiretwin.understand.steps import Jump, jumps
from wiretwin.understand.view import View

__all__ = ["NAME", "at_boundary", "find", "gone"]

NAME = "packet-boundary"
LEAST_SHARE = 0.02
"""Headers of one more packet are a small part of a message."""
PACKETS = (0.7, 1.6)
"""How much the packets for a message rise at a boundary; control messages blur it."""
LARGEST_MTU = 9000
MOST = 4
"""Boundaries further on are lost among the packets before."""


def find(view: View) -> list[Finding]:
    """Look for steps in time at which the packets rise by one, at a multiple of what a packet holds."""
    found = []
    for jump, limit in at_boundary(view):
        evidence = (
            f"the one-way latency rises by {jump.rise_us.value:.1f} us ({100 * jump.share:.1f} %) between "
            f"{jump.before} and {jump.after} B, beyond what the lines beside it say",
            f"packets for a message rise from {_packets(view, jump.before):.2f} to "
            f"{_packets(view, jump.after):.2f}",
            f"{limit} B fit into {'one packet' if limit < 1.5 * _mtu(view) else 'the packets before'} "
            f"at an MTU of {_mtu(view)} B",
        )
        counter = None
        most = Nature()
        if _mtu(view) < LARGEST_MTU and jump.after + most.own_header < LARGEST_MTU - most.packet_headers:
            counter = CounterRun(f"an MTU of {LARGEST_MTU} B", view.name, link={"mtu_bytes": LARGEST_MTU})
        found.append(
            Finding(NAME, view.name, (jump.before, jump.after), evidence, "likely", counter, setting=limit)
        )
    return sorted(found, key=lambda one: one.sizes)


def gone(finding: Finding, before: View, after: View) -> bool | None:
    """Whether the packets for a message no longer rise there: counted, not timed."""
    first, second = finding.sizes
    if not all(any(one.bytes == size for one in after.accounts) for size in finding.sizes):
        return None
    return _packets(after, second) - _packets(after, first) < PACKETS[0] / 2


def at_boundary(view: View) -> list[tuple[Jump, int]]:
    """Return the steps that lie at a boundary between packets, with the payload that still fits."""
    if not view.accounts or not _mtu(view):
        return []
    nature = nature_of(view.layer)
    payload = _mtu(view) - nature.packet_headers
    own = nature.own_header
    found = []
    for jump in jumps(view, LEAST_SHARE):
        rise = _packets(view, jump.after) - _packets(view, jump.before)
        limits = [
            payload * k
            for k in range(1, MOST + 1)
            if jump.before - own <= payload * k and payload * k - own < jump.after
        ]
        if limits and PACKETS[0] <= rise <= PACKETS[1]:
            found.append((jump, limits[0]))
    return found


def _mtu(view: View) -> int:
    return int(view.link.get("mtu_bytes") or 0)


def _packets(view: View, size: int) -> float:
    """Return packets a message at a size, or at the nearest below it that was counted."""
    at = [one for one in view.accounts if one.bytes <= size]
    return at[-1].packets_per_message if at else 0.0
