"""Our loops beside the OSU micro-benchmarks and the Intel MPI Benchmarks over one MPI, in interleaved rounds.

    .venv/bin/python benches/osu_imb.py --osu FOLDER --imb FOLDER [--layer mpi/mpich] [--hosts 2] [--rounds 5]

The folders hold the sources of both (OSU 7, IMB 2021), which are built with the compiler of the MPI into
``build/peers`` at the first time. In a round ours, OSU's and IMB's measure the same thing one after another,
each first in turn, with the same launcher, the same settings of the library and the same cores. What is
printed is the time of a message or a call in microseconds: medians over the rounds, and the ratio of ours to
theirs within a round with its interval at 95 % over the rounds.

Like is compared with like: with ``-z`` OSU prints medians of its iterations, of collectives those of the mean
over the ranks; IMB prints means. Of ours the same is taken, of as many iterations. OSU sums MPI_FLOAT and
receives each message of a window into a buffer of its own, as ours do; IMB receives all into one. A measure
of more ranks than there are cores is left out: ranks that spin would wait for each other's turns.

On a host that others use as well, ``WIRETWIN_PRIORITY=20`` gives the ranks of all three a real-time priority.
It is rejected with ``--hosts``: ranks that spin would keep the cores from the kernel's threads, which carry
the frames between the hosts of a testbed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from against import at, interval, verdict

from wiretwin import priority, process
from wiretwin.measure.host import measuring_cpus
from wiretwin.measure.launch import launch
from wiretwin.measure.schedule import Step
from wiretwin.measure.together import window
from wiretwin.place import Place
from wiretwin.stacks import Session
from wiretwin.stacks.layers import Configuration, parse_layers, refusal
from wiretwin.stacks.mpi import MpiSession
from wiretwin.testbed.plan import folder_of

BUILD = Path(__file__).resolve().parents[1] / "build" / "peers"
SIZES = (8, 1024, 65536)
LIMIT_S = 120.0
STEP_MS = 150.0
ITERATIONS, WINDOWS = 1000, 200
"""Of latencies and calls, and of streams, each of which is a window of messages."""
COMPILERS = {"mpi/openmpi": ("mpicc.openmpi", "mpicxx.openmpi"), "mpi/mpich": ("mpicc.mpich", "mpicxx.mpich")}
NO_CXX = "CPPFLAGS=-DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX"
"""IMB takes warnings as errors, and the libraries' old bindings to C++ have some."""
OSU_PARTS = ("pt2pt/standard", "collective/blocking", "one-sided")
Readings = dict[int, float]
"""Microseconds by size."""


@dataclass(frozen=True)
class Measure:
    """One thing that all three measure.

    Attributes
    ----------
    name
        What the table calls it.
    loop
        Our loop.
    osu, imb
        The words of the programs; of IMB's the first is the program's name.
    ranks
        How many ranks it is measured on.
    rate
        Both print a rate, in 10^6 bytes per second, of all pairs together.
    """

    name: str
    loop: str
    osu: tuple[str, ...]
    imb: tuple[str, ...]
    ranks: int = 2
    rate: bool = False

    @property
    def iterations(self) -> int:
        """How often it is done in a run of OSU's or IMB's."""
        return WINDOWS if self.rate else ITERATIONS

    @property
    def messages(self) -> int:
        """Messages between any two of the ranks that count as one: those that go both ways at once do."""
        return self.ranks // 2 * (2 if self.loop == "bidirectional" else 1)


def _flushed(name: str) -> tuple[str, ...]:
    return (name, "-w", "allocate", "-s", "flush")


_APART = ("-z", "-b", "multiple")
"""A buffer for each message of a window."""
MEASURES = (
    Measure("latency", "echo", ("osu_latency", "-z"), ("IMB-MPI1", "PingPong")),
    Measure("bandwidth", "pairs", ("osu_bw", *_APART), ("IMB-MPI1", "Uniband"), rate=True),
    Measure("both ways", "bidirectional", ("osu_bibw", *_APART), ("IMB-MPI1", "Biband"), rate=True),
    Measure("two pairs", "pairs", ("osu_mbw_mr", *_APART[1:]), ("IMB-MPI1", "Uniband"), ranks=4, rate=True),
    Measure("allreduce", "allreduce", ("osu_allreduce", "-z", "-T", "mpi_float"), ("IMB-MPI1", "Allreduce")),
    Measure("bcast", "bcast", ("osu_bcast", "-z"), ("IMB-MPI1", "Bcast")),
    Measure("alltoall", "alltoall", ("osu_alltoall", "-z"), ("IMB-MPI1", "Alltoall")),
    Measure("put", "put", _flushed("osu_put_latency"), ("IMB-RMA", "Unidir_put")),
    Measure("get", "get", _flushed("osu_get_latency"), ("IMB-RMA", "Unidir_get")),
)


