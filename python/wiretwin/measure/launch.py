"""One launch: fresh processes in a fresh directory, under a hard limit, ended without a trace.

The probes speak the protocol of ``docs/reference/probe-protocol.md``. Their output goes to files, so
a launch that dies in the middle still yields every step it had finished.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from wiretwin import lines
from wiretwin.measure.adaptive import Key
from wiretwin.measure.running import GRACE_S, Interruption, Running, rendezvous
from wiretwin.measure.schedule import Step
from wiretwin.measure.together import named
from wiretwin.place import HERE, Place
from wiretwin.results import Clock, StepTraffic
from wiretwin.stacks import Session, StackError
from wiretwin.stacks.base import by_signal
from wiretwin.stacks.layers import Configuration

__all__ = ["Interruption", "Outcome", "launch"]

LONGEST_CROSSING_NS = 1e9
"""No cache line takes longer to the other core and back."""
SPENT = "its share of the budget was spent"
"""Why a launch was ended that was under way when there was no more time."""
WRONG_DATA = "wrong data"
"""In the words of a rank that has looked at what came."""
STEP_KEYS = ("loop", "bytes", "messages", "delay_ns")


@dataclass
class Outcome:
    """What a launch left.

    Attributes
    ----------
    status
        ``ok`` only if every process ended well and the probe said it was done.
    error
        The reason otherwise.
    hello
        The probe's first line, if it came.
    steps
        The ``samples`` lines, in order.
    seconds
        Wall-clock time of the launch, start-up and end included.
    crossing_ns
        How far the two ranks were apart before the first step and after the last, if they could tell.
    counted
        What the layer has counted at rank 0, by name, if it counts.
    """

    status: Literal["ok", "failed", "interrupted"]
    error: str | None
    hello: dict[str, Any] | None
    steps: list[dict[str, Any]]
    seconds: float
    crossing_ns: tuple[float, float] | None = None
    counted: dict[str, int] = field(default_factory=dict)

    def medians(self, loop: str) -> dict[int, float]:
        """Return the median nanoseconds per iteration by size, over the steps of one loop.

        Steps with several messages or a delay are left out.
        """
        import numpy as np

        return {
            step["bytes"]: float(np.median(step["values_ns"])) / step["batch"]
            for step in self.steps
            if step["loop"] == loop and step["messages"] == 1 and not step["delay_ns"]
        }

    def medians_by_loop(self) -> dict[Key, float]:
        """Return the median nanoseconds per iteration by loop, told apart by its load, and size."""
        import numpy as np

        return {
            (named(step["loop"], step["delay_ns"]), step["bytes"]): float(np.median(step["values_ns"]))
            / step["batch"]
            for step in self.steps
        }

    @property
    def lost(self) -> int:
        """Messages that a layer which may lose them lost."""
        return sum(int(step.get("lost", 0)) for step in self.steps)

    @property
    def traffic(self) -> list[StepTraffic]:
        """What the interface carried, step by step; empty if it was not watched."""
        return [
            StepTraffic(**{key: step[key] for key in STEP_KEYS}, **step["network"])
            for step in self.steps
            if "network" in step
        ]

    def columns(self) -> dict[str, Any] | None:
        """Return the samples as columns of a result folder; nothing if there are none."""
        return lines.columns(self.steps)


def launch(
    configuration: Configuration,
    schedule: Sequence[Step],
    *,
    limit_s: float,
    pins: Sequence[int] | None,
    ranks: int = 2,
    together: bool = False,
    interruption: Interruption | None = None,
    place: Place = HERE,
    session: Session | None = None,
    cut: float = math.inf,
    kept: Path | None = None,
) -> Outcome:
    """Run one configuration once.

    Parameters
    ----------
    configuration
        What to run.
    schedule
        Its steps.
    limit_s
        Hard limit on the whole launch, seconds.
    pins
        The CPUs of the ranks, which begin anew at the end; ``None`` leaves them to the scheduler.
    ranks
        How many.
    together
        The schedule is of what they all do together, and there may be more than two.
    interruption
        Ends the launch early when requested.
    place
        Where the ranks live.
    session
        The layer's stack, up at that place; without one it is brought up for this launch alone.
    cut
        On the monotonic clock, when the launch is ended wherever it is, as by an interrupt: the steps it has
        finished are kept.
    kept
        Where rank 0 writes its samples as they come; by default in a folder that goes with this process.

    Returns
    -------
    Outcome
        Also of a launch that failed or was interrupted; never raises for what a probe does.
    """
    started = time.monotonic()
    stack = configuration.kind.stack
    if stack is not None and session is None:
        try:
            with stack.up(place, configuration.options) as session:
                return launch(
                    configuration,
                    schedule,
                    limit_s=limit_s,
                    pins=pins,
                    ranks=ranks,
                    together=together,
                    interruption=interruption,
                    place=place,
                    session=session,
                    cut=cut,
                    kept=kept,
                )
        except StackError as refused:
            return Outcome("failed", str(refused), None, [], time.monotonic() - started)
    with rendezvous(place) as directory:
        if kept is not None:
            (directory / "stdout-0").symlink_to(kept.absolute())
        running = Running(directory, min(started + limit_s + GRACE_S, cut))
        status: Literal["ok", "failed", "interrupted"] = "interrupted"
        error: str | None = None
        try:
            task = {"together" if together else "schedule": [step.spec() for step in schedule]}
            running.start(configuration, task, ranks, limit_s, pins=pins, place=place, session=session)
            status, error = running.wait(interruption, measuring=True)
            if error == by_signal(signal.SIGTERM)[0] and time.monotonic() >= started + limit_s:
                # One rank's alarm has gone off, and the launcher tells of another, which it ended for that.
                error = by_signal(signal.SIGALRM)[0]
        except StackError as refused:
            status, error = "failed", str(refused)
        except OSError as problem:
            status, error = "failed", f"cannot be started: {problem.strerror or problem}"
        finally:
            running.end(clean=status == "ok" and not running.unclosed)
        hello, steps, said, done, crossing_ns, counted = _parse(directory)
        if status == "failed" and time.monotonic() >= cut:
            status, error = "interrupted", SPENT
        if status == "ok" and not done:
            status, error = "failed", "the probe ended without saying that it was done"
        # Who finds wrong data ends, and a launcher then kills the others, which is what it tells of.
        if status == "failed" and said is not None and (not running.killed or WRONG_DATA in said):
            error = said
        if status == "failed" and error is not None:
            error = running.explained(error)
        if hello is not None and session is not None:
            hello["effective"] = {**session.report, **hello["effective"]}
        seconds = time.monotonic() - started
        return Outcome(status, error, hello, steps, seconds, crossing_ns, counted)


Said = tuple[
    dict[str, Any] | None,
    list[dict[str, Any]],
    str | None,
    bool,
    tuple[float, float] | None,
    dict[str, int],
]
"""What the probes said: hello, samples, the first error, whether they were done, how far apart, counts."""


def _parse(directory: Path) -> Said:
    """Read what the probes said.

    A last line that is cut off, lines of a library that are not the protocol's, and steps that lost
    everything are passed over. A line with a key or a value that the protocol does not allow is an error.
    """
    hello, steps, said, done, broken = None, [], None, False, False
    crossing_ns: tuple[float, float] | None = None
    counted: dict[str, int] = {}
    # A rank that could not be started has left a link to a file that nobody has made.
    for file in sorted(file for file in directory.glob("stdout-*") if file.exists()):
        for line, event in lines.events(file.read_bytes()):
            match event:
                case {"event": "hello"} if _hello_allowed(event):
                    hello = event
                case {"event": "samples"} if lines.allowed(event):
                    if event["values_ns"]:
                        steps.append(event)
                case {"event": "hello" | "samples"}:
                    broken = True
                    said = said or f"probe: a line that the protocol does not allow: {line[:120]!r}"
                case {"event": "error"} if said is None:
                    said = f"{event.get('place', 'probe')}: {event.get('reason', 'no reason given')}"
                case {"event": "done", "counted": counts} if not _counts_allowed(counts):
                    broken = True
                    said = said or f"probe: a line that the protocol does not allow: {line[:120]!r}"
                case {"event": "done", "crossing_ns": [float(before), float(after)]} if (
                    0 < before < LONGEST_CROSSING_NS and 0 < after < LONGEST_CROSSING_NS
                ):
                    done, crossing_ns, counted = True, (before, after), event.get("counted", {})
                case {"event": "done"}:
                    done, counted = True, event.get("counted", {})
    return hello, steps, said, done and not broken, crossing_ns, counted


def _counts_allowed(counts: object) -> bool:
    """Whether names stand for whole numbers."""
    return isinstance(counts, dict) and all(
        type(count) is int and 0 <= count < 1 << 64 for count in counts.values()
    )


def _hello_allowed(event: dict[str, Any]) -> bool:
    """Whether a hello line has options and a clock that a manifest can hold."""
    try:
        Clock.model_validate(event.get("clock"))
    except ValidationError:
        return False
    return isinstance(event.get("effective"), dict)
