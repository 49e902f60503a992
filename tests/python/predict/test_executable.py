"""Programs in C under the real MPICH, in virtual time."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from predict_help import TWIN, wiretwin

from wiretwin.errors import ProgramError
from wiretwin.leftovers import Leftovers
from wiretwin.predict.executable import predict_executable
from wiretwin.predict.model import layer_model
from wiretwin.twin import Twin

MPICC = Path(sys.executable).parent / "mpicc"
HEAD = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define WORLD MPI_COMM_WORLD
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &size);
"""
TAIL = "    MPI_Finalize();\n    return 0;\n}\n"
OPEN_MPI = pytest.param("mpicc.openmpi", marks=pytest.mark.skipif(
    shutil.which("mpicc.openmpi") is None, reason="needs Debian's Open MPI"))  # fmt: skip
NOTHING = ("--twin", "nothing", "--network", "star:rate=10Gbit/s,delay=1us")


@pytest.fixture
def mpi_twin(tmp_path: Path) -> Path:
    """The twin of a host with a core for each of 64 ranks and MPICH's own layer."""
    path = tmp_path / "mpi.toml"
    path.write_text(TWIN.replace('"mpi4py/mpich"', '"mpi/mpich"').replace("cores = 2", "cores = 64"))
    return path


def compiled(body: str, name: str = "program", *, whole: bool = False, by: str | Path = MPICC) -> Path:
    """Compile what stands between Init and Finalize, or a whole program."""
    source = Path(f"{name}.c")
    source.write_text(body if whole else HEAD + body + TAIL)
    subprocess.run([by, "-O1", source, "-o", name], check=True, timeout=60)
    return Path(name).absolute()


def printed(program: Path, twin: Path, ranks: int, *args: str) -> list[str]:
    """Predict with compute zero; what the ranks printed."""
    found = predict_executable(program, args, twin=twin, ranks=ranks, compute_ps=0, ends=False)
    assert found.printed is not None
    return found.printed


def costs_ps(twin: Path, size: int, layer: str = "mpi/mpich") -> dict[str, int]:
    """Return what the twin says of messages of a size, in picoseconds."""
    model = layer_model(Twin.read(twin).layer(layer))

    def at(quantity: str) -> int:
        line = [one for one in model[quantity] if one["from_bytes"] <= size][-1]
        return line["base_ps"] + (line["per_byte_fs"] * size + 500) // 1000

    return {name: at(name) for name in ("overhead_send", "latency", "overhead_recv")} | {
        "call": model["call_ps"]
    }


PING_PONG = """
    char *bytes = calloc(1, 4 << 20);
    for (long count = 0; count <= 4 << 20; count = count ? 4 * count : 1) {
        /* The first lets one rank go ahead. */
        MPI_Barrier(WORLD);
        MPI_Barrier(WORLD);
        double began = MPI_Wtime();
        for (int round = 0; round < 3; round++) {
            bytes[0] = round;
            if (rank == 0) {
                MPI_Send(bytes, count, MPI_CHAR, 1, 3, WORLD);
                MPI_Recv(bytes, count, MPI_CHAR, 1, 4, WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(bytes, count, MPI_CHAR, 0, 3, WORLD, MPI_STATUS_IGNORE);
                MPI_Send(bytes, count, MPI_CHAR, 0, 4, WORLD);
            }
        }
        if (rank == 0)
            printf("%ld %.0f\\n", count, (MPI_Wtime() - began) * 1e12);
    }
"""


@pytest.mark.parametrize(("size", "waits"), [(65_536, False), (65_537, True)])
def test_on_hosts_that_cost_nothing_a_long_send_is_over_at_its_receiver(size: int, waits: bool) -> None:
    body = """
    char *bytes = calloc(1, atoi(argv[1]));
    if (rank == 0)
        MPI_Send(bytes, atoi(argv[1]), MPI_CHAR, 1, 0, WORLD);
    sleep(rank);
    if (rank == 1)
        MPI_Recv(bytes, atoi(argv[1]), MPI_CHAR, 0, 0, WORLD, MPI_STATUS_IGNORE);
    printf("%.0f\\n", MPI_Wtime() - began);
"""
    program = compiled("    double began = MPI_Wtime();\n" + body)
    network = "star:rate=10Gbit/s,delay=1us"
    found = predict_executable(program, [str(size)], twin="nothing", ranks=2, network=network, compute_ps=0)
    assert found.printed == ["1\n" if waits else "0\n", "1\n"]