def built(osu: Path, imb: Path, layer: str) -> Path:
    """Build both with the compiler of a library; return the folder of the programs."""
    cc, cxx = COMPILERS[layer]
    folder = BUILD / layer.replace("/", "-")
    if (folder / "done").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(osu, folder / "osu", ignore=shutil.ignore_patterns(".git"))
    shutil.copytree(imb, folder / "imb", ignore=shutil.ignore_patterns(".git"))

    def run(*words: str, inside: str) -> None:
        subprocess.run(words, cwd=folder / inside, check=True, timeout=1200, stdout=subprocess.DEVNULL)

    run("sh", "configure", f"CC={cc}", f"CXX={cxx}", inside="osu")
    if (folder / "osu" / "c" / "util" / "Makefile").exists():  # in some editions a library of its own
        run("make", "-C", "c/util", inside="osu")
    for part in OSU_PARTS:
        run("make", "-C", f"c/mpi/{part}", inside="osu")
    for program in ("IMB-MPI1", "IMB-RMA"):
        run("make", program, f"CC={cc}", f"CXX={cxx}", NO_CXX, inside="imb")
        shutil.copy(folder / "imb" / program, folder)
    for program in (folder / "osu" / "c" / "mpi").rglob("osu_*"):
        if program.is_file() and not program.suffix:
            shutil.copy(program, folder)
    (folder / "lengths").write_text("".join(f"{size}\n" for size in SIZES))
    (folder / "done").touch()
    return folder


def urgent(argv: Sequence[str]) -> list[str]:
    """Return the command of a rank, with a real-time priority if one is asked for."""
    asked = os.environ.get(priority.VARIABLE)
    return [*(["chrt", "-f", asked] if asked else []), *argv]


def theirs(session: MpiSession, pins: Sequence[int] | None, words: Sequence[str], ranks: int) -> str:
    """Run a program on the given number of ranks, pinned as ours are; return what it printed."""
    argv = list(words)
    if pins:
        turn = f"$((${session.rank_variable} % {len(pins)} + 1))"
        which = f'$(echo {" ".join(map(str, pins))} | cut -d" " -f{turn})'
        argv = ["sh", "-c", f'exec taskset -c {which} "$@"', "rank", *argv]
    # The path of a specification is the last word of a rank's command; these programs are given none.
    (command,) = session.commands(urgent(argv), [Path("none")], ranks)
    env = process.single_threaded() | dict(command.env)
    done = process.run(list(command.argv)[:-1], limit_s=LIMIT_S, env=env)
    if done.returncode:
        sys.exit(f"{words[0]} ended with {done.returncode}: {done.last_words()}")
    return done.stdout


def osu(session: MpiSession, pins: Sequence[int] | None, folder: Path, measure: Measure) -> Readings:
    """Run OSU's program once."""
    name, *options = measure.osu
    bounds = ("-m", f"{SIZES[0]}:{SIZES[-1]}", "-i", str(measure.iterations), "-x", "50")
    return read_osu(measure, theirs(session, pins, [str(folder / name), *bounds, *options], measure.ranks))


def read_osu(measure: Measure, said: str) -> Readings:
    """Return what OSU printed; with -z percentiles stand behind the mean, the first of them the median."""
    column = 2 if "-z" in measure.osu else 1
    rows = [line.split() for line in said.splitlines() if re.match(r"\d+\s+\d", line)]
    return _by_size(measure, {int(row[0]): float(row[column]) for row in rows})


def imb(session: MpiSession, pins: Sequence[int] | None, folder: Path, measure: Measure) -> Readings:
    """Run IMB's benchmark once."""
    program, name = measure.imb
    words = [str(folder / program), name, "-npmin", str(measure.ranks), "-msglen", str(folder / "lengths")]
    words += ["-iter", str(measure.iterations), "-iter_policy", "off"]
    return read_imb(measure, theirs(session, pins, words, measure.ranks))


def read_imb(measure: Measure, said: str) -> Readings:
    """Return what IMB printed; of the two ways of a one-sided call, that with a flush for each."""
    said = said.partition("MODE: NON-AGGREGATE")[2].partition("MODE: AGGREGATE")[0] or said
    rows = [line.split() for line in said.splitlines() if re.match(r"\s+\d+\s+\d+\s+\d", line)]
    # Behind size and repetitions stand the time, or the rate; of collectives the least, the most, the mean.
    column = 4 if measure.loop in ("allreduce", "bcast", "alltoall") else 2
    return _by_size(measure, {int(row[0]): float(row[column]) for row in rows})


def _by_size(measure: Measure, found: Readings) -> Readings:
    """Return the time of a message or call, whether it was printed or a rate was."""
    return {
        size: size * measure.messages / found[size] if measure.rate else found[size]
        for size in SIZES
        if size in found
    }


