/* Loaded before the MPI library of a real run: takes each rank's time from after Init to before Finalize, and has
 * rank 0 write what WIRETWIN_LIVE_OUT names, in the words of wiretwin/mpi/live.py.
 *
 * All ranks meet after Init, so that their times begin together. With LIVE_LIST, lines of LIVE(name) for functions
 * that move messages, the time inside them is told apart from the rest; without it no other call is touched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ECHO_BYTES = 1 << 16, ECHOES = 200, WARM = 50 };
static const uint64_t ECHOES_NS = 500000000;

static MPI_Comm own; /* its messages cannot meet one of the program */
static int rank, size, queue = -1;
static double echo_us = -1.0;
static uint64_t begun_ns, queued_ns;
static __thread int depth; /* calls of the library that this thread is in */
#ifdef LIVE_LIST
static uint64_t inside_ns;
#endif

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void *real(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (!symbol) {
        fprintf(stderr, "wiretwin: the MPI library has no %s: the program is built for another one\n", name);
        exit(1);
    }
    return symbol;
}

/* How long this thread was ready to run and had no core. */
static uint64_t so_far_ns(void)
{
    char text[128];
    unsigned long long ran, waited;
    ssize_t got = queue < 0 ? -1 : pread(queue, text, sizeof text - 1, 0);
    if (got <= 0)
        return 0;
    text[got] = 0;
    return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

static int shorter(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* The one-way latency of 64 KiB between ranks 0 and 1 just now; rank 0 says by the first byte that it was the last. */
static void echo(void)
{
    static uint64_t taken[WARM + ECHOES];
    static char buffer[ECHO_BYTES];
    uint64_t end = now_ns() + ECHOES_NS;
    int count = 0;
    while (!buffer[0]) {
        uint64_t begin = now_ns();
        if (rank == 0) {
            buffer[0] = count + 1 == WARM + ECHOES || begin > end;
            PMPI_Send(buffer, ECHO_BYTES, MPI_BYTE, 1, 0, own);
            PMPI_Recv(buffer, ECHO_BYTES, MPI_BYTE, 1, 0, own, MPI_STATUS_IGNORE);
        } else {
            PMPI_Recv(buffer, ECHO_BYTES, MPI_BYTE, 0, 0, own, MPI_STATUS_IGNORE);
            PMPI_Send(buffer, ECHO_BYTES, MPI_BYTE, 0, 0, own);
        }
        taken[count++] = now_ns() - begin;
    }
    int from = count > WARM ? WARM : 0;
    qsort(taken + from, count - from, sizeof taken[0], shorter);
    echo_us = taken[from + (count - from) / 2] / 2e3;
}

static void begin(void)
{
    PMPI_Comm_dup(MPI_COMM_WORLD, &own);
    PMPI_Comm_rank(own, &rank);
    PMPI_Comm_size(own, &size);
    /* Where ranks share cores they queue for each other. */
    if (size <= sysconf(_SC_NPROCESSORS_ONLN))
        queue = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (size > 1 && rank < 2)
        echo();
    PMPI_Barrier(own);
    queued_ns = so_far_ns();
    begun_ns = now_ns();
}

static void end(void)
{
    double mine[3] = {(now_ns() - begun_ns) / 1e9, (so_far_ns() - queued_ns) / 1e9, 0.0};
#ifdef LIVE_LIST
    mine[2] = inside_ns / 1e9;
#endif
    double *all = rank == 0 ? malloc(size * sizeof mine) : 0;
    PMPI_Gather(mine, 3, MPI_DOUBLE, all, 3, MPI_DOUBLE, 0, own);
    if (rank == 0) {
        const char *name = getenv("WIRETWIN_LIVE_OUT");
        FILE *to = name ? fopen(name, "w") : 0;
        double most = 0.0;
        if (!to) {
            fputs("wiretwin: the times of the run cannot be written\n", stderr);
            PMPI_Abort(MPI_COMM_WORLD, 1);
        }
        fputs("{\"per_rank_s\": [", to);
        for (int at = 0; at < size; at++) {
            fprintf(to, "%s%.9f", at ? ", " : "", all[3 * at]);
            most = all[3 * at + 1] > most ? all[3 * at + 1] : most;
        }
#ifdef LIVE_LIST
        fputs("], \"split\": [", to);
        for (int at = 0; at < size; at++)
            fprintf(to, "%s{\"rank\": %d, \"compute_s\": %.9f, \"mpi_s\": %.9f}", at ? ", " : "", at,
                    all[3 * at] - all[3 * at + 2], all[3 * at + 2]);
#endif
        fputs("]", to);
        if (echo_us >= 0.0)
            fprintf(to, ", \"echo_us\": %.3f", echo_us);
        if (queue >= 0)
            fprintf(to, ", \"queued_s\": %.9f", most);
        fputs("}\n", to);
        fclose(to);
        free(all);
    }
    PMPI_Barrier(own);
    PMPI_Comm_free(&own);
}

/* Fortran, and wrappers of others, come by the names with P. */
#define BEGINS(name, arguments, call)                                                                                 \
    int name arguments                                                                                                \
    {                                                                                                                 \
        depth++;                                                                                                      \
        int error = ((int(*) arguments)real(#name))call;                                                              \
        if (depth == 1 && error == MPI_SUCCESS)                                                                       \
            begin();                                                                                                  \
        depth--;                                                                                                      \
        return error;                                                                                                 \
    }
#define ENDS(name)                                                                                                    \
    int name(void)                                                                                                    \
    {                                                                                                                 \
        if (depth++ == 0)                                                                                             \
            end();                                                                                                    \
        int error = ((int (*)(void))real(#name))();                                                                   \
        depth--;                                                                                                      \
        return error;                                                                                                 \
    }
BEGINS(MPI_Init, (int *count, char ***words), (count, words))
BEGINS(PMPI_Init, (int *count, char ***words), (count, words))
BEGINS(MPI_Init_thread, (int *count, char ***words, int asked, int *given), (count, words, asked, given))
BEGINS(PMPI_Init_thread, (int *count, char ***words, int asked, int *given), (count, words, asked, given))
ENDS(MPI_Finalize)
ENDS(PMPI_Finalize)

#ifdef LIVE_LIST
/* Arguments are integers and pointers, which are handed on unseen; a function that has fewer ignores the rest. */
typedef long (*function)(long, long, long, long, long, long, long, long, long, long, long, long, long, long, long,
                         long);

/* Out of line, both: hundreds of functions call them, and a compiler takes twice as long for copies. */
__attribute__((noinline)) static uint64_t enter(void)
{
    return depth++ == 0 ? now_ns() : 0;
}

__attribute__((noinline)) static void leave(uint64_t begin_ns)
{
    if (--depth == 0)
        __atomic_fetch_add(&inside_ns, now_ns() - begin_ns, __ATOMIC_RELAXED);
}

#define LIVE(name)                                                                                                    \
    long live_##name(long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long)  \
        __asm__(#name);                                                                                               \
    long live_##name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l,  \
                     long m, long n, long o, long p)                                                                  \
    {                                                                                                                 \
        static function symbol;                                                                                       \
        if (!symbol)                                                                                                  \
            symbol = (function)real(#name);                                                                           \
        uint64_t begin_ns = enter();                                                                                  \
        long result = symbol(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);                                         \
        leave(begin_ns);                                                                                              \
        return result;                                                                                                \
    }
#include LIVE_LIST
#endif
