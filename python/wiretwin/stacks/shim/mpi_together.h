/* What the ranks of an MPI do together: its collective calls, blocking and non-blocking. A part of mpi.c.
 *
 * Every rank times its own call, one iteration after another, with a barrier before each that is not timed; a
 * barrier itself has none before it. Roots are rank 0. Sums are of MPI_FLOAT, everything else is of MPI_BYTE.
 * Names are those of the calls without MPI_, in lower case; `busy` behind the name of a non-blocking one times what
 * is spent inside its two calls, between which the rank computes. */

#define MPI_2_2 (MPI_VERSION > 2 || (MPI_VERSION == 2 && MPI_SUBVERSION >= 2))

typedef struct {
    const char *name;
    int reduces; /* a sum: of whole MPI_FLOATs */
    int out, in; /* blocks of all ranks in the buffer that is sent from and received into */
} collective;

enum {
    BARRIER,
    BCAST,
    REDUCE,
    ALLREDUCE,
    GATHER,
    SCATTER,
    ALLGATHER,
    ALLTOALL,
    REDUCE_SCATTER,
    GATHERV,
    SCATTERV,
    ALLGATHERV,
    ALLTOALLV,
    ALLTOALLW,
#if MPI_2_2
    REDUCE_SCATTER_BLOCK,
#endif
    COLLECTIVES
};

static const collective collectives[COLLECTIVES] = {
    [BARRIER] = {"barrier", 0, 0, 0},
    [BCAST] = {"bcast", 0, 0, 0},
    [REDUCE] = {"reduce", 1, 0, 0},
    [ALLREDUCE] = {"allreduce", 1, 0, 0},
    [GATHER] = {"gather", 0, 0, 1},
    [SCATTER] = {"scatter", 0, 1, 0},
    [ALLGATHER] = {"allgather", 0, 0, 1},
    [ALLTOALL] = {"alltoall", 0, 1, 1},
    [REDUCE_SCATTER] = {"reduce_scatter", 1, 0, 0},
    [GATHERV] = {"gatherv", 0, 0, 1},
    [SCATTERV] = {"scatterv", 0, 1, 0},
    [ALLGATHERV] = {"allgatherv", 0, 0, 1},
    [ALLTOALLV] = {"alltoallv", 0, 1, 1},
    [ALLTOALLW] = {"alltoallw", 0, 1, 1},
#if MPI_2_2
    [REDUCE_SCATTER_BLOCK] = {"reduce_scatter_block", 1, 0, 0},
#endif
};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What rank `from` sends at place `at`, as a byte and as a number whose sum over the ranks is exact. */
static unsigned char byte_of(int from, uint64_t at) { return (unsigned char)(from * 131 + at * 29 + (at >> 8) * 7 + 17); }
static float number_of(int from, uint64_t at) { return (float)(from + at % 64); }

/* Buffers of at least these lengths, whose pages have been written to, and the counts and types of the calls that
 * take them. */
static int make_buffers(layer *self, uint64_t out, uint64_t in) {
    uint64_t need = (out > in ? out : in) + 1;
    if (need > self->together_room) {
        free(self->out);
        free(self->in);
        self->out = self->in = 0;
        /* They begin with a page, as those of a message do. */
        int missing = posix_memalign(&self->out, 4096, need) | posix_memalign(&self->in, 4096, need);
        self->together_room = missing ? 0 : need;
        if (self->together_room) {
            memset(self->out, 0x5a, need);
            memset(self->in, 0xa5, need);
        }
    }
    if (!self->counts) self->counts = malloc(2 * (size_t)self->size * sizeof *self->counts);
    if (!self->types && (self->types = malloc((size_t)self->size * sizeof *self->types)))
        for (int rank = 0; rank < self->size; rank++) self->types[rank] = MPI_BYTE;
    if (self->together_room && self->counts && self->types) return WT_OK;
    snprintf(self->error, sizeof self->error, "no memory for buffers of %llu bytes", (unsigned long long)need);
    return WT_TRANSPORT;
}

