"""Predict how long a program will run: simulate it on a twin's network before it runs for real.

A program is run once in the simulated world, which records its messages. Then its computation is
measured, in several passes, each rank in a process and on a core of its own as the real run will
have it. With the median (or the least) of those passes in place of the first measurement the trace
runs again: that is the prediction. A program whose path depends on time (`ANY_SOURCE`, Waitany,
Test, probes) is simulated again as a whole instead.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_low
from typing import Any, Literal

import numpy as np
import polars as pl

from wiretwin import _core
from wiretwin.errors import InputError, SimulationError
from wiretwin.mpi.compute import Aggregated, ComputeSource, Given, Measured, Pass
from wiretwin.mpi.recording import Recording, replay
from wiretwin.mpi.runtime import SimulatedRun
from wiretwin.predict import solo, stage
from wiretwin.predict.model import Side, single_host
from wiretwin.predict.records import ComputeNote, ModelledRank, Prediction, Spread, sha256_of, utc_now
from wiretwin.twin import Twin

#: Recordings above this are not kept for passes with one process a rank, in bytes.
RECORDING_LIMIT = 1 << 30
DEFAULT_SEED = 1
KINDS = ("compute", "endpoint", "wire", "waiting")

Statistic = Literal["median", "minimum"]


@dataclass(frozen=True, slots=True)
class Modelled:
    """One simulated run, reduced to what a prediction keeps."""

    seconds: float
    per_rank: list[ModelledRank]
    digest: str
    messages: int
    timeline: pl.DataFrame


def predict(
    program: str | Path,
    args: Sequence[str] = (),
    *,
    twin: str | Path | Twin,
    ranks: int = 2,
    layer: str = "mpi4py/mpich",
    passes: int = 3,
    statistic: Statistic = "median",
    compute_ps: int | None = None,
    seed: int = DEFAULT_SEED,
    out: str | Path | None = None,
    limit_s: float = 120.0,
    on_stage: Callable[[str], None] | None = None,
) -> Prediction:
    """Predict the run of an mpi4py program on the host of a twin, and freeze the prediction.

    Parameters
    ----------
    program, args
        The script and its arguments.
    twin
        A twin, or the file of one.
    ranks
        How many ranks; more ranks than the host has cores share them.
    layer
        The layer of the twin that the messages take.
    passes
        How often the computation is measured.
    statistic
        What is made of the passes, stretch by stretch.
    compute_ps
        Computation between two calls as given, in picoseconds, instead of measured.
    seed
        Of the simulated world.
    out
        A folder for `prediction.json`, `timeline.parquet` and `compute.parquet`.
    limit_s
        The longest one simulated run or pass may take, in seconds.
    on_stage
        Called with a few words as each stage begins.

    Raises
    ------
    InputError, SimulationError, ProgramError
        When an input is wrong, the program cannot be simulated, or it fails.
    """
    path = Path(program)
    if not path.is_file():
        raise InputError(key="program", value=str(program), allowed="the file of a Python script")
    if passes < 1:
        raise InputError(key="--passes", value=passes, allowed="1 and above")
    say = on_stage or (lambda _: None)
    fitted = twin if isinstance(twin, Twin) else Twin.read(twin)
    network = single_host(fitted, layer, ranks)
    network_json = json.dumps(network)
    source: ComputeSource = Measured() if compute_ps is None else Given(compute_ps)
    say("recording the messages")
    run, recording = stage.simulate(path, args, ranks, network_json, source, seed=seed, limit_s=limit_s)
    warnings = list(run.warnings)
    measured: list[Pass] = []
    if compute_ps is None:
        measured, notes = _measure(path, args, recording, run, network_json, passes, seed, limit_s, say)
        warnings += notes
    other_paths: list[str] = []
    bounds: list[float] = []
    if compute_ps is not None:
        chosen = run.compute.durations_ps
        model = _modelled(run, run.end_ps, run.digest, _sent(recording))
    elif recording.timed:
        say("simulating with the measured computation")
        source = Aggregated(measured, statistic)
        run, recording = stage.simulate(path, args, ranks, network_json, source, seed=seed, limit_s=limit_s)
        other_paths = [text for text in run.warnings if text not in warnings]
        chosen = run.compute.durations_ps
        model = _modelled(run, run.end_ps, run.digest, _sent(recording))
        bounds += _in_proportion(model.seconds, measured, chosen)
    else:
        say("replaying with the measured computation")
        trace = _Trace(run, recording, seed)
        chosen = _aggregate(measured, statistic)
        model = trace.modelled(network_json, chosen)
        bounds += [trace.modelled(network_json, one.durations_ps).seconds for one in measured]
    if not recording.timed:
        trace = _Trace(run, recording, seed)
        sides: tuple[Side, Side] = ("low", "high")
        ends = (json.dumps(single_host(fitted, layer, ranks, side)) for side in sides)
        bounds += [trace.modelled(end, chosen).seconds for end in ends]
    prediction = Prediction(
        program=path.name,
        program_sha256=sha256_of(path),
        args=list(args),
        ranks=ranks,
        layer=layer,
        twin_sha256=hashlib.sha256(fitted.to_toml().encode()).hexdigest(),
        network=network,
        seed=seed,
        compute=ComputeNote(
            source="measured" if compute_ps is None else "given",
            statistic=statistic,
            passes=max(1, len(measured)),
            concurrent=min(ranks, fitted.host.cores),
            other_paths=other_paths,
        ),
        seconds=Spread(
            value=model.seconds,
            low=min([model.seconds, *bounds]),
            high=max([model.seconds, *bounds]),
            meaning="range over the measuring passes and the ends of the twin's intervals",
        ),
        per_rank=model.per_rank,
        messages=model.messages,
        trace_digest=model.digest,
        warnings=warnings,
        wiretwin=importlib.metadata.version("wiretwin"),
        frozen_utc=utc_now(),
    ).sealed()
    if out is not None:
        _keep(Path(out), prediction, model, chosen)
    return prediction


class _Trace:
    """A recorded run that can run again on another network or with other computation."""

    def __init__(self, run: SimulatedRun, recording: Recording, seed: int) -> None:
        self.run = run
        self.recording = recording
        self.seed = seed

    def modelled(self, network_json: str, durations_ps: Sequence[Sequence[int]]) -> Modelled:
        """Run the trace in a fresh world."""
        world: Any = _core.World(self.run.ranks, network_json, seed=self.seed, timeline=True)
        replay(self.recording, world, durations_ps)
        ended = [world.now_ps(rank) for rank in range(self.run.ranks)]
        again = replace(
            self.run,
            totals_ps=dict(world.totals()),
            timeline=dict(world.timeline()),
            names=list(world.names()),
        )
        return _modelled(again, ended, world.digest(), _sent(self.recording))


def _sent(recording: Recording) -> int:
    return sum(operation[0] == "send" for part in recording.parts for operation in part.operations)


def _modelled(run: SimulatedRun, end_ps: Sequence[int], digest: str, messages: int) -> Modelled:
    per_rank = []
    for rank in range(run.ranks):
        parts = {f"{kind}_s": float(run.totals_ps[f"{kind}_ps"][rank]) / 1e12 for kind in KINDS}
        per_rank.append(ModelledRank(rank=rank, total_s=end_ps[rank] / 1e12, **parts))
    return Modelled(max(end_ps) / 1e12, per_rank, digest, messages, _timeline(run))


def _timeline(run: SimulatedRun) -> pl.DataFrame:
    """Return the intervals with kinds, names and source lines in words."""
    columns = run.timeline
    sites = [f"{Path(file).name}:{line}" for file, line in run.sites]
    kinds = np.array([*KINDS], dtype=object)
    names = np.array([*run.names, ""], dtype=object)
    places = np.array([*sites, ""], dtype=object)
    # An index of -1 finds the empty word at the end.
    return pl.DataFrame(
        {
            "rank": columns["rank"],
            "start_ps": columns["start_ps"],
            "end_ps": columns["end_ps"],
            "kind": pl.Series(kinds[columns["kind"]], dtype=pl.String),
            "name": pl.Series(names[columns["name_index"].astype(np.int64)], dtype=pl.String),
            "site": pl.Series(places[columns["site"].astype(np.int64)], dtype=pl.String),
            "peer": columns["peer"],
            "bytes": columns["bytes"],
        }
    )


def _measure(
    path: Path,
    args: Sequence[str],
    recording: Recording,
    run: SimulatedRun,
    network_json: str,
    passes: int,
    seed: int,
    limit_s: float,
    say: Callable[[str], None],
) -> tuple[list[Pass], list[str]]:
    """Measure the computation `passes` times, and say what a reader should know."""
    held = recording.content_bytes()
    if held > RECORDING_LIMIT:
        done = [run.compute]
        for number in range(1, passes):
            say(f"measuring the computation, pass {number + 1} of {passes}")
            again, _ = stage.simulate(
                path, args, run.ranks, network_json, Measured(), seed=seed, limit_s=limit_s
            )
            done.append(again.compute)
        note = (
            f"the messages hold {held >> 20} MiB, too much to run the ranks one a process: computation was "
            "measured with all ranks in one process"
        )
        return done, [note]
    done = []
    for number in range(passes):
        say(f"measuring the computation, pass {number + 1} of {passes}")
        parts = solo.measure(path, args, recording, network_json, seed=seed, limit_s=limit_s)
        one = Pass([part.durations_ps for part in parts], [part.digests for part in parts])
        for rank, digests in enumerate(one.digests):
            if digests != run.compute.digests[rank]:
                raise SimulationError(
                    f"{path.name}: rank {rank} took another path when it was measured alone; a program that "
                    "looks at the clock, at files or at unseeded random numbers cannot be repeated"
                )
        done.append(one)
    return done, []


def _aggregate(passes: Sequence[Pass], statistic: Statistic) -> list[list[int]]:
    """Return the statistic over the passes for every stretch of every rank."""
    pick: Callable[[Sequence[int]], int] = min if statistic == "minimum" else median_low
    ranks = range(len(passes[0].durations_ps))
    return [
        [pick(values) for values in zip(*(one.durations_ps[rank] for one in passes), strict=True)]
        for rank in ranks
    ]


def _in_proportion(seconds: float, passes: Sequence[Pass], chosen: Sequence[Sequence[int]]) -> list[float]:
    """Return what the run would take were all its computation that of each pass, as sums go."""
    total = max(sum(rank) for rank in chosen) or 1
    return [seconds * max(sum(rank) for rank in one.durations_ps) / total for one in passes]


def _keep(
    folder: Path, prediction: Prediction, model: Modelled, durations_ps: Sequence[Sequence[int]]
) -> None:
    """Write the three files of a prediction; the record last, so that it is never without the others."""
    folder.mkdir(parents=True, exist_ok=True)
    model.timeline.write_parquet(folder / "timeline.parquet")
    pl.DataFrame(
        {
            "rank": [rank for rank, values in enumerate(durations_ps) for _ in values],
            "stretch": [index for values in durations_ps for index in range(len(values))],
            "duration_ps": [value for values in durations_ps for value in values],
        },
        schema={"rank": pl.UInt32, "stretch": pl.UInt32, "duration_ps": pl.UInt64},
    ).write_parquet(folder / "compute.parquet")
    prediction.write(folder)
