"""Public suites of MPI programs over what this project offers, beside the library's own path.

Each case runs with each MPI over the path that the library takes by itself, and over that of each arm.
What passes by itself, each time, has to pass over the arm. The suites are

- ``mpi4py``: the test suite of mpi4py, a file at a time, of the version that is installed, whose sources
  ``pip download`` fetches into ``build/suites``;
- ``osu``: the OSU micro-benchmarks, built from ``--osu FOLDER``, with validation of what they move;
- ``imb``: the Intel MPI Benchmarks, built from ``--imb FOLDER``, with validation of what they move;
- ``mpich``: MPICH's own test programs, built from ``--mpich FOLDER``, the folder ``test/mpi`` of its sources.

Every outcome is kept as it comes, so that the same command goes on where it was ended: that of an arm in
``build/suites/COMMIT.jsonl``, that of the library's own path, which no commit changes, in
``build/suites/own.jsonl``. At the end ``tests/suites/results.json`` says what was found, with date and
commit. Ends with 1 if a case that passes by itself does not over the arm.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from arms import ARMS, Arm, Started
from cases import BUILD, ROOT, Case, cases
from exceptions import EXCEPTIONS

from wiretwin import process

RESULTS = Path(__file__).with_name("results.json")
LIMIT_S = 120.0
"""The longest that a case may take, in seconds."""
AGAIN = 4
"""How often a case is run again over the library's own path that passes there and not over an arm."""
Key = tuple[str, ...]
"""An arm, a library, a suite and a case."""


class Log:
    """Outcomes in a file, a line each, read when it is opened."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self.found: dict[Key, dict[str, Any]] = {}
        for line in file.read_text().splitlines() if file.exists() else []:
            one = json.loads(line)
            self.found[tuple(one["key"])] = one
        self._file = file

    def keep(self, key: Key, found: Mapping[str, Any]) -> None:
        """Keep an outcome."""
        self.found[key] = {"key": key, **found}
        with self._file.open("a") as file:
            file.write(json.dumps(self.found[key]) + "\n")


def outcome(case: Case, library: str, start: Started) -> dict[str, Any]:
    """Run a case; return how it ended and, of a suite that says so, which of its tests did not pass."""
    argv = start(case.argv[library], case.ranks)
    with tempfile.TemporaryDirectory() as folder:  # for the files that it makes
        try:
            done = process.run(argv, limit_s=LIMIT_S, env=process.single_threaded(), cwd=Path(folder))
            ended, words, took_s = process.ending(done.returncode), done.stdout + done.stderr, done.seconds
        except process.TimeLimit as late:
            ended, words = "the time limit", late.finished.stdout + late.finished.stderr
            took_s = late.finished.seconds
    found: dict[str, Any] = {"ended": ended, "took_s": round(took_s, 1)} | SAID[case.suite](words)
    if ended != "status 0":
        found["words"] = words[-2000:]
    return found


def _mpi4py_said(words: str) -> dict[str, Any]:
    wrong = re.findall(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", words, re.MULTILINE)
    return {
        "ran": sum(map(int, re.findall(r"Ran (\d+) tests? in", words))),
        "skipped": sum(map(int, re.findall(r"skipped=(\d+)", words))),
        "wrong": sorted(set(wrong)),
    }


def _osu_said(words: str) -> dict[str, Any]:
    return {"wrong": ["validation"]} if "Fail" in words else {}


def _imb_said(words: str) -> dict[str, Any]:
    """Look for numbers above zero below the word ``defects``, which ends a line above them."""
    defects, wrong = False, False
    for line in words.splitlines():
        line = re.sub(r"^\[\d+\] ", "", line).rstrip()
        defects = line.endswith("defects") or (defects and line != "")
        number = re.search(r"(?:^|\s)(\d+\.\d+)$", line)
        wrong |= defects and number is not None and float(number[1]) > 0
    return ({"wrong": ["defects"]} if wrong else {}) | {"ran": words.count("# Benchmarking")}


def _mpich_said(words: str) -> dict[str, Any]:
    return {} if "No Errors" in words else {"wrong": ["it says of errors, or nothing"]}


SAID = {"mpi4py": _mpi4py_said, "osu": _osu_said, "imb": _imb_said, "mpich": _mpich_said}


def passes(own: Mapping[str, Any]) -> bool:
    """Return whether a case passes over the library's own path."""
    return own["ended"] == "status 0" and not own.get("wrong")


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


