"""Runs the ranks of a program as greenlets of one process, with the world as their network."""

from __future__ import annotations

import contextlib
import gc
import json
import marshal
import os
import sys
import threading
import time
import traceback
import types
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import greenlet
import numpy as np
import numpy.typing as npt

from wiretwin import _core
from wiretwin.errors import InputError, ProgramError, SimulationError

from . import explain
from .away import Away
from .bias import clock_bias_ns
from .comm import open_world
from .compute import ComputeSource, Measured, Pass
from .failure import MPIException, UnsupportedError, fail, no_input
from .forked import Forks
from .isolation import Isolation, RankView
from .late import watched
from .module import modules as mpi_modules
from .preimport import preimport, scan
from .rank import OwnWork, Rank, Sites, current
from .recording import Solo
from .script import load

if TYPE_CHECKING:
    from .recording import Recorder

_COLLECT_EVERY = 4096
"""Switches between two looks at whether garbage should be collected."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class DeadlockError(SimulationError):
    """No rank can go on; the text says who waits for whom, and where."""


class NotSimulatedError(SimulationError):
    """The program uses a part of mpi4py that is not simulated."""


class ProgramFailedError(ProgramError):
    """A rank raised, aborted, or exited with another status than 0.

    Attributes
    ----------
    rank
        Which rank.
    status
        What the process would have ended with.
    trace
        The traceback, as Python prints it, without the simulator's own frames.
    """

    def __init__(self, message: str, rank: int, status: int, trace: str = "") -> None:
        super().__init__(message)
        self.rank = rank
        self.status = status
        self.trace = trace


@dataclass(slots=True)
class SimulatedRun:
    """What a simulated run leaves.

    Attributes
    ----------
    ranks
        How many ranks.
    begin_ps
        The clock of each rank when it first had a core, in picoseconds: that of its program begins then.
    end_ps
        The clock of each rank at its end, in picoseconds.
    totals_ps
        Time of each rank by kind (`compute`, `endpoint`, `wire`, `waiting`); they sum to `end_ps`.
    timeline
        Columns of intervals, as `_core.World.timeline` has them; None where they were not to be kept.
    coarse_ps
        As `_core.World.timeline_coarse_ps`.
    names
        The names that the column `name_index` counts.
    sites
        File and line that the column `site` counts.
    stdout, stderr
        What each rank printed.
    exit_status
        What each rank ended with.
    compute
        Durations and path digests of all stretches of computation, for `Replay` and `Aggregated`.
    digest
        Of everything that happened in the world.
    environment
        What the computation was measured under: threads of BLAS and OpenMP, bias of the clock.
    warnings
        Messages never received, paths that changed, threads that were not limited to one.
    """

    ranks: int
    begin_ps: list[int]
    end_ps: list[int]
    totals_ps: dict[str, npt.NDArray[np.uint64]]
    timeline: dict[str, npt.NDArray[Any]] | None
    coarse_ps: int
    names: list[str]
    sites: list[tuple[str, int]]
    stdout: list[str]
    stderr: list[str]
    exit_status: list[int]
    compute: Pass
    digest: str
    seed: int
    environment: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The time of the slowest rank, each from its own beginning, in seconds."""
        return max(end - begin for begin, end in zip(self.begin_ps, self.end_ps, strict=True)) / 1e12

    def output(self) -> str:
        """Return what the ranks printed, in rank order, without prefixes."""
        return "".join(self.stdout)


