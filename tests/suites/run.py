"""Public suites of MPI programs over what this project offers, beside the library's own path.

Each case runs twice with each MPI: over the path that the library takes by itself, and over that of the arm.
What passes by itself has to pass over the arm. The suites are

- ``mpi4py``: the test suite of mpi4py, a file at a time, of the version that is installed, whose sources
  ``pip download`` fetches into ``build/suites``;
- ``osu``: the OSU micro-benchmarks, built from ``--osu FOLDER``, with validation of what they move;
- ``mpich``: MPICH's own test programs, built from ``--mpich FOLDER``, the folder ``test/mpi`` of its sources.

Every outcome is kept as it comes in ``build/suites/COMMIT.jsonl``, so that the same command goes on where it
was ended. At the end ``tests/suites/results.json`` says what was found, with date and commit. Ends with 1 if
a case that passes by itself does not over the arm.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import mpich_tests

from wiretwin import process
from wiretwin.stacks.layers import parse_layers, refusal
from wiretwin.stacks.mpi import MpiSession
from wiretwin.testbed import Testbed

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "suites"
RESULTS = Path(__file__).with_name("results.json")
RANKS = 2
LIMIT_S = 120.0
"""The longest that a case may take, in seconds."""

SAMPLE = ("test_p2p_obj_matched", "test_msgzero", "test_cco_obj")
"""What is run of mpi4py's suite on every change."""

OSU_QUICK = ("-m", "1:65536", "-i", "20", "-x", "2", "-c")
"""Sizes, repetitions and validation of an OSU benchmark: what it measures is not looked at here."""


@dataclass(frozen=True)
class Case:
    """A program of a suite, and how it is started.

    Attributes
    ----------
    suite, name
        What it is called: ``mpi4py``, ``test_p2p_buf``.
    argv
        The program with its arguments, for each MPI.
    ranks
        How many there are.
    """

    suite: str
    name: str
    argv: Mapping[str, Sequence[str]]
    ranks: int = RANKS


Started = Callable[[Sequence[str], int], Sequence[str]]
"""From a program with its arguments and the number of ranks to the command that runs it on them."""


class Arm(Protocol):
    """A way of this project's for the messages of an MPI."""

    name: str
    libraries: Sequence[str]

    def open(self, library: str) -> contextlib.AbstractContextManager[tuple[Started, Started]]:
        """Bring up what the ranks need; give the library's own way and the arm's."""


class Direct:
    """The direct transport between two hosts of a testbed, against the library's TCP."""

    name = "direct"
    libraries = ("openmpi", "mpich")

    @contextlib.contextmanager
    def open(self, library: str) -> Iterator[tuple[Started, Started]]:
        """Bring up two hosts, and both configurations of the library on them."""
        with contextlib.ExitStack() as stack:
            bed = stack.enter_context(Testbed.up(2, name=f"suites-{os.getpid()}"))

            def way(name: str) -> Started:
                (configuration,) = parse_layers(name)
                if (refused := refusal(configuration, bed)) or configuration.kind.stack is None:
                    raise SystemExit(f"suites: {name} cannot be run: {refused}")
                up = configuration.kind.stack.up(bed, configuration.options)
                session = stack.enter_context(up)
                assert isinstance(session, MpiSession)
                launcher = [*session.launcher, "-np"]
                return lambda argv, ranks: bed.hosts[0].command(
                    [*launcher, str(ranks), *argv], env=session.env
                )

            yield way(f"mpi4py/{library}"), way(f"mpi4py/{library}+direct")


class Simulated:
    """The simulated world, against the library's own libfabric over TCP on this host."""

    name = "simulated"
    libraries = ("mpich",)

    @contextlib.contextmanager
    def open(self, library: str) -> Iterator[tuple[Started, Started]]:
        """Name the commands."""
        own = ["env", "MPIR_CVAR_CH4_NETMOD=ofi", "MPIR_CVAR_NOLOCAL=1", "FI_PROVIDER=tcp"]
        own += [str(Path(sys.executable).with_name("mpiexec")), "-n"]
        ours = [sys.executable, str(Path(__file__).with_name("simulated.py"))]

        def words(argv: Sequence[str]) -> Sequence[str]:
            return argv[1:] if argv[0] == sys.executable else argv

        yield (
            lambda argv, ranks: [*own, str(ranks), *argv],
            lambda argv, ranks: [*ours, str(ranks), str(LIMIT_S - 10), *words(argv)],
        )


ARMS: Mapping[str, Arm] = {arm.name: arm for arm in (Direct(), Simulated())}


