/* Loaded before an MPI library: writes down what a rank asks of it, for a replay over another network.
 *
 * It stands on the profiling interface (MPI 4.1, chapter 15): each function here does what the library's own does, and
 * notes it. A rank writes records of one length to a file of its own, $WIRETWIN_TRACE/RANK, at most
 * $WIRETWIN_TRACE_BYTES of them. The format is that of wiretwin.trace.format, which reads it.
 *
 * Functions without a record here that may move messages come from a list of the library's own symbols, TRACE_LIST, one
 * line each: UNKNOWN(name) is noted by its name, SYNCHRONIZES(name) as a meeting of the communicator that is its first
 * argument. Their arguments are integers and pointers, which are handed on unseen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum kind { SEND = 1, ISEND, RECV, IRECV, DONE, WAIT, PROBE, COLLECTIVE, COUNT, MEMBER, UNKNOWN, END, ICOLLECTIVE };
enum mode { STANDARD, SYNCHRONOUS, READY, BUFFERED };
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE_SCATTER, SCAN, EXSCAN };

struct record {
    uint32_t kind;
    int32_t peer;    /* in the communicator; of MEMBER, in the world */
    int32_t tag;     /* of collectives, which */
    int32_t context; /* the number of the communicator on this rank */
    uint64_t bytes;
    uint64_t request;    /* of sends, receives and DONE: a number; of collectives, bytes of an element */
    uint64_t compute_ns; /* since the call before */
    uint64_t inside_ns;  /* in the call */
};

struct header {
    char mark[8];
    uint32_t rank, ranks;
    uint64_t is_cut; /* whether there was no room for all */
};

enum { ROOM = 4096, KNOWN = 1 << 12, POLL_NS = 10000 };
static struct record records[ROOM];
static int kept, file = -1;
/* In the number of a request: it is that of a collective, which are numbered by themselves. */
static const uint64_t TOGETHER = 1ull << 63;
static uint64_t left_bytes, last_ns, owed_ns, numbers, collectives;
static long first_thread;
static int depth;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void flush(void)
{
    size_t length = kept * sizeof *records;
    kept = 0;
    if (file < 0)
        return;
    if (length > left_bytes) {
        uint64_t yes = 1;
        if (pwrite(file, &yes, sizeof yes, offsetof(struct header, is_cut)) < 0)
            perror("wiretwin: trace");
        close(file);
        file = -1;
        return;
    }
    left_bytes -= length;
    for (char *at = (char *)records; length > 0;) {
        ssize_t done = write(file, at, length);
        if (done < 0) {
            perror("wiretwin: trace");
            close(file);
            file = -1;
            return;
        }
        at += done;
        length -= done;
    }
}

static void note(struct record record)
{
    if (file < 0)
        return;
    records[kept++] = record;
    if (kept == ROOM)
        flush();
}

static void note_name(const char *name)
{
    struct record record = {.kind = UNKNOWN};
    strncpy((char *)&record.bytes, name, 4 * sizeof(uint64_t));
    note(record);
}

/* A call begins: what was computed is owed to its record. Whether it is one of the program's own. */
static int begin(void)
{
    if (depth++ > 0 || file < 0)
        return 0;
    if (first_thread != syscall(SYS_gettid)) {
        static int is_said;
        if (!is_said++)
            note_name("MPI_THREAD_MULTIPLE");
    }
    uint64_t now = now_ns();
    owed_ns += now - last_ns;
    last_ns = now;
    return 1;
}

static void end(int is_own, struct record record)
{
    depth--;
    if (!is_own || file < 0)
        return;
    uint64_t now = now_ns();
    record.compute_ns = owed_ns;
    record.inside_ns = now - last_ns;
    owed_ns = 0;
    last_ns = now;
    note(record);
}

/* A look in vain ends: what lies between it and the next is no work, unless it is long. */
static void end_in_vain(int is_own)
{
    static uint64_t before_ns;
    depth--;
    if (!is_own || file < 0)
        return;
    if (owed_ns - before_ns < POLL_NS)
        owed_ns = before_ns;
    before_ns = owed_ns;
    last_ns = now_ns();
}

/* Communicators, by handle: a number each, in the order of their first use. */

static struct {
    MPI_Comm handle;
    int number;
} communicators[KNOWN];
static int known, numbered;

