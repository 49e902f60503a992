/* The shim of every MPI: MPI_Send, MPI_Recv, MPI_Irecv, MPI_Isend, MPI_Waitall on bytes.
 *
 * Messages travel on a duplicate of MPI_COMM_WORLD, those with WT_CONTROL on another, so that no wildcard
 * takes them. Nothing is added to a message. Built with the mpicc of each MPI.
 *
 * Options: `max_bytes` (a longer message is refused; 0 for none), `why` (the words of that refusal),
 * `report` (names of MPI_T control variables separated by blanks, whose values go to `effective`), `idle_us` (a
 * rank that waits gives way: it asks ASKS times, then sleeps for so long between questions; 0 to wait as the
 * library does). Ranks that give way take the real-time priority in WIRETWIN_PRIORITY, if one is asked for,
 * when MPI_Init is over and until MPI_Finalize: in those two they wait in a loop. */
#define _GNU_SOURCE
#include "wiretwin_shim.h"

#include <dlfcn.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { ASKS = 32 };

typedef struct {
    MPI_Comm data, control;
    int32_t rank, size;
    int64_t tag_limit;
    uint64_t max_bytes;
    long idle_ns;
    char why[200];
    int room; /* requests and statuses there is room for */
    MPI_Request *requests;
    MPI_Status *statuses;
    void *out, *in; /* buffers of what ranks do together */
    uint64_t together_room;
    int *counts; /* of each rank, then their places */
    MPI_Datatype *types;
#if MPI_VERSION >= 3
    MPI_Win window;
    void *target; /* the memory of this rank in it */
    uint64_t window_room;
#endif
    char error[MPI_MAX_ERROR_STRING + 64];
} layer;

typedef struct {
    char report[1024];
    char why[200];
    uint64_t max_bytes;
    long idle_us;
} settings;

int wt_abi(void) { return WT_ABI; }

static int set(settings *to, const char *key, const char *value, char *error, size_t room) {
    if (!strcmp(key, "directory") || !strcmp(key, "limit_s") || !strcmp(key, "rank") || !strcmp(key, "size")) return 1;
    if (!strcmp(key, "report")) snprintf(to->report, sizeof to->report, "%s", value);
    else if (!strcmp(key, "why")) snprintf(to->why, sizeof to->why, "%s", value);
    else if (!strcmp(key, "max_bytes")) to->max_bytes = strtoull(value, NULL, 10);
    else if (!strcmp(key, "idle_us") && strtoul(value, NULL, 10) < 1000000) to->idle_us = strtol(value, NULL, 10);
    else {
        snprintf(error, room, "option %.80s=%.80s is not allowed: max_bytes, why, report, idle_us below 1000000", key, value);
        return 0;
    }
    return 1;
}

static int read_settings(settings *to, const char *options, char *error, size_t room) {
    memset(to, 0, sizeof *to);
    char *copy = strdup(options), *rest = copy;
    int good = copy != NULL;
    for (char *line; good && (line = strsep(&rest, "\n"));) {
        char *equals = strchr(line, '=');
        if (!equals) continue;
        *equals = 0;
        good = set(to, line, equals + 1, error, room);
    }
    free(copy);
    return good;
}

/* A JSON string in progress, never longer than its room. */
typedef struct {
    char *at;
    size_t left;
} text;

static void put(text *to, const char *chars) {
    size_t length = strlen(chars);
    if (length >= to->left) length = to->left ? to->left - 1 : 0;
    memcpy(to->at, chars, length);
    to->at += length;
    to->left -= length;
    if (to->left) *to->at = 0;
}

static void put_pair(text *to, const char *key, const char *value, int quoted) {
    char clean[300];
    size_t length = 0;
    /* The first line, with one blank where there are several or a tab. */
    for (const char *from = value; *from && *from != '\n' && length + 2 < sizeof clean; from++) {
        char now = (unsigned char)*from < 0x20 ? ' ' : *from;
        if (now == ' ' && (!length || clean[length - 1] == ' ')) continue;
        if (now == '"' || now == '\\') clean[length++] = '\\';
        clean[length++] = now;
    }
    while (length && clean[length - 1] == ' ') length--;
    clean[length] = 0;
    if (strlen(key) + length + 16 > to->left) return; /* the object stays whole */
    if (to->at[-1] != '{') put(to, ",");
    put(to, "\"");
    put(to, key);
    put(to, quoted ? "\":\"" : "\":");
    put(to, clean);
    if (quoted) put(to, "\"");
}

