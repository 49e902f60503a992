/* Included by trace.c once for each kind of count: NAMED and REAL make a function's names, NUMBER is the type of a count
 * and PLACE that of a displacement.
 */

#define SENDS(call, own_mode)                                                                                         \
    int NAMED(call)(const void *buffer, NUMBER count, MPI_Datatype type, int to, int tag, MPI_Comm comm)              \
    {                                                                                                                 \
        int number = context(comm), is_own = begin(), result = REAL(call)(buffer, count, type, to, tag, comm);        \
        if (to == MPI_PROC_NULL) {                                                                                    \
            end(is_own, (struct record){.kind = WAIT});                                                               \
            return result;                                                                                            \
        }                                                                                                             \
        end(is_own, (struct record){.kind = SEND, .peer = to, .tag = tag, .context = number,                          \
                                    .bytes = bytes_of(count, type), .request = own_mode});                            \
        return result;                                                                                                \
    }
SENDS(Send, STANDARD)
SENDS(Ssend, SYNCHRONOUS)
SENDS(Rsend, READY)
SENDS(Bsend, BUFFERED)
#undef SENDS

/* The number of a request, four times, and the mode. */
#define STARTS(call, own_mode)                                                                                        \
    int NAMED(call)(const void *buffer, NUMBER count, MPI_Datatype type, int to, int tag, MPI_Comm comm,              \
                    MPI_Request *request)                                                                             \
    {                                                                                                                 \
        struct record record = {.kind = ISEND, .peer = to, .tag = tag, .context = context(comm)};                     \
        int is_own = begin(), result = REAL(call)(buffer, count, type, to, tag, comm, request);                       \
        if (is_own && to != MPI_PROC_NULL) {                                                                          \
            record.bytes = bytes_of(count, type);                                                                     \
            record.request = ++numbers * 4 + own_mode;                                                                \
            remember(*request, record);                                                                               \
        } else {                                                                                                      \
            record.kind = WAIT;                                                                                       \
        }                                                                                                             \
        end(is_own, record);                                                                                          \
        return result;                                                                                                \
    }
STARTS(Isend, STANDARD)
STARTS(Issend, SYNCHRONOUS)
STARTS(Irsend, READY)
STARTS(Ibsend, BUFFERED)
#undef STARTS

static struct record NAMED(received_)(const MPI_Status *status, int number)
{
    if (status->MPI_SOURCE == MPI_PROC_NULL)
        return (struct record){.kind = WAIT};
    struct record record = found(status, number);
    record.kind = RECV;
    return record;
}

int NAMED(Recv)(void *buffer, NUMBER count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    int number = context(comm), is_own = begin();
    int result = REAL(Recv)(buffer, count, type, source, tag, comm, status);
    end(is_own, NAMED(received_)(status, number));
    return result;
}

int NAMED(Irecv)(void *buffer, NUMBER count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                 MPI_Request *request)
{
    struct record record = {.kind = IRECV, .peer = source, .tag = tag, .context = context(comm)};
    int is_own = begin(), result = REAL(Irecv)(buffer, count, type, source, tag, comm, request);
    if (is_own && source != MPI_PROC_NULL) {
        record.bytes = bytes_of(count, type);
        record.request = ++numbers * 4;
        remember(*request, record);
    } else {
        record.kind = WAIT;
    }
    end(is_own, record);
    return result;
}

int NAMED(Mrecv)(void *buffer, NUMBER count, MPI_Datatype type, MPI_Message *message, MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    int is_own = begin(), result = REAL(Mrecv)(buffer, count, type, message, status);
    /* Which communicator it came on is known from its probe. */
    end(is_own, NAMED(received_)(status, -1));
    return result;
}

