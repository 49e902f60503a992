"""Lin et al. 1995, beyond their tables: what setting circuits up takes, and one message to many on a tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wiretwin.errors import InputError, SimulationError
from wiretwin.model.echo import measure, try_echo
from wiretwin.model.profiles import Network
from wiretwin.papers.lin1995_fore import BIGGER, HOSTS
from wiretwin.papers.lin1995_interfaces import interfaces
from wiretwin.papers.lin1995_pvm import pvm_setting
from wiretwin.papers.lin1995_settings import (
    PAPER,
    Setting,
    fore_setting,
    program_setting,
    renamed,
    sized,
)
from wiretwin.papers.programs import run_program
from wiretwin.papers.records import Record

__all__ = ["TOPOLOGIES", "circuits", "properties"]

TOPOLOGIES = ("demand", "mesh", "hypercube", "tree", "all")
HOST = "sparc2"
ROUNDS = 6
SIZES = (1024, 65_536)
FIRST_SIZES = (4, 4096, 65_536)
FIRST_ROUNDS = 6


def _of(hosts: int, network: Network) -> Network:
    network = replace(network, hosts=hosts)
    return replace(network, overrides=BIGGER) if hosts > 24 else network


def _cast(network: Network, size: int, rounds: int) -> tuple[float, int, float, int, str]:
    ran = run_program(network, "cast", {"bytes": size, "rounds": rounds}, {})
    return ran.elapsed_s, ran.circuits, ran.set_up_s, ran.to_several, ran.digest


def circuits(quick: bool) -> tuple[list[Record], list[str]]:
    """Return how long the circuits of a topology take to be there, and how long one message to many takes.

    All topologies are set up by the one control processor of the switch; the tree of the first message to
    many comes on top, with a circuit each way between the root and a leaf where there is none. What a message
    to all takes, up to the last answer, is the mean of all rounds but the first. What a first message takes
    longer than others is the set-up of a circuit each way.
    """
    records: list[Record] = []
    runs: list[str] = []

    def record(name: str, metric: str, value: float) -> None:
        records.append(Record(PAPER, "circuits", name, metric, value, None, None, "prediction"))

    over = fore_setting(HOST, "series-200", switch=True, stack="pvm-fore/aal5")
    for hosts in HOSTS[:2] if quick else HOSTS:
        # All pairs of 64 hosts ask for more than the control processor does before they ask again.
        for topology in TOPOLOGIES if hosts < 64 else TOPOLOGIES[:-1]:
            network = replace(_of(hosts, over.network), circuits=topology)
            _, made, set_up_s, _, digest = _cast(network, 4, 1)
            runs.append(digest)
            name = renamed(over.case, mechanism=topology, ports=hosts)
            record(name, "circuits", float(made))
            record(name, "set_up_us", set_up_s * 1e6)
    ways: list[tuple[Setting, str]] = [
        (Setting(over.case, replace(over.network, circuits="tree")), "multicast"),
        (over, "each"),
        (pvm_setting("advise", host=HOST), "each"),
    ]
    for hosts in HOSTS[:1] if quick else HOSTS[:2]:
        for setting, mechanism in ways:
            for size in SIZES:
                network = _of(hosts, setting.network)
                first, *_, one = _cast(network, size, 1)
                whole, *_, other = _cast(network, size, ROUNDS)
                runs += [one, other]
                name = renamed(setting.case, program="cast", size=size, mechanism=mechanism, ports=hosts)
                record(name, "round_us", (whole - first) / (ROUNDS - 1) * 1e6)
    alone = program_setting("4/690")
    sizes = FIRST_SIZES[:1] if quick else FIRST_SIZES
    trials = try_echo(replace(alone.network, circuits="demand"), sizes, FIRST_ROUNDS)
    for size, trial in zip(sizes, trials, strict=True):
        runs.append(trial.digest)
        name = renamed(sized(alone.case, size), stack=alone.network.stack, mechanism="demand")
        record(name, "first_penalty_us", trial.first_us - float(np.mean(trial.round_trip_us)))
    return records, runs


ADAPTATION = ("aal0", "aal1", "aal2", "aal34", "aal5")
TRANSPORTS = ("tcp/aal5", "udp/aal5")


def _echoes(network: Network) -> bool:
    try:
        measure(network, [4], rounds=2)
    except (InputError, SimulationError):
        return False
    return True


def _sends_to_several(network: Network) -> bool:
    """Whether one message goes to several hosts as one, where circuits may be set up for it."""
    network = replace(network, hosts=3)
    for tried in (replace(network, circuits="demand"), network):
        try:
            return run_program(tried, "cast", {"bytes": 1024, "rounds": 1}, {}).to_several > 0
        except (InputError, SimulationError):
            # It sets no circuits up, or carries no messages of programs.
            continue
    return False


def properties(_quick: bool) -> tuple[list[Record], list[str]]:
    """Return what else the interfaces of ``table7`` can do, by trying it on ATM; 1 is yes."""
    records: list[Record] = []
    for setting in interfaces():
        layer = setting.network.stack.split("/")[0]
        under = [replace(setting.network, stack=f"{layer}/{one}") for one in (*ADAPTATION, *TRANSPORTS)]
        for metric, value in (
            ("protocols", float(sum(_echoes(network) for network in under))),
            ("multicast", float(_sends_to_several(setting.network))),
        ):
            records.append(Record(PAPER, "properties", setting.case, metric, value, None, None, "prediction"))
    return records, []
