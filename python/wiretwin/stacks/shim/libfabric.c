/* libfabric behind the shim's ABI: tagged messages of a reliable endpoint (`fi_tsend`, `fi_trecv`).
 *
 * The ranks show each other the names of their endpoints in the directory of the launch. A tag of libfabric holds
 * the sender's rank in its upper 32 bits and the message's tag in the lower ones, so no provider need tell who sent.
 *
 * Options, besides rank, size, directory and limit_s:
 *   provider  as in FI_PROVIDER, the core and what is layered on it; default tcp;ofi_rxm
 *   addresses of the hosts, separated by commas; rank r is on host r modulo their number. Default 127.0.0.1
 *   wait      spin, or yield: give way to others on the core while nothing comes; default spin
 *
 * Short messages are injected (no completion is waited for), as MPI libraries do. Every wait drives the provider
 * until the operation is complete, at most limit_s long. */

#include <arpa/inet.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>

#include "wt_common.h"

#define RANK_SHIFT 32
#define TAG_MASK 0xffffffffull
#define CONTROL_BIT (1ull << 31)
#define TURNS 4096
#define NAME_BYTES 512

/* A started operation. The provider owns `context` until the operation is complete. */
typedef struct {
    struct fi_context2 context;
    int done, code;
    uint64_t tag, length, over;
} operation_t;

typedef struct {
    wt_options options;
    int yield, shm;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *addresses;
    struct fid_cq *completions;
    struct fid_ep *endpoint;
    fi_addr_t *peers;
    operation_t *started; /* of an exchange */
    int32_t room;
    char error[WT_ERROR_BYTES];
} self_t;

int wt_abi(void) { return WT_ABI; }

static int meaning(int code) {
    switch (abs(code)) { /* the shm provider writes the code of a failed receive with a minus */
    case FI_ETRUNC: return WT_TRUNCATED;
    case FI_ETIMEDOUT: return WT_TIMED_OUT;
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ECONNREFUSED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
    case FI_EHOSTUNREACH:
    case FI_EIO: return WT_PEER_LOST;
    default: return WT_TRANSPORT;
    }
}

static int failed(self_t *self, const char *what, int code) {
    wt_say(self->error, sizeof self->error, "%s: %s", what, fi_strerror(code));
    return meaning(code);
}

/* Takes what completions there are; drives the provider, too. */
static int progress(self_t *self) {
    struct fi_cq_tagged_entry entries[8];
    ssize_t got = fi_cq_read(self->completions, entries, 8);
    if (got == -FI_EAGAIN) return 0;
    if (got >= 0) {
        for (ssize_t at = 0; at < got; at++) {
            operation_t *operation = entries[at].op_context;
            if (!operation) continue;
            operation->done = 1;
            operation->tag = entries[at].tag;
            operation->length = entries[at].len;
        }
        return (int)got;
    }
    struct fi_cq_err_entry bad = {0};
    if (got != -FI_EAVAIL || fi_cq_readerr(self->completions, &bad, 0) != 1) return 0;
    operation_t *operation = bad.op_context;
    wt_say(self->error, sizeof self->error, "%s: %s", self->info->fabric_attr->prov_name, fi_strerror(bad.err));
    if (operation) {
        operation->done = 1;
        operation->code = bad.err ? bad.err : FI_EOTHER;
        operation->tag = bad.tag;
        operation->length = bad.len;
        operation->over = bad.olen;
    }
    return 1;
}

/* A turn of a wait; WT_TIMED_OUT once `limit_s` has passed, which it looks for now and then. */
typedef struct {
    double deadline;
    unsigned turn;
} wait_t;

static int turn(self_t *self, wait_t *wait, const char *what, double limit_s) {
    if (!progress(self) && self->yield) sched_yield();
    if (++wait->turn % TURNS == 0) {
        double now = wt_now();
        if (wait->deadline == 0) wait->deadline = now + limit_s;
        if (now > wait->deadline) {
            wt_say(self->error, sizeof self->error, "%s: not complete within %g s", what, limit_s);
            return WT_TIMED_OUT;
        }
    }
    return WT_OK;
}

static int await(self_t *self, operation_t *operation, const char *what, double limit_s) {
    wait_t wait = {0, 0};
    while (!operation->done) {
        int code = turn(self, &wait, what, limit_s);
        if (code != WT_OK) {
            fi_cancel(&self->endpoint->fid, &operation->context);
            return code;
        }
    }
    if (operation->code == 0) return WT_OK;
    return failed(self, what, abs(operation->code));
}

