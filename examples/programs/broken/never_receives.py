"""Rank 0 sends two messages with tag 7; rank 1 receives one, and then waits for tag 8."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 0:
    comm.send("first", dest=1, tag=7)
    comm.send("second", dest=1, tag=7)
elif comm.rank == 1:
    comm.recv(source=0, tag=7)
    comm.recv(source=0, tag=8)
