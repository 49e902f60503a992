"""One measuring pass: every rank in a process and on a core of its own, side by side.

Each process runs one rank of the program with the recorded answers of the world (see
`wiretwin.mpi.recording`), so computation is measured with the caches and the memory traffic that the
real run will have: as many ranks at once as the host has cores, all started together. Where there are more
ranks to measure than cores, all of them are loaded before the first runs: what a rank has in a cache when its
program begins, it shares with the others. Ranks that share a core in the predicted run share it here as well
and hand it on wherever they wait: a rank goes on in caches that others have used meanwhile.

`python -m wiretwin.predict.solo SPEC READY GO` is the process: SPEC is a pickled `Spec`; a byte on
the descriptor READY says that it stands at the start, a byte on GO lets it run. One that shares its core
stands there twice: before and after it has measured what is not its program's.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wiretwin import process, scratch
from wiretwin.errors import SimulationError
from wiretwin.mpi.recording import DepartureError

if TYPE_CHECKING:
    from wiretwin.mpi.recording import Recording
    from wiretwin.states import Ends

#: So many ranks a core are loaded at once.
_LOADED = 4
#: The longest that a rank waits for the other to tell how far away it is: both have just been let go, and
#: at the end one may have had more to do.
_MEET_S, _PART_S = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class Spec:
    """What a solo process is to do.

    `cpu` is its core, `reader_cpu` the one that reads its large messages; `result` is where its
    durations go. `crossing` is the beginning of the files' names by which it and another rank tell how
    far they are apart; one of the two is the `first`. Where its core is `shared`, others run there too.
    """

    program: Path
    args: tuple[str, ...]
    ranks: int
    rank: int
    network: str
    seed: int
    cpu: int | None
    reader_cpu: int | None
    recording: Path
    result: Path
    crossing: Path | None
    first: bool
    shared: bool


@dataclass(frozen=True, slots=True)
class Part:
    """The computation of one rank: durations in picoseconds, path digests, how far away the other was.

    `blocked_ns` is how long it was blocked meanwhile, by what for (`wiretwin.mpi.away.KINDS`), `asleep_ps` by
    stretch for how long of it no core was needed.
    """

    durations_ps: list[int]
    digests: list[int]
    blocked_ns: dict[str, int]
    asleep_ps: dict[int, int]
    crossing_ns: Ends | None


def measure(
    program: Path,
    args: Sequence[str],
    recording: Recording,
    network: str,
    *,
    seed: int,
    limit_s: float,
    chosen: Sequence[int] | None = None,
    shared: bool = False,
) -> list[Part]:
    """Run ranks alone, as many at once as there are cores; return their parts in order.

    All ranks run, or those that are `chosen`. With `shared`, ranks of the predicted run share cores, and
    up to `_LOADED` of them run on each at once.

    Where too few are left for all cores that none share, the first ones run again beside them: a real run has
    as many at work all the time, and they share its memory.

    Raises
    ------
    DepartureError
        When a rank takes another path than was recorded, fails, or does not end within `limit_s`, in seconds.
    """
    cpus = sorted(os.sched_getaffinity(0))
    ranks = len(recording.traces)
    wanted = range(ranks) if chosen is None else chosen
    batches = []
    with scratch.folder(what="solo") as folder:
        for first in range(0, len(wanted), len(cpus)):
            batch = []
            last = min(first + len(cpus), len(wanted))
            again = () if shared else wanted[: max(0, min(first, len(cpus) - (last - first)))]
            for place, rank in enumerate([*wanted[first:last], *again]):
                kept = folder / f"recording-{rank}"
                if not kept.exists():
                    kept.write_bytes(pickle.dumps(recording.for_rank(rank), protocol=pickle.HIGHEST_PROTOCOL))
                cpu = cpus[place] if len(cpus) > 1 else None
                reader = cpus[(place + 1) % len(cpus)] if len(cpus) > 1 else None
                result = folder / f"result-{first}-{rank}"
                paired = place < 2 and last + len(again) - first > 1
                crossing = folder / f"crossing-{first}" if paired else None
                batch.append(
                    Spec(
                        program,
                        tuple(args),
                        ranks,
                        rank,
                        network,
                        seed,
                        cpu,
                        reader,
                        kept,
                        result,
                        crossing,
                        place == 0,
                        shared,
                    )
                )
            batches.append(batch)
        found = []
        for first in range(0, len(batches), _LOADED):
            run = _at_once if shared else _in_turn
            found += run(batches[first : first + _LOADED], folder, limit_s)
    return found[: len(wanted)]


def _in_turn(batches: Sequence[Sequence[Spec]], folder: Path, limit_s: float) -> list[Part]:
    """Load all ranks, and run a batch after the other; `limit_s` is for each of them, and for the loading."""
    with contextlib.ExitStack() as stack:
        loaded = [_load(batch, folder, stack, limit_s) for batch in batches]
        deadline = time.monotonic() + limit_s
        ready = all(one.stand(deadline) for one in loaded)
        for one in loaded:
            one.let_go()
            one.end(time.monotonic() + limit_s if ready else deadline)
        return [pickle.loads(spec.result.read_bytes()) for batch in batches for spec in batch]


def _at_once(batches: Sequence[Sequence[Spec]], folder: Path, limit_s: float) -> list[Part]:
    """Load all ranks, and run them all; `limit_s` is for each of those of a core, and for the loading."""
    with contextlib.ExitStack() as stack:
        loaded = [_load(batch, folder, stack, limit_s * len(batches)) for batch in batches]
        deadline = time.monotonic() + limit_s
        ready = all(one.stand(deadline) for one in loaded)
        for one in loaded:
            one.let_go()
        ready = ready and all(one.stand(deadline) for one in loaded)
        for one in loaded:
            one.let_go()
        deadline = time.monotonic() + limit_s * len(loaded) if ready else deadline
        for one in loaded:
            one.end(deadline)
        return [pickle.loads(spec.result.read_bytes()) for batch in batches for spec in batch]


def _load(specs: Sequence[Spec], folder: Path, stack: contextlib.ExitStack, limit_s: float) -> _Batch:
    ready_read, ready_write = _pipe(stack)
    go_read, go_write = _pipe(stack)
    children: list[tuple[Spec, subprocess.Popen[bytes], Path]] = []
    for spec in specs:
        path = folder / f"spec-{spec.result.name}"
        path.write_bytes(pickle.dumps(spec))
        argv = [
            sys.executable,
            "-P",
            "-m",
            "wiretwin.predict.solo",
            str(path),
            str(ready_write),
            str(go_read),
        ]
        running, _, err = stack.enter_context(
            process.child(argv, env=process.single_threaded(), pass_fds=(ready_write, go_read))
        )
        children.append((spec, running, err))
    return _Batch(children, ready_read, go_write, limit_s)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Ranks that run at once: their processes, where each says that it is loaded, and what lets them go."""

    children: list[tuple[Spec, subprocess.Popen[bytes], Path]]
    ready: int
    go: int
    limit_s: float

    def stand(self, deadline: float) -> bool:
        """Wait until all stand at the start; `False` if one has ended, or time is up."""
        waiting = len(self.children)
        while waiting:
            if select.select([self.ready], [], [], 0.05)[0]:
                waiting -= len(os.read(self.ready, waiting))
            elif time.monotonic() > deadline or any(one.poll() is not None for _, one, _ in self.children):
                return False
        return True

    def let_go(self) -> None:
        """Let all go."""
        os.write(self.go, b"g" * len(self.children))

    def end(self, deadline: float) -> None:
        """Wait for their ends."""
        for spec, running, err in self.children:
            try:
                status = running.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise DepartureError(
                    f"{spec.program.name}: rank {spec.rank}, run alone to measure its computation, did not "
                    f"end within {self.limit_s:g} s"
                ) from None
            if status == SimulationError.exit_code:
                raise departed(spec.program, spec.rank, err.read_text("utf-8", "replace").strip())
            if status:
                words = err.read_text("utf-8", "replace").strip().splitlines()[-8:]
                raise DepartureError(
                    f"{spec.program.name}: rank {spec.rank}, run alone to measure its computation, ended "
                    f"with {process.ending(status)}:\n" + "\n".join(words)
                )


