"""Uneven tasks handed out one at a time: a master, workers that ask for more, and tags that tell.

A task is to count the primes of an interval by a sieve; later intervals are longer. The master sends
the next interval to whichever worker answers first. On one rank the master works alone.
"""

import argparse
import math
import sys
from itertools import pairwise

import numpy as np
from mpi4py import MPI

WORK, STOP, RESULT = 1, 2, 3


def count_primes(first, last):
    """Count the primes p with first <= p < last, by a sieve of the interval."""
    flags = np.ones(last - first, dtype=bool)
    flags[: max(0, 2 - first)] = False
    small = np.ones(math.isqrt(last) + 1, dtype=bool)
    for p in range(2, small.size):
        if small[p]:
            small[p * p :: p] = False
            begin = max(p * p, -(-first // p) * p)
            flags[begin - first :: p] = False
    return int(np.count_nonzero(flags))


def master(comm, tasks):
    """Hand out the tasks; returns the sum of the results and how many each worker did."""
    status = MPI.Status()
    done = [0] * comm.size
    total = 0
    waiting = list(tasks)[::-1]
    busy = 0
    for worker in range(1, comm.size):
        if waiting:
            comm.send(waiting.pop(), dest=worker, tag=WORK)
            busy += 1
        else:
            comm.send(None, dest=worker, tag=STOP)
    while busy:
        total += comm.recv(source=MPI.ANY_SOURCE, tag=RESULT, status=status)
        worker = status.Get_source()
        done[worker] += 1
        if waiting:
            comm.send(waiting.pop(), dest=worker, tag=WORK)
        else:
            comm.send(None, dest=worker, tag=STOP)
            busy -= 1
    return total, done


def work(comm):
    """Do tasks until there are no more."""
    status = MPI.Status()
    while True:
        task = comm.recv(source=0, tag=MPI.ANY_TAG, status=status)
        if status.Get_tag() == STOP:
            return
        comm.send(count_primes(*task), dest=0, tag=RESULT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, default=100_000_000, help="count the primes below this")
    parser.add_argument("--tasks", type=int, default=100, help="how many intervals")
    args = parser.parse_args()

    comm = MPI.COMM_WORLD
    # Interval k has a length that grows with k: uneven on purpose.
    ends = [args.limit * k * (k + 1) // (args.tasks * (args.tasks + 1)) for k in range(args.tasks + 1)]
    tasks = list(pairwise(ends))
    if comm.size == 1:
        total = sum(count_primes(*task) for task in tasks)
    elif comm.rank == 0:
        total, done = master(comm, tasks)
        assert sum(done) == len(tasks)
    else:
        work(comm)
        return 0

    # The number of primes below 10^k, and a bound for other limits (Rosser and Schoenfeld 1962).
    known = {10**5: 9592, 10**6: 78498, 10**7: 664579, 2 * 10**7: 1270607, 10**8: 5761455}
    x = args.limit
    low, high = (known[x], known[x]) if x in known else (x / math.log(x), 1.25506 * x / math.log(x))
    good = low <= total <= high
    print(
        f"master_worker: primes below {args.limit} in {args.tasks} tasks on {comm.size} ranks: {total}, "
        f"{'ok' if good else 'WRONG'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
