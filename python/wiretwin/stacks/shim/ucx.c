/* UCX behind the shim's ABI: tagged messages of UCP (`ucp_tag_send_nbx`, `ucp_tag_recv_nbx`).
 *
 * The ranks show each other the addresses of their workers in the directory of the launch. A tag of UCP holds the
 * sender's rank in its upper 32 bits and the message's tag in the lower ones.
 *
 * Options, besides rank, size, directory and limit_s:
 *   tls      the transports UCX may choose from, as in UCX_TLS; default tcp,self
 *   devices  the network interfaces it may use, as in UCX_NET_DEVICES; default all
 *   wait     spin, or yield: give way to others on the core while nothing comes; default spin
 *
 * Every wait drives the worker until the operation is complete, at most limit_s long. */

#include <sched.h>
#include <ucp/api/ucp.h>

#include "wt_common.h"

#define RANK_SHIFT 32
#define TAG_MASK 0xffffffffull
/* So many turns of a wait pass between two looks at the clock, which are enough to see the limit. */
#define TURNS 4096

typedef struct {
    wt_options options;
    int yield;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h *peers;
    void **receiving; /* requests of an exchange */
    int32_t room;
    char error[WT_ERROR_BYTES];
} self_t;

int wt_abi(void) { return WT_ABI; }

static int failed(self_t *self, const char *what, ucs_status_t status) {
    wt_say(self->error, sizeof self->error, "%s: %s", what, ucs_status_string(status));
    switch (status) {
    case UCS_ERR_MESSAGE_TRUNCATED: return WT_TRUNCATED;
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_TIMED_OUT: return WT_TIMED_OUT;
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_UNREACHABLE: return WT_PEER_LOST;
    default: return WT_TRANSPORT;
    }
}

/* Drives the worker until the request is complete, and frees it. */
static int await(self_t *self, void *request, const char *what, double limit_s) {
    if (request == NULL) return WT_OK;
    if (UCS_PTR_IS_ERR(request)) return failed(self, what, UCS_PTR_STATUS(request));
    double deadline = 0;
    ucs_status_t status;
    for (unsigned turn = 1; (status = ucp_request_check_status(request)) == UCS_INPROGRESS; turn++) {
        if (!ucp_worker_progress(self->worker) && self->yield) sched_yield();
        if (turn % TURNS == 0) {
            double now = wt_now();
            if (deadline == 0) deadline = now + limit_s;
            if (now > deadline) {
                ucp_request_cancel(self->worker, request);
                ucp_request_free(request);
                wt_say(self->error, sizeof self->error, "%s: not complete within %g s", what, limit_s);
                return WT_TIMED_OUT;
            }
        }
    }
    ucp_request_free(request);
    return status == UCS_OK ? WT_OK : failed(self, what, status);
}

static void *start_send(self_t *self, int32_t to, uint32_t tag, const void *data, uint64_t bytes) {
    ucp_request_param_t how = {.op_attr_mask = 0};
    ucp_tag_t full = (ucp_tag_t)self->options.rank << RANK_SHIFT | tag;
    return ucp_tag_send_nbx(self->peers[to], data, bytes, full, &how);
}

/* Where a receive that is complete at once, or later, leaves what it got. */
static void came(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *into) {
    (void)request;
    wt_status *got = into;
    if (status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED) {
        got->source = (int32_t)(info->sender_tag >> RANK_SHIFT);
        got->tag = (uint32_t)info->sender_tag;
        got->bytes = info->length;
    }
}

static void *start_recv(self_t *self, int32_t from, int64_t tag, void *data, uint64_t capacity, wt_status *status) {
    /* A receive that is complete at once would leave what it got where UCX 1.13 does not always write it. */
    ucp_request_param_t how = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
        .cb.recv = came,
        .user_data = status,
    };
    ucp_tag_t wanted = 0, mask = 0;
    if (from >= 0) wanted |= (ucp_tag_t)from << RANK_SHIFT, mask |= ~(ucp_tag_t)TAG_MASK;
    if (tag >= 0) wanted |= (uint32_t)tag, mask |= TAG_MASK;
    /* No wildcard takes messages about the run: their tag has the top bit set, and no other has. */
    if (tag < 0) mask |= 1ull << 31;
    return ucp_tag_recv_nbx(self->worker, data, capacity, wanted, mask, &how);
}

