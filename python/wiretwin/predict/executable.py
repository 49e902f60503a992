"""Predict a program under the MPI library itself, in a simulated world: a compiled one, or a script.

Each rank is a process, started by the library's own launcher. The simulated world decides when messages
arrive and whose turn it is, so that one rank computes at a time; what it computes is measured as it runs, on
one core. In a real run its neighbours compute as well, and take their part of caches and memory: as many
worlds run at once as cores would be at work, each on a core of its own. A program of which two runs cannot go
on at once, for they meet in files, runs by itself. So does one whose ranks compute for so short a time
between turns that much of it would be spent on caches which others have filled: its ranks have a core each,
as in the real run, and what the simulator then takes of one of these is left out (`disturbance`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wiretwin import _core, leftovers, process, scratch, shared_memory
from wiretwin.errors import InputError, ProgramError, SimulationError
from wiretwin.predict import learnt, printed, spread, timeline
from wiretwin.predict.disturbance import Disturbance
from wiretwin.predict.hosts import long_sends_wait
from wiretwin.predict.model import LAYER, AnyNetwork, Side, Site, deals, dealt, unmeasured
from wiretwin.predict.present import state_now
from wiretwin.predict.records import (
    DEFAULT_PASSES,
    DEFAULT_SEED,
    ComputeNote,
    ModelledRank,
    Prediction,
    Spread,
    Statistic,
    compute_share,
    keep,
    sha256_of,
    utc_now,
)
from wiretwin.stacks import simulated
from wiretwin.stacks.layers import parse_layer
from wiretwin.twin import Twin

__all__ = ["Recorder", "predict_executable"]

LOOK_PS = 20_000
"""What a look at the clock costs, picoseconds, so that a loop on the time ends."""
_SPARE_BYTES = 16 << 20
"""Shared memory that messages under way leave to the library and to others."""


_SHORT_S = 100e-6
"""Computation between turns, seconds, below which ranks do not share a core where each can have its own.

A core needs about as long to read what its own second-level cache holds (0.5 to 2 MB) from memory once, at
10 to 40 GB/s. Up to there what a rank works on fits into that cache: its neighbours take nothing of it by
what they read, but ranks that share the core take all of it.
"""

_Stuck = tuple[int, str, str, int]
"""A rank that waits, for what, in which call, at which site."""

_MEMORY = f"in context {(1 << 32) - 1}"
"""How it names the wait for what another rank does in memory."""
_READY = "receive of a message from any rank with tag 0 in context 0"
"""How the simulated world names the receive of any message without a tag."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """A library before the program's MPI that writes down each call, and the variables that it is told by."""

    shim: Path
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Run:
    """One simulated run: by rank, the time from Init to Finalize, the same by kind, messages sent, and turns.

    The ranks that the launcher started come first, and then those that were spawned.
    """

    launched: int
    took: list[tuple[int, list[int], int, int]]
    world: Any
    printed: list[str]

    @property
    def seconds(self) -> float:
        return max(total for total, *_ in self.took[: self.launched]) / 1e12

    @property
    def computed_s(self) -> list[float]:
        """How long each rank computed, in seconds."""
        compute = timeline.KINDS.index("compute")
        return [totals[compute] / 1e12 for _, totals, *_ in self.took]

    @property
    def stretch_s(self) -> float:
        """How long ranks compute between two turns."""
        return sum(self.computed_s) / max(1, sum(turns for *_, turns in self.took))


