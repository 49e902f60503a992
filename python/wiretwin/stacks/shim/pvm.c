/* PVM 3 behind the shim's ABI: `pvm_initsend`, `pvm_pkbyte`, `pvm_send`; `pvm_recv`, `pvm_upkbyte`.
 *
 * A daemon (pvmd) must run on this host; whoever starts the ranks starts it. The ranks find each other by
 * PVM's own mailbox (`pvm_putinfo`), which also shows that their daemons are one virtual machine.
 *
 * Options, besides rank, size, directory and limit_s:
 *   route     normal (through the daemons) or direct (task to task, "advise"); default normal
 *   encoding  default (XDR), raw or inplace; default default
 *   name      of the launch, unique in the virtual machine; default the last part of directory
 *
 * Tags: a message's tag is the tag of PVM, four times as large plus the octets that XDR padded (0 to 3): the
 * length that PVM reports is the padded one. Only with the default encoding must a receive look past the
 * padding, by `pvm_recvf`. Tags from 2^29 - 2 on are refused; WT_CONTROL becomes
 * 2^29 - 2. */

#include <dirent.h>
#include <pvm3.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <netinet/in.h>

#include "wt_common.h"

#define LAST_TAG ((1u << 29) - 2)
/* Larger than any of ours: the greeting that makes PVM connect before anything is measured. */
#define GREETING INT_MAX
/* Nobody sends it. */
#define NEVER (GREETING - 1)
/* How long a rank waits, in s, for the tasks it lets connect to do so, and how long at a stretch, in us. */
#define CONNECT_S 5.0
#define CONNECT_US 10000

typedef struct {
    wt_options options;
    int encoding, route, padded;
    int *tids;
    char error[WT_ERROR_BYTES];
} self_t;

int wt_abi(void) { return 1; }

static int failed(self_t *self, const char *what, int code) {
    static const struct {
        int code;
        const char *name;
    } names[] = {{PvmBadParam, "PvmBadParam"},   {PvmNoData, "PvmNoData"},     {PvmNoMem, "PvmNoMem"},
                 {PvmBadMsg, "PvmBadMsg"},       {PvmSysErr, "PvmSysErr: the daemon (pvmd) does not answer"},
                 {PvmNoBuf, "PvmNoBuf"},         {PvmHostFail, "PvmHostFail"}, {PvmNotFound, "PvmNotFound"},
                 {PvmNoParent, "PvmNoParent"},   {PvmExists, "PvmExists"},     {PvmOverflow, "PvmOverflow"},
                 {PvmNotImpl, "PvmNotImpl"},     {PvmOutOfRes, "PvmOutOfRes"}, {PvmBadVersion, "PvmBadVersion"},
                 {PvmDSysErr, "PvmDSysErr"}};
    const char *name = "unknown error";
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (names[at].code == code) name = names[at].name;
    wt_say(self->error, sizeof self->error, "%s: %s (%d)", what, name, code);
    return code == PvmHostFail ? WT_PEER_LOST : WT_TRANSPORT;
}

/* The tag of PVM without the padding. */
static int to_pvm(uint32_t tag) { return tag == WT_CONTROL ? (int)LAST_TAG : (int)tag; }
static uint32_t from_pvm(int tag) { return (uint32_t)tag == LAST_TAG ? WT_CONTROL : (uint32_t)tag; }

/* What `pvm_recv` takes if lengths are padded: 1 takes the message at once, 0 passes it over. */
static int match_padded(int message, int tid, int tag) {
    int bytes, came, from;
    if (pvm_bufinfo(message, &bytes, &came, &from) < 0) return 0;
    if (tid != -1 && tid != from) return 0;
    if (came == GREETING || tag == GREETING) return came == tag;
    return tag == came >> 2 || (tag == -1 && came >> 2 != (int)LAST_TAG);
}

/* What a wildcard takes if lengths are as they are: any tag but that of messages about the run. */
static int match_any(int message, int tid, int tag) {
    int bytes, came, from;
    if (pvm_bufinfo(message, &bytes, &came, &from) < 0) return 0;
    return (tid == -1 || tid == from) && tag == -1 && came != (int)LAST_TAG;
}

