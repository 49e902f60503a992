"""How a budget is spent: by a clock that is turned by hand, and once by the real one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from wiretwin.cli.measure import write_report
from wiretwin.measure import orchestrate
from wiretwin.measure.budget import FIRST_STEPS_S, FREE_STEPS_S, LEAST_STEPS_S, Budget, allowance
from wiretwin.measure.launch import SPENT, Interruption, Outcome, launch
from wiretwin.measure.orchestrate import ENOUGH_S, Plan
from wiretwin.measure.schedule import Purpose, Step, parse_sizes, steps
from wiretwin.results import Layer, Result
from wiretwin.stacks.layers import Configuration, parse_layers
from wiretwin.tour import MEASURE_S, SIZES


class Clock:
    """Virtual time, in seconds."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def outcome_of(schedule: list[Step], seconds: float, rng: random.Random, spread: float) -> Outcome:
    """What a launch leaves whose echoes scatter by `spread` between launches."""
    lines: list[dict[str, Any]] = []
    for step in schedule:
        if step.loop == "echo":
            each = round(1000 * (1 + step.bytes / 1000) * rng.lognormvariate(0, spread))
            known = {"loop": "echo", "bytes": step.bytes, "messages": 1, "delay_ns": 0, "batch": 1}
            lines.append(known | {"first_ns": each, "values_ns": [each] * 5})
    return Outcome("ok", None, None, lines, seconds)


class Host:
    """A host whose launches take what they take, by the virtual clock."""

    def __init__(self, besides: dict[str, float], slow: float = 1.0, spread: float = 0.3) -> None:
        self.clock = Clock()
        self.besides, self.slow, self.spread = besides, slow, spread
        self.rng = random.Random(7)
        self.schedules: dict[str, list[list[Step]]] = {}

    def launch(self, configuration: Configuration, schedule: list[Step], *, cut: float, **_: Any) -> Outcome:
        name = configuration.name
        self.schedules.setdefault(name, []).append(schedule)
        planned = sum(step.budget_ms for step in schedule) / 1000
        seconds = self.slow * (self.besides[name] * self.rng.uniform(0.8, 1.3) + planned)
        if self.clock.time + seconds > cut:
            self.clock.time = max(cut, self.clock.time)
            kept = outcome_of(schedule[:1], seconds, self.rng, self.spread)
            return Outcome("interrupted", SPENT, None, kept.steps, seconds)
        self.clock.time += seconds
        return outcome_of(schedule, seconds, self.rng, self.spread)


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def go(
        host: Host,
        asked_s: float | None,
        *,
        after_s: float = 0.0,
        launches: int = 7,
        precision: float = 0.01,
        sizes: Sequence[int] = (4, 64, 1024),
        purpose: Purpose = "curves",
    ) -> Result:
        monkeypatch.setattr(orchestrate, "launch", host.launch)
        configurations = parse_layers(",".join(host.besides), "layers")
        plan = Plan(
            configurations=configurations,
            sizes=sizes,
            purpose=purpose,
            budget=Budget(asked_s, begun=host.clock(), now=host.clock, after_s=after_s),
            precision=precision,
            launches=launches,
            seed=1,
            pins=None,
        )
        result = Result.create(
            tmp_path / "result",
            seed=1,
            created_utc="2026-01-01T00:00:00Z",
            layers=[Layer(layer=one.kind.name, name=one.name) for one in configurations],
        )
        with Interruption() as interruption:
            orchestrate.run(plan, result, interruption)
        return result

    return go


def least_s(step: Step) -> float:
    """What a step takes however little it is given: the iterations that it must make, each by its size.

    The first one, and two before the samples unless they are long; an echo is verified besides.
    """
    iteration_s = 5e-6 + 2 * step.bytes * (step.messages if step.loop == "stream" else 1) / 2.5e9
    besides = 1 + (step.loop == "echo") + (2 if iteration_s < 200e-6 else 0)
    return (besides + step.warmup + step.min_samples) * iteration_s