/* How many numbers of a sum rank `rank` keeps: the first ones have one more where they do not divide evenly. */
static int share_of(const layer *self, uint64_t numbers, int rank) {
    return (int)(numbers / (uint64_t)self->size) + ((uint64_t)rank < numbers % (uint64_t)self->size);
}

/* How many numbers there are in a sum of so many bytes. Where all ranks have to keep the same number of them, those that
 * are missing from the last rank's are added. */
static uint64_t numbers_of(const layer *self, int which, uint64_t bytes) {
    uint64_t numbers = bytes / sizeof(float);
#if MPI_2_2
    uint64_t size = (uint64_t)self->size;
    if (which == REDUCE_SCATTER_BLOCK) return (numbers + size - 1) / size * size;
#else
    (void)self;
    (void)which;
#endif
    return numbers;
}

static void set_counts(layer *self, int which, uint64_t bytes) {
    int *counts = self->counts, *places = self->counts + self->size;
    for (int rank = 0; rank < self->size; rank++) {
        counts[rank] = which == REDUCE_SCATTER ? share_of(self, bytes / sizeof(float), rank) : (int)bytes;
        places[rank] = rank * counts[rank];
    }
}

static int run_blocking(layer *self, int which, int bytes) {
    MPI_Comm comm = self->data;
    void *out = self->out, *in = self->in;
    int *counts = self->counts, *places = self->counts + self->size, numbers = (int)numbers_of(self, which, (uint64_t)bytes);
    MPI_Datatype *types = self->types;
    switch (which) {
    case BARRIER: return MPI_Barrier(comm);
    case BCAST: return MPI_Bcast(self->rank ? in : out, bytes, MPI_BYTE, 0, comm);
    case REDUCE: return MPI_Reduce(out, in, numbers, MPI_FLOAT, MPI_SUM, 0, comm);
    case ALLREDUCE: return MPI_Allreduce(out, in, numbers, MPI_FLOAT, MPI_SUM, comm);
    case GATHER: return MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm);
    case SCATTER: return MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm);
    case ALLGATHER: return MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
    case ALLTOALL: return MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
    case REDUCE_SCATTER: return MPI_Reduce_scatter(out, in, counts, MPI_FLOAT, MPI_SUM, comm);
    case GATHERV: return MPI_Gatherv(out, bytes, MPI_BYTE, in, counts, places, MPI_BYTE, 0, comm);
    case SCATTERV: return MPI_Scatterv(out, counts, places, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm);
    case ALLGATHERV: return MPI_Allgatherv(out, bytes, MPI_BYTE, in, counts, places, MPI_BYTE, comm);
    case ALLTOALLV: return MPI_Alltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, comm);
#if MPI_2_2
    case REDUCE_SCATTER_BLOCK: return MPI_Reduce_scatter_block(out, in, numbers / self->size, MPI_FLOAT, MPI_SUM, comm);
#endif
    default: return MPI_Alltoallw(out, counts, places, types, in, counts, places, types, comm);
    }
}

#if MPI_VERSION >= 3
static int start(layer *self, int which, int bytes, MPI_Request *request) {
    MPI_Comm comm = self->data;
    void *out = self->out, *in = self->in;
    int *counts = self->counts, *places = self->counts + self->size, numbers = (int)numbers_of(self, which, (uint64_t)bytes);
    MPI_Datatype *types = self->types;
    switch (which) {
    case BARRIER: return MPI_Ibarrier(comm, request);
    case BCAST: return MPI_Ibcast(self->rank ? in : out, bytes, MPI_BYTE, 0, comm, request);
    case REDUCE: return MPI_Ireduce(out, in, numbers, MPI_FLOAT, MPI_SUM, 0, comm, request);
    case ALLREDUCE: return MPI_Iallreduce(out, in, numbers, MPI_FLOAT, MPI_SUM, comm, request);
    case GATHER: return MPI_Igather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm, request);
    case SCATTER: return MPI_Iscatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm, request);
    case ALLGATHER: return MPI_Iallgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm, request);
    case ALLTOALL: return MPI_Ialltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm, request);
    case REDUCE_SCATTER: return MPI_Ireduce_scatter(out, in, counts, MPI_FLOAT, MPI_SUM, comm, request);
    case GATHERV: return MPI_Igatherv(out, bytes, MPI_BYTE, in, counts, places, MPI_BYTE, 0, comm, request);
    case SCATTERV: return MPI_Iscatterv(out, counts, places, MPI_BYTE, in, bytes, MPI_BYTE, 0, comm, request);
    case ALLGATHERV: return MPI_Iallgatherv(out, bytes, MPI_BYTE, in, counts, places, MPI_BYTE, comm, request);
    case ALLTOALLV: return MPI_Ialltoallv(out, counts, places, MPI_BYTE, in, counts, places, MPI_BYTE, comm, request);
    case REDUCE_SCATTER_BLOCK: return MPI_Ireduce_scatter_block(out, in, numbers / self->size, MPI_FLOAT, MPI_SUM, comm, request);
    default: return MPI_Ialltoallw(out, counts, places, types, in, counts, places, types, comm, request);
    }
}
#endif

