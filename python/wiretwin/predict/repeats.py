"""Launches of a compiled program for real, and the record of them: as `wiretwin.predict.live` for scripts.

A launch's time is the program's own on the slowest rank, without collecting and checking its result. Its
timers are always on, so every launch counts and every launch says how its time was split.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from pathlib import Path

from wiretwin import _core
from wiretwin.errors import InputError, ProgramError
from wiretwin.place import HERE, Place
from wiretwin.predict.live import LAUNCHES_FILE, append
from wiretwin.predict.named import DEFAULT_LAYER, Named, NamedRun, run_live
from wiretwin.predict.records import Launch, RealRank, Run, median_spread, sha256_of, typical, utc_now

__all__ = ["run_repeatedly"]


def run_repeatedly(
    program: Named,
    words: Sequence[str],
    out: Path,
    *,
    layer: str = DEFAULT_LAYER,
    ranks: int = 2,
    launches: int = 7,
    limit_s: float = 60.0,
    place: Place = HERE,
    on_launch: Callable[[Launch], None] | None = None,
) -> Run:
    """Run a compiled program `launches` times and leave `launches.jsonl` and `run.json` in `out`.

    Every launch is appended as soon as it ends; an interrupt, or a launch that fails, writes the record of
    those before, then goes on upward.

    Raises
    ------
    InputError
        When an input is wrong, or the folder holds a run already.
    ProgramError
        When a launch fails, or its result is another than that of the first.
    """
    if not 1 <= launches <= 1000:
        raise InputError(key="--launches", value=launches, allowed="1 to 1000")
    for name in (LAUNCHES_FILE, Run.FILE):
        if (out / name).exists():
            raise InputError(out, reason=f"holds {name} already", allowed="a folder without a run")
    started = utc_now()
    done: list[NamedRun] = []
    try:
        for _ in range(launches):
            one = run_live(program, words, layer=layer, ranks=ranks, limit_s=limit_s, place=place)
            if done and _results(one) != _results(done[0]):
                raise ProgramError(
                    f"{program.name}: launch {len(done) + 1} had another result than the first"
                )
            done.append(one)
            launch = _launch(one)
            append(out / LAUNCHES_FILE, launch.model_dump_json() + "\n")
            if on_launch is not None:
                on_launch(launch)
    finally:
        if done:
            run = _record(done, started)
            run.write(out)
    return run


def _results(run: NamedRun) -> list[str]:
    return [rank.digest for rank in run.ranks]


def _launch(run: NamedRun) -> Launch:
    times = [rank.elapsed_s for rank in run.ranks]
    return Launch(seconds=max(times), per_rank_s=times)


def _record(done: Sequence[NamedRun], started: str) -> Run:
    first = done[0]
    version = importlib.metadata.version("wiretwin")
    launches = [_launch(run) for run in done]
    # One launch, whole: parts of several would not sum to the time of any.
    shown = typical(launches)
    split = []
    for at, rank in enumerate(done[shown].ranks):
        compute = min(rank.parts_s["compute"], rank.elapsed_s)
        split.append(
            RealRank(rank=at, compute_s=compute, mpi_s=rank.elapsed_s - compute, total_s=rank.elapsed_s)
        )
    return Run(
        program=first.program.name,
        program_sha256=sha256_of(Path(_core.__file__)),
        args=[f"{key}={value}" for key, value in first.parameters.items()],
        ranks=len(first.ranks),
        layer=first.layer,
        launcher=[],
        library=f"wiretwin {version}",
        launches=launches,
        seconds=median_spread([one.seconds for one in launches]),
        split=split,
        split_launch=shown + 1,
        wiretwin=version,
        started_utc=started,
    ).sealed()
