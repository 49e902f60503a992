"""Lin et al. 1995, beyond their tables: the first message of an echo, and an echo on a loaded ATM network."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from wiretwin.model.echo import Trial, try_echo
from wiretwin.model.profiles import Load
from wiretwin.papers.lin1995_settings import (
    NETWORKS,
    PAPER,
    Setting,
    fore_setting,
    paper,
    renamed,
    sized,
    socket_setting,
)
from wiretwin.papers.records import Record
from wiretwin.student import quantile

__all__ = ["LOADS", "first_message", "under_load", "upgrades"]

FIRST_SIZES = (4, 4096, 65_536)
FIRST_ROUNDS = 11

LOADS = (0.0, 0.3, 0.6, 0.9)
LOADED_SIZES = (4, 4096)
LOADED_ROUNDS = 41
LOAD_OCTETS = 1496
"""A datagram of 1460 bytes of UDP with its headers and those of LLC and SNAP: 32 cells."""
RESERVED_MBIT_S = 44.0
"""What circuits of the Fore interface with bandwidth get each way: a choice, less than half of the line."""


def upgrades() -> list[Setting]:
    """List what newer parts would make of two hosts: a driver outside STREAMS, and lines of 155 Mbit/s."""
    stacks = ("fore/aal5", "socket/tcp/aal5")
    parts = (("series-200-direct", "taxi100"), ("series-200", "oc3c"), ("series-200-direct", "oc3c"))
    found = []
    for host in ("sparc2", "4/690"):
        for stack in stacks:
            for adapter, link in parts:
                base = fore_setting(host, "series-200", switch=True, stack=stack)
                if stack.startswith("socket"):
                    base = socket_setting("atm", host)
                network = replace(base.network, adapter=adapter, link=link)
                shown = None if link == "taxi100" else link
                found.append(Setting(renamed(base.case, adapter=adapter, link=shown), network))
    return found


def first_message(quick: bool) -> tuple[list[Record], list[str]]:
    """Return the first round trip, and by how much it takes longer than the mean of the others.

    What a first message takes besides is an input, half of it at each end; a slow start comes on top where
    the message is long. The interval is that of the input.
    """
    records: list[Record] = []
    runs: list[str] = []
    settings = [fore_setting("4/690", "series-200", switch=True), *(socket_setting(one) for one in NETWORKS)]
    sizes = FIRST_SIZES[:1] if quick else FIRST_SIZES
    for setting in settings:
        family = setting.network.stack.split("/")[0]
        low, high = paper()["first_message"]["penalty_ms"][family]
        # The sender of either direction pays once.
        ends = [replace(setting.network, first_use_ms=one / 2) for one in (low, (low + high) / 2, high)]
        trials = [try_echo(network, sizes, FIRST_ROUNDS) for network in ends]
        runs += [trial.digest for of_end in trials for trial in of_end]
        for at, size in enumerate(sizes):
            name = sized(setting.case, size)
            first = [of_end[at].first_us for of_end in trials]
            penalty = [of_end[at].first_us - float(np.mean(of_end[at].round_trip_us)) for of_end in trials]
            for metric, values in (("first_round_trip_us", first), ("first_penalty_us", penalty)):
                records.append(
                    Record(
                        PAPER,
                        "first-message",
                        name,
                        metric,
                        values[1],
                        min(values),
                        max(values),
                        "prediction",
                    )
                )
    return records, runs


def _loaded(setting: Setting, load: float) -> Setting:
    """Load the outputs of the switch to both hosts, in the class of the circuits themselves."""
    if not load:
        return setting
    both = tuple(Load(load, octets=LOAD_OCTETS, to=host) for host in (0, 1))
    return Setting(setting.case, replace(setting.network, load=both))


def under_load(quick: bool) -> tuple[list[Record], list[str]]:
    """Return latency and losses beside load without reserved bandwidth that goes to both hosts.

    The Fore interface on circuits without reserved bandwidth and with it (``mechanism=reserved``), and
    stream sockets, whose circuits have none.
    """
    fore = fore_setting("4/690", "series-200", switch=True)
    reserved = Setting(fore.case, replace(fore.network, reserve_Mbit_s=RESERVED_MBIT_S))
    records: list[Record] = []
    runs: list[str] = []
    for setting, mechanism in ((fore, None), (reserved, "reserved"), (socket_setting("atm"), None)):
        for load in LOADS[::2] if quick else LOADS:
            network = _loaded(setting, load).network
            rounds = 11 if quick else LOADED_ROUNDS
            for size, trial in zip(LOADED_SIZES, try_echo(network, LOADED_SIZES, rounds), strict=True):
                name = sized(setting.case, size, load=load, mechanism=mechanism)
                records += _of_trial(name, trial, sockets=network.stack.startswith("socket"))
                runs.append(trial.digest)
    return records, runs


def _of_trial(name: str, trial: Trial, *, sockets: bool) -> list[Record]:
    def record(metric: str, value: float, half: float | None = None) -> Record:
        low, high = (None, None) if half is None else (value - half, value + half)
        return Record(PAPER, "under-load", name, metric, value, low, high, "prediction")

    found = []
    latency = trial.round_trip_us / 2
    if len(latency) > 1:
        spread = float(np.std(latency, ddof=1)) / math.sqrt(len(latency))
        half = quantile(len(latency) - 1, 0.95) * spread
        found.append(record("latency_us", float(np.mean(latency)), half))
    found.append(record("cell_loss_ratio", trial.lost_cells / max(1, trial.cells)))
    if sockets:
        found.append(record("tcp_retransmission_ratio", trial.repeated / max(1, trial.segments)))
    else:
        found.append(record("message_loss_ratio", trial.lost / trial.rounds))
    return found
