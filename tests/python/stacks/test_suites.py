"""A sample of the public suites over what is offered here; the whole is `make suites`."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests_stacks import LIMIT_S, configured, nothing_left

from wiretwin.errors import InputError, MeasureError
from wiretwin.testbed import Testbed

SUITES = Path(__file__).parents[2] / "suites"
sys.path.append(str(SUITES))  # where a file of the suites finds its neighbours


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"suites_{name}", SUITES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def suites() -> ModuleType:
    return _module("run")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTEST_OF", str(os.getpid()))
    with nothing_left():
        yield


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_tests_of_mpi4py_pass_over_the_direct_transport(library: str, suites: ModuleType) -> None:
    configured(f"mpi4py/{library}+direct")
    try:
        with suites.ARMS["direct"].open(library, LIMIT_S) as (_, ours):
            for case in suites.cases(sample=True):
                found = suites.outcome(case, library, ours)
                assert (found["ended"], found["wrong"]) == ("status 0", []), (case.name, found)
                assert found["ran"] > found["skipped"], case.name
    except (InputError, MeasureError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("mpich", "test_doc"),
        ("mpich", "test_dynproc"),
        ("mpich", "test_util_sync"),
        ("mpich", "test_win"),
        ("openmpi", "test_msgzero"),
    ],
)
def test_tests_of_mpi4py_pass_in_the_simulated_world(library: str, name: str, suites: ModuleType) -> None:
    (case,) = _module("cases").mpi4py_cases([name], [2])
    with suites.ARMS["simulated"].open(library, LIMIT_S) as (_, ours):
        found = suites.outcome(case, library, ours)
    assert (found["ended"], found["wrong"]) == ("status 0", []), found
    assert found["ran"] > found["skipped"]


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_a_network_that_loses_repeats_and_reorders_changes_no_byte(library: str) -> None:
    configured(f"mpi4py/{library}+direct")
    lossy = _module("lossy")
    try:
        with Testbed.up(2, lossy.link(), name=f"lossy-{os.getpid()}") as bed:
            found = lossy.exchange(library, bed, 4e6, LIMIT_S)
    except (InputError, MeasureError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    assert found["equal"] == [True, True], found
    assert found["bytes"] >= 4e6


def test_what_passes_by_itself_and_not_over_the_arm_is_said(suites: ModuleType) -> None:
    own = {"ended": "status 0", "ran": 3, "skipped": 0, "wrong": []}
    assert suites.worse(own, own) == []
    assert suites.worse(own, own | {"ended": "the time limit"}) == ["ended with the time limit"]
    assert suites.worse(own, own | {"skipped": 3}) == [
        "ran 3 tests, 3 of them skipped, where the library ran 3 tests, 0 of them skipped"
    ]
    failed = own | {"ended": "status 1", "wrong": ["test_a (test_b.C.test_a)"]}
    assert suites.worse(failed, failed) == [], "it does not pass by itself"
    assert suites.worse(own, failed)[0] == "test_a (test_b.C.test_a)"


def test_defects_that_a_benchmark_of_intels_counts_are_found(suites: ModuleType) -> None:
    table = (
        "[0] # Benchmarking PingPong\n[0]  #bytes  t[usec]  defects\n[0]  0  0.12  0.00\n[0]  8  0.20  {}\n"
    )
    assert suites._imb_said(table.format("0.00")) == {"ran": 1}
    assert suites._imb_said(table.format("2.00")) == {"wrong": ["defects"], "ran": 1}
    assert suites._imb_said("# Benchmarking Barrier\n t[usec]\n 2.50\n") == {"ran": 1}


def test_turns_over_a_network_that_loses_come_to_bytes_of_both_ways() -> None:
    lossy = _module("lossy")
    turn = {"bytes": 500, "messages": 10, "took_s": 1.5, "equal": [True, True]}
    assert lossy.together([turn, turn | {"equal": [True, False]}]) == {
        "bytes": 2000,
        "messages": 40,
        "took_s": 3.0,
        "turns": 2,
        "turns with equal digests": 1,
    }
