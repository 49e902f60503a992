"""What MPICH's calls do to windows: in memory that ranks of a host share, and by messages between hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_executable import HEAD, NOTHING, TAIL, compiled, mpi_twin

from wiretwin.predict.executable import predict_executable

__all__ = ["mpi_twin"]

#: Each does something to the windows of the next rank, and says whether what it found there is right.
ALL = """
    int next = (rank + 1) % size, before = (rank + size - 1) % size, *flavor, is_set, right;
    double *own, one = 1, put[10], got[10] = {0}, was;
    MPI_Win window;
    MPI_Datatype apart;
    MPI_Type_vector(5, 1, 2, MPI_DOUBLE, &apart);
    MPI_Type_commit(&apart);
    MPI_Win_allocate(100 * sizeof *own, sizeof *own, MPI_INFO_NULL, WORLD, &own, &window);
    MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, &flavor, &is_set);
    printf("flavor %d", is_set && *flavor == MPI_WIN_FLAVOR_ALLOCATE);
    for (int at = 0; at < 100; at++)
        own[at] = -1;
    for (int at = 0; at < 10; at++)
        put[at] = 100 * rank + at;
    MPI_Win_fence(0, window);
    MPI_Put(put, 10, MPI_DOUBLE, next, 5, 10, MPI_DOUBLE, window);
    MPI_Put(put, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, 4, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    right = own[4] == -1 && own[15] == -1;
    for (int at = 0; at < 10; at++)
        right &= own[5 + at] == 100 * before + at;
    printf(", put %d", right);
    MPI_Get(got, 1, apart, next, 5, 5, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    for (int at = 0; at < 5; at++)
        right &= got[2 * at] == 100 * rank + at && got[2 * at + 1] == 0;
    printf(", get %d", right);

    MPI_Request request;
    MPI_Win_lock_all(0, window);
    for (int of = 0; of < size; of++) {
        MPI_Raccumulate(&one, 1, MPI_DOUBLE, of, 50, 1, MPI_DOUBLE, MPI_SUM, window, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Accumulate(put, 5, MPI_DOUBLE, next, 60, 1, apart, MPI_SUM, window);
    MPI_Win_flush_all(window);
    MPI_Barrier(WORLD);
    right = own[50] == size - 1;
    for (int at = 0; at < 5; at++)
        right &= own[60 + 2 * at] == 100 * before + at - 1 && own[61 + 2 * at] == -1;
    printf(", accumulate %d", right);
    MPI_Fetch_and_op(&one, &was, MPI_DOUBLE, 0, 80, MPI_SUM, window);
    MPI_Win_flush(0, window);
    MPI_Allreduce(MPI_IN_PLACE, &was, 1, MPI_DOUBLE, MPI_SUM, WORLD);
    printf(", fetch %d", was == size * (size - 1) / 2 - size);
    MPI_Fetch_and_op(0, &was, MPI_DOUBLE, 0, 80, MPI_NO_OP, window);
    MPI_Win_flush(0, window);
    printf(", none %d", was == size - 1);
    long mine = rank + 1, nobody = 0, holder;
    memset(&own[90], 0, sizeof own[90]);
    MPI_Barrier(WORLD);
    MPI_Compare_and_swap(&mine, &nobody, &holder, MPI_LONG, 0, 90, window);
    MPI_Win_flush(0, window);
    int swapped = holder == nobody;
    MPI_Allreduce(MPI_IN_PLACE, &swapped, 1, MPI_INT, MPI_SUM, WORLD);
    printf(", swap %d", swapped == 1);
    MPI_Get_accumulate(put, 4, MPI_DOUBLE, got, 4, MPI_DOUBLE, next, 20, 4, MPI_DOUBLE, MPI_PROD, window);
    MPI_Win_flush(next, window);
    right = 1;
    for (int at = 0; at < 4; at++)
        right &= got[at] == -1;
    MPI_Barrier(WORLD);
    for (int at = 0; at < 4; at++)
        right &= own[20 + at] == -(100 * before + at);
    printf(", both %d", right);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);

    struct { double value; int place; } pair = {rank, rank}, *most;
    MPI_Win_allocate(sizeof pair, 1, MPI_INFO_NULL, WORLD, &most, &window);
    memset(most, 0, sizeof pair);
    MPI_Barrier(WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Accumulate(&pair, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, window);
    MPI_Win_unlock(0, window);
    MPI_Barrier(WORLD);
    printf(", most %d", rank || most->place == size - 1);
    MPI_Win_free(&window);
    printf("\\n");
"""
#: Rank 0 puts while the owner of the memory sleeps; then the owner waits for what is put later.
OWNER = """
    long *own, value = 7, seen = 0;
    double took = 0;
    MPI_Win window;
    MPI_Win_allocate(sizeof *own, sizeof *own, MPI_INFO_NULL, WORLD, &own, &window);
    *own = 0;
    MPI_Win_lock_all(0, window);
    MPI_Barrier(WORLD);
    if (rank == 0) {
        took = MPI_Wtime();
        MPI_Put(&value, 1, MPI_LONG, 1, 0, 1, MPI_LONG, window);
        MPI_Win_flush(1, window);
        took = MPI_Wtime() - took;
        usleep(50000);
        value = 8;
        MPI_Put(&value, 1, MPI_LONG, 1, 0, 1, MPI_LONG, window);
        MPI_Win_flush(1, window);
    } else {
        usleep(20000);
        while (seen != 8) {
            MPI_Get(&seen, 1, MPI_LONG, 1, 0, 1, MPI_LONG, window);
            MPI_Win_flush(1, window);
        }
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    printf("%g", 1e3 * took);
"""
#: More than 16 KiB of types whose elements MPICH's packets end within.
CUT = """
    MPI_Datatype types[] = {MPI_C_DOUBLE_COMPLEX, MPI_DOUBLE_INT, MPI_LONG_DOUBLE, 0, 0, 0};
    MPI_Type_contiguous(5, MPI_C_DOUBLE_COMPLEX, &types[3]);
    MPI_Type_vector(3, 1, 2, MPI_C_DOUBLE_COMPLEX, &types[4]);
    MPI_Type_create_struct(3, (int[]){1, 1, 3}, (MPI_Aint[]){0, 8, 16},
                           (MPI_Datatype[]){MPI_INT, MPI_DOUBLE, MPI_CHAR}, &types[5]);
    enum { COUNT = 3000 };
    for (int type = 0; type < 6; type++) {
        MPI_Type_commit(&types[type]);
        MPI_Aint lower, extent;
        MPI_Type_get_extent(types[type], &lower, &extent);
        int bytes = COUNT * extent + 64, length[2] = {0, 0}, right = 1;
        char *from = malloc(bytes), *to = calloc(1, bytes), *packed[2] = {malloc(bytes), malloc(bytes)};
        for (int at = 0; at < bytes; at++)
            from[at] = 7 * at + at / 256;
        for (int way = 0; way < 3; way++) {
            MPI_Win window;
            MPI_Win_create(rank == (way != 1) ? to : from, bytes, extent, MPI_INFO_NULL, WORLD, &window);
            MPI_Win_fence(0, window);
            if (rank == 0 && way == 0)
                MPI_Put(from, COUNT, types[type], 1, 0, COUNT, types[type], window);
            if (rank == 0 && way == 1)
                MPI_Get(to, COUNT, types[type], 1, 0, COUNT, types[type], window);
            if (rank == 0 && way == 2 && type != 5)
                MPI_Accumulate(from, COUNT, types[type], 1, 0, COUNT, types[type], MPI_REPLACE, window);
            MPI_Win_fence(0, window);
            length[0] = length[1] = 0;
            MPI_Pack(from, COUNT, types[type], packed[0], bytes, &length[0], MPI_COMM_SELF);
            MPI_Pack(to, COUNT, types[type], packed[1], bytes, &length[1], MPI_COMM_SELF);
            if (rank == (way != 1) && (way != 2 || type != 5))
                right &= !memcmp(packed[0], packed[1], length[0]);
            MPI_Win_free(&window);
            memset(to, 0, bytes);
        }
        printf("%d", right);
    }
"""
#: Rank 1 only looks whether what rank 0 puts, or the last part of what it sends, has come.
LOOKS = """
    int own[4] = {0}, parts[4] = {1, 2, 3, 4}, other = 1 - rank, flag = 0;
    MPI_Win window;
    MPI_Group all, peer;
    MPI_Request request;
    MPI_Win_create(own, sizeof own, sizeof *own, MPI_INFO_NULL, WORLD, &window);
    MPI_Comm_group(WORLD, &all);
    MPI_Group_incl(all, 1, &other, &peer);
    if (rank) {
        MPI_Win_post(peer, 0, window);
        while (!flag)
            MPI_Win_test(window, &flag);
        MPI_Precv_init(parts, 4, 1, MPI_INT, 0, 0, WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        for (flag = 0; !flag;)
            MPI_Parrived(request, 3, &flag);
    } else {
        MPI_Win_start(peer, 0, window);
        MPI_Put(parts, 4, MPI_INT, 1, 0, 4, MPI_INT, window);
        MPI_Win_complete(window);
        MPI_Psend_init(parts, 4, 1, MPI_INT, 1, 0, WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready_range(0, 3, request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Win_free(&window);
    printf("%d %d", own[3], parts[3]);
"""
NAMES = ("flavor", "put", "get", "accumulate", "fetch", "none", "swap", "both", "most")
RIGHT = ", ".join(f"{name} 1" for name in NAMES) + "\n"


def test_calls_do_the_same_in_memory_and_by_messages(mpi_twin: Path) -> None:
    program = compiled(ALL)
    in_memory = predict_executable(program, twin=mpi_twin, ranks=3, compute_ps=0, ends=False)
    by_messages = predict_executable(
        program, twin=NOTHING[1], network=NOTHING[3], ranks=3, compute_ps=0, ends=False
    )
    assert in_memory.printed == by_messages.printed == [RIGHT] * 3


def test_memory_is_reached_while_its_owner_sleeps(mpi_twin: Path) -> None:
    found = predict_executable(compiled(OWNER), twin=mpi_twin, ranks=2, compute_ps=0, ends=False)
    assert found.printed is not None
    took_ms, _ = (float(text) for text in found.printed)
    assert took_ms < 1
    assert 0.05 < found.seconds.value < 0.06


@pytest.mark.parametrize("where", ["hosts", "host"])
def test_what_its_packets_would_cut_goes_in_pieces(mpi_twin: Path, where: str) -> None:
    twin, network = (mpi_twin, None) if where == "host" else (NOTHING[1], NOTHING[3])
    found = predict_executable(compiled(CUT), twin=twin, network=network, ranks=2, compute_ps=0, ends=False)
    assert found.printed == ["111111"] * 2


def test_a_message_to_itself_finds_what_shared_memory_has_brought(mpi_twin: Path) -> None:
    # Its pages are what a first call may take long for; they are counted, for time decides nothing.
    body = """
        struct rusage before, after;
        MPI_Request request;
        getrusage(RUSAGE_SELF, &before);
        MPI_Isend(&size, 1, MPI_INT, rank, 0, WORLD, &request);
        MPI_Recv(&size, 1, MPI_INT, rank, 0, WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        getrusage(RUSAGE_SELF, &after);
        printf("%ld", after.ru_minflt - before.ru_minflt);
    """
    program = compiled("#include <sys/resource.h>\n" + HEAD + body + TAIL, whole=True)
    here = predict_executable(program, twin=mpi_twin, ranks=2, compute_ps=0, ends=False)
    between = predict_executable(
        program, twin=NOTHING[1], network=NOTHING[3], ranks=2, compute_ps=0, ends=False
    )
    assert here.printed is not None
    assert between.printed is not None
    assert all(int(pages) < 32 for pages in here.printed)
    assert all(int(pages) > 64 for pages in between.printed)


def test_a_rank_that_only_looks_lets_the_others_go_on(mpi_twin: Path) -> None:
    found = predict_executable(compiled(LOOKS), twin=mpi_twin, ranks=2, compute_ps=0, ends=False)
    assert found.printed == ["0 4", "4 4"]


def test_a_histogram_in_everybodys_windows_by_messages_comes_to_its_end() -> None:
    # MPICH takes up what a rank accumulates in its own window in looks at its network that find nothing.
    body = """
        long *own, one = 1, was, sum = 0, large[1 << 16];
        MPI_Win window;
        MPI_Win_allocate(sizeof large, sizeof *own, MPI_INFO_NULL, WORLD, &own, &window);
        memset(own, 0, sizeof large);
        memset(large, 0, sizeof large);
        MPI_Win_fence(0, window);
        for (int at = 0; at < 600; at++)
            MPI_Accumulate(&one, 1, MPI_LONG, at % size, at % 10, 1, MPI_LONG, MPI_SUM, window);
        MPI_Accumulate(large, 1 << 16, MPI_LONG, rank, 0, 1 << 16, MPI_LONG, MPI_SUM, window);
        MPI_Win_fence(0, window);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
        for (int at = 0; at < 100; at++)
            MPI_Fetch_and_op(&one, &was, MPI_LONG, rank, 20, MPI_SUM, window);
        MPI_Win_unlock(rank, window);
        for (int at = 0; at < 10; at++)
            sum += own[at];
        printf("%ld %ld", sum, own[20]);
        MPI_Win_free(&window);
    """
    program = compiled("#include <string.h>\n" + HEAD + body + TAIL, whole=True)
    found = predict_executable(
        program, twin=NOTHING[1], network=NOTHING[3], ranks=2, compute_ps=0, ends=False
    )
    assert found.printed == ["600 100"] * 2


@pytest.mark.parametrize("kind", ["Put", "Accumulate", "Get"])
def test_several_long_calls_are_under_way_at_once(kind: str) -> None:
    # A whole, a column of a matrix as one element, and bytes that become one element there.
    operation = "MPI_REPLACE, " if kind == "Accumulate" else ""
    body = f"""
        enum {{ ROWS = 5000 }};
        double *own, *here = malloc(6 * ROWS * sizeof *here);
        int right = 1, is_get = {int(kind == "Get")};
        MPI_Datatype column, whole;
        MPI_Win window;
        MPI_Type_vector(ROWS, 1, 2, MPI_DOUBLE, &column);
        MPI_Type_commit(&column);
        MPI_Type_contiguous(ROWS, MPI_DOUBLE, &whole);
        MPI_Type_commit(&whole);
        MPI_Win_allocate(6 * ROWS * sizeof *own, sizeof *own, MPI_INFO_NULL, WORLD, &own, &window);
        for (int at = 0; at < 6 * ROWS; at++) {{
            own[at] = is_get ? at : -1;
            here[at] = is_get ? -1 : at;
        }}
        MPI_Barrier(WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, window);
        MPI_{kind}(here, ROWS, MPI_DOUBLE, 1 - rank, 0, ROWS, MPI_DOUBLE, {operation}window);
        MPI_{kind}(here + ROWS, 1, column, 1 - rank, ROWS, 1, column, {operation}window);
        MPI_{kind}(here + 4 * ROWS, ROWS, MPI_DOUBLE, 1 - rank, 4 * ROWS, 1, whole, {operation}window);
        MPI_Win_unlock(1 - rank, window);
        MPI_Barrier(WORLD);
        for (int at = 0; at < 6 * ROWS; at++) {{
            int is_moved = at < ROWS || (at >= 4 * ROWS && at < 5 * ROWS) ||
                           (at >= ROWS && at < 3 * ROWS && (at - ROWS) % 2 == 0);
            right &= (is_get ? here : own)[at] == (is_moved ? at : -1);
        }}
        printf("%d", right);
        MPI_Win_free(&window);
    """
    found = predict_executable(
        compiled(body), twin=NOTHING[1], network=NOTHING[3], ranks=2, compute_ps=0, ends=False
    )
    assert found.printed == ["1"] * 2
