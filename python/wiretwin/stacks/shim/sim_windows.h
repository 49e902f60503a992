/* Part of sim_hosts.c for MPICH: what its calls do to windows, and what it has when it has begun.
 *
 * Windows that MPICH has allocated for ranks of one host lie in memory that all of them map, and `MPI_Put` and its like are
 * done there by who calls them (MPICH 5.0, ch4/shm/posix); locks and fences stay messages. Its own shared memory is
 * off in the simulated world, so that is done here. Other windows are the library's, by messages; but MPICH 5.0 cuts
 * what it sends for them after 16 KiB, and aborts where it would cut through an element: it is given pieces.
 */

/* In virtual time, a call that reaches a window in memory. */
extern void wiretwin_sim_reach(const char *name) __attribute__((weak));
extern void wiretwin_sim_reached(void) __attribute__((weak));
extern void wiretwin_sim_will_ask(unsigned questions) __attribute__((weak));

enum { PIECE = 15 << 10, WHOLE = 8, QUESTIONS = 4 };

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

/* How many elements of its data a piece of a call has; none if it can stay whole, or cannot be cut. */
static MPI_Count in_pieces_of(const struct access *a)
{
    MPI_Datatype element;
    MPI_Count bytes = bytes_of(&a->there);
    if (bytes <= PIECE)
        return 0;
    int size = elements(a->there.type, &element);
    const struct data *other = a->kind == GET ? &a->got : &a->put;
    int is_whole = size && WHOLE % size == 0;
    int is_alike = other->count == a->there.count && bytes_of(other) == bytes &&
                   (a->kind != GET_ACCUMULATE || (a->got.count == other->count && bytes_of(&a->got) == bytes));
    return is_whole || !is_alike ? 0 : PIECE / (bytes / a->there.count);
}

static void *after(const struct data *data, MPI_Count elements)
{
    MPI_Aint lower, extent;
    MPI_Type_get_extent(data->type, &lower, &extent);
    return (char *)data->at + elements * extent;
}

static int issue_pieces(const struct access *whole, MPI_Count each)
{
    int error = MPI_SUCCESS;
    for (MPI_Count at = 0; !error && at < whole->there.count; at += each) {
        MPI_Count left = whole->there.count - at;
        struct access piece = *whole;
        piece.put = (struct data){after(&whole->put, at), left < each ? left : each, whole->put.type};
        piece.got = (struct data){after(&whole->got, at), piece.put.count, whole->got.type};
        piece.request = left <= each ? whole->request : 0;
        MPI_Aint from = (char *)after(&whole->there, at) - (char *)whole->there.at;
        piece.there.count = 1;
        error = MPI_Type_create_hindexed_block(1, (int)piece.put.count, &from, whole->there.type, &piece.there.type);
        if (!error)
            error = MPI_Type_commit(&piece.there.type);
        if (!error)
            error = issue(&piece);
        MPI_Type_free(&piece.there.type);
    }
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
        MPI_Count each = in_pieces_of(&access);                                                                       \
        if (each)                                                                                                     \
            return issue_pieces(&access, each);                                                                       \
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
