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
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any, Literal

from wiretwin import _core, states
from wiretwin.errors import InputError
from wiretwin.model import LocalNetwork
from wiretwin.model.local import MPI_LAYERS
from wiretwin.mpi import script
from wiretwin.mpi.away import KINDS, UNKNOWN
from wiretwin.mpi.compute import Aggregated, ComputeSource, Given, Measured, Pass, Replay
from wiretwin.mpi.recording import DepartureError, Recording
from wiretwin.mpi.recording import replay as run_again
from wiretwin.mpi.runtime import NotSimulatedError, SimulatedRun
from wiretwin.predict import alike, learnt, printed, solo, spread, stage, timeline
from wiretwin.predict.model import LAYER, AnyNetwork, Site, deals, dealt, unmeasured
from wiretwin.predict.passes import times_by_pass, typical, typical_sleep
from wiretwin.predict.records import (
    DEFAULT_PASSES,
    DEFAULT_SEED,
    SHORT_PASSES,
    SHORT_PS,
    SURE,
    UNSURE_S,
    ComputeNote,
    InState,
    ModelledRank,
    Prediction,
    Range,
    Spread,
    Statistic,
    compute_share,
    keep,
    read,
    sha256_of,
    utc_now,
)
from wiretwin.predict.solo import departed
from wiretwin.states import state_of
from wiretwin.twin import Crossing, Layer, Twin

if TYPE_CHECKING:
    import polars as pl

#: Recordings above this are not kept for passes with one process a rank, in bytes.
RECORDING_LIMIT = 1 << 30
#: A shorter time that a rank is blocked outside MPI is not worth a word.
WORTH_SAYING_S = 1e-3
#: Ways to deal ranks to cores that are tried; fewer where the program itself has to run for each.
DEALS, TIMED_DEALS = 12, 3
#: Where the program itself has to run for each end of the twin's intervals and sends more messages than this,
#: the parts of the twin are not taken apart.
MOST_APART = 5_000
COMPUTE_FILE = "compute.parquet"


@dataclass(frozen=True, slots=True)
class Modelled:
    """One simulated run, reduced to what a prediction keeps."""

    seconds: float
    per_rank: list[ModelledRank]
    digest: str
    messages: int
    timeline: Timeline | None


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """What each rank did when, as the world has it: columns, and the words that they count."""

    columns: Mapping[str, Any]
    names: list[str]
    places: list[str]
    coarse_ps: int

    def frame(self) -> pl.DataFrame:
        """Return it as `wiretwin.predict.timeline.frame` has it."""
        return timeline.frame(self.columns, self.names, self.places)