#if MPI_VERSION >= 3
/* Values of the control variables that were asked for, of those this MPI has. */
static void put_variables(text *to, const char *names) {
    int provided, count = 0;
    if (!*names || MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return;
    MPI_T_cvar_get_num(&count);
    for (int index = 0; index < count; index++) {
        char name[256], padded[260], shown[256], list[1040];
        int length = sizeof name, verbosity, bind, scope, description = 0, elements;
        MPI_Datatype kind;
        MPI_T_enum names_of;
        MPI_T_cvar_handle handle;
        if (MPI_T_cvar_get_info(index, name, &length, &verbosity, &kind, &names_of, NULL, &description, &bind, &scope))
            continue;
        snprintf(padded, sizeof padded, " %s ", name);
        snprintf(list, sizeof list, " %s ", names);
        if (!strstr(list, padded)) continue;
        if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &elements) != MPI_SUCCESS) continue;
        union {
            int number;
            unsigned whole;
            unsigned long wide;
            unsigned long long widest;
            double real;
            char words[4096];
        } value;
        memset(&value, 0, sizeof value);
        int quoted = 0, known = (size_t)elements <= sizeof value && (elements == 1 || kind == MPI_CHAR)
                                && MPI_T_cvar_read(handle, &value) == MPI_SUCCESS;
        if (kind == MPI_INT) snprintf(shown, sizeof shown, "%d", value.number);
        else if (kind == MPI_UNSIGNED) snprintf(shown, sizeof shown, "%u", value.whole);
        else if (kind == MPI_UNSIGNED_LONG) snprintf(shown, sizeof shown, "%lu", value.wide);
        else if (kind == MPI_UNSIGNED_LONG_LONG) snprintf(shown, sizeof shown, "%llu", value.widest);
        else if (kind == MPI_CHAR) {
            value.words[sizeof value.words - 1] = 0;
            snprintf(shown, sizeof shown, "%.200s", value.words);
            quoted = 1;
        } else known = 0;
        if (known) put_pair(to, name, shown, quoted);
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
}
#endif

static void report(layer *self, const settings *with, wt_info *info) {
    text to = {info->effective, sizeof info->effective - 2};
    char standard[32];
    int version = 0, part = 0;
    (void)self;
    put(&to, "{");
    MPI_Get_version(&version, &part);
    snprintf(standard, sizeof standard, "%d.%d", version, part);
#if MPI_VERSION >= 3
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    if (MPI_Get_library_version(library, &length) == MPI_SUCCESS) {
        put_pair(&to, "library", library, 1);
    }
    put_pair(&to, "mpi_standard", standard, 1);
    put_variables(&to, with->report);
#else
    (void)with;
#ifdef LAM_MPI
    char library[64];
    snprintf(library, sizeof library, "LAM %d.%d.%d", LAM_MAJOR_VERSION, LAM_MINOR_VERSION, LAM_RELEASE_VERSION);
    put_pair(&to, "library", library, 1);
    const char *rpi = getenv("LAM_MPI_SSI_rpi");
    if (rpi) put_pair(&to, "rpi", rpi, 1);
#endif
    put_pair(&to, "mpi_standard", standard, 1);
#endif
    int *limit, found = 0;
#if MPI_VERSION >= 2
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
#else
    MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
#endif
    self->tag_limit = found ? *limit : 32767;
    if (with->max_bytes) {
        char most[32];
        snprintf(most, sizeof most, "%llu", (unsigned long long)with->max_bytes);
        put_pair(&to, "max_bytes", most, 0);
    }
    if (with->idle_us) {
        char idle[32];
        snprintf(idle, sizeof idle, "%ld", with->idle_us);
        put_pair(&to, "idle_us", idle, 0);
    }
    to.left += 2;
    put(&to, "}");
}

static int failed(layer *self, int code) {
    int kind = MPI_ERR_OTHER, length = 0;
    MPI_Error_class(code, &kind);
    if (MPI_Error_string(code, self->error, &length) != MPI_SUCCESS)
        snprintf(self->error, sizeof self->error, "MPI error code %d", code);
    for (char *at = self->error; *at; at++)
        if (*at == '\n') *at = ' ';
    return kind == MPI_ERR_TRUNCATE ? WT_TRUNCATED : WT_TRANSPORT;
}

/* Goes before everything ordinary, or no longer. */
static int in_front(const layer *self, int on) {
    const char *text = getenv("WIRETWIN_PRIORITY");
    if (!self->idle_ns || !text || !*text) return 1;
    struct sched_param priority = {.sched_priority = on ? atoi(text) : 0};
    return !sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &priority);
}

