"""The shipped programs that are compiled in, run by name in either world.

They are written once against `Comm` and know nothing of the world they run in: simulated on the
network of a twin, or live on sockets or shared memory, a process each. The digests of the two are equal.

A simulated run has a process of its own, `wiretwin.predict.named_process`, so that a limit and an interrupt
end it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wiretwin import process, scratch
from wiretwin.errors import InputError, ProgramError, StorageError
from wiretwin.marks import LAUNCH
from wiretwin.measure.job import on_stack
from wiretwin.measure.running import LOOK_S, made_for_it, rendezvous
from wiretwin.place import HERE, Place, host_of
from wiretwin.predict import timeline
from wiretwin.predict.model import LAYER, AnyNetwork, Site
from wiretwin.quantity import parse_time
from wiretwin.results import atomically
from wiretwin.stacks.layers import LAYERS, parse_layer
from wiretwin.stacks.word import COMPILED
from wiretwin.twin import Twin

if TYPE_CHECKING:
    import polars as pl

#: The layer of a live run, and of a prediction, that names none.
DEFAULT_LAYER = "socket/tcp"
#: How long a rank that has its answer may take to leave when another has failed, in seconds.
_GRACE_S = 5.0
#: What the ends of an echo do with the bytes of a message.
ECHO_WORK = ("made-byte", "answered-byte", "checked-byte")


@dataclass(frozen=True, slots=True)
class Named:
    """A compiled program.

    Attributes
    ----------
    name
        What it is called.
    summary
        What it does, in a line.
    parameters
        Their names and defaults.
    work
        Kinds of work whose cost the simulated world must be told.
    free_work
        Kinds that are free there unless a cost is told.
    """

    name: str
    summary: str
    parameters: Mapping[str, int]
    work: tuple[str, ...] = ()
    free_work: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of work that it does."""
        return self.work + self.free_work


