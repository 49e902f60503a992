/* Included by trace_calls.h twice for each kind of count: NAME_OF and REAL_OF are of the functions that block, or of
 * those that begin the same AND_REQUEST, which AND_GIVEN hands on. MET ends them: `what`, the root, bytes (of the
 * message, or of a block), and bytes of an element.
 */

int NAME_OF(Bcast, Ibcast)(void *buffer, NUMBER count, MPI_Datatype type, int root, MPI_Comm comm AND_REQUEST)
{
    int number = context(comm), is_own = begin(), result = REAL_OF(Bcast, Ibcast)(buffer, count, type, root,
            comm AND_GIVEN);
    MET(BCAST, root, bytes_of(count, type), 1);
}

int NAME_OF(Reduce, Ireduce)(const void *from, void *into, NUMBER count, MPI_Datatype type, MPI_Op op, int root,
        MPI_Comm comm AND_REQUEST)
{
    int number = context(comm), is_own = begin(), result = REAL_OF(Reduce, Ireduce)(from, into, count, type, op,
            root, comm AND_GIVEN);
    MET(REDUCE, root, bytes_of(count, type), bytes_of(1, type));
}

#define COMBINES(blocking, other, what)                                                                               \
    int NAME_OF(blocking, other)(const void *from, void *into, NUMBER count, MPI_Datatype type, MPI_Op op,            \
            MPI_Comm comm AND_REQUEST)                                                                                \
    {                                                                                                                 \
        int number = context(comm), is_own = begin(), result = REAL_OF(blocking, other)(from, into, count, type,      \
                op, comm AND_GIVEN);                                                                                  \
        MET(what, 0, bytes_of(count, type), bytes_of(1, type));                                                       \
    }
COMBINES(Allreduce, Iallreduce, ALLREDUCE)
COMBINES(Scan, Iscan, SCAN)
COMBINES(Exscan, Iexscan, EXSCAN)
COMBINES(Reduce_scatter_block, Ireduce_scatter_block, REDUCE_SCATTER)
#undef COMBINES

/* One's own block may lie in place; then the other count says how long it is. */
#define ONE(in_place, send_count, send_type, receive_count, receive_type)                                             \
    ((in_place) ? bytes_of(receive_count, receive_type) : bytes_of(send_count, send_type))

int NAME_OF(Gather, Igather)(const void *from, NUMBER send_count, MPI_Datatype send_type, void *into,
        NUMBER receive_count,
                  MPI_Datatype receive_type, int root, MPI_Comm comm AND_REQUEST)
{
    int number = context(comm), is_own = begin();
    int result = REAL_OF(Gather, Igather)(from, send_count, send_type, into, receive_count, receive_type, root,
            comm AND_GIVEN);
    MET(GATHER, root, ONE(from == MPI_IN_PLACE, send_count, send_type, receive_count, receive_type), 1);
}

int NAME_OF(Scatter, Iscatter)(const void *from, NUMBER send_count, MPI_Datatype send_type, void *into,
        NUMBER receive_count,
                   MPI_Datatype receive_type, int root, MPI_Comm comm AND_REQUEST)
{
    int number = context(comm), is_own = begin();
    int result = REAL_OF(Scatter, Iscatter)(from, send_count, send_type, into, receive_count, receive_type,
            root, comm AND_GIVEN);
    MET(SCATTER, root, ONE(into != MPI_IN_PLACE, send_count, send_type, receive_count, receive_type), 1);
}

#define ALL_TO_ALL(blocking, other, what)                                                                             \
    int NAME_OF(blocking, other)(const void *from, NUMBER send_count, MPI_Datatype send_type, void *into,             \
            NUMBER receive_count,                                                                                     \
                    MPI_Datatype receive_type, MPI_Comm comm AND_REQUEST)                                             \
    {                                                                                                                 \
        int number = context(comm), is_own = begin();                                                                 \
        int result = REAL_OF(blocking, other)(from, send_count, send_type, into, receive_count, receive_type,         \
                comm AND_GIVEN);                                                                                      \
        MET(what, 0, ONE(from == MPI_IN_PLACE, send_count, send_type, receive_count, receive_type), 1);               \
    }
