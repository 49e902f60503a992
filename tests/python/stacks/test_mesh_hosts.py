"""Programs on four hosts of a testbed, over every kind of layer, give the sequential result."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

import pytest
from tests_stacks import LIMIT_S, configured, nothing_left

from wiretwin.errors import InputError, MeasureError
from wiretwin.predict.named import NAMED, run_live
from wiretwin.testbed import Testbed

HOSTS = 4
LAYERS = [
    "socket/tcp",
    "pvm/pvm3",
    "pvm/pvm3+advise",
    "mpi/mpich+yield",
    "mpi/openmpi+yield",
    "mpi/lam",
]
PROGRAMS = {
    "mm": ("n=26", "rounds=2"),
    "mm32": ("n=24", "bits=32", "rounds=1", "down=4"),
    "pde": ("n=18", "accuracy=3"),
    "md": ("x=6", "y=6", "z=5", "steps=3"),
}


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTEST_OF", str(os.getpid()))
    with nothing_left():
        yield


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    try:
        made = Testbed.up(HOSTS, name=f"mesh-{os.getpid()}")
    except (InputError, MeasureError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with made:
        yield made


@cache
def alone(program: str) -> str:
    """Return the digest of the result on one rank."""
    name = "mm" if program == "mm32" else program
    words = [word for word in PROGRAMS[program] if not word.startswith("down")]
    run = run_live(NAMED[name], words, ranks=1, limit_s=LIMIT_S)
    assert run.ranks[0].verified
    return run.ranks[0].digest


@pytest.mark.parametrize("layer", LAYERS)
def test_four_hosts_get_the_sequential_result(layer: str, bed: Testbed) -> None:
    configured(layer, bed)
    for program, words in PROGRAMS.items():
        name = "mm" if program == "mm32" else program
        before = {host: one.bytes_out for host, one in bed.counters().items()}
        run = run_live(NAMED[name], words, layer=layer, ranks=HOSTS, limit_s=LIMIT_S, place=bed)
        assert run.layer == layer
        assert all(rank.verified for rank in run.ranks)
        # The master's digest is of the whole result, by whatever layer it came together.
        assert run.ranks[0].digest == alone(program)
        for rank in run.ranks:
            assert 0 < rank.elapsed_s <= rank.total_s
        after = bed.counters()
        for host, sent in before.items():
            assert after[host].bytes_out - sent > 500, f"{host} took part over the network"
