"""Sends to a rank that does not exist."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 0:
    comm.Send(np.zeros(4), dest=comm.size)
comm.Barrier()