SLOW = "takes longer than the limit: thousands of looks at what has ended, each a turn of the simulator"
EXCEPTIONS: Mapping[str, str] = {
    "simulated mpich mpi4py test_dynproc": "not known: in MPI_Comm_join both ranks wait for a message",
    "simulated mpich mpi4py test_spawn": "each of many spawns makes the run anew",
    "simulated mpich mpi4py test_util_sync": SLOW,
}
"""Cases that pass over the library's own path and not over an arm, with the cause. One that passes fails."""


def mpi4py_sources() -> Path:
    """Return the folder of the sources of the mpi4py that is installed; fetch them if they are not there.

    Raises
    ------
    subprocess.CalledProcessError
        The package index does not give them.
    """
    version = importlib.metadata.version("mpi4py")
    folder = BUILD / f"mpi4py-{version}"
    if not folder.is_dir():
        BUILD.mkdir(parents=True, exist_ok=True)
        fetch = ["pip", "download", "--quiet", "--no-deps", "--no-binary", "mpi4py"]
        packages = [f"mpi4py=={version}", "--dest", str(BUILD)]
        subprocess.run([sys.executable, "-m", *fetch, *packages], check=True, timeout=600)
        (archive,) = BUILD.glob(f"mpi4py-{version}.tar.*")
        # Whoever is ended in between leaves no half of it in its place.
        with tempfile.TemporaryDirectory(dir=BUILD) as unpacked, tarfile.open(archive) as packed:
            packed.extractall(unpacked, filter="data")
            (Path(unpacked) / folder.name).rename(folder)
    return folder


def mpi4py_cases(only: Sequence[str] | None = None) -> list[Case]:
    """Return mpi4py's own tests, a file each; those of the names, if there are any."""
    tests = mpi4py_sources() / "test"
    names = only or sorted(file.stem for file in tests.glob("test_*.py"))
    python = [sys.executable, str(tests / "main.py"), "-v"]
    return [Case("mpi4py", name, {"openmpi": [*python, name], "mpich": [*python, name]}) for name in names]


def osu_cases(sources: Path) -> list[Case]:
    """Build the OSU benchmarks with the compiler of each MPI; return those of messages and collectives."""
    compilers = {"openmpi": "mpicc.openmpi", "mpich": str(Path(sys.executable).parent / "mpicc")}
    built: dict[str, dict[str, str]] = {}
    for library, compiler in compilers.items():
        folder = BUILD / f"osu-{library}"
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(sources, folder, ignore=shutil.ignore_patterns(".git"))
            quiet: dict[str, Any] = {"check": True, "cwd": folder, "timeout": 1200, "capture_output": True}
            subprocess.run(["sh", "configure", f"CC={compiler}", f"CXX={compiler}"], **quiet)
            subprocess.run(["make", "-C", "c/util"], **quiet)
            for part in ("pt2pt/standard", "pt2pt/persistent", "collective"):
                subprocess.run(["make", "-C", f"c/mpi/{part}"], **quiet)
            (folder / "done").touch()
        programs = (folder / "c" / "mpi").rglob("osu_*")
        built[library] = {one.name: str(one) for one in programs if one.is_file() and not one.suffix}
    common = sorted(set(built["openmpi"]) & set(built["mpich"]))
    # Threads and processes are started by these, which is not what the transport is for.
    left_out = {"osu_latency_mt", "osu_latency_mp"}
    return [
        Case("osu", name, {library: [built[library][name], *OSU_QUICK] for library in compilers})
        for name in common
        if name not in left_out
    ]


def mpich_cases(sources: Path) -> list[Case]:
    """Build MPICH's own tests; return those that need no more than its helpers."""
    compiler = str(Path(sys.executable).parent / "mpicc")
    found = mpich_tests.programs(sources, compiler, BUILD / "mpich-tests")
    return [Case("mpich", name, {"mpich": argv}, ranks) for name, ranks, argv in found]