/* A collective from beginning to end; a rank that gives way while it waits starts it and asks. */
static int run_whole(layer *self, int which, int bytes, int starts) {
#if MPI_VERSION >= 3
    if (starts || self->idle_ns) {
        MPI_Request request;
        int code = start(self, which, bytes, &request);
        return code == MPI_SUCCESS ? await_all(self, 1, &request, MPI_STATUSES_IGNORE) : code;
    }
#else
    (void)starts;
#endif
    return run_blocking(self, which, bytes);
}

static int wrong(layer *self, const char *name, uint64_t at) {
    snprintf(self->error, sizeof self->error, "wrong data: %s, at place %llu of rank %d", name,
             (unsigned long long)at, (int)self->rank);
    return WT_TRANSPORT;
}

/* Whether `count` bytes at `in` are those that rank `from` sent, from place `place` on. */
static int came(const unsigned char *in, uint64_t count, int from, uint64_t place, uint64_t *at) {
    for (uint64_t byte = 0; byte < count; byte++)
        if (in[byte] != byte_of(from, place + byte)) {
            *at = byte;
            return 0;
        }
    return 1;
}

/* Runs a collective once on values that tell where they come from, and looks at what has come. */
static int verify(layer *self, const char *name, int which, uint64_t bytes, int starts) {
    const collective *one = &collectives[which];
    uint64_t numbers = numbers_of(self, which, bytes), size = (uint64_t)self->size, at = 0;
    float *out = self->out, *in = self->in;
    unsigned char *raw = self->in;
    if (one->reduces)
        for (uint64_t i = 0; i < numbers; i++) out[i] = number_of(self->rank, i);
    else
        for (uint64_t i = 0; i < bytes * (one->out ? size : 1); i++) ((unsigned char *)out)[i] = byte_of(self->rank, i);
    memset(in, 0, one->reduces ? numbers * sizeof(float) : bytes * (one->in ? size : 1));
    int code = run_whole(self, which, (int)bytes, starts);
    if (code != MPI_SUCCESS) return failed(self, code);
    int good = 1, root = self->rank == 0;
    if (one->reduces) {
        uint64_t first = 0, count = which == REDUCE && !root ? 0 : numbers;
        if (which == REDUCE_SCATTER) {
            for (int rank = 0; rank < self->rank; rank++) first += (uint64_t)share_of(self, numbers, rank);
            count = (uint64_t)share_of(self, numbers, self->rank);
        }
#if MPI_2_2
        if (which == REDUCE_SCATTER_BLOCK) {
            count = numbers / size;
            first = (uint64_t)self->rank * count;
        }
#endif
        for (uint64_t i = 0; good && i < count; i++) {
            float sum = (float)(size * (size - 1) / 2 + size * ((first + i) % 64));
            good = in[i] == sum;
            at = i;
        }
        return good ? WT_OK : wrong(self, name, at);
    }
    switch (which) {
    case BARRIER: break;
    case BCAST: good = root || came(raw, bytes, 0, 0, &at); break;
    case SCATTER:
    case SCATTERV: good = came(raw, bytes, 0, (uint64_t)self->rank * bytes, &at); break;
    default:
        if ((which == GATHER || which == GATHERV) && !root) break;
        for (int from = 0; good && from < self->size; from++) {
            uint64_t place = one->out ? (uint64_t)self->rank * bytes : 0;
            good = came(raw + (uint64_t)from * bytes, bytes, from, place, &at);
        }
    }
    return good ? WT_OK : wrong(self, name, at);
}