NAMED = {
    one.name: one
    for one in (
        Named("echo", "round trips between ranks 0 and 1", {"bytes": 1024, "rounds": 1000}, (), ECHO_WORK),
        Named(
            "stream",
            "one way from rank 0 to rank 1",
            {"bytes": 65536, "messages": 1000},
            (),
            ("made-byte", "checked-byte"),
        ),
        Named(
            "cast",
            "one message from rank 0 to all others, and a short answer of each",
            {"bytes": 65536, "rounds": 100},
            (),
            ("cast-byte",),
        ),
        Named("ring", "ring allreduce of 8-byte numbers", {"elements": 10_000, "rounds": 100}, ("add",)),
        Named(
            "jacobi",
            "the heat equation on a grid",
            {"rows": 256, "columns": 256, "iterations": 200},
            ("stencil-point",),
        ),
        Named(
            "mm",
            "matrix multiplication on a mesh of ranks: stripes along rows and columns, blocks to rank 0",
            {"n": 256, "bits": 64, "rounds": 10, "down": 0, "across": 0},
            ("multiply-add",),
        ),
        Named(
            "pde",
            "Poisson's equation by over-relaxation on a mesh of ranks",
            {"n": 64, "accuracy": 6, "down": 0, "across": 0},
            ("sor-point",),
        ),
        Named(
            "pde1",
            "Poisson's equation on a cube by red-black over-relaxation: faces of half a plane",
            {"n": 45, "accuracy": 4, "check": 10, "down": 0, "across": 0},
            ("relax-point",),
        ),
        Named(
            "pde2",
            "Poisson's equation on a square by multigrid: many short messages",
            {"n": 63, "accuracy": 8, "down": 0, "across": 0},
            ("smooth-point", "transfer-point"),
        ),
        Named(
            "md",
            "molecular dynamics of a Lennard-Jones liquid on a mesh of ranks",
            {"x": 10, "y": 10, "z": 10, "steps": 50, "down": 0, "across": 0},
            ("atom-pair",),
        ),
        Named(
            "md-coarse",
            "the same in slabs with large faces: about 1 MB to each neighbour in each step",
            {"x": 12, "y": 80, "z": 80, "steps": 4, "down": 0, "across": 1},
            ("atom-pair",),
        ),
        Named(
            "netpipe",
            "NetPIPE: the one-way latency between ranks 0 and 1 over its schedule of sizes",
            {"most": 4 << 20, "perturbation": 3, "trial_us": 250_000, "trials": 7, "full": 0},
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Point:
    """What a program that measures has found: a size in bytes, its one-way latency, how many were made."""

    bytes: int
    time_ns: float
    rounds: int


@dataclass(frozen=True, slots=True)
class NamedRank:
    """One rank of a run; the parts of its time sum to `total_s`, in seconds.

    Attributes
    ----------
    rank
        Which one.
    total_s
        Its whole time.
    elapsed_s
        What the program itself takes as its time, without collecting and checking its result.
    parts_s
        Simulated: compute, endpoint, wire, waiting. Live: compute and comm (in calls), and other.
    digest
        Of its part of the result: the same in both worlds and on every layer.
    verified
        Whether it found right what it could check.
    compute_by_kind_s
        Live: its computation, by kind of work.
    counted
        Live: what its layer has counted, by name, if it counts.
    points
        What it has measured, in the order of sizes; of a program that measures nothing, none.
    """

    rank: int
    total_s: float
    elapsed_s: float
    parts_s: dict[str, float]
    digest: str
    verified: bool
    compute_by_kind_s: dict[str, float] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)
    points: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A compiled program that has run."""

    program: Named
    parameters: dict[str, int]
    world: Literal["simulated", "live"]
    layer: str
    ranks: tuple[NamedRank, ...]
    warnings: tuple[str, ...] = ()
    congestion: Mapping[str, int] = field(default_factory=dict)
    """Simulated: what the network has lost and marked, by name; nothing where messages are flows."""

    @property
    def seconds(self) -> float:
        """The time of the slowest rank."""
        return max(rank.total_s for rank in self.ranks)


def parse_parameters(program: Named, words: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Read ``key=value`` words: parameters (whole numbers), and costs of work in picoseconds.

    Raises
    ------
    InputError
        When a word is not of that form, a key is unknown or given twice, or a value is not allowed.
    """
    allowed = ", ".join([*program.parameters, *program.kinds])
    given: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in (*program.parameters, *program.kinds):
            raise InputError(key=program.name, value=word, allowed=f"key=value with a key of {allowed}")
        if key in given:
            raise InputError(key=key, value=value, reason="is given twice", allowed="once")
        given[key] = value
    parameters = dict(program.parameters)
    costs: dict[str, int] = {}
    for key, value in given.items():
        if key in program.kinds:
            costs[key] = round(1e12 * parse_time(value, key, most_s=1.0))
        elif value.isdecimal() and value.isascii() and len(value) <= 15:
            parameters[key] = int(value)
        else:
            raise InputError(key=key, value=value, allowed="a whole number, 0 and above")
    return parameters, costs


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """A simulated run of a compiled program.

    Attributes
    ----------
    ranks
        Its ranks.
    network
        The model they ran on.
    messages
        How many were delivered.
    digest
        Of the world's trace.
    timeline
        What each rank did when, as `wiretwin.predict.timeline.frame` has it; none unless asked for.
    coarse_ps
        The stretches within which the timeline has time summed by kind, there being too many intervals; 0 if
        there were not.
    congestion
        What the network has lost and marked, by name; nothing where messages are flows.
    """

    ranks: tuple[NamedRank, ...]
    network: dict[str, Any]
    messages: int
    digest: str
    timeline: pl.DataFrame | None
    coarse_ps: int
    congestion: Mapping[str, int]

    @property
    def seconds(self) -> float:
        """The program's own time on the slowest rank."""
        return max(rank.elapsed_s for rank in self.ranks)


def run_simulated(
    program: Named,
    words: Sequence[str],
    *,
    twin: str | Path | Twin | None = None,
    layer: str | None = None,
    ranks: int = 2,
    network: AnyNetwork | None = None,
    ranks_per_host: int | None = None,
    seed: int = 1,
    limit_s: float = 120.0,
    trace: Path | None = None,
) -> NamedRun:
    """Run a compiled program in the simulated world.

    It runs on a twin's host, on such hosts joined by a network, or on a network that has hosts of its own,
    under the stack that `layer` names. With `trace`, what each rank did when is written there, as viewers
    such as Perfetto read it.

    Raises
    ------
    InputError, ProgramError
        When an input is wrong; when the run does not end within `limit_s` seconds.
    StorageError
        When the trace cannot be written.
    """
    parameters, costs = parse_parameters(program, words)
    site = Site.of(ranks, network, ranks_per_host, layer)
    fitted = site.twin_for(twin)
    layer = site.local.stack if site.local is not None else layer or LAYER
    refuse_unpriced(program, costs)
    case = Case(parameters, costs, site.model(fitted, layer), ranks)
    if trace is None:
        (done,) = simulate(program, [case], seed=seed, limit_s=limit_s)
    else:
        with atomically(trace) as temporary:
            (done,) = simulate(program, [case], seed=seed, limit_s=limit_s, chrome_trace=temporary)
    notes = timeline.coarse_note(done.coarse_ps)
    return NamedRun(program, parameters, "simulated", layer, done.ranks, notes, done.congestion)


def refuse_unpriced(program: Named, costs: Mapping[str, int]) -> None:
    """Reject work whose price nobody has told the simulated world."""
    missing = [kind for kind in program.work if kind not in costs]
    if missing:
        raise InputError(
            key=missing[0],
            reason="is needed in the simulated world",
            allowed=f"what one {missing[0]} costs, such as {missing[0]}=0.8ns",
        )


@dataclass(frozen=True, slots=True)
class Case:
    """What to simulate: parameters, what each kind of work costs in picoseconds, the network, the ranks."""

    parameters: Mapping[str, int]
    costs_ps: Mapping[str, int]
    network: dict[str, Any]
    ranks: int

    def spec(self) -> dict[str, Any]:
        """Return it as the process that simulates reads it."""
        priced = {"costs_ps": dict(self.costs_ps)} if self.costs_ps else {}
        return {
            "parameters": json.dumps({**self.parameters, **priced}),
            "network": json.dumps(self.network),
            "ranks": self.ranks,
        }


def simulate(
    program: Named,
    cases: Sequence[Case],
    *,
    seed: int = 1,
    limit_s: float = 120.0,
    keep_timeline: bool = False,
    chrome_trace: Path | None = None,
) -> list[Simulated]:
    """Simulate a compiled program in several cases, one after the other; `limit_s` is for all of them.

    With `keep_timeline` the first says what each rank did when; with `chrome_trace` it does so in a file.

    Raises
    ------
    InputError, ProgramError
        As `run_simulated`.
    """
    spec = {
        "name": program.name,
        "cases": [case.spec() for case in cases],
        "seed": seed,
        "timeline": keep_timeline,
        "chrome_trace": None if chrome_trace is None else str(chrome_trace.absolute()),
    }
    with scratch.folder(what="named") as folder:
        done = in_child("wiretwin.predict.named_process", program.name, spec, limit_s, folder)
        kept = None
        if keep_timeline:
            import polars as pl

            kept = pl.read_parquet(folder / timeline.FILE, memory_map=False)
    return [
        Simulated(
            named_ranks(found["ranks"]),
            case.network,
            found["messages"],
            found["digest"],
            None if number else kept,
            found["coarse_ps"],
            found["congestion"],
        )
        for number, (case, found) in enumerate(zip(cases, done, strict=True))
    ]


def named_ranks(found: Sequence[Mapping[str, Any]]) -> tuple[NamedRank, ...]:
    """Return ranks as a process that simulates prints them."""
    return tuple(NamedRank(**{**rank, "points": points_of(rank["points"])}) for rank in found)


def in_child(
    module: str, name: str, spec: Mapping[str, Any], limit_s: float, folder: Path | None = None
) -> Any:
    """Simulate in a process of its own, which a module makes of `spec`; return what it prints.

    Raises
    ------
    InputError, ProgramError
        It rejects something of the program `name`; it does not end within `limit_s` seconds, or fails.
    """
    if folder is None:
        with scratch.folder(what="named") as made:
            return in_child(module, name, spec, limit_s, made)
    path = folder / "spec.json"
    path.write_text(json.dumps(spec), "utf-8")
    try:
        done = process.run([sys.executable, "-P", "-m", module, str(path)], limit_s=limit_s)
    except process.TimeLimit:
        raise ProgramError(
            f"{name}: the simulated run did not end within {limit_s:g} s and was ended"
        ) from None
    if done.returncode == InputError.exit_code:
        raise InputError(key=name, reason=done.stderr.strip())
    if done.returncode == StorageError.exit_code:
        raise OSError(done.stderr.strip())
    if done.returncode:
        words = done.last_words() or "no word"
        raise ProgramError(f"{name}: the simulated run ended with {process.ending(done.returncode)}: {words}")
    return json.loads(done.stdout)


def run_live(
    program: Named,
    words: Sequence[str],
    *,
    layer: str = DEFAULT_LAYER,
    ranks: int = 2,
    limit_s: float = 60.0,
    place: Place = HERE,
) -> NamedRun:
    """Run a compiled program for real, a process a rank, on any layer that carries it.

    At a `place` of several hosts the ranks live on them in turn and talk over sockets. On one host with a
    core for each, every rank keeps to its own, as the ranks of a measurement do.

    Raises
    ------
    InputError, ProgramError
        When an input is wrong; when a rank fails or does not end within `limit_s` seconds.
    """
    parameters, costs = parse_parameters(program, words)
    if costs:
        kind = next(iter(costs))
        raise InputError(key=kind, reason="is what it is in the live world", allowed="to be left out")
    if not 1 <= ranks <= 1024:
        raise InputError(key="--ranks", value=ranks, allowed="1 to 1024")
    configuration = parse_layer(layer, "--layer")
    if configuration.kind.stack is not None and configuration.kind.probe == COMPILED:
        results = on_stack(
            program.name, {"name": program.name, **parameters}, configuration, ranks, limit_s, place
        )
        return NamedRun(program, parameters, "live", configuration.name, tuple(map(_rank, results)))
    # Its ranks speak the compiled probes' transports, and expect every message to come.
    able = {name: kind for name, kind in LAYERS.items() if kind.probe == COMPILED and not kind.nature.loses}
    if configuration.kind.name not in able:
        raise InputError(key="--layer", value=layer, allowed=", ".join(able))
    if len(place.hosts) > 1 and not configuration.kind.by_address:
        raise InputError(
            key="--layer",
            value=layer,
            reason="works within one host only",
            allowed=", ".join(
                name for name, kind in able.items() if kind.by_address or kind.stack is not None
            ),
        )
    cpus = sorted(os.sched_getaffinity(0))
    with rendezvous(place) as meeting, contextlib.ExitStack() as stack:
        children = []
        for rank in range(ranks):
            host = host_of(place, rank)
            address = {"address": host.address} if len(place.hosts) > 1 else {}
            own_core = len(place.hosts) == 1 and ranks <= len(cpus)
            spec = {
                "protocol": 1,
                "layer": configuration.kind.name,
                "rank": rank,
                "size": ranks,
                "options": {**configuration.options, **address},
                "directory": str(meeting),
                "pin_cpu": cpus[rank] if own_core else None,
                "limit_s": limit_s,
                "program": {"name": program.name, **parameters},
            }
            path = meeting / f"spec-{rank}.json"
            path.write_text(json.dumps(spec), "utf-8")
            argv = host.command([sys.executable, "-P", "-m", "wiretwin.probe", str(path)])
            env = {**os.environ, LAUNCH: str(meeting)}
            children.append(stack.enter_context(process.child(argv, env=env)))
        try:
            _await(program, [running for running, _, _ in children], limit_s, made_for_it(place))
        except ProgramError as error:
            raise ProgramError(place.trouble() or str(error)) from error
        killed = [rank for rank, (running, _, _) in enumerate(children) if (running.poll() or 0) < 0]
        order = killed + [rank for rank in range(ranks) if rank not in killed]  # the cause before its effects
        found = {rank: _live_rank(program, rank, meeting, *children[rank]) for rank in order}
    return NamedRun(
        program, parameters, "live", configuration.name, tuple(found[rank] for rank in range(ranks))
    )


def _await(
    program: Named, children: Sequence[subprocess.Popen[bytes]], limit_s: float, made: Place | None
) -> None:
    """Wait until all have ended, or one has failed and the others had time to say so too.

    Hosts that were made for the occasion are looked at now and then: a rank cannot tell that one is gone.
    """
    looked_at = time.monotonic()
    deadline = looked_at + limit_s
    failed_at: float | None = None
    while any(one.poll() is None for one in children):
        now = time.monotonic()
        if failed_at is None and any(one.poll() for one in children):
            failed_at = now
        if failed_at is not None and now > failed_at + _GRACE_S:
            return
        if any((one.poll() or 0) < 0 for one in children):  # by a signal: it has said all it can
            return
        if made is not None and now > looked_at + LOOK_S:
            looked_at = now
            if (trouble := made.trouble()) is not None:
                raise ProgramError(trouble)
        if now > deadline:
            raise ProgramError(f"{program.name} did not end within {limit_s:g} s and was ended")
        running = next((one for one in children if one.poll() is None), None)
        if running is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(0.05)


def _live_rank(
    program: Named, rank: int, meeting: Path, running: subprocess.Popen[bytes], out: Path, err: Path
) -> NamedRank:
    events: list[dict[str, Any]] = []
    for line in out.read_text("utf-8", "replace").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            events.append(json.loads(line))
    for event in events:
        if event["event"] == "error":
            raise ProgramError(f"{event['place']}: {event['reason']}".replace(f"{meeting}{os.sep}", ""))
    results = [event for event in events if event["event"] == "rank"]
    if running.poll() != 0 or len(results) != 1:
        status = "no end" if running.poll() is None else process.ending(running.returncode)
        words = err.read_text("utf-8", "replace").strip().splitlines()[-3:]
        raise ProgramError(f"{program.name}: rank {rank} ended with {status}: {' '.join(words) or 'no word'}")
    counts = [event["counted"] for event in events if event["event"] == "done" and "counted" in event]
    return replace(_rank(results[0]), counted=counts[0] if counts else {})


def _rank(said: Mapping[str, Any]) -> NamedRank:
    """Return what a rank's line says."""
    keys = ("total", "elapsed", "compute", "in_comm")
    total, elapsed, compute, comm = (said[f"{key}_ns"] / 1e9 for key in keys)
    parts = {"compute": compute, "comm": comm, "other": total - compute - comm}
    by_kind = {kind: time / 1e9 for kind, time in said["compute_by_kind_ns"].items()}
    return NamedRank(
        said["rank"],
        total,
        elapsed,
        parts,
        said["digest"],
        said["verified"],
        by_kind,
        points=points_of(said["points"]),
    )


def points_of(listed: Sequence[Sequence[float]]) -> tuple[Point, ...]:
    """Return what a rank says that it has measured."""
    return tuple(Point(int(size), time, int(rounds)) for size, time, rounds in listed)
