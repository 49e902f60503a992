"""Exchanges that ranks wait in, again and again: `exchanges.py KIND COUNT`, an mpi4py script.

echo: neighbours in pairs, there and back; ring: a token once round; barrier; halo: 1 KiB with both
neighbours; collectives: Bcast, Allreduce and Alltoall of 1 KiB.
"""

import sys

import numpy as np
from mpi4py import MPI

kind, count = sys.argv[1], int(sys.argv[2])
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
left, right = (rank - 1) % size, (rank + 1) % size
out, into = np.zeros(1024, dtype=np.uint8), np.zeros(1024, dtype=np.uint8)
many, all_of_them = (np.zeros((size, 1024 // size), dtype=np.uint8) for _ in range(2))


def echo() -> None:
    """Send 8 bytes to the other of a pair, and back; the last of an odd number has none."""
    if rank ^ 1 < size:
        for step in range(2):
            if step == rank % 2:
                comm.Send(out[:8], rank ^ 1)
            else:
                comm.Recv(into[:8], rank ^ 1)


def ring() -> None:
    """Pass 8 bytes once round."""
    if rank == 0:
        comm.Send(out[:8], right)
    comm.Recv(into[:8], left)
    if rank:
        comm.Send(out[:8], right)


def barrier() -> None:
    """Wait for all."""
    comm.Barrier()


def halo() -> None:
    """Exchange 1 KiB with either neighbour."""
    comm.Sendrecv(out, right, 0, into, left, 0)
    comm.Sendrecv(out, left, 1, into, right, 1)


def collectives() -> None:
    """One of each."""
    comm.Bcast(out)
    comm.Allreduce(out, into)
    comm.Alltoall(many, all_of_them)


exchange = {one.__name__: one for one in (echo, ring, barrier, halo, collectives)}[kind]
for _ in range(count):
    exchange()
