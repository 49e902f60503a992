"""Lin et al. 1995: matrix multiplication and a partial differential equation on four hosts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wiretwin.model.cases import case
from wiretwin.model.echo import SEED
from wiretwin.model.profiles import Load
from wiretwin.papers.lin1995_pvm import pvm_setting
from wiretwin.papers.lin1995_settings import (
    PAPER,
    Setting,
    paper,
    program_setting,
    renamed,
    socket_setting,
)
from wiretwin.papers.programs import run_program
from wiretwin.papers.records import Record

__all__ = ["MM", "NETWORKS", "PDE", "STACKS", "Job", "costs_s", "jobs", "table5", "table6"]

MM, PDE = "multiply-add", "sor-point"
NETWORKS = ("atm", "ethernet", "ethernet-loaded")
STACKS: dict[str, Callable[[str], Setting | None]] = {
    "fore": lambda network: program_setting(paper()["programs"]["host"]) if network == "atm" else None,
    "socket": lambda network: socket_setting(network, paper()["programs"]["host"]),
    "pvm-advise": lambda network: pvm_setting("advise", network, paper()["programs"]["host"]),
    "pvm-normal": lambda network: pvm_setting("normal", network, paper()["programs"]["host"]),
}
"""What the programs run on: the setting of a stack on a network, none where it does not go there."""

FIRST_USE = {"fore+reliable": "fore", "socket": "socket", "pvm-advise": "socket", "pvm-normal": "socket"}
"""Whose first message takes how much longer: that of PVM goes through sockets (a choice)."""


FIRST_USE_SHARE = {"atm": 1.0, "ethernet": 12.5 / 35}
"""How much of a first message's extra time counts, by network: a choice, for the paper names none.

Over Ethernet it is as long as over the Fore interface, whose circuits are there before: what sockets over ATM
take besides is taken for that of IP's circuits, which a cable has not.
"""


RUNS = 10
"""Of matrix multiplication, whose mean of fifty the paper gives: a lost segment makes runs differ."""


@dataclass(frozen=True)
class Job:
    """A program of a size.

    Attributes
    ----------
    experiment, program
        The table, and the program's name.
    parameters
        Its own.
    keys
        What tells it from others, as keys of a case.
    alone_s
        What it takes on one host, as published.
    """

    experiment: str
    program: str
    parameters: dict[str, int]
    keys: dict[str, object]
    alone_s: float

    @property
    def points(self) -> int:
        """Units of work of the program that runs alone."""
        side = self.parameters["n"]
        return side**3 if self.program == "mm" else side**2 * _iterations(self.parameters)

    @property
    def share(self) -> int:
        """Units of work of one of four ranks, whose number of lines is even."""
        half = self.parameters["n"] // 2
        if self.program == "mm":
            return half * half * self.parameters["n"]
        # The red points just outside two of the four sides are computed twice.
        return (half * half + half) * _iterations(self.parameters)


def _iterations(parameters: dict[str, int]) -> int:
    return -(-parameters["accuracy"] * parameters["n"] // 3)


def _published(name: str) -> dict[str, Any]:
    return next(row["time_s"] for row in paper()["program"] if row["case"] == name)


def _rows(program: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is published of a program alone, and over the Fore interface."""
    over = f"stack=fore/aal5 network=atm host=sparc2 adapter=series-200 program={program}"
    return _published(f"host=sparc2 program={program}"), _published(over)


def jobs(program: str, bits: int | None = None) -> list[Job]:
    """Return what is run: the sizes of the paper.

    `bits` is the width of an element of a matrix, by default what the paper's file has for a choice.
    """
    given, alone = paper()["programs"], _rows(program)[0]
    if program == "mm":
        width = given["mm_element_bits"] if bits is None else bits
        return [
            Job("table5", "mm", {"n": n, "bits": width, "rounds": 1}, {"size": n}, alone[str(n)])
            for n in given["mm_sides"]
        ]
    return [
        Job(
            "table6",
            "pde",
            {"n": n, "accuracy": v},
            {"size": n, "accuracy": f"1e-{v}"},
            alone[str(n)][at],
        )
        for n in given["pde_sides"]
        for at, v in enumerate(given["pde_accuracies"])
    ]


