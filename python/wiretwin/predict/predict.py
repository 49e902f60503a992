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
from wiretwin.errors import InputError, StorageError
from wiretwin.mpi import script
from wiretwin.mpi.compute import Aggregated, ComputeSource, Given, Measured, Pass, Replay
from wiretwin.mpi.recording import Recording
from wiretwin.mpi.recording import replay as run_again
from wiretwin.mpi.runtime import SimulatedRun
from wiretwin.predict import solo, stage
from wiretwin.predict.model import Side, single_host
from wiretwin.predict.records import ComputeNote, ModelledRank, Prediction, Spread, read, sha256_of, utc_now
from wiretwin.predict.solo import departed
from wiretwin.twin import Twin

#: Recordings above this are not kept for passes with one process a rank, in bytes.
RECORDING_LIMIT = 1 << 30
DEFAULT_SEED = 1
COMPUTE_FILE = "compute.parquet"
COMPUTE_SCHEMA = {"rank": pl.UInt32(), "stretch": pl.UInt32(), "duration_ps": pl.UInt64()}
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
    replay: str | Path | None = None,
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
    replay
        The folder of an earlier prediction of the same program, arguments and ranks, whose
        computation is taken instead of measured: the same run again, or on another twin.
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
    path = script.checked(program)
    if not 1 <= passes <= 1000:
        raise InputError(key="--passes", value=passes, allowed="1 to 1000")
    if not 0 <= seed < 1 << 64:
        raise InputError(key="--seed", value=seed, allowed="0 to 2^64 - 1")
    say = on_stage or (lambda _: None)
    fitted = twin if isinstance(twin, Twin) else Twin.read(twin)
    if compute_ps is not None and replay is not None:
        raise InputError(key="replay", value=str(replay), reason="not together with compute_ps")
    network = single_host(fitted, layer, ranks)
    network_json = json.dumps(network)
    source: ComputeSource = Measured() if compute_ps is None else Given(compute_ps)
    earlier: list[list[int]] = []
    if replay is not None:
        earlier = earlier_compute(Path(replay), path, args, ranks)
        source = Replay(earlier)
    fixed = compute_ps is not None or replay is not None
    say("recording the messages")
    run, recording = stage.simulate(path, args, ranks, network_json, source, seed=seed, limit_s=limit_s)
    warnings = list(run.warnings)
    measured: list[Pass] = []
    if not fixed:
        measured, notes = _measure(path, args, recording, run, network_json, passes, seed, limit_s, say)
        warnings += notes
    other_paths: list[str] = []
    bounds: list[float] = []
    if fixed:
        chosen = run.compute.durations_ps
        if replay is not None:
            _check_all_used(earlier, chosen)
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
            source="replayed" if replay is not None else "measured" if compute_ps is None else "given",
            statistic=statistic,
            passes=max(1, len(measured)),
            concurrent=min(ranks, fitted.host.cores),
            other_paths=other_paths,
        ),
        seconds=Spread(
            value=model.seconds,
            low=min([model.seconds, *bounds]),
            high=max([model.seconds, *bounds]),
            meaning=_meaning(fixed, recording.timed),
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
        run_again(self.recording, world, durations_ps)
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
                raise departed(path, rank)
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


def _meaning(fixed: bool, timed: bool) -> str:
    """Say what the interval of a prediction is made of."""
    parts = [] if fixed else ["the measuring passes"]
    if not timed:
        parts.append("the ends of the twin's intervals")
    if not parts:
        return "none: the computation is as told, and the program's path depends on time"
    return "range over " + " and ".join(parts)


def earlier_compute(folder: Path, program: Path, args: Sequence[str], ranks: int) -> list[list[int]]:
    """Return the computation that an earlier prediction was made with, by rank, in picoseconds.

    Raises
    ------
    InputError
        When the folder holds no prediction, or one of another program, arguments or ranks, or its
        computation cannot be read.
    """
    earlier = read(Prediction, folder)
    now = {"program_sha256": sha256_of(program), "args": list(args), "ranks": ranks}
    for key, value in now.items():
        if getattr(earlier, key) != value:
            raise InputError(folder, key, getattr(earlier, key), f"{value!r}, as this prediction has it")
    file = folder / COMPUTE_FILE
    try:
        frame = pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InputError(file, reason=reason, allowed="what `predict` wrote there") from error
    if dict(frame.schema) != COMPUTE_SCHEMA:
        found = ", ".join(f"{name}: {kind}" for name, kind in frame.schema.items())
        wanted = ", ".join(f"{name}: {kind}" for name, kind in COMPUTE_SCHEMA.items())
        raise InputError(file, "columns", found, wanted)
    durations: list[list[int]] = [[] for _ in range(ranks)]
    for row, (rank, stretch, duration_ps) in enumerate(frame.iter_rows()):
        if rank is None or rank >= ranks or stretch != len(durations[rank]) or duration_ps is None:
            value = f"rank {rank}, stretch {stretch}, {duration_ps} ps"
            raise InputError(file, f"row {row}", value, "ranks and stretches in order, none left out")
        durations[rank].append(duration_ps)
    return durations


def _check_all_used(earlier: Sequence[Sequence[int]], used: Sequence[Sequence[int]]) -> None:
    for rank, (had, took) in enumerate(zip(earlier, used, strict=True)):
        if len(had) > len(took):
            raise InputError(
                key=f"recorded computation of rank {rank}",
                value=f"{len(had)} stretches",
                reason=f"but the program has {len(took)}: it takes another path",
            )


def _keep(
    folder: Path, prediction: Prediction, model: Modelled, durations_ps: Sequence[Sequence[int]]
) -> None:
    """Write the three files of a prediction; the record last, so that it is never without the others."""
    compute = pl.DataFrame(
        {
            "rank": [rank for rank, values in enumerate(durations_ps) for _ in values],
            "stretch": [index for values in durations_ps for index in range(len(values))],
            "duration_ps": [value for values in durations_ps for value in values],
        },
        schema=COMPUTE_SCHEMA,
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        model.timeline.write_parquet(folder / "timeline.parquet")
        compute.write_parquet(folder / COMPUTE_FILE)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise StorageError(folder, f"not written: {getattr(error, 'strerror', None) or error}") from error
    prediction.write(folder)
