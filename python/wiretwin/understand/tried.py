"""Whether chosen algorithms of collectives help: real launches with and without them, in turn.

Each launch times the collectives at the lengths for which they were chosen, a barrier before each call, and
what counts is the rank that is last. The two kinds of launches take turns, so that a drift of the host meets
both, and are compared as two results are (`wiretwin.understand.changes`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wiretwin.errors import InputError, MeasureError
from wiretwin.measure import together
from wiretwin.measure.api import pins_of
from wiretwin.measure.launch import launch
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
    """

    rows: list[Change]
    launches: int

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
        return f"{head}: of {len(self.rows)} {'; '.join(said)}; {self.launches} launches with it and without"


def try_rules(
    layer: str,
    write: Callable[[Path], Mapping[str, str]],
    wanted: Mapping[str, Sequence[int]],
    *,
    ranks: int,
    place: Place = HERE,
    launches: int = 7,
    budget_s: float = 60.0,
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
    on_launch
        Called after each launch with how many there were and how many there will be.

    Raises
    ------
    InputError
        A value is out of range, or the layer is none of MPICH or Open MPI.
    MeasureError
        The layer cannot run there, or a launch failed.
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
                session.env |= more if ruled else {}
                outcome = launch(
                    configuration,
                    steps,
                    limit_s=STARTING_S + 10 * seconds,
                    pins=pins,
                    ranks=ranks,
                    together=True,
                    interruption=interruption,
                    place=place,
                    session=session,
                )
            if outcome.status == "interrupted":
                raise KeyboardInterrupt
            if outcome.status != "ok":
                which = "with the rules" if ruled else "without the rules"
                raise MeasureError(f"{configuration.name}: a launch {which} failed: {outcome.error}")
            for key, ns in outcome.medians_by_loop().items():
                if isinstance(key, tuple) and key[0] in wanted:
                    times[ruled][key].append(ns)
            if on_launch is not None:
                on_launch(number + 1, 2 * launches)
    plain, with_rules = (
        {key: np.log(np.array(values)) for key, values in times[side].items()} for side in (False, True)
    )
    return Tried(compared(plain, with_rules), launches)
