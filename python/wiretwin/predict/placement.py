"""Which rank on which host: the placement with which a program is predicted to end first.

The program is recorded once in the simulated world and its computation measured once. Its messages are then
replayed with other placements: beginning with the hosts in the order of the network, two ranks change places,
or a rank moves to a host with room, as long as the slowest rank, or else the mean of the ranks, ends earlier.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from wiretwin.errors import InputError
from wiretwin.model import Network
from wiretwin.predict.model import AnyNetwork
from wiretwin.predict.predict import Forecast, Trace
from wiretwin.twin import Twin

__all__ = ["MOST_TRIED", "Placement", "hostfile", "place", "rankfile"]

MOST_TRIED = 500
"""So many placements are tried at most where no other number is asked for."""
WORTH = 1e-3
"""A placement that is faster by a smaller share is not better."""
MEAN = 0.1
"""What the mean over the ranks counts beside the slowest one: where one slow host decides when that ends, the
others are placed well all the same."""


@dataclass(frozen=True)
class Placement:
    """Where ranks are to be, and what that is predicted to gain.

    Attributes
    ----------
    hosts
        The host of each rank.
    before_s, after_s
        When the slowest rank ends with hosts in the order of the network, and as placed, seconds.
    tried
        How many placements were simulated.
    """

    hosts: tuple[str, ...]
    before_s: float
    after_s: float
    tried: int


def place(
    program: str | Path,
    args: Sequence[str] = (),
    *,
    twin: str | Path | Twin,
    network: AnyNetwork,
    ranks: int,
    ranks_per_host: int = 1,
    layer: str | None = None,
    most: int = MOST_TRIED,
) -> Placement:
    """Search the placement with which an mpi4py program is predicted to end first.

    Parameters
    ----------
    program, args, twin, network, ranks, layer
        As `wiretwin.predict`; the network has hosts of a twin.
    ranks_per_host
        How many ranks a host takes at most.
    most
        How many placements are simulated at most, at least 1.

    Raises
    ------
    InputError
        As `wiretwin.predict`, or a network with hosts of its own.
    SimulationError, ProgramError
        The program cannot be simulated, or its path depends on time.
    """
    if most < 1:
        raise InputError(key="--tries", value=most, allowed="1 and above")
    forecast = Forecast(
        program,
        args,
        twin=twin,
        ranks=ranks,
        layer=layer,
        network=network,
        ranks_per_host=ranks_per_host,
        passes=1,
        keep=False,
    )
    found = forecast.site.network
    if not isinstance(found, Network) or found.shares_cores:
        allowed = "a topology between hosts of a twin, such as the network.toml of `wiretwin fit`"
        raise InputError(key="--network", value=str(found), allowed=allowed)
    forecast.record()
    while forecast.wants_another():
        forecast.measure()
    if forecast.recording.timed:
        raise InputError(
            value=str(program), reason="its path depends on time", allowed="without ANY_SOURCE, tests"
        )
    computed = (forecast.passes or [forecast.run.compute])[0].durations_ps
    model = {**forecast.network, "nodes": [forecast.network["nodes"][0]] * found.hosts}
    trace = Trace(forecast.run, forecast.recording, forecast.seed)
    tried: dict[tuple[int, ...], tuple[float, float]] = {}

    def cost_s(seats: tuple[int, ...]) -> float:
        if seats not in tried:
            ran = trace.modelled(json.dumps({**model, "placement": seats}), computed)
            tried[seats] = ran.seconds, sum(rank.total_s for rank in ran.per_rank) / ranks
        slowest_s, mean_s = tried[seats]
        return slowest_s + MEAN * mean_s

    best = tuple(rank // ranks_per_host for rank in range(ranks))
    first = best
    better = cost_s(first) > 0.0
    while better and len(tried) < most:
        better = False
        for other in _neighbours(best, found.hosts, ranks_per_host):
            if len(tried) >= most:
                break
            if cost_s(other) < cost_s(best) * (1 - WORTH):
                best, better = other, True
                break
    if tried[best][0] > tried[first][0]:
        best = first
    names = _names(found)
    return Placement(tuple(names[seat] for seat in best), tried[first][0], tried[best][0], len(tried))


def _neighbours(seats: tuple[int, ...], hosts: int, each: int) -> Iterator[tuple[int, ...]]:
    """Yield the placements with one rank moved to a host with room, then those with two ranks exchanged."""
    for rank in range(len(seats)):
        for host in range(hosts):
            if seats.count(host) < each and host != seats[rank]:
                yield (*seats[:rank], host, *seats[rank + 1 :])
    for one, two in combinations(range(len(seats)), 2):
        if seats[one] != seats[two]:
            changed = list(seats)
            changed[one], changed[two] = seats[two], seats[one]
            yield tuple(changed)


def _names(network: Network) -> list[str]:
    """Return the names of a network's hosts; those of a topology that names none are numbered from 0."""
    nodes = network.parameters.get("nodes")
    if isinstance(nodes, list):
        return [str(node["name"]) for node in nodes if node["kind"] == "host"]
    return [f"host{number}" for number in range(network.hosts)]


def hostfile(placement: Placement) -> str:
    """Return one host a line in the order of ranks, as ``mpiexec -f`` and ``mpirun --hostfile`` read it."""
    return "".join(f"{host}\n" for host in placement.hosts)


def rankfile(placement: Placement) -> str:
    """Return a rankfile of Open MPI: the ranks of one host on its cores from 0 on."""
    lines = []
    for rank, host in enumerate(placement.hosts):
        lines.append(f"rank {rank}={host} slot={placement.hosts[:rank].count(host)}\n")
    return "".join(lines)
