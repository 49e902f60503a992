"""What a call takes beyond its messages: what its loop takes for real, less what that takes when simulated.

A call with the smallest messages is more than these: its arguments are looked at, an algorithm is chosen,
requests are made, a received object is looked for before room is made for it. Where a loop takes less than
its messages do in the simulated world, nothing is taken off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from wiretwin.loops import FAMILIES
from wiretwin.mpi.looped import times_ns
from wiretwin.twin import Layer

__all__ = ["beyond_messages"]

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
    model, beyond = json.loads(model_json), dict.fromkeys(FAMILIES, 0.0)
    for _ in range(_ROUNDS):
        simulated = times_ns(
            json.dumps(model | _with({kind: round(1e3 * ns) for kind, ns in beyond.items()}))
        )
        for kind, ns in takes_ns:
            if kind in simulated:
                beyond[kind] = max(0.0, beyond[kind] + ns - simulated[kind])
    return tuple((kind, round(1e3 * ns)) for kind, ns in beyond.items() if round(1e3 * ns) > 0)


def _with(beyond_ps: Mapping[str, int]) -> dict[str, Any]:
    tables = [{"calls": list(FAMILIES[kind]), "ps": ps} for kind, ps in beyond_ps.items() if ps]
    return {"beyond": tables} if tables else {}