def test_half_a_round_trip_is_the_twins_to_the_picosecond(mpi_twin: Path) -> None:
    program = compiled(PING_PONG)
    first = printed(program, mpi_twin, 2)
    lines = [tuple(map(int, line.split())) for line in first[0].splitlines()]
    assert [count for count, _ in lines] == [0, *(4**power for power in range(12))]
    for count, six_ps in lines:
        costs = costs_ps(mpi_twin, count)
        half_ps = costs["overhead_send"] + costs["latency"] + costs["overhead_recv"]
        # The second look at the clock takes 20 ns.
        assert six_ps == pytest.approx(6 * half_ps + 20_000, abs=1), count
    assert printed(program, mpi_twin, 2) == first


@pytest.mark.skipif(
    not shutil.which("mpicc.openmpi") and not os.environ.get("CI"), reason="needs Debian's Open MPI"
)
def test_under_open_mpi_it_is_so_too_and_a_program_gives_the_same_bytes_twice(mpi_twin: Path) -> None:
    mpi_twin.write_text(mpi_twin.read_text().replace('"mpi/mpich"', '"mpi/openmpi"'))
    body = (
        PING_PONG.replace("count <= 4 << 20", "count <= 1 << 10")
        + """
    int got = -1, sum, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request request;
    MPI_Issend(&rank, 1, MPI_INT, right, 8, WORLD, &request);
    MPI_Recv(&got, 1, MPI_INT, left, MPI_ANY_TAG, WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&got, &sum, 1, MPI_INT, MPI_SUM, WORLD);
    printf("%d %d\\n", got == left, sum);
"""
    )
    program = compiled(body, by="mpicc.openmpi")
    first = printed(program, mpi_twin, 2)
    *lines, last = first[0].splitlines()
    assert last == "1 1"
    assert len(lines) == 7
    for count, six_ps in (map(int, line.split()) for line in lines):
        costs = costs_ps(mpi_twin, count, "mpi/openmpi")
        half_ps = costs["overhead_send"] + costs["latency"] + costs["overhead_recv"]
        assert six_ps == pytest.approx(6 * half_ps + 20_000, abs=1), count
    assert printed(program, mpi_twin, 2) == first


def test_a_barrier_of_16_ranks_takes_four_steps_of_its_algorithm(mpi_twin: Path) -> None:
    body = """
    MPI_Barrier(WORLD);
    double began = MPI_Wtime();
    MPI_Barrier(WORLD);
    double middle = MPI_Wtime();
    double one = rank, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, WORLD);
    double end = MPI_Wtime();
    printf("%.0f %.0f %g\\n", (middle - began) * 1e12, (end - middle) * 1e12, sum);
"""
    for line in printed(compiled(body), mpi_twin, 16):
        barrier_ps, allreduce_ps, total = map(float, line.split())
        assert total == 120
        # Dissemination and recursive doubling: log2(16) exchanges in one call, and a look at the clock.
        for size, seen_ps in ((0, barrier_ps), (8, allreduce_ps)):
            costs = costs_ps(mpi_twin, size)
            step_ps = costs["overhead_send"] + costs["latency"] + costs["overhead_recv"] - costs["call"]
            assert seen_ps == pytest.approx(4 * step_ps + costs["call"] + 20_000, abs=1)


