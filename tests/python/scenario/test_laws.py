"""The scenarios of the page "Laws that the models obey", held against the formulas that it states."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pages import steps

from wiretwin.scenario import Scenario, simulate

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "laws.md"
FILES = {step.name: tomllib.loads(step.text) for step in steps(PAGE.read_text()) if step.kind == "file"}
GOODPUT = 1448 / 1538
"""Of a packet and its framing, the share that is the program's."""


def ran(document: dict[str, Any]) -> dict[str, float]:
    return simulate(Scenario.of(document)).metrics


def test_a_switch_with_one_queue_an_input() -> None:
    assert ran(FILES["fifo.toml"])["carried_ratio"] == pytest.approx(0.6184, abs=0.002)


def test_parallel_iterative_matching() -> None:
    document = FILES["pim.toml"]
    assert ran(document)["carried_ratio"] > 0.98
    once = {**document, "switch": {**document["switch"], "iterations": 1, "ports": 64}}
    assert ran(once)["carried_ratio"] == pytest.approx(1 - 1 / math.e, abs=0.01)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_the_wait_at_an_output(load: float) -> None:
    document = FILES["output.toml"]
    ports = document["switch"]["ports"]
    wait = (ports - 1) / ports * load / (2 * (1 - load))
    document = {**document, "switch": {**document["switch"], "load": load}}
    assert ran(document)["mean_wait_slots"] == pytest.approx(wait, rel=0.02)


@pytest.mark.parametrize("hosts", [[3, 5], [4, 5]], ids=["other hosts", "the same hosts"])
def test_max_min_fair_shares(hosts: list[int]) -> None:
    document = FILES["parking-lot.toml"]
    third = {**document["program"][3], "hosts": hosts}
    found = ran({**document, "program": [*document["program"][:3], third]})
    expected_s = 8 * 100e6 / (100e6 / 3 * GOODPUT)
    for label in ("long", "first", "second", "third"):
        assert found[f"{label}.time_s"] == pytest.approx(expected_s, rel=0.005), label


def test_the_square_root_of_losses() -> None:
    """Of a long run less a short one, so that slow start is in neither."""
    document = FILES["mathis.toml"]
    program = document["program"]
    short = {**document, "program": {**program, "parameters": {**program["parameters"], "messages": 50}}}
    long, begun = ran(document), ran(short)
    packets = 200e6 / 1448
    rate = packets / (long["time_s"] - begun["time_s"])
    share = (long["congestion_events"] - begun["congestion_events"]) / packets
    packet_s = 8 * 1538 / 50e6
    round_trip = 6 * 5e-3 + (15 + 1) * packet_s
    assert rate == pytest.approx(math.sqrt(3 / 2 / share) / round_trip, rel=0.1)
