/* Sun RPC (ONC RPC version 2, RFC 5531) behind the shim's ABI, by libtirpc. Two ranks.
 *
 * Rank 1 serves, rank 0 calls. RPC has no messages, so they are made of what it has:
 *   rank 0 sends      the message is kept; a further send makes a call of it that wants no answer (batching, which
 *                     only TCP has: over UDP the second send in a row is refused)
 *   rank 0 receives   the kept message becomes the argument of a call, and the answer is what is received;
 *                     with nothing kept it is a call without argument that asks for a message
 *   rank 1 receives   waits for a call and takes its argument
 *   rank 1 sends      answers the call it took last, or waits for one that asks for a message
 * On the wire an echo of n octets is thus one call with opaque<> as argument and opaque<> as result, 48 + n and
 * 32 + n octets with the record marks of TCP, n padded to 4. The tag travels as the number of the procedure;
 * only an answer with another tag than its call's carries one more word, marked in the top bit of its length.
 *
 * Options, besides rank, size, directory and limit_s:
 *   transport  tcp or udp; default tcp
 *   argument   opaque (an octet each) or array (array<> of char: four octets each); default opaque
 *   buffer     octets of the buffers of both ends; 0: the library's own (UDP: 8800). Default 0
 *   most       octets of the largest message, which UDP's buffers must hold; default 0: not checked
 *   address    of rank 1; default 127.0.0.1
 *   rpcbind    yes: rank 1 registers with rpcbind and rank 0 asks it for the port; no: through the directory
 *   keep       copy: a kept message may be overwritten at once; borrow: it may not until the next receive, but for
 *              messages about the run. The measuring loops do not, and a copy is no part of RPC. Default copy
 *
 * No call is sent twice: a reply that does not come within the limit is an error, so that nothing is done twice.
 * There is no call that moves nothing: the least, procedure 0, goes there and back. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rpc/rpc.h>
#include <rpc/pmap_clnt.h>
#include <sys/socket.h>

#include "wt_common.h"

/* Of the range that RFC 5531 8.2 leaves to users. */
#define PROGRAM 0x20575754u
#define VERSION 1u
#define ASK 1u                   /* the procedure that asks for a message */
#define FIRST 2u                 /* the procedure of tag 0 */
#define CONTROL_PROCEDURE 0x3fffffffu
#define WANTS_ANSWER 0x40000000u /* in the number of the procedure */
#define TAGGED 0x80000000u       /* in the length of an answer: its tag follows */
#define LARGEST_DATAGRAM 65507u
#define HEADER 48u               /* of a call or an answer, at most, with AUTH_NONE, without record mark */

/* A message on its way in or out of XDR. */
typedef struct message {
    char *data;
    uint32_t bytes, capacity, tag;
    int array, tagged, allocate;
    struct message *next;
} message_t;

typedef struct {
    wt_options options;
    int udp, array, borrow, rpcbind;
    unsigned buffer;
    char error[WT_ERROR_BYTES];
    message_t *first, *last; /* came and not yet received */
    /* rank 0 */
    CLIENT *client;
    int socket, kept;
    message_t keeping;
    char *own; /* where a kept message is copied to */
    size_t own_room;
    /* rank 1 */
    SVCXPRT *transport;
    SVCXPRT *answering; /* whom the next send answers, if anybody waits */
    uint32_t answering_tag;
    int asked, connected;
    message_t *waiting; /* where the next message may be put at once */
    int64_t waiting_tag;
    int served;
} self_t;

static self_t *server; /* the library's dispatch has no argument of ours */

int wt_abi(void) { return WT_ABI; }

/* ---- XDR ---------------------------------------------------------------------------------------------- */

/* RFC 4506 4.10 and 4.13: a length, then octets, padded to 4, or elements of 4 octets each. */
static bool_t xdr_body(XDR *xdrs, message_t *message) {
    if (message->array) {
        char *elements = message->data;
        u_int count = message->bytes;
        for (u_int at = 0; at < count; at++) {
            /* A copy: xdr_char writes its argument back when it encodes, too. */
            char element = xdrs->x_op == XDR_ENCODE ? elements[at] : 0;
            if (!xdr_char(xdrs, &element)) return FALSE;
            if (xdrs->x_op == XDR_DECODE) elements[at] = element;
        }
        return TRUE;
    }
    return xdr_opaque(xdrs, message->data, message->bytes);
}

static bool_t nothing(XDR *xdrs, ...) {
    (void)xdrs;
    return TRUE;
}