static int refused_tag(self_t *self, uint32_t tag) {
    if (tag < 1u << 31 || tag == WT_CONTROL) return WT_OK;
    wt_say(self->error, sizeof self->error, "a tag of %u is too large: below 2^31", tag);
    return WT_UNSUPPORTED;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

/* The transports that a connection really uses, from what UCX prints of it. */
static void lanes(ucp_ep_h peer, char *into, size_t size) {
    char *text = NULL;
    size_t length = 0, at = 0;
    into[0] = 0;
    FILE *file = open_memstream(&text, &length);
    if (!file) return;
    ucp_ep_print_info(peer, file);
    fclose(file);
    for (char *line = text ? strstr(text, "lane[") : NULL; line; line = strstr(line + 1, "lane[")) {
        char *name = strchr(line, ':');
        name = name ? strchr(name + 1, ':') : NULL;
        if (!name) break;
        size_t word = strcspn(++name, " .\n/");
        char one[64];
        snprintf(one, sizeof one, "%.*s", (int)(word < 60 ? word : 60), name);
        if (strstr(into, one)) continue;
        at += (size_t)snprintf(into + at, size - at, "%s%s", at ? "," : "", one);
        if (at >= size) break;
    }
    free(text);
}

static int setting(ucp_config_t *config, const char *name, const char *value, char *error, size_t size) {
    ucs_status_t status = ucp_config_modify(config, name, value);
    return status == UCS_OK ? WT_OK : wt_say(error, size, "UCX_%s=%s: %s", name, value, ucs_status_string(status));
}

static int start(self_t *self, char *error, size_t size) {
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) return wt_say(error, size, "ucp_config_read: %s", ucs_status_string(status));
    const char *devices = wt_option(&self->options, "devices", NULL);
    int code = setting(config, "TLS", wt_option(&self->options, "tls", "tcp,self"), error, size);
    if (code == WT_OK && devices) code = setting(config, "NET_DEVICES", devices, error, size);
    if (code != WT_OK) {
        ucp_config_release(config);
        return code;
    }
    ucp_params_t wants = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_TAG_SENDER_MASK | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = UCP_FEATURE_TAG,
        .tag_sender_mask = ~(uint64_t)TAG_MASK,
        .estimated_num_eps = (size_t)self->options.size,
    };
    status = ucp_init(&wants, config, &self->context);
    ucp_config_release(config);
    if (status != UCS_OK)
        return wt_say(error, size, "ucp_init: %s; UCX_TLS was %s: `ucx_info -d` lists what this host has",
                      ucs_status_string(status), wt_option(&self->options, "tls", "tcp,self"));
    ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
    status = ucp_worker_create(self->context, &single, &self->worker);
    if (status != UCS_OK) return wt_say(error, size, "ucp_worker_create: %s", ucs_status_string(status));
    ucp_address_t *address;
    size_t length;
    status = ucp_worker_get_address(self->worker, &address, &length);
    if (status != UCS_OK) return wt_say(error, size, "ucp_worker_get_address: %s", ucs_status_string(status));
    char name[32];
    snprintf(name, sizeof name, "ucx-%d", self->options.rank);
    code = wt_publish(&self->options, name, address, length, error, size);
    ucp_worker_release_address(self->worker, address);
    return code;
}

static int connect_all(self_t *self, char *error, size_t size) {
    double deadline = wt_now() + wt_meeting_s(&self->options);
    for (int32_t rank = 0; rank < self->options.size; rank++) {
        char name[32], *address = NULL;
        size_t length = 0;
        snprintf(name, sizeof name, "ucx-%d", rank);
        int code = wt_look_up(&self->options, name, deadline, &address, &length, error, size);
        if (code != WT_OK) return code;
        ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (const ucp_address_t *)address};
        ucs_status_t status = ucp_ep_create(self->worker, &to, &self->peers[rank]);
        free(address);
        if (status != UCS_OK)
            return wt_say(error, size, "rank %d cannot be reached from here by these transports (%s): %s", rank,
                          wt_option(&self->options, "tls", "tcp,self"), ucs_status_string(status));
    }
    return WT_OK;
}

/* An empty message to each other rank and one from each: connections are made by the first. */
static int greet(self_t *self, double limit_s) {
    double deadline = wt_now() + limit_s;
    for (int32_t rank = 0; rank < self->options.size; rank++) {
        if (rank == self->options.rank) continue;
        double left = deadline - wt_now();
        int code = await(self, start_send(self, rank, WT_CONTROL, "", 0), "greeting", left > 0 ? left : 0);
        if (code != WT_OK) return code;
    }
    for (int32_t rank = 0; rank < self->options.size; rank++) {
        if (rank == self->options.rank) continue;
        wt_status status;
        char nothing;
        double left = deadline - wt_now();
        int code = await(self, start_recv(self, rank, WT_CONTROL, &nothing, 0, &status), "greeting", left > 0 ? left : 0);
        if (code != WT_OK) return code;
    }
    return WT_OK;
}