/* Sent and received at once: noted as a send and a receive that were begun and waited for. */
static void NAMED(both_)(int is_own, int number, int to, int send_tag, uint64_t bytes, const MPI_Status *status)
{
    if (!is_own || file < 0) {
        depth--;
        return;
    }
    uint64_t computed_ns = owed_ns, send = ++numbers * 4, receive = ++numbers * 4;
    struct record sent = {ISEND, to, send_tag, number, bytes, send, computed_ns, 0}, got = found(status, number);
    int has_sent = to != MPI_PROC_NULL, has_got = status->MPI_SOURCE != MPI_PROC_NULL;
    got.kind = IRECV;
    got.request = receive;
    got.compute_ns = computed_ns;
    sent.compute_ns = has_got ? 0 : computed_ns;
    if (has_got)
        note(got);
    if (has_sent)
        note(sent);
    got.kind = sent.kind = DONE;
    got.compute_ns = sent.compute_ns = 0;
    if (has_sent)
        note(sent);
    if (has_got)
        note(got);
    owed_ns = has_sent || has_got ? 0 : computed_ns;
    end(1, (struct record){.kind = WAIT});
}

int NAMED(Sendrecv)(const void *from, NUMBER send_count, MPI_Datatype send_type, int to, int send_tag, void *into,
                    NUMBER receive_count, MPI_Datatype receive_type, int source, int receive_tag, MPI_Comm comm,
                    MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    int number = context(comm), is_own = begin();
    int result = REAL(Sendrecv)(from, send_count, send_type, to, send_tag, into, receive_count, receive_type, source,
                                receive_tag, comm, status);
    NAMED(both_)(is_own, number, to, send_tag, bytes_of(send_count, send_type), status);
    return result;
}

int NAMED(Sendrecv_replace)(void *buffer, NUMBER count, MPI_Datatype type, int to, int send_tag, int source,
                            int receive_tag, MPI_Comm comm, MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    int number = context(comm), is_own = begin();
    int result =
        REAL(Sendrecv_replace)(buffer, count, type, to, send_tag, source, receive_tag, comm, status);
    NAMED(both_)(is_own, number, to, send_tag, bytes_of(count, type), status);
    return result;
}

/* Collectives: `what`, the root, bytes (of the message, or of a block), and bytes of an element. */
#define MET(what, root, all_bytes, unit)                                                                              \
    end(is_own, (struct record){.kind = COLLECTIVE, .peer = root, .tag = what, .context = number,                     \
                                .bytes = all_bytes, .request = unit});                                                \
    return result

int NAMED(Bcast)(void *buffer, NUMBER count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int number = context(comm), is_own = begin(), result = REAL(Bcast)(buffer, count, type, root, comm);
    MET(BCAST, root, bytes_of(count, type), 1);
}

int NAMED(Reduce)(const void *from, void *into, NUMBER count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    int number = context(comm), is_own = begin(), result = REAL(Reduce)(from, into, count, type, op, root, comm);
    MET(REDUCE, root, bytes_of(count, type), bytes_of(1, type));
}

#define COMBINES(call, what)                                                                                          \
    int NAMED(call)(const void *from, void *into, NUMBER count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)          \
    {                                                                                                                 \
        int number = context(comm), is_own = begin(), result = REAL(call)(from, into, count, type, op, comm);         \
        MET(what, 0, bytes_of(count, type), bytes_of(1, type));                                                       \
    }
COMBINES(Allreduce, ALLREDUCE)
COMBINES(Scan, SCAN)
COMBINES(Exscan, EXSCAN)
COMBINES(Reduce_scatter_block, REDUCE_SCATTER)
#undef COMBINES

/* One's own block may lie in place; then the other count says how long it is. */
#define ONE(in_place, send_count, send_type, receive_count, receive_type)                                             \
    ((in_place) ? bytes_of(receive_count, receive_type) : bytes_of(send_count, send_type))

int NAMED(Gather)(const void *from, NUMBER send_count, MPI_Datatype send_type, void *into, NUMBER receive_count,
                  MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    int number = context(comm), is_own = begin();
    int result = REAL(Gather)(from, send_count, send_type, into, receive_count, receive_type, root, comm);
    MET(GATHER, root, ONE(from == MPI_IN_PLACE, send_count, send_type, receive_count, receive_type), 1);
}

int NAMED(Scatter)(const void *from, NUMBER send_count, MPI_Datatype send_type, void *into, NUMBER receive_count,
                   MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    int number = context(comm), is_own = begin();
    int result = REAL(Scatter)(from, send_count, send_type, into, receive_count, receive_type, root, comm);
    MET(SCATTER, root, ONE(into != MPI_IN_PLACE, send_count, send_type, receive_count, receive_type), 1);
}

