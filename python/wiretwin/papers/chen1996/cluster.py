"""PVM and molecular dynamics on workstations around an AN2, by transport."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from wiretwin._core import run_program as in_model
from wiretwin.model.cases import case
from wiretwin.model.echo import measure
from wiretwin.model.profiles import Network
from wiretwin.papers.chen1996.scenario import alpha, paper
from wiretwin.papers.programs import run_program
from wiretwin.papers.records import Record

__all__ = ["STACKS", "box", "cluster", "md", "priced", "pvm"]

PAPER = "chen1996"
SEED = 1996
Made = tuple[list[Record], list[str]]
Overrides = Mapping[tuple[str, str], float]

STACKS = {"tcp": "pvm-advise/tcp/aal5", "udp": "pvm-normal/udp/aal5", "mapped": "pvm-mapped/aal5"}
"""By transport: tasks over TCP, through daemons, in memory of the adapter."""

FACTORS = (0.26, 0.344, 0.385)
"""How long kernel paths take, against the reference host: least, chosen, most by the calibration."""

ATOM_PAIR_PS = 150_000
"""Choice: looking at one pair of atoms, 25 cycles of 170 MHz on average."""


def factor(value: float) -> Overrides:
    """Return the overrides of a host so quick."""
    return {("alpha-170", "cpu_factor"): value}


def cluster(stack: str, hosts: int = 2, overrides: Overrides | None = None, **more: Any) -> Network:
    """Return workstations around an AN2 with credits that fill a loop."""
    return Network(
        stack,
        "alpha-170",
        "otto",
        switch="an2",
        hosts=hosts,
        buffer_kib=round(alpha()["window_bytes"]) // 1024,
        tcp="bsd43_reno",
        overrides=overrides or {},
        **more,
    )


ROUNDS = 11


def pvm(quick: bool) -> Made:
    """Round trip of a message by `pvm_send` and `pvm_recv`, by transport and size.

    Its interval is that of hosts as quick as the calibration figure allows.
    """
    sizes = paper()["pvm"]["message_bytes"]
    sizes = sizes[::3] if quick else sizes
    records, runs = [], []
    for transport, stack in STACKS.items():
        found = [measure(cluster(stack, overrides=factor(value)), sizes, SEED, ROUNDS) for value in FACTORS]
        runs += [curve.digest for curve in found]
        for at, size in enumerate(sizes):
            low, time, high = (2 * curve.latency_us[at] for curve in found)
            name = case(stack=stack, host="alpha-170", adapter="otto", size=size, transport=transport)
            records.append(Record(PAPER, "pvm", name, "round_trip_us", time, low, high, "prediction"))
    return records, runs


Box = dict[str, Any]


def box(y: int, z: int, x: int, steps: int) -> Box:
    """Return parameters of the program, cut into slabs."""
    return {"x": x, "y": y, "z": z, "steps": steps, "across": 1}


def priced(params: Box) -> str:
    """Return them with what a unit of work costs, as JSON."""
    return json.dumps({**params, "costs_ps": {"atom-pair": ATOM_PAIR_PS}})


def alone(params: Box, ranks: int) -> float:
    """Return the time of the program in seconds where messages take none."""
    nothing = [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}]
    curves = dict.fromkeys(("overhead_send", "overhead_recv", "gap", "latency"), nothing)
    layer = {"call_ps": 0, **curves, "rendezvous_from_bytes": None, "unexpected_copy": None}
    node = {"cores": ranks, "idle": "spin", "quantum_ps": 10_000_000_000}
    model = {"nodes": [node], "placement": [0] * ranks, "intra": layer, "inter": None, "link": None}
    run = in_model("md-coarse", priced(params), json.dumps(model), ranks, SEED)
    return max(float(one["elapsed_ps"]) for one in run["outcomes"]) / 1e12


def md(quick: bool) -> Made:
    """Speed-up and communication efficiency of molecular dynamics, by transport and number of hosts.

    Slabs with faces as large as give messages of about 1 MB. Communication efficiency is the time that the
    program takes where messages take none, over what it takes.
    """
    params = box(20, 20, 12, 1) if quick else box(80, 80, 24, 1)
    hosts = (2, 4) if quick else (4, 8)
    one = alone(params, 1)
    free = {count: alone(params, count) for count in hosts}
    records, runs = [], []
    for transport in ("tcp", "mapped"):
        for count in hosts:
            network = cluster(STACKS[transport], count)
            ran = run_program(network, "md-coarse", params, {"atom-pair": ATOM_PAIR_PS / 1e12}, SEED)
            time = ran.elapsed_s
            runs.append(ran.digest.split()[0])
            name = case(
                stack=STACKS[transport],
                host="alpha-170",
                adapter="otto",
                program="md",
                transport=transport,
                ports=count,
            )
            for metric, value in (
                ("time_s", time),
                ("speed_up", one / time),
                ("efficiency", free[count] / time),
            ):
                records.append(Record(PAPER, "md", name, metric, value, None, None, "prediction"))
    return records, runs
