"""Rank 1 divides by zero while rank 0 waits for it."""

from mpi4py import MPI


def divide(value):
    return value / 0


comm = MPI.COMM_WORLD
if comm.rank == 1:
    divide(1)
else:
    comm.recv(source=1)
