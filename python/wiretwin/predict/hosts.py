"""From an echo between two hosts to a network of several.

Where what was between them is known, it is taken out of a layer's latencies, and any network may be put in
its place (`less_network`). Where nothing but an echo is known (`echo_network`):

An echo shows what a message takes from end to end, not where. The rate at which long ones pass is put on
each host's own link, a transmitter and a receiver that work for one message at a time, so that messages
which share a link share its rate. The rest of a message's time is its two ends and the way between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.model import Network
from wiretwin.quantity import parse_size
from wiretwin.twin import Costs

__all__ = ["ON_ETHERNET", "echo_network", "free_model", "less_network", "long_sends_wait"]

#: What a short message of TCP over IP takes of an Ethernet besides itself, in bytes: preamble, header,
#: check sequence and gap (38), IP (20), TCP with time stamps (32).
ON_ETHERNET = 90

#: What a library keeps of a message for its receiver on hosts that cost nothing, in bytes: a send of more is
#: complete when its receiver has it. Choice: as in SMPI (`smpi/send-is-detached-thresh`).
KEPT_BYTES = 65_536


def echo_network(layer: Costs, hosts: int, *, cores: int, message_bytes: int = ON_ETHERNET) -> dict[str, Any]:
    """Return the model of as many equal hosts of a testbed, a rank each, joined by a switch.

    A message occupies the sender's link and then the receiver's; a switch passes on what has come
    whole, so the shortest message takes its time on the wire twice. What an echo of it takes beyond
    that is shared equally by its ends. Choice: all of that is work for a core, for the wire of a testbed
    is worked by the same cores.

    Parameters
    ----------
    layer
        Fitted to an echo between two such hosts; of its quantities only the one-way latency is used.
    hosts
        How many, 2 and above.
    cores
        Of the machine that all hosts run on.
    message_bytes
        What a message takes of the wire besides its own bytes.

    Raises
    ------
    InputError
        When there is one host or no core, or the layer has no curve.
    """
    if hosts < 2:
        raise InputError(key="hosts", value=hosts, allowed="2 and above")
    if cores < 1:
        raise InputError(key="cores", value=cores, allowed="1 and above")
    segments = layer.segments("half_round_trip")
    rate_bit_s = round(8e6 * layer.r_max_MB_s.value)
    byte_fs = round(8e15 / rate_bit_s)
    headers_ps = message_bytes * byte_fs // 1000
    shortest_ps = round(1e3 * segments[0].at(0))
    end_ps = max(0, (shortest_ps - 2 * headers_ps) // 2)
    latency = [
        {
            "from_bytes": segment.from_bytes,
            "base_ps": round(1e3 * segment.base_ns.value) - headers_ps - 2 * end_ps,
            "per_byte_fs": round(1e6 * segment.per_byte_ns.value) - byte_fs,
        }
        for segment in segments
    ]
    end = [{"from_bytes": 0, "base_ps": end_ps, "per_byte_fs": 0}]
    costs = {
        "call_ps": 0,
        "overhead_send": end,
        "overhead_recv": end,
        "latency": latency,
        "gap": [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}],
        "rendezvous_from_bytes": None,
    }
    node = {"cores": cores, "idle": "sleep", "quantum_ps": 4_000_000_000}
    return {
        "nodes": [node] + [{**node, "cores_of": 0}] * (hosts - 1),
        "placement": list(range(hosts)),
        "intra": costs,
        "inter": costs,
        "link": {"rate_bit_s": rate_bit_s, "delay_ps": 0, "message_bytes": message_bytes},
    }


def free_model(ranks_per_host: int) -> dict[str, Any]:
    """Return the model of a host whose messages cost nothing at either end, with a core for each rank."""
    free = [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}]
    layer = dict.fromkeys(("overhead_send", "overhead_recv", "latency", "gap"), free)
    return {
        "nodes": [{"cores": ranks_per_host, "idle": "spin", "quantum_ps": 4_000_000_000}],
        "intra": {"call_ps": 0, "rendezvous_from_bytes": None, **layer},
        "link": None,
    }


def long_sends_wait(model: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model of hosts that cost nothing in which a send of more than `KEPT_BYTES` waits for its end.

    A library that runs there is told that such a send is over when its receiver has the message, as by a
    network below it; else a sender would run ahead of its receiver with all that it sends in memory.
    """
    waits = {"acknowledged_from_bytes": KEPT_BYTES + 1}
    return {**model, **{key: {**model[key], **waits} for key in ("intra", "inter") if key in model}}


