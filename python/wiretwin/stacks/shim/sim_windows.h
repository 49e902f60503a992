/* Part of sim_hosts.c for MPICH: what its calls do to windows, and what it has when it has begun.
 *
 * Windows that MPICH has allocated for ranks of one host lie in memory that all of them map, and `MPI_Put` and its like are
 * done there by who calls them (MPICH 5.0, ch4/shm/posix); locks and fences stay messages. Its own shared memory is
 * off in the simulated world, so that is done here. Other windows are the library's, by messages; but MPICH 5.0 cuts
 * what it sends for them after 16 KiB, aborts where it would cut through an element, and fails where two such calls are
 * under way: it is given pieces.
 */

/* In virtual time, a call that reaches a window in memory. */
extern void wiretwin_sim_reach(const char *name) __attribute__((weak));
extern void wiretwin_sim_reached(void) __attribute__((weak));
extern void wiretwin_sim_will_ask(unsigned questions) __attribute__((weak));

/* Bytes of a piece, and how many of them go for each stretch of memory that the target's data lie in. */
enum { PIECE = 15 << 10, STRETCH = 32, QUESTIONS = 4 };

struct data {
    void *at;
    MPI_Count count;
    MPI_Datatype type;
};

/* How elements of a type lie: from where, whether one is a block, and whether each begins where that before it ends. */
struct shape {
    MPI_Count size, first;
    int is_named, is_block, is_row;
};

/* What the program names again and again is asked for once: a real run's copy takes 0.1 us. */
static struct shape shape_of(MPI_Datatype type)
{
    static __thread MPI_Datatype last = MPI_DATATYPE_NULL;
    static __thread struct shape of_last;
    if (type == last && type != MPI_DATATYPE_NULL)
        return of_last;
    struct shape shape;
    MPI_Count lower, extent, true_extent;
    int integers, addresses, types, combiner;
    MPI_Type_size_c(type, &shape.size);
    MPI_Type_get_extent_c(type, &lower, &extent);
    MPI_Type_get_true_extent_c(type, &shape.first, &true_extent);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    shape.is_named = combiner == MPI_COMBINER_NAMED;
    shape.is_block = shape.size == true_extent;
    shape.is_row = shape.is_block && shape.size == extent;
    /* The program can free others, and make one of the same number. */
    if (shape.is_named) {
        last = type;
        of_last = shape;
    }
    return shape;
}

static MPI_Count bytes_of(const struct data *data)
{
    return shape_of(data->type).size * data->count;
}

/* Where the bytes of data lie if they lie one after the other. */
static char *dense(const struct data *data)
{
    struct shape shape = shape_of(data->type);
    return shape.is_row || (shape.is_block && data->count == 1) ? (char *)data->at + shape.first : 0;
}

/* As the standard has it, types that lie apart are packed on the way. */
static int copy(const struct data *from, const struct data *to)
{
    MPI_Count bytes = bytes_of(from), place = 0;
    if (bytes > bytes_of(to))
        return MPI_ERR_TRUNCATE;
    if (!bytes)
        return MPI_SUCCESS;
    char *source = dense(from), *target = dense(to);
    if (source && target) {
        memmove(target, source, bytes);
        return MPI_SUCCESS;
    }
    if (source)
        return MPI_Unpack_c(source, bytes, &place, to->at, to->count, to->type, MPI_COMM_SELF);
    if (target)
        return MPI_Pack_c(from->at, from->count, from->type, target, bytes, &place, MPI_COMM_SELF);
    char *packed = malloc(bytes);
    if (!packed)
        return MPI_ERR_NO_MEM;
    int error = MPI_Pack_c(from->at, from->count, from->type, packed, bytes, &place, MPI_COMM_SELF);
    place = 0;
    if (!error)
        error = MPI_Unpack_c(packed, bytes, &place, to->at, to->count, to->type, MPI_COMM_SELF);
    free(packed);
    return error;
}

/* What a type is made of, and in how many bytes its elements end; 0 bytes where they are not all alike. */
static int elements(MPI_Datatype type, MPI_Datatype *element)
{
    int integers, addresses, types, combiner, size = 0;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED || !types) {
        *element = type;
        MPI_Type_size(type, &size);
        return size;
    }
    int *numbers = calloc(integers + 1, sizeof *numbers);
    MPI_Aint *places = calloc(addresses + 1, sizeof *places);
    MPI_Datatype *made_of = calloc(types, sizeof *made_of);
    if (numbers && places && made_of) {
        MPI_Type_get_contents(type, integers, addresses, types, numbers, places, made_of);
        for (int at = 0; at < types; at++) {
            int one = elements(made_of[at], element);
            size = at && one != size ? 0 : one;
        }
        for (int at = 0; at < types; at++) {
            MPI_Type_get_envelope(made_of[at], &integers, &addresses, &(int){0}, &combiner);
            if (combiner != MPI_COMBINER_NAMED)
                MPI_Type_free(&made_of[at]);
        }
    }
    free(numbers);
    free(places);
    free(made_of);
    return size;
}

