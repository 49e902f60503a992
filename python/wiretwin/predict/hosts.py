"""From an echo between two hosts to a network of several.

An echo shows what a message takes from end to end, not where. The rate at which long ones pass is put on
each host's own link, a transmitter and a receiver that work for one message at a time, so that messages
which share a link share its rate. The rest of a message's time is its two ends and the way between.
"""

from __future__ import annotations

from typing import Any

from wiretwin.errors import InputError
from wiretwin.twin import Costs

__all__ = ["ON_ETHERNET", "echo_network"]

#: What a short message of TCP over IP takes of an Ethernet besides itself, in bytes: preamble, header,
#: check sequence and gap (38), IP (20), TCP with time stamps (32).
ON_ETHERNET = 90


def echo_network(layer: Costs, hosts: int, *, cores: int, message_bytes: int = ON_ETHERNET) -> dict[str, Any]:
    """Return the model of as many equal hosts of a testbed, a rank each, joined by a switch.

    A message occupies the sender's link and then the receiver's; a switch passes on what has come
    whole, so the shortest message takes its time on the wire twice. What an echo of it takes beyond
    that is shared equally by its ends. Choice: all of that is work for a core, for the wire of a testbed
    is worked by the same cores.

    Parameters
    ----------
    layer
        Fitted to an echo between two such hosts; of its quantities only the half round trip is used.
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
    node = {"cores": cores, "idle": "yield", "quantum_ps": 4_000_000_000}
    return {
        "nodes": [node] + [{**node, "cores_of": 0}] * (hosts - 1),
        "placement": list(range(hosts)),
        "intra": costs,
        "inter": costs,
        "link": {"rate_bit_s": rate_bit_s, "delay_ps": 0, "message_bytes": message_bytes},
    }
