"""Sum of long vectors by hand: reduce-scatter and allgather around a ring, checked against Allreduce."""

import argparse
import sys

import numpy as np
from mpi4py import MPI


def ring_allreduce(comm, data, room):
    """Sum `data` over all ranks, in place; `room` holds one block."""
    ranks, rank = comm.size, comm.rank
    following, preceding = (rank + 1) % ranks, (rank - 1) % ranks
    bounds = [data.size * k // ranks for k in range(ranks + 1)]

    def block(index):
        index %= ranks
        return data[bounds[index] : bounds[index + 1]]

    for step in range(ranks - 1):
        into = block(rank - step - 1)
        got = room[: into.size]
        comm.Sendrecv(block(rank - step), dest=following, recvbuf=got, source=preceding)
        into += got
    for step in range(ranks - 1):
        comm.Sendrecv(block(rank + 1 - step), dest=following, recvbuf=block(rank - step), source=preceding)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=1_000_000, help="doubles in the vector")
    parser.add_argument("--repeat", type=int, default=120, help="how many sums")
    args = parser.parse_args()

    comm = MPI.COMM_WORLD
    start = np.arange(args.elements, dtype="d") % 1000 + comm.rank
    room = np.empty(args.elements // comm.size + 1)
    for _ in range(args.repeat):
        data = start.copy()
        ring_allreduce(comm, data, room)

    expected = np.empty_like(start)
    comm.Allreduce(start, expected, op=MPI.SUM)
    wrong = comm.allreduce(int(np.count_nonzero(data != expected)), op=MPI.SUM)
    if comm.rank == 0:
        print(
            f"ring_allreduce: {args.elements} doubles, {args.repeat} sums on {comm.size} ranks: "
            f"last {data[-1]:.1f}, {'ok' if wrong == 0 else f'WRONG in {wrong} places'}"
        )
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