class CopyingHost(Host):
    """A host that copies 2.5 GB/s, so that the steps of large messages take more than their share."""

    def launch(self, configuration: Configuration, schedule: list[Step], **more: Any) -> Outcome:
        name = configuration.name
        starting_s, more_s = self.besides[name], 0.0
        for step in schedule:
            more_s += max(0.0, least_s(step) - step.budget_ms / 1000)
        self.besides[name] = starting_s + more_s
        try:
            return super().launch(configuration, schedule, **more)
        finally:
            self.besides[name] = starting_s


def launches_of(result: Result) -> dict[str, int]:
    found = {layer.name: 0 for layer in result.manifest.layers}
    for one in result.manifest.launches:
        found[one.name] += one.status == "ok"
    return found


LAYERS = {"socket/tcp": 0.1, "socket/udp": 0.1, "socket/unix": 0.1, "shm": 0.1, "mpi4py/mpich": 0.9}


@pytest.mark.parametrize("asked_s", [15.0, 26.0, 60.0, 600.0])
def test_every_layer_gets_seven_launches_where_they_fit(
    measured: Callable[..., Result], asked_s: float
) -> None:
    host = Host(LAYERS)
    result = measured(host, asked_s)
    assert min(launches_of(result).values()) >= 7
    # Most of the time is used, and none beyond it.
    assert 0.85 * asked_s < host.clock() - 100.0 <= 1.05 * asked_s


def test_a_tour_has_seven_launches_of_each_layer_and_four_with_every_loop(
    measured: Callable[..., Result],
) -> None:
    """Its layers start in 0.15 s, MPI in 0.5 s, and the steps of its large sizes take what they must."""
    host = CopyingHost({name: 0.5 if name == "mpi4py/mpich" else 0.15 for name in LAYERS})
    result = measured(host, MEASURE_S, sizes=parse_sizes(SIZES), purpose="fit")
    assert min(launches_of(result).values()) >= 7
    assert host.clock() - 100.0 <= 1.05 * MEASURE_S
    for schedules in host.schedules.values():
        loops_of = [{one.loop for one in made} for made in schedules]
        others = [loops - {"echo", "first", "cold"} for loops in loops_of if loops != {"first"}]
        whole = [number for number, loops in enumerate(others) if loops]
        # Two launches are the least that a fit can do with: they come first.
        assert whole[:4] == [0, 1, 2, 5]
        echoes = {tuple(one.bytes for one in made if one.loop == "echo") for made in schedules}
        assert len(echoes - {()}) == 1


@pytest.mark.parametrize("slow", [1.0, 3.0, 10.0, 100.0])
@pytest.mark.parametrize("asked_s", [1.0, 4.0, 12.0])
def test_the_budget_bounds_the_time_however_slow_the_host_is(
    measured: Callable[..., Result], asked_s: float, slow: float
) -> None:
    host = Host(LAYERS, slow=slow)
    result = measured(host, asked_s, after_s=0.3)
    assert host.clock() - 100.0 + 0.3 <= allowance(asked_s)
    # What was not measured for it is named, layer by layer, with its sizes.
    for name, count in launches_of(result).items():
        assert result.manifest.stopped[name] == "budget"
        if count == 0:
            assert result.manifest.not_measured[name]
        else:
            assert name not in result.manifest.not_measured
    never = {one.name for one in result.manifest.layers} - {one.name for one in result.manifest.launches}
    for name in never:
        assert result.manifest.not_measured[name] == [4, 64, 1024]
        words = result.manifest.stopped_because[name]
        assert words == "not measured: the budget was spent before its first launch"


def test_what_comes_after_is_kept_free(measured: Callable[..., Result]) -> None:
    host = Host(LAYERS)
    measured(host, 20.0, after_s=12.0)
    assert host.clock() - 100.0 + 12.0 <= allowance(20.0)


def test_without_a_budget_each_is_launched_as_often_as_asked(measured: Callable[..., Result]) -> None:
    host = Host(LAYERS, slow=50.0)
    result = measured(host, None, launches=4)
    assert set(launches_of(result).values()) == {4}
    assert set(result.manifest.stopped.values()) == {"launches"}
    assert result.manifest.not_measured == {}
    planned = sum(step.budget_ms for step in host.schedules["shm"][0]) / 1000
    assert planned == pytest.approx(FREE_STEPS_S, rel=0.05)


