"""MPIs between two hosts of a testbed: what they send crosses the network, and nothing is left there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stacks_help import installed

from wiretwin.errors import StorageError
from wiretwin.measure.job import on_stack
from wiretwin.measure.launch import launch
from wiretwin.measure.schedule import Step
from wiretwin.place import HERE, Place
from wiretwin.stacks import StackError
from wiretwin.stacks.layers import parse_layers
from wiretwin.testbed import Testbed

LIMIT_S = 90.0
BETWEEN = ("mpi/openmpi+tcp", "mpi/lam+lamd")
"""Variants; each library as it is by default is measured with every other layer in one go."""
PROGRAM = {"name": "ring", "elements": 1001, "rounds": 2}


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    with Testbed.up(2) as testbed:
        yield testbed


@pytest.mark.parametrize("name", BETWEEN)
def test_messages_cross_the_network(bed: Place, name: str) -> None:
    configuration = installed(name)
    size, samples = 4096, 20
    step = Step("echo", size, warmup=2, min_samples=samples, max_samples=samples, batch=1)
    before = bed.counters()
    outcome = launch(configuration, [step], limit_s=LIMIT_S, pins=None, place=bed)
    assert (outcome.status, outcome.error) == ("ok", None)
    for host, counters in bed.counters().items():
        # Each way at least the payload of the samples.
        assert (counters - before[host]).bytes_out >= size * samples


@pytest.mark.parametrize("name", ["mpi/mpich", "mpi/openmpi", "mpi/lam"])
def test_four_ranks_on_two_hosts_compute_what_four_on_one_do(bed: Place, name: str) -> None:
    configuration = installed(name)
    before = bed.counters()
    there = on_stack("ring", PROGRAM, configuration, 4, LIMIT_S, bed)
    # Neighbours of the ring live on different hosts.
    assert all((now - before[host]).bytes_out > 8 * 1001 for host, now in bed.counters().items())
    here = on_stack("ring", PROGRAM, configuration, 4, LIMIT_S, HERE)
    assert [rank["digest"] for rank in there] == [rank["digest"] for rank in here]
    assert all(rank["verified"] for rank in there)


def test_a_host_that_is_gone_is_an_error_and_no_wait() -> None:
    (configuration,) = parse_layers("mpi/lam")
    installed("mpi/lam")
    with Testbed.up(2) as testbed:
        stack = configuration.kind.stack
        assert stack is not None
    with pytest.raises((StackError, StorageError)), stack.up(testbed, configuration.options):
        pytest.fail("came up at hosts that are gone")
