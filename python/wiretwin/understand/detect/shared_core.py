"""Two ranks that spin on one core.

Each asks again and again until the scheduler takes the core away from it, so a message waits for the
scheduler's tick (4 ms at 250 Hz, or a few of them), whatever its size: a plateau of milliseconds.
"""

from __future__ import annotations

from wiretwin.stacks.layers import nature_of
from wiretwin.understand.compare import lower
from wiretwin.understand.finding import Confidence, CounterRun, Finding
from wiretwin.understand.view import View

__all__ = ["NAME", "find", "gone"]

NAME = "shared-core"
PLATEAU_MS = (0.9, 13.0)
"""One-way latency: a tick at 1000 Hz to three ticks at 250 Hz."""
LEAST_SIZES = 3
LEAST_RATIO = 16
"""The largest size of a plateau over the smallest."""
FLAT = 1.6
"""Choice: the slowest size of a plateau takes at most so many times as long as the fastest."""
CONTRAST = 10.0


def find(view: View) -> list[Finding]:
    """Look for a plateau of milliseconds in a layer that spins, unless its ranks have a core each."""
    wait = view.effective.get("wait", view.options.get("wait"))
    spins = wait == "spin" if wait in ("spin", "yield", "block") else nature_of(view.layer).spins
    bound = view.options.get("binding") == "launcher"
    together = view.pins is not None and len(set(view.pins)) == 1
    if not spins or (view.pins is not None and not together and not bound):
        return []
    sizes, times = view.typical_us()
    delay_ms = float(view.link.get("delay_ns") or 0) / 1e6
    flat: list[tuple[int, float]] = []
    for size, time in zip(sizes, times, strict=True):
        own = time.value / 1000 - delay_ms
        lowest = min([own, *(value for _, value in flat)])
        highest = max([own, *(value for _, value in flat)])
        if not PLATEAU_MS[0] <= own <= PLATEAU_MS[1] or highest > FLAT * lowest:
            if len(flat) >= LEAST_SIZES:
                break
            flat = []
            continue
        flat.append((int(size), own))
    if len(flat) < LEAST_SIZES or flat[-1][0] < LEAST_RATIO * flat[0][0]:
        return []
    evidence = [
        f"the one-way latency takes {min(value for _, value in flat):.2f} to "
        f"{max(value for _, value in flat):.2f} ms at every size from {flat[0][0]} to {flat[-1][0]} B",
        "the ranks spin while they wait",
    ]
    counter = None
    confidence: Confidence = "possible"
    if together and view.pins is not None:
        evidence.append(f"both are pinned to CPU {view.pins[0]}")
        counter, confidence = CounterRun("a core for each rank", view.name, pin="auto"), "likely"
    elif bound:
        evidence.append("their launcher binds them")
        layer = "+".join([view.layer, *(word for word in view.words if word != "bound")])
        counter, confidence = CounterRun("binding left to the scheduler", layer), "likely"
    return [Finding(NAME, view.name, tuple(size for size, _ in flat), tuple(evidence), confidence, counter)]


def gone(finding: Finding, before: View, after: View) -> bool | None:
    """Whether the smallest size takes less than a tenth."""
    return lower(before, after, finding.sizes[0], times=CONTRAST)