static int combine(const struct data *from, const struct data *to, MPI_Op op)
{
    if (op == MPI_NO_OP)
        return MPI_SUCCESS;
    if (op == MPI_REPLACE)
        return copy(from, to);
    if (from->type == to->type && from->count <= to->count && shape_of(to->type).is_named)
        return MPI_Reduce_local_c(from->at, to->at, from->count, to->type, op);
    MPI_Datatype element;
    int size = elements(to->type, &element);
    MPI_Count bytes = bytes_of(from), place = 0;
    if (!size || bytes > bytes_of(to))
        return size ? MPI_ERR_TRUNCATE : MPI_ERR_TYPE;
    char *packed = malloc(2 * bytes + 1);
    if (!packed)
        return MPI_ERR_NO_MEM;
    char *before = packed + bytes;
    int error = MPI_Pack_c(from->at, from->count, from->type, packed, bytes, &place, MPI_COMM_SELF);
    place = 0;
    if (!error)
        error = MPI_Pack_c(to->at, to->count, to->type, before, bytes, &place, MPI_COMM_SELF);
    place = 0;
    if (!error)
        error = MPI_Reduce_local_c(packed, before, bytes / size, element, op);
    if (!error)
        error = MPI_Unpack_c(before, bytes, &place, to->at, to->count, to->type, MPI_COMM_SELF);
    free(packed);
    return error;
}

enum kind { PUT, GET, ACCUMULATE, GET_ACCUMULATE };

/* A call: what is put, what is got before, and where that is. */
struct access {
    enum kind kind;
    struct data put, got, there; /* `there` without its address */
    int target;
    MPI_Aint place;
    MPI_Op op;
    MPI_Win window;
    MPI_Request *request;
};