static bool_t xdr_message(XDR *xdrs, message_t *message) {
    uint32_t word = message->bytes | (message->tagged ? TAGGED : 0);
    if (!xdr_uint32_t(xdrs, &word)) return FALSE;
    if (xdrs->x_op == XDR_DECODE) {
        message->bytes = word & ~TAGGED;
        message->tagged = (word & TAGGED) != 0;
        if (message->bytes > INT_MAX / 4) return FALSE;
        /* Too long for the receive's buffer: the message must leave the stream all the same. */
        if (message->allocate || message->bytes > message->capacity) {
            message->data = malloc(message->bytes ? message->bytes : 1);
            if (!message->data) return FALSE;
            message->allocate = 1;
        }
    }
    return xdr_body(xdrs, message) && (!message->tagged || xdr_uint32_t(xdrs, &message->tag));
}

/* ---- messages that came before they were asked for ----------------------------------------------------- */

static int matches(int64_t wanted, uint32_t tag) { return wanted < 0 ? tag != WT_CONTROL : wanted == tag; }

static void store(self_t *self, message_t *message) {
    message->next = NULL;
    if (self->last)
        self->last->next = message;
    else
        self->first = message;
    self->last = message;
}

static int deliver(message_t *message, int32_t from, void *data, uint64_t capacity, wt_status *status) {
    int code = message->bytes > capacity ? WT_TRUNCATED : WT_OK;
    *status = (wt_status){from, message->tag, message->bytes};
    if (code == WT_OK && message->data != data) memcpy(data, message->data, message->bytes);
    return code;
}

/* Takes the first stored message with this tag; 0 if there is none. */
static int take_stored(self_t *self, int64_t tag, void *data, uint64_t capacity, wt_status *status, int *code) {
    message_t *before = NULL;
    for (message_t *at = self->first; at; before = at, at = at->next) {
        if (!matches(tag, at->tag)) continue;
        if (before)
            before->next = at->next;
        else
            self->first = at->next;
        if (self->last == at) self->last = before;
        *code = deliver(at, 1 - self->options.rank, data, capacity, status);
        free(at->data);
        free(at);
        return 1;
    }
    return 0;
}

/* ---- tags as procedures -------------------------------------------------------------------------------- */

static uint32_t procedure_of(uint32_t tag) { return tag == WT_CONTROL ? CONTROL_PROCEDURE : tag + FIRST; }
static uint32_t tag_of(uint32_t procedure) {
    procedure &= ~WANTS_ANSWER;
    return procedure == CONTROL_PROCEDURE ? WT_CONTROL : procedure - FIRST;
}

/* ---- rank 0 -------------------------------------------------------------------------------------------- */

static int call_failed(self_t *self, enum clnt_stat code) {
    struct rpc_err why;
    clnt_geterr(self->client, &why);
    int system = code == RPC_CANTSEND || code == RPC_CANTRECV ? why.re_errno : 0;
    wt_say(self->error, sizeof self->error, "RPC: %s%s%s", clnt_sperrno(code), system ? ": " : "",
           system ? strerror(system) : "");
    if (code == RPC_TIMEDOUT) return WT_TIMED_OUT;
    return code == RPC_CANTSEND || code == RPC_CANTRECV ? WT_PEER_LOST : WT_TRANSPORT;
}

/* Sends what is kept as a call that nobody answers. */
static int send_kept(self_t *self) {
    struct timeval none = {0, 0};
    if (!self->kept) return WT_OK;
    self->kept = 0;
    if (self->udp) {
        /* Given no time, the library (1.3.3) says that it ran out of it and has sent nothing. */
        wt_say(self->error, sizeof self->error, "RPC: over UDP every call waits for its answer: two sends in a row "
               "need batching, which TCP has");
        return WT_UNSUPPORTED;
    }
    enum clnt_stat code = clnt_call(self->client, procedure_of(self->keeping.tag), (xdrproc_t)xdr_message,
                                    (char *)&self->keeping, (xdrproc_t)NULL, NULL, none);
    return code == RPC_SUCCESS ? WT_OK : call_failed(self, code);
}

static int client_send(self_t *self, uint32_t tag, const void *data, uint64_t bytes) {
    int code = send_kept(self);
    if (code != WT_OK) return code;
    self->keeping = (message_t){.bytes = (uint32_t)bytes, .tag = tag, .array = self->array};
    if (self->borrow && tag != WT_CONTROL) {
        self->keeping.data = (char *)data;
    } else {
        if (bytes > self->own_room) {
            char *larger = realloc(self->own, bytes);
            if (!larger) return wt_say(self->error, sizeof self->error, "no memory to keep a message");
            self->own = larger;
            self->own_room = bytes;
        }
        if (bytes) memcpy(self->own, data, bytes);
        self->keeping.data = self->own;
    }
    self->kept = 1;
    return WT_OK;
}