def predict_executable(
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
    seed: int = DEFAULT_SEED,
    ends: bool = True,
    out: str | Path | None = None,
    limit_s: float = 120.0,
    on_stage: Callable[[str], None] | None = None,
    because: str | None = None,
    recorder: Recorder | None = None,
) -> Prediction:
    """Predict the run of a program under the MPI library itself, and record the prediction.

    What is predicted is the time from after Init to before Finalize on the slowest rank.

    Parameters
    ----------
    program, args
        The executable file, or a script of mpi4py, and its arguments.
    twin, ranks, network, ranks_per_host, seed, out, limit_s, on_stage
        As for `wiretwin.predict`.
    layer
        The layer of the twin that the messages take; by default that of the library, also for a script: what
        mpi4py does is a part of its computation. Without that layer in the twin, a script takes its own.
    passes, statistic
        How often the program is run with its computation measured, and which of those runs is taken.
    compute_ps
        Computation between two calls as given, in picoseconds, instead of measured.
    ends
        Whether it is also run with the ends of the twin's intervals.
    because
        Why a script runs under the library itself, for the prediction's warnings.
    recorder
        What writes down each call of the ranks; the program runs once then, whatever `passes` says.

    Raises
    ------
    InputError, StackError
        When an input is wrong; when the library or its shim cannot be had.
    SimulationError, ProgramError
        When the run comes to no end; when the program fails or does not end in time.
    """
    path = Path(program).absolute()
    library = simulated.needed(path, layer)
    passes = DEFAULT_PASSES if passes is None else passes
    if not 1 <= passes <= 1000:
        raise InputError(key="--passes", value=passes, allowed="1 to 1000")
    if not 0 <= seed < 1 << 64:
        raise InputError(key="--seed", value=seed, allowed="0 to 2^64 - 1")
    site = Site.of(ranks, network, ranks_per_host, layer)
    if site.local is not None:
        allowed = "a network whose hosts are a twin's: a library that runs is not modelled"
        raise InputError(key="--network", value=str(site.local), allowed=allowed)
    if (short := shared_memory.short_of(ranks)) is not None:
        raise InputError(key="--ranks", value=ranks, reason=short)
    fitted = site.twin_for(twin)
    is_script = not simulated.is_executable(path)
    named = layer or (LAYER if is_script else library.layer)
    layer = layer or library.layer
    if is_script and fitted is not None and layer not in fitted.layers:
        layer = named
    launched = [sys.executable, "-P", "-m", "wiretwin.mpi.launched"] if is_script else []
    command = [*launched, str(path), *args]
    state = None
    if fitted is not None:
        known = fitted.layer(layer)
        # What is computed is measured on this host as it is now; what is given is the same on every run.
        state = state_now(known) if compute_ps is None else next(iter(known.states), None)
    say = on_stage or (lambda _: None)

    spawned = 0
    threads = 1 if is_script else min(process.threads_asked(), len(os.sched_getaffinity(0)))
    env = process.single_threaded() if is_script else process.threaded_as_asked()
    alone = compute_ps is not None or recorder is not None or threads > 1
    cores = 1 if alone else _at_work(site, fitted)

    hosts = fitted
    if fitted is not None and library.shares_like is not None:
        hosts = _with_sharing_of(fitted, layer, library.shares_like)
    model = site.model(hosts, layer, "value", None if state is None else state.name)
    shares_memory = parse_layer(layer, "--layer").options["transport"] == "auto"
    in_memory = shares_memory and len(set(model["placement"])) == 1
    # Which ranks share a core is another in each launch, and so in each pass.
    count = passes
    ways = deals(model, count, seed)

    def once(side: Side, number: int, core: int, ended: threading.Event) -> _Run:
        nonlocal spawned
        one = site.model(hosts, layer, side, None if state is None else state.name)
        if fitted is None:
            one = long_sends_wait(one)
        if ways:
            one = dealt(one, ways[number % len(ways)], number % count, count)
        while True:
            # Processes that the program spawns go to the hosts of its ranks, in turn.
            placement = [one["placement"][number % ranks] for number in range(ranks + spawned)]
            nodes = one["nodes"]
            if fitted is None and spawned:
                # Hosts that cost nothing have a core for everybody.
                nodes = [node | {"cores": ranks + spawned} for node in nodes]
            if ways:  # and to their cores in turn, after the others
                more = [number % nodes[placement[number]]["cores"] for number in range(ranks, len(placement))]
                one |= {
                    "dealt": one["dealt"][:ranks] + more,
                    "order": one["order"][:ranks] + list(range(ranks, len(placement))),
                }
            text = json.dumps(one | {"placement": placement, "nodes": nodes})
            world = _core.World(ranks + spawned, text, seed=seed, timeline=out is not None)
            disturbed = (0, 0.0) if disturbance is None else disturbance.of(number)
            if own_cores and disturbance is None:
                core = ranks
            elif disturbance is not None:
                core = disturbed[0]
            simulated_run = _Simulated(
                world, ranks, compute_ps, limit_s, recorder, core, cores, ended, in_memory, own_cores,
                disturbed, threads, env,
            )  # fmt: skip
            found = simulated_run.run(library, path.name, command)
            if isinstance(found, _Run):
                if disturbance is not None:
                    disturbance.saw(*disturbed, found.computed_s)
                return found
            if recorder is not None:
                raise ProgramError(f"{path.name}: spawns processes, which are not recorded")
            if (short := shared_memory.short_of(ranks + found)) is not None:
                raise InputError(key="--ranks", value=ranks, reason=f"and {found} spawned: {short}")
            # The run is made anew, with room for more of them than are known to come.
            room = max(found, 2 * spawned)
            spawned = found if shared_memory.short_of(ranks + room) is not None else room

    collided, own_cores, at_work = False, False, cores
    disturbance: Disturbance | None = None

    def runs(sides: Sequence[Side], first: int = 0) -> list[_Run]:
        """Run as many worlds at once; one after the other, from then on, where they cannot be."""
        nonlocal cores, collided
        if cores > 1:
            try:
                return _at_once(once, sides, first)
            except (ProgramError, SimulationError):
                say("they may have met in files: simulating one at a time")
                cores = 1
            found = runs(sides, first)
            collided = True
            return found
        return [_at_once(once, [side], first + number)[0] for number, side in enumerate(sides)]

    tried: list[_Run] = []
    passes = passes if compute_ps is None and recorder is None else 1
    if passes > 1:
        # Of several launches the first alone pays for memory that the kernel has not had from the host below,
        # and for files that are in no cache.
        say("simulating once without measuring")
        first = runs(["value"] * cores)[0]
        has_room = threads == 1 and ranks <= len(os.sched_getaffinity(0))
        if first.stretch_s < _SHORT_S and not (ways or spawned) and has_room:
            own_cores, cores = True, 1
            if ranks == len(os.sched_getaffinity(0)):
                disturbance = Disturbance(ranks)
                for number in range(Disturbance.LEAST):
                    say(f"simulating to see what the simulator takes, {number + 1} of {Disturbance.LEAST}")
                    runs(["value"], number)
    while len(tried) < passes:
        for number in range(len(tried), min(passes, len(tried) + cores)):
            say(f"simulating, pass {number + 1} of {passes}" if passes > 1 else "simulating")
        # Also a last one has others beside it.
        tried += runs(["value"] * cores, len(tried))[: passes - len(tried)]
    tried.sort(key=lambda run: run.seconds)
    chosen = tried[0 if statistic == "minimum" else (len(tried) - 1) // 2]
    twins: list[float] = []
    if ends and fitted is not None:
        say("simulating with the ends of the twin's intervals")
        sides: list[Side] = ["low", "high"]
        while len(twins) < len(sides):
            some = (sides[len(twins) :] + sides)[:cores]
            twins += [run.seconds for run in runs(some)]
        twins = twins[: len(sides)]
    measured = compute_ps is None and len(tried) > 1
    setup = site.setup(fitted, library=True) if measured and fitted is not None else None
    by_pass = [run.seconds for run in tried] if measured else []
    per_rank = [
        ModelledRank(
            rank=rank,
            total_s=total / 1e12,
            **{f"{kind}_s": ps / 1e12 for kind, ps in zip(timeline.KINDS, totals, strict=True)},
        )
        for rank, (total, totals, *_) in enumerate(chosen.took[:ranks])
    ]

    def within(errors: learnt.Errors | None = None, share: float = 0.0) -> Spread:
        known = None if setup is None else learnt.launches(setup, chosen.seconds)
        low, high = spread.interval(
            chosen.seconds, by_pass, [twins], known=known, errors=errors, compute_share=share
        )
        programs = 0 if errors is None else errors.programs
        meaning = spread.meaning(not measured, not twins, False, programs)
        return Spread(value=chosen.seconds, low=low, high=high, meaning=meaning)

    noise = found = within()
    if setup is not None:
        share = compute_share(model, [rank.compute_s for rank in per_rank], chosen.seconds)
        found = within(learnt.errors(setup), share)
    prediction = Prediction(
        program=path.name,
        program_sha256=sha256_of(path),
        args=list(args),
        ranks=ranks,
        layer=named,
        twin_sha256=None if fitted is None else hashlib.sha256(fitted.to_toml().encode()).hexdigest(),
        network=model,
        seed=seed,
        compute=ComputeNote(
            source="measured" if compute_ps is None else "given", statistic=statistic, passes=len(tried)
        ),
        seconds=found,
        noise=noise,
        setup=setup,
        per_rank=per_rank,
        messages=sum(sent for _, _, sent, _ in chosen.took),
        trace_digest=chosen.world.digest(),
        printed=printed.kept(chosen.printed),
        warnings=[
            *site.notes(fitted),
            *unmeasured(fitted, layer, chosen.world.longest()),
            *([f"the twin's host has states: this is for {state.name}"] if state is not None else []),
            *([because] if because is not None else []),
            *([f"messages cost what the twin has of {layer}"] if layer != named else []),
            *(
                [f"the program spawned {processes} processes, on the hosts of its ranks in turn"]
                if (processes := len(chosen.took) - ranks)
                else []
            ),
            *(
                [
                    "ranks share cores, and what they do there is known of another edition of their library; "
                    f"measure {library.shares_like} for the same twin"
                ]
                if fitted is not None
                and library.shares_like is not None
                and library.shares_like not in fitted.layers
                and "wheel" not in layer.split("+")
                and _share_cores(model)
                else []
            ),
            f"{library.name} itself ran, one rank at a time "
            + ("on a core of its own" if own_cores else f"on {_cores(threads)} of this machine")
            + (f", and {cores} such runs at once, each beside the others" if cores > 1 else ""),
            *(
                [
                    f"{path.name} failed with {at_work} runs of it at once, as if they met in files: "
                    "it ran alone, and what neighbours take of caches and memory is not in it"
                ]
                if collided
                else []
            ),
            *timeline.coarse_note(chosen.world.timeline_coarse_ps() if out is not None else 0),
        ],
        wiretwin=importlib.metadata.version("wiretwin"),
        frozen_utc=utc_now(),
    ).sealed()
    if out is not None:
        frame = timeline.frame(chosen.world.timeline(), list(chosen.world.names()))
        keep(Path(out), prediction, {timeline.FILE: frame})
    return prediction


def _with_sharing_of(twin: Twin, layer: str, other: str) -> Twin:
    """Return a twin whose ranks of a layer share cores as those of another do, if it has that one.

    What a program runs under need not be what measured its layer: Debian's MPICH spins where that of the
    Python package gives way.
    """
    known = twin.layers.get(other)
    if known is None or known.sharing is None or layer not in twin.layers:
        return twin
    layers = twin.layers | {layer: twin.layers[layer].model_copy(update={"sharing": known.sharing})}
    return twin.model_copy(update={"layers": layers})


def _share_cores(model: Mapping[str, Any]) -> bool:
    """Return whether more ranks live on a host than it has cores."""
    return any(model["placement"].count(at) > node["cores"] for at, node in enumerate(model["nodes"]))


def _cores(count: int) -> str:
    return "one core" if count == 1 else f"{count} cores, for its OpenMP threads,"


def _at_work(site: Site, twin: Twin | None) -> int:
    """Return how many of this machine's cores ranks keep busy where the most of them share a host.

    Hosts that cost nothing have nobody beside a rank.
    """
    if twin is None:
        return 1
    ranks = site.ranks if site.on_one_machine else min(site.ranks, site.ranks_per_host)
    return min(ranks, twin.host.cores, len(os.sched_getaffinity(0)))


def _at_once(
    once: Callable[[Side, int, int, threading.Event], _Run], sides: Sequence[Side], first: int = 0
) -> list[_Run]:
    """Run as many worlds at once, each on a core of its own: what is computed has neighbours at work.

    They are numbered from `first` on.
    """
    ended = threading.Event()
    if len(sides) == 1:
        return [once(sides[0], first, 0, ended)]
    with ThreadPoolExecutor(len(sides)) as pool:
        runs = [pool.submit(once, side, first + core, core, ended) for core, side in enumerate(sides)]
        try:
            return [run.result() for run in runs]
        except BaseException:
            ended.set()
            raise


@contextlib.contextmanager
def _on_cores(number: int, count: int = 1) -> Iterator[None]:
    """Keep this thread, and what it starts, on `count` cores of those that it may run on.

    They follow each other downwards; `number` counts from the last core and names the first of them. On a
    single core no turn waits for another core to wake.
    """
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(cores, reverse=True)[number : number + count]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@dataclass(frozen=True, slots=True)
class _Simulated:
    """One world and how a program runs in it.

    The simulator's is `core` of `cores` that are at work, from the last; `ended` says that the others need no
    end of it; `windows_in_memory`, that the ranks reach each other's windows without messages; `own_cores`,
    that each rank has a core, the first the last one; `disturbed`, which of them shares its core with the
    simulator, and what share of its work is left out for that; `threads`, how many of OpenMP's a rank has,
    each with a core; `env`, the environment of all.
    """

    world: Any
    ranks: int
    compute_ps: int | None
    limit_s: float
    recorder: Recorder | None
    core: int
    cores: int
    ended: threading.Event
    windows_in_memory: bool
    own_cores: bool
    disturbed: tuple[int, float]
    threads: int
    env: dict[str, str]

    def run(self, library: simulated.Library, name: str, command: Sequence[str]) -> _Run | int:
        """Run a command on each rank; return how many processes it spawns if there is no room for them."""
        world, ranks, limit_s = self.world, self.ranks, self.limit_s
        room = shared_memory.room()
        memory_bytes = max(0, (0 if room is None else room.free) // self.cores - _SPARE_BYTES)
        with (
            scratch.folder(shared_memory.FOLDER, "sim") as folder,
            scratch.folder(what="ranks") as texts,
            scratch.folder(what="names") as names,
        ):
            memory = folder / "memory"
            env = self.env | library.environment(memory, names, windows_in_memory=self.windows_in_memory)
            shims = library.shims()
            if self.recorder is not None:
                shims.insert(0, self.recorder.shim)
                env |= self.recorder.env
            # Each rank's output goes to a file of its own.
            into = f'exec "$@" > "{texts}/${library.rank_variable}"'
            argv = [*library.started(ranks, *shims), "/bin/sh", "-c", into, "sh", *command]
            ends = time.monotonic() + limit_s
            with contextlib.ExitStack() as ran:
                ran.enter_context(leftovers.none_left(os.getuid()))
                if not self.own_cores:
                    ran.enter_context(_on_cores(self.core, self.threads))
                launcher, out, err = ran.enter_context(process.child(argv, env=env))
                if self.own_cores:
                    ran.enter_context(_on_cores(self.core))

                def goes_on() -> bool:
                    return launcher.poll() is None and time.monotonic() < ends and not self.ended.is_set()

                ended = world.serve(
                    str(memory),
                    goes_on,
                    launched=ranks,
                    tag_bits=library.tag_bits,
                    ignored=library.ignored,
                    apart=library.apart,
                    patience=library.patience,
                    windows_in_memory=self.windows_in_memory and library.reaches,
                    own_cores=self.own_cores,
                    disturbed=self.disturbed,
                    look_ps=LOOK_PS,
                    compute_ps=self.compute_ps,
                    memory_bytes=memory_bytes,
                )
                word, detail = ended
                if word == "spawned":
                    return int(detail[0])
                if word == "deadlock":
                    raise SimulationError(_deadlock(name, world))
                if word == "asked":
                    raise SimulationError(f"{name}: rank {detail[0]}: {detail[1]}")
                with contextlib.suppress(Exception):
                    # A rank that has gone: its launcher says more, soon.
                    launcher.wait(max(0.1, ends - time.monotonic()) if word != "gone" else 5.0)
                said = process.Finished(
                    launcher.poll() or 0,
                    out.read_text("utf-8", "replace"),
                    err.read_text("utf-8", "replace"),
                    limit_s,
                )
                late = time.monotonic() >= ends
                # What comes by the launcher is of processes that were spawned.
                by_rank = printed.read([*(texts / str(rank) for rank in range(ranks)), out])
            if word == "gone" and late and (detail[1] or detail[2]):
                raise SimulationError(_in_vain(name, detail[1], detail[2], limit_s))
            if word != "done" or said.returncode:
                raise _failure(name, word, detail[0], said, by_rank, late, limit_s, ranks)
            return _Run(ranks, detail, world, by_rank if by_rank[-1] else by_rank[:-1])


def _failure(
    name: str,
    word: str,
    number: int,
    said: process.Finished,
    by_rank: Sequence[str],
    late: bool,
    limit_s: float,
    ranks: int,
) -> ProgramError:
    """Say why a program did not come to its end."""
    words = said.last_words()
    if not words:  # Some programs say on their standard output why they fail.
        printing = [text for text in by_rank if text.strip()]
        words = replace(said, stdout=printing[0] if printing else "").last_words()
    if late:
        return ProgramError(f"{name}: the simulated run did not end within {limit_s:g} s and was ended")
    if word == "absent" and not said.returncode:
        return ProgramError(f"{name}: {number} of {ranks} ranks started MPI, and all have ended: {words}")
    if word == "gone" and not said.returncode:
        return ProgramError(f"{name}: rank {number} ended without finalizing MPI: {words}")
    where = f"rank {number}: " if word == "gone" else ""
    return ProgramError(f"{name}: {where}ended with {process.ending(said.returncode)}: {words}")


def _asked(what: str) -> str:
    """Return what a program waits for, but for what its library is always ready to receive."""
    asked = [part for part in what.split("; ") if part != _READY]
    asked = ["what another rank does to a window" if part.endswith(_MEMORY) else part for part in asked]
    return "; ".join(asked) or "a message of the library's own"


def _deadlock(name: str, world: Any) -> str:
    """Say who waits for what that will not come."""
    stuck = world.blocked()
    return _listed(f"{name}: deadlock: {len(stuck)} of {world.size} ranks can never go on", stuck)


def _in_vain(name: str, stuck: list[_Stuck], outside: list[tuple[int, str]], limit_s: float) -> str:
    """Say who looks again and again for what does not come, and who waits for them, in MPI or outside."""
    head = (
        f"{name}: the simulated run did not end within {limit_s:g} s and was ended: nothing happened any "
        "more, and ranks went on to look or to wait"
    )
    return _listed(head, stuck, outside)


def _listed(head: str, stuck: list[_Stuck], outside: Sequence[tuple[int, str]] = ()) -> str:
    """Say under a headline who waits or looks for what."""
    lines = [
        f"  rank {rank} waits outside MPI, in {where or 'a function'} of the kernel"
        for rank, where in outside[:8]
    ]
    lines += [
        f"  rank {rank} in {call or 'MPI'} {'looks' if simulated.looks(call) else 'waits'}: {_asked(what)}"
        for rank, what, call, _ in stuck[:8]
    ]
    if len(stuck) > 8:
        lines.append(f"  and {len(stuck) - 8} more")
    return "\n".join([head, *lines])
