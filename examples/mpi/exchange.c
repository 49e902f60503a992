/* Ranks in a ring exchange blocks of doubles, and agree on the sum: a small program of the usual kind. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, count = argc > 1 ? atoi(argv[1]) : 1000, rounds = 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *mine = calloc(count, sizeof *mine), *theirs = calloc(count, sizeof *theirs), sum = 0;
    mine[0] = rank;
    double began = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        MPI_Sendrecv(mine, count, MPI_DOUBLE, (rank + 1) % size, 0, theirs, count, MPI_DOUBLE,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(theirs, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    double took = MPI_Wtime() - began;
    if (rank == 0)
        printf("sum %g, %.3f us a round\n", sum, 1e6 * took / rounds);
    MPI_Finalize();
    return 0;
}