def test_probes_and_tests_give_what_they_give_natively(mpi_twin: Path) -> None:
    body = """
    int right = (rank + 1) % size, left = (rank + size - 1) % size, flag = 0, got = -1;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&got, 1, MPI_INT, left, 1, WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, right, 1, WORLD);
    while (!flag)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    printf("test %d ", got == left);
    MPI_Isend(&rank, 1, MPI_INT, right, 7, WORLD, &request);
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, WORLD, &status);
    MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("probe %d ", got == left && status.MPI_TAG == 7);
    MPI_Issend(&rank, 1, MPI_INT, right, 8, WORLD, &request);
    MPI_Message message;
    for (flag = 0; !flag;)
        MPI_Improbe(left, 8, WORLD, &flag, &message, &status);
    MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("matched %d\\n", got == left);
"""
    program = compiled(body)
    first = printed(program, mpi_twin, 4)
    assert first == ["test 1 probe 1 matched 1\n"] * 4
    assert printed(program, mpi_twin, 4) == first


def test_a_rank_that_only_looks_goes_on_when_nothing_else_happens(mpi_twin: Path) -> None:
    body = """
    int flag = 0, looks = 0, got = -1, gone = size;
    MPI_Request request;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 7, WORLD, &request);
    /* All of them look for what is sent only by one that has given up. */
    for (; !flag && looks < 100 * (rank + 1); looks++)
        if (rank % 2)
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        else
            MPI_Iprobe(MPI_ANY_SOURCE, 8, WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 7, WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("%d %d %d\\n", flag, looks == 100 * (rank + 1), got);
"""
    program = compiled(body)
    first = printed(program, mpi_twin, 4)
    # The first gives up and sends to the second, which has it before its looks are at an end; and so on.
    assert first == ["0 1 3\n", "1 0 0\n", "0 1 1\n", "1 0 2\n"]
    assert printed(program, mpi_twin, 4) == first