def predict(
    program: str | Path,
    args: Sequence[str] = (),
    *,
    twin: str | Path | Twin | None = None,
    ranks: int = 2,
    layer: str | None = None,
    network: AnyNetwork | None = None,
    ranks_per_host: int | None = None,
    passes: int | None = None,
    statistic: Statistic = "median",
    compute_ps: int | None = None,
    replay: str | Path | None = None,
    negligible_ps: int = 0,
    seed: int = DEFAULT_SEED,
    out: str | Path | None = None,
    limit_s: float = 120.0,
    on_stage: Callable[[str], None] | None = None,
) -> Prediction:
    """Predict the run of an mpi4py program on the host of a twin, and record the prediction.

    A program that uses what `wiretwin.mpi` does not simulate, or that does something else when its ranks are
    measured one by one, runs under the MPI library itself, as `wiretwin.predict.executable` runs compiled
    ones; the prediction's warnings say so.

    Parameters
    ----------
    program, args
        The script and its arguments.
    twin
        A twin, or the file of one; none on a network that has hosts of its own, and ``nothing`` for hosts
        that cost nothing.
    ranks
        How many ranks; more ranks than the host has cores share them.
    layer
        The layer of the twin that the messages take, ``mpi4py/mpich`` if none is named; on a network that has
        hosts of its own, their stack, such as ``mpi-mpich/tcp/aal5``.
    network
        What joins hosts like the twin's; none where all ranks live on one. A text such as
        ``fat-tree:hosts=64,rate=100Gbit/s``, a TOML file, or a `wiretwin.Network`; or a network that has
        hosts of its own, such as ``asx100``.
    ranks_per_host
        With a network, how many ranks a host takes before the next one is filled; 1 by default.
    passes
        How often the computation is measured; unless told, 5 times, 15 where no rank computes for 10 ms, and
        up to 15 while the passes scatter. Up to twice more where only some ranks of those that do the same
        are measured, and differ.
    statistic
        What is made of the passes, stretch by stretch.
    compute_ps
        Computation between two calls as given, in picoseconds, instead of measured.
    replay
        The folder of an earlier prediction of the same program, arguments and ranks, whose
        computation is taken instead of measured: the same run again, or on another twin.
    negligible_ps
        Where no rank computes for longer than this while its messages are recorded, in picoseconds, what was
        found then is taken, and no pass is made.
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
    forecast = Forecast(
        program,
        args,
        twin=twin,
        ranks=ranks,
        layer=layer,
        network=network,
        ranks_per_host=ranks_per_host,
        passes=passes,
        statistic=statistic,
        compute_ps=compute_ps,
        replay=replay,
        negligible_ps=negligible_ps,
        seed=seed,
        limit_s=limit_s,
        keep=out is not None,
    )
    say = on_stage or (lambda _: None)
    try:
        say("recording the messages")
        forecast.record()
        while forecast.wants_another():
            number = len(forecast.passes) + 1
            say(f"measuring the computation, pass {number} of {max(number, forecast.passes_to_make)}")
            forecast.measure()
    except (NotSimulatedError, DepartureError) as error:
        if forecast.site.local is not None or replay is not None:
            raise
        # Only here, so that nobody waits for what knows of libraries.
        from wiretwin.predict.executable import predict_executable

        return predict_executable(
            program,
            args,
            twin=twin,
            ranks=ranks,
            layer=layer,
            network=network,
            ranks_per_host=ranks_per_host,
            passes=passes,
            statistic=statistic,
            compute_ps=compute_ps,
            seed=seed,
            out=out,
            limit_s=limit_s,
            on_stage=on_stage,
            because=str(error).partition(";")[0],
        )
    say("simulating with the computation found")
    return forecast.freeze(None if out is None else Path(out))


class Forecast:
    """A prediction in the making: `record` once, `measure` pass by pass, `freeze`.

    Passes of several programs can so be made in turns, and a drift of the host's speed meets them
    all alike. The arguments are those of `predict`; with `keep`, `freeze` may be given a folder.
    """

    def __init__(
        self,
        program: str | Path,
        args: Sequence[str] = (),
        *,
        twin: str | Path | Twin | None = None,
        ranks: int = 2,
        layer: str | None = None,
        network: AnyNetwork | None = None,
        ranks_per_host: int | None = None,
        passes: int | None = None,
        statistic: Statistic = "median",
        compute_ps: int | None = None,
        replay: str | Path | None = None,
        negligible_ps: int = 0,
        seed: int = DEFAULT_SEED,
        limit_s: float = 120.0,
        keep: bool = True,
    ) -> None:
        self.path = script.checked(program)
        if passes is not None and not 1 <= passes <= 1000:
            raise InputError(key="--passes", value=passes, allowed="1 to 1000")
        if not 0 <= seed < 1 << 64:
            raise InputError(key="--seed", value=seed, allowed="0 to 2^64 - 1")
        if compute_ps is not None and replay is not None:
            raise InputError(key="replay", value=str(replay), reason="not together with compute_ps")
        self.args = tuple(args)
        self.site = Site.of(ranks, network, ranks_per_host, layer)
        self.twin = self.site.twin_for(twin)
        if (local := self.site.local) is not None:
            layer = _mpi_stack(local)
        self.ranks, self.layer, self.statistic = ranks, layer or LAYER, statistic
        self.seed, self.limit_s = seed, limit_s
        self.negligible_ps, self.keep = negligible_ps, keep
        self.states = [_State(states.name(0, 1), None, None)]
        if self.twin is not None:
            self.states = _states(self.twin.layer(self.layer))
        self.network = self.site.model(self.twin, self.layer, state=self.states[0].twins, fresh=True)
        self.network_json = json.dumps(self.network)
        self.source: ComputeSource = Measured() if compute_ps is None else Given(compute_ps)
        self.kind: Literal["measured", "given", "replayed"] = "measured" if compute_ps is None else "given"
        self.earlier: list[list[int]] = []
        if replay is not None:
            self.earlier = earlier_compute(Path(replay), self.path, args, ranks)
            self.source, self.kind = Replay(self.earlier), "replayed"
        self._more = passes is None
        self._measuring_s = 0.0
        self.passes_to_make = (passes or DEFAULT_PASSES) if self.kind == "measured" else 0
        self.passes: list[Pass] = []
        self._blocked: list[list[dict[str, int]]] = []
        self._alike: list[list[int]] = []
        self._sample, self._measured = 0, self.ranks
        self._doubted: dict[int, list[int]] = {}
        self.warnings: list[str] = []
        self.run: SimulatedRun
        self.recording: Recording

    def record(self) -> None:
        """Simulate once and keep what the ranks and the world said."""
        self.run, self.recording = self._simulate(self.source)
        longest = max(trace.longest() for trace in self.recording.traces)
        far = unmeasured(self.twin, self.layer, longest)
        self.warnings = [*self.site.notes(self.twin), *far, *self.run.warnings]
        if self.recording.is_silent():
            self.warnings.append(
                f"{self.path.name} never communicates: what is predicted is its computation alone"
            )
        longest_ps = max(map(sum, self.run.compute.durations_ps))
        if self._more and self.passes_to_make and longest_ps < SHORT_PS:
            self.passes_to_make = SHORT_PASSES
        if self.passes_to_make and longest_ps <= self.negligible_ps:
            self.passes, self.passes_to_make = [self.run.compute], 0
            self.warnings.append(
                f"no rank computes for more than {longest_ps / 1e6:.3g} us: that was measured once, all "
                "ranks in one process; `predict` measures it again and again, each rank on a core of its own"
            )
        self._alike = alike.groups(self.recording, self.run.compute.durations_ps)
        held = self.recording.content_bytes()
        self._apart = held <= RECORDING_LIMIT
        if self.passes_to_make and not self._apart:
            self.warnings.append(
                f"the messages hold {held >> 20} MiB, too much to run the ranks one a process: computation "
                "was measured with all ranks in one process"
            )

    def wants_another(self) -> bool:
        """Return whether another measuring pass is due: one of `passes_to_make`, or one because they scatter.

        One is due while ranks that do the same differ by what may be noise. Unless somebody has said how
        many, as many are made as of a short script while the sum of the busiest rank is not known to within
        `SURE`, and no more is begun after `UNSURE_S`.
        """
        made = len(self.passes)
        if made < self.passes_to_make or self._doubted:
            return True
        if not self._more or not 0 < self.passes_to_make <= made < SHORT_PASSES:
            return False
        if self._measuring_s > UNSURE_S:
            return False
        computed_ps = [max(map(sum, one.durations_ps)) for one in self.passes]
        return spread.uncertainty([math.log(max(1, ps)) for ps in computed_ps]) > SURE

    def measure(self) -> None:
        """Make one measuring pass."""
        begun = time.monotonic()
        self._measure()
        self._measuring_s += time.monotonic() - begun

    def _measure(self) -> None:
        if not self._apart:
            self.passes.append(self._simulate(Measured())[0].compute)
            return
        in_place_of = alike.sample(self._alike, self._sample, self.seed)
        chosen = sorted(set(in_place_of.values()))
        parts = self._parts(chosen)
        self._measured = len(chosen)
        every = [parts[in_place_of[rank]] for rank in range(self.ranks)]
        durations, asleep = ([one.durations_ps for one in every], [one.asleep_ps for one in every])
        crossing = parts[chosen[0]].crossing_ns
        self.passes.append(Pass(durations, list(self.run.compute.digests), crossing, asleep))
        self._blocked.append([one.blocked_ns for one in every])
        if len(chosen) < self.ranks:
            self._compare(parts)

    def _compare(self, parts: Mapping[int, solo.Part]) -> None:
        """Measure others in the next pass, the same ones while they differ, all once that is no noise."""
        for rank, part in parts.items():
            self._doubted.setdefault(rank, []).append(sum(part.durations_ps))
        if not alike.differ(self._alike, self._doubted):
            self._sample += 1
        elif all(len(totals) < alike.ENOUGH for totals in self._doubted.values()):
            return
        else:
            self._alike = [[rank] for rank in range(self.ranks)]
            self.passes.clear()
            self._blocked.clear()
        self._doubted.clear()

    def _parts(self, chosen: Sequence[int]) -> dict[int, solo.Part]:
        """Run the chosen ranks, each in a process of its own, and return what they computed."""
        found = solo.measure(
            self.path,
            self.args,
            self.recording,
            self.network_json,
            seed=self.seed,
            limit_s=self.limit_s,
            chosen=chosen,
            shared=self.site.shares_cores(self.twin),
        )
        parts = dict(zip(chosen, found, strict=True))
        for rank, part in parts.items():
            if part.digests != self.run.compute.digests[rank]:
                raise departed(self.path, rank)
        return parts

    def _untold_s(self) -> float:
        """Return for how long a rank was blocked for what cannot be told that a real run may not have.

        That in which passes differ, of the rank for which they do most; one pass tells nothing of it.
        """
        by_rank = zip(*([rank[UNKNOWN] for rank in one] for one in self._blocked), strict=True)
        differ = (max(times) - (min(times) if len(times) > 1 else 0) for times in by_rank)
        return max(differ, default=0) / 1e9

    def _blocked_s(self, kind: str) -> tuple[float, int]:
        """Return for how long the rank was blocked that was so the longest, in seconds, and which it is."""
        passes = [[rank[kind] for rank in one] for one in self._blocked]
        by_rank = [median_low(times) for times in zip(*passes, strict=True)]
        return max(((ns / 1e9, -rank) for rank, ns in enumerate(by_rank)), default=(0.0, 0))

    def _measured_notes(self) -> list[str]:
        """Say which ranks were measured for others, and what they were blocked for outside MPI."""
        said = []
        if self._measured < self.ranks:
            kinds = f"{len(self._alike)} kind{'s' if len(self._alike) > 1 else ''}"
            said.append(
                f"{self.ranks} ranks of {kinds}: those of one make calls that are alike, and computation was "
                f"measured on {self._measured} of them in each pass, others in the next"
            )
        for kind in KINDS:
            seconds, rank = self._blocked_s(kind)
            if seconds < WORTH_SAYING_S:
                continue
            so = "it counts as it was"
            if kind == UNKNOWN:
                so += f", and the interval is wider by the {self._untold_s():.3g} s in which passes differ"
            said.append(f"rank {-rank} was blocked for {seconds:.3g} s outside MPI by {kind}: {so}")
        return said

    def least_passes(self) -> int:
        """Return how many passes there are in the state of the twin that the fewest were made in."""
        return min(len(self._passes_in(state)) for state in self.states)

    def _passes_in(self, state: _State) -> list[Pass]:
        if state.crossing_ns is None:
            return self.passes
        known: list[Any] = self.states
        return [one for one in self.passes if state_of(one.crossing_ns, known) is state]

    def freeze(self, out: Path | None = None) -> Prediction:
        """Simulate with the computation found, and seal the record; into `out`, if that is given."""
        measured = self.kind == "measured"
        found = [self._predicted(state) for state in self.states]
        # The state that most was measured in, or the one with the nearest ranks.
        main = max(found, key=lambda one: len(one.passes)) if measured else found[0]
        warnings = [*self.warnings, *self._measured_notes()]
        if main.model.timeline is not None:
            warnings += timeline.coarse_note(main.model.timeline.coarse_ps)
        prediction = Prediction(
            program=self.path.name,
            program_sha256=sha256_of(self.path),
            args=list(self.args),
            ranks=self.ranks,
            layer=self.layer,
            twin_sha256=None
            if self.twin is None
            else hashlib.sha256(self.twin.to_toml().encode()).hexdigest(),
            network=main.network,
            seed=self.seed,
            compute=ComputeNote(
                source=self.kind,
                statistic=self.statistic,
                passes=max(1, len(self.passes)),
                concurrent=min(
                    self.ranks, len(os.sched_getaffinity(0)) if self.twin is None else self.twin.host.cores
                ),
                other_paths=list(dict.fromkeys(text for one in found for text in one.other_paths)),
            ),
            seconds=main.seconds,
            noise=main.noise,
            setup=main.setup,
            per_rank=main.model.per_rank,
            messages=main.model.messages,
            trace_digest=main.model.digest,
            state=main.state.name if main.state.crossing_ns is not None else None,
            states=[one.record() for one in found if one.state.crossing_ns is not None],
            warnings=warnings,
            printed=printed.kept(self.run.stdout),
            wiretwin=importlib.metadata.version("wiretwin"),
            frozen_utc=utc_now(),
        ).sealed()
        if out is not None:
            assert main.model.timeline is not None
            _keep(out, prediction, main.model.timeline, main.durations_ps)
        return prediction

    def _predicted(self, state: _State) -> _Predicted:
        """Simulate one state of the host: its network, and the computation measured in it."""
        network = self.site.model(self.twin, self.layer, state=state.twins, fresh=True)
        passes = self._passes_in(state)
        used = passes or self.passes
        by_pass: list[float] = []
        ends: list[list[float]] = []
        other_paths: list[str] = []
        run, recording = self.run, self.recording
        count = TIMED_DEALS if recording.timed else DEALS
        found = deals(network, count, self.seed)

        def as_dealt(model: dict[str, Any], number: int) -> dict[str, Any]:
            return dealt(model, found[number % len(found)], number, count) if found else model

        worlds = [as_dealt(network, number) for number in range(count if found else 0)]
        if recording.timed:
            source = self.source
            if self.kind == "measured":
                durations = typical(used, self.statistic)
                asleep = typical_sleep(used, durations)
                source = Aggregated([Pass(durations, used[0].digests, asleep_ps=asleep)])
            if self.kind == "measured" or worlds or network != self.network:
                runs = [self._simulate(source, json.dumps(one)) for one in worlds or [network]]
                by_deal = [one.seconds for one, _ in runs]
                at = by_deal.index(median_low(by_deal))
                run, recording = runs[at]
            else:
                by_deal, at = [], 0
            other_paths = [text for text in run.warnings if text not in self.warnings]
            chosen = run.compute.durations_ps
            model = _as_run(run, _sent(recording))
            ends = [
                [self._simulate(source, json.dumps(as_dealt(one, at)))[0].seconds for one in both]
                for both in self.site.ends(
                    self.twin, self.layer, state.twins, apart=model.messages <= MOST_APART
                )
            ]
            if self.kind == "measured":
                by_pass = times_by_pass(model.seconds, used, chosen, self._ranks_a_core())
        else:
            if self.kind != "measured" and network != self.network:
                run, recording = self._simulate(self.source, json.dumps(network))
            chosen = typical(used, self.statistic) if self.kind == "measured" else run.compute.durations_ps
            asleep = typical_sleep(used, chosen)
            trace = Trace(run, recording, self.seed)
            by_deal = [trace.modelled(json.dumps(one), chosen, asleep).seconds for one in worlds]
            at = by_deal.index(median_low(by_deal)) if worlds else 0
            network = worlds[at] if worlds else network
            network_json = json.dumps(network)
            if self.kind == "measured" or worlds:
                model = trace.modelled(network_json, chosen, asleep, keep=self.keep)
            else:
                model = _as_run(run, _sent(recording))
            if self.kind == "measured":
                by_pass = [
                    model.seconds
                    if one.durations_ps == chosen
                    else trace.modelled(network_json, one.durations_ps, one.asleep_ps).seconds
                    for one in used
                ]
            ends = [
                [trace.modelled(json.dumps(as_dealt(one, at)), chosen, asleep).seconds for one in both]
                for both in self.site.ends(self.twin, self.layer, state.twins)
            ]
        if self.kind == "replayed":
            _check_all_used(self.earlier, chosen)
        network = worlds[at] if worlds else network
        setup = None if self.kind == "given" or self.twin is None else self.site.setup(self.twin)

        def within(errors: learnt.Errors | None = None, share: float = 0.0) -> Spread:
            low, high = spread.interval(
                model.seconds,
                by_pass,
                ends,
                by_deal if worlds else (),
                self._untold_s(),
                known=None if setup is None else learnt.launches(setup, model.seconds),
                errors=errors,
                compute_share=share,
            )
            programs = 0 if errors is None else errors.programs
            meaning = spread.meaning(self.kind != "measured", self.twin is None, bool(worlds), programs)
            return Spread(value=model.seconds, low=low, high=high, meaning=meaning)

        noise = seconds = within()
        if setup is not None:
            computed_s = [rank.compute_s for rank in model.per_rank]
            share = compute_share(network, computed_s, model.seconds)
            seconds = within(learnt.errors(setup), share)
        return _Predicted(state, network, passes, seconds, noise, setup, model, chosen, other_paths)

    def _ranks_a_core(self) -> int:
        """Return how many ranks share a core where the most do."""
        if self.twin is None:
            return 1
        return -(
            -(self.ranks if self.site.on_one_machine else self.site.ranks_per_host) // self.twin.host.cores
        )

    def _simulate(
        self, source: ComputeSource, network_json: str | None = None
    ) -> tuple[SimulatedRun, Recording]:
        network = self.network_json if network_json is None else network_json
        return stage.simulate(
            self.path,
            self.args,
            self.ranks,
            network,
            source,
            seed=self.seed,
            limit_s=self.limit_s,
            timeline=self.keep,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """A state of the host that is predicted: its name, the twin's name for it, how far apart the ranks are.

    A twin that saw one state has no name for it; one that knows nothing of states has one without a
    distance.
    """

    name: str
    twins: str | None
    crossing_ns: Crossing | None


def _states(layer: Layer) -> list[_State]:
    if layer.states:
        return [_State(state.name, state.name, state.crossing_ns) for state in layer.states]
    return [_State(states.name(0, 1), None, layer.crossing_ns)]


@dataclass(frozen=True, slots=True)
class _Predicted:
    """One state's prediction; `passes` are those made in it."""

    state: _State
    network: dict[str, Any]
    passes: list[Pass]
    seconds: Spread
    noise: Spread
    setup: str | None
    model: Modelled
    durations_ps: list[list[int]]
    other_paths: list[str]

    def record(self) -> InState:
        """Return what the record keeps."""
        crossing = self.state.crossing_ns
        assert crossing is not None
        return InState(
            name=self.state.name,
            crossing_ns=Range(low=crossing.low, high=crossing.high),
            network=self.network,
            passes=len(self.passes),
            seconds=self.seconds,
            noise=self.noise,
            per_rank=self.model.per_rank,
            trace_digest=self.model.digest,
        )


