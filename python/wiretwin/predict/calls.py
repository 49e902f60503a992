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


def beyond_messages(
    layer: Layer, model: Mapping[str, Any], *, crowded: int = 0, between: bool = False
) -> dict[str, Any]:
    """Return what a model has of it: nothing where loops were not measured.

    Parameters
    ----------
    layer
        Of a twin.
    model
        Of ranks of one host, the layer between them (`wiretwin.predict.model.single_host`).
    crowded
        How many ranks share cores, if any do. Calls whose loops were measured on one core, by two ranks, take
        what these lack there more than on two, in each of their rounds.
    between
        Whether the loops were run between two hosts.
    """
    if not layer.looped:
        return {}
    takes = tuple((one.kind, 1e3 * one.takes_us.value) for one in layer.looped)
    two = {"cores": 2, "idle": "spin", "quantum_ps": 4_000_000_000}
    loops = {**model, "placement": [0, 0], "nodes": [two]}
    if between:
        loops |= {"placement": [0, 1], "nodes": [two, two], "inter": model["intra"]}
    beyond_ps = dict(_beyond_ps(json.dumps(loops, sort_keys=True), takes, ()))
    shared = tuple((one.kind, 1e3 * one.one_core_us.value) for one in layer.looped if one.one_core_us)
    (node,) = model["nodes"]
    if crowded and shared and node["idle"] == "yield":
        on_one = {"placement": [0, 0], "nodes": [node | {"cores": 1}]}
        alone = json.dumps(loops | on_one, sort_keys=True)
        for kind, ps in _beyond_ps(alone, shared, tuple(beyond_ps.items())):
            beyond_ps[kind] += max(0, ps - beyond_ps[kind]) * _rounds(kind, crowded)
    return _with(beyond_ps)


def _rounds(kind: str, ranks: int) -> int:
    """Return the number of rounds of messages in a collective call of so many ranks: one for two ranks.

    Libraries send short messages along trees or by recursive doubling, where the number of rounds grows with
    the logarithm of the number of ranks. In an alltoall each rank has one round with every other rank.
    """
    return ranks - 1 if kind.lower() == "alltoall" else (ranks - 1).bit_length()


@lru_cache(maxsize=64)
def _beyond_ps(
    model_json: str, takes_ns: tuple[tuple[str, float], ...], on_two_ps: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """Return by kind what its call lacks, in picoseconds.

    Of two ranks that share a core both lack it, one after the other; `on_two_ps` is what calls lack then that
    have a core each.
    """
    from wiretwin.mpi.looped import times_ns  # only where a script is predicted: it needs numpy

    model, shared = json.loads(model_json), bool(on_two_ps)
    beyond = {kind: ps / 1e3 for kind, ps in on_two_ps} | dict.fromkeys((kind for kind, _ in takes_ns), 0.0)
    call_ns = model["intra"]["call_ps"] / 1e3
    for _ in range(_ROUNDS):
        simulated = times_ns(
            json.dumps(model | _with({kind: round(1e3 * ns) for kind, ns in beyond.items()})),
            collective=shared,
        )
        for kind, ns in takes_ns:
            if kind in simulated:
                lacks = (ns - simulated[kind]) / (_THERE_AND_BACK if kind == "send" else 2 if shared else 1)
                beyond[kind] = max(-call_ns, beyond[kind] + lacks)
    return tuple((kind, round(1e3 * beyond[kind])) for kind, _ in takes_ns)


def _with(beyond_ps: Mapping[str, int]) -> dict[str, Any]:
    called = FAMILIES | {"send": FAMILIES["send"] + FAMILIES["recv"]}
    tables = [{"calls": list(called[kind]), "ps": ps} for kind, ps in beyond_ps.items() if ps]
    return {"beyond": tables} if tables else {}
