"""A switch of protocol: from some size on, a library asks its receiver first (rendezvous).

An eager message is copied through the receiver's buffers; a longer one waits until the receiver has said
where to put it, which costs another round trip, once, at the limit: a step that no more bytes explain.
"""

from __future__ import annotations

import re

from wiretwin.stacks.layers import LAYERS, nature_of
from wiretwin.understand.compare import lower
from wiretwin.understand.detect.boundary import at_boundary
from wiretwin.understand.finding import CounterRun, Finding
from wiretwin.understand.steps import jumps
from wiretwin.understand.view import View

__all__ = ["NAME", "eager_limit", "find", "gone", "is_worded"]

NAME = "protocol-switch"
LEAST_SHARE = 0.3
OF_MPI = ("netpipe/mpi", "osu", "imb")
"""Programs of others that measure an MPI."""
FURTHER = 4
"""A counter-run puts the limit at so many times the size after the step."""
LEAST_BYTES = 64
"""Below, a step is the library's short form of a message and no rendezvous."""


def eager_limit(view: View) -> int | None:
    """Return the limit in force where the options or the library's environment say it, bytes."""
    asked = view.options.get("eager_bytes")
    if asked:
        return int(asked)
    environment = view.effective.get("environment") or {}
    told = str(environment.get("UCX_RNDV_THRESH", "")) if isinstance(environment, dict) else ""
    return int(told) if re.fullmatch(r"\d+", told) else None


def is_worded(layer: str) -> bool:
    """Return whether a word of the configuration sets the limit of a layer."""
    kind = LAYERS.get(layer)
    return kind is not None and any(word.written == "eagerNk" for word in kind.words)


def find(view: View) -> list[Finding]:
    """Take the largest step of a messaging library that is no boundary between packets."""
    nature = nature_of(view.layer)
    if not nature.switches and not view.layer.startswith(OF_MPI):
        return []
    packets = {jump.after for jump, _ in at_boundary(view)}
    steps = [
        jump for jump in jumps(view, LEAST_SHARE) if jump.after not in packets and jump.before >= LEAST_BYTES
    ]
    if not steps:
        return []
    limit = eager_limit(view)
    at_limit = [jump for jump in steps if limit is not None and jump.before <= limit < jump.after]
    jump = at_limit[0] if at_limit else steps[0]
    evidence = [
        f"the one-way latency rises by {jump.rise_us.value:.1f} us ({100 * jump.share:.0f} %) between "
        f"{jump.before} and {jump.after} B, beyond what the lines beside it say",
    ]
    if at_limit:
        evidence.append(f"the eager limit in force is {limit} B")
    counter = None
    if is_worded(view.layer) and not set(view.words) & set(nature.without_limit):
        kib = max(1, -(-FURTHER * jump.after // 1024))
        words = [word for word in view.words if not re.fullmatch(r"eager\d+k", word)]
        layer = "+".join([view.layer, *sorted([*words, f"eager{kib}k"])])
        counter = CounterRun(f"an eager limit of {kib} KiB", layer)
    return [
        Finding(
            NAME,
            view.name,
            (jump.before, jump.after),
            tuple(evidence),
            "likely" if at_limit else "possible",
            counter,
            setting=limit if at_limit else jump.before,
        )
    ]


def gone(finding: Finding, before: View, after: View) -> bool | None:
    """Whether the size after the step is faster and the step no longer there."""
    quicker = lower(before, after, finding.sizes[1])
    if quicker is None:
        return None
    first, second = finding.sizes
    still = any(
        jump.before < second and jump.after > first and jump.before >= LEAST_BYTES
        for jump in jumps(after, LEAST_SHARE)
    )
    return quicker and not still
