"""Lin et al. 1995, beyond their tables: PVM over the Fore interface, and more than four hosts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from wiretwin.model.echo import coarse, measure
from wiretwin.papers.lin1995_programs import Job, costs_s, jobs
from wiretwin.papers.lin1995_pvm import pvm_setting
from wiretwin.papers.lin1995_settings import (
    PAPER,
    Setting,
    fore_setting,
    paper,
    program_setting,
    renamed,
    sized,
    socket_setting,
)
from wiretwin.papers.programs import run_program
from wiretwin.papers.records import Record

__all__ = ["HOSTS", "pvm_fore", "scaling"]

HOSTS = (4, 16, 64)
"""Of which the last are more than an ASX-100 has ports for; see `BIGGER`."""

BIGGER = {("asx100", "modules"): 16.0, ("asx100", "fabric_Mbit_s"): 9600.0}
"""A switch of the same make, four times as large (a choice): for more than 24 hosts."""

ECHO_ROUNDS = 11


def _between(host: str) -> list[Setting]:
    """PVM over the Fore interface beside PVM over TCP."""
    over = fore_setting(host, "series-200", switch=True, stack="pvm-fore/aal5")
    return [over, pvm_setting("advise", host=host)]


def pvm_fore(spread: Callable[[str], float], quick: bool) -> tuple[list[Record], list[str]]:
    """Return an echo between two hosts, and the programs on four, over PVM on circuits and PVM on TCP."""
    records: list[Record] = []
    runs: list[str] = []
    for setting in _between("4/690"):
        half = 1.645 * spread(setting.network.stack)
        sizes = coarse(1 << 14 if quick else 1 << 20)
        curve = measure(setting.network, sizes, rounds=3 if quick else ECHO_ROUNDS)
        runs.append(curve.digest)
        for size, value in zip(curve.sizes_bytes, curve.latency_us, strict=True):
            low, high = value * math.exp(-half), value * math.exp(half)
            name = sized(setting.case, size)
            records.append(Record(PAPER, "pvm-fore", name, "latency_us", value, low, high, "prediction"))
    given = paper()["programs"]
    made = [job for program in ("mm", "pde") for job in jobs(program)[: 1 if quick else None]]
    for job in made:
        for setting in _between(given["host"]):
            network = replace(setting.network, hosts=given["hosts"])
            ran = run_program(network, job.program, job.parameters, costs_s(job))
            runs.append(ran.digest)
            name = renamed(setting.case, program=job.program, **job.keys)
            records.append(_timed("pvm-fore", name, ran.elapsed_s, job, 4, spread(network.stack)))
    return records, runs


def _timed(experiment: str, name: str, time_s: float, job: Job, hosts: int, spread: float) -> Record:
    """Make a record: what is computed is known, what messages take is as uncertain as a latency."""
    [cost] = costs_s(job).values()
    computing = cost * (job.share * 4 / hosts)
    half = 1.645 * spread
    low, high = (time_s - max(0.0, time_s - computing) * (1 - math.exp(way * half)) for way in (-1, 1))
    return Record(PAPER, experiment, name, "time_s", time_s, low, high, "prediction")


def scaling(quick: bool) -> tuple[list[Record], list[str]]:
    """Return the time and the efficiency of the differential equation on more and more hosts.

    Over the Fore interface and over sockets on ATM, and over sockets on Ethernet, where all share one cable.
    The efficiency is what the same code would take on one host, over hosts times time.
    """
    host = paper()["programs"]["host"]
    settings = [program_setting(host), socket_setting("atm", host), socket_setting("ethernet", host)]
    side, accuracy = (64, 1) if quick else (256, 1)
    job = Job("scaling", "pde", {"n": side, "accuracy": accuracy}, {"size": side}, 0.0)
    [cost] = costs_s(job).values()
    alone = cost * side**2 * math.ceil(accuracy * side / 3)
    records: list[Record] = []
    runs: list[str] = []
    for setting in settings:
        for hosts in HOSTS[:2] if quick else HOSTS:
            network = replace(setting.network, hosts=hosts)
            if network.switch and hosts > 24:
                network = replace(network, overrides=BIGGER)
            ran = run_program(network, job.program, job.parameters, costs_s(job))
            runs.append(ran.digest)
            name = renamed(
                setting.case, program=job.program, size=side, accuracy=f"1e-{accuracy}", ports=hosts
            )
            for metric, value in (("time_s", ran.elapsed_s), ("efficiency", alone / hosts / ran.elapsed_s)):
                records.append(Record(PAPER, "scaling", name, metric, value, None, None, "prediction"))
    return records, runs
