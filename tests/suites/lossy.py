"""Many bytes over the direct transport between two hosts whose network loses, repeats and reorders frames.

    python tests/suites/lossy.py --bytes 1e10

The wire of the testbed loses 1 % of the frames, sends 0.5 % twice and has 0.5 % overtaken by the next. Each
rank sends half of so many bytes, in messages of 0 to 100 kB; digests of what was sent and of what came are
compared. It takes turns of 10^9 bytes, each with ranks and bytes of its own, and keeps each as it ends in
``build/suites/lossy-COMMIT.jsonl``, so that the same command goes on where it was ended. At the end
``tests/suites/lossy.json`` says what was found, with date and commit. Ends with 1 if a digest differs.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wiretwin import process
from wiretwin.stacks.layers import parse_layers, refusal
from wiretwin.stacks.mpi import MpiSession
from wiretwin.testbed import Link, Testbed, parse_link

ROOT = Path(__file__).resolve().parents[2]
RANK = Path(__file__).with_name("lossy_rank.py")
RESULTS = Path(__file__).with_name("lossy.json")
TURN = 1_000_000_000
"""Bytes of a turn, both ways together."""
RULES = {"loss": "1%", "duplicate": "0.5%", "reorder": "0.5%"}


def link() -> Link:
    """Return the wire that loses, repeats and reorders."""
    return parse_link("wire", rate="1Gbit", delay="5us", rules=RULES)


def exchange(library: str, bed: Testbed, wanted: float, limit_s: float, seed: int = 0) -> dict[str, Any]:
    """Exchange `wanted` bytes each way over an MPI; return what rank 0 printed, and the name of the MPI.

    Raises
    ------
    RuntimeError
        The ranks do not come to their end, with their last words.
    """
    (configuration,) = parse_layers(f"mpi4py/{library}+direct")
    if (refused := refusal(configuration, bed)) or configuration.kind.stack is None:
        raise RuntimeError(f"{library}: {refused}")
    with configuration.kind.stack.up(bed, configuration.options) as session:
        assert isinstance(session, MpiSession)
        argv = [*session.launcher, "-np", "2", sys.executable, str(RANK), str(wanted), str(seed)]
        try:
            done = process.run(bed.hosts[0].command(argv, env=session.env), limit_s=limit_s)
        except process.TimeLimit as late:
            raise RuntimeError(f"{library}: {late}: {late.finished.last_words()}") from late
    if done.returncode != 0:
        raise RuntimeError(f"{library}: {process.ending(done.returncode)}: {done.last_words()}")
    return {"library": library, **json.loads(done.stdout.splitlines()[-1])}


def commit() -> str:
    """Return the commit of the tree, with a plus sign if files differ from it."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--dirty=+"]
    return subprocess.check_output(words, text=True).strip()


def together(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the turns of an MPI come to."""
    return {
        "bytes": 2 * sum(one["bytes"] for one in turns),
        "messages": 2 * sum(one["messages"] for one in turns),
        "took_s": round(sum(one["took_s"] for one in turns), 1),
        "turns": len(turns),
        "turns with equal digests": sum(all(one["equal"]) for one in turns),
    }


def main() -> int:
    """Exchange what has not been, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bytes", type=float, default=1e10, help="what both ranks send together")
    parser.add_argument("--library", action="append", choices=["openmpi", "mpich"])
    parser.add_argument("--limit", type=float, default=1200.0, help="for each turn, in seconds")
    options = parser.parse_args()
    here = commit()
    log = ROOT / "build" / "suites" / f"lossy-{here}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for library in options.library or ["openmpi", "mpich"]:
        with Testbed.up(2, link(), name=f"lossy-{os.getpid()}") as bed:
            own = [one for one in done if one["library"] == library]
            while together(own)["bytes"] < options.bytes:
                own.append(exchange(library, bed, TURN / 2, options.limit, seed=len(own)))
                done.append(own[-1])
                with log.open("a") as file:
                    file.write(json.dumps(own[-1]) + "\n")
                print(json.dumps({"library": library, **together(own)}), flush=True)
    libraries = sorted({one["library"] for one in done})
    found = {name: together([one for one in done if one["library"] == name]) for name in libraries}
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": here,
        "rules": RULES,
        "libraries": found,
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return not all(all(one["equal"]) for one in done)


if __name__ == "__main__":
    sys.exit(main())