class Runtime:
    """The state that all ranks of a run share."""

    def __init__(
        self,
        world: Any,
        ranks: int,
        placement: Sequence[int],
        hosts: Sequence[str],
        source: ComputeSource,
        away: Away | None = None,
        *,
        own: OwnWork | None = None,
        bias_ns: int | None = None,
    ) -> None:
        self.world = world
        self.away = away
        self.clock_ps: Callable[[int], int] = world.now_ps
        """What a rank is told when it asks for the time."""
        self.size = ranks
        self.placement = list(placement)
        self.hosts = list(hosts)
        """What each host calls itself."""
        self.source = source
        self.hub = greenlet.getcurrent()
        self.ready: deque[tuple[int, Any]] = deque()
        """Ranks that the last step has resumed and that have not gone on, and what the world says to each."""
        self.is_started = False
        """Whether every rank has begun: until then they give way to the hub: all begin equally deep."""
        self.resumptions = 0
        """Ranks resumed since garbage was last looked for."""
        self.sites = Sites()
        self.bias_ns = clock_bias_ns() if bias_ns is None else bias_ns
        self.own = own or OwnWork()
        self.mail: dict[int, tuple[bytes, int, int, int, int, int, str]] = {}
        self.receives: dict[int, tuple[int, int, int, int, int, str]] = {}
        self.meetings: dict[tuple[int, int], Any] = {}
        self.contexts: dict[tuple[int, int, int], int] = {}
        self.keyvals = 1 << 20
        self.only: int | None = None
        self.failure: Exception | None = None
        self.statuses = [0] * ranks
        self.ranks = [Rank(index, self) for index in range(ranks)]
        self.forks = Forks(self)

    # Services for calls.

    def abort(self, rank: Rank, errorcode: int) -> NoReturn:
        """End the run: `MPI_Abort`."""
        self.statuses[rank.index] = errorcode
        self.failure = ProgramFailedError(
            f"rank {rank.index} called MPI_Abort({errorcode}) at {self.sites.text(rank.site)}",
            rank.index,
            errorcode & 0xFF or 1,
        )
        raise greenlet.GreenletExit

    def foreign_call(self, name: str, frame: types.FrameType) -> NoReturn:
        """Reject a call from a thread or process that the program has started; end the run with that reason.

        Whatever the thread does with the exception: the ranks may wait for ever for what it did not do.
        """
        where = self.sites.text(self.sites.find(frame))
        if not self.forks.here:
            self.forks.say(
                f"{name} was called by a process that a rank has forked, at {where}: only ranks may call MPI"
            )
        words = (
            f"{name} was called by another thread than the main one, at {where}: threads that call MPI are "
            "not simulated"
        )
        self.failure = NotSimulatedError(words)
        raise RuntimeError(words)

    def attach(self, rank: Rank, buf: Any) -> None:
        """Attach memory for buffered sends."""
        from .buffers import raw_bytes

        if rank.attached is not None:
            fail("ERR_BUFFER", "a buffer is attached already")
        rank.attached = (buf, 0 if buf is None else raw_bytes(buf, True)[0].size)

    def detach(self, rank: Rank) -> Any:
        """Detach the memory for buffered sends."""
        if rank.attached is None:
            fail("ERR_BUFFER", "no buffer is attached")
        buf, rank.attached = rank.attached[0], None
        return buf

    def check_attached(self, rank: Rank, nbytes: int) -> None:
        """Reject a buffered send that the attached buffer has no room for."""
        from .constants import INTEGERS

        needed = nbytes + INTEGERS["BSEND_OVERHEAD"]
        if rank.attached is None:
            fail("ERR_BUFFER", f"a buffered send of {nbytes} bytes, but no buffer is attached")
        if rank.attached[1] < needed:
            fail("ERR_BUFFER", f"a buffered send needs {needed} bytes, {rank.attached[1]} are attached")

    # The life of a rank.

    def start(self, rank: Rank, code: types.CodeType, view: RankView) -> None:
        """Make the greenlet that runs the program as this rank.

        The code is a copy: the interpreter adapts code to the globals it meets, and ranks that shared
        it would slow each other down.
        """
        code = marshal.loads(marshal.dumps(code))

        def body(_: Any = None) -> None:
            failure: Exception | None = None
            trace: types.TracebackType | None = None
            ended_ns = 0
            try:
                rank.begin()
                try:
                    exec(code, view.main.__dict__)
                finally:
                    ended_ns = time.thread_time_ns()
                    if not rank.dead:
                        view.at_exit()
            except greenlet.GreenletExit:
                return
            except SystemExit as exit_request:
                self._exited(rank, exit_request)
                if rank.dead:
                    return
            except Exception as error:
                if rank.dead:
                    return
                failure, trace = error, error.__traceback__
            except BaseException as error:
                self.failure = ProgramFailedError(
                    f"rank {rank.index} was ended by {type(error).__name__}", rank.index, 1
                )
                raise
            if failure is not None:
                self._failed(rank, failure, trace)
                return
            self._end(rank, ended_ns)

        rank.greenlet = greenlet.greenlet(body, parent=self.hub)

    def _end(self, rank: Rank, ended_ns: int) -> None:
        """Account for what the rank computed after its last call, until the script ended.

        A real run's time ends there, too; but not that of functions called at exit that make calls.
        """
        measured = rank.stretch_ns(ended_ns if ended_ns > rank.left_ns else 0)
        rank.digest = digest = hash((rank.digest, 0))
        site = self.sites.add("end of the program", 0)
        rank._account(digest, site, measured, rank.own_ns(""))
        rank.inside = "the end"
        rank.post_leave(rank.index)
        rank.post(rank.index, ("finish",))
        rank.finished = True

    def _exited(self, rank: Rank, request: SystemExit) -> None:
        code = request.code
        status = 0 if code is None else code if isinstance(code, int) else 1
        self.statuses[rank.index] = status
        if not isinstance(code, (int, type(None))):
            print(code, file=sys.stderr)
        if status:
            where = _last_line(request.__traceback__)
            said = "" if isinstance(code, int) else f" ({code})"
            self.exits.append(
                (rank.index, status, f"rank {rank.index} exited with status {status}{said} at {where}")
            )

    put: Callable[[RankView], None]
    views: Sequence[RankView]
    exits: list[tuple[int, int, str]]
    apart = False
    """Whether each rank has a host of its own, as a twin describes it."""
    behind = False
    """Whether what a rank has posted may not show in its clock yet."""

    def _failed(self, rank: Rank, error: Exception, trace: types.TracebackType | None) -> None:
        self.statuses[rank.index] = 1
        where = _last_line(trace)
        text = "".join(traceback.format_exception(type(error), error, _clean(trace)))
        if isinstance(error, UnsupportedError):
            self.failure = NotSimulatedError(f"rank {rank.index}, {where}: {error}")
            return
        if isinstance(error, (InputError, SimulationError)):
            self.failure = error
            return
        name = "MPI.Exception" if isinstance(error, MPIException) else type(error).__name__
        self.failure = ProgramFailedError(
            f"rank {rank.index} raised {name} at {where}: {error}{no_input(error)}", rank.index, 1, text
        )

    # The loop.

    def run(self, isolation: Isolation, views: Sequence[RankView]) -> None:
        """Run until all ranks have ended, or one fails, or none can go on."""
        self.put, self.views = isolation.put, views
        ranks = self.ranks
        running = ranks if self.only is None else [ranks[self.only]]
        for rank in running:
            self._go_on(rank, None)
        self.is_started = True
        while self.ready or self._step():
            index, outcome = self.ready.popleft()
            self._go_on(ranks[index], outcome)
        if said := self.forks.heard():
            raise NotSimulatedError(said)
        if not all(rank.finished for rank in running):
            _await_threads()
            if self.failure is not None:
                raise self.failure
            message = explain.deadlock(self)
            if self.exits:  # for which a launcher ends the others
                index, status, _ = self.exits[0]
                said = "; ".join(text for _, _, text in self.exits)
                raise ProgramFailedError(f"{said}\n{message}", index, status)
            raise DeadlockError(message)
        if self.exits:
            index, status, text = self.exits[0]
            raise ProgramFailedError(text, index, status)

    def _go_on(self, rank: Rank, outcome: Any) -> None:
        """Let a rank go on, from the hub, until none can or one has ended."""
        self.put(self.views[rank.index])
        current.rank = rank
        assert rank.greenlet is not None
        rank.greenlet.switch(outcome)
        if self.failure is not None:
            raise self.failure

    def _step(self) -> bool:
        """Go to the next instant at which ranks can go on; whether there is one."""
        resumed = self.world.step()
        self.ready.extend(resumed)
        self.resumptions += len(resumed)
        if self.resumptions >= _COLLECT_EVERY:
            self.resumptions = 0
            gc.collect(1)
        return bool(resumed)

    def give_way(self) -> Any:
        """Let other ranks go on; returns, when the calling rank does, what the world says.

        A rank switches to the next one itself. Where there is none, or the run is over, it is the hub's turn.
        """
        ready = self.ready
        if self.failure is None and self.is_started:
            try:
                is_any = bool(ready) or self._step()
            except Exception as error:
                self.failure = error
                is_any = False
            if is_any:
                index, outcome = ready.popleft()
                rank = self.ranks[index]
                if rank is current.rank:
                    return outcome
                self.put(self.views[index])
                current.rank = rank
                return rank.greenlet.switch(outcome)  # type: ignore[union-attr]
        return self.hub.switch()

    def end_all(self) -> None:
        """Unwind the ranks that have not ended."""
        for rank in self.ranks:
            rank.dead = True
        for rank in self.ranks:
            if rank.greenlet is not None and not rank.greenlet.dead:
                current.rank = rank
                with contextlib.suppress(Exception):
                    rank.greenlet.throw(greenlet.GreenletExit)


