"""A shipped program on a scenario's network: what it comes to, under load, and bad input by name."""

from __future__ import annotations

from typing import Any

import pytest

from wiretwin.errors import InputError
from wiretwin.scenario import Scenario, simulate

ETHERNET = {"stack": "pvm-advise/tcp/ethernet", "host": "sparc2", "hosts": 3}
RING = {"name": "ring", "ranks": 3, "parameters": {"elements": 4000, "rounds": 1, "add": "1ns"}}


def scenario(network: dict[str, Any], program: dict[str, Any]) -> Scenario:
    return Scenario.of({"network": network, "program": program})


def test_a_program_runs_on_a_network_and_load_makes_it_slower() -> None:
    alone = simulate(scenario(ETHERNET, RING)).metrics
    assert alone["verified_ratio"] == 1.0
    parts = sum(alone[f"{part}_s"] for part in ("compute", "endpoint", "wire", "waiting"))
    assert parts == pytest.approx(alone["time_s"], rel=1e-9)
    loaded = simulate(scenario({**ETHERNET, "load": [{"share": 0.5}]}, RING)).metrics
    assert loaded["verified_ratio"] == 1.0
    assert loaded["time_s"] > 1.1 * alone["time_s"]
    atm = {"stack": "pvm-advise/tcp/aal5", "host": "sparc2", "hosts": 3, "switch": "asx100"}
    assert simulate(scenario(atm, RING)).metrics["time_s"] != alone["time_s"]


def test_the_same_seed_gives_the_same_digest() -> None:
    wanted = scenario({**ETHERNET, "load": [{"share": 0.3}]}, RING)
    assert simulate(wanted, seed=7).digest == simulate(wanted, seed=7).digest
    assert simulate(wanted, seed=7).metrics != simulate(wanted, seed=8).metrics


@pytest.mark.parametrize(
    ("network", "program", "words"),
    [
        ({}, {"ranks": 4}, "program.ranks: 4 is not allowed here; allowed: 3, as many as network.hosts"),
        ({}, {"name": "sort"}, "program.name"),
        ({}, {"parameters": {"elements": 64}}, "add: is needed"),
        ({"stack": "pigeon/ethernet"}, {}, "network.stack"),
        ({"host": "pdp-11"}, {}, "network.host"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    network: dict[str, Any], program: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError) as refused:
        simulate(scenario({**ETHERNET, **network}, {**RING, **program}))
    assert words in str(refused.value)