static int client_recv(self_t *self, int64_t tag, void *data, uint64_t capacity, wt_status *status) {
    int code;
    while (!take_stored(self, tag, data, capacity, status, &code)) {
        struct timeval limit = {(time_t)self->options.limit_s + 1, 0};
        uint32_t procedure = ASK | WANTS_ANSWER;
        xdrproc_t out = nothing;
        if (self->kept) {
            procedure = procedure_of(self->keeping.tag) | WANTS_ANSWER;
            out = (xdrproc_t)xdr_message;
            self->kept = 0;
        }
        message_t answer = {.data = data,
                            .capacity = capacity > INT_MAX ? INT_MAX : (uint32_t)capacity,
                            .array = self->array};
        enum clnt_stat said =
            clnt_call(self->client, procedure, out, (char *)&self->keeping, (xdrproc_t)xdr_message, (char *)&answer, limit);
        if (said != RPC_SUCCESS) {
            if (answer.allocate) free(answer.data);
            return call_failed(self, said);
        }
        /* The answer has its call's tag unless it says another; one to a bare question always says it. */
        if (!answer.tagged) answer.tag = tag_of(procedure);
        if (matches(tag, answer.tag)) {
            code = deliver(&answer, 1, data, capacity, status);
            if (answer.allocate) free(answer.data);
            return code;
        }
        message_t *early = malloc(sizeof *early);
        if (!early) return WT_TRANSPORT;
        *early = answer;
        if (!answer.allocate) {
            early->data = malloc(answer.bytes ? answer.bytes : 1);
            if (!early->data) return WT_TRANSPORT;
            memcpy(early->data, answer.data, answer.bytes);
        }
        store(self, early);
    }
    return code;
}

/* ---- rank 1 -------------------------------------------------------------------------------------------- */

/* The library calls this once for each call that came. */
static void dispatch(struct svc_req *request, SVCXPRT *transport) {
    self_t *self = server;
    uint32_t procedure = (uint32_t)request->rq_proc;
    self->connected = 1;
    self->served = 1;
    if (procedure == NULLPROC) {
        svc_sendreply(transport, nothing, NULL);
        return;
    }
    if ((procedure & ~WANTS_ANSWER) == ASK) {
        self->answering = transport;
        self->asked = 1;
        return;
    }
    message_t here = {.array = self->array, .tag = tag_of(procedure), .allocate = 1};
    message_t *into = &here;
    if (self->waiting && matches(self->waiting_tag, here.tag)) {
        into = self->waiting;
        into->tag = here.tag;
    }
    if (!svc_getargs(transport, (xdrproc_t)xdr_message, (caddr_t)into)) {
        svcerr_decode(transport);
        return;
    }
    self->answering = procedure & WANTS_ANSWER ? transport : NULL;
    self->answering_tag = here.tag;
    self->asked = 0;
    if (into == self->waiting) {
        self->waiting = NULL;
        return;
    }
    message_t *early = malloc(sizeof *early);
    if (!early) {
        svcerr_systemerr(transport);
        free(here.data);
        return;
    }
    *early = here;
    store(self, early);
}

/* Waits for calls and serves those that came, as svc_run does, but once. */
static int serve(self_t *self) {
    struct pollfd files[16];
    int count = svc_max_pollfd < 16 ? svc_max_pollfd : 16, open = 0;
    for (int at = 0; at < count; at++) {
        files[at] = svc_pollfd[at];
        files[at].revents = 0;
        open += files[at].fd >= 0;
    }
    /* The listening socket is one; a connection that had been and is gone leaves it alone. */
    if (!self->udp && self->connected && open < 2) {
        wt_say(self->error, sizeof self->error, "RPC: rank 0 closed its connection");
        return WT_PEER_LOST;
    }
    int ready = poll(files, (nfds_t)count, (int)(self->options.limit_s * 1000));
    if (ready < 0 && errno != EINTR) return wt_say(self->error, sizeof self->error, "poll: %s", strerror(errno));
    if (ready == 0) {
        wt_say(self->error, sizeof self->error, "RPC: no call came within the limit");
        return WT_TIMED_OUT;
    }
    if (ready > 0) svc_getreq_poll(files, ready);
    return WT_OK;
}