def less_network(layer: Mapping[str, Any], network: Network) -> dict[str, Any]:
    """Return what a layer leaves without the network that it was measured over.

    A message of one packet takes its time on every line of the way, a longer one is sent piece by piece:
    lines are broken where the second packet begins. What is left is never less than nothing, at no size, for
    no message is faster than its network. What limits a stream over a slow line is that line: of the gap
    nothing is left.

    The ends of a long message work while its packets are under way: on another network it takes as long as
    they do (`latency`), or as the network and what comes behind it (`last_packet`), whichever is longer. On
    the network that it was measured over that is what it took there.

    Parameters
    ----------
    layer
        As the simulated world reads it, with segments of `from_bytes`, `base_ps` and `per_byte_fs`.
    network
        What joined the two hosts.
    """
    mtu, headers = (
        parse_size(network.parameters.get(key, usual))
        for key, usual in (("mtu", "1500 B"), ("headers", "52 B"))
    )
    payload = mtu - headers
    ends = "overhead_send", "overhead_recv"
    breaks = {line["from_bytes"] for part in (*ends, "latency") for line in layer[part]} | {payload + 1}
    free = free_model(1)["intra"]

    def latency(size: int) -> int:
        # Below nothing where both ends work at once, with or without a network.
        measured = _at(layer["latency"], size)
        return min(measured, max(0, measured - _one_way_ps(network, free, size)))

    def last_packet(size: int) -> int:
        measured = sum(_at(layer[part], size) for part in (*ends, "latency"))
        sent = _one_way_ps(network, free | {"overhead_send": layer["overhead_send"]}, size)
        return max(0, measured - sent - _at(layer["overhead_recv"], payload))

    longer = [{"from_bytes": 0, "base_ps": max(0, latency(payload)), "per_byte_fs": 0}]
    # Either of sender and network may be the slower one, by the size.
    breaks |= {payload * factor for factor in (4, 16, 64, 256)}
    longer += _lines_through(last_packet, sorted(size for size in breaks if size > payload))
    return {
        **layer,
        "latency": _lines_through(latency, sorted(breaks)),
        "last_packet": longer,
        "gap": [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}],
    }


def _at(lines: Sequence[Mapping[str, int]], size: int) -> int:
    """Return what lines say of a size, in picoseconds."""
    line = next(line for line in reversed(lines) if line["from_bytes"] <= size)
    return line["base_ps"] + line["per_byte_fs"] * size // 1000


def _lines_through(value: Callable[[int], int], breaks: Sequence[int]) -> list[dict[str, int]]:
    """Return lines through the values at both ends of each segment."""
    lines = []
    for first, end in pairwise([*breaks, breaks[-1] + (1 << 20)]):
        begun, ended = value(first), value(end - 1)
        slope = 1000 * (ended - begun) // max(1, end - 1 - first)
        lines.append({"from_bytes": first, "base_ps": begun - slope * first // 1000, "per_byte_fs": slope})
    return lines


def _one_way_ps(network: Network, layer: Mapping[str, Any], size: int) -> int:
    """Return what a message takes from one host to the next under a layer, in picoseconds."""
    host = free_model(1)
    model = host | {
        "nodes": host["nodes"] * 2,
        "placement": [0, 1],
        "inter": layer,
        "network": network.plan,
    }
    world: Any = _core.World(2, json.dumps(model), seed=1)
    send, receive = world.post(0, ("send", 0, 1, 0, size, "standard")), world.post(1, ("recv", 0, 0, 0, size))
    world.post(0, ("wait", [send], "all"))
    world.post(1, ("wait", [receive], "all"))
    for _ in range(2):
        for rank, _ in world.step():
            world.post(rank, ("finish",))
    return int(world.now_ps(1))
