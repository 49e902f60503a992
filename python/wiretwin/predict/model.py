"""From a twin to the network model that simulated ranks run on.

Times become integer picoseconds and rates integer femtoseconds per byte, so that the simulated world
never meets a float; the reference of the keys is `docs/reference/model.md`.
"""

from __future__ import annotations

from typing import Any, Literal

from wiretwin.errors import InputError
from wiretwin.twin import Costs, Quantity, Segment, Twin

#: Which end of the twin's intervals a model is built from.
Side = Literal["value", "low", "high"]


def layer_model(layer: Costs, side: Side = "value") -> dict[str, Any]:
    """Return the model of a layer: what a message costs at both ends and between them.

    Parameters
    ----------
    layer
        A fitted layer, or one state of it; overheads and latency must have been fitted.
    side
        ``low`` and ``high`` move the layer's times to the ends of the interval of its
        half round trip, all parts in proportion.

    Raises
    ------
    InputError
        When a quantity was not fitted.
    """
    scale = _scale(layer, side)
    call = layer.call_ns
    model: dict[str, Any] = {
        "call_ps": round(1e3 * call.value * scale) if call is not None else 0,
        "rendezvous_from_bytes": layer.rendezvous_from_bytes,
    }
    if layer.busy_send and layer.busy_recv:
        model |= _both_at_once(layer, scale)
    else:
        quantities: tuple[Quantity, ...] = ("overhead_send", "overhead_recv", "latency")
        for quantity in quantities:
            model[quantity] = [_line(segment, scale) for segment in layer.segments(quantity)]
    model["gap"] = [_line(segment, scale) for segment in layer.gap]
    if layer.fetch:
        model["fetch"] = [_line(segment, scale) for segment in layer.fetch]
    return model


def _both_at_once(layer: Costs, scale: float) -> dict[str, Any]:
    """Return overheads and latency of a layer whose ends copy a message at the same time where they can.

    An end works as long as it is busy with a message alone; the latency is what a half round trip leaves, and
    negative by as much as the two work at once.
    """
    parts = layer.segments("half_round_trip"), layer.busy_send, layer.busy_recv
    latency = []
    for size in sorted({segment.from_bytes for segments in parts for segment in segments}):
        half, send, recv = (
            next(_line(one, scale) for one in reversed(segments) if one.from_bytes <= size)
            for segments in parts
        )
        latency.append(
            {"from_bytes": size}
            | {key: half[key] - send[key] - recv[key] for key in ("base_ps", "per_byte_fs")}
        )
    return {
        "overhead_send": [_line(segment, scale) for segment in layer.busy_send],
        "overhead_recv": [_line(segment, scale) for segment in layer.busy_recv],
        "latency": latency,
    }


def single_host(
    twin: Twin, layer: str, ranks: int, side: Side = "value", state: str | None = None
) -> dict[str, Any]:
    """Return the model in which all `ranks` live on the twin's one host, in one of its states if named.

    Raises
    ------
    InputError
        When the twin has no such layer or state, or one that was not fitted far enough.
    """
    if ranks < 1:
        raise InputError(key="--ranks", value=ranks, allowed="1 and above")
    host = twin.host
    return {
        "nodes": [
            {"cores": host.cores, "idle": host.idle, "quantum_ps": round(host.quantum_ms * 1e9)},
        ],
        "placement": [0] * ranks,
        "intra": layer_model(twin.layer(layer).in_state(state), side),
        "inter": None,
        "link": None,
    }


def _line(segment: Segment, scale: float) -> dict[str, int]:
    return {
        "from_bytes": segment.from_bytes,
        "base_ps": round(1e3 * segment.base_ns.value * scale),
        "per_byte_fs": round(1e6 * segment.per_byte_ns.value * scale),
    }


def _scale(layer: Costs, side: Side) -> float:
    """Return how far the end of the interval of `t_0` lies from its value, as a ratio."""
    if side == "value" or layer.t_0_us.value == 0:
        return 1.0
    end = layer.t_0_us.low if side == "low" else layer.t_0_us.high
    return end / layer.t_0_us.value