OUTSIDE = {
    "a pipe": (
        """
    char name[] = "wake";
    if (rank == 0)
        mkfifo(name, 0600);
    MPI_Barrier(WORLD);
    if (rank == 0) {
        char byte = 0;
        int file = open(name, O_RDONLY);
        read(file, &byte, 1);
        printf("%d ", byte == 'x');
    } else if (rank == 1) {
        int file = open(name, O_WRONLY);
        nanosleep(&(struct timespec){0, 5000000}, 0);
        write(file, "x", 1);
    }
""",
        0.005,
    ),
    "a file lock": (
        """
    int file = open("lock", O_RDWR | O_CREAT, 0600);
    if (rank == 1)
        flock(file, LOCK_EX);
    MPI_Barrier(WORLD);
    if (rank == 0)
        flock(file, LOCK_EX);
    if (rank == 1) {
        nanosleep(&(struct timespec){0, 5000000}, 0);
        flock(file, LOCK_UN);
    }
""",
        0.005,
    ),
    "a child": (
        """
    int ends[2], status;
    pipe(ends);
    pid_t child = rank ? 0 : fork();
    if (rank == 0 && child == 0) {
        char byte;
        close(ends[1]);
        _exit(read(ends[0], &byte, 1));
    }
    if (rank == 0) {
        mkfifo("wake", 0600);
        MPI_Barrier(WORLD);
        int file = open("wake", O_RDONLY);
        close(ends[1]);
        waitpid(child, &status, 0);
        printf("%d ", status);
    } else {
        MPI_Barrier(WORLD);
        if (rank == 1)
            open("wake", O_WRONLY);
    }
""",
        0.0,
    ),
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_a_rank_that_waits_outside_the_library_lets_the_others_go_on(mpi_twin: Path, what: str) -> None:
    body, least_s = OUTSIDE[what]
    first, *others = body.strip("\n").split("\n")
    text = (
        "\n".join(["    double began = MPI_Wtime();", first, *others])
        + """
    double took = MPI_Wtime() - began;
    MPI_Barrier(WORLD);
    printf("%.6f\\n", took);
"""
    )
    headers = "#define _GNU_SOURCE\n" + "".join(
        f"#include <{name}.h>\n" for name in ("fcntl", "sys/file", "sys/stat", "sys/wait")
    )
    program = compiled(headers + HEAD + text + TAIL, whole=True)
    took = [float(words.split()[-1]) for words in printed(program, mpi_twin, 3)]
    # Rank 0 goes on when rank 1 has let it, and not before; rank 2 has not waited for either.
    assert least_s <= took[0] < least_s + 0.001
    assert took[2] < 0.001


def test_ranks_wait_for_each_other_outside_when_the_library_has_ended(mpi_twin: Path) -> None:
    headers = "#include <fcntl.h>\n#include <sys/stat.h>\n"
    body = """
    char byte = 0;
    if (rank == 0)
        mkfifo("wake", 0600);
    MPI_Barrier(WORLD);
    MPI_Finalize();
    if (rank == 0)
        read(open("wake", O_RDONLY), &byte, 1);
    else
        write(open("wake", O_WRONLY), "x", 1);
    printf("%d\\n", byte);
    return 0;
}
"""
    program = compiled(headers + HEAD + body, whole=True)
    assert printed(program, mpi_twin, 2) == [f"{ord('x')}\n", "0\n"]


WINDOWS = """
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    long *at, got = -1, add = 1 << rank, old, many = 1 << 18;
    MPI_Win window;
    MPI_Win_allocate(many * sizeof *at, sizeof *at, MPI_INFO_NULL, WORLD, &at, &window);
    memset(at, 0, many * sizeof *at);
    MPI_Win_fence(0, window);
    long mine = rank;
    MPI_Put(&mine, 1, MPI_LONG, right, 0, 1, MPI_LONG, window);
    MPI_Accumulate(&add, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_fence(0, window);
    MPI_Get(&got, 1, MPI_LONG, left, 0, 1, MPI_LONG, window);
    MPI_Win_fence(0, window);
    printf("fence %d %d ", at[0] == left, got == (left + size - 1) % size);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Fetch_and_op(&add, &old, MPI_LONG, 0, 2, MPI_SUM, window);
    MPI_Win_unlock(0, window);
    MPI_Barrier(WORLD);
    if (rank == 0) printf("%ld %ld ", at[1], at[2]);
    MPI_Group world, to, from;
    MPI_Comm_group(WORLD, &world);
    MPI_Group_incl(world, 1, &right, &to);
    MPI_Group_incl(world, 1, &left, &from);
    long *big = malloc(many * sizeof *big);
    for (long i = 0; i < many; i++) big[i] = rank + i;
    MPI_Win_post(from, 0, window);
    MPI_Win_start(to, 0, window);
    MPI_Put(big, many, MPI_LONG, right, 0, many, MPI_LONG, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    long bad = 0;
    for (long i = 0; i < many; i++) bad += at[i] != left + i;
    printf("post %ld ", bad);
    MPI_Barrier(WORLD);
    MPI_Win_lock_all(0, window);
    MPI_Get(big, many, MPI_LONG, right, 0, many, MPI_LONG, window);
    MPI_Win_flush(right, window);
    bad = 0;
    for (long i = 0; i < many; i++) bad += big[i] != rank + i;
    MPI_Win_unlock_all(window);
    printf("get %ld %.0f\\n", bad, MPI_Wtime() * 1e12);
    MPI_Win_free(&window);
"""


@pytest.mark.parametrize("compiler", [MPICC, OPEN_MPI])
def test_windows_give_what_they_give_natively_and_the_same_bytes_twice(
    mpi_twin: Path, compiler: str | Path
) -> None:
    if compiler != MPICC:
        mpi_twin.write_text(mpi_twin.read_text().replace('"mpi/mpich"', '"mpi/openmpi"'))
    program = compiled(WINDOWS, by=compiler)
    first = printed(program, mpi_twin, 3)
    found = [line.rsplit(maxsplit=1)[0] for line in first]
    # The sums of 1, 2 and 4 at the first rank, and 2 MiB in order.
    assert found == ["fence 1 1 7 7 post 0 get 0", *["fence 1 1 post 0 get 0"] * 2]
    assert printed(program, mpi_twin, 3) == first


def test_clocks_and_sleep_are_virtual() -> None:
    body = """
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    sleep(1000);
    clock_gettime(CLOCK_MONOTONIC, &after);
    double began = MPI_Wtime();
    while (MPI_Wtime() - began < 1e-3)
        ;
    printf("%ld %.3f\\n", (long)(after.tv_sec - before.tv_sec), MPI_Wtime() - began);
"""
    program = compiled(body)
    done = wiretwin("run", program, "--world", "simulated", *NOTHING, "--format", "json")
    assert done.code == 0, done.err
    assert "1000 0.001" in done.err


def test_what_a_look_at_the_clock_takes_the_simulator_is_none_of_the_programs(tmp_path: Path) -> None:
    # Ranks that share cores know the time by the simulator alone, which takes microseconds of real time.
    looks = 20_000
    path = tmp_path / "crowded.toml"
    path.write_text(TWIN.replace('"mpi4py/mpich"', '"mpi/mpich"'))
    program = compiled(f"    for (int look = 0; look < {looks}; look++) MPI_Wtime();\n")
    found = predict_executable(program, twin=path, ranks=4, passes=1, ends=False)
    for rank in found.per_rank:
        assert looks * 20e-9 <= rank.compute_s < looks * 1.5e-6


def test_a_prediction_of_a_program_in_c_is_kept_like_any_other() -> None:
    program = compiled("    MPI_Barrier(WORLD);\n")
    done = wiretwin("predict", program, *NOTHING, "--ranks", "4", "--compute", "5us", "-o", "predicted")
    assert done.code == 0, done.err
    record = json.loads(Path("predicted/prediction.json").read_text())
    # A stretch before the barrier and one behind it, two steps of it over two lines of 1 us and some bytes.
    assert record["seconds"]["value"] == pytest.approx(10e-6 + 2 * 2.15e-6, rel=0.01)
    for rank in record["per_rank"]:
        parts = sum(rank[f"{kind}_s"] for kind in ("compute", "endpoint", "wire", "waiting"))
        assert parts == pytest.approx(rank["total_s"])
    assert Path("predicted/timeline.parquet").is_file()


THREADS = """
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#define WORLD MPI_COMM_WORLD
static int rank;
static void *play(void *tag) {
    int count = 0;
    for (int round = 0; round < 50; round++) {
        if (rank == 0)
            MPI_Send(&count, 1, MPI_INT, 1, (long)tag, WORLD);
        MPI_Recv(&count, 1, MPI_INT, 1 - rank, (long)tag, WORLD, MPI_STATUS_IGNORE);
        count += rank;
        if (rank == 1)
            MPI_Send(&count, 1, MPI_INT, 0, (long)tag, WORLD);
    }
    printf("%d ", count);
    return 0;
}
static void *wait(void *unused) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    sleep(1000);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 10000000;
    pthread_mutex_lock(&mutex);
    printf("%d ", pthread_cond_timedwait(&condition, &mutex, &until) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    return MPI_Send(0, 0, MPI_INT, rank, 9, WORLD), unused;
}
int main(int argc, char **argv) {
    int level;
    pthread_t one, two;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(WORLD, &rank);
    pthread_create(&one, 0, play, (void *)1);
    play((void *)2);
    pthread_join(one, 0);
    double began = MPI_Wtime();
    pthread_create(&two, 0, wait, 0);
    MPI_Recv(0, 0, MPI_INT, rank, 9, WORLD, MPI_STATUS_IGNORE);
    printf("%.3f\\n", MPI_Wtime() - began);
    pthread_join(two, 0);
    MPI_Finalize();
    return 0;
}
"""


def test_threads_call_at_once_and_one_waits_for_what_another_sends_later(mpi_twin: Path) -> None:
    assert printed(compiled(THREADS, whole=True), mpi_twin, 2) == ["50 50 1 1000.010\n"] * 2


FUTURES = """
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor
with MPICommExecutor(MPI.COMM_WORLD, 0) as executor:
    if executor is not None:
        print(sum(executor.map(pow, range(40), [2] * 40)))
"""


def test_a_script_with_threads_inside_mpi_takes_the_library_itself() -> None:
    Path("futures.py").write_text(FUTURES)
    done = wiretwin("predict", "futures.py", *NOTHING, "--compute", "0s", "--format", "json")
    assert (done.code, "20540" in done.err) == (0, True), done.err
    assert "mpi4py.futures is not simulated" in done.err


SPAWNS = """
import sys
from mpi4py import MPI
parent = MPI.Comm.Get_parent()
if parent == MPI.COMM_NULL:
    comm = MPI.COMM_WORLD
    both = comm.Spawn(sys.executable, [__file__], 2, root=1)
    root = MPI.ROOT if comm.rank == 1 else MPI.PROC_NULL
    both.bcast(41, root)
    total = both.reduce(None, root=root)
    both.Disconnect()
    print(total, f"{MPI.Wtime():.9f}")
else:
    parent.reduce(parent.bcast(None, 1) + parent.rank, root=1)
    print(f"{MPI.Wtime():.9f}")
    parent.Disconnect()
"""


def test_a_script_that_spawns_others_takes_the_library_itself() -> None:
    Path("spawns.py").write_text(SPAWNS)
    args = ("predict", "spawns.py", *NOTHING, "--ranks", "2", "--compute", "0s")
    done = [wiretwin(*args, "-o", name) for name in ("first", "second")]
    assert [one.code for one in done] == [0, 0], done[0].err
    first, second = (json.loads(Path(name, "prediction.json").read_text()) for name in ("first", "second"))
    assert [text.split()[0] for text in first["printed"][:2]] == ["None", "83"]
    # The ranks' own, and in one text those of the spawned, in whatever order the launcher has them.
    assert first["printed"][:2] == second["printed"][:2]
    assert sorted(first["printed"][2].split()) == sorted(second["printed"][2].split())
    assert len(first["per_rank"]) == 2
    assert "spawned 2 processes" in done[0].err


SCRIPT = """
import os
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
memory = np.zeros(4, dtype='i8')
window = MPI.Win.Create(memory, 8, comm=comm)
window.Fence()
window.Put(np.array([rank + 1], dtype='i8'), (rank + 1) % size)
window.Fence()
if (child := os.fork()) == 0:
    comm.Barrier()
os.waitpid(child, 0)
print(rank, memory[0], f"{MPI.Wtime():.9f}")
window.Free()
"""


def test_a_script_that_is_not_simulated_takes_the_library_itself() -> None:
    Path("window.py").write_text(SCRIPT)
    args = ("predict", "window.py", *NOTHING, "--ranks", "2", "--compute", "0s")
    done = [wiretwin(*args, "-o", name) for name in ("first", "second")]
    assert [one.code for one in done] == [0, 0], done[0].err
    first, second = (json.loads(Path(name, "prediction.json").read_text()) for name in ("first", "second"))
    assert [text.rsplit(maxsplit=1)[0] for text in first["printed"]] == ["0 2", "1 1"]
    assert first["printed"] == second["printed"]
    assert first["layer"] == "mpi4py/mpich"
    assert "window.py:8: MPI.Win is not simulated" in done[0].err
    assert "mpich itself ran" in done[0].err


SESSIONS = """
#include <mpi.h>
#include <stdio.h>
int main(void)
{
    int size;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    double begin = MPI_Wtime();
    for (volatile int count = 0; count < 10000000; count++)
        ;
    MPI_Barrier(comm);
    MPI_Comm_size(comm, &size);
    printf("%d %d\\n", size, MPI_Wtime() - begin > 0.002);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return 0;
}
"""


def test_a_program_of_sessions_takes_time_from_its_first_communicator_on(mpi_twin: Path) -> None:
    found = predict_executable(compiled(SESSIONS, whole=True), twin=mpi_twin, passes=1, ends=False)
    assert found.printed == ["2 1\n", "2 1\n"]
    assert all(rank.compute_s > 0.002 for rank in found.per_rank)


def test_a_script_takes_the_library_of_its_layer() -> None:
    Path("version.py").write_text(
        "from mpi4py import MPI\n"
        "windows = MPI.Win  # which needs the library\n"
        "print(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank), MPI.Get_library_version().split()[0])\n"
    )
    done = wiretwin(
        "predict", "version.py", *NOTHING, "--ranks", "3", "--layer", "mpi4py/openmpi", "-o", "made"
    )
    assert done.code == 0, done.err
    found = json.loads(Path("made", "prediction.json").read_text())
    assert (found["layer"], found["printed"]) == ("mpi4py/openmpi", ["3 Open\n"] * 3)
    assert "openmpi itself ran" in done.err


BAD = {
    "deadlock": ("MPI_Recv(0, 0, MPI_INT, 1 - rank, 5, WORLD, MPI_STATUS_IGNORE);", 4, "MPI_Recv.*tag 5"),
    "window": (
        "MPI_Win w; MPI_Win_create(0, 0, 1, MPI_INFO_NULL, WORLD, &w);"
        "MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w); MPI_Barrier(WORLD);",
        4, "MPI_Win_lock waits: a message of the library's own",
    ),
    "crash": ("if (rank) *(volatile int *)8 = 1; MPI_Barrier(WORLD);", 5, "ended with"),
    "abort": ("if (rank) MPI_Abort(WORLD, 3); MPI_Barrier(WORLD);", 5, "ended with status 3"),
    "leaves": ("if (rank) exit(0); MPI_Barrier(WORLD);", 5, "without finalizing|ended with"),
    "status": ("MPI_Finalize(); puts(\"no such input\"); exit(7);", 5, "ended with status 7: no such input"),
    "endless": ("for (;;) ;", 5, "did not end within 3 s"),
    "polls": (
        "int flag = 0; while (rank == 0 && !flag) MPI_Iprobe(1, 7, WORLD, &flag, MPI_STATUS_IGNORE);"
        "MPI_Barrier(WORLD);",
        4, "did not end within 3 s.*rank 0 in MPI_Iprobe looks: .*tag 7.*1 in MPI_Barrier waits",
    ),
    "pipe": (
        "int ends[2]; char byte; pipe(ends); if (rank == 0) read(ends[0], &byte, 1); MPI_Barrier(WORLD);",
        4, "did not end within 3 s.*rank 0 waits outside MPI, in .*pipe.*rank 1 in MPI_Barrier waits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_goes_wrong_is_said(what: str) -> None:
    body, code, text = BAD[what]
    program = compiled(f"    {body}\n", what)
    limit = "3s" if what in ("endless", "polls", "pipe") else "20s"
    done = wiretwin("run", program, "--world", "simulated", *NOTHING, "--limit", limit)
    assert done.code == code, done.err
    assert re.search(text, done.err, re.DOTALL), done.err
    assert not list(Path("/dev/shm").glob(f"wiretwin-*{what}*"))


def test_a_program_that_fails_leaves_no_shared_memory_where_python_asks(mpi_twin: Path) -> None:
    program = compiled(f"    {BAD['crash'][0]}\n", "crash")
    before = Leftovers.now()
    with pytest.raises(ProgramError):
        predict_executable(program, twin=mpi_twin, passes=1, ends=False)
    assert before.lost_since(os.getuid()).files == set()


def test_a_program_without_mpi_or_of_another_is_rejected() -> None:
    plain = compiled("int main(void) { return 0; }\n", "plain", whole=True)
    text = "int main(int argc, char **argv) { if (argc > 5) MPI_Init(0, 0); return 0; }"
    never = compiled(f"#include <mpi.h>\n{text}\n", "never", whole=True)
    done = wiretwin("run", never, "--world", "simulated", *NOTHING)
    assert (done.code, "0 of 2 ranks started MPI" in done.err) == (5, True), done.err
    subprocess.run(["cc", "plain.c", "-o", "plain"], check=True, timeout=60)
    done = wiretwin("run", plain, "--world", "simulated", *NOTHING)
    assert (done.code, "is no MPI program" in done.err) == (2, True), done.err


FORTRAN = """
program ring
  use mpi
  implicit none
  integer :: error, rank, ranks, got, total
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), 7, got, 1, MPI_INTEGER, &
    mod(rank + ranks - 1, ranks), 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call MPI_Allreduce(got, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  print '(i0, 1x, i0)', got, total
  call MPI_Finalize(error)
end program
"""


@pytest.mark.skipif(
    not shutil.which("mpifort.mpich") and not os.environ.get("CI"), reason="needs Debian's MPICH"
)
def test_a_program_in_fortran_for_debians_mpich_runs_under_the_packages(mpi_twin: Path) -> None:
    Path("ring.f90").write_text(FORTRAN)
    done = subprocess.run(["mpifort.mpich", "ring.f90", "-o", "ring"], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert printed(Path("ring").absolute(), mpi_twin, 3) == ["2 3\n", "0 3\n", "1 3\n"]


#: Rank 0 waits, at work, until another of its kind has begun beside it, and says how many it saw, but for
#: those of earlier runs: runs are made two at once. The one that begins last has nobody to wait for, and
#: computes for long all the same: ranks with short turns would have a core each, and no run beside theirs.
NEIGHBOURS = """
    if (rank == 0) {
        char name[64];
        int before = begun(), seen = 0;
        before -= before % 2;
        snprintf(name, sizeof name, "begun-%d", getpid());
        fclose(fopen(name, "w"));
        for (int look = 0; seen < 2 && look < 300000; look++)
            seen = begun() - before;
        for (volatile int step = 0; step < 50000000; step++)
            ;
        printf("%d", seen);
    }
"""
BEGUN = """
#include <dirent.h>
#include <string.h>
static int begun(void) {
    DIR *folder = opendir(".");
    int seen = 0;
    for (struct dirent *file; (file = readdir(folder));)
        seen += !strncmp(file->d_name, "begun-", 6);
    closedir(folder);
    return seen;
}
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_what_is_computed_has_neighbours_at_work_as_in_a_real_run(mpi_twin: Path) -> None:
    program = compiled(BEGUN + HEAD + NEIGHBOURS + TAIL, whole=True)
    found = predict_executable(program, twin=mpi_twin, passes=2, ends=False)
    assert found.printed is not None
    assert found.printed[0] == "2"
    assert any("2 such runs at once" in text for text in found.warnings)


#: On which core each rank computes, and for how long between turns.
CORES = """
    for (int round = 0; round < 40; round++) {
        for (volatile int step = 0; step < atoi(argv[1]); step++)
            ;
        MPI_Barrier(WORLD);
    }
    printf("%d", sched_getcpu());
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
@pytest.mark.parametrize(("steps", "is_short"), [("200", True), ("1000000", False)])
def test_ranks_that_compute_for_short_have_a_core_each(mpi_twin: Path, steps: str, is_short: bool) -> None:
    program = compiled("#define _GNU_SOURCE\n#include <sched.h>\n" + HEAD + CORES + TAIL, whole=True)
    found = predict_executable(program, [steps], twin=mpi_twin, passes=2, ends=False)
    assert found.printed is not None
    assert (found.printed[0] != found.printed[1]) == is_short
    assert any("on a core of its own" in text for text in found.warnings) == is_short
    assert any("2 such runs at once" in text for text in found.warnings) != is_short


#: Rank 0 holds a file until another has failed to, once.
MEETS = """
    if (rank == 0) {
        if (flock(open("own", O_CREAT | O_RDWR, 0600), LOCK_EX | LOCK_NB)) {
            fclose(fopen("met", "w"));
            return 3;
        }
        for (int look = 0; access("met", F_OK) && look < 3000000; look++)
            ;
        printf("alone");
    }
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_program_of_which_two_runs_meet_in_files_runs_alone(mpi_twin: Path) -> None:
    program = compiled("#include <fcntl.h>\n#include <sys/file.h>\n" + HEAD + MEETS + TAIL, whole=True)
    found = predict_executable(program, twin=mpi_twin, passes=2, ends=False)
    assert found.printed is not None
    assert found.printed[0] == "alone"
    assert any("it ran alone" in text for text in found.warnings)
    assert not any("such runs at once" in text for text in found.warnings)