static void tear_down(self_t *self) {
    if (self->peers && self->worker)
        for (int32_t rank = 0; rank < self->options.size; rank++) {
            if (!self->peers[rank]) continue;
            ucp_request_param_t how = {.op_attr_mask = 0};
            await(self, ucp_ep_close_nbx(self->peers[rank], &how), "closing", 1.0);
        }
    if (self->worker) ucp_worker_destroy(self->worker);
    if (self->context) ucp_cleanup(self->context);
    free(self->peers);
    free(self->receiving);
    free(self->options.lines);
    free(self);
}

int wt_open(const char *text, void **opened, wt_info *info, char *error, size_t error_size) {
    static const char *const own[] = {"tls", "devices", "wait", NULL};
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
    if (code == WT_OK) code = connect_all(self, error, error_size);
    if (code == WT_OK && (code = greet(self, wt_meeting_s(&self->options))) != WT_OK)
        wt_say(error, error_size, "the ranks did not meet: %s", self->error);
    if (code != WT_OK) {
        tear_down(self);
        return code;
    }
    char used[256], tls[256], devices[256];
    lanes(self->peers[self->options.size > 1 ? (self->options.rank + 1) % self->options.size : 0], used, sizeof used);
    info->rank = self->options.rank;
    info->size = self->options.size;
    snprintf(info->effective, sizeof info->effective,
             "{\"ucx\":\"%s\",\"UCX_TLS\":\"%s\",\"UCX_NET_DEVICES\":\"%s\",\"transports\":\"%s\",\"wait\":\"%s\",\"ranks\":%d}",
             ucp_get_version_string(), wt_json(wt_option(&self->options, "tls", "tcp,self"), tls, sizeof tls),
             wt_json(wt_option(&self->options, "devices", "all"), devices, sizeof devices), used,
             self->yield ? "yield" : "spin", self->options.size);
    *opened = self;
    return WT_OK;
}

/* ---- the interface ------------------------------------------------------------------------------------- */

int wt_send(void *opened, int32_t to, uint32_t tag, const void *data, uint64_t bytes) {
    self_t *self = opened;
    if (to < 0 || to >= self->options.size) return WT_NO_SUCH_RANK;
    int code = refused_tag(self, tag);
    if (code != WT_OK) return code;
    return await(self, start_send(self, to, tag, data, bytes), "ucp_tag_send_nbx", self->options.limit_s);
}

int wt_recv(void *opened, int32_t from, int64_t tag, void *data, uint64_t capacity, wt_status *status) {
    self_t *self = opened;
    if (from >= self->options.size || from < -1) return WT_NO_SUCH_RANK;
    return await(self, start_recv(self, from, tag, data, capacity, status), "ucp_tag_recv_nbx", self->options.limit_s);
}

int wt_exchange(void *opened, const wt_outgoing *sends, int32_t n_sends, wt_incoming *receives, int32_t n_receives) {
    self_t *self = opened;
    int32_t all = n_sends + n_receives;
    if (all > self->room) {
        void **larger = realloc(self->receiving, (size_t)all * sizeof *larger);
        if (!larger) return wt_say(self->error, sizeof self->error, "no memory");
        self->receiving = larger;
        self->room = all;
    }
    for (int32_t at = 0; at < n_sends; at++) {
        if (sends[at].to < 0 || sends[at].to >= self->options.size) return WT_NO_SUCH_RANK;
        int code = refused_tag(self, sends[at].tag);
        if (code != WT_OK) return code;
    }
    for (int32_t at = 0; at < n_receives; at++)
        if (receives[at].from >= self->options.size || receives[at].from < -1) return WT_NO_SUCH_RANK;
    for (int32_t at = 0; at < n_receives; at++)
        self->receiving[at] = start_recv(self, receives[at].from, receives[at].tag, receives[at].data,
                                         receives[at].capacity, &receives[at].status);
    for (int32_t at = 0; at < n_sends; at++)
        self->receiving[n_receives + at] = start_send(self, sends[at].to, sends[at].tag, sends[at].data, sends[at].bytes);
    int code = WT_OK;
    for (int32_t at = 0; at < all; at++) {
        int one = await(self, self->receiving[at], at < n_receives ? "ucp_tag_recv_nbx" : "ucp_tag_send_nbx",
                        self->options.limit_s);
        if (code == WT_OK) code = one;
    }
    return code;
}

/* One turn of the worker's progress, which finds nothing. */
int wt_call(void *opened) {
    ucp_worker_progress(((self_t *)opened)->worker);
    return WT_OK;
}

const char *wt_error(void *self) { return ((self_t *)self)->error; }

void wt_close(void *opened) {
    self_t *self = opened;
    /* Nobody leaves while another still waits for what the worker has not yet handed over. */
    greet(self, 1.0);
    tear_down(self);
}
