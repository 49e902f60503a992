"""What the library does within its calls besides its messages takes its time in the simulated world, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from predict_help import TWIN

from wiretwin.predict.executable import predict_executable

MPICC = Path(sys.executable).parent / "mpicc"
PROGRAM = r"""
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
enum { BYTES = 8 << 20 };
static long processor_ns(void) {
    struct timespec time;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}
static void slow(void *in, void *in_out, int *count, MPI_Datatype *type) {
    long until_ns = processor_ns() + 2000000;
    while (processor_ns() < until_ns)
        ;
    *(int *)in_out += *(int *)in;
}
int main(int argc, char **argv) {
    int rank, one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Op op;
    MPI_Op_create(slow, 1, &op);
    double began = MPI_Wtime();
    MPI_Allreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    double combined = MPI_Wtime() - began, received[2];
    char *fresh = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *sent = calloc(1, BYTES);
    for (int time = 0; time < 2; time++) {
        MPI_Barrier(MPI_COMM_WORLD);
        began = MPI_Wtime();
        if (rank)
            MPI_Recv(fresh, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(sent, BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        received[time] = MPI_Wtime() - began;
    }
    MPI_File file;
    char name[64];
    snprintf(name, sizeof name, "file-%d", getpid());
    began = MPI_Wtime();
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, sent, BYTES, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    double written = MPI_Wtime() - began;
    printf("%d %.9f %.9f %.9f %.9f\n", sum, combined, received[0], received[1], written);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture
def program() -> Path:
    source = Path("work.c")
    source.write_text(PROGRAM)
    subprocess.run([MPICC, "-O1", source, "-o", "work"], check=True, timeout=60)
    return Path("work").absolute()


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    path = tmp_path / "mpi.toml"
    path.write_text(TWIN.replace('"mpi4py/mpich"', '"mpi/mpich"'))
    return path


def times(program: Path, twin: Path, compute_ps: int | None) -> list[list[float]]:
    """Return by rank what the parts of the program took, seconds."""
    found = predict_executable(program, twin=twin, passes=1, compute_ps=compute_ps, ends=False)
    assert found.printed is not None
    rows = [line.split() for line in found.printed]
    assert [row[0] for row in rows] == ["2", "2"]
    return [[float(word) for word in row[1:]] for row in rows]


def test_what_a_library_does_within_its_calls_is_charged(program: Path, twin: Path) -> None:
    for combined, _, _, written in times(program, twin, None):
        assert 2e-3 <= combined < 0.1
        assert 2e-4 <= written < 5
    _, (_, first, later, _) = times(program, twin, None)
    # At least 0.05 us for each of 2048 pages that the kernel clears.
    assert first - later > 1e-4


def test_with_computation_as_given_it_takes_nothing(program: Path, twin: Path) -> None:
    once = times(program, twin, 0)
    assert once == times(program, twin, 0)
    for combined, first, later, written in once:
        assert combined < 1e-3
        assert first == pytest.approx(later, rel=0.01)
        assert written < 1e-3
