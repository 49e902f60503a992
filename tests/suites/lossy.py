"""Many bytes over the direct transport between two hosts whose network loses, repeats and reorders frames.

    python tests/suites/lossy.py --bytes 1e10

The wire of the testbed loses 1 % of the frames, sends 0.5 % twice and has 0.5 % overtaken by the next. Each
rank sends so many bytes, in messages of 0 to 100 kB; digests of what was sent and of what came are compared.
Prints one line of JSON for each MPI; ends with 1 if a digest differs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from wiretwin import process
from wiretwin.stacks.layers import parse_layers, refusal
from wiretwin.stacks.mpi import MpiSession
from wiretwin.testbed import Link, Testbed, parse_link

RANK = Path(__file__).with_name("lossy_rank.py")
RULES = {"loss": "1%", "duplicate": "0.5%", "reorder": "0.5%"}


def link() -> Link:
    """Return the wire that loses, repeats and reorders."""
    return parse_link("wire", rate="1Gbit", delay="5us", rules=RULES)


def exchange(library: str, bed: Testbed, wanted: float, limit_s: float) -> dict[str, Any]:
    """Exchange so many bytes each way over an MPI; return what rank 0 says and what the wire did.

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
        argv = [*session.launcher, "-np", "2", sys.executable, str(RANK), str(wanted)]
        try:
            done = process.run(bed.hosts[0].command(argv, env=session.env), limit_s=limit_s)
        except process.TimeLimit as late:
            raise RuntimeError(f"{library}: {late}: {late.finished.last_words()}") from late
    if done.returncode != 0:
        raise RuntimeError(f"{library}: {process.ending(done.returncode)}: {done.last_words()}")
    return {"library": library, **json.loads(done.stdout.splitlines()[-1])}


def main() -> int:
    """Exchange, and say what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bytes", type=float, default=1e10, help="what each rank sends")
    parser.add_argument("--library", action="append", choices=["openmpi", "mpich"])
    parser.add_argument("--limit", type=float, default=7200.0, help="for each MPI, in seconds")
    options = parser.parse_args()
    equal = True
    for library in options.library or ["openmpi", "mpich"]:
        with Testbed.up(2, link(), name=f"lossy-{os.getpid()}") as bed:
            found = exchange(library, bed, options.bytes, options.limit)
        print(json.dumps(found), flush=True)
        equal = equal and all(found["equal"])
    return not equal


if __name__ == "__main__":
    sys.exit(main())