ALL_TO_ALL(Allgather, Iallgather, ALLGATHER)
ALL_TO_ALL(Alltoall, Ialltoall, ALLTOALL)
#undef ALL_TO_ALL

/* Blocks of a length for each rank: noted before the collective, with the bytes sent and received. */

int NAME_OF(Gatherv, Igatherv)(const void *from, NUMBER send_count, MPI_Datatype send_type, void *into,
        const NUMBER counts[],
                   const PLACE places[], MPI_Datatype receive_type, int root, MPI_Comm comm AND_REQUEST)
{
    int number = context(comm), is_own = begin(), me;
    int result = REAL_OF(Gatherv, Igatherv)(from, send_count, send_type, into, counts, places, receive_type,
            root, comm AND_GIVEN);
    PMPI_Comm_rank(comm, &me);
    for (int rank = 0; is_own && me == root && rank < size_of(comm); rank++)
        note_count(rank, bytes_of(counts[rank], receive_type), 0);
    MET(GATHER, root, 0, 1);
}

int NAME_OF(Scatterv, Iscatterv)(const void *from, const NUMBER counts[], const PLACE places[],
        MPI_Datatype send_type, void *into,
                    NUMBER receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm AND_REQUEST)
{
    int number = context(comm), is_own = begin(), me;
    int result = REAL_OF(Scatterv, Iscatterv)(from, counts, places, send_type, into, receive_count,
            receive_type, root, comm AND_GIVEN);
    PMPI_Comm_rank(comm, &me);
    for (int rank = 0; is_own && me == root && rank < size_of(comm); rank++)
        note_count(rank, bytes_of(counts[rank], send_type), 0);
    MET(SCATTER, root, 0, 1);
}

int NAME_OF(Allgatherv, Iallgatherv)(const void *from, NUMBER send_count, MPI_Datatype send_type, void *into,
        const NUMBER counts[],
                      const PLACE places[], MPI_Datatype receive_type, MPI_Comm comm AND_REQUEST)
{
    int number = context(comm), is_own = begin();
    int result = REAL_OF(Allgatherv, Iallgatherv)(from, send_count, send_type, into, counts, places,
            receive_type, comm AND_GIVEN);
    for (int rank = 0; is_own && rank < size_of(comm); rank++)
        note_count(rank, bytes_of(counts[rank], receive_type), 0);
    MET(ALLGATHER, 0, 0, 1);
}

int NAME_OF(Reduce_scatter, Ireduce_scatter)(const void *from, void *into, const NUMBER counts[],
        MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm AND_REQUEST)
{
    int number = context(comm), is_own = begin();
    int result = REAL_OF(Reduce_scatter, Ireduce_scatter)(from, into, counts, type, op, comm AND_GIVEN);
    for (int rank = 0; is_own && rank < size_of(comm); rank++)
        note_count(rank, bytes_of(counts[rank], type), 0);
    MET(REDUCE_SCATTER, 0, 0, bytes_of(1, type));
}

int NAME_OF(Alltoallv, Ialltoallv)(const void *from, const NUMBER send_counts[], const PLACE send_places[],
        MPI_Datatype send_type,
                     void *into, const NUMBER receive_counts[], const PLACE receive_places[],
                     MPI_Datatype receive_type, MPI_Comm comm AND_REQUEST)
{
    int number = context(comm), is_own = begin();
    int result = REAL_OF(Alltoallv, Ialltoallv)(from, send_counts, send_places, send_type, into, receive_counts,
            receive_places,
                                 receive_type, comm AND_GIVEN);
    for (int rank = 0; is_own && rank < size_of(comm); rank++) {
        uint64_t received = bytes_of(receive_counts[rank], receive_type);
        note_count(rank, from == MPI_IN_PLACE ? received : bytes_of(send_counts[rank], send_type), received);
    }
    MET(ALLTOALL, 0, 0, 1);
}
#undef ONE
