"""Run an mpi4py script or a compiled program for real, launch by launch, and keep every launch.

Actual time is the slowest rank's, from after Init to before Finalize; the launch is the unit of
repetition, and launches of several programs are interleaved so that a drift of the host's speed
meets them all alike. A further launch or more with timers around the MPI calls gives the split into
compute and time inside MPI; it is not counted among the others.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from wiretwin import leftovers, process, scratch, shared_memory, states
from wiretwin.errors import InputError, ProgramError, StorageError
from wiretwin.marks import LAUNCH
from wiretwin.measure.running import made_for_it
from wiretwin.mpi import script
from wiretwin.place import HERE, Apart, Place
from wiretwin.predict import printed
from wiretwin.predict.brought import brought
from wiretwin.predict.library import Library, library_of
from wiretwin.predict.records import Launch, RealRank, Run, median_spread, sha256_of, typical, utc_now
from wiretwin.stacks.simulated import is_executable

LAUNCHES_FILE = "launches.jsonl"
#: A job whose host changes its state is launched at most so many times as often as was asked for.
MOST_TURNS = 2
#: Fewer launches than this say nothing of states.
_TELL_STATES = 3


@dataclass(slots=True)
class Job:
    """A program to be run for real.

    Attributes
    ----------
    program
        The script, or the executable file.
    args
        Its arguments.
    ranks
        How many processes.
    folder
        Where `launches.jsonl` grows and `run.json` ends up.
    states
        The states of the host that launches are told apart by; with none, the launches themselves say how
        many there are, as soon as three have told how far apart their ranks were.
    """

    program: Path
    args: tuple[str, ...]
    ranks: int
    folder: Path
    states: Sequence[states.Named] = ()
    started_utc: str = ""
    there: Path | None = None
    """Where the machines of the place have the script, if they are others than this."""
    launches: list[Launch] = field(default_factory=list)
    splits: list[Launch] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The program and its arguments, as one types them."""
        return " ".join([self.program.name, *self.args])

    def alike(self) -> int:
        """Return how many launches there are in the state that most are in."""
        if not self.states:
            seen = [one.crossing_ns for one in self.launches]
            if len(seen) < _TELL_STATES or None in seen:
                return len(seen)
            return max(map(len, states.groups(seen)), default=0)
        found = (states.state_of(one.crossing_ns, self.states) for one in self.launches)
        return max(Counter(state.name for state in found if state is not None).values(), default=0)


def checked(program: Path) -> None:
    """Look at a program before anything is started.

    Raises
    ------
    InputError
        It is no script that parses, and no executable file either.
    """
    if not is_executable(program):
        script.checked(program)


