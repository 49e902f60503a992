"""Do again what ranks did, in a simulated world: over any network, stack and speed of computation."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from dataclasses import replace
from pathlib import Path

from wiretwin import _core, scratch
from wiretwin.errors import InputError, SimulationError
from wiretwin.predict import timeline
from wiretwin.predict.model import AnyNetwork, Side, Site
from wiretwin.predict.records import (
    DEFAULT_SEED,
    ComputeNote,
    ModelledRank,
    Prediction,
    Spread,
    keep,
    utc_now,
)
from wiretwin.stacks.simulated import LIBRARIES
from wiretwin.trace.format import Trace
from wiretwin.trace.goal import read_goal
from wiretwin.trace.operations import Operations, operations
from wiretwin.trace.otf2 import is_otf2, read_otf2
from wiretwin.twin import Twin

__all__ = ["read_operations", "replay"]


def read_operations(
    path: str | Path, *, compute_scale: float = 1.0, unit: str = "ns", ranks: int | None = None
) -> Operations:
    """Return what the ranks do of a folder that `record` has made, a trace in OTF2, or a file of GOAL.

    Times of a file of GOAL are in `unit`. With `ranks`, a recorded run has as many: see `operations`.

    Raises
    ------
    InputError
        It is neither; it is damaged; what it has cannot be replayed.
    """
    if not 0.0 <= compute_scale <= 1e6:
        raise InputError(key="--compute-scale", value=compute_scale, allowed="0 to 1000000")
    path = Path(path)
    if path.is_dir():
        return operations(Trace(path), compute_scale=compute_scale, ranks=ranks)
    if is_otf2(path):
        with scratch.folder(what="otf2") as folder:
            made = operations(read_otf2(path, folder), compute_scale=compute_scale, ranks=ranks)
        return replace(made, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    made = read_goal(path, unit=unit, compute_scale=compute_scale)
    if ranks is not None:
        reason, allowed = (
            "is not for a schedule, which has its own ranks",
            "with a folder of `wiretwin trace` or a trace in OTF2",
        )
        raise InputError(key="--ranks", value=ranks, reason=reason, allowed=allowed)
    return made


def replay(
    path: str | Path,
    *,
    twin: str | Path | Twin | None = None,
    layer: str | None = None,
    network: AnyNetwork | None = None,
    ranks_per_host: int | None = None,
    ranks: int | None = None,
    compute_scale: float = 1.0,
    unit: str = "ns",
    seed: int = DEFAULT_SEED,
    ends: bool = True,
    out: str | Path | None = None,
) -> Prediction:
    """Predict how long what was recorded takes elsewhere, and record the prediction.

    Parameters
    ----------
    path
        A folder that `record` has made, the anchor file of a trace in OTF2, or a file of GOAL.
    twin, layer, network, ranks_per_host, seed, out
        As for `wiretwin.predict`; by default messages take the layer of the library that ran.
    ranks
        How many ranks do it, by default as many as were recorded; others are made from those by their places
        (see `wiretwin.trace.operations`).
    compute_scale
        How much longer computation takes than in the recorded run, from 0 to a million.
    unit
        Of the times in a file of GOAL: ``ns`` or ``ps``.
    ends
        Whether it is also done with the ends of the twin's intervals.

    Raises
    ------
    InputError
        An input is wrong; what was recorded cannot be replayed.
    SimulationError
        Ranks wait for what never comes.
    """
    path = Path(path)
    done = read_operations(path, compute_scale=compute_scale, unit=unit, ranks=ranks)
    recorded = Trace(path).manifest if path.is_dir() else None
    if layer is None and recorded is not None:
        layer = LIBRARIES[recorded.library].layer
    site = Site.of(done.ranks, network, ranks_per_host, layer)
    fitted = site.twin_for(twin)
    layer = site.local.stack if site.local is not None else (layer or "mpi/mpich")
    state = None if fitted is None else next((one.name for one in fitted.layer(layer).states), None)

    def once(side: Side) -> _core.World:
        model = json.dumps(site.model(fitted, layer, side, state))
        world = _core.World(done.ranks, model, seed=seed, timeline=out is not None and side == "value")
        if not world.replay(done.traces):
            raise SimulationError(_stuck(path, world))
        return world

    world = once("value")
    sides: tuple[Side, ...] = ("low", "high") if ends and fitted is not None else ()
    seconds = [_seconds(world), *(_seconds(once(side)) for side in sides)]
    totals = world.totals()
    kinds = {f"{kind}_s": totals[f"{kind}_ps"] / 1e12 for kind in timeline.KINDS}  # type: ignore[literal-required]
    prediction = Prediction(
        program=path.name,
        program_sha256=done.sha256,
        args=[],
        ranks=done.ranks,
        layer=layer,
        twin_sha256=None if fitted is None else hashlib.sha256(fitted.to_toml().encode()).hexdigest(),
        network=site.model(fitted, layer, "value", state),
        seed=seed,
        compute=ComputeNote(source="replayed"),
        seconds=Spread(
            value=seconds[0],
            low=min(seconds),
            high=max(seconds),
            meaning="range over the ends of the twin's intervals" if sides else "none: one run",
        ),
        per_rank=[
            ModelledRank(
                rank=rank,
                total_s=float(sum(values[rank] for values in kinds.values())),
                **{kind: float(values[rank]) for kind, values in kinds.items()},
            )
            for rank in range(done.ranks)
        ],
        messages=world.counts()[0],
        trace_digest=world.digest(),
        warnings=[
            *site.notes(fitted),
            *(
                [
                    f"{recorded.ranks} ranks were recorded: each of {done.ranks} sends and computes as much "
                    "as one of these that lies as it does"
                ]
                if recorded is not None and recorded.ranks != done.ranks
                else []
            ),
            *(
                [f"computation takes {compute_scale:g} times what was recorded"]
                if compute_scale != 1.0
                else []
            ),
            *timeline.coarse_note(world.timeline_coarse_ps() if out is not None else 0),
        ],
        wiretwin=importlib.metadata.version("wiretwin"),
        frozen_utc=utc_now(),
    ).sealed()
    if out is not None:
        keep(Path(out), prediction, {timeline.FILE: timeline.frame(world.timeline(), list(world.names()))})
    return prediction


def _seconds(world: _core.World) -> float:
    return max(world.now_ps(rank) for rank in range(world.size)) / 1e12


def _stuck(path: Path, world: _core.World) -> str:
    stuck = world.blocked()
    lines = [f"{path.name}: deadlock: {len(stuck)} of {world.size} ranks can never go on"]
    lines += [f"  rank {rank} in {call or 'a wait'} waits: {what}" for rank, what, call, _ in stuck[:8]]
    return "\n".join([*lines, *([f"  and {len(stuck) - 8} more"] if len(stuck) > 8 else [])])
