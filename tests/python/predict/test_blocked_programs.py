"""A program under the MPI library itself that waits for what is no rank: a real run waits, too."""

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
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void *work(void *none) {
    struct timespec time;
    long until_ns = 0, now_ns;
    do {
        syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
        now_ns = time.tv_sec * 1000000000L + time.tv_nsec;
        until_ns = until_ns ? until_ns : now_ns + 20000000;
    } while (now_ns < until_ns);
    return none;
}
int main(int argc, char **argv) {
    int rank, status;
    double took[4], began;
    pthread_t thread;
    pid_t child;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int what = 0; what < 4; what++) {
        MPI_Barrier(MPI_COMM_WORLD);
        began = MPI_Wtime();
        if (rank == 0 && what == 0) {
            work(0);
        } else if (rank == 0 && what == 1) {
            /* Its parent sleeps as it does while a disk is read. */
            if ((child = vfork()) == 0) {
                work(0);
                _exit(0);
            }
            waitpid(child, &status, 0);
        } else if (rank == 0 && what == 2) {
            if ((child = fork()) == 0) {
                work(0);
                _exit(0);
            }
            waitpid(child, &status, 0);
        } else if (rank == 0) {
            pthread_create(&thread, 0, work, 0);
            pthread_join(thread, 0);
        }
        took[what] = MPI_Wtime() - began;
    }
    printf("%.6f %.6f %.6f %.6f\n", took[0], took[1], took[2], took[3]);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    path = tmp_path / "mpi.toml"
    path.write_text(TWIN.replace('"mpi4py/mpich"', '"mpi/mpich"').replace("cores = 2", "cores = 64"))
    return path


def test_what_a_rank_waits_for_outside_is_its_own_time(twin: Path) -> None:
    source = Path("blocked.c")
    source.write_text(PROGRAM)
    subprocess.run([MPICC, "-O1", "-pthread", source, "-o", "blocked"], check=True, timeout=60)
    found = predict_executable(Path("blocked").absolute(), (), twin=twin, ranks=2, passes=1, ends=False)
    assert found.printed is not None
    own, *waited = map(float, found.printed[0].split())
    assert own == pytest.approx(0.02, rel=0.1)
    # Twenty milliseconds of a processor that it shares with others.
    assert min(waited) > 0.015
    assert max(map(float, found.printed[1].split())) < 0.001
