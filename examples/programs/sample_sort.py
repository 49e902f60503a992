"""Parallel sort by regular sampling: local sort, splitters from samples, one Alltoallv, merge.

Every rank draws its own keys from a seeded generator. Afterwards rank r holds the r-th part of the
sorted sequence; the program checks order within ranks, order across ranks, and that no key was lost
(by count and by sum).
"""

import argparse
import sys
from itertools import pairwise

import numpy as np
from mpi4py import MPI


def sample_sort(comm, keys):
    """Return this rank's part of the sorted keys of all ranks."""
    ranks = comm.size
    keys = np.sort(keys)
    if ranks == 1:
        return keys
    picks = keys[(np.arange(1, ranks) * keys.size) // ranks]
    samples = np.empty(ranks * (ranks - 1), dtype=keys.dtype)
    comm.Allgather(picks, samples)
    samples.sort()
    splitters = samples[np.arange(1, ranks) * (ranks - 1)]

    cuts = np.concatenate([[0], np.searchsorted(keys, splitters, side="right"), [keys.size]])
    send_counts = np.diff(cuts).astype("i")
    receive_counts = np.empty(ranks, dtype="i")
    comm.Alltoall(send_counts, receive_counts)
    starts = np.concatenate([[0], np.cumsum(receive_counts)[:-1]])
    mine = np.empty(int(receive_counts.sum()), dtype=keys.dtype)
    comm.Alltoallv(
        [keys, (send_counts, cuts[:-1]), MPI.INT64_T], [mine, (receive_counts, starts), MPI.INT64_T]
    )
    mine.sort(kind="stable")  # a merge of the runs received
    return mine


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=2_000_000, help="keys of each rank")
    parser.add_argument("--repeat", type=int, default=5, help="how many sorts")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    comm = MPI.COMM_WORLD
    good = True
    for turn in range(args.repeat):
        rng = np.random.default_rng([args.seed, turn, comm.rank])
        keys = rng.integers(0, 1 << 40, args.keys)
        mine = sample_sort(comm, keys)

        good = good and bool(np.all(mine[:-1] <= mine[1:]))
        ends = comm.allgather((int(mine[0]), int(mine[-1])) if mine.size else None)
        ends = [pair for pair in ends if pair is not None]
        good = good and all(left[1] <= right[0] for left, right in pairwise(ends))
        before, after = np.empty(2, dtype="i8"), np.empty(2, dtype="i8")
        comm.Allreduce(np.array([keys.size, keys.sum()]), before)
        comm.Allreduce(np.array([mine.size, mine.sum()]), after)
        good = good and bool(np.array_equal(before, after))
    good = comm.allreduce(good, op=MPI.LAND)
    if comm.rank == 0:
        print(
            f"sample_sort: {args.keys} keys on each of {comm.size} ranks, {args.repeat} sorts: "
            f"first {ends[0][0]}, last {ends[-1][1]}, {'ok' if good else 'WRONG'}"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
