/* Stands before UCX's `ucp_tag_send_nbx` in another program and spends a few instructions before each call.
 *
 *   LD_PRELOAD=before_send.so BEFORE_SEND_TURNS=10 ucx_perftest …
 *
 * A turn is one turn of an empty loop. `turns` runs so many, for a caller that wants to know how long one takes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

typedef ucs_status_ptr_t send_t(ucp_ep_h, const void *, size_t, ucp_tag_t, const ucp_request_param_t *);

static send_t *real;
static long before;

void turns(long count) {
    for (long turn = 0; turn < count; turn++) __asm__ volatile("" ::: "memory");
}

__attribute__((constructor)) static void start(void) {
    const char *said = getenv("BEFORE_SEND_TURNS");
    before = said ? atol(said) : 0;
    real = (send_t *)dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
}

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h to, const void *data, size_t bytes, ucp_tag_t tag,
                                  const ucp_request_param_t *how) {
    turns(before);
    return real(to, data, bytes, tag, how);
}
