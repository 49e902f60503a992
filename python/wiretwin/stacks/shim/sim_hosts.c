/* Loaded before sim.c: which ranks share a host of the simulated world, and the memory that they share there.
 *
 * The library is told that each rank has a host of its own, or that all share one, so that all messages cross its network. What a
 * program asks it about hosts is answered here (MPI 4.1, sections 7.4.2 and 12.2.3): communicators are split by host,
 * and windows of memory that ranks share are made of a file beside the run's own memory. One rank works at a time: one
 * that waits for a change of that memory without a call of MPI waits for ever.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATH = 4096, LINE = 64 };

struct segment {
    MPI_Aint bytes, unit;
    char *base;
};

struct shared {
    MPI_Win window;
    int ranks, flavor;
    char *memory;
    size_t bytes;
    struct shared *next;
    struct segment segments[];
};

static struct shared *windows;

static struct shared *known(MPI_Win window)
{
    struct shared *one = windows;
    while (one && one->window != window)
        one = one->next;
    return one;
}

/* The next library's function of that name, which is found when it is first called. */
#define NEXT(name) (next ? next : (next = (__typeof__(next))dlsym(RTLD_NEXT, name)))

extern uint32_t wiretwin_sim_host(void) __attribute__((weak));

int MPI_Comm_split_type(MPI_Comm communicator, int type, int key, MPI_Info info, MPI_Comm *made)
{
    /* Who asks for nothing takes part in what the others ask for, which is this nearly always. */
    if (type == MPI_COMM_TYPE_SHARED || type == MPI_UNDEFINED)
        return MPI_Comm_split(communicator, type == MPI_UNDEFINED ? type : (int)wiretwin_sim_host(), key, made);
    static int (*next)(MPI_Comm, int, int, MPI_Info, MPI_Comm *);
    return NEXT("MPI_Comm_split_type")(communicator, type, key, info, made);
}

/* A file of so many bytes that all ranks of a communicator map; nothing if one of them cannot. */
static char *mapped(MPI_Comm communicator, int rank, size_t bytes)
{
    char path[PATH] = "";
    const char *run = getenv("WIRETWIN_SIM");
    if (rank == 0 && run && snprintf(path, sizeof path, "%s-window-XXXXXX", run) < (int)sizeof path) {
        int made = mkostemp(path, O_CLOEXEC);
        if (made < 0 || posix_fallocate(made, 0, (off_t)bytes))
            path[0] = 0;
        if (made >= 0)
            close(made);
    }
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, communicator);
    int file = path[0] ? open(path, O_RDWR | O_CLOEXEC) : -1;
    char *memory = file < 0 ? MAP_FAILED : mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    int is_there = memory != MAP_FAILED, are_all_there;
    MPI_Allreduce(&is_there, &are_all_there, 1, MPI_INT, MPI_MIN, communicator);
    if (rank == 0 && path[0])
        unlink(path);
    if (is_there && !are_all_there)
        munmap(memory, bytes);
    return are_all_there ? memory : 0;
}

static int allocate(int flavor, MPI_Aint bytes, MPI_Aint unit, MPI_Info info, MPI_Comm communicator, void *base,
                    MPI_Win *window)
{
    int ranks, rank, is_apart = 0, has = 0;
    char value[8] = "";
    MPI_Comm_size(communicator, &ranks);
    MPI_Comm_rank(communicator, &rank);
    struct shared *made = calloc(1, sizeof *made + ranks * sizeof *made->segments);
    MPI_Aint own[3] = {bytes, unit, (MPI_Aint)wiretwin_sim_host()}, *all = calloc(ranks, sizeof own);
    if (!made || !all)
        return MPI_ERR_NO_MEM;
    MPI_Allgather(own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, communicator);
    if (info != MPI_INFO_NULL)
        MPI_Info_get(info, "alloc_shared_noncontig", sizeof value - 1, value, &has);
    int is_apart_in_memory = flavor == MPI_WIN_FLAVOR_ALLOCATE || (has && !strcmp(value, "true"));
    for (int at = 0; at < ranks; at++) {
        made->segments[at] = (struct segment){all[3 * at], all[3 * at + 1], (char *)made->bytes};
        made->bytes += all[3 * at];
        if (is_apart_in_memory)
            made->bytes = (made->bytes + LINE - 1) / LINE * LINE;
        is_apart |= all[3 * at + 2] != own[2];
    }
    free(all);
    made->ranks = ranks;
    made->flavor = flavor;
    made->memory = is_apart ? 0 : mapped(communicator, rank, made->bytes ? made->bytes : 1);
    if (!made->memory) {
        fprintf(stderr, "wiretwin: MPI_Win_allocate_shared: %s\n",
                is_apart ? "the ranks of the communicator are on several hosts; allowed: those of one, as "
                           "MPI_Comm_split_type with MPI_COMM_TYPE_SHARED gives them"
                         : "there is no room for that memory");
        free(made);
        MPI_Comm_call_errhandler(communicator, MPI_ERR_RMA_SHARED);
        return MPI_ERR_RMA_SHARED;
    }
    for (int at = 0; at < ranks; at++)
        made->segments[at].base = made->memory + (uintptr_t)made->segments[at].base;
    void *mine = made->segments[rank].base;
    /* The hints are about the shared memory: no_locks, say, must not reach the window that messages use. */
    int error = MPI_Win_create(mine, bytes, (int)unit, MPI_INFO_NULL, communicator, window);
    if (error)
        return error;
    made->window = *window;
    made->next = windows;
    windows = made;
    *(void **)base = mine;
    return MPI_SUCCESS;
}