static int start_send(self_t *self, int32_t to, uint32_t tag, const void *data, uint64_t bytes, operation_t *operation,
                      double limit_s) {
    uint64_t full = (uint64_t)self->options.rank << RANK_SHIFT | tag;
    int inject = bytes <= self->info->tx_attr->inject_size;
    wait_t wait = {0, 0};
    for (;;) {
        ssize_t said = inject ? fi_tinject(self->endpoint, data, bytes, self->peers[to], full)
                              : fi_tsend(self->endpoint, data, bytes, NULL, self->peers[to], full, &operation->context);
        if (said == 0) {
            operation->done = inject;
            return WT_OK;
        }
        if (said != -FI_EAGAIN) return failed(self, inject ? "fi_tinject" : "fi_tsend", (int)-said);
        int code = turn(self, &wait, "fi_tsend", limit_s);
        if (code != WT_OK) return code;
    }
}

static int start_recv(self_t *self, int32_t from, int64_t tag, void *data, uint64_t capacity, operation_t *operation,
                      double limit_s) {
    uint64_t wanted = 0, ignore = ~0ull;
    if (self->shm && (from < 0 || tag < 0)) {
        wt_say(self->error, sizeof self->error,
               "a receive by wildcard: the shm provider (1.17) gives it no message that came before it");
        return WT_UNSUPPORTED;
    }
    if (from >= 0) wanted |= (uint64_t)from << RANK_SHIFT, ignore &= TAG_MASK;
    if (tag >= 0) wanted |= (uint32_t)tag, ignore &= ~TAG_MASK;
    /* No wildcard takes messages about the run: their tag has the top bit set, and no other has. */
    if (tag < 0) ignore &= ~CONTROL_BIT;
    wait_t wait = {0, 0};
    for (;;) {
        ssize_t said = fi_trecv(self->endpoint, data, capacity, NULL, FI_ADDR_UNSPEC, wanted, ignore, &operation->context);
        if (said == 0) return WT_OK;
        if (said != -FI_EAGAIN) return failed(self, "fi_trecv", (int)-said);
        int code = turn(self, &wait, "fi_trecv", limit_s);
        if (code != WT_OK) return code;
    }
}

static void tell(const operation_t *operation, uint64_t capacity, wt_status *status) {
    uint64_t bytes = abs(operation->code) == FI_ETRUNC ? capacity + operation->over : operation->length;
    *status = (wt_status){(int32_t)(operation->tag >> RANK_SHIFT), (uint32_t)operation->tag, bytes};
}

