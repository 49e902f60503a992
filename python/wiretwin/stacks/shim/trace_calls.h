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

/* Collectives, those that block and those that do not. */
#define NAME_OF(blocking, other) NAMED(blocking)
#define REAL_OF(blocking, other) REAL(blocking)
#define AND_REQUEST
#define AND_GIVEN
#define MET(what, root, all_bytes, unit)                                                                              \
    end(is_own, (struct record){.kind = COLLECTIVE, .peer = root, .tag = what, .context = number,                     \
                                .bytes = all_bytes, .request = unit});                                                \
    return result
#include "trace_collectives.h"
#undef NAME_OF
#undef REAL_OF
#undef AND_REQUEST
#undef AND_GIVEN
#undef MET

#define NAME_OF(blocking, other) NAMED(other)
#define REAL_OF(blocking, other) REAL(other)
#define AND_REQUEST , MPI_Request *request
#define AND_GIVEN , request
#define MET(what, root, all_bytes, unit)                                                                              \
    begun(is_own, *request, (struct record){.kind = ICOLLECTIVE, .peer = root, .tag = what, .context = number,        \
                                            .bytes = all_bytes, .request = unit});                                    \
    return result
#include "trace_collectives.h"
#undef NAME_OF
#undef REAL_OF
#undef AND_REQUEST
#undef AND_GIVEN
#undef MET