int wt_open(const char *options, void **out, wt_info *info, char *error, size_t room) {
    settings with;
    layer *self = calloc(1, sizeof *self);
    if (!self || !read_settings(&with, options, error, room)) {
        free(self);
        return WT_UNSUPPORTED;
    }
    int code = MPI_Init(NULL, NULL);
    if (code == MPI_SUCCESS) code = MPI_Comm_dup(MPI_COMM_WORLD, &self->data);
    if (code == MPI_SUCCESS) code = MPI_Comm_dup(MPI_COMM_WORLD, &self->control);
#if MPI_VERSION >= 2
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(self->data, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(self->control, MPI_ERRORS_RETURN);
#else
    if (code == MPI_SUCCESS) code = MPI_Errhandler_set(self->data, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS) code = MPI_Errhandler_set(self->control, MPI_ERRORS_RETURN);
#endif
    if (code != MPI_SUCCESS) {
        failed(self, code);
        snprintf(error, room, "%s", self->error);
        free(self);
        return WT_TRANSPORT;
    }
    int rank, size;
    MPI_Comm_rank(self->data, &rank);
    MPI_Comm_size(self->data, &size);
    info->rank = self->rank = rank;
    info->size = self->size = size;
    self->max_bytes = with.max_bytes;
    self->idle_ns = with.idle_us * 1000;
    if (self->idle_ns) prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0); /* 50 us by default */
    if (!in_front(self, 1)) {
        snprintf(error, room, "no real-time priority %.20s (WIRETWIN_PRIORITY): needs root and 1 to 97", getenv("WIRETWIN_PRIORITY"));
        free(self);
        return WT_TRANSPORT;
    }
    memcpy(self->why, with.why, sizeof self->why);
    report(self, &with, info);
    *out = self;
    return WT_OK;
}

static int too_long(layer *self, uint64_t bytes) {
    if (self->max_bytes && bytes > self->max_bytes) {
        snprintf(self->error, sizeof self->error, "a message of %llu bytes: the most is %llu%s%s", (unsigned long long)bytes,
                 (unsigned long long)self->max_bytes, *self->why ? ", " : "", self->why);
        return WT_UNSUPPORTED;
    }
    if (bytes > INT_MAX) {
        snprintf(self->error, sizeof self->error, "a message of %llu bytes: MPI counts in a signed int",
                 (unsigned long long)bytes);
        return WT_UNSUPPORTED;
    }
    return WT_OK;
}

/* The communicator and the tag there; 0 if MPI has no such tag. */
static inline int channel(layer *self, int64_t tag, MPI_Comm *comm, int *mpi_tag) {
    *comm = tag == WT_CONTROL ? self->control : self->data;
    *mpi_tag = tag == WT_CONTROL ? 0 : tag < 0 ? MPI_ANY_TAG : (int)tag;
    return tag == WT_CONTROL || tag <= self->tag_limit;
}

static int no_tag(layer *self, int64_t tag) {
    snprintf(self->error, sizeof self->error, "tag %lld: the largest of this MPI is %lld", (long long)tag,
             (long long)self->tag_limit);
    return WT_UNSUPPORTED;
}

/* MPI_Waitall, giving way meanwhile if that was asked for. */
static int await_all(const layer *self, int count, MPI_Request *requests, MPI_Status *statuses) {
    if (!self->idle_ns) return MPI_Waitall(count, requests, statuses);
    for (int asked = 0;; asked++) {
        int done = 0, code = MPI_Testall(count, requests, &done, statuses);
        if (code != MPI_SUCCESS || done) return code;
        if (asked < ASKS) sched_yield();
        else nanosleep(&(struct timespec){.tv_nsec = self->idle_ns}, NULL);
    }
}

int wt_send(void *me, int32_t to, uint32_t tag, const void *data, uint64_t bytes) {
    layer *self = me;
    MPI_Comm comm;
    int mpi_tag;
    if (bytes > INT_MAX || (self->max_bytes && bytes > self->max_bytes)) return too_long(self, bytes);
    if (!channel(self, tag, &comm, &mpi_tag)) return no_tag(self, tag);
    int code;
    if (self->idle_ns) {
        MPI_Request request;
        MPI_Status status;
        code = MPI_Isend((void *)data, (int)bytes, MPI_BYTE, to, mpi_tag, comm, &request);
        if (code == MPI_SUCCESS) code = await_all(self, 1, &request, &status);
    } else {
        code = MPI_Send((void *)data, (int)bytes, MPI_BYTE, to, mpi_tag, comm);
    }
    return code == MPI_SUCCESS ? WT_OK : failed(self, code);
}

static void fill(const layer *self, wt_status *to, MPI_Status *from, MPI_Comm comm) {
    int count = 0;
    MPI_Get_count(from, MPI_BYTE, &count);
    to->source = from->MPI_SOURCE;
    to->tag = comm == self->control ? WT_CONTROL : (uint32_t)from->MPI_TAG;
    to->bytes = (uint64_t)count;
}