def test_a_layer_that_starts_slowly_takes_time_from_the_steps_not_from_the_launches() -> None:
    clock = Clock()
    budget = Budget(60.0, begun=clock(), now=clock)
    for _ in range(3):
        budget.learn("quick", 0.2, 0.1)
        budget.learn("slow", 2.1, 0.1)
    besides_s = 7 * (budget.besides_s("quick") + budget.besides_s("slow"))
    # Seven rounds of nine tenths of 60 s, less what a round costs besides: 0.1 and 2.
    assert budget.steps_s(14, besides_s) == pytest.approx((54.0 / 7 - 2.1) / 2)
    clock.time += 59.0
    assert budget.steps_s(14, besides_s) == LEAST_STEPS_S
    assert budget.fits("quick", LEAST_STEPS_S)
    assert not budget.fits("slow", LEAST_STEPS_S)


def test_the_first_launches_are_short_whatever_the_time() -> None:
    """Else a host that nothing is known of spends its time on the first round."""
    clock = Clock()
    budget = Budget(600.0, begun=clock(), now=clock)
    assert budget.steps_s(14, 5.6) == FIRST_STEPS_S
    budget.learn("a", 0.5, FIRST_STEPS_S)
    assert budget.steps_s(14, 5.6) > 10 * FIRST_STEPS_S


def test_what_all_cannot_have_is_divided_evenly() -> None:
    clock = Clock()
    budget = Budget(60.0, begun=clock(), now=clock)
    assert budget.shares({"a": 20.0, "b": 30.0}) == {"a": 1.0, "b": 1.0}
    # Nine tenths of 60 s: 6 s for the one that needs no more, and 24 s for each of the others.
    shares = budget.shares({"dear": 48.0, "modest": 6.0, "costly": 32.0})
    assert shares == pytest.approx({"modest": 1.0, "costly": 0.75, "dear": 0.5})
    assert Budget(None, begun=0.0, now=clock).shares({"a": 1e9}) == {"a": 1.0}
    clock.time += 60.0
    assert budget.shares({"a": 1.0}) == {"a": 1.0}  # whether it fits is asked before each launch


def test_launches_with_all_loops_and_without_are_known_apart() -> None:
    clock = Clock()
    budget = Budget(60.0, begun=clock(), now=clock)
    budget.learn("a", 3.1, 0.1, whole=True)
    assert budget.besides_s("a", whole=False) == pytest.approx(1.5)
    budget.learn("a", 0.6, 0.1, whole=False)
    assert budget.besides_s("a", whole=False) == pytest.approx(0.5)
    assert budget.besides_s("a", whole=True) == pytest.approx(3.0)


def test_a_dear_layer_is_launched_less_often_and_the_others_as_often_as_asked(
    measured: Callable[..., Result],
) -> None:
    """Seven launches of each would take 1.4 times the time there is."""
    layers = ["socket/tcp", "socket/udp", "socket/unix", "shm"]
    host = Host(dict.fromkeys(layers, 0.5) | {"pcaal/udp": 5.0})
    found = launches_of(measured(host, 35.0))
    assert host.clock() - 100.0 <= allowance(35.0)
    assert 2 <= found.pop("pcaal/udp") <= 4
    assert min(found.values()) >= 7


def test_what_short_launches_leave_goes_to_more_of_them_and_first_to_cheap_ones(
    measured: Callable[..., Result],
) -> None:
    """Seven launches of each leave a third of the time; part of it is for first calls."""
    cheap = ["socket/tcp", "socket/tcp+spin", "socket/udp", "socket/udp+spin", "socket/unix", "shm"]
    host = CopyingHost(dict.fromkeys(cheap, 0.12) | {"mpi4py/mpich": 1.0})
    found = launches_of(measured(host, 40.0, sizes=parse_sizes("netpipe-base"), purpose="fit"))
    assert host.clock() - 100.0 <= allowance(40.0)
    assert found.pop("mpi4py/mpich") >= 7
    assert min(found.values()) >= 9
    for name in cheap:
        alone = [made for made in host.schedules[name] if {one.loop for one in made} <= {"echo", "first"}]
        assert max(sum(one.budget_ms for one in made) for made in alone) <= 1000 * ENOUGH_S


