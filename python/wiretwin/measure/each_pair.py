"""Every pair of hosts, or a sample of them, by itself: round trips, kept launch by launch in a result folder.

The hosts are measured in passes: first each host with itself, then the rounds of `wiretwin.measure.rounds`,
whose pairs have no host in common and are launched at the same time where every host is a machine of its
own. Hosts of a testbed share the cores of one machine, where only so many pairs run at once as have two cores
each. After each pass one launch of the reference pair, the typical one of the fastest class, has every loop
that a fit needs. What a folder holds already is not measured again, so an interrupted measurement can be
resumed.
"""

from __future__ import annotations

import datetime
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from wiretwin.fit.pairs import pair_table, reference
from wiretwin.measure.host import cores
from wiretwin.measure.launch import SPENT, Interruption, Outcome, launch
from wiretwin.measure.orchestrate import FAILURES, LIMIT_S, SHORT_S, Event, Plan
from wiretwin.measure.rounds import Pair
from wiretwin.measure.schedule import DEFAULT_SIZES, Step, parse_sizes, steps
from wiretwin.place import Apart
from wiretwin.results import Clock, Launch, Result
from wiretwin.stacks.layers import Configuration

__all__ = ["measure_pairs"]

STEPS_S = 0.1
"""The steps of a launch take so long together at most, seconds: another pass says more than longer ones."""
REFERENCE = "reference"
"""What a budget calls the launches of the reference pair, after the name of the configuration."""