/* What a name stands for: a collective, whether it is the non-blocking one, whether the rank computes meanwhile. */
static int find_collective(const char *name, int *starts, int *busy) {
    *starts = *busy = 0;
    size_t length = strlen(name);
    for (int which = 0; which < COLLECTIVES; which++) {
        const char *own = collectives[which].name;
        size_t whole = strlen(own);
        if (!strcmp(name, own)) return which;
#if MPI_VERSION >= 3
        if (name[0] == 'i' && length > whole && !strncmp(name + 1, own, whole)) {
            const char *rest = name + 1 + whole;
            if (*rest && strcmp(rest, "_busy")) continue;
            *starts = 1;
            *busy = *rest != 0;
            return which;
        }
#else
        (void)length;
        (void)whole;
#endif
    }
    return -1;
}

static int run_collective(layer *self, int which, const wt_together_order *order, uint64_t *times_ns, int starts,
                          int busy) {
    const collective *one = &collectives[which];
    uint64_t bytes = which == BARRIER ? 0 : order->bytes;
    uint64_t out = bytes * (one->out ? (uint64_t)self->size : 1), in = bytes * (one->in ? (uint64_t)self->size : 1);
    if (one->reduces) out = in = numbers_of(self, which, bytes) * sizeof(float);
    int refused = too_long(self, out > in ? out : in);
    if (refused == WT_OK && one->reduces && bytes % sizeof(float)) {
        snprintf(self->error, sizeof self->error, "%s of %llu bytes: it sums numbers of %d bytes", order->name,
                 (unsigned long long)bytes, (int)sizeof(float));
        refused = WT_UNSUPPORTED;
    }
    if (refused == WT_OK) refused = make_buffers(self, out, in);
    if (refused != WT_OK) return refused;
    set_counts(self, which, bytes);
    if (order->verify) return verify(self, order->name, which, bytes, starts);
    int code = MPI_SUCCESS;
    for (uint64_t number = 0; number < order->iterations && code == MPI_SUCCESS; number++) {
        if (which != BARRIER || busy) code = run_whole(self, BARRIER, 0, 0);
        uint64_t before = clock_ns(), computed = 0;
#if MPI_VERSION >= 3
        if (busy && code == MPI_SUCCESS) {
            MPI_Request request;
            code = start(self, which, (int)bytes, &request);
            uint64_t began = clock_ns(), until = began + order->busy_ns, now = began;
            while (now < until) now = clock_ns();
            computed = now - began;
            if (code == MPI_SUCCESS) code = await_all(self, 1, &request, MPI_STATUSES_IGNORE);
        } else
#endif
            if (code == MPI_SUCCESS)
            code = run_whole(self, which, (int)bytes, starts);
        times_ns[number] = clock_ns() - before - computed;
    }
    return code == MPI_SUCCESS ? WT_OK : failed(self, code);
}

#include "mpi_window.h"

int wt_together(void *me, const wt_together_order *order, uint64_t *times_ns) {
    layer *self = me;
    int starts, busy, which = find_collective(order->name, &starts, &busy);
    if (which >= 0) return run_collective(self, which, order, times_ns, starts, busy);
#if MPI_VERSION >= 3
    which = find_one_sided(order->name);
    if (which >= 0) return run_window(self, which, order, times_ns);
#endif
    snprintf(self->error, sizeof self->error, "%s, by MPI %d", order->name, MPI_VERSION);
    return WT_UNSUPPORTED;
}

static void free_together(layer *self) {
    free(self->out);
    free(self->in);
    free(self->counts);
    free(self->types);
}