def departed(program: Path, rank: int, detail: str = "") -> DepartureError:
    """Return the error for a rank that did something else when it was measured alone."""
    said = f"{program.name}: rank {rank} took another path when it was measured alone"
    why = "a program that looks at the clock, at files or at unseeded random numbers cannot be repeated"
    return DepartureError(f"{said}: {why}" + (f" ({detail})" if detail else ""))


def _pipe(stack: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        stack.callback(os.close, end)
    return ends


def _main(argv: Sequence[str]) -> int:
    from wiretwin import priority
    from wiretwin._core import crossing_ns
    from wiretwin.errors import WiretwinError
    from wiretwin.mpi import outside
    from wiretwin.mpi.firsts import own_work_with_firsts, recorded_firsts
    from wiretwin.mpi.looped import recorded_loops
    from wiretwin.mpi.rank import OwnWork
    from wiretwin.mpi.recording import Solo
    from wiretwin.mpi.runtime import run_alone

    spec: Spec = pickle.loads(Path(argv[0]).read_bytes())
    with spec.recording.open("rb") as stream:
        recording: Recording = pickle.load(stream)  # reads large messages straight into place
    priority.take(above=1)  # the reader runs when it is asked, whatever the other rank computes
    outside.activate(spec.reader_cpu)  # before this thread, and what it starts, is held to one core
    priority.give_back()
    if spec.cpu is not None:
        os.sched_setaffinity(0, {spec.cpu})

    calls = tuple(recording.traces[spec.rank].calls())
    recorded_loops()  # both for `start`, which others wait for
    recorded_firsts(calls, spec.rank)
    apart: dict[str, float | None] = {}

    def look(when: str, limit_s: float) -> None:
        if spec.crossing is not None:
            file = spec.crossing.with_name(f"{spec.crossing.name}-{when}")
            apart[when] = crossing_ns(file, spec.first, limit_s)

    def stand() -> None:
        os.write(int(argv[1]), b"r")
        if not os.read(int(argv[2]), 1):
            raise SystemExit("the measuring process has gone")

    def start() -> OwnWork:
        stand()
        priority.take()
        # Only now: cores that are all at work may each be slower.
        own = own_work_with_firsts(calls, spec.rank)
        look("before", _MEET_S)
        return own

    try:
        done = run_alone(
            spec.program,
            spec.args,
            spec.ranks,
            spec.network,
            Solo(recording, spec.rank, together=stand if spec.shared else None),
            seed=spec.seed,
            start=start,
        )
    except WiretwinError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    look("after", _PART_S)
    before, after = apart.get("before"), apart.get("after")
    ends = None if before is None or after is None else (before, after)
    spec.result.write_bytes(pickle.dumps(Part(*done, ends)))
    return 0


if __name__ == "__main__":
    # Classes are pickled by the module's real name.
    from wiretwin.predict import solo

    sys.exit(solo._main(sys.argv[1:]))
