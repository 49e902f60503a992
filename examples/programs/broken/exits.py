"""Rank 1 leaves with status 3; the others end well."""

import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
comm.Barrier()
if comm.rank == 1:
    sys.exit(3)