def ours(
    configuration: Configuration,
    place: Place,
    session: Session,
    pins: Sequence[int] | None,
    measure: Measure,
) -> dict[str, Readings]:
    """Run our probe once; return medians and means."""
    together = measure.loop != "echo"
    # As often as theirs, so that an interruption of milliseconds finds as much of ours.
    count = measure.iterations
    steps = [
        Step(
            measure.loop, size, messages=window(size) if measure.rate else 1, warmup=50, min_samples=count,
            max_samples=count, budget_ms=STEP_MS, batch=1,
        )
        for size in SIZES
    ]  # fmt: skip
    outcome = launch(
        configuration, steps, limit_s=LIMIT_S, pins=pins, ranks=measure.ranks, together=together, place=place,
        session=session,
    )  # fmt: skip
    if outcome.status != "ok":
        sys.exit(f"{configuration.name}: {measure.name}: {outcome.error}")
    # OSU and IMB print the mean over the ranks, of streams the time of one. The slowest takes longer.
    wanted = f"{measure.loop}_mean" if together else measure.loop
    found: dict[str, Readings] = {"median": {}, "mean": {}}
    for step in outcome.steps:
        if step["loop"] == wanted:
            part = {"echo": 2.0}.get(measure.loop, float(step["messages"])) * step["batch"] * 1000.0
            for kind, of in (("median", statistics.median), ("mean", statistics.fmean)):
                found[kind][step["bytes"]] = of(step["values_ns"]) / part
    return found


def main() -> None:
    """Print a row for each thing and size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--osu", type=Path, required=True)
    parser.add_argument("--imb", type=Path, required=True)
    parser.add_argument("--layer", default="mpi/openmpi")
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="names of the first column, joined by commas")
    args = parser.parse_args()
    if args.hosts > 1 and priority.VARIABLE in os.environ:
        parser.error(f"{priority.VARIABLE} cannot be set with --hosts: the kernel's threads carry the frames")
    (configuration,) = parse_layers(args.layer)
    kind = configuration.kind
    configuration = replace(configuration, kind=replace(kind, probe=tuple(urgent(kind.probe))))
    folder = built(args.osu.resolve(), args.imb.resolve(), configuration.kind.name)
    wanted = [one for one in MEASURES if not args.only or one.name in args.only.split(",")]
    cores = len(os.sched_getaffinity(0))
    for measure in [one for one in wanted if one.ranks > cores]:
        print(f"{measure.name}: {measure.ranks} ranks on {cores} cores are not measured", file=sys.stderr)
        wanted.remove(measure)
    stack = configuration.kind.stack
    rounds: dict[str, list[tuple[dict[str, Readings], Readings, Readings]]] = {one.name: [] for one in wanted}
    with at(args.hosts, folder_of(folder / "lengths")) as place:
        if stack is None or (reason := refusal(configuration, place)) is not None:
            sys.exit(f"{configuration.name}: {reason if stack else 'no MPI'}")
        with stack.up(place, configuration.options) as session:
            if not isinstance(session, MpiSession):
                sys.exit(f"{configuration.name}: no MPI")
            for number in range(args.rounds):
                for measure in wanted:
                    pins = measuring_cpus(measure.ranks)
                    runs = {
                        0: lambda: ours(configuration, place, session, pins, measure),  # noqa: B023
                        1: lambda: osu(session, pins, folder, measure),  # noqa: B023
                        2: lambda: imb(session, pins, folder, measure),  # noqa: B023
                    }
                    made = {which: runs[which]() for which in ((number + k) % 3 for k in range(3))}
                    rounds[measure.name].append((made[0], made[1], made[2]))
    print("| | bytes | ours | OSU | ours/OSU | | IMB | ours/IMB | |")
    print("|---|---|---|---|---|---|---|---|---|")
    for measure in wanted:
        for size in SIZES:
            print(row(measure, size, rounds[measure.name]))


def row(measure: Measure, size: int, rounds: Sequence[tuple[dict[str, Readings], Readings, Readings]]) -> str:
    """Return a line of the table."""
    like = "median" if "-z" in measure.osu else "mean"
    mine = statistics.median(own[like][size] for own, _, _ in rounds)
    cells = [measure.name, str(size), f"{mine:.3g}"]
    for which, kind in ((1, like), (2, "mean")):
        pairs = [(one[0][kind][size], one[which][size]) for one in rounds if size in one[which]]
        if len(pairs) < 2:
            cells += ["", "", ""]
            continue
        ratio, low, high = interval([own / other for own, other in pairs])
        other = statistics.median(peer for _, peer in pairs)
        cells += [f"{other:.3g}", f"{ratio:.2f} ({low:.2f} to {high:.2f})", verdict(low, high)]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