/* The shortest way to tell that no other task of this launch had the mailbox entry before. */
static void entry_name(const self_t *self, int32_t rank, char *into, size_t size) {
    const char *name = wt_option(&self->options, "name", NULL);
    if (!name) {
        const char *slash = strrchr(self->options.directory, '/');
        name = slash ? slash + 1 : self->options.directory;
    }
    snprintf(into, size, "wiretwin:%s:%d", name, rank);
}

static int meet(self_t *self) {
    const wt_options *options = &self->options;
    char name[256];
    int buffer, code;
    int own = pvm_mytid();
    entry_name(self, options->rank, name, sizeof name);
    if ((buffer = pvm_initsend(PvmDataDefault)) < 0 || (code = pvm_pkint(&own, 1, 1)) < 0)
        return failed(self, "pvm_initsend", buffer < 0 ? buffer : code);
    if ((code = pvm_putinfo(name, buffer, PvmMboxDefault)) < 0) return failed(self, "pvm_putinfo", code);
    /* A file says that the entry is there, so that nobody asks the daemons for it again and again. */
    double deadline = wt_now() + wt_meeting_s(options);
    char file[32], *text;
    size_t bytes;
    snprintf(file, sizeof file, "pvm-%d", options->rank);
    code = wt_publish(options, file, name, strlen(name), self->error, sizeof self->error);
    if (code != WT_OK) return code;
    for (int32_t rank = 0; rank < options->size; rank++) {
        snprintf(file, sizeof file, "pvm-%d", rank);
        code = wt_look_up(options, file, deadline, &text, &bytes, self->error, sizeof self->error);
        if (code != WT_OK) return code;
        free(text);
        entry_name(self, rank, name, sizeof name);
        if ((code = pvm_recvinfo(name, 0, PvmMboxDefault)) == PvmNotFound) {
            return wt_say(self->error, sizeof self->error,
                          "rank %d is not in this host's virtual machine: there is no '%s'", rank, name);
        }
        if (code < 0) return failed(self, "pvm_recvinfo", code);
        if ((code = pvm_upkint(&self->tids[rank], 1, 1)) < 0) return failed(self, "pvm_upkint", code);
    }
    return WT_OK;
}

typedef struct {
    int inet, local;
} sockets_t;

/* Connected stream sockets of this process, by kind: a direct route is one that was not there before. */
static sockets_t connected(void) {
    sockets_t found = {0, 0};
    DIR *directory = opendir("/proc/self/fd");
    if (!directory) return found;
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        int type;
        socklen_t type_length = sizeof type;
        int file = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || getpeername(file, (struct sockaddr *)&peer, &length) != 0) continue;
        if (getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &type_length) != 0 || type != SOCK_STREAM) continue;
        if (peer.ss_family == AF_UNIX) found.local++;
        if (peer.ss_family == AF_INET || peer.ss_family == AF_INET6) found.inet++;
    }
    closedir(directory);
    return found;
}

/* Each rank greets each other one and waits for its greeting: the first message to a task is what makes PVM
 * ask it for a connection, and until the answer came all messages wait. */
static int greet(self_t *self) {
    const wt_options *options = &self->options;
    int code;
    for (int32_t rank = 0; rank < options->size; rank++) {
        if (rank == options->rank) continue;
        if ((code = pvm_initsend(PvmDataDefault)) < 0) return failed(self, "pvm_initsend", code);
        if ((code = pvm_send(self->tids[rank], GREETING)) < 0) return failed(self, "pvm_send", code);
    }
    double deadline = wt_now() + wt_meeting_s(options);
    for (int32_t rank = 0; rank < options->size; rank++) {
        if (rank == options->rank) continue;
        double left = deadline - wt_now();
        struct timeval limit = {left > 0 ? (time_t)left : 0, 0};
        if ((code = pvm_trecv(self->tids[rank], GREETING, &limit)) < 0) return failed(self, "pvm_trecv", code);
        if (code == 0) {
            wt_say(self->error, sizeof self->error, "rank %d joined and then said nothing", rank);
            return WT_TIMED_OUT;
        }
    }
    return WT_OK;
}

