/* The shim interface: a messaging library behind a few C functions, ABI 1.
 *
 * A shim is a shared object built on the user's machine against a library's public interface. A probe
 * loads it (RTLD_NOW | RTLD_GLOBAL) and runs the measuring loops and the programs over it. All loops,
 * counting, statistics and records are on the other side of this interface; a shim only moves messages.
 *
 * Rules for every shim:
 * - One process is one rank. All calls come from one thread, one at a time.
 * - Messages between two ranks with the same tag arrive in the order they were sent. A message may be empty.
 * - WT_CONTROL is the tag of messages about the run itself: they must not be lost, and no wildcard takes them.
 * - wt_send returns when the buffer may be used again. wt_recv and wt_exchange wait as long as it takes; the
 *   process ends itself at its limit, so a shim needs no timer of its own.
 * - Nothing is written to standard output: it belongs to the probe. A library's own chatter goes to
 *   standard error.
 * - No function aborts the process for something that can be returned. */
#ifndef WIRETWIN_SHIM_H
#define WIRETWIN_SHIM_H

#include <stddef.h>
#include <stdint.h>

#define WT_ABI 1
#define WT_CONTROL UINT32_MAX

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WT_OK = 0,
    WT_TRUNCATED = 1,    /* a message longer than its buffer; status.bytes is its length, 0 if not known */
    WT_PEER_LOST = 2,    /* the peer of the call has gone */
    WT_TIMED_OUT = 3,    /* a limit of the library has passed */
    WT_UNSUPPORTED = 4,  /* this layer cannot do that; wt_error says what */
    WT_TRANSPORT = 5,    /* the library refused; wt_error says why */
    WT_NO_SUCH_RANK = 6  /* no such rank */
};

typedef struct {
    int32_t rank, size;
    char effective[2048]; /* a JSON object: version and options as the library reports them */
} wt_info;

typedef struct {
    int32_t source;
    uint32_t tag;
    uint64_t bytes; /* of the message */
} wt_status;

typedef struct {
    int32_t to;
    uint32_t tag;
    const void *data;
    uint64_t bytes;
} wt_outgoing;

typedef struct {
    int32_t from; /* -1: from any rank */
    int64_t tag;  /* -1: with any tag but WT_CONTROL */
    void *data;
    uint64_t capacity;
    wt_status status; /* filled in by wt_exchange */
} wt_incoming;

/* What all ranks are to do at once, each with the same order. */
typedef struct {
    const char *name;    /* what: `allreduce`, as the probe protocol names it */
    uint32_t verify;     /* 1: do it once and look at what has come; nothing is timed */
    uint64_t bytes;      /* of a message, or of the block of one rank */
    uint64_t messages;   /* an iteration */
    uint64_t busy_ns;    /* how long a rank computes between the start and the end of a non-blocking call */
    uint64_t iterations; /* so many times go to `times_ns` */
} wt_together_order;

/* The version of this interface that the shim was built for: WT_ABI. */
int wt_abi(void);

/* Opens the layer. `options` holds one `key=value` per line. Always there: `directory`, the path of a
 * directory of this run alone, and `limit_s`, the longest life of the process. `rank` and `size` are there
 * where the library does not know them by itself. The rest are the options of the layer; an unknown one is
 * refused by name. On failure `error` says why, ended by a zero within `error_size`, and `*self` stays as it was. */
int wt_open(const char *options, void **self, wt_info *info, char *error, size_t error_size);

int wt_send(void *self, int32_t to, uint32_t tag, const void *data, uint64_t bytes);

/* `from` -1: any rank; `tag` -1: any tag but WT_CONTROL. */
int wt_recv(void *self, int32_t from, int64_t tag, void *data, uint64_t capacity, wt_status *status);

/* Posts all receives, starts all sends, and returns when all are complete. */
int wt_exchange(void *self, const wt_outgoing *sends, int32_t n_sends, wt_incoming *receives, int32_t n_receives);

/* A call that moves nothing; WT_UNSUPPORTED if the library has none. */
int wt_call(void *self);

/* Optional: calls of the library itself that all ranks take part in. Each rank writes the time of its own part,
 * nanoseconds, one entry for each iteration. WT_UNSUPPORTED for a name that the library has nothing for. */
int wt_together(void *self, const wt_together_order *order, uint64_t *times_ns);

/* Optional: ranks are more than cores from now on. A library whose launcher tells its ranks so is told as it would be. */
void wt_crowded(void);

/* The text of the last error, good until the next call. */
const char *wt_error(void *self);

/* Closes the layer and frees `self`. All ranks call it when all are done. */
void wt_close(void *self);

#ifdef __cplusplus
}
#endif

#endif
