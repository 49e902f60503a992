"""Running a scenario: a few numbers with their units, and the digest of the run."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wiretwin.errors import InputError
from wiretwin.scenario.model import EchoTable, NetworkTable, ProgramTable, Scenario, TariffTable, TwinTable

if TYPE_CHECKING:
    from wiretwin.predict.named import Named, NamedRun

__all__ = ["Outcome", "simulate"]


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes
    ----------
    metrics
        Numbers by name; a name ends in its unit where it has one. One that the run could not say is NaN.
    digest
        Of everything the run did that can be observed: the same for the same scenario and seed, anywhere.
    """

    metrics: dict[str, float]
    digest: str


def simulate(scenario: Scenario, *, seed: int | None = None) -> Outcome:
    """Run a scenario once.

    Parameters
    ----------
    scenario
        What to run.
    seed
        In place of the scenario's own.

    Raises
    ------
    InputError
        A name in it is not known.
    SimulationError
        The run could not go on.
    """
    chosen = scenario.seed if seed is None else seed
    if scenario.network is not None and scenario.echo is not None:
        return _echo(scenario.network, scenario.echo, chosen)
    if scenario.port is not None and scenario.background is not None and scenario.task is not None:
        from wiretwin.scenario.service import run

        tariff = scenario.tariff or TariffTable()
        return Outcome(*run(scenario.port, scenario.background, scenario.task, tariff, chosen))
    assert scenario.program is not None  # checked when the scenario was made
    if scenario.network is not None:
        return _program_on(scenario.network, scenario.program, chosen)
    assert scenario.twin is not None
    return _program(scenario.twin, scenario.program, chosen)


def _echo(table: NetworkTable, wanted: EchoTable, seed: int) -> Outcome:
    from wiretwin.model.echo import try_echo
    from wiretwin.scenario.network import built, check

    try:
        (trial,) = try_echo(built(table), [round(wanted.size)], wanted.rounds, seed)
    except InputError as error:
        # By the key of the scenario, where it has one.
        check(table)
        said = str(error)
        _, _, allowed = said.partition("; allowed: ")
        if said.startswith("network: reservations"):
            shown = f"{table.reserve:g} Mbit/s"
            raise InputError(key="network.reserve", value=shown, allowed=allowed) from None
        if said.startswith("a message of "):
            _, _, allowed = said.partition(": ")
            raise InputError(key="echo.size", value=f"{wanted.size:g} B", allowed=allowed) from None
        raise
    half = trial.round_trip_us / 2
    ended = len(half) > 0
    metrics = {
        "latency_us": float(half.mean()) if ended else math.nan,
        "latency_min_us": float(half.min()) if ended else math.nan,
        "latency_max_us": float(half.max()) if ended else math.nan,
        "first_us": float(trial.first_us) / 2,
        "lost_rounds_ratio": trial.lost / trial.rounds,
        "cell_loss_ratio": trial.lost_cells / trial.cells if trial.cells else 0.0,
        "tcp_retransmission_ratio": trial.repeated / trial.segments if trial.segments else 0.0,
    }
    return Outcome(metrics, trial.digest)


def _named(wanted: ProgramTable) -> tuple[Named, list[str]]:
    """Return the program of a table, and its parameters as words."""
    from wiretwin.predict.named import NAMED

    if wanted.name not in NAMED:
        raise InputError(key="program.name", value=wanted.name, allowed=", ".join(NAMED))
    return NAMED[wanted.name], [f"{key}={value}" for key, value in wanted.parameters.items()]


def _program_on(table: NetworkTable, wanted: ProgramTable, seed: int) -> Outcome:
    """Run a program on a local network, a rank on each host."""
    from wiretwin.model.profiles import lan_json
    from wiretwin.predict.named import run_on
    from wiretwin.scenario.network import built, check

    program, words = _named(wanted)
    if wanted.ranks != table.hosts:
        raise InputError(
            key="program.ranks", value=wanted.ranks, allowed=f"{table.hosts}, as many as network.hosts"
        )
    network = built(table)
    check(table)
    return _came_to(run_on(program, words, json.loads(lan_json(network)), table.stack, seed=seed))


def _program(twin: TwinTable, wanted: ProgramTable, seed: int) -> Outcome:
    from wiretwin.predict.named import run_simulated

    program, words = _named(wanted)
    run = run_simulated(
        program,
        words,
        twin=twin.file,
        layer=twin.layer,
        ranks=wanted.ranks,
        network=twin.network,
        ranks_per_host=twin.ranks_per_host,
        seed=seed,
    )
    return _came_to(run)


def _came_to(run: NamedRun) -> Outcome:
    slowest = max(run.ranks, key=lambda rank: rank.total_s)
    metrics = {"time_s": run.seconds} | {f"{part}_s": time for part, time in slowest.parts_s.items()}
    metrics["verified_ratio"] = sum(rank.verified for rank in run.ranks) / len(run.ranks)
    said = [f"{rank.rank} {rank.total_s!r} {rank.digest}" for rank in run.ranks]
    return Outcome(metrics, hashlib.sha256("\n".join(said).encode()).hexdigest()[:32])
