"""Shipped programs on simulated local networks, and who is fastest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from wiretwin._core import lan_run
from wiretwin.errors import InputError, SimulationError
from wiretwin.model.echo import SEED
from wiretwin.model.profiles import Network, lan_json
from wiretwin.papers.records import Record

__all__ = ["SIDED", "Order", "Ran", "orders", "run_program"]

SIDED = ("mm", "pde")
"""Programs whose size is no message's: the rows, and columns, of what they compute."""


@dataclass(frozen=True)
class Ran:
    """A program that has run.

    Attributes
    ----------
    elapsed_s
        The slowest rank's, of the program proper.
    share
        Of the time of a cable or ring that the program's own frames took; none on ATM.
    digest
        Of the run and of its results.
    circuits, set_up_s
        Circuits, and leaves of trees, that calls have set up, and when the last of them was there; 0 where
        all are permanent.
    to_several
        Messages that went to several ranks as one.
    """

    elapsed_s: float
    share: float | None
    digest: str
    circuits: int = 0
    set_up_s: float = 0.0
    to_several: int = 0


def run_program(
    network: Network,
    program: str,
    parameters: Mapping[str, int],
    costs_s: Mapping[str, float],
    seed: int = SEED,
) -> Ran:
    """Run a shipped program, one rank a host; it computes for real, and work takes what `costs_s` says.

    Raises
    ------
    InputError
        The network, the program or a parameter is rejected.
    SimulationError
        The program did not end, or its result is not that of the sequential program.
    """
    costs = {kind: round(cost * 1e12) for kind, cost in costs_s.items()}
    text = json.dumps({**parameters, "costs_ps": costs})
    try:
        ran = lan_run(lan_json(network), program, text, seed)
    except ValueError as error:
        raise InputError(reason=str(error)) from None
    except RuntimeError as error:
        raise SimulationError(f"{program} {dict(parameters)} over {network.stack}: {error}") from None
    if not ran["verified"]:
        raise SimulationError(f"{program} {dict(parameters)} over {network.stack}: the result is wrong")
    shared = network.stack.split("/")[-1] in ("ethernet", "fddi")
    return Ran(
        max(ran["elapsed_ps"]) / 1e12,
        ran["carried_ps"] / ran["end_ps"] if shared else None,
        f"{ran['digest']} {' '.join(ran['results'])}",
        ran["circuits"],
        ran["set_up_ps"] / 1e12,
        ran["sent_to_several"],
    )


@dataclass(frozen=True)
class Order:
    """Who is how fast at one size of one program.

    Attributes
    ----------
    of
        Experiment, program, size and what else tells it from others.
    fastest_first
        Stack and network, with the time in seconds.
    """

    of: str
    fastest_first: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """In one line."""
        return f"{self.of}: " + ", ".join(f"{who} {time:.4g} s" for who, time in self.fastest_first)


def orders(records: Iterable[Record]) -> list[Order]:
    """Order the stacks and networks at every size of every program, those that run alone left out."""
    found: dict[str, list[tuple[str, float]]] = {}
    for record in records:
        if record.metric != "time_s":
            continue
        keys = record.keys
        if not {"program", "stack", "network"} <= set(keys):
            continue
        of = " ".join(
            [record.experiment, *(keys[key] for key in ("program", "size", "accuracy") if key in keys)]
        )
        load = f" at load {keys['load']}" if "load" in keys else ""
        who = f"{keys['stack'].split('/')[0]} on {keys['network']}{load}"
        found.setdefault(of, []).append((who, record.predicted))
    return [Order(of, tuple(sorted(times, key=lambda one: one[1]))) for of, times in found.items()]