#define ALL_TO_ALL(call, what)                                                                                        \
    int NAMED(call)(const void *from, NUMBER send_count, MPI_Datatype send_type, void *into, NUMBER receive_count,    \
                    MPI_Datatype receive_type, MPI_Comm comm)                                                         \
    {                                                                                                                 \
        int number = context(comm), is_own = begin();                                                                 \
        int result = REAL(call)(from, send_count, send_type, into, receive_count, receive_type, comm);                \
        MET(what, 0, ONE(from == MPI_IN_PLACE, send_count, send_type, receive_count, receive_type), 1);               \
    }
ALL_TO_ALL(Allgather, ALLGATHER)
ALL_TO_ALL(Alltoall, ALLTOALL)
#undef ALL_TO_ALL

/* Blocks of a length for each rank: noted before the collective, with the bytes sent and received. */

static int NAMED(size_)(MPI_Comm comm)
{
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

int NAMED(Gatherv)(const void *from, NUMBER send_count, MPI_Datatype send_type, void *into, const NUMBER counts[],
                   const PLACE places[], MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    int number = context(comm), is_own = begin(), me;
    int result = REAL(Gatherv)(from, send_count, send_type, into, counts, places, receive_type, root, comm);
    PMPI_Comm_rank(comm, &me);
    for (int rank = 0; is_own && me == root && rank < NAMED(size_)(comm); rank++)
        note_count(rank, bytes_of(counts[rank], receive_type), 0);
    MET(GATHER, root, 0, 1);
}

int NAMED(Scatterv)(const void *from, const NUMBER counts[], const PLACE places[], MPI_Datatype send_type, void *into,
                    NUMBER receive_count, MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    int number = context(comm), is_own = begin(), me;
    int result = REAL(Scatterv)(from, counts, places, send_type, into, receive_count, receive_type, root, comm);
    PMPI_Comm_rank(comm, &me);
    for (int rank = 0; is_own && me == root && rank < NAMED(size_)(comm); rank++)
        note_count(rank, bytes_of(counts[rank], send_type), 0);
    MET(SCATTER, root, 0, 1);
}

int NAMED(Allgatherv)(const void *from, NUMBER send_count, MPI_Datatype send_type, void *into, const NUMBER counts[],
                      const PLACE places[], MPI_Datatype receive_type, MPI_Comm comm)
{
    int number = context(comm), is_own = begin();
    int result = REAL(Allgatherv)(from, send_count, send_type, into, counts, places, receive_type, comm);
    for (int rank = 0; is_own && rank < NAMED(size_)(comm); rank++)
        note_count(rank, bytes_of(counts[rank], receive_type), 0);
    MET(ALLGATHER, 0, 0, 1);
}

int NAMED(Reduce_scatter)(const void *from, void *into, const NUMBER counts[], MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm)
{
    int number = context(comm), is_own = begin();
    int result = REAL(Reduce_scatter)(from, into, counts, type, op, comm);
    for (int rank = 0; is_own && rank < NAMED(size_)(comm); rank++)
        note_count(rank, bytes_of(counts[rank], type), 0);
    MET(REDUCE_SCATTER, 0, 0, bytes_of(1, type));
}

int NAMED(Alltoallv)(const void *from, const NUMBER send_counts[], const PLACE send_places[], MPI_Datatype send_type,
                     void *into, const NUMBER receive_counts[], const PLACE receive_places[],
                     MPI_Datatype receive_type, MPI_Comm comm)
{
    int number = context(comm), is_own = begin();
    int result = REAL(Alltoallv)(from, send_counts, send_places, send_type, into, receive_counts, receive_places,
                                 receive_type, comm);
    for (int rank = 0; is_own && rank < NAMED(size_)(comm); rank++) {
        uint64_t received = bytes_of(receive_counts[rank], receive_type);
        note_count(rank, from == MPI_IN_PLACE ? received : bytes_of(send_counts[rank], send_type), received);
    }
    MET(ALLTOALL, 0, 0, 1);
}
#undef MET
#undef ONE
