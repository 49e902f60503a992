"""The sweep: hand out runs, keep what ends, stop when it is enough."""

from __future__ import annotations

import json
import math
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import wiretwin
from wiretwin.errors import InputError, InterruptedRun, MeasureError
from wiretwin.interruption import lost_since_now
from wiretwin.scenario import Scenario
from wiretwin.student import quantile
from wiretwin.sweep.plan import Axis, Value, parse_axis, place, points, seed_of
from wiretwin.sweep.record import PLAN, Folder, Plan, Run, Until, finite
from wiretwin.sweep.work import Pool, Task

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Interval", "Sweep", "interval", "sweep"]

Progress = Callable[[int, int, str], None]
"""Called with the runs that have ended, those there will be as far as is known, and words."""


@dataclass(frozen=True)
class Interval:
    """A mean over replications with its confidence interval, which needs two of them."""

    mean: float
    low: float | None
    high: float | None
    count: int

    @property
    def half_share(self) -> float:
        """Half its width, of the mean; infinite where there is none."""
        if self.low is None or self.high is None or self.mean == 0:
            return 0.0 if self.low == self.high == 0 else math.inf
        return (self.high - self.low) / 2 / abs(self.mean)


def interval(values: Sequence[float], confidence: float) -> Interval:
    """Return the mean and Student's interval of independent values; what is no number is left out."""
    import statistics

    known = finite(values)
    if not known:
        return Interval(math.nan, None, None, 0)
    mean = statistics.fmean(known)
    if len(known) < 2:
        return Interval(mean, None, None, len(known))
    half = quantile(len(known) - 1, (1 + confidence) / 2) * statistics.stdev(known) / math.sqrt(len(known))
    return Interval(mean, mean - half, mean + half, len(known))


@dataclass(frozen=True)
class Sweep:
    """A sweep that has ended.

    Attributes
    ----------
    folder
        Every run.
    axes, points
        The keys and every combination of their values.
    """

    folder: Folder
    axes: tuple[Axis, ...]
    points: tuple[dict[str, Value], ...]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Sweep:
        """Read the folder of a sweep: the runs that have ended so far.

        Raises
        ------
        InputError
            It is not one of a sweep, or a file in it is damaged other than at its end.
        """
        folder = Folder.read(Path(path))
        scenario = Scenario.of(folder.plan.scenario, str(Path(path) / PLAN))
        axes = tuple(parse_axis(text, scenario) for text in folder.plan.over)
        return cls(folder, axes, tuple(points(axes)))

    @property
    def digest(self) -> str:
        """Of all runs, the same wherever they were done."""
        return self.folder.digest

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of what the runs came to."""
        found: dict[str, None] = {}
        for run in self.folder.runs.values():
            found |= dict.fromkeys(run.metrics)
        return tuple(found)

    def at(self, point: int, metric: str) -> Interval:
        """Return a metric at a point."""
        values = [run.metrics[metric] for run in self.folder.of(point) if metric in run.metrics]
        return interval(values, self.folder.plan.confidence)

    def frame(self) -> pl.DataFrame:
        """Return a row for each point and metric: mean, low, high, count."""
        import polars as pl

        rows = []
        for number, point in enumerate(self.points):
            for metric in self.metrics:
                found = self.at(number, metric)
                rows.append(
                    {**point, "metric": metric, "mean": found.mean, "low": found.low, "high": found.high,
                     "runs": found.count}
                )  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None)


def sweep(
    scenario: str | os.PathLike[str] | Scenario,
    over: Sequence[str],
    out: str | os.PathLike[str],
    *,
    replications: int = 5,
    until: tuple[str, float] | None = None,
    most: int | None = None,
    confidence: float = 0.95,
    workers: int | None = None,
    dask: str | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Run a scenario at every combination of values, each with several seeds.

    Parameters
    ----------
    scenario
        The scenario, or its file.
    over
        ``KEY=a,b,c`` or ``KEY=low:high:step``, each.
    out
        The folder for the result. One with runs of the same sweep is gone on with.
    replications
        Runs at each point; replication i has the same seed at every point.
    until
        A metric, and the half width of its interval as a share of its mean: a point that is wider gets half
        as many replications again, and again, up to `most` (ten times `replications` by default).
    confidence
        Of the intervals.
    workers
        Processes on this machine; its cores by default.
    dask
        The address of a Dask scheduler in place of them, or ``local`` for one of our own.
    progress
        Told after each run.

    Raises
    ------
    InputError
        Something is wrong in what was given; nothing has run.
    MeasureError
        The cluster is gone; what had ended is kept, and the same call goes on.
    InterruptedRun
        The user interrupted; the same.
    """
    found = scenario if isinstance(scenario, Scenario) else Scenario.read(scenario)
    axes = tuple(parse_axis(text, found) for text in over)
    combined = tuple(points(axes))
    scenarios = [place(found, axes, point) for point in combined]
    _check(scenarios, combined)
    placed = [one.document for one in scenarios]
    cores = workers if workers is not None else os.cpu_count() or 1
    bounds = {"--replications": replications, "--workers": cores, "--most": most or 10 * replications}
    for key, value in bounds.items():
        if not 1 <= value <= 1_000_000:
            raise InputError(key=key, value=value, allowed="1 to 1000000")
    if bounds["--most"] < replications:
        raise InputError(key="--most", value=most, allowed=f"at least --replications, {replications}")
    if not 0.5 <= confidence < 1:
        raise InputError(key="--confidence", value=confidence, allowed="from 0.5 to below 1")
    if until is not None and replications < 2:
        raise InputError(key="--replications", value=replications, allowed="2 or more with --until")
    plan = Plan(
        wiretwin=wiretwin.__version__,
        scenario=found.document,
        over=list(over),
        replications=replications,
        most=bounds["--most"] if until is not None else replications,
        until=Until(metric=until[0], share=until[1]) if until is not None else None,
        confidence=confidence,
    )
    result = Sweep(Folder.open(Path(out), plan), axes, combined)
    try:
        todo = _Todo(result, placed, found)
        if todo.waiting:
            _work(result, todo, lambda: _pool(dask, min(cores, len(todo.waiting))), progress)
        result.folder.close(result.points)
    finally:
        result.folder.release()
    return result


