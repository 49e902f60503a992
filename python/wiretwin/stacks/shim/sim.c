/* Loaded before an MPI library whose network is simulated: tells the provider of the library's calls, and gives the
 * program the time of its rank.
 *
 * The functions of the library that are passed through come from a list of its own symbols, SIM_LIST, one line each:
 * SIM(name, what), with 0 for a call that may wait, 1 for one that looks, 2 for one that starts the library, 3 for
 * one that ends it, 4 and 5 for those that spawn processes of one command and of several, and 7 for those that make a
 * communicator of no other, the first of which starts the library's network where sessions are used. Their arguments are
 * integers and pointers, which are handed on unseen; a function that has fewer ignores the rest.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* As the provider has them, in crates/provider/src/calls.rs. */
struct calls {
    void (*enter)(const char *name, int what);
    void (*exit)(void);
    int (*now)(uint64_t *ps);
    int (*sleep)(uint64_t ps);
    void (*begin_thread)(void);
    void (*wait_outside)(uint64_t ps);
    void (*spawn)(uint32_t count);
    void (*rehearse)(int turns);
    uint32_t (*host)(void);
    void (*will_ask)(uint32_t questions);
};

static const struct calls *calls; /* none before the library has loaded the provider */
static int has_threads;         /* the program has begun threads */
static __thread int depth;      /* calls of the library that this thread is in */
static __thread int is_programs; /* the thread that began the program, or one that such a thread has begun */
static uint64_t before_ns; /* what the program's clock has shown before it had virtual time */

enum { LOOK_NS = 20, REHEARSED = 32, BEGINS = 2, REACHES = 6, MAKES = 7 };
/* 2001-09-09: the beginning of virtual time for clocks that count from 1970. */
static const uint64_t SINCE_1970_NS = 1000000000ull * 1000000000ull;

__attribute__((constructor)) static void begin(void)
{
    is_programs = 1;
}

static int holds(struct dl_phdr_info *info, size_t size, void *found)
{
    const char **wanted = found;
    (void)size;
    void *library = dlopen(info->dlpi_name, RTLD_NOLOAD | RTLD_LAZY);
    if (!library)
        return 0;
    /* The program itself, and this library, would find this library's own. */
    void *symbol = info->dlpi_name[0] ? dlsym(library, wanted[0]) : 0;
    Dl_info where;
    if (symbol && dladdr(symbol, &where) && strcmp(where.dli_fname, wanted[2])) {
        wanted[1] = symbol;
        return 1;
    }
    dlclose(library);
    return 0;
}

/* A function of any library that is loaded but this one, also of one whose names are hidden. */
static void *elsewhere(const char *name)
{
    Dl_info own;
    dladdr((void *)elsewhere, &own);
    const char *wanted[3] = {name, 0, own.dli_fname};
    dl_iterate_phdr(holds, wanted);
    return (void *)wanted[1];
}

static void *real(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (!symbol)
        symbol = elsewhere(name);
    if (!symbol) {
        fprintf(stderr, "wiretwin: the MPI library has no %s: the program is built for another one\n", name);
        exit(1);
    }
    return symbol;
}

static void find_calls(void)
{
    const struct calls *(*find)(void) = (const struct calls *(*)(void))elsewhere("wiretwin_sim_calls");
    if (find)
        calls = find();
    if (!calls) {
        fputs("wiretwin: the MPI library does not use the simulated network\n", stderr);
        exit(1);
    }
    if (has_threads)
        calls->begin_thread();
}

/* The library has begun, and its calls take no time yet. */
extern void wiretwin_sim_begun(void) __attribute__((weak));

/* Out of line, like `leave`: hundreds of functions call them, and a compiler takes twice as long for copies. */
__attribute__((noinline)) static void enter(const char *name, int what)
{
    if (depth++ == 0 && calls)
        calls->enter(name, what);
}

