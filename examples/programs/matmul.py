"""Product of two dense matrices: rows of A stay, blocks of B go round a ring of ranks.

Rank 0 makes both matrices, scatters blocks of rows, every rank multiplies its rows of A with one
block of B after the other while the next block is on its way, and the product is gathered and
checked by Freivalds' method (a product with a random vector, which a wrong matrix fails).
"""

import argparse
import sys

import numpy as np
from mpi4py import MPI


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of the matrices")
    parser.add_argument("--repeat", type=int, default=8, help="how many products")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    comm = MPI.COMM_WORLD
    n, ranks, rank = args.size, comm.size, comm.rank
    counts = [n // ranks + (r < n % ranks) for r in range(ranks)]
    starts = np.concatenate([[0], np.cumsum(counts)])
    rows = counts[rank]
    following, preceding = (rank + 1) % ranks, (rank - 1) % ranks

    a = b = None
    if rank == 0:
        rng = np.random.default_rng(args.seed)
        a, b = rng.random((n, n)), rng.random((n, n))
    elements = [count * n for count in counts]
    my_a = np.empty((rows, n))
    comm.Scatterv([a, elements] if rank == 0 else None, my_a, root=0)

    good = True
    for turn in range(args.repeat):
        held = np.empty((max(counts), n))
        comm.Scatterv([b, elements] if rank == 0 else None, held[:rows], root=0)
        arriving = np.empty_like(held)
        my_c = np.zeros((rows, n))
        for step in range(ranks):
            owner = (rank - step) % ranks
            requests = []
            if step < ranks - 1:
                before = counts[(owner - 1) % ranks]
                requests.append(comm.Irecv(arriving[:before], source=preceding, tag=step))
                requests.append(comm.Isend(held[: counts[owner]], dest=following, tag=step))
            my_c += my_a[:, starts[owner] : starts[owner + 1]] @ held[: counts[owner]]
            MPI.Request.Waitall(requests)
            held, arriving = arriving, held
        c = np.empty((n, n)) if rank == 0 else None
        comm.Gatherv(my_c, [c, elements] if rank == 0 else None, root=0)
        if rank == 0:
            probe = np.random.default_rng(args.seed + 1 + turn).random(n)
            good = good and np.allclose(c @ probe, a @ (b @ probe))
    good = comm.bcast(good, root=0)
    if rank == 0:
        trace = float(np.trace(c))
        print(
            f"matmul: {n} x {n}, {args.repeat} products on {ranks} ranks: trace {trace:.6f}, "
            f"{'ok' if good else 'WRONG'}"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