/* Of two tasks, one asks for the connection and is connected once its first message left; the other accepts
 * it when it next looks at its sockets. It may have had no cause to: messages pass the daemons until then.
 * Looks until every peer is connected, or for so long that PVM must have refused. Gives the direct routes. */
static int settle(self_t *self, sockets_t before, sockets_t *direct) {
    double deadline = wt_now() + CONNECT_S;
    for (;;) {
        sockets_t now = connected();
        *direct = (sockets_t){now.inet - before.inet, now.local - before.local};
        if (self->route != PvmRouteDirect || direct->inet + direct->local >= self->options.size - 1 ||
            wt_now() > deadline)
            return WT_OK;
        struct timeval stretch = {0, CONNECT_US};
        int code = pvm_trecv(-1, NEVER, &stretch);
        if (code < 0) return failed(self, "pvm_trecv", code);
    }
}

static void describe(const self_t *self, sockets_t direct, char *into, size_t size) {
    static const char *encodings[] = {"default", "raw", "inplace"};
    const wt_options *options = &self->options;
    int taken = direct.inet + direct.local, peers = options->size - 1;
    snprintf(into, size,
             "{\"pvm\":\"%s\",\"route\":\"%s\",\"route_taken\":\"%s\",\"direct_connections\":%d,"
             "\"direct_over\":\"%s\",\"encoding\":\"%s\",\"fragment_bytes\":%d,\"task\":\"t%x\",\"ranks\":%d}",
             pvm_version(), pvm_getopt(PvmRoute) == PvmRouteDirect ? "direct" : "normal",
             taken == 0 ? "normal" : taken >= peers ? "direct" : "mixed", taken,
             direct.inet ? "tcp" : direct.local ? "unix" : "none", encodings[self->encoding], pvm_getopt(PvmFragSize),
             pvm_mytid(), options->size);
}

int wt_open(const char *text, void **opened, wt_info *info, char *error, size_t error_size) {
    self_t *self = calloc(1, sizeof *self);
    if (!self) return wt_say(error, error_size, "no memory");
    static const char *const own[] = {"route", "encoding", "name", NULL};
    int code = wt_read_options(text, own, &self->options, error, error_size);
    if (code != WT_OK) goto refused;
    const char *route = wt_option(&self->options, "route", "normal");
    const char *encoding = wt_option(&self->options, "encoding", "default");
    self->route = strcmp(route, "direct") == 0 ? PvmRouteDirect : PvmDontRoute;
    self->encoding = strcmp(encoding, "raw") == 0       ? PvmDataRaw
                     : strcmp(encoding, "inplace") == 0 ? PvmDataInPlace
                                                        : PvmDataDefault;
    self->padded = self->encoding == PvmDataDefault;
    if (strcmp(route, "direct") && strcmp(route, "normal")) {
        code = wt_say(error, error_size, "options: route=%s is not allowed: normal, direct", route);
        goto refused;
    }
    if (self->encoding == PvmDataDefault && strcmp(encoding, "default")) {
        code = wt_say(error, error_size, "options: encoding=%s is not allowed: default, raw, inplace", encoding);
        goto refused;
    }
    self->tids = calloc((size_t)self->options.size, sizeof *self->tids);
    pvm_setopt(PvmAutoErr, 0); /* errors are ours to tell */
    int tid = pvm_mytid();
    if (tid < 0) {
        failed(self, "pvm_mytid", tid);
        code = wt_say(error, error_size, "no PVM daemon answers on this host: %s", self->error);
        goto refused;
    }
    pvm_setopt(PvmRoute, self->route);
    /* Before anybody knows this task: a peer that met everybody first may connect while this one still meets. */
    sockets_t before = connected(), direct = {0, 0};
    if ((code = meet(self)) == WT_OK) {
        if (self->padded) pvm_recvf(match_padded);
        code = greet(self);
        if (code == WT_OK) code = settle(self, before, &direct);
        /* Once more, so that nobody measures while another one still waits for its connections. */
        if (code == WT_OK) code = greet(self);
    }
    if (code != WT_OK) {
        wt_say(error, error_size, "%s", self->error);
        pvm_exit();
        goto refused;
    }
    info->rank = self->options.rank;
    info->size = self->options.size;
    describe(self, direct, info->effective, sizeof info->effective);
    *opened = self;
    return WT_OK;
refused:
    free(self->tids);
    free(self->options.lines);
    free(self);
    return code;
}

