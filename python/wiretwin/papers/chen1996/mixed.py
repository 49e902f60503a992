"""Remote procedure calls, streams and a parallel program on the same hosts and lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from wiretwin._core import lan_mixed, lan_run
from wiretwin.model.cases import case
from wiretwin.model.profiles import lan_json
from wiretwin.model.switches import crossbar, output_queued, star
from wiretwin.papers.chen1996.cluster import STACKS, box, cluster, priced
from wiretwin.papers.chen1996.pim import estimate, jain
from wiretwin.papers.chen1996.scenario import alpha
from wiretwin.papers.records import Record

if TYPE_CHECKING:
    from wiretwin._core import LanMixed

__all__ = ["CLIENTS", "mixed"]

PAPER = "chen1996"
HOSTS = 8
SEEDS = range(1, 4)
BUFFER_CELLS = 8192

# A pause of 10 ms on average.
CALL = {"kind": "calls", "bytes": 128, "reply_bytes": 1024, "pause_ps": 10_000_000_000}
STREAM = {"kind": "stream", "bytes": 65536}
CLIENTS: list[dict[str, Any]] = [
    {**CALL, "from": 1, "to": 0},
    {**CALL, "from": 6, "to": 4},
    {**STREAM, "from": 2, "to": 0},
    {**STREAM, "from": 3, "to": 0},
    {**STREAM, "from": 5, "to": 4},
]
"""Callers of two servers, two streams to the host of one of them, and one to that of the other."""

NETWORKS = [("tcp", "credits"), ("mapped", "credits"), ("tcp", "none")]
"""Transport of the parallel program, and what the switch does: AN2 with credits, or queues at its outputs."""


def mixed(quick: bool) -> tuple[list[Record], list[str]]:
    """Return times of calls and of a parallel program, and throughput of streams, that share hosts.

    `load=0` is the program without clients; `jain` is that of the streams to one host.
    """
    seeds = SEEDS[:2] if quick else SEEDS
    params = priced(box(10, 10, 24, 1) if quick else box(20, 20, 24, 2))
    records: list[Record] = []
    runs: list[str] = []
    for transport, flow_control in NETWORKS:
        config = _network(transport, flow_control)
        alone = lan_run(config, "md-coarse", params, 1)
        found = [lan_mixed(config, "md-coarse", params, json.dumps(CLIENTS), seed) for seed in seeds]
        runs += [one["digest"] for one in (alone, *found)]

        values: list[tuple[str, str, list[float], int | None]] = [
            ("md", "time_s", [float(alone["elapsed_ps"].max()) / 1e12], 0),
            ("md", "time_s", [float(one["elapsed_ps"].max()) / 1e12 for one in found], None),
            ("rpc", "response_us", [_response(one) for one in found], None),
            ("ttcp", "throughput_Mbit_s", [sum(_streams(one)) for one in found], None),
            ("ttcp", "jain", [jain(_streams(one)[:2]) for one in found], None),
            ("all", "lost_cells", [float(one["lost_cells"]) for one in found], None),
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
    beside = ("rpc/tcp/aal5", "framed/tcp/aal5")
    return lan_json(cluster(STACKS[transport], HOSTS, switches=switches, beside=beside))


def _response(run: LanMixed) -> float:
    times = [one["response_ps"] for one in run["clients"][:2]]
    return float(np.mean(np.concatenate(times))) / 1e6


def _streams(run: LanMixed) -> list[float]:
    return [one["received_bytes"] * 8 / run["end_ps"] * 1e6 for one in run["clients"][2:]]