def launch(job: Job, on: Library, *, split: bool, limit_s: float, place: Place = HERE) -> Launch:
    """Run the program once, on a library that is up at the place.

    Parameters
    ----------
    split
        Whether to put timers around the MPI calls.
    limit_s
        The time the launch may take, start-up included, in seconds.
    place
        Where the ranks live; the launcher starts on the first host.

    Raises
    ------
    ProgramError
        When it does not end within the limit, ends with another status than 0, or never says how
        long it took (a program that ends the interpreter by force).
    StorageError
        When it fails where the host's shared memory is full.
    """
    with scratch.folder(_scratch(place), "run") as folder:
        # Other machines keep what begins with "log" to themselves until it is asked for.
        begins = "log-" if isinstance(place, Apart) else ""
        report = folder / f"{begins}seconds.json"
        env = process.single_threaded() if on.timer is None else process.threaded_as_asked()
        env.pop("WIRETWIN_LIVE_SPLIT", None)
        given = {"WIRETWIN_LIVE_OUT": str(report), "WIRETWIN_LIVE_PRINTED": str(folder / f"{begins}printed")}
        if split:
            given["WIRETWIN_LIVE_SPLIT"] = "1"
        printed_by = [folder / f"{begins}printed.{rank}" for rank in range(job.ranks)]
        if on.timer is not None:
            program = on.timer.command(
                os.path.abspath(job.program), job.args, folder / f"{begins}printed", split
            )
        else:
            # A host that does not see the working directory begins elsewhere.
            path = os.path.abspath(job.there or job.program) if len(place.hosts) > 1 else str(job.program)
            program = [sys.executable, "-P", "-m", "wiretwin.mpi.live", path, *job.args]
        variables = {**on.env, **given}
        argv = place.hosts[0].command([*on.command(job.ranks, variables), *program], env=variables)
        try:
            with leftovers.none_left(os.getuid()), _brought_back(place, folder, env, [report, *printed_by]):
                made = made_for_it(place)
                done = process.run(argv, limit_s=limit_s, env=env, futile=made.trouble if made else None)
        except process.TimeLimit as late:
            raise ProgramError(
                f"{job.name} on {job.ranks} ranks did not end within {limit_s:g} s and was ended; "
                f"its last words: {_own_words(late.finished, printed_by)}. If it waits for a message that "
                "never comes, `wiretwin predict` says who waits for whom"
            ) from late
        if done.returncode != 0:
            ending = process.ending(done.returncode)
            if trouble := place.trouble():
                raise ProgramError(trouble)
            if len(place.hosts) == 1 and (short := shared_memory.short_of(job.ranks)) is not None:
                raise StorageError(shared_memory.FOLDER, f"full: {job.name} ended with {ending}; {short}")
            words = _words(done, printed_by).last_words(12) or "no word"
            raise ProgramError(f"{job.name} on {job.ranks} ranks ended with {ending}:\n{words}")
        try:
            seconds = json.loads(report.read_text("utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            raise ProgramError(
                f"{job.name} on {job.ranks} ranks ended without saying how long it took: "
                + (
                    "rank 0 was ended by force (os._exit, a signal handler) before its end"
                    if on.timer is None
                    else "rank 0 ended without MPI_Finalize, or began without MPI_Init"
                )
            ) from error
        texts = printed.read(printed_by)
    per_rank = [float(value) for value in seconds["per_rank_s"]]
    ranks = None
    if split:
        ranks = [
            RealRank(
                rank=part["rank"],
                compute_s=part["compute_s"],
                mpi_s=part["mpi_s"],
                total_s=part["compute_s"] + part["mpi_s"],
            )
            for part in seconds["split"]
        ]
    return Launch(
        seconds=max(per_rank),
        per_rank_s=per_rank,
        split=ranks,
        echo_us=seconds.get("echo_us"),
        crossing_ns=seconds.get("crossing_ns"),
        queued_s=seconds.get("queued_s"),
        printed=texts,
    )


@contextlib.contextmanager
def _brought_back(place: Place, folder: Path, env: dict[str, str], files: Sequence[Path]) -> Iterator[None]:
    """Bring what ranks on other machines have written; end what a launch leaves there that is ended early."""
    if not isinstance(place, Apart):
        yield
        return
    env[LAUNCH] = str(folder)
    try:
        yield
    except BaseException:
        place.end(str(folder))
        place.gather(files)
        raise
    place.gather(files)


def _words(done: process.Finished, printed_by: Sequence[Path]) -> process.Finished:
    """Return a process with what its ranks printed before what their launcher did."""
    return replace(done, stdout="".join(printed.last(file) for file in printed_by) + done.stdout)


def _own_words(done: process.Finished, printed_by: Sequence[Path]) -> str:
    """Return the last words of a program that we ended, without what its launcher says to that."""
    out = done.stdout.partition("BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES")[0].rstrip("= \n")
    return _words(replace(done, stdout=out), printed_by).last_words(3) or "none"


def _scratch(place: Place) -> Path | None:
    """Return where every host of the place sees what a launch leaves; one host has its usual folder."""
    return place.directory if len(place.hosts) > 1 else None


def run(
    program: str | Path,
    args: Sequence[str] = (),
    *,
    ranks: int = 2,
    launches: int = 7,
    splits: int = 1,
    out: str | Path,
    limit_s: float = 60.0,
) -> Run:
    """Run one program for real, `launches` times; as `run_interleaved`.

    Parameters
    ----------
    program, args
        The script, or the executable file, and its arguments.
    ranks
        How many processes.
    launches, splits
        Launches that count, and launches with timers around the MPI calls.
    out
        The folder for `launches.jsonl` and `run.json`.
    limit_s
        The time one launch may take, start-up included, in seconds.

    Raises
    ------
    InputError, ProgramError
        When an argument is wrong; when a launch fails.
    """
    job = Job(Path(program), tuple(args), ranks, Path(out))
    return run_interleaved([job], launches=launches, splits=splits, limit_s=limit_s)[0]


def run_interleaved(
    jobs: Sequence[Job],
    *,
    launches: int = 7,
    splits: int = 1,
    limit_s: float = 60.0,
    on_launch: Callable[[Job, Launch], None] | None = None,
    place: Place = HERE,
    layer: str | None = None,
) -> list[Run]:
    """Run every job `launches` times at a place, taking turns, and write each job's `run.json`.

    The library is that of `layer`, for all jobs: by default ``mpi4py/mpich`` for scripts, which also run on
    others, such as ``mpi/openmpi+direct``, and for executable files the one that they are built for.

    A job with states is run until so many launches were in one and the same, but at most `MOST_TURNS`
    times as often: with two states that is always enough, unless the host changes in mid-launch or to a
    state that the job does not know. The launches with timers come last.

    Every launch is appended to the job's `launches.jsonl` as soon as it ends. An interrupt or a launch
    that fails writes the records of what was run, then goes on upward.

    Raises
    ------
    InputError
        When a script is not there, a number is out of range, a folder holds a run already, or the library
        is not to be had.
    ProgramError
        As `launch`.
    """
    if not 1 <= launches <= 1000:
        raise InputError(key="--launches", value=launches, allowed="1 to 1000")
    if not 0 <= splits <= 1000:
        raise InputError(key="--splits", value=splits, allowed="0 to 1000")
    for job in jobs:
        checked(job.program)
        if job.ranks < 1:
            raise InputError(key="--ranks", value=job.ranks, allowed="1 and above")
        for name in (LAUNCHES_FILE, Run.FILE):
            if (job.folder / name).exists():
                raise InputError(job.folder, reason=f"holds {name} already", allowed="a folder without a run")
    for job in jobs:
        job.started_utc = utc_now()
    with library_of([job.program for job in jobs], layer, place) as on, contextlib.ExitStack() as stack:
        for job in jobs:
            if isinstance(place, Apart):
                job.there = stack.enter_context(brought(job.program, place))
        try:
            _take_turns(jobs, on, launches, splits, limit_s, on_launch, place)
        except KeyboardInterrupt:
            _keep(jobs, on)
            raise
        except StorageError as error:
            if kept := _keep(jobs, on):
                raise StorageError(error.file, error.reason, kept) from error
            raise
        except ProgramError as error:
            kept = _keep(jobs, on)
            if not kept:
                raise
            raise ProgramError(f"{error}\n{kept}") from error
        runs = [_record(job, on) for job in jobs]
    for job, run in zip(jobs, runs, strict=True):
        run.write(job.folder)
    return runs


def _take_turns(
    jobs: Sequence[Job],
    on: Library,
    launches: int,
    splits: int,
    limit_s: float,
    on_launch: Callable[[Job, Launch], None] | None,
    place: Place,
) -> None:
    for turn in range(MOST_TURNS * launches + splits):
        split = turn >= MOST_TURNS * launches
        for job in jobs:
            if not split and job.alike() >= launches:
                continue
            result = launch(job, on, split=split, limit_s=limit_s, place=place)
            if split or job.launches:
                result = result.model_copy(update={"printed": None})
            (job.splits if split else job.launches).append(result)
            append(job.folder / LAUNCHES_FILE, result.model_dump_json() + "\n")
            if on_launch is not None:
                on_launch(job, result)


def _keep(jobs: Sequence[Job], on: Library) -> str:
    """Write the records of the launches so far, and say in words what is kept where."""
    said = []
    for job in jobs:
        count = len(job.launches)
        if count:
            _record(job, on).write(job.folder)
            said.append(f"{count} {'launch is' if count == 1 else 'launches are'} kept in {job.folder}")
    return "; ".join(said)


def append(file: Path, text: str) -> None:
    """Add a line to a file, whose folder is made if absent; StorageError when it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise StorageError(file, f"not written: {error.strerror or error}") from error


def _record(job: Job, on: Library) -> Run:
    # One launch, whole: parts of several would not sum to the time of any.
    timed = typical(job.splits) if job.splits else None
    return Run(
        program=job.program.name,
        program_sha256=sha256_of(job.program),
        args=list(job.args),
        ranks=job.ranks,
        layer=on.layer,
        launcher=[Path(on.words[0]).name, *on.command(job.ranks)[1:]],
        library=on.name,
        launches=[*job.launches, *job.splits],
        seconds=median_spread([one.seconds for one in job.launches]),
        split=[] if timed is None else job.splits[timed].split or [],
        split_launch=None if timed is None else len(job.launches) + timed + 1,
        wiretwin=importlib.metadata.version("wiretwin"),
        started_utc=job.started_utc,
    ).sealed()