__attribute__((noinline)) static void leave(int what)
{
    int begins = what == BEGINS || (what == MAKES && !calls);
    if (what == BEGINS && depth == 1 && wiretwin_sim_begun)
        wiretwin_sim_begun();
    if (--depth > 0)
        return;
    if (!calls && begins) {
        find_calls();
        calls->enter("", BEGINS);
    }
    if (calls)
        calls->exit();
    /* Stretches in which the program does nothing, first those before which others have had the processor. */
    if (calls && begins)
        for (int stretch = 2 * REHEARSED; stretch-- > 0;)
            calls->rehearse(stretch >= REHEARSED);
}

/* Called with 1 before MPI is initialized for a script, and with 0 when the script begins: what happens between is not a
 * part of its time. */
void wiretwin_sim_before_program(int begins)
{
    if (begins)
        enter("MPI_Init", BEGINS);
    else
        leave(BEGINS);
}

/* The program reaches a window in memory, in the name of a function that the library is not called with. */
void wiretwin_sim_reach(const char *name)
{
    enter(name, REACHES);
}

void wiretwin_sim_reached(void)
{
    leave(REACHES);
}

/* The library needs so many more looks at its network, in vain, to do what it is asked for now. */
void wiretwin_sim_will_ask(unsigned questions)
{
    if (calls)
        calls->will_ask(questions);
}

/* The number of the host that this rank lives on, or that of no host. */
uint32_t wiretwin_sim_host(void)
{
    return calls ? calls->host() : UINT32_MAX;
}

/* So many commands, each with a number of processes, which the root's alone is. */
static void spawn(int count, const long *one, const int *each, long root, long communicator)
{
    int (*rank_of)(long, int *) = (int (*)(long, int *))real("PMPI_Comm_rank");
    int rank;
    if (depth != 1 || !calls || rank_of(communicator, &rank) || rank != (int)root)
        return;
    uint32_t all = 0;
    for (int at = 0; at < count; at++)
        all += one ? (int)*one : each[at];
    calls->spawn(all);
}

typedef long (*function)(long, long, long, long, long, long, long, long, long, long, long, long, long, long, long,
             long);
#define SIM(name, what)                                                                                               \
    long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l,     \
          long m, long n, long o, long p)                                                                     \
    {                                                                                                             \
        static function symbol;                                                                               \
        if (!symbol)                                                                                          \
            symbol = (function)real(#name);                                                               \
        enter(#name, what);                                                                                   \
        if (what == 4)                                                                                        \
            spawn(1, &c, 0, e, f);                                                                            \
        if (what == 5)                                                                                        \
            spawn(a, 0, (const int *)d, f, g);                                                                \
        long result = symbol(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);                                 \
        leave(what);                                                                                          \
        return result;                                                                                        \
    }
#include SIM_LIST

/* The program's clocks. */

static int virtual_ns(uint64_t *ns)
{
    uint64_t ps;
    if (depth > 0 || !is_programs)
        return 0;
    if (calls && calls->now(&ps))
        *ns = before_ns + ps / 1000;
    else
        *ns = before_ns += LOOK_NS;
    return 1;
}

double MPI_Wtime(void)
{
    uint64_t ps;
    if (depth == 0 && calls && calls->now(&ps))
        return ps / 1e12;
    return before_ns / 1e9;
}

double PMPI_Wtime(void)
{
    return MPI_Wtime();
}

int clock_gettime(clockid_t clock, struct timespec *to)
{
    uint64_t ns;
    int is_real_time = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if ((is_real_time || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW ||
         clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME) &&
        virtual_ns(&ns)) {
        ns += is_real_time ? SINCE_1970_NS : 0;
        *to = (struct timespec){ns / 1000000000, ns % 1000000000};
        return 0;
    }
    return syscall(SYS_clock_gettime, clock, to);
}

int gettimeofday(struct timeval *to, void *zone)
{
    struct timespec time;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &time);
    *to = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *to)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    if (to)
        *to = time.tv_sec;
    return time.tv_sec;
}

static uint64_t in_ns(const struct timespec *span)
{
    return span->tv_sec * 1000000000ull + span->tv_nsec;
}