def outcome(case: Case, library: str, start: Started) -> dict[str, Any]:
    """Run a case; return how it ended and, of a suite that says so, which of its tests did not pass."""
    try:
        done = process.run(
            start(case.argv[library], case.ranks), limit_s=LIMIT_S, env=process.single_threaded()
        )
        ended, words, took_s = process.ending(done.returncode), done.stdout + done.stderr, done.seconds
    except process.TimeLimit as late:
        ended, words = "the time limit", late.finished.stdout + late.finished.stderr
        took_s = late.finished.seconds
    found: dict[str, Any] = {"ended": ended, "took_s": round(took_s, 1)}
    if case.suite == "mpi4py":
        wrong = re.findall(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", words, re.MULTILINE)
        found |= {
            "ran": sum(map(int, re.findall(r"Ran (\d+) tests? in", words))),
            "skipped": sum(map(int, re.findall(r"skipped=(\d+)", words))),
            "wrong": sorted(set(wrong)),
        }
    if case.suite == "osu" and "Fail" in words:
        found["wrong"] = ["validation"]
    if case.suite == "mpich" and ended == "status 0" and "No Errors" not in words:
        found["wrong"] = ["it says of errors, or nothing"]
    if ended != "status 0":
        found["words"] = words[-2000:]
    return found


def worse(own: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """Say what passes over the library's own path and does not over the arm."""
    wrong = sorted(set(ours.get("wrong", [])) - set(own.get("wrong", [])))
    if own["ended"] == "status 0":
        if ours["ended"] != "status 0":
            wrong.append(f"ended with {ours['ended']}")
        if (ours.get("ran"), ours.get("skipped")) != (own.get("ran"), own.get("skipped")):
            ran = [f"{one.get('ran')} tests, {one.get('skipped')} of them skipped" for one in (own, ours)]
            wrong.append(f"ran {ran[1]}, where the library ran {ran[0]}")
    return wrong


def compare(case: Case, library: str, ways: tuple[Started, Started]) -> dict[str, Any]:
    """Run a case both ways; return both outcomes and what is worse over the arm."""
    own, ours = (outcome(case, library, start) for start in ways)
    return {"own": own, "ours": ours, "worse": worse(own, ours)}


def commit() -> str:
    """Return the commit of the tree, with a plus sign if files differ from it."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--dirty=+"]
    return subprocess.check_output(words, text=True).strip()


def summary(done: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is written of an arm: how many cases and tests passed, and all that is worse."""
    passed = [one for one in done if one["own"]["ended"] == "status 0"]
    return {
        "cases": len(done),
        "by suite": dict(Counter(one["suite"] for one in done)),
        "pass over the library's own path": len(passed),
        "of them pass": sum(not (one["worse"] or "exception" in one) for one in passed),
        "tests run": sum(one["ours"].get("ran", 0) for one in done),
        "not passing by itself": sorted(
            {f"{one['library']} {one['suite']} {one['case']}" for one in done if one not in passed}
        ),
        "exceptions": {
            f"{one['library']} {one['suite']} {one['case']}": one["exception"]
            for one in done
            if "exception" in one
        },
        "worse": {
            f"{one['library']} {one['suite']} {one['case']}": one["worse"] for one in done if one["worse"]
        },
    }


def main() -> int:
    """Run what has not been run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--arm", choices=sorted(ARMS), action="append", help="which way; all by default")
    parser.add_argument("--library", action="append", help="which MPI; all of the arm by default")
    parser.add_argument("--only", action="append", help="cases whose name has this in it")
    parser.add_argument("--sample", action="store_true", help="what is run on every change")
    parser.add_argument("--osu", type=Path, help="the sources of the OSU benchmarks, 7.0 or later")
    parser.add_argument("--mpich", type=Path, help="the folder test/mpi of MPICH's sources")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no case after so long")
    options = parser.parse_args()
    last = time.monotonic() + 60 * options.minutes
    here = commit()
    kept = BUILD / f"{here}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    done: dict[tuple[str, ...], dict[str, Any]] = {}
    for line in kept.read_text().splitlines() if kept.exists() else []:
        one = json.loads(line)
        done[one["arm"], one["library"], one["suite"], one["case"]] = one
    cases = mpi4py_cases(SAMPLE if options.sample else None)
    if options.osu is not None:
        cases += osu_cases(options.osu.resolve())
    if options.mpich is not None:
        cases += mpich_cases(options.mpich.resolve())
    with kept.open("a") as log:
        for name in options.arm or ARMS:
            for library in options.library or ARMS[name].libraries:
                left = [
                    case
                    for case in cases
                    if library in case.argv
                    and (name, library, case.suite, case.name) not in done
                    and any(word in case.name for word in options.only or [""])
                ]
                if not left or time.monotonic() > last:
                    continue
                with ARMS[name].open(library) as ways:
                    for case in left:
                        if time.monotonic() > last:
                            break
                        found = compare(case, library, ways)
                        at = (name, library, case.suite, case.name)
                        if cause := EXCEPTIONS.get(" ".join(at)):
                            passes = [] if found["worse"] else ["passes, and is listed as an exception"]
                            found |= {"worse": passes, "exception": cause}
                        done[at] = dict(zip(("arm", "library", "suite", "case"), at, strict=True)) | found
                        log.write(json.dumps(done[at]) + "\n")
                        log.flush()
                        words = "; ".join(found["worse"]) or f"as by itself ({found['own']['ended']})"
                        print(f"{name} {library} {case.suite} {case.name}: {words}", flush=True)
    by_arm: dict[str, list[dict[str, Any]]] = {}
    for one in done.values():
        by_arm.setdefault(one["arm"], []).append(one)
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": here,
        "arms": {name: summary(found) for name, found in sorted(by_arm.items())},
    }
    if not (options.sample or options.only):
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results["arms"], indent=1))
    return any(one["worse"] for one in done.values())


if __name__ == "__main__":
    sys.exit(main())