def _check(scenarios: Sequence[Scenario], combined: Sequence[Mapping[str, Value]]) -> None:
    """Reject networks that cannot be, each kind of them looked at once, before anything runs."""
    from wiretwin.scenario.run import check

    seen: set[str] = set()
    for scenario, point in zip(scenarios, combined, strict=True):
        stacks = [table.stack for table in (scenario.echo, *scenario.program) if table is not None]
        said = json.dumps([scenario.network, stacks], default=str)
        if said in seen:
            continue
        seen.add(said)
        try:
            check(scenario)
        except InputError as error:
            words = ", ".join(f"{key}={value}" for key, value in point.items())
            raise InputError(reason=f"--over {words}: {error}") from None


def _pool(dask: str | None, workers: int) -> Pool:
    if dask is not None:
        from wiretwin.sweep.cluster import Cluster

        return Cluster(dask, workers)
    from wiretwin.sweep.local import Cores

    return Cores(workers)


class _Todo:
    """Which runs are still to be done. What is asked for depends on results, never on who was faster."""

    def __init__(self, result: Sweep, placed: list[dict[str, object]], scenario: Scenario) -> None:
        self.result, self.placed, self.scenario = result, placed, scenario
        plan = result.folder.plan
        self.asked = [plan.replications] * len(placed)
        self.waiting: deque[Task] = deque()
        # By replication first, so that an interrupt leaves something of every point.
        for replication in range(plan.replications):
            for point in range(len(placed)):
                self._ask(point, replication)
        for point in range(len(placed)):
            self.consider(point)

    @property
    def total(self) -> int:
        """All runs there will be, as far as is known."""
        return sum(self.asked)

    def _ask(self, point: int, replication: int) -> None:
        if (point, replication) not in self.result.folder.runs:
            seed = seed_of(self.scenario, replication)
            self.waiting.append(Task(point, replication, self.placed[point], seed))

    def consider(self, point: int) -> None:
        """Ask for more replications of a point, once all that were asked for have ended."""
        plan, runs = self.result.folder.plan, self.result.folder.runs
        while plan.until is not None and self.asked[point] < plan.most:
            have = self.asked[point]
            if any((point, replication) not in runs for replication in range(have)):
                return
            if any(runs[point, replication].error is not None for replication in range(have)):
                return
            values = [runs[point, replication].metrics for replication in range(have)]
            if plan.until.metric not in values[0]:
                allowed = ", ".join(values[0])
                raise InputError(key="--until", value=plan.until.metric, allowed=allowed)
            found = interval([one[plan.until.metric] for one in values], plan.confidence)
            if found.half_share <= plan.until.share:
                return
            self.asked[point] = min(plan.most, have + math.ceil(have / 2))
            for replication in range(have, self.asked[point]):
                self._ask(point, replication)


def _work(result: Sweep, todo: _Todo, start: Callable[[], Pool], progress: Progress | None) -> None:
    folder = result.folder
    raise_lost = lost_since_now()
    pool = start()
    under_way = 0
    try:
        while todo.waiting or under_way:
            raise_lost()
            while todo.waiting and under_way < pool.room:
                pool.submit(todo.waiting.popleft())
                under_way += 1
            for task, came in pool.ended():
                under_way -= 1
                folder.append(Run(task.point, task.replication, task.seed, **vars(came)))
                todo.consider(task.point)
                if progress is not None:
                    words = ", ".join(f"{key}={value}" for key, value in result.points[task.point].items())
                    progress(len(folder.runs), todo.total, words)
    except KeyboardInterrupt:
        raise InterruptedRun(f"interrupted: {_kept(folder, todo)}") from None
    except MeasureError as error:
        raise MeasureError(f"{error}; {_kept(folder, todo)}") from error
    finally:
        pool.close()


def _kept(folder: Folder, todo: _Todo) -> str:
    # What is on disk counts: an interrupt may have come just after a run was written.
    kept = len(Folder.read(folder.path).runs)
    return f"{kept} of {todo.total} runs are kept in {folder.path}; the same command goes on"