static int query(struct shared *one, int rank, MPI_Aint *bytes, MPI_Aint *unit, void *base)
{
    if (rank >= one->ranks) {
        MPI_Win_call_errhandler(one->window, MPI_ERR_RANK);
        return MPI_ERR_RANK;
    }
    /* The first that has any, for no rank in particular. */
    if (rank == MPI_PROC_NULL)
        for (rank = 0; rank < one->ranks - 1 && one->segments[rank].bytes == 0;)
            rank++;
    *bytes = one->segments[rank].bytes;
    *unit = one->segments[rank].unit;
    *(void **)base = one->segments[rank].base;
    return MPI_SUCCESS;
}

int MPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm communicator, void *base, MPI_Win *window)
{
    return allocate(MPI_WIN_FLAVOR_SHARED, bytes, unit, info, communicator, base, window);
}

int MPI_Win_shared_query(MPI_Win window, int rank, MPI_Aint *bytes, int *unit, void *base)
{
    static int (*next)(MPI_Win, int, MPI_Aint *, int *, void *);
    struct shared *one = known(window);
    if (!one)
        return NEXT("MPI_Win_shared_query")(window, rank, bytes, unit, base);
    MPI_Aint wide = 0;
    int error = query(one, rank, bytes, &wide, base);
    *unit = (int)wide;
    return error;
}

#if MPI_VERSION >= 4
int MPI_Win_allocate_shared_c(MPI_Aint bytes, MPI_Aint unit, MPI_Info info, MPI_Comm communicator, void *base,
                              MPI_Win *window)
{
    return allocate(MPI_WIN_FLAVOR_SHARED, bytes, unit, info, communicator, base, window);
}

int MPI_Win_shared_query_c(MPI_Win window, int rank, MPI_Aint *bytes, MPI_Aint *unit, void *base)
{
    static int (*next)(MPI_Win, int, MPI_Aint *, MPI_Aint *, void *);
    struct shared *one = known(window);
    return one ? query(one, rank, bytes, unit, base)
               : NEXT("MPI_Win_shared_query_c")(window, rank, bytes, unit, base);
}
#endif

int MPI_Win_free(MPI_Win *window)
{
    static int (*next)(MPI_Win *);
    struct shared **at = &windows;
    while (*at && (*at)->window != *window)
        at = &(*at)->next;
    struct shared *one = *at;
    int error = NEXT("MPI_Win_free")(window);
    if (one && !error) {
        *at = one->next;
        munmap(one->memory, one->bytes ? one->bytes : 1);
        free(one);
    }
    return error;
}

int MPI_Win_get_attr(MPI_Win window, int key, void *value, int *is_set)
{
    static int (*next)(MPI_Win, int, void *, int *);
    struct shared *one = known(window);
    if (key != MPI_WIN_CREATE_FLAVOR || !one)
        return NEXT("MPI_Win_get_attr")(window, key, value, is_set);
    *(int **)value = &one->flavor;
    *is_set = 1;
    return MPI_SUCCESS;
}

/* As Fortran calls them. */
#define ALSO(name) __typeof__(MPI_##name) PMPI_##name __attribute__((alias("MPI_" #name)))
ALSO(Comm_split_type);
ALSO(Win_allocate_shared);
ALSO(Win_shared_query);
ALSO(Win_free);
ALSO(Win_get_attr);

#ifdef MPICH
#include "sim_windows.h"
#endif