static int server_recv(self_t *self, int64_t tag, void *data, uint64_t capacity, wt_status *status) {
    int code;
    if (take_stored(self, tag, data, capacity, status, &code)) return code;
    message_t here = {.data = data, .capacity = capacity > INT_MAX ? INT_MAX : (uint32_t)capacity, .array = self->array};
    self->waiting = &here;
    self->waiting_tag = tag;
    while (self->waiting)
        if ((code = serve(self)) != WT_OK) {
            self->waiting = NULL;
            return code;
        }
    code = deliver(&here, 0, data, capacity, status);
    if (here.allocate) free(here.data);
    return code;
}

static int server_send(self_t *self, uint32_t tag, const void *data, uint64_t bytes) {
    int code;
    while (!self->answering)
        if ((code = serve(self)) != WT_OK) return code;
    message_t answer = {.data = (char *)data, .bytes = (uint32_t)bytes, .tag = tag, .array = self->array};
    answer.tagged = self->asked || tag != self->answering_tag;
    SVCXPRT *to = self->answering;
    self->answering = NULL;
    self->asked = 0;
    if (!svc_sendreply(to, (xdrproc_t)xdr_message, (caddr_t)&answer)) {
        wt_say(self->error, sizeof self->error,
               "RPC: the answer could not be sent: %llu bytes may be more than the buffers hold, or rank 0 has gone",
               (unsigned long long)bytes);
        return WT_TRANSPORT;
    }
    return WT_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static int open_server(self_t *self, char *error, size_t size) {
    server = self;
    self->transport = self->udp ? (self->buffer ? svcudp_bufcreate(RPC_ANYSOCK, self->buffer, self->buffer)
                                                : svcudp_create(RPC_ANYSOCK))
                                : svctcp_create(RPC_ANYSOCK, self->buffer, self->buffer);
    if (!self->transport) return wt_say(error, size, "the library made no server transport: %s", strerror(errno));
    int protocol = self->udp ? IPPROTO_UDP : IPPROTO_TCP;
    if (self->rpcbind) pmap_unset(PROGRAM, VERSION);
    if (!svc_register(self->transport, PROGRAM, VERSION, dispatch, self->rpcbind ? protocol : 0))
        return self->rpcbind ? wt_say(error, size, "rpcbind does not take the registration: none answers on this host")
                             : wt_say(error, size, "the program could not be registered");
    char port[16];
    int length = snprintf(port, sizeof port, "%d", self->transport->xp_port);
    return wt_publish(&self->options, "rpc-1", port, (size_t)length, error, size);
}

static int open_client(self_t *self, char *error, size_t size) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *host = wt_option(&self->options, "address", "127.0.0.1");
    char *port;
    size_t bytes;
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        return wt_say(error, size, "options: address=%s is not allowed: an IPv4 address", host);
    int code = wt_look_up(&self->options, "rpc-1", wt_now() + wt_meeting_s(&self->options), &port, &bytes, error, size);
    if (code != WT_OK) return code;
    int number = atoi(port);
    free(port);
    if (self->rpcbind) {
        number = pmap_getport(&address, PROGRAM, VERSION, self->udp ? IPPROTO_UDP : IPPROTO_TCP);
        if (!number) return wt_say(error, size, "%s", clnt_spcreateerror("rpcbind of the server's host"));
    }
    address.sin_port = htons((uint16_t)number);
    self->socket = RPC_ANYSOCK;
    /* Longer than any call may last: no call is sent twice. */
    struct timeval retry = {(time_t)self->options.limit_s * 2 + 60, 0};
    self->client = !self->udp       ? clnttcp_create(&address, PROGRAM, VERSION, &self->socket, self->buffer, self->buffer)
                   : !self->buffer ? clntudp_create(&address, PROGRAM, VERSION, retry, &self->socket)
                                   : clntudp_bufcreate(&address, PROGRAM, VERSION, retry, &self->socket, self->buffer,
                                                       self->buffer);
    if (!self->client) return wt_say(error, size, "%s:%d: %s", host, number, clnt_spcreateerror("RPC client"));
    struct timeval soon = {5, 0};
    enum clnt_stat said = clnt_call(self->client, NULLPROC, nothing, NULL, nothing, NULL, soon);
    if (said != RPC_SUCCESS) return wt_say(error, size, "%s:%d: procedure 0: %s", host, number, clnt_sperrno(said));
    return WT_OK;
}

