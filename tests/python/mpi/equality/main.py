"""Every supported call, as a program that prints what it got: run by real MPI and simulated.

`python main.py` under a launcher prints, at rank 0, the lines of every case by rank as JSON.
"""

import json
import sys
import traceback

import buffers
import collectives
import communicators
import messages
from common import CASES
from mpi4py import MPI

SECTIONS = (messages, buffers, collectives, communicators)


def main():
    comm = MPI.COMM_WORLD
    wanted = sys.argv[1:] or sorted(CASES)
    results = {}
    for name in wanted:
        lines = []

        def say(*values, lines=lines):
            lines.append(" ".join(str(value) for value in values))

        try:
            CASES[name](comm, say)
        except Exception:
            lines.append(traceback.format_exc())
            print(f"rank {comm.rank}: {name}\n{lines[-1]}", file=sys.stderr, flush=True)
            comm.Abort(1)
        results[name] = comm.gather(lines)
        comm.Barrier()
    if comm.rank == 0:
        print(json.dumps(results))


if __name__ == "__main__":
    main()