int wt_send(void *opened, int32_t to, uint32_t tag, const void *data, uint64_t bytes) {
    self_t *self = opened;
    int code;
    if (to < 0 || to >= self->options.size) return WT_NO_SUCH_RANK;
    if ((tag >= LAST_TAG && tag != WT_CONTROL) || bytes > INT_MAX) {
        wt_say(self->error, sizeof self->error, "PVM: a tag of %u or a message of %llu bytes is too large", tag,
               (unsigned long long)bytes);
        return WT_UNSUPPORTED;
    }
    int tagged = to_pvm(tag);
    if (self->padded) tagged = tagged << 2 | (int)(-bytes & 3);
    if ((code = pvm_initsend(self->encoding)) < 0) return failed(self, "pvm_initsend", code);
    if (bytes && (code = pvm_pkbyte((char *)data, (int)bytes, 1)) < 0) return failed(self, "pvm_pkbyte", code);
    if ((code = pvm_send(self->tids[to], tagged)) < 0) return failed(self, "pvm_send", code);
    return WT_OK;
}

int wt_recv(void *opened, int32_t from, int64_t tag, void *data, uint64_t capacity, wt_status *status) {
    self_t *self = opened;
    if (from >= self->options.size || from < -1) return WT_NO_SUCH_RANK;
    int special = tag < 0 && !self->padded;
    if (special) pvm_recvf(match_any);
    int buffer = pvm_recv(from < 0 ? -1 : self->tids[from], tag < 0 ? -1 : to_pvm((uint32_t)tag));
    if (special) pvm_recvf(NULL);
    if (buffer < 0) return failed(self, "pvm_recv", buffer);
    int bytes, came, sender, code;
    if ((code = pvm_bufinfo(buffer, &bytes, &came, &sender)) < 0) return failed(self, "pvm_bufinfo", code);
    if (self->padded) {
        bytes -= came & 3;
        came >>= 2;
    }
    if (from < 0)
        for (from = 0; from < self->options.size && self->tids[from] != sender;) from++;
    *status = (wt_status){from, from_pvm(came), (uint64_t)bytes};
    if ((uint64_t)bytes > capacity) return WT_TRUNCATED;
    if (bytes && (code = pvm_upkbyte(data, bytes, 1)) < 0) return failed(self, "pvm_upkbyte", code);
    return WT_OK;
}

/* A send returns when its buffer may be reused, and takes in what comes while it is stuck, so sending all
 * and then receiving in the order posted cannot deadlock. */
int wt_exchange(void *self, const wt_outgoing *sends, int32_t n_sends, wt_incoming *receives,
                int32_t n_receives) {
    int code = WT_OK;
    for (int32_t at = 0; at < n_sends && code == WT_OK; at++)
        code = wt_send(self, sends[at].to, sends[at].tag, sends[at].data, sends[at].bytes);
    for (int32_t at = 0; at < n_receives && code == WT_OK; at++)
        code = wt_recv(self, receives[at].from, receives[at].tag, receives[at].data, receives[at].capacity,
                       &receives[at].status);
    return code;
}

/* Looks for a message that never comes. */
int wt_call(void *opened) {
    int code = pvm_probe(-1, NEVER);
    return code < 0 ? failed(opened, "pvm_probe", code) : WT_OK;
}

const char *wt_error(void *self) { return ((self_t *)self)->error; }

void wt_close(void *opened) {
    self_t *self = opened;
    pvm_exit();
    free(self->tids);
    free(self->options.lines);
    free(self);
}
