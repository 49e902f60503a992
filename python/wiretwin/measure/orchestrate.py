"""Rounds of interleaved launches: measure each configuration until it is known well enough.

In each round every configuration still being measured is launched once, in an order shuffled by the
seed, so that a slow minute of the host falls on all of them alike. Each launch is stored at once. How long
its steps may take, and whether there is time for it, is the budget's to say.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import itertools
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from wiretwin.errors import StorageError
from wiretwin.measure import together
from wiretwin.measure.adaptive import Key, Watch
from wiretwin.measure.budget import LEAST_STEPS_S, Budget
from wiretwin.measure.launch import SPENT, Interruption, Outcome, launch
from wiretwin.measure.schedule import FIRST, FIRST_STEP, Purpose, Step, steps
from wiretwin.place import HERE, Place
from wiretwin.process import no_longer_than
from wiretwin.results import Clock, Launch, Result, Stop
from wiretwin.stacks import Session, StackError
from wiretwin.stacks.layers import Configuration
from wiretwin.stacks.word import INTERRUPT

__all__ = ["Event", "Plan", "run"]

FAILURES = 2
"""Launches of one configuration that fail in a row before it is dropped."""
SHORT_S = 0.5
"""A launch whose steps may take less is a short one: launches say more than samples."""
ENOUGH_S = 0.1
"""Within a budget, the steps of a launch with the round trips alone take no longer, seconds: what is left is
for further launches, which differ by more than the samples of one do."""
WHOLE = 2
"""So many short launches of a configuration have every loop that is wanted: a fit can do with no fewer."""
WHOLE_EVERY = 3
"""Where there is time for all launches, every so many of the later ones have every loop, too.

