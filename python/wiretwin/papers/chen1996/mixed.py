"""Remote procedure calls, streams and a parallel program on the same hosts and lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from wiretwin._core import lan_run, run_together
from wiretwin.model.cases import case
from wiretwin.model.profiles import lan_json
from wiretwin.model.switches import crossbar, output_queued, star
from wiretwin.papers.chen1996.cluster import STACKS, box, cluster, priced
from wiretwin.papers.chen1996.pim import estimate, jain
from wiretwin.papers.chen1996.scenario import alpha
from wiretwin.papers.records import Record

if TYPE_CHECKING:
    from wiretwin._core import ProgramsRun

__all__ = ["OTHERS", "mixed"]

PAPER = "chen1996"
HOSTS = 8
SEEDS = range(1, 4)
BUFFER_CELLS = 8192

CALLS = {"bytes": 128, "reply": 1024, "pause_ps": 10_000_000_000}
OTHERS: list[dict[str, Any]] = [
    {"name": "calls", "stack": "rpc/tcp/aal5", "places": [0, 1], "parameters": CALLS},
    {"name": "calls", "stack": "rpc/tcp/aal5", "places": [4, 6], "parameters": CALLS},
    {"name": "ttcp", "stack": "framed/tcp/aal5", "places": [0, 2, 3], "parameters": {"bytes": 65536}},
    {"name": "ttcp", "stack": "framed/tcp/aal5", "places": [4, 5], "parameters": {"bytes": 65536}},
]
"""Callers of two servers, with pauses of 10 ms on average; two streams to the host of one of them, and one to
that of the other."""

NETWORKS = [("tcp", "credits"), ("mapped", "credits"), ("tcp", "none")]
"""Transport of the parallel program, and what the switch does: AN2 with credits, or queues at its outputs."""


def mixed(quick: bool) -> tuple[list[Record], list[str]]:
    """Return times of calls and of a parallel program, and throughput of streams, that share hosts.

    `load=0` is the program without clients; `jain` is that of the streams to one host.
    """
    seeds = SEEDS[:2] if quick else SEEDS
    params = box(10, 10, 24, 1) if quick else box(20, 20, 24, 2)
    records: list[Record] = []
    runs: list[str] = []
    for transport, flow_control in NETWORKS:
        config = _network(transport, flow_control)
        alone = lan_run(config, "md-coarse", priced(params), 1)
        md: dict[str, Any] = {
            "name": "md-coarse",
            "places": list(range(HOSTS)),
            "parameters": json.loads(priced(params)),
        }
        wanted = json.dumps([md, *OTHERS])
        found = [run_together(f'{{"local": {config}}}', wanted, seed) for seed in seeds]
        runs += [one["digest"] for one in (alone, *found)]

        values: list[tuple[str, str, list[float], int | None]] = [
            ("md", "time_s", [float(alone["elapsed_ps"].max()) / 1e12], 0),
            ("md", "time_s", [_slowest(one) for one in found], None),
            ("rpc", "response_us", [_response(one) for one in found], None),
            ("ttcp", "throughput_Mbit_s", [sum(_streams(one)) for one in found], None),
            ("ttcp", "jain", [jain(_streams(one)[:2]) for one in found], None),
            ("all", "lost_cells", [float(one["congestion"]["lost_cells"]) for one in found], None),
        ]
        for program, metric, each, load in values:
            name = case(program=program, load=load, transport=transport, flow_control=flow_control)
            mean, low, high = estimate(metric, each) if len(each) > 1 else (each[0], None, None)
            records.append(Record(PAPER, "mixed", name, metric, mean, low, high, "prediction"))
    return records, runs


def _network(transport: str, flow_control: str) -> str:
    lossless = flow_control == "credits"
    switch = crossbar("an2") if lossless else output_queued("queued", buffer_cells=BUFFER_CELLS)
    sar_ns = alpha()["sar_ns"]
    switches = star(HOSTS, sar_ns, switch, "loop" if lossless else None)
    return lan_json(cluster(STACKS[transport], HOSTS, switches=switches))


def _slowest(run: ProgramsRun) -> float:
    return max(one["elapsed_ps"] for one in run["programs"][0]["outcomes"]) / 1e12


def _response(run: ProgramsRun) -> float:
    times = [times for one in run["programs"][1:3] for times in one["response_ps"]]
    return float(np.mean(np.concatenate(times))) / 1e6


def _streams(run: ProgramsRun) -> list[float]:
    got = [count for one in run["programs"][3:] for count in one["received_bytes"]]
    return [count * 8 / run["end_ps"] * 1e6 for count in got]