class Trace:
    """A recorded run that can run again on another network or with other computation."""

    def __init__(self, run: SimulatedRun, recording: Recording, seed: int) -> None:
        self.run = run
        self.recording = recording
        self.messages = _sent(recording)
        self.seed = seed

    def modelled(
        self,
        network_json: str,
        durations_ps: Sequence[Sequence[int]],
        asleep_ps: Sequence[Mapping[int, int]] = (),
        *,
        keep: bool = False,
    ) -> Modelled:
        """Run the trace in a fresh world; `keep` its timeline."""
        world: Any = _core.World(self.run.ranks, network_json, seed=self.seed, timeline=keep)
        run_again(self.recording, world, durations_ps, asleep_ps)
        again = replace(
            self.run,
            begin_ps=[world.begun_ps(rank) for rank in range(self.run.ranks)],
            end_ps=[world.now_ps(rank) for rank in range(self.run.ranks)],
            totals_ps=dict(world.totals()),
            timeline=dict(world.timeline()) if keep else None,
            coarse_ps=world.timeline_coarse_ps(),
            names=list(world.names()),
            digest=world.digest(),
        )
        return _as_run(again, self.messages)


def _sent(recording: Recording) -> int:
    return sum(trace.sends() for trace in recording.traces)


def _as_run(run: SimulatedRun, messages: int) -> Modelled:
    per_rank = []
    for rank in range(run.ranks):
        parts = {f"{kind}_s": float(run.totals_ps[f"{kind}_ps"][rank]) / 1e12 for kind in timeline.KINDS}
        begin_s = run.begin_ps[rank] / 1e12
        parts["waiting_s"] -= begin_s  # for its first turn on a core that it shares: its clock stands yet
        per_rank.append(ModelledRank(rank=rank, total_s=run.end_ps[rank] / 1e12 - begin_s, **parts))
    kept = None
    if run.timeline is not None:
        places = [f"{Path(file).name}:{line}" for file, line in run.sites]
        kept = Timeline(run.timeline, run.names, places, run.coarse_ps)
    return Modelled(run.seconds, per_rank, run.digest, messages, kept)


