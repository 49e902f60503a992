"""A compiled program on a messaging library: all its ranks at once, and what each has to say."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wiretwin.errors import MeasureError, ProgramError
from wiretwin.measure.running import GRACE_S, Running, rendezvous
from wiretwin.measure.running import LOOK_S as SILENCE_S
from wiretwin.place import HERE, Place
from wiretwin.stacks.layers import Configuration, refusal

__all__ = ["on_stack"]

LOOK_S = 0.5
"""The pause between two looks at what the ranks have said, seconds."""
LEAVE_S = 3.0
"""How long a library may take to let ranks go that are done, seconds."""


def on_stack(
    name: str,
    program: Mapping[str, Any],
    configuration: Configuration,
    ranks: int,
    limit_s: float,
    place: Place = HERE,
) -> list[dict[str, Any]]:
    """Bring the stack up, run the program once, bring it down; return the ranks' lines in order.

    Parameters
    ----------
    name
        What the program is called in errors.
    program
        As in the specification of a probe.
    configuration
        A layer with a stack.
    ranks
        How many.
    limit_s
        The longest the ranks may live, seconds; bringing the stack up is not in it.
    place
        Where they live.

    Raises
    ------
    MeasureError
        The layer cannot run there.
    ProgramError
        A rank failed, or the program did not end within the limit.
    """
    stack = configuration.kind.stack
    assert stack is not None, "a layer with a stack"
    refused = refusal(configuration, place)
    if refused is not None:
        raise MeasureError(f"{configuration.name} cannot run here: {refused}")
    with stack.up(place, configuration.options) as session, rendezvous(place) as directory:
        running = Running(directory, time.monotonic() + limit_s + GRACE_S)
        status = "interrupted"
        try:
            running.start(
                configuration, {"program": dict(program)}, ranks, limit_s, place=place, session=session
            )
            status, error = _await(running, directory, ranks)
        except OSError as problem:
            raise ProgramError(f"{name}: cannot be started: {problem.strerror or problem}") from None
        finally:
            running.end(clean=status == "ok")
        events = _events(directory)
    found = {event["rank"]: event for event in events if event.get("event") == "rank"}
    if status != "ok" or sorted(found) != list(range(ranks)):
        said = [event for event in events if event.get("event") == "error"]
        # At the limit a rank says so and ends, and a launcher then kills the others.
        said.sort(key=lambda event: event.get("place") != "limit_s")
        if said and (not running.killed or said[0].get("place") == "limit_s"):
            error = f"{said[0].get('place', 'a rank')}: {said[0].get('reason', 'no reason given')}"
        error = place.trouble() or error  # the cause before its effects
        missing = ", ".join(str(rank) for rank in range(ranks) if rank not in found)
        words = running.explained(error or f"no word of rank {missing}")
        raise ProgramError(f"{name} on {configuration.name}: {words}")
    return [found[rank] for rank in range(ranks)]


def _await(running: Running, directory: Path, ranks: int) -> tuple[str, str | None]:
    """Wait until all ranks have ended, or all are done and their library does not let them go.

    MPICH 4.0 over UCX, on several hosts: a rank that is first in MPI_Finalize waits for the others without
    answering them, and one that still needs an answer to close a connection waits for it.
    """
    end, done_at, looked_at = running.deadline, None, time.monotonic()
    while True:
        together = running.session is not None and running.session.together
        running.deadline = min(end, time.monotonic() + LOOK_S) if together else end
        status, error = running.wait(None)
        now = time.monotonic()
        if any(process.poll() is not None for process in running.processes) or not together or now >= end:
            return status, error
        if now > looked_at + SILENCE_S:
            looked_at = now
            if (trouble := running.trouble()) is not None:
                return "failed", trouble
        if done_at is None and sum(event.get("event") == "done" for event in _events(directory)) == ranks:
            done_at = now
        if done_at is not None and now > done_at + LEAVE_S:
            running.end(clean=False)
            return "ok", None


def _events(directory: Path) -> list[dict[str, Any]]:
    """Return every line of the protocol that any rank has written."""
    events = []
    for file in sorted(directory.glob("stdout-*")):
        for line in file.read_bytes().splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                event = json.loads(line)
                if isinstance(event, dict):
                    events.append(event)
    return events