def commit() -> str:
    """Return the commit of the tree, with a plus sign if files differ from it."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--dirty=+"]
    return subprocess.check_output(words, text=True).strip()


def summary(done: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is written of an arm: how many cases and tests passed, and all that is worse."""

    def name(one: Mapping[str, Any]) -> str:
        return " ".join(one["key"][1:])

    passed = [one for one in done if passes(one["own"])]
    return {
        "cases": len(done),
        "by suite": dict(Counter(f"{one['key'][1]} {one['key'][2]}" for one in done)),
        "pass over the library's own path": len(passed),
        "of them pass": sum(not (one["worse"] or "exception" in one) for one in passed),
        "tests run": sum(one["ours"].get("ran", 0) for one in done),
        "not passing by itself": sorted(name(one) for one in done if one not in passed),
        "exceptions": {name(one): one["exception"] for one in done if "exception" in one},
        "worse": {name(one): one["worse"] for one in done if one["worse"]},
    }


def keys(arm: Arm, asked: Sequence[Case]) -> list[Key]:
    """Return all that is to be run over an arm."""
    return [
        (arm.name, library, case.suite, case.name)
        for library in arm.libraries
        for case in asked
        if library in case.argv and case.ranks <= arm.most
    ]


def main() -> int:
    """Run what has not been run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--arm", choices=sorted(ARMS), action="append", help="which way; all by default")
    parser.add_argument("--library", action="append", help="which MPI; all of the arm by default")
    parser.add_argument("--only", action="append", help="cases whose suite and name have this in it")
    parser.add_argument("--sample", action="store_true", help="what is run on every change")
    parser.add_argument("--osu", type=Path, help="the sources of the OSU benchmarks, 7.0 or later")
    parser.add_argument("--imb", type=Path, help="the sources of the Intel MPI Benchmarks, 2021 or later")
    parser.add_argument("--mpich", type=Path, help="the folder test/mpi of MPICH's sources")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no case after so long")
    options = parser.parse_args()
    last = time.monotonic() + 60 * options.minutes
    here = commit()
    owns, log = Log(BUILD / "own.jsonl"), Log(BUILD / f"{here}.jsonl")
    asked = list(cases(sample=options.sample, osu=options.osu, imb=options.imb, mpich=options.mpich))
    for name in options.arm or ARMS:
        arm = ARMS[name]
        for library in options.library or arm.libraries:
            of = {(case.suite, case.name): case for case in asked}
            left = [
                (key, of[key[2:]])
                for key in keys(arm, asked)
                if key[1] == library
                and key not in log.found
                and any(word in " ".join(key[2:]) for word in options.only or [""])
            ]
            if not left or time.monotonic() > last:
                continue
            with arm.open(library, LIMIT_S) as (own_way, our_way):
                for key, case in left:
                    if time.monotonic() > last:
                        break
                    if key not in owns.found:
                        owns.keep(key, outcome(case, library, own_way))
                    own, ours = owns.found[key], outcome(case, library, our_way)
                    for _ in range(AGAIN):
                        # One that passes now and then does not pass by itself.
                        if worse(own, ours) and passes(own):
                            own = outcome(case, library, own_way)
                            owns.keep(key, own)
                    found = {"own": own, "ours": ours, "worse": worse(own, ours)}
                    if cause := EXCEPTIONS.get(" ".join(key)):
                        wrong = [] if found["worse"] else ["passes, and is listed as an exception"]
                        found |= {"worse": wrong, "exception": cause}
                    log.keep(key, found)
                    words = "; ".join(found["worse"]) or f"as by itself ({own['ended']})"
                    print(f"{' '.join(key)}: {words}", flush=True)
    by_arm: dict[str, list[dict[str, Any]]] = {}
    for key, one in log.found.items():
        by_arm.setdefault(key[0], []).append(one)
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": here,
        "arms": {
            name: summary(found) | {"not run yet": len(keys(ARMS[name], asked)) - len(found)}
            for name, found in sorted(by_arm.items())
        },
    }
    if not (options.sample or options.only):
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results["arms"], indent=1))
    return any(one["worse"] for one in log.found.values())


if __name__ == "__main__":
    sys.exit(main())