@pytest.mark.parametrize("asked_s", [None, 60.0])
def test_first_calls_are_made_in_launches_of_their_own(
    measured: Callable[..., Result], asked_s: float | None
) -> None:
    host = Host({"mpi4py/mpich": 1.0, "shm": 0.1})
    measured(host, asked_s, purpose="fit")
    alone = {
        name: [[one.loop for one in made] for made in schedules].count(["first"])
        for name, schedules in host.schedules.items()
    }
    others = {name: len(schedules) - alone[name] for name, schedules in host.schedules.items()}
    assert alone["shm"] == 0
    assert 2 * others["mpi4py/mpich"] <= alone["mpi4py/mpich"] <= 3 * others["mpi4py/mpich"]
    assert min(others.values()) >= 7


def test_first_calls_take_no_launch_from_others(measured: Callable[..., Result]) -> None:
    """Where the time is short there are none alone, for a curve takes two launches."""
    host = Host({"mpi4py/mpich": 2.0})
    measured(host, 10.0, launches=3, purpose="fit")
    found = [[one.loop for one in made] for made in host.schedules["mpi4py/mpich"]]
    assert len(found) - found.count(["first"]) >= 3


def test_a_slow_layer_does_not_take_the_time_of_the_others(measured: Callable[..., Result]) -> None:
    """Its first launch, of which nothing is known, is ended when it has had its share."""
    besides = {"socket/tcp": 0.1, "socket/udp": 0.1, "socket/unix": 0.1, "shm": 30.0, "mpi4py/mpich": 0.9}
    host = Host(besides)
    result = measured(host, 20.0)
    assert host.clock() - 100.0 <= allowance(20.0)
    found = launches_of(result)
    assert found.pop("shm") == 0
    assert min(found.values()) >= 3
    ended = [one for one in result.manifest.launches if one.name == "shm"]
    assert [one.status for one in ended] == ["interrupted"]
    assert ended[0].rows > 0
    assert result.manifest.not_measured == {"shm": [64, 1024]}