def costs_s(job: Job) -> dict[str, float]:
    """Return what a unit of work takes in the parallel program, seconds.

    Of matrix multiplication: what it takes alone at the same size; a large matrix misses the cache more.
    Of the differential equation, where the parallel code spends more on a point than the sequential one: the
    slope of the time of an iteration over the Fore interface, against the points that a rank updates. The
    time of an iteration is what an accuracy of 10^-12 takes longer than one of 10^-6, so that what a run
    takes once does not count; a fit of the slope and of what all sizes have in common, by relative error.
    """
    if job.program == "mm":
        return {MM: job.alone_s / job.points}
    over = _rows("pde")[1]
    short, long = paper()["programs"]["pde_accuracies"]
    rows, ones = [], []
    for side, (first, second) in over.items():
        of = [Job("", "pde", {"n": int(side), "accuracy": v}, {}, 0.0) for v in (short, long)]
        iterations = _iterations(of[1].parameters) - _iterations(of[0].parameters)
        time = (second - first) / iterations
        rows.append([(of[1].share - of[0].share) / iterations / time, 1 / time])
        ones.append(1.0)
    slope, _ = np.linalg.lstsq(np.array(rows), np.array(ones), rcond=None)[0]
    return {PDE: float(slope)}


def settings(shares: Mapping[str, float] = FIRST_USE_SHARE) -> Iterator[tuple[Setting, float]]:
    """Yield every stack on every network that it goes on, with the load beside it.

    Of a first message's extra time so much counts as `shares` says of its network.
    """
    given = paper()["programs"]
    for network in NETWORKS:
        for of in STACKS.values():
            setting = of(network.split("-")[0])
            if setting is None:
                continue
            low, high = paper()["first_message"]["penalty_ms"][FIRST_USE[setting.network.stack.split("/")[0]]]
            # The sender of either direction pays once.
            extra = (low + high) / 4 * shares.get(network.split("-")[0], 1.0)
            made = replace(setting.network, hosts=given["hosts"], first_use_ms=extra)
            load = given["ethernet_load"] if network == "ethernet-loaded" else 0.0
            if load:
                made = replace(made, load=(Load(load, law="constant", octets=given["load_octets"]),))
            yield Setting(setting.case, made), load


def _run(made: list[Job], spread: Callable[[str], float], runs: int) -> tuple[list[Record], list[str]]:
    """Return the mean of so many runs, whose timers and back-offs differ, of every job on everything."""
    records = [_alone(job) for job in made]
    digests: list[str] = []
    for job in made:
        costs = costs_s(job)
        [cost] = costs.values()
        computing = cost * job.share
        for setting, load in settings():
            ran = [
                run_program(setting.network, job.program, job.parameters, costs, SEED + number)
                for number in range(runs)
            ]
            digests += [one.digest for one in ran]
            name = renamed(setting.case, program=job.program, load=load or None, **job.keys)
            mean = sum(one.elapsed_s for one in ran) / runs
            # What is computed is known; what messages take is as uncertain as a latency.
            half = 1.645 * spread(setting.network.stack)
            low, high = (mean - (mean - computing) * (1 - math.exp(way * half)) for way in (-1, 1))
            published = _measured(setting, job)
            if published is None:
                records.append(Record(PAPER, job.experiment, name, "time_s", mean, low, high, "prediction"))
            else:
                records.append(
                    Record(PAPER, job.experiment, name, "time_s", mean, None, None, "calibration", published)
                )
            shares = [one.share for one in ran if one.share is not None]
            if shares:
                share = sum(shares) / len(shares)
                kind = "program_load_share"
                records.append(Record(PAPER, job.experiment, name, kind, share, None, None, "prediction"))
    return records, digests


def _measured(setting: Setting, job: Job) -> float | None:
    """Return what is published of a job on a stack, where it is for calibration."""
    over = f"{setting.case} program={job.program}"
    found = next((row["time_s"] for row in paper()["program"] if row["case"] == over), None)
    if found is None:
        return None
    of_size = found[str(job.parameters["n"])]
    if job.program == "mm":
        return float(of_size)
    return float(of_size[paper()["programs"]["pde_accuracies"].index(job.parameters["accuracy"])])


def _alone(job: Job) -> Record:
    """Return the sequential program: what a unit takes, which is its calibration, times the units."""
    name = case(host=paper()["programs"]["host"], program=job.program, **job.keys)
    alike = [one for one in jobs(job.program) if one.parameters["n"] == job.parameters["n"]]
    unit = sum(one.alone_s for one in alike) / sum(one.points for one in alike)
    made = unit * job.points
    return Record(PAPER, job.experiment, name, "time_s", made, None, None, "calibration", job.alone_s)


def table5(spread: Callable[[str], float], quick: bool) -> tuple[list[Record], list[str]]:
    """Multiply matrices: every size, stack and network; the two small sizes where it is to be quick."""
    return _run(jobs("mm")[: 2 if quick else None], spread, 2 if quick else RUNS)


def table6(spread: Callable[[str], float], quick: bool) -> tuple[list[Record], list[str]]:
    """Solve the differential equation: every size, accuracy, stack and network; the smallest where quick."""
    return _run(jobs("pde")[: 2 if quick else None], spread, 1)
