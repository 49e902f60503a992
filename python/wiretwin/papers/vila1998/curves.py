"""The curves of the paper, all of one sweep: latency, loss, use of ABR and bandwidth against rho."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretwin import scratch
from wiretwin.model.cases import case
from wiretwin.model.values import DATA
from wiretwin.papers.fit import Fit, Fitted, Residual
from wiretwin.papers.records import Record
from wiretwin.scenario import Scenario, simulate
from wiretwin.sweep.run import Sweep, sweep

__all__ = ["EXPERIMENTS", "FOLDER", "PAPER", "Made", "experiment", "refit", "scenario", "swept", "write_fit"]

PAPER = "vila1998"
FOLDER = DATA / "papers" / PAPER
PROGRAMS = ("PDE1", "PDE2")
MECHANISMS = ("ubr", "abr", "lme-ece")
REPLICATIONS = 8
"""At least; more where the mean latency is not known to `NARROW` with them."""
MOST = 400
NARROW = ("latency_us", 0.14)
"""Half an interval of 90 % of the paper's is at most 14 % of its mean."""
CONFIDENCE = 0.9

Made = tuple[list[Record], list[str]]


def paper() -> dict[str, Any]:
    """Return the data file of this paper."""
    return tomllib.loads((FOLDER / "paper.toml").read_text(encoding="utf-8"))


def scenario(program: str, pace: float | None = None, **changes: dict[str, Any]) -> Scenario:
    """Return the set-up with a program; `changes` by table."""
    found = Scenario.read(FOLDER / "scenario.toml").document
    of_program = {"program": program.lower(), "pace": paper()["pace"][program] if pace is None else pace}
    for table, values in {"task": of_program, **changes}.items():
        found[table] = found[table] | values | (of_program if table == "task" else {})
    return Scenario.of(found, f"{PAPER} {program}")


@dataclass(frozen=True)
class Swept:
    """The sweep of one program, and what its points are."""

    program: str
    sweep: Sweep

    def records(self, name: str, metrics: Sequence[str]) -> list[Record]:
        """Return the values of these metrics with their intervals, as an experiment's."""
        found = []
        for number, point in enumerate(self.sweep.points):
            of = case(program=self.program, mechanism=point["mechanism"], rho=point["rho"])
            for metric in metrics:
                value = self.sweep.at(number, metric)
                found.append(Record(PAPER, name, of, metric, value.mean, value.low, value.high, "prediction"))
        return found


def swept(program: str, out: Path, *, quick: bool = False, workers: int | None = None) -> Swept:
    """Sweep rho and mechanism of a program into a folder; one with runs of the same sweep is gone on with."""
    given = paper()["inputs"]["rho"]
    rho = "rho=0.5,1.1" if quick else f"rho={given['low']}:{given['high']}:{given['step']}"
    changes: dict[str, dict[str, Any]] = {"task": {"time": "2000 ms", "warm_up": "100 ms"}} if quick else {}
    return Swept(
        program,
        sweep(
            scenario(program, None, **changes),
            [rho, f"mechanism={','.join(MECHANISMS)}"],
            out,
            replications=2 if quick else REPLICATIONS,
            until=None if quick else NARROW,
            most=None if quick else MOST,
            confidence=CONFIDENCE,
            workers=1 if quick else workers,
        ),
    )


@functools.cache
def _all(quick: bool) -> tuple[Swept, ...]:
    """Sweep both programs; all experiments are views of the same runs."""
    with scratch.folder(what=PAPER) as folder:
        return tuple(swept(program, folder / program, quick=quick) for program in PROGRAMS)


def _view(name: str, *metrics: str) -> Callable[[bool], Made]:
    def made(quick: bool) -> Made:
        found = _all(quick)
        return [one for each in found for one in each.records(name, metrics)], [
            each.sweep.digest for each in found
        ]

    return made


def _bandwidth(quick: bool) -> Made:
    """Rates by category and what they cost; the rate by ABR alone is the calibration figure."""
    records, runs = _view("bandwidth", "ubr_kbit_s", "abr_kbit_s", "vbr_kbit_s", "cost_per_s")(quick)
    for program in PROGRAMS:
        published = paper()["calibration"]["mean_rate_abr_only_Kbit_s"][program]
        alone = next(
            one.predicted
            for one in records
            if one.metric == "abr_kbit_s" and f"program={program} mechanism=abr " in one.case
        )
        name = case(program=program, mechanism="abr")
        records.append(
            Record(PAPER, "bandwidth", name, "abr_kbit_s", alone, None, None, "calibration", published)
        )
    return records, runs


EXPERIMENTS: dict[str, Callable[[bool], Made]] = {
    "latency": _view("latency", "latency_us"),
    "cell-loss": _view("cell-loss", "cell_loss_ratio"),
    "abr-utilisation": _view("abr-utilisation", "abr_share"),
    "bandwidth": _bandwidth,
}
"""What there is, by name: makes the records, and the digests of the sweeps."""


def experiment(name: str, *, quick: bool = False) -> Made:
    """Run one experiment."""
    return EXPERIMENTS[name](quick)


def rate_kbit_s(program: str, pace: float) -> float:
    """Return what a program sends by ABR alone on a line with little else, over a minute."""
    changes: dict[str, dict[str, Any]] = {
        "task": {"mechanism": "abr", "time": "60 s"},
        "background": {"rho": 0.3},
    }
    return simulate(scenario(program, pace, **changes), seed=1).metrics["abr_kbit_s"]


STEPS = 3
"""Of the fit."""


def refit() -> Fit:
    """Find by how much each program's time is stretched, so that it sends at the published rate."""
    constants, residuals = [], []
    for program, published in paper()["calibration"]["mean_rate_abr_only_Kbit_s"].items():
        before = paper()["pace"][program]
        tried = [
            (abs(math.log(rate / published)), pace, rate) for pace, rate in _stretched(program, published)
        ]
        _, pace, rate = min(tried)
        # One constant for one figure: it is met, and there is nothing to tell an interval from.
        constants.append(Fitted("vila1998", f"pace.{program}", before, pace, pace, pace))
        name = case(program=program, mechanism="abr")
        residuals.append(Residual("bandwidth", name, "abr_kbit_s", published, rate))
    return Fit(constants, residuals, STEPS * len(constants))


def _stretched(program: str, published: float) -> Iterator[tuple[float, float]]:
    """Yield paces that come nearer, from the one on file on, and what the program sends at each."""
    pace = paper()["pace"][program]
    for _ in range(STEPS):
        rate = rate_kbit_s(program, pace)
        yield pace, rate
        pace = round(pace * rate / published, 4)


def write_fit(fitted: Fit) -> None:
    """Write the stretches into the data file."""
    import re

    from wiretwin.results import write_atomically

    path = FOLDER / "paper.toml"
    text = path.read_text(encoding="utf-8")
    for one in fitted.constants:
        program = one.key.removeprefix("pace.")
        head, table = text.split("[pace]\n")
        table = re.sub(rf"^{program} = .*$", f"{program} = {one.value}", table, flags=re.MULTILINE)
        text = f"{head}[pace]\n{table}"
    write_atomically(path, text.encode())
