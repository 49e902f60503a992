"""Rounds of interleaved launches: measure each configuration until it is known well enough.

In each round every configuration still being measured is launched once, in an order shuffled by the
seed, so that a slow minute of the host falls on all of them alike. Each launch is stored at once.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wiretwin.errors import StorageError
from wiretwin.measure.adaptive import LEAST_LAUNCHES, Watch
from wiretwin.measure.launch import Interruption, Outcome, launch
from wiretwin.measure.layers import Configuration
from wiretwin.measure.schedule import Purpose, steps
from wiretwin.place import HERE, Place
from wiretwin.results import Clock, Launch, Result
from wiretwin.stacks import Session, StackError

__all__ = ["Event", "Plan", "run"]

FAILURES = 2
"""Launches of one configuration that fail in a row before it is dropped."""
STEP_SHARE = 0.75
"""Share of a launch that its steps may take; the rest is for starting and ending processes."""
WORTHWHILE_S = 1.0
"""A launch is planned to take at least this much, as long as that leaves room for enough of them."""
LEAST_LIMIT_S = 30.0
"""No launch has a hard limit below this, however short its steps: a busy host starts slowly."""


@dataclass(frozen=True)
class Plan:
    """What is measured.

    Attributes
    ----------
    configurations
        Each is launched once per round.
    sizes
        Message sizes in bytes, rising.
    purpose
        Which loops: `wiretwin.measure.schedule.steps`.
    budget_s
        Time for everything, seconds.
    precision
        Relative half width of the interval between launches at which a configuration is done.
    launches
        Launches of each before it may stop for being narrow; the budget is planned for so many.
    seed
        Of the order of launches.
    pins
        CPUs of the two ranks.
    place
        Where they live.
    turns
        Launches of a configuration in each round, where that is not one.
    """

    configurations: Sequence[Configuration]
    sizes: Sequence[int]
    purpose: Purpose
    budget_s: float
    precision: float
    launches: int
    seed: int
    pins: tuple[int, int] | None
    place: Place = HERE
    turns: Mapping[str, int] = field(default_factory=dict)

    @property
    def launch_s(self) -> float:
        """Planned time of one launch, seconds: fewer launches before too short ones."""
        each = self.budget_s / sum(self.turns.get(one.name, 1) for one in self.configurations)
        return max(each / max(self.launches, LEAST_LAUNCHES), min(WORTHWHILE_S, each / LEAST_LAUNCHES))

    @property
    def limit_s(self) -> float:
        """Hard limit on one launch, seconds."""
        return max(LEAST_LIMIT_S, 10 * self.launch_s)


@dataclass(frozen=True)
class Event:
    """Progress, told after each launch.

    Attributes
    ----------
    name
        The configuration launched.
    launches
        Launches stored so far, of all configurations.
    active
        Configurations still being measured.
    elapsed_s, remaining_s
        Since the beginning, and an estimate of what is still to come.
    words
        What happened.
    """

    name: str
    launches: int
    active: int
    elapsed_s: float
    remaining_s: float
    words: str


@dataclass
class _State:
    """One configuration on its way."""

    configuration: Configuration
    watch: Watch
    seconds: float
    """Expected time of its next launch."""
    failures: int = 0
    delays_ns: dict[int, int] = field(default_factory=dict)
    session: Session | None = None
    """Its stack, if it has one and it is up."""
    down: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """Brings it down."""

    def up(self, place: Place) -> Session | None:
        """Bring up the stack of the configuration, unless it is up or has none."""
        stack = self.configuration.kind.stack
        if stack is not None and self.session is None:
            self.session = self.down.enter_context(stack.up(place, self.configuration.options))
        return self.session

    def close(self) -> None:
        """Bring it down."""
        self.session = None
        self.down.close()


def run(
    plan: Plan,
    result: Result,
    interruption: Interruption,
    tell: Callable[[Event], None] = lambda _: None,
) -> None:
    """Measure, storing each launch in `result`, and finish its manifest.

    Parameters
    ----------
    plan
        What to measure.
    result
        A result folder just created, with one `Layer` per configuration.
    interruption
        Ends the measurement early; what was measured is kept.
    tell
        Called after each launch.

    Raises
    ------
    StorageError
        A launch could not be stored; all earlier ones are.
    """
    active = {
        configuration.name: _State(configuration, Watch(plan.precision, plan.launches), plan.launch_s)
        for configuration in plan.configurations
    }
    try:
        with contextlib.ExitStack() as stack:
            for state in active.values():
                stack.callback(state.close)
            _rounds(plan, result, active, interruption, tell)
    except StorageError as error:
        with contextlib.suppress(StorageError):
            for name in active:
                result.manifest.stopped[name] = "failed"
                result.manifest.stopped_because[name] = f"could not be stored: {error}"
            result.finish("interrupted")
        raise
    for name in active:
        result.manifest.stopped[name] = "interrupt"
        result.manifest.stopped_because[name] = "interrupted by the user"
    result.finish("interrupted" if active else "complete")


def _rounds(
    plan: Plan,
    result: Result,
    active: dict[str, _State],
    interruption: Interruption,
    tell: Callable[[Event], None],
) -> None:
    """Launch until nothing is active any more, or an interrupt."""
    begun = time.monotonic()
    order = random.Random(plan.seed)
    number = 0
    while active and not interruption.requested:
        names = [name for name in sorted(active) for _ in range(plan.turns.get(name, 1))]
        order.shuffle(names)
        for name in names:
            if name not in active:
                continue
            number += 1
            state = active[name]
            outcome, record = _launch_once(plan, state, number, interruption)
            _note_hello(result, name, outcome)
            result.append(record, outcome.columns())
            words = _learn(state, outcome)
            elapsed = time.monotonic() - begun
            if outcome.status == "interrupted":
                break
            if outcome.status != "ok" and (trouble := plan.place.trouble()) is not None:
                for lost in list(active):
                    _stop(result, active, lost, "failed", trouble)
                break
            out_of_time = elapsed + state.seconds > plan.budget_s
            verdict = state.watch.verdict(out_of_time=out_of_time)
            if state.failures >= FAILURES:
                _stop(
                    result,
                    active,
                    name,
                    "failed",
                    f"{state.failures} launches in a row failed: {outcome.error}",
                )
            elif verdict.stop is not None:
                _stop(result, active, name, verdict.stop, verdict.words)
            tell(Event(name, number, len(active), elapsed, _remaining(plan, active, elapsed), words))


def _launch_once(
    plan: Plan, state: _State, number: int, interruption: Interruption
) -> tuple[Outcome, Launch]:
    schedule = steps(
        plan.sizes,
        plan.purpose,
        seconds=plan.launch_s * STEP_SHARE,
        max_bytes=state.configuration.max_bytes,
        loops=state.configuration.loops,
        delays_ns=state.delays_ns,
    )
    load = os.getloadavg()[0]
    started = datetime.datetime.now(datetime.UTC)
    try:
        session = state.up(plan.place)
    except StackError as refused:
        outcome = Outcome("failed", str(refused), None, [], 0.0)
    else:
        outcome = launch(
            state.configuration,
            schedule,
            limit_s=plan.limit_s,
            pins=plan.pins,
            interruption=interruption,
            place=plan.place,
            session=session,
        )
        if session is not None and session.daemons and outcome.status != "ok":
            state.close()  # what the daemons are in after a failure is anybody's guess
    clock = (outcome.hello or {}).get("clock", {})
    record = Launch(
        launch=number,
        name=state.configuration.name,
        order=number - 1,
        started_utc=started.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        seconds=round(outcome.seconds, 6),
        status=outcome.status,
        error=outcome.error,
        clock_cost_ns=clock.get("cost_ns"),
        load_before=round(load, 2),
        lost=outcome.lost,
        counted=outcome.counted,
        crossing_ns=outcome.crossing_ns,
        traffic=outcome.traffic,
    )
    return outcome, record


def _note_hello(result: Result, name: str, outcome: Outcome) -> None:
    """Keep what the first launch of a configuration says about options and clock."""
    for layer in result.manifest.layers:
        if layer.name == name and layer.clock is None and outcome.hello is not None:
            layer.effective = dict(outcome.hello.get("effective", {}))
            layer.clock = Clock.model_validate(outcome.hello["clock"])


def _learn(state: _State, outcome: Outcome) -> str:
    """Update a configuration's state; say what happened in words."""
    if outcome.status != "ok":
        state.failures += 1
        return f"failed: {outcome.error}"
    state.failures = 0
    state.seconds = outcome.seconds
    medians = outcome.medians("echo")
    state.watch.add(medians)
    if not state.delays_ns:
        # Hoefler et al. 2007, section 3: the delay must exceed the round trip of one message.
        state.delays_ns = {size: 1000 + round(2 * median) for size, median in medians.items()}
    return f"{sum(len(step['values_ns']) for step in outcome.steps)} samples"


def _stop(result: Result, active: dict[str, _State], name: str, stop: Any, words: str) -> None:
    active.pop(name).close()
    result.manifest.stopped[name] = stop
    result.manifest.stopped_because[name] = words


def _remaining(plan: Plan, active: dict[str, _State], elapsed: float) -> float:
    """Estimate the time to come: the least launches still owed, or else the budget."""
    owed = sum(max(0, LEAST_LAUNCHES - state.watch.seen) * state.seconds for state in active.values())
    return max(owed, plan.budget_s - elapsed) if active else 0.0