/* The library's function of that name with the data of a call. */
#define LIBRARY(name, ...)                                                                                            \
    do {                                                                                                              \
        static __typeof__(&MPI_##name) next;                                                                          \
        return NEXT("MPI_" #name)(__VA_ARGS__);                                                                       \
    } while (0)
#define PUTS a->put.at, few(a->put.count), a->put.type
#define GETS a->got.at, few(a->got.count), a->got.type
#define THERE a->target, a->place, few(a->there.count), a->there.type

static int few(MPI_Count count)
{
    return count > INT_MAX ? INT_MAX : (int)count;
}

/* MPICH takes up what a rank accumulates in its own window a part of 16 KiB at a time, in looks at its network that find
 * nothing: two to four for each of 400 bytes or 8 KiB. */
static void will_accumulate(MPI_Count bytes)
{
    if (wiretwin_sim_will_ask)
        wiretwin_sim_will_ask(QUESTIONS * (1 + bytes / PIECE));
}

static int issue(const struct access *a)
{
    switch (a->kind) {
    case PUT:
        if (a->request)
            LIBRARY(Rput, PUTS, THERE, a->window, a->request);
        LIBRARY(Put, PUTS, THERE, a->window);
    case GET:
        if (a->request)
            LIBRARY(Rget, GETS, THERE, a->window, a->request);
        LIBRARY(Get, GETS, THERE, a->window);
    case ACCUMULATE:
        if (a->request)
            LIBRARY(Raccumulate, PUTS, THERE, a->op, a->window, a->request);
        LIBRARY(Accumulate, PUTS, THERE, a->op, a->window);
    default:
        if (a->request)
            LIBRARY(Rget_accumulate, PUTS, GETS, THERE, a->op, a->window, a->request);
        LIBRARY(Get_accumulate, PUTS, GETS, THERE, a->op, a->window);
    }
}

/* The window in memory that a call is to; none if it is the library's. */
static struct shared *reached(MPI_Win window, int target)
{
    struct shared *one = wiretwin_sim_reach ? known(window) : 0;
    return one && target >= 0 && target < one->ranks ? one : 0;
}

static char *place_in(const struct shared *window, int target, MPI_Aint place)
{
    return window->segments[target].base + place * window->segments[target].unit;
}

/* The library, which is told of no target, looks whether the call is right, and makes the request of what is done. */
static int reach(const char *name, struct shared *one, struct access *access)
{
    struct data there = access->there;
    there.at = place_in(one, access->target, access->place);
    access->target = MPI_PROC_NULL;
    wiretwin_sim_reach(name);
    int error = issue(access);
    if (!error && (access->kind == GET || access->kind == GET_ACCUMULATE))
        error = copy(&there, &access->got);
    if (!error && access->kind != GET)
        error = combine(&access->put, &there, access->op);
    wiretwin_sim_reached();
    return error;
}

/* Data by the stretches of memory that they lie in, and how much of them has been taken. */
struct taken {
    char *at;
    MPIX_Iov *stretches;
    MPI_Count at_stretch, from;
};

static int take_up(const struct data *data, struct taken *taken)
{
    MPI_Datatype all;
    MPI_Count count, bytes, got;
    *taken = (struct taken){data->at, 0, 0, 0};
    if (MPI_Type_contiguous_c(data->count, data->type, &all) || MPI_Type_commit(&all))
        return MPI_ERR_TYPE;
    MPIX_Type_iov_len(all, bytes_of(data), &count, &bytes);
    taken->stretches = malloc((count + 1) * sizeof *taken->stretches);
    if (taken->stretches)
        MPIX_Type_iov(all, 0, taken->stretches, count, &got);
    MPI_Type_free(&all);
    return taken->stretches ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* So many of the next bytes that they fit into a piece, with what the library sends of how they lie there. */
static MPI_Count fits(struct taken from, MPI_Count bytes, int size)
{
    MPI_Count some = 0, room = PIECE;
    for (; some < bytes && room > STRETCH + size; from.from = 0, from.at_stretch++) {
        MPI_Count left = (MPI_Count)from.stretches[from.at_stretch].iov_len - from.from, most = room - STRETCH;
        some += left < most ? left : most;
        room -= STRETCH + left;
    }
    return some < bytes ? some / size * size : bytes;
}

/* The next bytes, whole elements, as one of a type of their own. */
static int take(struct taken *from, MPI_Count bytes, MPI_Datatype element, int size, struct data *to)
{
    MPI_Count lengths[PIECE], places[PIECE], count = 0;
    while (bytes > 0) {
        MPIX_Iov stretch = from->stretches[from->at_stretch];
        MPI_Count left = (MPI_Count)stretch.iov_len - from->from, some = left < bytes ? left / size * size : bytes;
        /* An element of two parts, MPI_DOUBLE_INT say, lies in more than one. */
        some = some ? some : size;
        places[count] = (MPI_Count)(intptr_t)stretch.iov_base + from->from;
        lengths[count++] = some / size;
        bytes -= some;
        while (some > 0) {
            left = (MPI_Count)from->stretches[from->at_stretch].iov_len - from->from;
            MPI_Count gone = left < some ? left : some;
            some -= gone;
            from->from = gone < left ? from->from + gone : 0;
            from->at_stretch += gone == left;
        }
    }
    *to = (struct data){from->at, 1, MPI_DATATYPE_NULL};
    int error = MPI_Type_create_hindexed_c(count, lengths, places, element, &to->type);
    return error ? error : MPI_Type_commit(&to->type);
}

/* Whether a call is longer than a piece, and what its pieces consist of. */
static int is_cut(const struct access *a, MPI_Datatype *element, int *size)
{
    MPI_Count bytes = bytes_of(&a->there);
    int has_put = a->kind != GET && a->put.count > 0, has_got = a->kind == GET || a->kind == GET_ACCUMULATE;
    *element = MPI_BYTE;
    *size = 1;
    if (bytes <= PIECE || (has_put && bytes_of(&a->put) != bytes) || (has_got && bytes_of(&a->got) != bytes))
        return 0;
    if (a->kind == ACCUMULATE || a->kind == GET_ACCUMULATE)
        *size = elements(a->there.type, element);
    return *size > 0;
}

static int issue_pieces(const struct access *whole, MPI_Datatype element, int size)
{
    enum { PUT_PART, GOT_PART, THERE_PART, PARTS };
    const struct data *of[PARTS] = {&whole->put, &whole->got, &whole->there};
    struct taken parts[PARTS] = {{0}};
    MPI_Count bytes = bytes_of(&whole->there), some;
    int error = MPI_SUCCESS;
    for (int part = 0; part < PARTS && !error; part++)
        if (of[part]->count > 0)
            error = take_up(of[part], &parts[part]);
    for (MPI_Count at = 0; !error && at < bytes; at += some) {
        struct access piece = *whole;
        struct data *to[PARTS] = {&piece.put, &piece.got, &piece.there};
        some = fits(parts[THERE_PART], bytes - at, size);
        for (int part = 0; part < PARTS && !error; part++)
            if (parts[part].stretches)
                error = take(&parts[part], some, element, size, to[part]);
        piece.request = at + some < bytes ? 0 : whole->request;
        if (!error)
            error = issue(&piece);
        for (int part = 0; part < PARTS; part++)
            if (parts[part].stretches && to[part]->type != MPI_DATATYPE_NULL)
                MPI_Type_free(&to[part]->type);
    }
    for (int part = 0; part < PARTS; part++)
        free(parts[part].stretches);
    return error;
}

#define FROM from, from_count, from_type
#define TO to, to_count, to_type
#define FROM_PARAMETERS(N) const void *from, N from_count, MPI_Datatype from_type
#define TO_PARAMETERS(N) void *to, N to_count, MPI_Datatype to_type
#define FROM_DATA {(void *)from, from_count, from_type}
#define TO_DATA {to, to_count, to_type}
#define NO_DATA {0, 0, MPI_BYTE}
/* By kind: what comes first among the parameters and in the call, and what is put and got. */
#define FIRST_PUT(N) FROM_PARAMETERS(N)
#define FIRST_GET(N) TO_PARAMETERS(N)
#define FIRST_ACCUMULATE(N) FROM_PARAMETERS(N)
#define FIRST_GET_ACCUMULATE(N) FROM_PARAMETERS(N), TO_PARAMETERS(N)
#define CALL_PUT FROM
#define CALL_GET TO
#define CALL_ACCUMULATE FROM
#define CALL_GET_ACCUMULATE FROM, TO
#define DATA_PUT FROM_DATA, NO_DATA
#define DATA_GET NO_DATA, TO_DATA
#define DATA_ACCUMULATE FROM_DATA, NO_DATA
#define DATA_GET_ACCUMULATE FROM_DATA, TO_DATA
/* And what comes last. */
#define LAST_PLAIN MPI_Win window
#define LAST_REQUEST MPI_Win window, MPI_Request *request
#define LAST_OP MPI_Op op, MPI_Win window
#define LAST_OP_REQUEST MPI_Op op, MPI_Win window, MPI_Request *request
#define ENDS_PLAIN window
#define ENDS_REQUEST window, request
#define ENDS_OP op, window
#define ENDS_OP_REQUEST op, window, request

#define ACCESS(name, N, kind, last, op, request)                                                                      \
    int MPI_##name(FIRST_##kind(N), int target, MPI_Aint place, N there_count, MPI_Datatype there, LAST_##last)       \
    {                                                                                                                 \
        struct access access = {kind, DATA_##kind, {0, there_count, there}, target, place, op, window, request};      \
        struct shared *one = reached(window, target);                                                                 \
        if (one)                                                                                                      \
            return reach("MPI_" #name, one, &access);                                                                 \
        if (kind == ACCUMULATE || kind == GET_ACCUMULATE)                                                             \
            will_accumulate(bytes_of(&access.there));                                                                 \
        MPI_Datatype element;                                                                                         \
        int size;                                                                                                     \
        if (is_cut(&access, &element, &size))                                                                         \
            return issue_pieces(&access, element, size);                                                              \
        static __typeof__(&MPI_##name) next;                                                                          \
        return NEXT("MPI_" #name)(CALL_##kind, target, place, there_count, there, ENDS_##last);                       \
    }                                                                                                                 \
    ALSO(name);
/* A function, and that of the same name with longer counts. */
#define BOTH(name, kind, last, op, request)                                                                           \
    ACCESS(name, int, kind, last, op, request)                                                                        \
    ACCESS(name##_c, MPI_Count, kind, last, op, request)
BOTH(Put, PUT, PLAIN, MPI_REPLACE, 0)
BOTH(Rput, PUT, REQUEST, MPI_REPLACE, request)
BOTH(Get, GET, PLAIN, MPI_NO_OP, 0)
BOTH(Rget, GET, REQUEST, MPI_NO_OP, request)
BOTH(Accumulate, ACCUMULATE, OP, op, 0)
BOTH(Raccumulate, ACCUMULATE, OP_REQUEST, op, request)
BOTH(Get_accumulate, GET_ACCUMULATE, OP, op, 0)
BOTH(Rget_accumulate, GET_ACCUMULATE, OP_REQUEST, op, request)

int MPI_Fetch_and_op(const void *from, void *to, MPI_Datatype type, int target, MPI_Aint place, MPI_Op op,
                     MPI_Win window)
{
    static __typeof__(&MPI_Fetch_and_op) next;
    struct shared *one = reached(window, target);
    if (!one) {
        will_accumulate(0);
        return NEXT("MPI_Fetch_and_op")(from, to, type, target, place, op, window);
    }
    struct data put = {(void *)from, 1, type}, got = {to, 1, type}, there = {place_in(one, target, place), 1, type};
    wiretwin_sim_reach("MPI_Fetch_and_op");
    int error = NEXT("MPI_Fetch_and_op")(from, to, type, MPI_PROC_NULL, place, op, window);
    if (!error)
        error = copy(&there, &got);
    if (!error)
        error = combine(&put, &there, op);
    wiretwin_sim_reached();
    return error;
}
ALSO(Fetch_and_op);

int MPI_Compare_and_swap(const void *from, const void *compared, void *to, MPI_Datatype type, int target,
                         MPI_Aint place, MPI_Win window)
{
    static __typeof__(&MPI_Compare_and_swap) next;
    struct shared *one = reached(window, target);
    if (!one) {
        will_accumulate(0);
        return NEXT("MPI_Compare_and_swap")(from, compared, to, type, target, place, window);
    }
    char *there = place_in(one, target, place);
    wiretwin_sim_reach("MPI_Compare_and_swap");
    int error = NEXT("MPI_Compare_and_swap")(from, compared, to, type, MPI_PROC_NULL, place, window);
    if (!error) {
        MPI_Count size = shape_of(type).size;
        memcpy(to, there, size);
        if (!memcmp(compared, there, size))
            memcpy(there, from, size);
    }
    wiretwin_sim_reached();
    return error;
}
ALSO(Compare_and_swap);

/* A rank that looks at such memory again and again calls one of these in between: the others' time goes on. */
#define FLUSHES(name, parameters, arguments)                                                                          \
    int MPI_##name parameters                                                                                         \
    {                                                                                                                 \
        static __typeof__(&MPI_##name) next;                                                                          \
        int is_reached = reached(window, 0) != 0;                                                                     \
        if (is_reached)                                                                                               \
            wiretwin_sim_reach("MPI_" #name);                                                                         \
        int error = NEXT("MPI_" #name) arguments;                                                                     \
        if (is_reached)                                                                                               \
            wiretwin_sim_reached();                                                                                   \
        return error;                                                                                                 \
    }                                                                                                                 \
    ALSO(name);
FLUSHES(Win_flush, (int target, MPI_Win window), (target, window))
FLUSHES(Win_flush_local, (int target, MPI_Win window), (target, window))
FLUSHES(Win_flush_all, (MPI_Win window), (window))
FLUSHES(Win_flush_local_all, (MPI_Win window), (window))
FLUSHES(Win_sync, (MPI_Win window), (window))

/* Whether ranks share a host, all of them, and so have in memory what a real run has there. */
static int in_memory(MPI_Comm communicator)
{
    int ranks;
    MPI_Comm_size(communicator, &ranks);
    return ranks > 1 && getenv("WIRETWIN_SIM_WINDOWS") != 0;
}

/* Where MPICH has shared memory it has got, when it has begun, the memory in which it keeps what is about a message that
 * nobody waits for; elsewhere the first of them is charged with its 68 pages. A message to itself is one. It is none of the
 * program's calls, which a recorder before this library would take it for. */
void wiretwin_sim_begun(void)
{
    int rank;
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!in_memory(MPI_COMM_WORLD))
        return;
    __typeof__(&MPI_Isend) send = (__typeof__(send))dlsym(RTLD_NEXT, "MPI_Isend");
    __typeof__(&MPI_Recv) receive = (__typeof__(receive))dlsym(RTLD_NEXT, "MPI_Recv");
    __typeof__(&MPI_Wait) wait = (__typeof__(wait))dlsym(RTLD_NEXT, "MPI_Wait");
    if (send(0, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD, &request))
        return;
    receive(0, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wait(&request, MPI_STATUS_IGNORE);
}

int MPI_Win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm communicator, void *base, MPI_Win *window)
{
    static __typeof__(&MPI_Win_allocate) next;
    return in_memory(communicator) ? allocate(MPI_WIN_FLAVOR_ALLOCATE, bytes, unit, info, communicator, base, window)
                                   : NEXT("MPI_Win_allocate")(bytes, unit, info, communicator, base, window);
}
ALSO(Win_allocate);

int MPI_Win_allocate_c(MPI_Aint bytes, MPI_Aint unit, MPI_Info info, MPI_Comm communicator, void *base, MPI_Win *window)
{
    static __typeof__(&MPI_Win_allocate_c) next;
    return in_memory(communicator) ? allocate(MPI_WIN_FLAVOR_ALLOCATE, bytes, unit, info, communicator, base, window)
                                   : NEXT("MPI_Win_allocate_c")(bytes, unit, info, communicator, base, window);
}
ALSO(Win_allocate_c);