/* The server's first call is the client's procedure 0. */
static int await_client(self_t *self, char *error, size_t size) {
    double limit = self->options.limit_s;
    int code = WT_OK;
    self->options.limit_s = wt_meeting_s(&self->options);
    while (code == WT_OK && !self->served) code = serve(self);
    self->options.limit_s = limit;
    if (code != WT_OK) wt_say(error, size, "rank 0 did not call: %s", self->error);
    return code;
}

static void describe(self_t *self, int descriptor, char *into, size_t size) {
    int nodelay = 0, sends = 0, receives = 0;
    socklen_t length = sizeof nodelay;
    getsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &nodelay, &length);
    length = sizeof sends;
    getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &sends, &length);
    length = sizeof receives;
    getsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receives, &length);
    int at = snprintf(into, size,
                      "{\"library\":\"libtirpc\",\"transport\":\"%s\",\"argument\":\"%s\",\"rpc_buffer_bytes\":%u,"
                      "\"send_buffer_bytes\":%d,\"receive_buffer_bytes\":%d,\"rpcbind\":%s,\"kept\":\"%s\"",
                      self->udp ? "udp" : "tcp", self->array ? "array" : "opaque",
                      self->buffer ? self->buffer : self->udp ? UDPMSGSIZE : 0, sends, receives,
                      self->rpcbind ? "true" : "false", self->borrow ? "borrowed" : "copied");
    if (!self->udp) at += snprintf(into + at, size - (size_t)at, ",\"nodelay\":%s", nodelay ? "true" : "false");
    snprintf(into + at, size - (size_t)at, "}");
}

static int refuse_size(self_t *self, uint64_t bytes, char *error, size_t size) {
    uint64_t encoded = self->array ? bytes * 4 : bytes + 3;
    uint64_t room = self->buffer ? self->buffer : UDPMSGSIZE;
    if (self->udp && encoded + HEADER > room) {
        wt_say(error, size, "a message of %llu bytes takes %llu on the wire: UDP's buffers hold %llu",
               (unsigned long long)bytes, (unsigned long long)(encoded + HEADER), (unsigned long long)room);
        return WT_UNSUPPORTED;
    }
    return WT_OK;
}

int wt_open(const char *text, void **opened, wt_info *info, char *error, size_t error_size) {
    static const char *const own[] = {"transport", "argument", "buffer", "most", "address", "rpcbind", "keep", NULL};
    self_t *self = calloc(1, sizeof *self);
    if (!self) return wt_say(error, error_size, "no memory");
    int code = wt_read_options(text, own, &self->options, error, error_size);
    if (code != WT_OK) goto refused;
    const char *transport = wt_option(&self->options, "transport", "tcp");
    const char *argument = wt_option(&self->options, "argument", "opaque");
    const char *keep = wt_option(&self->options, "keep", "copy");
    const char *rpcbind = wt_option(&self->options, "rpcbind", "no");
    long buffer = atol(wt_option(&self->options, "buffer", "0"));
    long most = atol(wt_option(&self->options, "most", "0"));
    code = WT_TRANSPORT;
    if (self->options.size != 2)
        wt_say(error, error_size, "size=%d is not allowed: RPC has one client and one server, 2", self->options.size);
    else if (strcmp(transport, "tcp") && strcmp(transport, "udp"))
        wt_say(error, error_size, "options: transport=%s is not allowed: tcp, udp", transport);
    else if (strcmp(argument, "opaque") && strcmp(argument, "array"))
        wt_say(error, error_size, "options: argument=%s is not allowed: opaque, array", argument);
    else if (strcmp(keep, "copy") && strcmp(keep, "borrow"))
        wt_say(error, error_size, "options: keep=%s is not allowed: copy, borrow", keep);
    else if (strcmp(rpcbind, "yes") && strcmp(rpcbind, "no"))
        wt_say(error, error_size, "options: rpcbind=%s is not allowed: yes, no", rpcbind);
    else if (buffer < 0 || buffer > (strcmp(transport, "udp") ? 1l << 30 : (long)LARGEST_DATAGRAM))
        wt_say(error, error_size, "options: buffer=%ld is not allowed: 0 to %u with UDP, 2^30 with TCP", buffer,
               LARGEST_DATAGRAM);
    else
        code = WT_OK;
    if (code != WT_OK) goto refused;
    self->udp = strcmp(transport, "udp") == 0;
    self->array = strcmp(argument, "array") == 0;
    self->borrow = strcmp(keep, "borrow") == 0;
    self->rpcbind = strcmp(rpcbind, "yes") == 0;
    self->buffer = (unsigned)buffer;
    if ((code = refuse_size(self, (uint64_t)most, error, error_size)) != WT_OK) goto refused;
    if (self->options.rank == 1) {
        code = open_server(self, error, error_size);
        if (code == WT_OK) code = await_client(self, error, error_size);
    } else {
        code = open_client(self, error, error_size);
    }
    if (code != WT_OK) goto refused;
    info->rank = self->options.rank;
    info->size = self->options.size;
    describe(self, self->options.rank == 1 ? self->transport->xp_fd : self->socket, info->effective, sizeof info->effective);
    *opened = self;
    return WT_OK;
refused:
    if (self->transport) svc_destroy(self->transport);
    if (self->client) clnt_destroy(self->client);
    free(self->options.lines);
    free(self);
    return code;
}

