/* The reference shim: stream sockets over TCP, as a user of a library would write a shim for it.
 *
 * No library stands behind it, so a measurement through it can be held against the same calls made
 * without a shim (the layer socket/tcp). Ranks are connected in pairs. Nothing is added to the bytes of a
 * message: a receive takes as many as its buffer has, tags are not carried, and messages between two
 * ranks are received in the order in which they were sent.
 *
 * Options: `address` (where each rank listens; 127.0.0.1), `nodelay` (Nagle's algorithm off; true). */
#define _GNU_SOURCE
#include "wiretwin_shim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 1024 };

typedef struct {
    int32_t rank, size;
    int *sockets; /* by rank; -1 for this rank */
    char error[256];
} layer;

typedef struct {
    char directory[4000];
    char address[64];
    double limit_s;
    int rank, size, nodelay;
} settings;

int wt_abi(void) { return WT_ABI; }

static int set(settings *to, const char *key, const char *value, char *error, size_t room) {
    if (!strcmp(key, "directory") && strlen(value) < sizeof to->directory - 32) strcpy(to->directory, value);
    else if (!strcmp(key, "address") && strlen(value) < sizeof to->address) strcpy(to->address, value);
    else if (!strcmp(key, "limit_s")) to->limit_s = atof(value);
    else if (!strcmp(key, "rank")) to->rank = atoi(value);
    else if (!strcmp(key, "size")) to->size = atoi(value);
    else if (!strcmp(key, "nodelay")) to->nodelay = !strcmp(value, "true");
    else {
        snprintf(error, room, "option %s=%.80s is not allowed: address, nodelay", key, value);
        return 0;
    }
    return 1;
}

static int read_settings(settings *to, const char *options, char *error, size_t room) {
    *to = (settings){.address = "127.0.0.1", .limit_s = 10, .rank = -1, .nodelay = 1};
    char *copy = strdup(options), *rest = copy;
    int good = copy != NULL;
    for (char *line; good && (line = strsep(&rest, "\n"));) {
        char *equals = strchr(line, '=');
        if (!equals) continue;
        *equals = 0;
        good = set(to, line, equals + 1, error, room);
    }
    free(copy);
    if (good && (to->size < 1 || to->size > MOST_RANKS || to->rank < 0 || to->rank >= to->size)) {
        snprintf(error, room, "rank %d of %d is not allowed: 1 to %d ranks", to->rank, to->size, MOST_RANKS);
        return 0;
    }
    return good;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Moves all of `bytes`; 1, 0 if the peer has gone, -1 with errno. */
static int move(int socket, char *data, uint64_t bytes, int sending) {
    while (bytes > 0) {
        ssize_t count = sending ? send(socket, data, bytes, MSG_NOSIGNAL) : recv(socket, data, bytes, 0);
        if (count == 0) return 0;
        if (count < 0) {
            if (errno == EINTR) continue;
            return errno == ECONNRESET || errno == EPIPE ? 0 : -1;
        }
        data += count;
        bytes -= (uint64_t)count;
    }
    return 1;
}

static int listen_at(const settings *with, struct sockaddr_in *bound) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof *bound;
    *bound = (struct sockaddr_in){.sin_family = AF_INET};
    if (inet_pton(AF_INET, with->address, &bound->sin_addr) != 1) errno = EINVAL;
    else if (listener >= 0 && !bind(listener, (struct sockaddr *)bound, sizeof *bound) && !listen(listener, with->size)
             && !getsockname(listener, (struct sockaddr *)bound, &length))
        return listener;
    if (listener >= 0) close(listener);
    return -1;
}

/* Says where this rank listens, in a file that appears whole. */
static int publish(const settings *with, const struct sockaddr_in *bound) {
    char path[4096], aside[4096 + 8];
    snprintf(path, sizeof path, "%s/shim-%d", with->directory, with->rank);
    snprintf(aside, sizeof aside, "%s.new", path);
    FILE *file = fopen(aside, "w");
    if (!file) return 0;
    fprintf(file, "%d\n", ntohs(bound->sin_port));
    return !fclose(file) && !rename(aside, path);
}

