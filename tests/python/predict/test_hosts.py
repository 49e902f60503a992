"""The network of several hosts, made from an echo between two."""

from __future__ import annotations

import json

import pytest

from wiretwin._core import run_program
from wiretwin.errors import InputError
from wiretwin.predict.hosts import ON_ETHERNET, echo_network
from wiretwin.twin import Base, Costs, Figure, Rate, Segment

RATE = 10_000_000
BYTE_NS = 8e9 / RATE
ENDS_NS = 30_000.0


def figure(value: float) -> Figure:
    return Figure(value=value, low=value, high=value, launches=3, samples=30)


def line(base_ns: float, per_byte_ns: float) -> Segment:
    base = Base(value=base_ns, low=base_ns, high=base_ns)
    rate = Rate(value=per_byte_ns, low=per_byte_ns, high=per_byte_ns)
    return Segment(from_bytes=0, base_ns=base, per_byte_ns=rate, samples=30)


def echo_of(size: int) -> float:
    """Half a round trip in ns: twice the headers, the bytes once, and the ends."""
    return 2 * ON_ETHERNET * BYTE_NS + ENDS_NS + size * BYTE_NS


def layer() -> Costs:
    return Costs(
        t_0_us=figure(echo_of(4) / 1e3),
        r_max_MB_s=figure(RATE / 8e6),
        n_half_bytes=figure(100.0),
        half_round_trip=(line(echo_of(0), BYTE_NS),),
    )


def elapsed_ns(name: str, parameters: dict[str, object], hosts: int, cores: int = 8) -> float:
    network = json.dumps(echo_network(layer(), hosts, cores=cores))
    run = run_program(name, json.dumps(parameters), network, hosts, 1)
    assert all(outcome["verified"] for outcome in run["outcomes"])
    return run["outcomes"][0]["elapsed_ps"] / 1e3


@pytest.mark.parametrize("size", [0, 4, 1000, 65536])
def test_an_echo_in_the_network_takes_what_it_was_made_from(size: int) -> None:
    found = elapsed_ns("echo", {"bytes": size, "rounds": 5}, 2)
    assert found == pytest.approx(5 * 2 * echo_of(size), rel=1e-4)


def test_blocks_that_go_to_one_host_share_its_link() -> None:
    side = 64
    parameters = {"n": side, "rounds": 1, "costs_ps": {"multiply-add": 0}}
    found = elapsed_ns("mm", parameters, 4)
    stripe, block = side // 2 * side * 8, (side // 2) ** 2 * 8
    # Rank 0 sends two stripes one after the other, and three blocks come over its one receiver.
    wire = (2 * stripe + 3 * block + 4 * ON_ETHERNET) * BYTE_NS
    assert wire < found < wire + 4 * (ENDS_NS + ON_ETHERNET * BYTE_NS) + stripe * BYTE_NS


def test_hosts_on_the_cores_of_one_machine_work_in_turns() -> None:
    parameters = {"n": 16, "accuracy": 3, "costs_ps": {"sor-point": 100_000_000}}
    points = 16 * 16 * 16 * 100_000.0
    assert elapsed_ns("pde", parameters, 4, cores=1) > points
    assert elapsed_ns("pde", parameters, 4, cores=4) < 0.6 * points


@pytest.mark.parametrize(("hosts", "cores", "words"), [(1, 1, "hosts: 1"), (2, 0, "cores: 0")])
def test_what_cannot_be_is_refused(hosts: int, cores: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        echo_network(layer(), hosts, cores=cores)
