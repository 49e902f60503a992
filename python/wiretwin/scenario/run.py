"""Running a scenario: a few numbers with their units, and the digest of the run."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wiretwin.errors import InputError
from wiretwin.scenario.model import EchoTable, ProgramTable, Scenario, SwitchTable, TariffTable
from wiretwin.scenario.percentile import late

if TYPE_CHECKING:
    from wiretwin.predict.named import NamedRank
    from wiretwin.predict.together import Job, Part

__all__ = ["Outcome", "check", "simulate"]


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes
    ----------
    metrics
        Numbers by name; a name ends in its unit where it has one. One that the run could not say is NaN.
        Where there are several programs, the label of one and a point stand before its own.
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
    if scenario.port is not None and scenario.background is not None and scenario.task is not None:
        from wiretwin.scenario.service import run

        tariff = scenario.tariff or TariffTable()
        return Outcome(*run(scenario.port, scenario.background, scenario.task, tariff, chosen))
    if scenario.switch is not None:
        return _switch(scenario.switch, chosen)
    with _by_key("echo" if scenario.echo is not None else "program"):
        if scenario.echo is not None:
            return _echo(scenario, scenario.echo, chosen)
        return _programs(scenario, chosen)


def check(scenario: Scenario) -> None:
    """Reject a network that cannot be, or not under the stack of what is on it; nothing is run.

    Raises
    ------
    InputError
        See above.
    """
    from wiretwin.model import read_network

    if scenario.network is None:
        return
    table = scenario.echo or scenario.program[0]
    with _by_key("echo" if scenario.echo is not None else "program"):
        read_network(scenario.network, stack=table.stack, hosts=2)


@contextlib.contextmanager
def _by_key(table: str) -> Iterator[None]:
    """Name the scenario's own keys where an option is rejected."""
    try:
        yield
    except InputError as error:
        option, _, rest = str(error.key or "").partition(" ")
        renamed = {
            "--network": f"network.{rest}".rstrip("."),
            "--stack": f"{table}.stack",
            "--ranks": f"{table}.ranks",
            "--ranks-per-host": "ranks_per_host",
            "--twin": "twin",
        }
        if option not in renamed:
            raise
        raise InputError(
            key=renamed[option], value=error.value, reason=error.reason, allowed=error.allowed
        ) from None


def _switch(wanted: SwitchTable, seed: int) -> Outcome:
    from wiretwin._core import switch_carries

    rounds = wanted.iterations or 4
    seen = switch_carries(wanted.scheduler, rounds, wanted.ports, wanted.load, wanted.slots, seed)
    metrics = {
        "carried_ratio": seen["carried"],
        "offered_ratio": seen["offered"],
        "mean_wait_slots": seen["mean_wait_slots"],
    }
    return Outcome(metrics, hashlib.sha256(repr(metrics).encode()).hexdigest()[:32])


def _echo(scenario: Scenario, wanted: EchoTable, seed: int) -> Outcome:
    from wiretwin.model.echo import try_echo
    from wiretwin.predict.model import Site

    site = Site.of(2, scenario.network, scenario.ranks_per_host, wanted.stack)
    if site.local is None:
        from wiretwin.predict.named import NAMED, run_simulated

        words = [f"bytes={wanted.size:g}", f"rounds={wanted.rounds}"]
        run = run_simulated(
            NAMED["echo"], words, twin=scenario.twin, layer=wanted.stack, network=site.network, seed=seed
        )
        mean = 1e6 * run.ranks[0].elapsed_s / wanted.rounds / 2
        return Outcome({"latency_us": mean}, _digest(run.ranks))
    site.twin_for(scenario.twin)
    try:
        (trial,) = try_echo(site.local.settings, [round(wanted.size)], wanted.rounds, seed)
    except InputError as error:
        said = str(error)
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


def _programs(scenario: Scenario, seed: int) -> Outcome:
    from wiretwin.predict.named import NAMED, run_simulated
    from wiretwin.predict.together import ENDLESS, run_together

    jobs = [_job(one) for one in scenario.program]
    one = jobs[0]
    for job in jobs:
        if job.name not in (*NAMED, *ENDLESS):
            raise InputError(key="program.name", value=job.name, allowed=", ".join([*NAMED, *ENDLESS]))
    if len(jobs) == 1 and one.hosts is None and one.name in NAMED:
        run = run_simulated(
            NAMED[one.name],
            one.words,
            twin=scenario.twin,
            layer=one.stack,
            ranks=one.ranks,
            network=scenario.network,
            ranks_per_host=scenario.ranks_per_host,
            seed=seed,
        )
        return Outcome({**_of_ranks(run.ranks), **run.congestion}, _digest(run.ranks))
    together = run_together(
        jobs,
        twin=scenario.twin,
        network=scenario.network,
        ranks_per_host=scenario.ranks_per_host,
        seed=seed,
    )
    metrics = {"time_s": together.end_s}
    for label, part in zip(scenario.labels, together.parts, strict=True):
        found = _of_ranks(part.ranks) if part.ranks else _of_endless(part, together.end_s)
        metrics |= {f"{label}.{key}": value for key, value in found.items()}
    metrics |= together.congestion
    said = [together.digest, *(_digest(part.ranks) for part in together.parts)]
    return Outcome(metrics, hashlib.sha256("\n".join(said).encode()).hexdigest()[:32])


def _job(table: ProgramTable) -> Job:
    from wiretwin.predict.together import Job

    words = tuple(f"{key}={value}" for key, value in table.parameters.items())
    return Job(table.name, words, table.size, table.hosts, table.stack)


def _of_ranks(ranks: tuple[NamedRank, ...]) -> dict[str, float]:
    """Return the time of the slowest rank, where it went, and the share of ranks whose result is right."""
    slowest = max(ranks, key=lambda rank: rank.total_s)
    metrics = {"time_s": slowest.total_s} | {f"{part}_s": time for part, time in slowest.parts_s.items()}
    return metrics | {"verified_ratio": sum(rank.verified for rank in ranks) / len(ranks)}


def _of_endless(part: Part, end_s: float) -> dict[str, float]:
    """Return the mean and the 99th percentile of calls; or the throughput of streams, and how fair it is."""
    if part.job.name == "calls":
        times = sorted(time for one in part.response_us for time in one)
        mean = sum(times) / len(times) if times else math.nan
        return {"response_us": mean, "response_p99_us": late(times), "calls": float(len(times))}
    rates = [8e-6 * count / end_s for count in part.received_bytes]
    squares = sum(rate * rate for rate in rates)
    fair = sum(rates) ** 2 / (len(rates) * squares) if squares else math.nan
    return {"throughput_Mbit_s": sum(rates), "jain_ratio": fair}


def _digest(ranks: tuple[NamedRank, ...]) -> str:
    said = [f"{rank.rank} {rank.total_s!r} {rank.digest}" for rank in ranks]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:32]
