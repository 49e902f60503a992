/* Broadcast of Sun RPC: one call to a program on every host of a network, through each host's rpcbind.
 *
 * A loop of its own, which no other layer has: the time from a call to the last of the answers expected.
 * `wt_broadcast_serve` registers the program on this host and answers; `wt_broadcast` calls. The call goes by UDP
 * to the network's broadcast address (RFC 1833 2.2.1, `rpc_broadcast`); a host whose rpcbind does not take
 * remote calls (`-r`) is silent. An answer may come twice, once for each version of rpcbind's protocol: hosts are
 * counted, not answers. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <rpc/pmap_clnt.h>
#include <rpc/rpc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM 0x20575755ul
#define VERSION 1ul
#define ECHO 1ul
#define STOP 2ul
#define MOST_HOSTS 64
#define LARGEST 1024u /* what the library's broadcast takes with room for its own headers */

typedef struct {
    char *data;
    u_int bytes;
} body_t;

static body_t body; /* what comes and goes: the library's dispatch has no argument of ours */
static int stopped;
static struct {
    struct in_addr seen[MOST_HOSTS];
    int count, wanted;
} answers;

static bool_t xdr_nothing(XDR *xdrs, ...) {
    (void)xdrs;
    return TRUE;
}

static bool_t xdr_body(XDR *xdrs, body_t *message) {
    /* The library frees what it has decoded; ours is not from its heap. */
    return xdrs->x_op == XDR_FREE || xdr_bytes(xdrs, &message->data, &message->bytes, LARGEST);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void dispatch(struct svc_req *request, SVCXPRT *transport) {
    if (request->rq_proc == NULLPROC || request->rq_proc == STOP) {
        stopped |= request->rq_proc == STOP;
        svc_sendreply(transport, xdr_nothing, NULL);
        return;
    }
    if (request->rq_proc != ECHO) {
        svcerr_noproc(transport);
        return;
    }
    body.bytes = 0;
    if (!svc_getargs(transport, (xdrproc_t)xdr_body, (caddr_t)&body)) return;
    svc_sendreply(transport, (xdrproc_t)xdr_body, (caddr_t)&body);
}

/* Serves until it is told to stop or `limit_s` is over. Writes `ready\n` to `ready` once it is registered.
 * Returns 0, or a reason in `error`. */
int wt_broadcast_serve(double limit_s, int ready, char *error, size_t error_size) {
    static char room[LARGEST];
    body.data = room;
    SVCXPRT *transport = svcudp_create(RPC_ANYSOCK);
    if (!transport) {
        snprintf(error, error_size, "the library made no UDP transport");
        return 1;
    }
    pmap_unset(PROGRAM, VERSION);
    if (!svc_register(transport, PROGRAM, VERSION, dispatch, IPPROTO_UDP)) {
        snprintf(error, error_size, "rpcbind does not take the registration: none answers on this host");
        return 1;
    }
    if (write(ready, "ready\n", 6) != 6) return 1;
    int64_t deadline = now_ns() + (int64_t)(limit_s * 1e9);
    while (!stopped) {
        int64_t left = deadline - now_ns();
        struct pollfd files[8];
        int count = svc_max_pollfd < 8 ? svc_max_pollfd : 8;
        memcpy(files, svc_pollfd, (size_t)count * sizeof *files);
        if (left <= 0) break;
        int came = poll(files, (nfds_t)count, (int)(left / 1000000) + 1);
        if (came > 0) svc_getreq_poll(files, came);
    }
    pmap_unset(PROGRAM, VERSION);
    svc_destroy(transport);
    return 0;
}

static bool_t answered(char *result, struct sockaddr_in *from) {
    (void)result;
    for (int at = 0; at < answers.count; at++)
        if (answers.seen[at].s_addr == from->sin_addr.s_addr) return FALSE;
    if (answers.count < MOST_HOSTS) answers.seen[answers.count++] = from->sin_addr;
    return answers.count >= answers.wanted;
}

/* Calls all hosts with `bytes` octets until `hosts` have answered; nanoseconds, or -1 with a reason in `error`.
 * The library gives up by itself after some tens of seconds. */
int64_t wt_broadcast(unsigned bytes, int hosts, char *error, size_t error_size) {
    static char out[LARGEST], in[LARGEST];
    if (bytes > LARGEST || hosts < 1 || hosts > MOST_HOSTS) {
        snprintf(error, error_size, "%u octets to %d hosts: at most %u octets and %d hosts", bytes, hosts, LARGEST, MOST_HOSTS);
        return -1;
    }
    memset(out, 0x5a, sizeof out);
    body_t message = {out, bytes}, answer = {in, 0};
    answers.count = 0;
    answers.wanted = hosts;
    int64_t before = now_ns();
    enum clnt_stat said = clnt_broadcast(PROGRAM, VERSION, ECHO, (xdrproc_t)xdr_body, (char *)&message, (xdrproc_t)xdr_body,
                                         (char *)&answer, (resultproc_t)answered);
    int64_t took = now_ns() - before;
    if (said != RPC_SUCCESS) {
        snprintf(error, error_size, "%s: %d of %d hosts answered", clnt_sperrno(said), answers.count, hosts);
        return -1;
    }
    if (answer.bytes != bytes || memcmp(in, out, bytes) != 0) {
        snprintf(error, error_size, "an answer is not what was sent");
        return -1;
    }
    return took;
}

/* Tells all hosts to stop; returns how many said that they do. */
int wt_broadcast_stop(int hosts) {
    answers.count = 0;
    answers.wanted = hosts;
    clnt_broadcast(PROGRAM, VERSION, STOP, xdr_nothing, NULL, xdr_nothing, NULL, (resultproc_t)answered);
    return answers.count;
}
