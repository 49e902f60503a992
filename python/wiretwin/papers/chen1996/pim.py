"""The matching of inputs and outputs: what its rounds find, and what a switch carries with it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wiretwin._core import pim_pairs, switch_carries
from wiretwin.model.cases import case
from wiretwin.papers.records import Record
from wiretwin.student import quantile

__all__ = ["pim"]

PORTS = (4, 8, 16, 32, 64)
ROUNDS = (1, 2, 3, 4)
LOADS = (0.1, 0.25, 0.5, 0.75, 1.0)
"""The probability that an input has a cell for an output; offered load where cells queue."""

FIFO_PORTS = (2, 3, 4, 5, 6, 7, 8, 16, 32, 64)
REPLICATIONS = 10
CELLS = 400_000
"""Cells of a replication, about, at full load."""


def pim(quick: bool) -> tuple[list[Record], list[str]]:
    """Return the share of a maximal matching found round by round, and the throughput of switches.

    `matched_share` is that of independent requests: every input asks for every output with the probability
    `load`. `efficiency` is the share of the slots of the outputs in which a cell leaves, under uniform
    traffic of this load, in the second half of a run; `mechanism` names what is not parallel iterative
    matching.
    """
    records: list[Record] = []
    ports = (16,) if quick else PORTS
    for count in ports:
        for load in LOADS:
            records += _shares(count, load, quick)
    for count in ports:
        for rounds in ROUNDS:
            records.append(_carries("pim", rounds, count, 1.0, quick))
    for load in (0.6, 0.8, 0.9, 0.95):
        for rounds in ROUNDS:
            records.append(_carries("pim", rounds, 16, load, quick))
    for rounds in (1, 4):
        records.append(_carries("islip", rounds, 16, 1.0, quick))
    for count in (2, 16) if quick else FIFO_PORTS:
        records.append(_carries("fifo", 1, count, 1.0, quick))
    records.append(_carries("output-queued", 1, 16, 1.0, quick))
    return records, []


def _shares(ports: int, load: float, quick: bool) -> list[Record]:
    trials = (4_000 if quick else 32_000) // ports

    def one(seed: int) -> list[float]:
        found = pim_pairs(ports, load, trials, seed)
        # Where fewer rounds were ever needed, the last had found everything.
        return [found[min(rounds, len(found)) - 1] / found[-1] for rounds in ROUNDS]

    runs = np.array([one(seed) for seed in range(1, REPLICATIONS + 1)])
    return [
        _record(case(load=load, ports=ports, iterations=rounds), "matched_share", runs[:, at].tolist())
        for at, rounds in enumerate(ROUNDS)
    ]


def _carries(scheduler: str, iterations: int, ports: int, load: float, quick: bool) -> Record:
    slots = 2 * (CELLS // (10 if quick else 1)) // ports
    values = [
        switch_carries(scheduler, iterations, ports, load, slots, seed)["carried"]
        for seed in range(1, REPLICATIONS + 1)
    ]
    rounds = iterations if scheduler in ("pim", "islip") else None
    mechanism = None if scheduler == "pim" else scheduler
    name = case(mechanism=mechanism, load=load, ports=ports, iterations=rounds)
    return _record(name, "efficiency", values)


def _record(name: str, metric: str, values: Sequence[float]) -> Record:
    """Return the mean of replications with its 90 % interval."""
    return Record("chen1996", "pim", name, metric, *estimate(metric, values), "prediction")


SHARES = ("matched_share", "efficiency", "jain", "cell_loss_ratio", "tcp_retransmission_ratio")
"""Metrics that end at 1."""


def estimate(metric: str, values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of replications and the ends of its 90 % interval, which ends where the metric does.

    No share is above 1 and nothing but a deviation below 0, though Student's interval may reach there.
    """
    mean, half = interval(values)
    low, high = mean - half, mean + half
    if metric in SHARES:
        high = min(high, 1.0)
    return mean, low if metric == "deviation_percent" else max(low, 0.0), high


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of independent values and half the width of its 90 % interval."""
    mean = float(np.mean(values))
    half = float(quantile(len(values) - 1, 0.95) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return mean, half


def jain(values: Sequence[float]) -> float:
    """Return Jain's index of fairness: 1 where all are alike, 1 / n where one has all."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else math.nan
