"""The detectors, one file each: a function from a `View` to findings, silent where it does not apply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wiretwin.understand.detect import (
    boundary,
    buffers,
    delayed_acknowledgement,
    protocol_switch,
    retransmission,
    shared_core,
)
from wiretwin.understand.finding import Finding
from wiretwin.understand.view import View

__all__ = ["DETECTORS", "Detector", "detect"]


@dataclass(frozen=True)
class Detector:
    """A detector.

    Attributes
    ----------
    title
        What it is called for people.
    find
        Look for it in a view.
    gone
        Whether a counter-run, seen as a view, lacks what the finding says; ``None`` if it does not tell.
    """

    title: str
    find: Callable[[View], list[Finding]]
    gone: Callable[[Finding, View, View], bool | None]


DETECTORS: Mapping[str, Detector] = {
    delayed_acknowledgement.NAME: Detector(
        "Nagle's algorithm against delayed acknowledgements",
        delayed_acknowledgement.find,
        delayed_acknowledgement.gone,
    ),
    shared_core.NAME: Detector("two spinning ranks on one core", shared_core.find, shared_core.gone),
    protocol_switch.NAME: Detector(
        "a switch of protocol, eager to rendezvous", protocol_switch.find, protocol_switch.gone
    ),
    boundary.NAME: Detector("one more packet", boundary.find, boundary.gone),
    retransmission.NAME: Detector("data sent again", retransmission.find, retransmission.gone),
    buffers.NAME: Detector("socket buffers smaller than the message", buffers.find, buffers.gone),
}
"""Every detector by the name of what it finds."""


def detect(view: View) -> list[Finding]:
    """Run every detector on a view."""
    return [finding for detector in DETECTORS.values() for finding in detector.find(view)]