@dataclass
class _Turn:
    """A measurement of pairs under way."""

    plan: Plan
    result: Result
    interruption: Interruption
    tell: Callable[[Event], None]
    names: Sequence[str]
    begun: float = field(default_factory=time.monotonic)
    failures: Counter[tuple[str, Pair]] = field(default_factory=Counter)
    ended: str | None = None
    """Why nothing more is launched: ``budget``, or what has become of the place."""

    @property
    def at_once(self) -> int:
        """How many pairs are launched at the same time."""
        many = len(self.names) // 2
        return many if isinstance(self.plan.place, Apart) else max(1, min(many, cores() // 2))

    def done(self) -> Counter[tuple[str, tuple[str, ...]]]:
        """Count the launches with samples that each pair of each configuration has."""
        found: Counter[tuple[str, tuple[str, ...]]] = Counter()
        for one in self.result.manifest.launches:
            if one.rows and one.status == "ok" and one.hosts is not None and not one.whole:
                found[one.name, one.hosts] += 1
        return found


def measure_pairs(
    plan: Plan,
    rounds: Sequence[Sequence[Pair]],
    result: Result,
    interruption: Interruption,
    tell: Callable[[Event], None] = lambda _: None,
) -> None:
    """Measure pairs of hosts, storing each launch in `result`, and finish its manifest.

    Parameters
    ----------
    plan
        What to measure; its purpose is ``curves``, or ``fit`` with the reference pair.
    rounds
        Pairs without a host in common, round by round.
    result
        A result folder, new or of the same measurement before.
    interruption
        Ends the measurement early; what was measured is kept.
    tell
        Called after each launch.

    Raises
    ------
    StorageError
        A launch could not be stored; all earlier ones are.
    """
    turn = _Turn(plan, result, interruption, tell, result.manifest.options["between"])
    alone: list[Pair] = [(number, number) for number in range(len(turn.names))]
    for number in range(1, plan.launches + 1):
        for batch in _batches([alone, *rounds], turn.at_once):
            for configuration in plan.configurations:
                _launch_all(turn, configuration, batch, number)
        if plan.purpose == "fit":
            for configuration in plan.configurations:
                _launch_reference(turn, configuration, number)
        if turn.ended is not None or interruption.requested:
            break
    _finish(turn, [pair for one in (alone, *rounds) for pair in one])


def _batches(rounds: Sequence[Sequence[Pair]], at_once: int) -> Iterator[Sequence[Pair]]:
    for one in rounds:
        for first in range(0, len(one), at_once):
            yield one[first : first + at_once]


def _over(turn: _Turn, name: str, steps_s: float) -> bool:
    """Whether nothing more is to be launched."""
    if turn.ended is None and not turn.plan.budget.fits(name, steps_s):
        turn.ended = "budget"
    return turn.ended is not None or turn.interruption.requested


def _launch_all(turn: _Turn, configuration: Configuration, batch: Sequence[Pair], number: int) -> None:
    """Launch the pairs of a batch that lack their launch of this pass, all at the same time."""
    plan, name, done = turn.plan, configuration.name, turn.done()
    batch = [
        pair
        for pair in batch
        if done[name, _named(turn, pair)] < number and turn.failures[name, pair] < FAILURES
    ]
    pairs = sum(done[name, key] < number for key in {key for _, key in done}) or len(turn.names)
    left = max(1, (plan.launches - number + 1) * pairs // turn.at_once) * len(plan.configurations)
    steps_s = min(STEPS_S, plan.budget.steps_s(left, left * plan.budget.besides_s(name)))
    if not batch or _over(turn, name, steps_s):
        return
    schedule = steps(
        plan.sizes, "curves", seconds=steps_s, short=True, max_bytes=configuration.max_bytes,
        loops=configuration.loops & {"echo"},
    )  # fmt: skip
    _launch_and_store(turn, configuration, batch, schedule, steps_s, name)


def _launch_reference(turn: _Turn, configuration: Configuration, number: int) -> None:
    """Launch the reference pair with every loop that a fit needs, unless this pass's launch is there."""
    whole = [
        one
        for one in turn.result.manifest.launches
        if one.name == configuration.name and one.whole and one.status == "ok"
    ]
    name = f"{configuration.name} {REFERENCE}"
    if len(whole) >= number or _over(turn, name, turn.plan.budget.steps_s(1, 0.0) / 4):
        return
    table = pair_table(turn.result)
    hosts = next((one.hosts for one in whole if one.hosts), None) or reference(table, configuration.name)
    if hosts is None:
        return
    own = table.filter(table["layer"] == configuration.name, table["a"] == hosts[0], table["b"] == hosts[1])
    # Hoefler et al. 2007, section 3: the delay must exceed the round trip of one message.
    delays = {int(size): 1000 + round(4000 * half) for size, half in own.select("bytes", "value_us").rows()}
    steps_s = min(SHORT_S, turn.plan.budget.steps_s(turn.plan.launches - number + 1, 0.0) / 4)
    schedule = steps(
        sorted({*turn.plan.sizes, *parse_sizes(DEFAULT_SIZES, "sizes")}), "fit", seconds=steps_s, short=True,
        max_bytes=configuration.max_bytes, loops=configuration.loops, delays_ns=delays,
    )  # fmt: skip
    pair = turn.names.index(hosts[0]), turn.names.index(hosts[1])
    _launch_and_store(turn, configuration, [pair], schedule, steps_s, name, whole=True)


def _launch_and_store(
    turn: _Turn,
    configuration: Configuration,
    batch: Sequence[Pair],
    schedule: Sequence[Step],
    steps_s: float,
    name: str,
    *,
    whole: bool = False,
) -> None:
    plan, began = turn.plan, time.monotonic()
    cut = plan.budget.fair_end(name, steps_s, 1)
    started, load = datetime.datetime.now(datetime.UTC), os.getloadavg()[0]

    def one(place_in_batch: int, pair: Pair) -> Outcome:
        apart = plan.place.among(sorted(set(pair)))
        pins = apart.pins if isinstance(apart, Apart) else plan.pins
        if pins is not None and not isinstance(apart, Apart):
            pins = tuple(pins[(2 * place_in_batch + rank) % len(pins)] for rank in range(2))
        return launch(
            configuration, schedule, limit_s=LIMIT_S, pins=plan.pins and pins,
            interruption=turn.interruption, place=apart, cut=cut,
        )  # fmt: skip

    with ThreadPoolExecutor(len(batch)) as pool:
        outcomes = list(pool.map(one, itertools.count(), batch))
    if any(outcome.status == "ok" for outcome in outcomes):
        plan.budget.learn(name, time.monotonic() - began, steps_s)
    for pair, outcome in zip(batch, outcomes, strict=True):
        _store(turn, configuration, pair, outcome, whole, started, load)


def _store(
    turn: _Turn,
    configuration: Configuration,
    pair: Pair,
    outcome: Outcome,
    whole: bool,
    started: datetime.datetime,
    load: float,
) -> None:
    name, result = configuration.name, turn.result
    hosts = _named(turn, pair)
    if outcome.status == "interrupted" and outcome.error != SPENT:
        return  # half of a pass; resumed, it is made anew
    for layer in result.manifest.layers:
        if layer.name == name and layer.clock is None and outcome.hello is not None:
            layer.effective = dict(outcome.hello.get("effective", {}))
            layer.clock = Clock.model_validate(outcome.hello["clock"])
    number = max((one.launch for one in result.manifest.launches), default=0) + 1
    result.append(
        Launch(
            launch=number,
            name=name,
            order=number - 1,
            started_utc=started.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            seconds=round(outcome.seconds, 6),
            status=outcome.status,
            error=outcome.error,
            clock_cost_ns=(outcome.hello or {}).get("clock", {}).get("cost_ns"),
            load_before=round(load, 2),
            lost=outcome.lost,
            crossing_ns=outcome.crossing_ns,
            hosts=hosts,
            whole=whole,
        ),
        outcome.columns(),
    )
    words = "with all loops" if whole else f"{sum(len(step['values_ns']) for step in outcome.steps)} samples"
    if outcome.status == "failed":
        turn.failures[name, pair] += 1
        words = f"failed: {outcome.error}"
        if turn.failures[name, pair] >= FAILURES and (trouble := turn.plan.place.trouble()) is not None:
            turn.ended = trouble
    budget = turn.plan.budget
    left_s = budget.left_s if budget.asked_s is not None else 0.0
    active = len(turn.plan.configurations)
    where = " and ".join(dict.fromkeys(hosts))
    turn.tell(Event(f"{name} {where}", number, active, time.monotonic() - turn.begun, left_s, words))


def _named(turn: _Turn, pair: Pair) -> tuple[str, str]:
    return turn.names[pair[0]], turn.names[pair[1]]


def _finish(turn: _Turn, pairs: Sequence[Pair]) -> None:
    """Say of each configuration why it was measured no longer, and which pairs have no launch."""
    manifest, done = turn.result.manifest, turn.done()
    for configuration in turn.plan.configurations:
        name = configuration.name
        counts = [done[name, _named(turn, pair)] for pair in pairs]
        words = f"{sum(map(bool, counts))} of {len(pairs)} pairs and hosts, "
        words += f"{min(counts)} launches of each or more"
        failed = [
            " and ".join(dict.fromkeys(_named(turn, pair)))
            for pair in pairs
            if turn.failures[name, pair] >= FAILURES
        ]
        if failed:
            words += f"; failed: {', '.join(failed)}"
        if turn.interruption.requested:
            manifest.stopped[name], words = "interrupt", f"interrupted by the user: {words}"
        elif turn.ended == "budget":
            manifest.stopped[name] = "budget"
        elif turn.ended is not None or not any(counts):
            manifest.stopped[name], words = "failed", f"{turn.ended or words}"
        else:
            manifest.stopped[name] = "launches"
        manifest.stopped_because[name] = words
    turn.result.finish("interrupted" if turn.interruption.requested else "complete")
