"""From an echo between two hosts to a network of several.

An echo shows what a message takes from end to end, not where. The rate at which long ones pass is put on
each host's own link, a transmitter and a receiver that work for one message at a time, so that messages
which share a link share its rate. The rest of a message's time is its two ends and the way between.
"""

from __future__ import annotations

from typing import Any

from wiretwin.errors import InputError
from wiretwin.twin import Costs

__all__ = ["echo_network"]

#: Choice: the share of the shortest message's time that each end works on it; an echo cannot tell.
END_SHARE = 0.25


def echo_network(layer: Costs, hosts: int) -> dict[str, Any]:
    """Return the model of as many equal hosts, a rank and a core each, joined by a switch.

    Parameters
    ----------
    layer
        Fitted to an echo between two such hosts; of its quantities only the half round trip is used.
    hosts
        How many, 2 and above.

    Raises
    ------
    InputError
        When there is one host, or the layer has no curve.
    """
    if hosts < 2:
        raise InputError(key="hosts", value=hosts, allowed="2 and above")
    segments = layer.segments("half_round_trip")
    rate_bit_s = round(8e6 * layer.r_max_MB_s.value)
    wire_fs = round(8e15 / rate_bit_s)
    end_ps = round(1e3 * END_SHARE * segments[0].at(0))
    latency = [
        {
            "from_bytes": segment.from_bytes,
            "base_ps": round(1e3 * segment.base_ns.value) - 2 * end_ps,
            "per_byte_fs": round(1e6 * segment.per_byte_ns.value) - wire_fs,
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
    return {
        "nodes": [{"cores": 1, "idle": "yield", "quantum_ps": 4_000_000_000}] * hosts,
        "placement": list(range(hosts)),
        "intra": costs,
        "inter": costs,
        "link": {"rate_bit_s": rate_bit_s, "delay_ps": 0},
    }
