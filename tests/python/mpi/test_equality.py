"""The simulated mpi4py answers what the real one does, call by call, on 1 to 5 ranks."""

from __future__ import annotations

import ast
import json
import sys
from functools import lru_cache
from typing import Any

import pytest
from mpi_help import HERE, launcher, model

from wiretwin import process
from wiretwin.model import LocalNetwork
from wiretwin.mpi import simulate
from wiretwin.mpi.compute import Given

PROGRAM = HERE / "equality" / "main.py"
RANKS = (1, 2, 3, 4, 5)

CASES = [
    node.name
    for file in sorted(PROGRAM.parent.glob("*.py"))
    for node in ast.parse(file.read_text()).body
    if isinstance(node, ast.FunctionDef) and any(ast.unparse(d) == "case" for d in node.decorator_list)
]


@lru_cache
def real(ranks: int) -> dict[str, Any]:
    argv = [*launcher(ranks), sys.executable, str(PROGRAM)]
    done = process.run(argv, limit_s=120.0, env=process.single_threaded())
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


@lru_cache
def simulated(ranks: int) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads(simulate(PROGRAM, [], ranks, model(ranks)).stdout[0])
    return answers


def test_every_case_is_run() -> None:
    assert len(CASES) > 30
    assert sorted(simulated(1)) == sorted(CASES) == sorted(real(1))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", CASES)
def test_equal_to_real_mpi(name: str, ranks: int) -> None:
    expected, got = real(ranks)[name], simulated(ranks)[name]
    assert len(expected) == ranks
    assert any(expected), "a case that says nothing compares nothing"
    assert got == expected


@pytest.mark.parametrize(("cores", "idle"), [(1, "spin"), (1, "yield"), (1, "sleep"), (2, "spin")])
def test_answers_do_not_depend_on_the_network(cores: int, idle: str) -> None:
    slow = json.loads(model(3, cores=cores, call_ps=0))
    slow["nodes"][0]["idle"] = idle
    slow["intra"]["rendezvous_from_bytes"] = 1
    slow["intra"]["latency"][0]["base_ps"] = 900_000_000
    answers = json.loads(simulate(PROGRAM, [], 3, json.dumps(slow)).stdout[0])
    assert answers == simulated(3)


@pytest.mark.parametrize(
    ("network", "stack"),
    [
        ("asx100", "mpi-lam/tcp/aal5"),
        ("an2:credits=none", "mpi-mpich/tcp/aal5"),
        ("ethernet10", "mpi/tcp/ethernet"),
        ("fddi", "mpi-mpich/tcp/fddi"),
        ("gige:nic=gnic-ii", "mpi-lam/tcp/gige"),
        ("gige", "mpi-mvich/gige"),
    ],
)
def test_answers_are_the_same_on_networks_with_hosts_of_their_own(network: str, stack: str) -> None:
    local = LocalNetwork.parse(network, stack=stack, hosts=3)
    run = simulate(PROGRAM, [], 3, json.dumps({"local": local.plan}))
    # Which ranks share memory is the only thing that a program can see of where they are.
    expected = {name: answer for name, answer in simulated(3).items() if name != "split_dup"}
    got: dict[str, Any] = json.loads(run.stdout[0])
    assert len(got.pop("split_dup")) == 3
    assert got == expected
    # Where the time went sums to each rank's clock.
    totals = sum(int(part.sum()) for part in run.totals_ps.values())
    assert totals == sum(run.end_ps) > 0
    # The same network gives the same run.
    assert simulate(PROGRAM, [], 3, json.dumps({"local": local.plan}), compute=Given(0)).digest == (
        simulate(PROGRAM, [], 3, json.dumps({"local": local.plan}), compute=Given(0)).digest
    )
