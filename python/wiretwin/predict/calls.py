"""What a call takes beyond its messages: what its loop takes for real, less what that takes when simulated.

A call with the smallest messages is more than these: its arguments are looked at, an algorithm is chosen,
requests are made, a received object is looked for before room is made for it. Or it is less: what messages
take is measured with arrays, which are looked at for longer than objects. A call is made shorter then, by no
more than what one takes that moves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from wiretwin.loops import FAMILIES
from wiretwin.twin import Layer

__all__ = ["beyond_messages"]

_THERE_AND_BACK = 4
"""Sends and receives in an iteration of the loop of `send`, one after the other."""
_ROUNDS = 3
"""A call that makes another one (`allreduce` ends in a `bcast`) has what that one takes beyond its messages:
what is left is found so often."""


def beyond_messages(layer: Layer, model: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model has of it: nothing where loops were not measured.

    Parameters
    ----------
    layer
        Of a twin.
    model
        Of ranks of one host, the layer between them (`wiretwin.predict.model.single_host`).
    """
    if not layer.looped:
        return {}
    takes = tuple((one.kind, 1e3 * one.takes_us.value) for one in layer.looped)
    two = {"cores": 2, "idle": "spin", "quantum_ps": 4_000_000_000}
    loops = {**model, "nodes": [two], "placement": [0, 0]}
    return _with(dict(_beyond_ps(json.dumps(loops, sort_keys=True), takes)))


@lru_cache(maxsize=64)
def _beyond_ps(model_json: str, takes_ns: tuple[tuple[str, float], ...]) -> tuple[tuple[str, int], ...]:
    from wiretwin.mpi.looped import times_ns  # only where a script is predicted: it needs numpy

    model, beyond = json.loads(model_json), dict.fromkeys(FAMILIES, 0.0)
    call_ns = model["intra"]["call_ps"] / 1e3
    for _ in range(_ROUNDS):
        simulated = times_ns(
            json.dumps(model | _with({kind: round(1e3 * ns) for kind, ns in beyond.items()}))
        )
        for kind, ns in takes_ns:
            if kind in simulated:
                lacks = (ns - simulated[kind]) / (_THERE_AND_BACK if kind == "send" else 1)
                beyond[kind] = max(-call_ns, beyond[kind] + lacks)
    return tuple((kind, round(1e3 * ns)) for kind, ns in beyond.items())


def _with(beyond_ps: Mapping[str, int]) -> dict[str, Any]:
    called = FAMILIES | {"send": FAMILIES["send"] + FAMILIES["recv"]}
    tables = [{"calls": list(called[kind]), "ps": ps} for kind, ps in beyond_ps.items() if ps]
    return {"beyond": tables} if tables else {}
