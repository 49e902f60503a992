/* One-sided calls of an MPI: what one rank does to a window of another that takes no part. A part of mpi.c.
 *
 * Of n ranks, rank r of the first half does it to rank r + n / 2, all at once, under MPI_Win_lock_all and on
 * memory of MPI_Win_allocate; an iteration ends with MPI_Win_flush, when the data are at the target. The
 * targets time nothing: they wait in a barrier, where their library can help those that need it. Sums and swaps are
 * of one MPI_INT, whatever the length (Open MPI 4.1.4 ends with a segmentation fault where a swap is of eight bytes), but
 * for `accumulate` and `get_accumulate`, which add as many MPI_FLOAT as fit. */

enum { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP, PUT_STREAM, GET_STREAM, ONE_SIDED };

static const char *const one_sided[ONE_SIDED] = {
    "put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap", "put_stream", "get_stream",
};

#if MPI_VERSION >= 3
static int find_one_sided(const char *name) {
    for (int which = 0; which < ONE_SIDED; which++)
        if (!strcmp(name, one_sided[which])) return which;
    return -1;
}

/* A window of at least so many bytes, which all ranks have allocated and locked. Whole pages: in one of 24 bytes
 * MPICH 4.0.2 reads and writes the memory of another rank. */
static int make_window(layer *self, uint64_t need) {
    need = (need + 4095) / 4096 * 4096;
    if (need <= self->window_room) return MPI_SUCCESS;
    int code = MPI_SUCCESS;
    if (self->window_room) {
        code = MPI_Win_unlock_all(self->window);
        if (code == MPI_SUCCESS) code = MPI_Win_free(&self->window);
    }
    self->window_room = 0;
    if (code == MPI_SUCCESS)
        code = MPI_Win_allocate((MPI_Aint)need, 1, MPI_INFO_NULL, self->data, &self->target, &self->window);
    if (code != MPI_SUCCESS) return code;
    MPI_Win_set_errhandler(self->window, MPI_ERRORS_RETURN);
    self->window_room = need;
    memset(self->target, 0, need);
    return MPI_Win_lock_all(0, self->window);
}

static void free_window(layer *self) {
    if (!self->window_room) return;
    MPI_Win_unlock_all(self->window);
    MPI_Win_free(&self->window);
}

static int issue(layer *self, int which, int peer, int bytes, int messages) {
    MPI_Win window = self->window;
    int numbers = bytes / (int)sizeof(float), code = MPI_SUCCESS;
    char *out = self->out, *in = self->in;
    switch (which) {
    case PUT: return MPI_Put(out, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, window);
    case GET: return MPI_Get(in, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, window);
    case ACCUMULATE: return MPI_Accumulate(out, numbers, MPI_FLOAT, peer, 0, numbers, MPI_FLOAT, MPI_SUM, window);
    case GET_ACCUMULATE:
        return MPI_Get_accumulate(out, numbers, MPI_FLOAT, in, numbers, MPI_FLOAT, peer, 0, numbers, MPI_FLOAT, MPI_SUM, window);
    case FETCH_AND_OP: return MPI_Fetch_and_op(out, in, MPI_INT, peer, 0, MPI_SUM, window);
    case COMPARE_AND_SWAP: return MPI_Compare_and_swap(out, out + sizeof(int), in, MPI_INT, peer, 0, window);
    default: break;
    }
    for (int number = 0; number < messages && code == MPI_SUCCESS; number++) {
        MPI_Aint at = (MPI_Aint)number * bytes;
        code = which == PUT_STREAM ? MPI_Put(out, bytes, MPI_BYTE, peer, at, bytes, MPI_BYTE, window)
                                   : MPI_Get(in + at, bytes, MPI_BYTE, peer, at, bytes, MPI_BYTE, window);
    }
    return code;
}