/* Connects to a lower rank, which may not have published yet. */
static int connect_to(const settings *with, int rank, double deadline) {
    char path[4096];
    snprintf(path, sizeof path, "%s/shim-%d", with->directory, rank);
    struct timespec pause = {.tv_nsec = 1000000};
    for (; now() < deadline; nanosleep(&pause, NULL)) {
        int port = 0;
        FILE *file = fopen(path, "r");
        if (!file) continue;
        int read = fscanf(file, "%d", &port);
        fclose(file);
        if (read != 1) continue;
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        inet_pton(AF_INET, with->address, &at.sin_addr);
        int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int32_t me = with->rank;
        if (made >= 0 && !connect(made, (struct sockaddr *)&at, sizeof at) && move(made, (char *)&me, sizeof me, 1) == 1)
            return made;
        if (made >= 0) close(made);
    }
    errno = ETIMEDOUT;
    return -1;
}

static int accept_one(layer *self, int listener, double deadline) {
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    int left = (int)((deadline - now()) * 1000);
    if (poll(&wait, 1, left > 0 ? left : 0) != 1) {
        errno = ETIMEDOUT;
        return 0;
    }
    int made = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int32_t rank = -1;
    if (made < 0 || move(made, (char *)&rank, sizeof rank, 0) != 1) return 0;
    if (rank <= self->rank || rank >= self->size || self->sockets[rank] >= 0) {
        errno = EPROTO;
        return 0;
    }
    self->sockets[rank] = made;
    return 1;
}

