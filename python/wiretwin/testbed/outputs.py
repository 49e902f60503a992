"""What the outputs of a wire's switch have: queues by class, room, background load on a class."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wiretwin.errors import InputError
from wiretwin.quantity import format_size, parse_size, parse_time

__all__ = ["OTHERS", "Outputs", "parse_outputs"]

OTHERS = "others"
"""The queue of all packets whose class has none of its own, and of what is no IP packet."""
MOST_CLASSES = 7
"""A queue is left for the others."""
CODEPOINT = "a DSCP from 0 to 63"


@dataclass(frozen=True, slots=True)
class Outputs:
    """What each output of a switch has. All of it is the switch's own usual way if nothing is said.

    Attributes
    ----------
    strict_priority
        Classes (DSCP) with a queue each, of which an earlier one always goes first; the others come last.
    weights
        By class, or ``others``, a weight: queues that are not empty share the line in proportion to them.
    queue_bytes
        What may wait in each queue, behind the frame being sent; who comes then is lost (tail drop).
    background
        By class, or by host and class such as ``h2:0``, the share of the line that is offered by sources that
        nobody hears.
    sources
        How many such sources an output has for each load.
    burst_ns
        For how long one is on, on average.
    """

    strict_priority: Sequence[int] = ()
    weights: Mapping[str, int] = field(default_factory=dict)
    queue_bytes: int | None = None
    background: Mapping[str, float] = field(default_factory=dict)
    sources: int | None = None
    burst_ns: int | None = None

    @property
    def queues(self) -> list[str]:
        """The name of each queue, in the order in which the wire counts them."""
        classes = [str(dscp) for dscp in self.strict_priority] or [
            one for one in self.weights if one != OTHERS
        ]
        return [*classes, OTHERS] if classes else ["all"]

    def describe(self) -> dict[str, Any]:
        """Return what was asked for, for a manifest."""
        words: dict[str, Any] = {}
        if self.strict_priority:
            words["strict_priority"] = list(self.strict_priority)
        if self.weights:
            words["weights"] = dict(self.weights)
        if self.queue_bytes is not None:
            words["queue_bytes"] = self.queue_bytes
        if self.background:
            words["background"] = dict(self.background)
        if self.sources is not None:
            words["sources"] = self.sources
        if self.burst_ns is not None:
            words["burst_ns"] = self.burst_ns
        return words

    @property
    def words(self) -> list[str]:
        """Each thing that was asked for, for people."""
        parts = []
        if self.strict_priority:
            parts.append(f"strict priority {', '.join(map(str, self.strict_priority))}, {OTHERS}")
        if self.weights:
            parts.append("weights " + " ".join(f"{name}={weight}" for name, weight in self.weights.items()))
        if self.queue_bytes is not None:
            parts.append(f"queues of {format_size(self.queue_bytes)}")
        parts += [f"background {name}={share:g} of the rate" for name, share in self.background.items()]
        if self.sources is not None:
            parts.append(f"{self.sources} sources")
        if self.burst_ns is not None:
            parts.append(f"on for {self.burst_ns / 1e6:g} ms at a time")
        return parts

    def switch(self) -> dict[str, Any] | None:
        """Return it as the wire reads it; nothing if nothing was asked for."""
        spec: dict[str, Any] = {}
        if self.strict_priority:
            spec["queues"] = {"scheduler": "strict-priority", "dscp": list(self.strict_priority)}
        if self.weights:
            own = [{"dscp": int(name), "weight": one} for name, one in self.weights.items() if name != OTHERS]
            spec["queues"] = {"scheduler": "weighted", "weights": own, "others": self.weights.get(OTHERS, 1)}
        if self.queue_bytes is not None:
            spec["queue_bytes"] = self.queue_bytes
        if self.background:
            usual = {} if self.burst_ns is None else {"on_ns": self.burst_ns}
            usual |= {} if self.sources is None else {"sources": self.sources}
            spec["background"] = []
            for name, share in self.background.items():
                host, _, dscp = name.rpartition(":")
                spec["background"].append(
                    {"dscp": int(dscp), "load": share, **({"to": host} if host else {}), **usual}
                )
        return spec or None


def parse_outputs(
    strict_priority: str | None = None,
    weights: str | None = None,
    queue: str | None = None,
    background: str | None = None,
    sources: str | None = None,
    burst: str | None = None,
) -> Outputs:
    """Read what outputs have, from options as written on the command line.

    Raises
    ------
    InputError
        A value that cannot be, or two that contradict each other.
    """
    if strict_priority is not None and weights is not None:
        allowed = "without --strict-priority: an output has one scheduler"
        raise InputError(key="--weights", value=weights, allowed=allowed)
    if sources is not None and background is None:
        reason = "is of --background"
        raise InputError(key="--sources", value=sources, reason=reason, allowed="with --background 0=0.7")
    if sources is not None and (re.fullmatch(r"\d{1,4}", sources) is None or not 1 <= int(sources) <= 1000):
        raise InputError(key="--sources", value=sources, allowed="1 to 1000")
    if burst is not None and background is None:
        raise InputError(
            key="--burst", value=burst, reason="is of --background", allowed="with --background 0=0.7"
        )
    return Outputs(
        _classes(strict_priority) if strict_priority is not None else (),
        _weights(weights) if weights is not None else {},
        parse_size(queue, "--queue") if queue is not None else None,
        _background(background) if background is not None else {},
        int(sources) if sources is not None else None,
        round(1e9 * parse_time(burst, "--burst", least_s=1e-6, most_s=60.0)) if burst is not None else None,
    )


def _pairs(text: str) -> list[tuple[str, str]]:
    found = [tuple(map(str.strip, part.partition("=")[::2])) for part in text.split(",")]
    return [(name, value) for name, value in found]


def _is_class(name: str) -> bool:
    return re.fullmatch(r"\d{1,2}", name) is not None and int(name) <= 63


def _classes(text: str) -> list[int]:
    names = [part.strip() for part in text.split(",")]
    if not all(map(_is_class, names)) or len({*map(int, names)}) < len(names) or len(names) > MOST_CLASSES:
        allowed = f"1 to {MOST_CLASSES} classes, each {CODEPOINT}, first the one that goes first: 46,34"
        raise InputError(key="--strict-priority", value=text, allowed=allowed)
    return [int(name) for name in names]


def _weights(text: str) -> dict[str, int]:
    weights: dict[str, int] = {}
    for name, value in _pairs(text):
        key = str(int(name)) if _is_class(name) else name
        good = re.fullmatch(r"\d{1,3}", value) is not None and 1 <= int(value) <= 255
        if not good or key in weights or (key != OTHERS and not _is_class(key)):
            one = f"{CODEPOINT} or {OTHERS}, and a weight from 1 to 255"
            allowed = f"{one}, such as 46=3,{OTHERS}=1; each class once"
            raise InputError(key="--weights", value=text, allowed=allowed)
        weights[key] = int(value)
    if not 1 <= len(weights.keys() - {OTHERS}) <= MOST_CLASSES:
        raise InputError(key="--weights", value=text, allowed=f"1 to {MOST_CLASSES} classes besides {OTHERS}")
    return weights


def _background(text: str) -> dict[str, float]:
    loads: dict[str, float] = {}
    for name, value in _pairs(text):
        host, colon, dscp = name.rpartition(":")
        good = re.fullmatch(r"\d+(\.\d+)?", value) is not None and 0.0 <= float(value) <= 2.0
        good = good and _is_class(dscp) and (not colon or re.fullmatch(r"h[1-9]\d?", host) is not None)
        key = f"{host}{colon}{int(dscp)}" if good else name
        if not good or key in loads:
            allowed = f"{CODEPOINT} and a share of the rate from 0 to 2, such as 0=0.7 or h2:0=0.7; each once"
            raise InputError(key="--background", value=text, allowed=allowed)
        loads[key] = float(value)
    return loads
