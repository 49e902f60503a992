"""How far the fidelities of a network lie apart, and its transports: tables of two pages of the docs.

Every rank is on a host of its own, hosts cost nothing, and all messages of a pattern are sent at once. For
each pattern on each network: how long it takes message by message, packet by packet, and what the second is
of the first; and on networks of cells, how long it takes at each fidelity. The direct transport and TCP are
laid side by side where lines lose packets: there every rank does the same again and again, as soon as it has
had all of the last time. The times are simulated, so the tables are the same on every machine; a test
compares them with the pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wiretwin import Network, _core

__all__ = ["CASES", "CELL_CASES", "TRANSPORT_CASES", "Case", "cells", "seconds", "table", "transports"]

Message = tuple[int, int, int]
KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Case:
    """Return messages, each its source, destination and bytes, on a network of this number of hosts."""

    pattern: str
    network: str
    hosts: int
    messages: tuple[Message, ...]


def _size(count: int) -> str:
    if count < KIB:
        return f"{count} B"
    return f"{count // MIB} MiB" if count >= MIB else f"{count // KIB} KiB"


def _one(count: int, network: str) -> Case:
    return Case(f"one message of {_size(count)}", network, 2, ((0, 1, count),))


def _incast(senders: int, count: int, network: str) -> Case:
    messages = tuple((source, 0, count) for source in range(1, senders + 1))
    return Case(f"{senders} to 1, {_size(count)} each", network, senders + 1, messages)


def _ring(hosts: int, count: int, network: str) -> Case:
    messages = tuple((rank, (rank + 1) % hosts, count) for rank in range(hosts))
    return Case(f"each to the next, {_size(count)}", network, hosts, messages)


def _shuffle(hosts: int, count: int, network: str) -> Case:
    messages = tuple((a, (a + step) % hosts, count) for a in range(hosts) for step in range(1, hosts))
    return Case(f"all to all, {_size(count)} each", network, hosts, messages)


def _pairs(hosts: int, count: int, network: str) -> Case:
    messages = tuple((rank, rank + 1, count) for rank in range(0, hosts, 2))
    return Case(f"pairs, {_size(count)} each", network, hosts, messages)


_STAR10 = "star:rate=10Gbit/s,delay=1us,switch_delay=500ns"
_STAR100 = "star:rate=100Gbit/s,delay=500ns,switch_delay=300ns"
_LOT = "parking-lot:rate=10Gbit/s,delay=1us,switch_delay=500ns"
_TREE = "fat-tree:rate=100Gbit/s,delay=500ns,switch_delay=300ns"

CASES = (
    *(_one(count, _STAR10) for count in (KIB, 16 * KIB, 64 * KIB, MIB, 16 * MIB)),
    *(_one(count, _STAR100) for count in (KIB, 64 * KIB, MIB, 16 * MIB)),
    *(_incast(8, count, _STAR10) for count in (KIB, 64 * KIB, MIB)),
    _incast(8, MIB, f"{_STAR10},queue=256KiB"),
    _incast(8, MIB, f"{_STAR10},queue=256KiB,ecn=64KiB"),
    _incast(8, MIB, _STAR100),
    *(_pairs(8, count, _LOT) for count in (64 * KIB, 4 * MIB)),
    _ring(16, 64 * KIB, _TREE),
    _ring(16, MIB, _TREE),
    _shuffle(16, 4 * KIB, _TREE),
    _shuffle(16, 64 * KIB, _TREE),
)

_OC3 = "star:rate=155.52Mbit/s,delay=1us,switch_delay=10us"

CELL_CASES = (
    *(_one(count, _OC3) for count in (KIB, 64 * KIB, MIB)),
    _one(MIB, f"{_OC3},credits=1"),
    _one(MIB, f"{_OC3},switch=crossbar"),
    _incast(8, 64 * KIB, _OC3),
    _incast(8, 64 * KIB, f"{_OC3},switch=crossbar"),
    _incast(8, 64 * KIB, f"{_OC3},credits=none,queue=2000cells,mtu=1500B"),
    _shuffle(16, 4 * KIB, "fat-tree:rate=155.52Mbit/s,delay=1us,switch_delay=10us"),
)


TRANSPORT_CASES = tuple(
    pattern(16, count, _TREE) for pattern in (_ring, _shuffle) for count in (8, KIB, 16 * KIB, 64 * KIB, MIB)
)
ROUNDS = 50
LOSSES = (0, 0.001, 0.01)


def _is_of(fidelity: str, word: str) -> bool:
    """Whether a word of a network says something at this fidelity."""
    key, _, value = word.partition("=")
    if fidelity == "cell":
        return True
    if key in ("queue", "ecn"):
        return fidelity == "packet" and not value.endswith("cells")
    return key not in ("credits", "switch", "iterations", "mtu")


_FREE = [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}]
_LAYER = {
    "call_ps": 0,
    **dict.fromkeys(("overhead_send", "overhead_recv", "latency", "gap"), _FREE),
    "rendezvous_from_bytes": None,
    "unexpected_copy": None,
}


def seconds(case: Case, fidelity: str, rounds: int = 1) -> float:
    """Return when the last message of a case is there, so often one after the other."""
    text = f"{case.network},fidelity={fidelity}"
    text = ",".join(word for word in text.split(",") if _is_of(fidelity, word))
    model = {
        "nodes": [{"cores": 1, "idle": "sleep", "quantum_ps": 4_000_000_000}] * case.hosts,
        "placement": list(range(case.hosts)),
        "intra": _LAYER,
        "inter": _LAYER,
        "link": None,
        "network": Network.parse(text, hosts=case.hosts).plan,
    }
    world = _core.World(case.hosts, json.dumps(model), timeline=False)
    operations: list[list[tuple[Any, ...]]] = [[] for _ in range(case.hosts)]
    requests: list[list[int]] = [[] for _ in range(case.hosts)]
    for tag, (source, to, count) in enumerate(case.messages):
        pair = ((source, ("send", 0, to, tag, count, "standard")), (to, ("recv", 0, source, tag, count)))
        for rank, operation in pair:
            operations[rank].append(operation)
            requests[rank].append(world.post(rank, operation))
    left = {rank: rounds for rank, mine in enumerate(requests) if mine}
    for rank in left:
        world.post(rank, ("wait", requests[rank], "all"))
    while left:
        resumed = world.step()
        assert resumed, world.blocked()
        for rank, _ in resumed:
            left[rank] -= 1
            if left[rank]:
                again = [world.post(rank, operation) for operation in operations[rank]]
                world.post(rank, ("wait", again, "all"))
            else:
                world.post(rank, ("finish",))
                del left[rank]
    return max(world.now_ps(rank) for rank in range(case.hosts)) / 1e12


def table() -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| messages | network | message [us] | packet [us] | ratio |"
    yield "|---|---|---|---|---|"
    for case in CASES:
        coarse, fine = (1e6 * seconds(case, fidelity) for fidelity in ("message", "packet"))
        yield f"| {case.pattern} | `{case.network}` | {coarse:.1f} | {fine:.1f} | {fine / coarse:.2f} |"


def cells() -> Iterator[str]:
    """Yield the lines of the table of networks of cells."""
    yield "| messages | network | message [us] | packet [us] | cell [us] |"
    yield "|---|---|---|---|---|"
    for case in CELL_CASES:
        times = (f"{1e6 * seconds(case, fidelity):.1f}" for fidelity in ("message", "packet", "cell"))
        yield f"| {case.pattern} | `{case.network}` | {' | '.join(times)} |"


def transports(cases: Sequence[Case] = TRANSPORT_CASES) -> Iterator[str]:
    """Yield the lines of the table of the direct transport beside TCP, with lines that lose packets."""
    columns = [(name, loss) for loss in LOSSES for name in ("direct", "tcp")]
    head = (f"{name}, {100 * loss:g} % lost [us]" for name, loss in columns)
    yield f"| messages | {' | '.join(head)} |"
    yield "|---|" + "---|" * len(columns)
    for case in cases:
        times = []
        for name, loss in columns:
            over = replace(case, network=f"{case.network},transport={name},packet_loss={loss}")
            times.append(f"{1e6 * seconds(over, 'packet', ROUNDS) / ROUNDS:.1f}")
        yield f"| {case.pattern} | {' | '.join(times)} |"


if __name__ == "__main__":
    print("\n".join([*table(), "", *cells(), "", *transports()]))
