"""Ranks that compute with several threads of OpenMP, for real and simulated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wiretwin import process
from wiretwin.predict.executable import predict_executable
from wiretwin.predict.live import run

PROGRAM = """
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    #pragma omp parallel
    #pragma omp single
    printf("%d of %d\\n", omp_get_num_threads(), omp_get_num_procs());
    MPI_Finalize();
    return 0;
}
"""


def ask(monkeypatch: pytest.MonkeyPatch, threads: str | None) -> None:
    """Set how many threads are asked for, or nothing."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if threads is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", threads)


@pytest.mark.parametrize(("asked", "threads"), [(None, 1), ("2", 2)])
def test_a_rank_has_the_threads_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, threads: int
) -> None:
    ask(monkeypatch, asked)
    Path("threads.c").write_text(PROGRAM)
    mpicc = Path(sys.executable).parent / "mpicc"
    subprocess.run([mpicc, "-O1", "-fopenmp", "threads.c", "-o", "threads"], check=True, timeout=60)
    found = predict_executable(
        Path("threads"), twin="nothing", ranks=2, network="star:rate=10Gbit/s,delay=1us", passes=1
    )
    cores = len(os.sched_getaffinity(0))
    assert found.printed == [f"{threads} of {min(threads, cores)}\n"] * 2
    noted = any(f"on {threads} cores, for its OpenMP threads" in note for note in found.warnings)
    assert noted == (threads > 1)
    real = run(Path("threads"), ranks=2, launches=1, splits=0, out=Path("real"))
    assert real.printed == [f"{threads} of {cores}\n"] * 2


@pytest.mark.parametrize(
    ("value", "count"), [(None, 1), ("3", 3), ("4,2", 4), ("0", 1), ("many", 1), ("", 1)]
)
def test_the_threads_that_are_asked_for_are_read(
    monkeypatch: pytest.MonkeyPatch, value: str | None, count: int
) -> None:
    ask(monkeypatch, value)
    assert process.threads_asked() == count
    assert process.threaded_as_asked()["OMP_NUM_THREADS"] == ("1" if value is None else value)
    assert process.single_threaded()["OMP_NUM_THREADS"] == "1"