static int pass(uint64_t ns)
{
    if (depth > 0 || !is_programs)
        return 0;
    if (!calls || !calls->sleep(ns * 1000))
        before_ns += ns;
    return 1;
}

int nanosleep(const struct timespec *span, struct timespec *rest)
{
    return pass(in_ns(span)) ? 0 : syscall(SYS_nanosleep, span, rest);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *span, struct timespec *rest)
{
    if (depth == 0 && is_programs) {
        struct timespec now;
        uint64_t until = in_ns(span);
        if (!(flags & TIMER_ABSTIME))
            return pass(until), 0;
        clock_gettime(clock, &now);
        if (until > in_ns(&now))
            pass(until - in_ns(&now));
        return 0;
    }
    return syscall(SYS_clock_nanosleep, clock, flags, span, rest) < 0 ? errno : 0;
}

int usleep(useconds_t us)
{
    struct timespec span = {us / 1000000, us % 1000000 * 1000};
    return nanosleep(&span, 0);
}

unsigned sleep(unsigned seconds)
{
    struct timespec span = {seconds, 0};
    nanosleep(&span, 0);
    return 0;
}

/* Threads: those that the program begins outside the library have its clock. */

struct start {
    void *(*routine)(void *);
    void *argument;
};

static void *started(void *argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    is_programs = 1;
    return start.routine(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument)
{
    static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!create)
        create = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT,
                                                                                                "pthread_create");
    struct start *start = depth == 0 && is_programs ? malloc(sizeof *start) : 0;
    if (!start)
        return create(thread, attributes, routine, argument);
    *start = (struct start){routine, argument};
    has_threads = 1;
    if (calls)
        calls->begin_thread();
    int error = create(thread, attributes, started, start);
    if (error)
        free(start);
    return error;
}

/* Waits until a time: the kernel's clock is asked for as long as the program's would have to go on. */

static int until_real(const struct timespec *until, struct timespec *real, uint64_t *until_ns)
{
    uint64_t now_ns;
    if (!virtual_ns(&now_ns))
        return 0;
    *until_ns = in_ns(until);
    clockid_t clock = CLOCK_MONOTONIC;
    if (*until_ns >= SINCE_1970_NS) {
        *until_ns -= SINCE_1970_NS;
        clock = CLOCK_REALTIME;
    }
    syscall(SYS_clock_gettime, clock, real);
    uint64_t span_ns = *until_ns > now_ns ? *until_ns - now_ns : 0;
    uint64_t real_ns = in_ns(real) + span_ns;
    if (has_threads && calls)
        calls->wait_outside(span_ns * 1000);
    *real = (struct timespec){real_ns / 1000000000, real_ns % 1000000000};
    return 1;
}

static void waited_until(uint64_t until_ns, int is_late)
{
    uint64_t now_ns;
    if (has_threads && calls)
        calls->wait_outside(0);
    if (is_late && virtual_ns(&now_ns) && now_ns < until_ns)
        pass(until_ns - now_ns);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec real;
    uint64_t until_ns;
    if (!wait) {
        /* Not the condition variables of before 2003. */
        void *symbol = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
        if (!symbol)
            symbol = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
        wait = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))symbol;
    }
    if (!until_real(until, &real, &until_ns))
        return wait(condition, mutex, until);
    int error = wait(condition, mutex, &real);
    /* Python waits so for its lock on itself, not for the program. */
    waited_until(until_ns, error == ETIMEDOUT && !dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
    return error;
}

int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    static int (*wait)(sem_t *, clockid_t, const struct timespec *);
    struct timespec real;
    uint64_t until_ns;
    if (!wait)
        wait = (int (*)(sem_t *, clockid_t, const struct timespec *))dlsym(RTLD_NEXT, "sem_clockwait");
    if (!until_real(until, &real, &until_ns))
        return wait(semaphore, clock, until);
    int error = wait(semaphore, clock, &real);
    int reason = errno;
    waited_until(until_ns, error && reason == ETIMEDOUT);
    errno = reason;
    return error;
}