The others have the round trips alone and take half of the time: the curve and the headlines are of all
launches, and overheads, whose lines have few parameters, are as well known from four launches of seven."""
ALONE, ALONE_SHARE = 3, 0.7
"""Each ordinary launch of a layer that has a loop of first calls is followed by at most `ALONE` launches with
that loop alone, as long as these have cost at most `ALONE_SHARE` of what the ordinary ones have. A process
makes each call for the first time only once, and what that takes varies widely between launches."""
LIMIT_S = 100.0
"""Hard limit on one launch, seconds, where the budget does not end it before: ten times its longest steps."""


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
    budget
        The time there is for everything.
    precision
        Relative half width of the interval between launches at which a configuration is done.
    launches
        Launches of each before it may stop for being narrow; the budget is divided among so many rounds.
        Without a limit on the time each is launched so often.
    seed
        Of the order of launches.
    pins
        CPUs of the ranks.
    place
        Where they live.
    at_least
        Launches of a configuration that are made even beyond the budget.
    ranks
        How many ranks a launch has.
    loops
        The loops of what they do together; of no matter for the purposes of two ranks.
    """

    configurations: Sequence[Configuration]
    sizes: Sequence[int]
    purpose: Purpose
    budget: Budget
    precision: float
    launches: int
    seed: int
    pins: Sequence[int] | None
    place: Place = HERE
    at_least: Mapping[str, int] = field(default_factory=dict)
    ranks: int = 2
    loops: Sequence[str] = ()

    @property
    def together(self) -> bool:
        """Whether it is what any number of ranks do together."""
        return self.purpose in together.PURPOSES


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
    failures: int = 0
    tried: bool = False
    due: float = 0.0
    """Launches that the time of the rounds so far would have paid for, less those that were made."""
    ended: bool = False
    """A launch has ended by itself."""
    cost_s: float = 0.0
    """What its launches have cost, seconds, but those with first calls alone."""
    alone: int = 0
    """How many of those there were."""
    alone_s: float = 0.0
    """What they have cost."""
    delays_ns: dict[int, int] = field(default_factory=dict)
    loads_ns: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By size, the times from one message to the next under each load."""
    wanted: set[Key] = field(default_factory=set)
    """Sizes whose echo was in the schedule of a launch, or each loop with each of its sizes."""
    have: set[Key] = field(default_factory=set)
    """Those of them that a launch has samples of."""
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
        configuration.name: _State(configuration, Watch(plan.precision, plan.launches))
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
    for name, state in active.items():
        _note_lacking(plan, result, state)
        result.manifest.stopped[name] = "interrupt"
        result.manifest.stopped_because[name] = "interrupted by the user"
    # An interrupt during the last launch ends whoever measures all the same.
    result.finish("interrupted" if active or interruption.requested else "complete")


def _rounds(
    plan: Plan,
    result: Result,
    active: dict[str, _State],
    interruption: Interruption,
    tell: Callable[[Event], None],
) -> None:
    """Launch until nothing is active any more, or an interrupt."""
    begun, budget = time.monotonic(), plan.budget
    order = random.Random(plan.seed)
    number, round_ = 0, _Round(math.inf, True, {})
    for rounds_left in itertools.chain(range(plan.launches, 0, -1), itertools.repeat(0)):
        if not active or interruption.requested:
            return
        names = sorted(active)
        # Beyond the launches asked for, those that are still wide go on as before, while the time lasts.
        if rounds_left:
            # Once what launches cost is known, short ones stay short: what they leave is for more of them.
            short = plan.launches - rounds_left > WHOLE and round_.steps_s < SHORT_S
            round_ = _round(plan, active, rounds_left, short=short)
        else:
            round_ = round_.more(plan, active)
        order.shuffle(names)
        for place, name in enumerate(names, start=1):
            if name not in active:
                continue
            state = active[name]
            owed = plan.at_least.get(name, 0) > state.watch.seen
            # The first ones are the least that a fit can do with, and tell what the others will cost.
            first = state.watch.seen < WHOLE
            state.due = 1.0 if first else state.due + round_.shares.get(name, 1.0)
            if not first and not owed and state.due < 1.0 - 1e-9:
                continue  # its launches are dear, and the others have yet to have theirs
            whole = _whole(plan, name, state.watch.seen, round_.steps_s, often=round_.often)
            limited = budget.asked_s is not None and not whole
            steps_s = min(round_.steps_s, ENOUGH_S) if limited else round_.steps_s
            if not owed and not budget.fits(name, steps_s, whole=whole):
                _stop(plan, result, active, name, *_out_of_time(state))
                continue
            number += 1
            state.due -= 1.0
            cut = math.inf if owed else budget.fair_end(name, steps_s, len(active), whole=whole)
            asked = _Asked(number, steps_s, whole, cut)
            outcome, words = _measured(plan, result, state, asked, interruption)
            short_s = {one: budget.besides_s(one) + ENOUGH_S for one in active}
            later_s = sum(short_s[one] - ENOUGH_S + round_.steps_s for one in names[place:] if one in active)
            needed_s = later_s + max(0, rounds_left - 1) * sum(short_s.values())
            if outcome.status == "ok" and (
                made := _first_calls(plan, result, state, asked, interruption, needed_s)
            ):
                outcome, number = made
            if outcome.status == "interrupted" and outcome.error != SPENT:
                return
            if outcome.status == "failed" and (trouble := plan.place.trouble()) is not None:
                for lost in list(active):
                    _stop(plan, result, active, lost, "failed", trouble)
                return
            verdict = state.watch.verdict(enough=budget.asked_s is None)
            if state.failures >= FAILURES:
                reason = f"{state.failures} launches in a row failed: {outcome.error}"
                _stop(plan, result, active, name, "failed", reason)
            elif outcome.error == SPENT and not state.ended:
                words = "its first launch took its whole share of the budget and was ended"
                _stop(plan, result, active, name, "budget", words)
            elif verdict.stop is not None:
                _stop(plan, result, active, name, verdict.stop, verdict.words)
            left_s = budget.left_s if budget.asked_s is not None else 0.0
            elapsed = time.monotonic() - begun
            tell(Event(name, number, len(active), elapsed, left_s if active else 0.0, words))


@dataclass(frozen=True)
class _Round:
    """How the launches of a round are made."""

    steps_s: float
    """What the steps of each may take together, seconds."""
    often: bool
    """Later launches have every loop now and then."""
    shares: Mapping[str, float]
    """Which share of the launches still to be made the time left pays for, by configuration."""

    def more(self, plan: Plan, active: Mapping[str, _State]) -> _Round:
        """Return a round beyond the launches asked for: whose are dear has fewer of them than the others."""
        costs_s = {}
        for name, state in active.items():
            whole = _whole(plan, name, state.watch.seen, self.steps_s, often=False)
            costs_s[name] = self.steps_s + plan.budget.besides_s(name, whole=whole)
        typical_s = statistics.median(costs_s.values())
        shares = {name: min(1.0, typical_s / cost_s) for name, cost_s in costs_s.items()}
        return _Round(self.steps_s, False, shares)


@dataclass(frozen=True)
class _Asked:
    """One launch that is to be made."""

    number: int
    steps_s: float
    whole: bool
    """It has every loop that is wanted."""
    cut: float
    """When it is ended, on the monotonic clock."""
    alone: bool = False
    """It has the first calls, and nothing else."""


def _round(plan: Plan, active: Mapping[str, _State], rounds_left: int, *, short: bool) -> _Round:
    """Divide the time left among the launches still to be made, which are to be short ones if it says so."""
    budget = plan.budget

    def divided(steps_s: float, often: bool) -> tuple[float, bool, dict[str, float]]:
        """Return what the steps may take, whether all launches can be made, and which share of each can."""
        costs_s = dict.fromkeys(active, 0.0)
        for name, more in itertools.product(active, range(rounds_left)):
            whole = _whole(plan, name, active[name].watch.seen + more, steps_s, often=often)
            costs_s[name] += budget.besides_s(name, whole=whole)
        needs = {name: cost_s + rounds_left * LEAST_STEPS_S for name, cost_s in costs_s.items()}
        shares = budget.shares(needs)
        besides_s = sum(share * costs_s[name] for name, share in shares.items())
        each_s = budget.steps_s(rounds_left * sum(shares.values()), besides_s)
        return each_s, budget.affords(needs), shares

    long_s, _, shares = divided(SHORT_S, often=True)
    if long_s >= SHORT_S and not short:
        return _Round(long_s, True, shares)
    steps_s, often, shares = divided(LEAST_STEPS_S, often=True)
    if not often:
        steps_s, _, shares = divided(LEAST_STEPS_S, often=False)
    # Steps that take longer would be those of launches with every loop, for which there is no time.
    return _Round(min(steps_s, math.nextafter(SHORT_S, 0.0)), often, shares)


def _out_of_time(state: _State) -> tuple[Literal["budget"], str]:
    if not state.tried:
        return "budget", "not measured: the budget was spent before its first launch"
    return "budget", state.watch.words()


def _first_calls(
    plan: Plan,
    result: Result,
    state: _State,
    after: _Asked,
    interruption: Interruption,
    needed_s: float,
) -> tuple[Outcome, int] | None:
    """Make launches with the first calls alone, others being in need of so much of the time left.

    Returns how the last of them ended, and its number; nothing where there was none.
    """
    budget, made = plan.budget, None
    if plan.purpose != "fit" or FIRST not in state.configuration.loops:
        return None
    for number in range(after.number + 1, after.number + 1 + ALONE):
        if budget.asked_s is not None:
            took_s = (
                state.alone_s / state.alone if state.alone else budget.besides_s(state.configuration.name)
            )
            if took_s > min(ALONE_SHARE * state.cost_s - state.alone_s, budget.left_s - needed_s):
                break
        asked = dataclasses.replace(after, number=number, alone=True)
        outcome, _ = _measured(plan, result, state, asked, interruption)
        made = outcome, number
        if outcome.status != "ok":
            break
    return made


def _measured(
    plan: Plan,
    result: Result,
    state: _State,
    asked: _Asked,
    interruption: Interruption,
) -> tuple[Outcome, str]:
    """Launch a configuration once, store it, learn from it."""
    before = plan.budget.now()
    state.tried = True
    kept = result.under_way(_record(state, asked.number, datetime.datetime.now(datetime.UTC)))
    outcome, record = _launch_once(plan, state, asked, kept, interruption)
    _note_hello(result, state.configuration.name, outcome)
    result.append(record, outcome.columns())
    cost_s = plan.budget.now() - before
    if asked.alone:
        state.alone, state.alone_s = state.alone + 1, state.alone_s + cost_s
        return outcome, ""
    words = _learn(plan, state, outcome)
    state.cost_s += cost_s
    if outcome.status == "ok" or outcome.error == SPENT:
        plan.budget.learn(state.configuration.name, cost_s, asked.steps_s, whole=asked.whole)
    return outcome, words


def _launch_once(
    plan: Plan,
    state: _State,
    asked: _Asked,
    kept: Path,
    interruption: Interruption,
) -> tuple[Outcome, Launch]:
    schedule = _schedule(plan, state, asked)
    if plan.together:
        state.wanted.update((together.named(step.loop, step.delay_ns), step.bytes) for step in schedule)
    else:
        state.wanted.update(step.bytes for step in schedule if step.loop == "echo")
    load = os.getloadavg()[0]
    started = datetime.datetime.now(datetime.UTC)
    try:
        with no_longer_than(asked.cut):
            session = state.up(plan.place)
    except StackError as refused:
        outcome = Outcome("failed", str(refused), None, [], 0.0)
    else:
        outcome = launch(
            state.configuration,
            schedule,
            limit_s=LIMIT_S,
            pins=plan.pins,
            ranks=plan.ranks,
            together=plan.together,
            interruption=interruption,
            place=plan.place,
            session=session,
            cut=asked.cut,
            kept=kept,
        )
        if session is not None and session.daemons and outcome.status != "ok":
            state.close()  # what the daemons are in after a failure is anybody's guess
    clock = (outcome.hello or {}).get("clock", {})
    update = {
        "seconds": round(outcome.seconds, 6),
        "status": outcome.status,
        "error": outcome.error,
        "clock_cost_ns": clock.get("cost_ns"),
        "load_before": round(load, 2),
        "lost": outcome.lost,
        "counted": outcome.counted,
        "crossing_ns": outcome.crossing_ns,
        "traffic": outcome.traffic,
    }
    return outcome, _record(state, asked.number, started).model_copy(update=update)


def _schedule(plan: Plan, state: _State, asked: _Asked) -> list[Step]:
    """Return the steps of a launch."""
    if asked.alone:
        return [FIRST_STEP]
    short, most = asked.steps_s < SHORT_S, state.configuration.max_bytes
    settled = state.watch.settled()
    if plan.together:
        loops = [loop for loop in plan.loops if loop in state.configuration.loops]
        return together.steps(
            loops,
            plan.sizes,
            seconds=asked.steps_s,
            max_bytes=most,
            short=short,
            settled=settled,
            delays_ns=state.loads_ns,
        )
    offered = state.configuration.loops
    return steps(
        plan.sizes,
        plan.purpose,
        seconds=asked.steps_s,
        short=short,
        max_bytes=most,
        loops=offered if len(plan.place.hosts) > 1 else offered - {INTERRUPT},
        delays_ns=state.delays_ns,
        settled={size for size in settled if isinstance(size, int)},
        whole=asked.whole,
    )


def _whole(plan: Plan, name: str, seen: int, steps_s: float, *, often: bool) -> bool:
    """Whether the next launch of a configuration, after so many, has the loops besides the round trips."""
    if plan.purpose != "fit" or steps_s >= SHORT_S or name in plan.at_least:
        return True
    return seen < WHOLE or (often and seen % WHOLE_EVERY == WHOLE_EVERY - 1)


def _record(state: _State, number: int, started: datetime.datetime) -> Launch:
    """Return what is known of a launch that begins: how it would have ended were this process killed."""
    return Launch(
        launch=number,
        name=state.configuration.name,
        order=number - 1,
        started_utc=started.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        seconds=0.0,
        status="interrupted",
        error="the measuring process was killed",
    )


def _note_hello(result: Result, name: str, outcome: Outcome) -> None:
    """Keep what the first launch of a configuration says about options and clock."""
    for layer in result.manifest.layers:
        if layer.name == name and layer.clock is None and outcome.hello is not None:
            layer.effective = dict(outcome.hello.get("effective", {}))
            layer.clock = Clock.model_validate(outcome.hello["clock"])


def _learn(plan: Plan, state: _State, outcome: Outcome) -> str:
    """Update a configuration's state; say what happened in words."""
    medians = outcome.medians("echo")
    found: dict[Key, float] = {}
    if plan.together:
        found = {key: median for key, median in outcome.medians_by_loop().items() if key in state.wanted}
    else:
        found.update(medians.items())
    state.watch.add(found)
    state.have.update(found)
    if outcome.status == "interrupted":
        return f"ended: {outcome.error}"
    if outcome.status != "ok":
        state.failures += 1
        return f"failed: {outcome.error}"
    state.failures, state.ended = 0, True
    if plan.together and not state.loads_ns:
        # The loads are shares of what the first launch carried, and the same ever after.
        one_way = {
            key[1]: time for key, time in found.items() if isinstance(key, tuple) and key[0] == "pairs"
        }
        state.loads_ns = together.delays_of(one_way)
    if not state.delays_ns:
        # Hoefler et al. 2007, section 3: the delay must exceed the round trip of one message.
        state.delays_ns = {size: 1000 + round(2 * median) for size, median in medians.items()}
    return f"{sum(len(step['values_ns']) for step in outcome.steps)} samples"


def _stop(plan: Plan, result: Result, active: dict[str, _State], name: str, stop: Stop, words: str) -> None:
    state = active.pop(name)
    state.close()
    _note_lacking(plan, result, state)
    result.manifest.stopped[name] = stop
    result.manifest.stopped_because[name] = words


def _note_lacking(plan: Plan, result: Result, state: _State) -> None:
    """Name the sizes that no launch of a configuration has an echo of, or not all loops, though asked for."""
    configuration = state.configuration
    wanted = state.wanted or {size for size in plan.sizes if size <= configuration.max_bytes}
    lacking = sorted({key[1] if isinstance(key, tuple) else key for key in wanted - state.have})
    if lacking:
        result.manifest.not_measured[configuration.name] = lacking