_OWN = str(Path(__file__).parent) + os.sep
_THREADS_S = 1.0
"""How long threads of the program are waited for, together, before a deadlock is said to be one, seconds."""


def _await_threads() -> None:
    """Let the program's threads come to an end: what one of them calls may be why no rank can go on."""
    end = time.monotonic() + _THREADS_S
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(max(0.0, end - time.monotonic()))


def _clean(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Leave out the frames of the simulator before the program's first."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN):
        trace = trace.tb_next
    return trace


def _last_line(trace: types.TracebackType | None) -> str:
    """Return file and line of the innermost frame that is not the simulator's."""
    where = "?"
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((_OWN, "<frozen")):
            where = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return where


def simulate(
    script: str | os.PathLike[str],
    argv: Sequence[str],
    ranks: int,
    model_json: str,
    *,
    compute: ComputeSource | None = None,
    seed: int = 1,
    timeline: bool = True,
    recorder: Recorder | None = None,
    ends_s: float | None = None,
    own: OwnWork | None = None,
) -> SimulatedRun:
    """Run an mpi4py script as `ranks` ranks in the simulated world.

    Parameters
    ----------
    script
        The program, as given to `python`.
    argv
        Its arguments.
    ranks
        How many ranks.
    model_json
        The network, as `_core.World` takes it.
    compute
        What the time between MPI calls costs; by default what it takes in this run.
    seed
        Of the world and of random numbers that the program leaves unseeded.
    timeline
        Whether to keep every interval.
    recorder
        Keeps what the ranks asked of the world and what it answered.
    ends_s
        When the run is too late, on the monotonic clock, in seconds: this process then ends with words about
        what the ranks did. Without it the run may take any time.
    own
        What of the measured time is not the program's; by default the way into a call and back.

    Raises
    ------
    InputError
        When there is no such script, or it does not parse, or `ranks` or the model is wrong.
    ProgramFailedError
        When a rank raises, aborts or exits with another status than 0.
    DeadlockError
        When no rank can go on.
    NotSimulatedError
        When the program uses what is not simulated.
    """
    path, code = _load(script, ranks)
    world = _open(ranks, model_json, seed, timeline)
    source = compute if compute is not None else Measured()
    runtime, views = _execute(
        path, code, argv, ranks, model_json, world, source, seed, recorder, ends_s=ends_s, own=own
    )
    return _result(runtime, views, seed, timeline)


def run_alone(
    script: str | os.PathLike[str],
    argv: Sequence[str],
    ranks: int,
    model_json: str,
    solo: Solo,
    *,
    seed: int = 1,
    start: Callable[[], OwnWork] | None = None,
) -> tuple[list[int], list[int], dict[str, int], dict[int, int]]:
    """Run one rank of a recorded run alone; returns its durations in picoseconds and path digests.

    Returned is also for how long it was blocked, and for what (`Away.blocked_ns`), and by stretch for how
    long of it no core was needed, in picoseconds.

    Parameters
    ----------
    script, argv, ranks, model_json, seed
        As in the recorded run.
    solo
        The recording, and which rank.
    start
        Called when everything is imported, just before the program begins; returns what calls leave to be
        measured that is not the program's.

    Raises
    ------
    DepartureError
        When the rank leaves the path of the recording; and as `simulate`.
    """
    path, code = _load(script, ranks)
    world = _open(ranks, model_json, seed, timeline=False)
    runtime, _ = _execute(path, code, argv, ranks, model_json, world, Measured(), seed, solo, start)
    assert solo.only is not None
    assert runtime.away is not None
    rank = runtime.ranks[solo.only]
    return rank.durations_ps, rank.digests, runtime.away.blocked_ns, rank.asleep_ps


def _load(script: str | os.PathLike[str], ranks: int) -> tuple[Path, types.CodeType]:
    if ranks < 1:
        raise InputError(key="ranks", value=ranks, allowed="1 and above")
    return load(script)


def _open(ranks: int, model_json: str, seed: int, timeline: bool) -> Any:
    try:
        return _core.World(ranks, model_json, seed=seed, timeline=timeline)
    except ValueError as error:
        raise InputError(key="model", reason=str(error)) from None


def _execute(
    path: Path,
    code: types.CodeType,
    argv: Sequence[str],
    ranks: int,
    model_json: str,
    world: Any,
    source: ComputeSource,
    seed: int,
    recorder: Recorder | Solo | None,
    start: Callable[[], OwnWork] | None = None,
    ends_s: float | None = None,
    own: OwnWork | None = None,
) -> tuple[Runtime, list[RankView]]:
    """Run the program in a world; with a `Solo`, only its rank."""
    source.begin(ranks)
    isolation = Isolation(path)
    model = json.loads(model_json)
    placement = list(range(ranks)) if "local" in model else model.get("placement") or [0] * ranks
    nodes = [] if "local" in model else model["nodes"]
    # Several are like the one that was measured, and cannot all have its name.
    alone = nodes[0].get("name") if len(nodes) == 1 else None
    hosts = [alone or f"node{host}" for host in range(max(placement) + 1)]
    open_world(ranks)
    with isolation.installed(mpi_modules()):
        wanted = scan(path)[0]
        preimport(wanted)
        views = [RankView(index, path, argv, seed, wanted) for index in range(ranks)]
        if recorder is not None and recorder.only is not None:
            # A real rank pays for what it writes: one that runs alone writes where this process does.
            views[recorder.only].prints_to = sys.stdout
        opened = world if recorder is None else recorder.open(world)
        enabled = gc.isenabled()
        gc.collect()
        if start is not None:
            own = start()
            open_world(ranks)
        # Several ranks in one thread wait for each other, and one alone for nothing of ours.
        away = Away() if recorder is not None and recorder.only is not None else None
        runtime = Runtime(opened, ranks, placement, hosts, source, away, own=own)
        if recorder is not None:
            recorder.furnish(runtime)
            runtime.only = recorder.only
        runtime.exits = []
        runtime.behind = world.is_behind
        runtime.apart = "local" not in model and len(set(placement)) == ranks > 1
        for rank, view in zip(runtime.ranks, views, strict=True):
            runtime.start(rank, code, view)
        if away is None:  # a rank alone is measured, and pays for collections as a real one does
            gc.disable()
        if isinstance(recorder, Solo) and recorder.together is not None:
            recorder.together()
        try:
            with watched(runtime, ends_s):
                runtime.run(isolation, views)
        except (ProgramFailedError, SimulationError) as error:
            _leave_words(error, views)
            raise
        finally:
            runtime.end_all()
            runtime.forks.close()
            isolation.take_away()
            del current.rank
            if enabled:
                gc.enable()
    return runtime, views


def _leave_words(error: Exception, views: Sequence[RankView]) -> None:
    """Keep what the ranks printed beside the error."""
    for index, view in enumerate(views):
        for name, stream in (("stdout", view.stdout), ("stderr", view.stderr)):
            text = stream.text().strip()
            if text:
                error.add_note(f"rank {index} {name}: " + "\n  ".join(text.splitlines()[-5:]))


def _result(runtime: Runtime, views: Sequence[RankView], seed: int, timeline: bool) -> SimulatedRun:
    world = runtime.world
    warnings = [f"never received: {text}" for text in explain.lost_mail(runtime)]
    warnings += runtime.source.warnings()
    threads = {name: os.environ.get(name) for name in _THREADS}
    if not any(value == "1" for value in threads.values()):
        warnings.append(
            "BLAS and OpenMP were not limited to one thread (OMP_NUM_THREADS=1): work that they give to "
            "other threads is not counted as computation"
        )
    return SimulatedRun(
        ranks=runtime.size,
        begin_ps=[world.begun_ps(rank) for rank in range(runtime.size)],
        end_ps=[world.now_ps(rank) for rank in range(runtime.size)],
        totals_ps=dict(world.totals()),
        timeline=dict(world.timeline()) if timeline else None,
        coarse_ps=world.timeline_coarse_ps(),
        names=list(world.names()),
        sites=list(runtime.sites.table),
        stdout=[view.stdout.text() for view in views],
        stderr=[view.stderr.text() for view in views],
        exit_status=list(runtime.statuses),
        compute=Pass([rank.durations_ps for rank in runtime.ranks], [rank.digests for rank in runtime.ranks]),
        digest=world.digest(),
        seed=seed,
        environment={
            "threads": threads,
            "clock": "thread CPU time",
            "bias_ns": runtime.bias_ns,
            "resolution_ns": round(time.get_clock_info("thread_time").resolution * 1e9),
            "garbage": "counted where a rank is measured alone",
        },
        warnings=warnings,
    )