int wt_recv(void *me, int32_t from, int64_t tag, void *data, uint64_t capacity, wt_status *status) {
    layer *self = me;
    MPI_Comm comm;
    MPI_Status came;
    int mpi_tag;
    if (!channel(self, tag, &comm, &mpi_tag)) return no_tag(self, tag);
    int room = capacity > INT_MAX ? INT_MAX : (int)capacity;
    int code, source = from < 0 ? MPI_ANY_SOURCE : from;
    if (self->idle_ns) {
        MPI_Request request;
        code = MPI_Irecv(data, room, MPI_BYTE, source, mpi_tag, comm, &request);
        if (code == MPI_SUCCESS) code = await_all(self, 1, &request, &came);
        if (code == MPI_ERR_IN_STATUS) code = came.MPI_ERROR;
    } else {
        code = MPI_Recv(data, room, MPI_BYTE, source, mpi_tag, comm, &came);
    }
    if (code != MPI_SUCCESS) {
        status->bytes = 0; /* how long it was is told by some MPIs only */
        return failed(self, code);
    }
    fill(self, status, &came, comm);
    return WT_OK;
}

static int make_room(layer *self, int count) {
    if (count <= self->room) return 1;
    MPI_Request *requests = realloc(self->requests, (size_t)count * sizeof *requests);
    if (requests) self->requests = requests;
    MPI_Status *statuses = realloc(self->statuses, (size_t)count * sizeof *statuses);
    if (statuses) self->statuses = statuses;
    if (!requests || !statuses) return 0;
    self->room = count;
    return 1;
}

int wt_exchange(void *me, const wt_outgoing *sends, int32_t n_sends, wt_incoming *receives, int32_t n_receives) {
    layer *self = me;
    int count = n_sends + n_receives, code = MPI_SUCCESS, mpi_tag;
    MPI_Comm comm;
    /* Everything is checked before anything is started. */
    for (int i = 0; i < n_sends; i++) {
        int refused = too_long(self, sends[i].bytes);
        if (refused != WT_OK) return refused;
        if (!channel(self, sends[i].tag, &comm, &mpi_tag)) return no_tag(self, sends[i].tag);
    }
    for (int i = 0; i < n_receives; i++)
        if (!channel(self, receives[i].tag, &comm, &mpi_tag)) return no_tag(self, receives[i].tag);
    if (!make_room(self, count)) {
        snprintf(self->error, sizeof self->error, "no memory for %d requests", count);
        return WT_TRANSPORT;
    }
    int posted = 0;
    for (int i = 0; i < n_receives && code == MPI_SUCCESS; i++) {
        wt_incoming *in = &receives[i];
        channel(self, in->tag, &comm, &mpi_tag);
        int room = in->capacity > INT_MAX ? INT_MAX : (int)in->capacity;
        code = MPI_Irecv(in->data, room, MPI_BYTE, in->from < 0 ? MPI_ANY_SOURCE : in->from, mpi_tag, comm,
                         &self->requests[posted]);
        posted += code == MPI_SUCCESS;
    }
    for (int i = 0; i < n_sends && code == MPI_SUCCESS; i++) {
        channel(self, sends[i].tag, &comm, &mpi_tag);
        code = MPI_Isend((void *)sends[i].data, (int)sends[i].bytes, MPI_BYTE, sends[i].to, mpi_tag, comm,
                         &self->requests[posted]);
        posted += code == MPI_SUCCESS;
    }
    if (code != MPI_SUCCESS) return failed(self, code);
    code = await_all(self, count, self->requests, self->statuses);
    if (code != MPI_SUCCESS) {
        int kind;
        MPI_Error_class(code, &kind);
        if (kind == MPI_ERR_IN_STATUS)
            for (int i = 0; i < count; i++)
                if (self->statuses[i].MPI_ERROR != MPI_SUCCESS && self->statuses[i].MPI_ERROR != MPI_ERR_PENDING)
                    code = self->statuses[i].MPI_ERROR;
        return failed(self, code);
    }
    for (int i = 0; i < n_receives; i++) {
        channel(self, receives[i].tag, &comm, &mpi_tag);
        fill(self, &receives[i].status, &self->statuses[i], comm);
    }
    return WT_OK;
}

#include "mpi_together.h"

int wt_call(void *me) {
    layer *self = me;
    int code = MPI_Send(self->error, 0, MPI_BYTE, MPI_PROC_NULL, 0, self->data);
    return code == MPI_SUCCESS ? WT_OK : failed(self, code);
}

/* Open MPI's launcher has ranks give way while they wait where they are more than cores, and not otherwise: what
 * ompi_mpi_init calls then. */
void wt_crowded(void) {
    void (*set)(bool) = (void (*)(bool))dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
    if (set) set(true);
}

const char *wt_error(void *me) { return ((layer *)me)->error; }

void wt_close(void *me) {
    layer *self = me;
    in_front(self, 0);
#if MPI_VERSION >= 3
    free_window(self);
#endif
    MPI_Comm_free(&self->data);
    MPI_Comm_free(&self->control);
    MPI_Finalize();
    free(self->requests);
    free(self->statuses);
    free_together(self);
    free(self);
}