static int context(MPI_Comm handle)
{
    static int last;
    if (last < known && communicators[last].handle == handle)
        return communicators[last].number;
    for (last = 0; last < known; last++)
        if (communicators[last].handle == handle)
            return communicators[last].number;
    if (known == KNOWN) {
        note_name("too many communicators");
        return 0;
    }
    int inter = 0;
    PMPI_Comm_test_inter(handle, &inter);
    if (inter)
        note_name("an intercommunicator");
    communicators[known].handle = handle;
    communicators[known].number = numbered;
    MPI_Group group, world;
    int size;
    PMPI_Comm_group(handle, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(group, &size);
    for (int rank = 0; rank < size; rank++) {
        int there;
        PMPI_Group_translate_ranks(group, 1, &rank, world, &there);
        note((struct record){.kind = MEMBER, .peer = there, .tag = rank, .context = numbered});
    }
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    last = known++;
    return numbered++;
}

static void forget(MPI_Comm handle)
{
    for (int at = 0; at < known; at++)
        if (communicators[at].handle == handle)
            communicators[at] = communicators[--known];
}

/* Requests, by handle, until they are complete. */

struct open {
    MPI_Request handle;
    struct record record;
    int is_used;
};
static struct open *open_requests;
static size_t room, used;

static size_t place_of(MPI_Request handle)
{
    size_t at = (uintptr_t)handle * 0x9E3779B97F4A7C15ull >> 20 & (room - 1);
    while (open_requests[at].is_used && open_requests[at].handle != handle)
        at = (at + 1) & (room - 1);
    return at;
}

static void remember(MPI_Request handle, struct record record)
{
    if (2 * used >= room) {
        struct open *before = open_requests;
        size_t count = room;
        room = room ? 2 * room : 1024;
        open_requests = calloc(room, sizeof *open_requests);
        for (size_t at = 0; at < count; at++)
            if (before[at].is_used)
                open_requests[place_of(before[at].handle)] = before[at];
        free(before);
    }
    size_t at = place_of(handle);
    /* A library has one handle for all requests that are complete when they are made. */
    if (open_requests[at].is_used && open_requests[at].record.request & TOGETHER)
        note(open_requests[at].record);
    used += !open_requests[at].is_used;
    open_requests[at] = (struct open){handle, record, 1};
}

/* A collective has begun that does not block. */
static void begun(int is_own, MPI_Request request, struct record record)
{
    if (is_own && file >= 0)
        remember(request, (struct record){.kind = DONE, .request = TOGETHER | collectives++});
    end(is_own, record);
}

static uint64_t length_of(const MPI_Status *status)
{
    int count;
    PMPI_Get_count(status, MPI_BYTE, &count);
    return count == MPI_UNDEFINED ? 0 : count;
}

/* A request is complete: noted with whom it was for; the message of a receive is known only now. */
static void complete(MPI_Request handle, const MPI_Status *status)
{
    if (!room)
        return;
    size_t at = place_of(handle);
    if (!open_requests[at].is_used)
        return;
    struct record record = open_requests[at].record;
    int cancelled = 0;
    PMPI_Test_cancelled(status, &cancelled);
    if (cancelled)
        note_name("MPI_Cancel");
    if (record.kind == IRECV) {
        record.peer = status->MPI_SOURCE;
        record.tag = status->MPI_TAG;
        record.bytes = length_of(status);
    }
    record.kind = DONE;
    note(record);
    /* What stood behind it in the table moves up. */
    open_requests[at].is_used = 0;
    used--;
    for (size_t next = (at + 1) & (room - 1); open_requests[next].is_used; next = (next + 1) & (room - 1)) {
        struct open moved = open_requests[next];
        open_requests[next].is_used = 0;
        open_requests[place_of(moved.handle)] = moved;
    }
}

/* The beginning and the end. */

static void start(void)
{
    const char *folder = getenv("WIRETWIN_TRACE"), *most = getenv("WIRETWIN_TRACE_BYTES");
    char path[PATH_MAX];
    struct header header = {.mark = "wttrace1"};
    int rank, ranks;
    MPI_Comm parent;
    PMPI_Comm_get_parent(&parent);
    if (!folder || parent != MPI_COMM_NULL)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    header.rank = rank;
    header.ranks = ranks;
    snprintf(path, sizeof path, "%s/%d", folder, rank);
    file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (file < 0 || write(file, &header, sizeof header) != sizeof header) {
        perror(path);
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    left_bytes = most ? strtoull(most, 0, 10) : UINT64_MAX;
    first_thread = syscall(SYS_gettid);
    context(MPI_COMM_WORLD);
    last_ns = now_ns();
}

int MPI_Init(int *count, char ***words)
{
    int result = PMPI_Init(count, words);
    start();
    return result;
}

int MPI_Init_thread(int *count, char ***words, int required, int *provided)
{
    int result = PMPI_Init_thread(count, words, required, provided);
    start();
    return result;
}

int MPI_Finalize(void)
{
    end(begin(), (struct record){.kind = END});
    flush();
    if (file >= 0)
        close(file);
    file = -1;
    return PMPI_Finalize();
}

int MPI_Comm_free(MPI_Comm *handle)
{
    forget(*handle);
    return PMPI_Comm_free(handle);
}

int MPI_Comm_disconnect(MPI_Comm *handle)
{
    forget(*handle);
    return PMPI_Comm_disconnect(handle);
}

/* Waits and looks. A wait notes what it has completed, and then itself. */

enum { FEW = 64 };
#define ROOM_FOR(type, name, count)                                                                                   \
    type few_##name[FEW], *name = (count) <= FEW ? few_##name : malloc((count) * sizeof *name)
#define NO_ROOM_FOR(name)                                                                                             \
    if (name != few_##name)                                                                                           \
    free(name)

int MPI_Wait(MPI_Request *request, MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    MPI_Request before = *request;
    int is_own = begin(), result = PMPI_Wait(request, status);
    if (is_own && before != MPI_REQUEST_NULL)
        complete(before, status);
    end(is_own, (struct record){.kind = WAIT});
    return result;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    MPI_Request before = *request;
    int is_own = begin(), result = PMPI_Test(request, flag, status);
    if (!*flag) {
        end_in_vain(is_own);
        return result;
    }
    if (is_own && before != MPI_REQUEST_NULL)
        complete(before, status);
    end(is_own, (struct record){.kind = WAIT});
    return result;
}

static int all(int is_wait, int count, MPI_Request *requests, int *flag, MPI_Status *given)
{
    ROOM_FOR(MPI_Request, before, count);
    ROOM_FOR(MPI_Status, own, count);
    MPI_Status *statuses = given == MPI_STATUSES_IGNORE ? own : given;
    memcpy(before, requests, count * sizeof *before);
    int is_own = begin();
    int result = is_wait ? PMPI_Waitall(count, requests, statuses) : PMPI_Testall(count, requests, flag, statuses);
    if (*flag) {
        for (int at = 0; is_own && at < count; at++)
            if (before[at] != MPI_REQUEST_NULL)
                complete(before[at], &statuses[at]);
        end(is_own, (struct record){.kind = WAIT});
    } else {
        end_in_vain(is_own);
    }
    NO_ROOM_FOR(before);
    NO_ROOM_FOR(own);
    return result;
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
    int flag = 1;
    return all(1, count, requests, &flag, statuses);
}

int MPI_Testall(int count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    return all(0, count, requests, flag, statuses);
}

static int any(int is_wait, int count, MPI_Request *requests, int *index, int *flag, MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    ROOM_FOR(MPI_Request, before, count);
    memcpy(before, requests, count * sizeof *before);
    int is_own = begin();
    int result = is_wait ? PMPI_Waitany(count, requests, index, status)
                         : PMPI_Testany(count, requests, index, flag, status);
    if (*flag) {
        if (is_own && *index != MPI_UNDEFINED)
            complete(before[*index], status);
        end(is_own, (struct record){.kind = WAIT});
    } else {
        end_in_vain(is_own);
    }
    NO_ROOM_FOR(before);
    return result;
}

int MPI_Waitany(int count, MPI_Request *requests, int *index, MPI_Status *status)
{
    int flag = 1;
    return any(1, count, requests, index, &flag, status);
}

int MPI_Testany(int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    return any(0, count, requests, index, flag, status);
}

static int some(int is_wait, int count, MPI_Request *requests, int *done, int *indices, MPI_Status *given)
{
    ROOM_FOR(MPI_Request, before, count);
    ROOM_FOR(MPI_Status, own, count);
    MPI_Status *statuses = given == MPI_STATUSES_IGNORE ? own : given;
    memcpy(before, requests, count * sizeof *before);
    int is_own = begin();
    int result = is_wait ? PMPI_Waitsome(count, requests, done, indices, statuses)
                         : PMPI_Testsome(count, requests, done, indices, statuses);
    if (is_wait || *done > 0) {
        for (int at = 0; is_own && *done != MPI_UNDEFINED && at < *done; at++)
            complete(before[indices[at]], &statuses[at]);
        end(is_own, (struct record){.kind = WAIT});
    } else {
        end_in_vain(is_own);
    }
    NO_ROOM_FOR(before);
    NO_ROOM_FOR(own);
    return result;
}

int MPI_Waitsome(int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses)
{
    return some(1, count, requests, done, indices, statuses);
}

int MPI_Testsome(int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses)
{
    return some(0, count, requests, done, indices, statuses);
}

static struct record found(const MPI_Status *status, int number)
{
    return (struct record){.kind = PROBE,
                           .peer = status->MPI_SOURCE,
                           .tag = status->MPI_TAG,
                           .context = number,
                           .bytes = length_of(status)};
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    int number = context(comm), is_own = begin(), result = PMPI_Probe(source, tag, comm, status);
    end(is_own, found(status, number));
    return result;
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    int number = context(comm), is_own = begin(), result = PMPI_Iprobe(source, tag, comm, flag, status);
    if (*flag)
        end(is_own, found(status, number));
    else
        end_in_vain(is_own);
    return result;
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    int number = context(comm), is_own = begin(), result = PMPI_Mprobe(source, tag, comm, message, status);
    end(is_own, found(status, number));
    return result;
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *given)
{
    MPI_Status own, *status = given == MPI_STATUS_IGNORE ? &own : given;
    int number = context(comm), is_own = begin(), result = PMPI_Improbe(source, tag, comm, flag, message, status);
    if (*flag)
        end(is_own, found(status, number));
    else
        end_in_vain(is_own);
    return result;
}

/* Calls with a count, and from MPI 4.0 on the same with a large one. */

static uint64_t bytes_of(uint64_t count, MPI_Datatype type)
{
    int size = 0;
    if (type != MPI_DATATYPE_NULL)
        PMPI_Type_size(type, &size);
    return count * size;
}

static int size_of(MPI_Comm comm)
{
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

static void note_count(int index, uint64_t sent, uint64_t received)
{
    note((struct record){.kind = COUNT, .peer = index, .bytes = sent, .request = received});
}

#define NAMED(name) MPI_##name
#define REAL(name) PMPI_##name
#define NUMBER int
#define PLACE int
#include "trace_calls.h"
#undef NAMED
#undef REAL
#undef NUMBER
#undef PLACE
#if MPI_VERSION >= 4
#define NAMED(name) MPI_##name##_c
#define REAL(name) PMPI_##name##_c
#define NUMBER MPI_Count
#define PLACE MPI_Aint
#include "trace_calls.h"
#endif

int MPI_Barrier(MPI_Comm comm)
{
    int number = context(comm), is_own = begin(), result = PMPI_Barrier(comm);
    end(is_own, (struct record){.kind = COLLECTIVE, .tag = BARRIER, .context = number, .request = 1});
    return result;
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    int number = context(comm), is_own = begin(), result = PMPI_Ibarrier(comm, request);
    begun(is_own, *request,
          (struct record){.kind = ICOLLECTIVE, .tag = BARRIER, .context = number, .request = 1});
    return result;
}

/* All others. */

typedef long (*function)(long, long, long, long, long, long, long, long, long, long, long, long, long, long, long,
                         long);

static function real(const char *name)
{
    function symbol = (function)dlsym(RTLD_NEXT, name);
    if (!symbol) {
        fprintf(stderr, "wiretwin: the MPI library has no %s: the program is built for another one\n", name);
        exit(1);
    }
    return symbol;
}

/* Under a name of its own here, for mpi.h declares it with its own types. */
#define LONGS                                                                                                         \
    long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m, long n,   \
        long o, long p
#define PASS(name, before, after)                                                                                     \
    long passed_##name(LONGS) __asm__(#name);                                                                         \
    long passed_##name(LONGS)                                                                                         \
    {                                                                                                                 \
        static function symbol;                                                                                       \
        if (!symbol)                                                                                                  \
            symbol = real("P" #name);                                                                                 \
        before;                                                                                                       \
        long result = symbol(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);                                         \
        after;                                                                                                        \
        return result;                                                                                                \
    }
#define UNKNOWN(name)                                                                                                 \
    PASS(                                                                                                             \
        name, int is_own = begin(); static int is_said; if (is_own && !is_said++) note_name(#name),                   \
        depth--; if (is_own) last_ns = now_ns())
#define SYNCHRONIZES(name)                                                                                            \
    PASS(name, int number = context((MPI_Comm)a); int is_own = begin(),                                               \
         end(is_own, (struct record){.kind = COLLECTIVE, .tag = ALLGATHER, .context = number, .bytes = 8,             \
                                     .request = 1}))
#include TRACE_LIST