static int refused_tag(self_t *self, uint32_t tag) {
    if (tag < 1u << 31 || tag == WT_CONTROL) return WT_OK;
    wt_say(self->error, sizeof self->error, "a tag of %u is too large: below 2^31", tag);
    return WT_UNSUPPORTED;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

/* The address of this rank's host. */
static void own_address(const wt_options *options, char *into, size_t size) {
    const char *all = wt_option(options, "addresses", "127.0.0.1"), *at = all;
    int hosts = 1;
    for (const char *c = all; *c; c++) hosts += *c == ',';
    for (int skip = options->rank % hosts; skip > 0; skip--) at = strchr(at, ',') + 1;
    snprintf(into, size, "%.*s", (int)strcspn(at, ","), at);
}

static int start(self_t *self, char *error, size_t size) {
    const char *provider = wt_option(&self->options, "provider", "tcp;ofi_rxm");
    char address[128];
    own_address(&self->options, address, sizeof address);
    int by_host = !(self->shm = strncmp(provider, "shm", 3) == 0);
    struct fi_info *hints = fi_allocinfo();
    if (!hints) return wt_say(error, size, "no memory");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED | FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->mr_mode = 0;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->fabric_attr->prov_name = strdup(provider);
    int said = fi_getinfo(FI_VERSION(1, 17), by_host ? address : NULL, by_host ? "0" : NULL, by_host ? FI_SOURCE : 0, hints,
                          &self->info);
    fi_freeinfo(hints);
    if (said != 0)
        return wt_say(error, size, "provider %s at %s: %s: `fi_info -l` lists what this host has", provider, address,
                      fi_strerror(-said));
    struct fi_av_attr table = {.type = FI_AV_TABLE, .count = (size_t)self->options.size};
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
    const char *what = "fi_fabric";
    if ((said = fi_fabric(self->info->fabric_attr, &self->fabric, NULL))) goto refused;
    what = "fi_domain";
    if ((said = fi_domain(self->fabric, self->info, &self->domain, NULL))) goto refused;
    what = "fi_av_open";
    if ((said = fi_av_open(self->domain, &table, &self->addresses, NULL))) goto refused;
    what = "fi_cq_open";
    if ((said = fi_cq_open(self->domain, &queue, &self->completions, NULL))) goto refused;
    what = "fi_endpoint";
    if ((said = fi_endpoint(self->domain, self->info, &self->endpoint, NULL))) goto refused;
    what = "fi_ep_bind";
    if ((said = fi_ep_bind(self->endpoint, &self->addresses->fid, 0))) goto refused;
    if ((said = fi_ep_bind(self->endpoint, &self->completions->fid, FI_TRANSMIT | FI_RECV))) goto refused;
    what = "fi_enable";
    if ((said = fi_enable(self->endpoint))) goto refused;
    char name[NAME_BYTES], file[32];
    size_t length = sizeof name;
    what = "fi_getname";
    if ((said = fi_getname(&self->endpoint->fid, name, &length))) goto refused;
    snprintf(file, sizeof file, "fi-%d", self->options.rank);
    return wt_publish(&self->options, file, name, length, error, size);
refused:
    return wt_say(error, size, "provider %s: %s: %s", provider, what, fi_strerror(-said));
}

static int find_all(self_t *self, char *error, size_t size) {
    double deadline = wt_now() + wt_meeting_s(&self->options);
    for (int32_t rank = 0; rank < self->options.size; rank++) {
        char file[32], *name = NULL;
        size_t length = 0;
        snprintf(file, sizeof file, "fi-%d", rank);
        int code = wt_look_up(&self->options, file, deadline, &name, &length, error, size);
        if (code != WT_OK) return code;
        int said = fi_av_insert(self->addresses, name, 1, &self->peers[rank], 0, NULL);
        free(name);
        if (said != 1) return wt_say(error, size, "the address of rank %d is not taken by fi_av_insert", rank);
    }
    return WT_OK;
}

static int send_within(self_t *self, int32_t to, uint32_t tag, const void *data, uint64_t bytes, double limit_s) {
    operation_t operation = {.done = 0};
    int code = start_send(self, to, tag, data, bytes, &operation, limit_s);
    return code == WT_OK ? await(self, &operation, "fi_tsend", limit_s) : code;
}

static int recv_within(self_t *self, int32_t from, int64_t tag, void *data, uint64_t capacity, wt_status *status,
                       double limit_s) {
    operation_t operation = {.done = 0};
    int code = start_recv(self, from, tag, data, capacity, &operation, limit_s);
    if (code != WT_OK) return code;
    code = await(self, &operation, "fi_trecv", limit_s);
    tell(&operation, capacity, status);
    return code;
}

/* An empty message to each other rank and one from each: connections are made by the first. */
static int greet(self_t *self, double limit_s) {
    double deadline = wt_now() + limit_s;
    for (int sending = 1; sending >= 0; sending--)
        for (int32_t rank = 0; rank < self->options.size; rank++) {
            if (rank == self->options.rank) continue;
            double left = deadline - wt_now();
            wt_status status;
            char nothing = 0;
            int code = sending ? send_within(self, rank, WT_CONTROL, &nothing, 0, left > 0 ? left : 0)
                               : recv_within(self, rank, WT_CONTROL, &nothing, 0, &status, left > 0 ? left : 0);
            if (code != WT_OK) return code;
        }
    return WT_OK;
}

static void tear_down(self_t *self) {
    if (self->endpoint) fi_close(&self->endpoint->fid);
    if (self->completions) fi_close(&self->completions->fid);
    if (self->addresses) fi_close(&self->addresses->fid);
    if (self->domain) fi_close(&self->domain->fid);
    if (self->fabric) fi_close(&self->fabric->fid);
    if (self->info) fi_freeinfo(self->info);
    free(self->peers);
    free(self->started);
    free(self->options.lines);
    free(self);
}

int wt_open(const char *text, void **opened, wt_info *info, char *error, size_t error_size) {
    static const char *const own[] = {"provider", "addresses", "wait", NULL};
    self_t *self = calloc(1, sizeof *self);
    if (!self) return wt_say(error, error_size, "no memory");
    int code = wt_read_options(text, own, &self->options, error, error_size);
    if (code == WT_OK) {
        const char *wait = wt_option(&self->options, "wait", "spin");
        self->yield = strcmp(wait, "yield") == 0;
        if (!self->yield && strcmp(wait, "spin"))
            code = wt_say(error, error_size, "options: wait=%s is not allowed: spin, yield", wait);
    }
    if (code == WT_OK && !(self->peers = calloc((size_t)self->options.size, sizeof *self->peers)))
        code = wt_say(error, error_size, "no memory");
    if (code == WT_OK) code = start(self, error, error_size);
    if (code == WT_OK) code = find_all(self, error, error_size);
    if (code == WT_OK && (code = greet(self, wt_meeting_s(&self->options))) != WT_OK)
        wt_say(error, error_size, "the ranks did not meet: %s", self->error);
    if (code != WT_OK) {
        tear_down(self);
        return code;
    }
    uint32_t version = fi_version();
    char provider[128], domain[128];
    info->rank = self->options.rank;
    info->size = self->options.size;
    snprintf(info->effective, sizeof info->effective,
             "{\"libfabric\":\"%u.%u\",\"provider\":\"%s\",\"domain\":\"%s\",\"inject_bytes\":%zu,\"largest_bytes\":%zu,"
             "\"wait\":\"%s\",\"ranks\":%d}",
             FI_MAJOR(version), FI_MINOR(version),
             wt_json(self->info->fabric_attr->prov_name, provider, sizeof provider),
             wt_json(self->info->domain_attr->name, domain, sizeof domain), self->info->tx_attr->inject_size,
             self->info->ep_attr->max_msg_size, self->yield ? "yield" : "spin", self->options.size);
    *opened = self;
    return WT_OK;
}

/* ---- the interface ------------------------------------------------------------------------------------- */

int wt_send(void *opened, int32_t to, uint32_t tag, const void *data, uint64_t bytes) {
    self_t *self = opened;
    if (to < 0 || to >= self->options.size) return WT_NO_SUCH_RANK;
    int code = refused_tag(self, tag);
    return code == WT_OK ? send_within(self, to, tag, data, bytes, self->options.limit_s) : code;
}

int wt_recv(void *opened, int32_t from, int64_t tag, void *data, uint64_t capacity, wt_status *status) {
    self_t *self = opened;
    if (from >= self->options.size || from < -1) return WT_NO_SUCH_RANK;
    return recv_within(self, from, tag, data, capacity, status, self->options.limit_s);
}

int wt_exchange(void *opened, const wt_outgoing *sends, int32_t n_sends, wt_incoming *receives, int32_t n_receives) {
    self_t *self = opened;
    int32_t all = n_sends + n_receives;
    if (all > self->room) {
        operation_t *larger = realloc(self->started, (size_t)all * sizeof *larger);
        if (!larger) return wt_say(self->error, sizeof self->error, "no memory");
        self->started = larger;
        self->room = all;
    }
    memset(self->started, 0, (size_t)all * sizeof *self->started);
    double limit_s = self->options.limit_s;
    int code = WT_OK;
    for (int32_t at = 0; at < n_sends && code == WT_OK; at++)
        code = sends[at].to < 0 || sends[at].to >= self->options.size ? WT_NO_SUCH_RANK : refused_tag(self, sends[at].tag);
    for (int32_t at = 0; at < n_receives && code == WT_OK; at++)
        if (receives[at].from >= self->options.size || receives[at].from < -1) code = WT_NO_SUCH_RANK;
    for (int32_t at = 0; at < n_receives && code == WT_OK; at++)
        code = start_recv(self, receives[at].from, receives[at].tag, receives[at].data, receives[at].capacity,
                          &self->started[at], limit_s);
    for (int32_t at = 0; at < n_sends && code == WT_OK; at++)
        code = start_send(self, sends[at].to, sends[at].tag, sends[at].data, sends[at].bytes,
                          &self->started[n_receives + at], limit_s);
    for (int32_t at = 0; at < all && code == WT_OK; at++) {
        code = await(self, &self->started[at], at < n_receives ? "fi_trecv" : "fi_tsend", limit_s);
        if (at < n_receives) tell(&self->started[at], receives[at].capacity, &receives[at].status);
    }
    return code;
}

/* A look at the completions, which finds none. */
int wt_call(void *opened) {
    progress(opened);
    return WT_OK;
}

const char *wt_error(void *self) { return ((self_t *)self)->error; }

void wt_close(void *opened) {
    self_t *self = opened;
    /* An injected message may still be on its way out, which only its sender can drive. */
    greet(self, 1.0);
    tear_down(self);
}