static int meet(layer *self, const settings *with) {
    double deadline = now() + with->limit_s / 2;
    struct sockaddr_in bound;
    int listener = listen_at(with, &bound);
    int good = listener >= 0 && publish(with, &bound);
    for (int rank = 0; good && rank < with->rank; rank++)
        good = (self->sockets[rank] = connect_to(with, rank, deadline)) >= 0;
    for (int more = with->rank + 1; good && more < with->size; more++) good = accept_one(self, listener, deadline);
    int one = with->nodelay;
    for (int rank = 0; good && rank < with->size; rank++)
        if (self->sockets[rank] >= 0)
            good = !setsockopt(self->sockets[rank], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (listener >= 0) close(listener);
    return good;
}

int wt_open(const char *options, void **out, wt_info *info, char *error, size_t room) {
    settings with;
    if (!read_settings(&with, options, error, room)) return WT_UNSUPPORTED;
    layer *self = calloc(1, sizeof *self);
    int *sockets = calloc((size_t)with.size, sizeof *sockets);
    if (!self || !sockets) {
        free(self);
        free(sockets);
        snprintf(error, room, "no memory for %d ranks", with.size);
        return WT_TRANSPORT;
    }
    *self = (layer){.rank = with.rank, .size = with.size, .sockets = sockets};
    for (int rank = 0; rank < with.size; rank++) sockets[rank] = -1;
    if (!meet(self, &with)) {
        snprintf(error, room, "rank %d of %d at %s did not meet the others: %s", with.rank, with.size, with.address,
                 strerror(errno));
        wt_close(self);
        return WT_TRANSPORT;
    }
    int nodelay = with.nodelay;
    socklen_t length = sizeof nodelay;
    for (int rank = 0; rank < with.size; rank++)
        if (sockets[rank] >= 0) getsockopt(sockets[rank], IPPROTO_TCP, TCP_NODELAY, &nodelay, &length);
    *out = self;
    info->rank = with.rank;
    info->size = with.size;
    snprintf(info->effective, sizeof info->effective, "{\"wait\":\"block\",\"nodelay\":%s}", nodelay ? "true" : "false");
    return WT_OK;
}

static int refuse(layer *self, int code, const char *why) {
    snprintf(self->error, sizeof self->error, "%s", why);
    return code;
}

static int ended(layer *self, int outcome) {
    if (outcome == 1) return WT_OK;
    return refuse(self, outcome == 0 ? WT_PEER_LOST : WT_TRANSPORT, outcome == 0 ? "the peer has gone" : strerror(errno));
}

static int socket_of(layer *self, int32_t rank) { return rank >= 0 && rank < self->size ? self->sockets[rank] : -1; }

int wt_send(void *me, int32_t to, uint32_t tag, const void *data, uint64_t bytes) {
    layer *self = me;
    (void)tag;
    if (socket_of(self, to) < 0) return refuse(self, WT_UNSUPPORTED, "a message to oneself, as nothing is stored");
    return ended(self, move(socket_of(self, to), (char *)data, bytes, 1));
}

static int may_receive(layer *self, int32_t from, int64_t tag) {
    if (from < 0) return refuse(self, WT_UNSUPPORTED, "a message from any rank: each has a socket of its own");
    if (tag < 0) return refuse(self, WT_UNSUPPORTED, "any tag: tags are not carried");
    if (socket_of(self, from) < 0) return refuse(self, WT_UNSUPPORTED, "a message from oneself, as nothing is stored");
    return WT_OK;
}

int wt_recv(void *me, int32_t from, int64_t tag, void *data, uint64_t capacity, wt_status *status) {
    layer *self = me;
    int code = may_receive(self, from, tag);
    if (code != WT_OK) return code;
    *status = (wt_status){from, (uint32_t)tag, capacity};
    return ended(self, move(socket_of(self, from), data, capacity, 0));
}

/* Sends and receives at once, so that two ranks that send to each other both get on. */
static int exchange_pair(layer *self, const wt_outgoing *out, wt_incoming *in) {
    uint64_t sent = 0, received = 0, to_send = out ? out->bytes : 0, to_receive = in ? in->capacity : 0;
    while (sent < to_send || received < to_receive) {
        struct pollfd wait[2] = {
            {.fd = sent < to_send ? socket_of(self, out->to) : -1, .events = POLLOUT},
            {.fd = received < to_receive ? socket_of(self, in->from) : -1, .events = POLLIN},
        };
        if (poll(wait, 2, -1) < 0 && errno != EINTR) return refuse(self, WT_TRANSPORT, strerror(errno));
        for (int way = 0; way < 2; way++) {
            if (!wait[way].revents) continue;
            ssize_t count = way == 0 ? send(wait[0].fd, (const char *)out->data + sent, to_send - sent,
                                            MSG_NOSIGNAL | MSG_DONTWAIT)
                                     : recv(wait[1].fd, (char *)in->data + received, to_receive - received, MSG_DONTWAIT);
            if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            if (count <= 0) return ended(self, count == 0 || errno == ECONNRESET || errno == EPIPE ? 0 : -1);
            *(way == 0 ? &sent : &received) += (uint64_t)count;
        }
    }
    return WT_OK;
}

int wt_exchange(void *me, const wt_outgoing *sends, int32_t n_sends, wt_incoming *receives, int32_t n_receives) {
    layer *self = me;
    for (int32_t i = 0; i < n_sends; i++)
        if (socket_of(self, sends[i].to) < 0) return refuse(self, WT_UNSUPPORTED, "a message to oneself, as nothing is stored");
    for (int32_t i = 0; i < n_receives; i++) {
        int code = may_receive(self, receives[i].from, receives[i].tag);
        if (code != WT_OK) return code;
    }
    for (int32_t i = 0; i < n_sends || i < n_receives; i++) {
        wt_incoming *in = i < n_receives ? &receives[i] : NULL;
        int code = exchange_pair(self, i < n_sends ? &sends[i] : NULL, in);
        if (code != WT_OK) return code;
        if (in) in->status = (wt_status){in->from, (uint32_t)in->tag, in->capacity};
    }
    return WT_OK;
}

int wt_call(void *me) {
    layer *self = me;
    for (int32_t rank = 0; rank < self->size; rank++) {
        char byte;
        if (self->sockets[rank] < 0) continue;
        recv(self->sockets[rank], &byte, 1, MSG_DONTWAIT | MSG_PEEK);
        return WT_OK;
    }
    return refuse(self, WT_UNSUPPORTED, "a call without a peer");
}

const char *wt_error(void *me) { return ((layer *)me)->error; }

void wt_close(void *me) {
    layer *self = me;
    for (int32_t rank = 0; rank < self->size; rank++)
        if (self->sockets[rank] >= 0) close(self->sockets[rank]);
    free(self->sockets);
    free(self);
}