def test_an_interrupt_in_the_last_launch_is_not_lost(
    measured: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host({"shm": 0.1}, spread=0.001)
    whole = measured(host, 60.0)
    assert whole.manifest.state == "complete"
    whole.path.rename(whole.path.with_name("whole"))
    again = Host({"shm": 0.1}, spread=0.001)
    base, last = again.launch, len(host.schedules["shm"])

    def launch_and_interrupt(configuration: Configuration, schedule: list[Step], **more: Any) -> Outcome:
        outcome = base(configuration, schedule, **more)
        if len(again.schedules["shm"]) == last:
            os.kill(os.getpid(), signal.SIGINT)
        return outcome

    monkeypatch.setattr(again, "launch", launch_and_interrupt)
    result = measured(again, 60.0)
    assert len(result.manifest.launches) == last
    assert result.manifest.state == "interrupted"


def test_a_launch_has_its_share_or_three_times_what_is_expected() -> None:
    clock = Clock()
    budget = Budget(60.0, begun=clock(), now=clock)
    assert budget.fair_end("a", 0.1, 12) == pytest.approx(clock() + 5.0)
    budget.learn("b", 4.1, 0.1)
    assert budget.fair_end("b", 0.1, 12) == pytest.approx(clock() + 12.3)
    clock.time += 57.0
    assert budget.fair_end("b", 0.1, 1) == budget.cut
    assert Budget(None, begun=0.0, now=clock).fair_end("a", 0.1, 1) == float("inf")


def test_sizes_that_are_known_give_their_time_to_the_others() -> None:
    def echo_ms(settled: set[int]) -> dict[int, float]:
        made = steps([4, 64, 1024, 4096], "curves", seconds=1.0, settled=settled)
        return {step.bytes: step.budget_ms for step in made if step.loop == "echo"}

    even, uneven = echo_ms(set()), echo_ms({4, 64})
    assert sum(uneven.values()) == pytest.approx(sum(even.values()), rel=1e-3)
    assert uneven[4] == pytest.approx(uneven[4096] / 5, rel=1e-3)
    assert uneven[4096] > 1.6 * even[4096]


def test_sizes_settle_one_by_one(measured: Callable[..., Result]) -> None:
    host = Host({"shm": 0.1}, spread=0.0)
    measured(host, 20.0, launches=9)
    first, last = host.schedules["shm"][0], host.schedules["shm"][-1]
    assert len({step.budget_ms for step in first if step.loop == "echo"}) == 1
    assert len(host.schedules["shm"]) == 9
    assert [step.bytes for step in first] == [step.bytes for step in last]


def test_a_launch_that_is_cut_keeps_the_steps_it_has_finished() -> None:
    (shm,) = parse_layers("shm", "layers")
    # The second step never ends by itself: what ends it is the cut alone.
    schedule = [
        Step("echo", 4, min_samples=3, max_samples=3, budget_ms=1.0),
        Step("echo", 1 << 20, min_samples=1 << 24, max_samples=1 << 24, budget_ms=3_600_000.0),
    ]
    seconds = 2.0
    outcome = launch(shm, schedule, limit_s=600.0, pins=None, cut=time.monotonic() + seconds)
    while not outcome.steps and seconds < 100:  # a host that could not even start it in time
        seconds *= 2
        outcome = launch(shm, schedule, limit_s=600.0, pins=None, cut=time.monotonic() + seconds)
    assert (outcome.status, outcome.error) == ("interrupted", SPENT)
    assert [step["bytes"] for step in outcome.steps] == [4]


@pytest.fixture
def load() -> Iterator[None]:
    """Twice as many busy processes as there are cores."""
    busy = "import os\nwhile os.getppid() == int(__import__('sys').argv[1]):\n    sum(range(100000))"
    hogs = [
        subprocess.Popen([sys.executable, "-c", busy, str(os.getpid())])
        for _ in range(2 * len(os.sched_getaffinity(0)))
    ]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
        for hog in hogs:
            hog.wait()


@pytest.mark.parametrize("within_s", [-1.0, 1.9, 60.0])
def test_a_report_that_would_end_after_the_budget_is_not_written(
    within_s: float, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    monkeypatch.setattr("wiretwin.report.render", lambda **words: written.append(words["out"]) or "there")
    result = Result.create(tmp_path / "kept", seed=1, created_utc="", host={}, options={}, layers=[])
    write_report(result, within_s=within_s, takes_s=2.0)
    said = capsys.readouterr().err
    if within_s < 2.0:
        assert (
            "not written: the budget is spent, and a host as busy as this one is now would take 2 s for it; "
            in said
        )
        assert f"`wiretwin report {result.path}` writes it" in said
        assert not written
    else:
        assert said == "report: there\n"
        assert written == [result.path / "report.html"]


@pytest.mark.usefixtures("load")
def test_a_command_keeps_to_its_budget_on_a_loaded_host(tmp_path: Path) -> None:
    """The wall time is the contract here; the start of the interpreter and of the libraries counts."""
    asked_s = 12.0
    command = [
        sys.executable, "-c", "from wiretwin.cli import main; main()", "measure",
        "--layers", "shm,socket/tcp", "--budget", f"{asked_s:g}s", "--format", "json",
        "-o", str(tmp_path / "result"),
    ]  # fmt: skip
    before = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    seconds = time.monotonic() - before
    assert seconds <= allowance(asked_s), done.stderr
    if done.returncode == 0:
        manifest = json.loads((tmp_path / "result" / "manifest.json").read_text())
        assert set(manifest["stopped"]) == {"shm", "socket/tcp"}
        rows = {row["layer"]: row for row in json.loads(done.stdout)}
        for name, sizes in manifest["not_measured"].items():
            assert rows[name]["not_measured_bytes"] == " ".join(map(str, sizes))
            assert f"{name}: not measured: " in done.stderr
    else:
        assert done.returncode == 3
        assert "measured: " in done.stderr