def _mpi_stack(network: LocalNetwork) -> str:
    """Return the stack of a network that has hosts of its own; scripts need one of MPI."""
    if not network.carries_mpi:
        allowed = f"for scripts, one of MPI: {', '.join(MPI_LAYERS)}, such as mpi-mpich/tcp/aal5"
        raise InputError(key="--stack", value=network.stack, allowed=allowed)
    return network.stack


def earlier_compute(folder: Path, program: Path, args: Sequence[str], ranks: int) -> list[list[int]]:
    """Return the computation that an earlier prediction was made with, by rank, in picoseconds.

    Raises
    ------
    InputError
        When the folder holds no prediction, or one of another program, arguments or ranks, or its
        computation cannot be read.
    """
    import polars as pl

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
    schema = _compute_schema()
    if dict(frame.schema) != schema:
        found = ", ".join(f"{name}: {kind}" for name, kind in frame.schema.items())
        wanted = ", ".join(f"{name}: {kind}" for name, kind in schema.items())
        raise InputError(file, "columns", found, wanted)
    durations: list[list[int]] = [[] for _ in range(ranks)]
    for row, (rank, stretch, duration_ps) in enumerate(frame.iter_rows()):
        if rank is None or rank >= ranks or stretch != len(durations[rank]) or duration_ps is None:
            value = f"rank {rank}, stretch {stretch}, {duration_ps} ps"
            raise InputError(file, f"row {row}", value, "ranks and stretches in order, none left out")
        durations[rank].append(duration_ps)
    return durations


def _compute_schema() -> dict[str, pl.DataType]:
    import polars as pl

    return {"rank": pl.UInt32(), "stretch": pl.UInt32(), "duration_ps": pl.UInt64()}


def _check_all_used(earlier: Sequence[Sequence[int]], used: Sequence[Sequence[int]]) -> None:
    for rank, (had, took) in enumerate(zip(earlier, used, strict=True)):
        if len(had) > len(took):
            raise InputError(
                key=f"recorded computation of rank {rank}",
                value=f"{len(had)} stretches",
                reason=f"but the program has {len(took)}: it takes another path",
            )


def _keep(
    folder: Path, prediction: Prediction, kept: Timeline, durations_ps: Sequence[Sequence[int]]
) -> None:
    import polars as pl

    compute = pl.DataFrame(
        {
            "rank": [rank for rank, values in enumerate(durations_ps) for _ in values],
            "stretch": [index for values in durations_ps for index in range(len(values))],
            "duration_ps": [value for values in durations_ps for value in values],
        },
        schema=_compute_schema(),
    )
    keep(folder, prediction, {timeline.FILE: kept.frame(), COMPUTE_FILE: compute})
