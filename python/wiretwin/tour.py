"""The whole loop on this machine: measure, fit, predict, run, compare, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wiretwin._verbs import make_callable
from wiretwin.errors import InterruptedRun, require
from wiretwin.predict.compare import compare
from wiretwin.predict.live import Job, run_interleaved
from wiretwin.predict.model import LAYER
from wiretwin.predict.records import Comparison, Launch
from wiretwin.predict.shipped import PROGRAMS, Shipped, Size
from wiretwin.results import Result
from wiretwin.twin import Twin

__all__ = ["LAYERS", "SIZES", "Step", "Tour", "expected_s", "predict_and_run", "tour"]

make_callable(__name__, "wiretwin.tour:tour")

#: What the tour measures.
LAYERS = ("socket/tcp", "socket/tcp+spin", "socket/udp", "socket/unix", "shm", "mpi4py/mpich")
#: The sizes it measures: beyond what a core's own caches hold, for the line of the largest is drawn on.
SIZES = "netpipe-base,1536KiB,2MiB,3MiB,4MiB"
#: The time it spends on measuring, in seconds.
MEASURE_S = 26.0
RANKS = 2
PASSES = 5
LAUNCHES = 7
#: Launches of it that are made even if the budget has no time for them: without any there is no twin.
LEAST = 3
#: Passes wanted in each state that the twin knows, and the most made of a program to get them.
PASSES_IN_STATE = 2
MOST_PASSES = 9
_FIT_S = 3.0
_PREDICT_S = 3.6
_LAUNCH_S = 0.6


@dataclass(frozen=True, slots=True)
class Step:
    """Where the tour stands: seconds gone, seconds to come as far as can be told, words."""

    elapsed_s: float
    remaining_s: float
    words: str


@dataclass(slots=True)
class Tour:
    """What a tour leaves in its folder."""

    folder: Path
    result: Result | None = None
    twin: Twin | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    report: Path | None = None
    seconds: float = 0.0


class _Clock:
    """Tells the remaining time from what the stages are expected to take."""

    def __init__(self, expected_s: float, tell: Callable[[Step], None]) -> None:
        self.begun = time.monotonic()
        self.expected_s = expected_s
        self.tell = tell

    def say(self, done_s: float, words: str) -> None:
        """Report that work worth `done_s` of the expected seconds is done."""
        elapsed = time.monotonic() - self.begun
        self.tell(Step(elapsed, max(0.0, self.expected_s - done_s), words))


def expected_s(measure_s: float = MEASURE_S, launches: int = LAUNCHES) -> float:
    """Return the seconds that a tour takes on a host with a core for each rank and nothing else to do."""
    return measure_s + _FIT_S + len(PROGRAMS) * (_PREDICT_S + (launches + 1) * _LAUNCH_S)


def tour(
    folder: str | Path,
    *,
    layers: Sequence[str] = LAYERS,
    measure_s: float = MEASURE_S,
    launches: int = LAUNCHES,
    seed: int = 1,
    tell: Callable[[Step], None] | None = None,
) -> Tour:
    """Go once round the loop and leave everything in `folder`, the report as `report.html`.

    Parameters
    ----------
    folder
        New or empty.
    layers
        What is measured; `mpi4py/mpich` must be among them, the programs run on it.
    measure_s
        The time spent on measuring, in seconds.
    launches
        Real launches of each program.
    seed
        Of launch orders and of the simulated world.
    tell
        Called as each step begins.

    Raises
    ------
    WiretwinError
        As the verbs it calls; what had been reached stays in the folder, also after an interrupt.
    """
    require("report")
    try:
        return _tour(Path(folder), layers, measure_s, launches, seed, tell or (lambda _: None))
    except KeyboardInterrupt:
        raise InterruptedRun(f"interrupted; what was measured and predicted is kept in {folder}") from None


def _tour(
    folder: Path,
    layers: Sequence[str],
    measure_s: float,
    launches: int,
    seed: int,
    tell: Callable[[Step], None],
) -> Tour:
    from wiretwin.fit import fit
    from wiretwin.measure.api import measure
    from wiretwin.measure.orchestrate import Event
    from wiretwin.report.writer import render

    done = Tour(folder)
    clock = _Clock(expected_s(measure_s, launches), tell)

    def measuring(event: Event) -> None:
        clock.say(min(event.elapsed_s, measure_s), f"measuring {event.name}: {event.words}")

    clock.say(0.0, "measuring")
    done.result = measure(
        list(layers),
        budget=f"{measure_s:g}s",
        out=folder / "result",
        seed=seed,
        sizes=SIZES,
        at_least={LAYER: LEAST},
        progress=measuring,
    )
    if done.result.manifest.state == "interrupted":
        raise KeyboardInterrupt
    clock.say(measure_s, "fitting the twin")
    done.twin = fit(done.result)
    done.twin.write(folder / "twin.toml")
    work: list[tuple[Shipped, Size]] = [(shipped, "small") for shipped in PROGRAMS]
    done.comparisons = predict_and_run(
        folder / "programs",
        work,
        done.twin,
        launches=launches,
        seed=seed,
        tell=lambda gone_s, words: clock.say(measure_s + 2.0 + gone_s, words),
    )
    clock.say(clock.expected_s - 1.0, "writing the report")
    predictions = [place(folder / "programs", *one) / "prediction" for one in work]
    done.report = render(
        result=done.result,
        twin=done.twin,
        predictions=predictions,
        comparisons=done.comparisons,
        out=folder / "report.html",
    )
    done.seconds = time.monotonic() - clock.begun
    return done


def place(folder: Path, shipped: Shipped, size: Size) -> Path:
    """Return the folder of a program at a size."""
    return folder / f"{Path(shipped.file).stem}-{size}"


def predict_and_run(
    folder: Path,
    work: Sequence[tuple[Shipped, Size]],
    twin: Twin,
    *,
    launches: int,
    seed: int = 1,
    passes_in_state: int = PASSES_IN_STATE,
    most_passes: int = MOST_PASSES,
    tell: Callable[[float, str], None] | None = None,
) -> list[Comparison]:
    """Predict every program, record, then run them all, and compare.

    Both the measuring passes and the launches are made in turns, so that a drift of the host's
    speed meets all programs alike.

    Parameters
    ----------
    folder
        Gets a folder for each program with `prediction/` and `run/`.
    work
        Programs and sizes.
    twin
        The one twin of all predictions.
    launches
        Real launches of each.
    seed
        Of the simulated world.
    passes_in_state, most_passes
        Passes wanted in each state of the host that the twin knows, and the most made of a program to
        get them.
    tell
        Called with the expected seconds done and words.
    """
    from wiretwin.predict.predict import Forecast

    say = tell or (lambda _, __: None)
    forecasts: list[Forecast] = []
    jobs: list[Job] = []
    each_s = _PREDICT_S / (PASSES + 2)
    gone = [0.0]

    def stage(words: str) -> None:
        say(gone[0], words)
        gone[0] += each_s

    for shipped, size in work:
        stage(f"recording {shipped.file}")
        path, args = shipped.path(), shipped.args(size)
        forecasts.append(Forecast(path, args, twin=twin, ranks=RANKS, passes=PASSES, seed=seed))
        forecasts[-1].record()
        jobs.append(Job(path, args, RANKS, place(folder, shipped, size) / "run"))
    for number in range(PASSES):
        for forecast in forecasts:
            stage(f"measuring the computation of {forecast.path.name}, pass {number + 1} of {PASSES}")
            forecast.measure()
    for number in range(PASSES, most_passes):
        for forecast in forecasts:
            if forecast.least_passes() < passes_in_state:
                say(gone[0], f"pass {number + 1} of {forecast.path.name}: the host has another state, too")
                forecast.measure()
    predictions = []
    for forecast, job, one in zip(forecasts, jobs, work, strict=True):
        stage(f"predicting {forecast.path.name}")
        predictions.append(forecast.freeze(place(folder, *one) / "prediction"))
        job.states = predictions[-1].states

    def launched(job: Job, launch: Launch) -> None:
        gone[0] += _LAUNCH_S
        say(gone[0], f"{job.name}: {launch.seconds:.3g} s")

    runs = run_interleaved(jobs, launches=launches, on_launch=launched)
    return [compare(prediction, run) for prediction, run in zip(predictions, runs, strict=True)]