/* Does it once on values that tell where they come from; both ends look at what has come. */
static int verify_window(layer *self, int which, int peer, int from, uint64_t bytes, int messages) {
    const char *name = one_sided[which];
    int streams = which == PUT_STREAM || which == GET_STREAM, code;
    int adds = which == ACCUMULATE || which == GET_ACCUMULATE, words = which == FETCH_AND_OP || which == COMPARE_AND_SWAP;
    uint64_t count = bytes * (uint64_t)(streams ? messages : 1), numbers = bytes / sizeof(float), at = 0;
    unsigned char *mine = self->target, *out = self->out, *in = self->in;
    for (uint64_t i = 0; i < count; i++) mine[i] = adds || words ? 0 : byte_of(self->rank, i);
    for (uint64_t i = 0; i < bytes; i++) out[i] = byte_of(self->rank, i);
    int word[2] = {self->rank + 1, 0};
    if (adds)
        for (uint64_t i = 0; i < numbers; i++) ((float *)(void *)out)[i] = number_of(self->rank, i);
    if (words) memcpy(out, word, sizeof word);
    memset(in, 0, count);
    code = MPI_Win_sync(self->window);
    if (code == MPI_SUCCESS) code = MPI_Barrier(self->data);
    if (peer >= 0) {
        if (code == MPI_SUCCESS) code = issue(self, which, peer, (int)bytes, messages);
        if (code == MPI_SUCCESS) code = MPI_Win_flush(peer, self->window);
    }
    if (code == MPI_SUCCESS) code = MPI_Barrier(self->data);
    if (code == MPI_SUCCESS) code = MPI_Win_sync(self->window);
    if (code != MPI_SUCCESS) return failed(self, code);
    int good = 1;
    if (peer >= 0) {
        if (which == GET || which == GET_STREAM) good = came(in, count, peer, 0, &at);
        return good ? WT_OK : wrong(self, name, at);
    }
    if (from < 0) return WT_OK; /* an odd rank out */
    if (which == PUT) good = came(mine, bytes, from, 0, &at);
    for (int number = 0; which == PUT_STREAM && good && number < messages; number++)
        good = came(mine + (uint64_t)number * bytes, bytes, from, 0, &at);
    for (uint64_t i = 0; adds && good && i < numbers; i++) {
        good = ((float *)(void *)mine)[i] == number_of(from, i);
        at = i;
    }
    if (words) good = *(int *)(void *)mine == from + 1;
    return good ? WT_OK : wrong(self, name, at);
}

static int run_window(layer *self, int which, const wt_together_order *order, uint64_t *times_ns) {
    int half = self->size / 2, messages = (int)order->messages;
    int streams = which == PUT_STREAM || which == GET_STREAM;
    uint64_t bytes = which == FETCH_AND_OP || which == COMPARE_AND_SWAP ? sizeof(int) : order->bytes;
    uint64_t need = bytes * (uint64_t)(streams ? messages : 1), room = need > 16 ? need : 16;
    int refused = too_long(self, room);
    if (refused == WT_OK && (which == ACCUMULATE || which == GET_ACCUMULATE) && bytes % sizeof(float)) {
        snprintf(self->error, sizeof self->error, "%s of %llu bytes: it sums numbers of %d bytes", order->name,
                 (unsigned long long)bytes, (int)sizeof(float));
        refused = WT_UNSUPPORTED;
    }
    if (refused == WT_OK) refused = make_buffers(self, room, room);
    if (refused != WT_OK) return refused;
    int code = make_window(self, room);
    if (code != MPI_SUCCESS) return failed(self, code);
    int peer = self->rank < half ? self->rank + half : -1;
    int from = self->rank >= half && self->rank < 2 * half ? self->rank - half : -1;
    if (order->verify) return verify_window(self, which, peer, from, bytes, messages);
    if (which == ACCUMULATE || which == GET_ACCUMULATE) memset(self->out, 0, bytes); /* sums that stay finite */
    if (which == FETCH_AND_OP || which == COMPARE_AND_SWAP) memset(self->out, 0, 2 * sizeof(int));
    code = MPI_Barrier(self->data);
    for (uint64_t number = 0; number < order->iterations && code == MPI_SUCCESS; number++) {
        times_ns[number] = 0;
        if (peer < 0) continue;
        uint64_t before = clock_ns();
        code = issue(self, which, peer, (int)bytes, messages);
        if (code == MPI_SUCCESS) code = MPI_Win_flush(peer, self->window);
        times_ns[number] = clock_ns() - before;
    }
    if (code == MPI_SUCCESS) code = run_whole(self, BARRIER, 0, 0);
    return code == MPI_SUCCESS ? WT_OK : failed(self, code);
}
#endif
