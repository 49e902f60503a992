"""A program whose calls are of every kind that is recorded, and what records it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from wiretwin import trace

MPICC = Path(sys.executable).parent / "mpicc"
HEAD = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define WORLD MPI_COMM_WORLD
int main(int argc, char **argv) {
    int rank, size, got = -1, flag = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Status status;
    char *bytes = calloc(1, 1 << 20);
"""
TAIL = "    MPI_Finalize();\n    return 0;\n}\n"
NOTHING = ("--twin", "nothing", "--network", "star:rate=10Gbit/s,delay=1us")


def compiled(body: str, by: str | Path = MPICC) -> Path:
    """Compile what stands between Init and Finalize."""
    Path("program.c").write_text(HEAD + body + TAIL)
    subprocess.run([by, "-O1", "program.c", "-o", "program"], check=True, timeout=60)
    return Path("program").absolute()


def recorded(body: str, ranks: int) -> trace.Trace:
    return trace.record(compiled(body), ranks=ranks, out="recorded")


MIXED = """
    MPI_Request both[2];
    MPI_Irecv(bytes, 100, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &both[0]);
    MPI_Isend(bytes + 4096, 25, MPI_INT, right, 3, WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    /* That receive would take any of the messages to come. */
    MPI_Barrier(WORLD);
    MPI_Sendrecv(bytes, 1 << 18, MPI_CHAR, right, 1,
                 bytes + (1 << 19), 1 << 18, MPI_CHAR, left, 1, WORLD, &status);
    if (rank == 0)
        for (int from = 1; from < size; from++) {
            MPI_Probe(MPI_ANY_SOURCE, 9, WORLD, &status);
            MPI_Recv(bytes, 8, MPI_CHAR, status.MPI_SOURCE, 9, WORLD, &status);
        }
    else
        MPI_Send(bytes, 8, MPI_CHAR, 0, 9, WORLD);
    MPI_Issend(bytes, 7, MPI_CHAR, right, 4, WORLD, &both[0]);
    MPI_Message message;
    MPI_Mprobe(left, 4, WORLD, &message, &status);
    MPI_Mrecv(bytes + 64, 7, MPI_CHAR, &message, &status);
    for (flag = 0; !flag;)
        MPI_Test(&both[0], &flag, &status);
    MPI_Recv(bytes, 1, MPI_CHAR, MPI_PROC_NULL, 0, WORLD, &status);
    MPI_Comm half;
    MPI_Comm_split(WORLD, rank % 2, rank, &half);
    MPI_Bcast(bytes, 1000, MPI_CHAR, 1, half);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
    MPI_Allreduce(MPI_IN_PLACE, bytes, 100, MPI_DOUBLE, MPI_SUM, WORLD);
    int counts[64], at[64];
    for (int one = 0; one < size; one++) {
        counts[one] = one + 1;
        at[one] = 64 * one;
    }
    MPI_Allgatherv(bytes, rank + 1, MPI_INT, bytes + 65536, counts, at, MPI_INT, WORLD);
    MPI_Gatherv(bytes, rank + 1, MPI_INT, bytes + 65536, counts, at, MPI_INT, 1, WORLD);
    for (int one = 0; one < size; one++)
        counts[one] = 1 + (one + rank) % 3;
    MPI_Alltoallv(bytes, counts, at, MPI_INT, bytes + 65536, counts, at, MPI_INT, WORLD);
"""
