"""A simulated run in a process of its own, so that the program meets a fresh interpreter.

`python -m wiretwin.predict.stage SPEC` runs it: BLAS and OpenMP at one thread from the start, and
whatever the program does to its process it does not do to ours.
"""

from __future__ import annotations

import gc
import pickle
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wiretwin import process, scratch
from wiretwin.errors import InputError, ProgramError, SimulationError, WiretwinError
from wiretwin.mpi.late import STATUS
from wiretwin.mpi.runtime import NotSimulatedError

#: So long before its limit a run says itself what it was doing, and ends: in seconds, or as a share of it.
_ALARM_S, _ALARM_SHARE = 0.5, 0.03

#: What the process ends with where the program uses what is not simulated.
_NOT_SIMULATED = 125

if TYPE_CHECKING:
    from wiretwin.mpi.compute import ComputeSource
    from wiretwin.mpi.recording import Recording
    from wiretwin.mpi.runtime import SimulatedRun


@dataclass(frozen=True, slots=True)
class Spec:
    """A run to be simulated; `result` is where run and recording go, pickled."""

    program: Path
    args: tuple[str, ...]
    ranks: int
    network: str
    compute: ComputeSource
    seed: int
    result: Path
    timeline: bool
    ends_s: float


def simulate(
    program: Path,
    args: Sequence[str],
    ranks: int,
    network: str,
    compute: ComputeSource,
    *,
    seed: int,
    limit_s: float,
    timeline: bool = True,
) -> tuple[SimulatedRun, Recording]:
    """Simulate the program once and return the run, with intervals if `timeline` says so, and its recording.

    Raises
    ------
    InputError, SimulationError, ProgramError
        As `wiretwin.mpi.simulate`, NotSimulatedError among them; and ProgramError when it does not end
        within `limit_s` seconds.
    """
    with scratch.folder(what="stage") as folder:
        path, result = folder / "spec", folder / "result"
        ends_s = time.monotonic() + limit_s - max(_ALARM_S, _ALARM_SHARE * limit_s)
        spec = Spec(program, tuple(args), ranks, network, compute, seed, result, timeline, ends_s)
        late = f"{program.name}: the simulated run did not end within {limit_s:g} s and was ended"
        path.write_bytes(pickle.dumps(spec, protocol=pickle.HIGHEST_PROTOCOL))
        try:
            done = process.run(
                [sys.executable, "-P", "-m", "wiretwin.predict.stage", str(path)],
                limit_s=limit_s,
                env=process.single_threaded(),
            )
        except process.TimeLimit as limit:
            raise ProgramError(late) from limit
        if done.returncode == STATUS:
            raise ProgramError(f"{late}: {done.stderr.strip()}")
        if done.returncode:
            raise _error(program, ranks, done)
        return _left_in(result)


def _left_in(result: Path) -> tuple[SimulatedRun, Recording]:
    """Read run and recording; the collector would look again and again through what is only being made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        run, recording = pickle.loads(result.read_bytes())
    finally:
        if enabled:
            gc.enable()
    return run, recording


def _error(program: Path, ranks: int, done: process.Finished) -> WiretwinError:
    text = done.stderr.strip()
    if done.returncode == InputError.exit_code:
        return InputError(reason=text)
    if done.returncode == _NOT_SIMULATED:
        return NotSimulatedError(text)
    if done.returncode == SimulationError.exit_code:
        return SimulationError(text)
    if done.returncode == ProgramError.exit_code:
        return ProgramError(text)
    words = done.last_words() or "no word"
    if done.returncode == -signal.SIGKILL:
        words = (
            f"the kernel does that where memory has run out, and all {ranks} ranks share that of one "
            "process; allowed: fewer ranks, or less data to each"
        )
    ending = process.ending(done.returncode)
    return ProgramError(f"{program.name}: the simulated run ended with {ending}: {words}")


def _main(argv: Sequence[str]) -> int:
    from wiretwin.mpi.looped import own_work
    from wiretwin.mpi.recording import Recorder
    from wiretwin.mpi.runtime import simulate

    spec: Spec = pickle.loads(Path(argv[0]).read_bytes())
    recorder = Recorder(spec.ranks)
    try:
        run = simulate(
            spec.program,
            spec.args,
            spec.ranks,
            spec.network,
            compute=spec.compute,
            seed=spec.seed,
            timeline=spec.timeline,
            recorder=recorder,
            ends_s=spec.ends_s,
            own=own_work(),
        )
    except WiretwinError as error:
        print("\n".join([str(error), *getattr(error, "__notes__", [])]), file=sys.stderr)
        return _NOT_SIMULATED if isinstance(error, NotSimulatedError) else error.exit_code
    spec.result.write_bytes(pickle.dumps((run, recorder.recording), protocol=pickle.HIGHEST_PROTOCOL))
    return 0


if __name__ == "__main__":
    from wiretwin.predict import stage

    sys.exit(stage._main(sys.argv[1:]))
