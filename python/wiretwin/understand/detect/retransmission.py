"""Data sent again: the interface carried more than the messages, their headers and the control messages."""

from __future__ import annotations

from wiretwin.stacks.layers import nature_of
from wiretwin.understand.finding import CounterRun, Finding
from wiretwin.understand.view import View

__all__ = ["LEAST_SHARE", "NAME", "find", "gone"]

NAME = "retransmission"
LEAST_SHARE = 0.02
"""Choice: less than this share of the payload sent again is not named."""
LEAST_BYTES = 256
"""Smaller messages are lost among control messages."""


def find(view: View) -> list[Finding]:
    """Look for bytes on the interface that payload and headers do not explain."""
    again = [
        one
        for one in view.accounts
        if one.bytes >= LEAST_BYTES and one.resent_share >= LEAST_SHARE and one.factor > 1
    ]
    if not again:
        return []
    worst = max(again, key=lambda one: one.resent_share)
    evidence = [
        f"at {worst.bytes} B the interface carried {worst.factor:.2f} times the payload; headers, envelopes "
        f"and control messages taken off, at least {100 * worst.resent_share:.1f} % of it went out twice",
    ]
    rules = view.link.get("rules") or {}
    counter = None
    if rules:
        evidence.append(
            "the link has rules: " + ", ".join(f"{rule} {share}" for rule, share in rules.items())
        )
        counter = CounterRun("a link without rules", view.name, link={"rules": {}})
    elif (direct := nature_of(view.layer).leaves_daemons) is not None and direct not in view.words:
        evidence.append("its daemons send a datagram again when its acknowledgement is late")
        words = sorted([*view.words, direct])
        counter = CounterRun("the direct route, over TCP", "+".join([view.layer, *words]))
    sizes = tuple(one.bytes for one in again)
    return [Finding(NAME, view.name, sizes, tuple(evidence), "likely" if rules else "possible", counter)]


def gone(finding: Finding, before: View, after: View) -> bool | None:
    """Whether less than a quarter as much is sent again at every size: counted, not timed."""
    shares = []
    for size in finding.sizes:
        old = [one.resent_share for one in before.accounts if one.bytes == size]
        new = [one.resent_share for one in after.accounts if one.bytes == size]
        if old and new:
            shares.append(new[0] < old[0] / 4)
    return all(shares) if shares else None