/* ---- the interface ------------------------------------------------------------------------------------- */

int wt_send(void *opened, int32_t to, uint32_t tag, const void *data, uint64_t bytes) {
    self_t *self = opened;
    if (to != 1 - self->options.rank) {
        if (to != self->options.rank) return WT_NO_SUCH_RANK;
        wt_say(self->error, sizeof self->error, "RPC: a rank does not call itself");
        return WT_UNSUPPORTED;
    }
    if ((tag >= CONTROL_PROCEDURE - FIRST && tag != WT_CONTROL) || bytes > INT_MAX / 4) {
        wt_say(self->error, sizeof self->error, "RPC: a tag of %u or a message of %llu bytes is too large", tag,
               (unsigned long long)bytes);
        return WT_UNSUPPORTED;
    }
    int code = refuse_size(self, bytes, self->error, sizeof self->error);
    if (code != WT_OK) return code;
    return self->options.rank == 0 ? client_send(self, tag, data, bytes) : server_send(self, tag, data, bytes);
}

int wt_recv(void *opened, int32_t from, int64_t tag, void *data, uint64_t capacity, wt_status *status) {
    self_t *self = opened;
    if (from >= 2 || from < -1) return WT_NO_SUCH_RANK;
    if (from == self->options.rank) {
        wt_say(self->error, sizeof self->error, "RPC: a rank does not call itself");
        return WT_UNSUPPORTED;
    }
    return self->options.rank == 0 ? client_recv(self, tag, data, capacity, status)
                                   : server_recv(self, tag, data, capacity, status);
}

/* Rank 0 sends first and rank 1 receives first, which is what a call is: no order deadlocks. */
int wt_exchange(void *opened, const wt_outgoing *sends, int32_t n_sends, wt_incoming *receives, int32_t n_receives) {
    self_t *self = opened;
    int code = WT_OK;
    for (int turn = 0; turn < 2; turn++) {
        if (turn == self->options.rank)
            for (int32_t at = 0; at < n_sends && code == WT_OK; at++)
                code = wt_send(self, sends[at].to, sends[at].tag, sends[at].data, sends[at].bytes);
        else
            for (int32_t at = 0; at < n_receives && code == WT_OK; at++)
                code = wt_recv(self, receives[at].from, receives[at].tag, receives[at].data, receives[at].capacity,
                               &receives[at].status);
    }
    return code;
}

int wt_call(void *opened) {
    self_t *self = opened;
    wt_say(self->error, sizeof self->error, "RPC has no call that moves nothing: procedure 0 goes there and back");
    return WT_UNSUPPORTED;
}

const char *wt_error(void *self) { return ((self_t *)self)->error; }

void wt_close(void *opened) {
    self_t *self = opened;
    if (self->client) {
        send_kept(self);
        /* Batched calls wait in the buffer until a call that is answered. */
        struct timeval soon = {1, 0};
        clnt_call(self->client, NULLPROC, nothing, NULL, nothing, NULL, soon);
        clnt_destroy(self->client);
    }
    if (self->transport) {
        /* Until rank 0 has closed: its last call wants an answer. */
        double deadline = wt_now() + 1.0, limit = self->options.limit_s;
        self->served = 0;
        self->options.limit_s = 1.0;
        while (!self->served && wt_now() < deadline && serve(self) == WT_OK) {}
        self->options.limit_s = limit;
        if (self->rpcbind) pmap_unset(PROGRAM, VERSION);
        svc_unregister(PROGRAM, VERSION);
        svc_destroy(self->transport);
    }
    for (message_t *next, *at = self->first; at; at = next) {
        next = at->next;
        free(at->data);
        free(at);
    }
    free(self->own);
    free(self->options.lines);
    free(self);
}
