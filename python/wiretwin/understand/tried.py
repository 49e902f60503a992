"""Whether chosen algorithms of collectives help: real launches with and without them, in turn.

Each launch times the collectives at the lengths for which they were chosen, a barrier before each call, and
what counts is the rank that is last. The two kinds of launches take turns, so that a drift of the host meets
both, and are compared as two results are (`wiretwin.understand.changes`). Short messages come first: what a
launch has not done when its time is over, longer ones mostly, is left out of all that follow.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wiretwin.errors import InputError, MeasureError
from wiretwin.measure import together
from wiretwin.measure.api import pins_of
from wiretwin.measure.launch import SPENT, launch
from wiretwin.measure.running import Interruption
from wiretwin.place import HERE, Place
from wiretwin.scratch import folder
from wiretwin.stacks.layers import parse_layer, refusal
from wiretwin.stacks.mpi import MpiSession
from wiretwin.understand.changes import Change, compared

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Tried", "try_rules"]

LEAST_LAUNCHES = 3
"""With fewer there is no interval that means something."""
STARTING_S = 30.0
"""What starting and ending a launch may take beside its steps, seconds."""
SLOWER = 10.0
"""How many times as long as they should the steps of a launch may take."""
LEAST_CALLS = 7
"""Calls of a step, whatever its time: one that is verified, a first one, two to warm up, three samples."""


@dataclass(frozen=True)
class Tried:
    """What the launches say.

    Attributes
    ----------
    rows
        By collective, as ``layer``, and length in bytes: without the rules as ``before``, with them as
        ``after``.
    launches
        Of each kind.
    left_out
        Collectives and lengths that some launch did not finish in its time.
    limit_s
        That time, seconds.
    """

    rows: list[Change]
    launches: int
    left_out: Sequence[tuple[str, int]] = ()
    limit_s: float = 0.0

    def sentence(self) -> str:
        """Say whether the rules help."""
        said = []
        for verdict in ("faster", "slower"):
            ratios = sorted(row.ratio or 1.0 for row in self.rows if row.verdict == verdict)
            if ratios:
                middle = ratios[len(ratios) // 2]
                said.append(f"{verdict} at {len(ratios)}, typically {middle:.3g} times the time")
        rest = sum(row.verdict not in ("faster", "slower") for row in self.rows)
        if rest:
            said.append(f"no difference shown at {rest}")
        faster, slower = (any(row.verdict == one for row in self.rows) for one in ("faster", "slower"))
        head = {
            (True, False): "the file helps",
            (True, True): "the file helps at some lengths and harms at others",
            (False, True): "the file does not help, it harms",
            (False, False): "the file does not help",
        }[faster, slower]
        text = f"{head}: of {len(self.rows)} {'; '.join(said)}; {self.launches} launches with it and without"
        if self.left_out:
            names = ", ".join(f"{name} of {size} bytes" for name, size in self.left_out)
            text += f"; left out, as a launch did not finish them in {self.limit_s:.0f} s: {names}"
        return text


def try_rules(
    layer: str,
    write: Callable[[Path], Mapping[str, str]],
    wanted: Mapping[str, Sequence[int]],
    *,
    ranks: int,
    place: Place = HERE,
    launches: int = 7,
    budget_s: float = 60.0,
    expected_s: float = 0.0,
    on_launch: Callable[[int, int], None] | None = None,
) -> Tried:
    """Time collectives with rules and without, launch by launch in turn.

    Parameters
    ----------
    layer
        A layer of MPICH or Open MPI.
    write
        Writes the rules into a folder that all hosts see, and returns the variables that name them.
    wanted
        By collective the lengths in bytes.
    ranks
        How many, 2 to 1024.
    place
        Where they live.
    launches
        Of each kind, 3 to 1000.
    budget_s
        What the steps of all launches may take together, seconds; starting the launches comes on top.
    expected_s
        What one call of each collective at each length should take together, seconds.
    on_launch
        Called after each launch with how many there were and how many there will be.

    Raises
    ------
    InputError
        A value is out of range, or the layer is none of MPICH or Open MPI, or does not make the calls that
        the rules are for.
    MeasureError
        The layer cannot run there, a launch failed, or none of its steps ended in time.
    KeyboardInterrupt
        By the user.
    """
    if not LEAST_LAUNCHES <= launches <= 1000:
        raise InputError(key="--launches", value=launches, allowed=f"{LEAST_LAUNCHES} to 1000")
    configuration = parse_layer(layer, "--layer")
    if refused := refusal(configuration, place):
        raise MeasureError(f"{configuration.name} cannot run here: {refused}")
    stack = configuration.kind.stack
    pins = pins_of("auto", place, ranks)
    seconds = budget_s / (2 * launches)
    least_s = LEAST_CALLS * expected_s
    limit_s = STARTING_S + SLOWER * max(seconds, least_s)
    steps = [
        step
        for name, sizes in wanted.items()
        for step in together.steps(
            [name],
            sorted(sizes),
            seconds=seconds * len(sizes) / sum(map(len, wanted.values())),
            max_bytes=configuration.max_bytes,
            short=True,
        )
    ]
    steps.sort(key=lambda step: step.bytes)
    left_out: list[tuple[str, int]] = []
    times: dict[bool, dict[tuple[str, int], list[float]]] = {
        True: defaultdict(list),
        False: defaultdict(list),
    }
    with folder(place.directory, "rules") as rules, Interruption() as interruption:
        more = write(rules)
        for number in range(2 * launches):
            # The first of each two changes, for what follows a launch may still bear its marks.
            ruled = number % 4 in (1, 2)
            if stack is None:
                raise InputError(key="--layer", value=layer, allowed="a layer of MPICH or Open MPI")
            with stack.up(place, configuration.options) as session:
                if not isinstance(session, MpiSession):
                    raise InputError(key="--layer", value=layer, allowed="a layer of MPICH or Open MPI")
                if session.options.get("idle_us"):
                    raise InputError(
                        key="--layer",
                        value=layer,
                        reason="makes calls that do not block, which these rules are not for",
                        allowed="the same without +yield",
                    )
                session.env |= more if ruled else {}
                outcome = launch(
                    configuration,
                    steps,
                    limit_s=limit_s,
                    pins=pins,
                    ranks=ranks,
                    together=True,
                    interruption=interruption,
                    place=place,
                    session=session,
                    cut=time.monotonic() + limit_s,
                )
            which = "with the rules" if ruled else "without the rules"
            if outcome.status == "interrupted" and outcome.error == SPENT:
                done = {(step["loop"], step["bytes"]) for step in outcome.steps}
                left_out += [(step.loop, step.bytes) for step in steps if (step.loop, step.bytes) not in done]
                steps = [step for step in steps if (step.loop, step.bytes) in done]
                if not steps:
                    raise MeasureError(
                        f"{configuration.name}: a launch {which} finished nothing in {limit_s:.0f} s, "
                        f"and its calls should take {least_s:.3g} s"
                    )
            elif outcome.status == "interrupted":
                raise KeyboardInterrupt
            elif outcome.status != "ok":
                raise MeasureError(f"{configuration.name}: a launch {which} failed: {outcome.error}")
            for key, ns in outcome.medians_by_loop().items():
                if isinstance(key, tuple) and key[0] in wanted:
                    times[ruled][key].append(ns)
            if on_launch is not None:
                on_launch(number + 1, 2 * launches)
    plain, with_rules = (
        {key: np.log(np.array(values)) for key, values in times[side].items() if key not in left_out}
        for side in (False, True)
    )
    return Tried(compared(plain, with_rules), launches, left_out, limit_s)
