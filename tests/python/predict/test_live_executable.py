"""Compiled programs of the user's in real runs: timed from after Init to before Finalize, and compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from predict_help import TWIN, wiretwin

from wiretwin.errors import InputError, ProgramError
from wiretwin.predict.compare import compare
from wiretwin.predict.executable import predict_executable
from wiretwin.predict.live import run
from wiretwin.predict.records import Run, read

COMPILERS = {"mpi/mpich": str(Path(sys.executable).parent / "mpicc"), "mpi/openmpi": "mpicc.openmpi"}
#: A fiftieth of a second on rank 1, which begins when the time of rank 0 has begun, and a message.
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static void spin(double seconds) {
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {}
}
int main(int argc, char **argv) {
    int rank, word = argc;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1 && !strcmp(argv[1], "leave"))
        return 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        spin(0.02);
    MPI_Bcast(&word, 1, MPI_INT, 1, MPI_COMM_WORLD);
    printf("rank %d of a program with %d words\\n", rank, word);
    MPI_Finalize();
    return 0;
}
"""
FORTRAN = """
program timed
  use mpi
  implicit none
  integer :: rank, error
  double precision :: end
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  end = MPI_Wtime() + 0.02d0
  do while (rank == 1 .and. MPI_Wtime() < end)
  end do
  call MPI_Barrier(MPI_COMM_WORLD, error)
  print '(a,i0)', 'rank ', rank
  call MPI_Finalize(error)
end program
"""


def compiled(text: str, by: str, suffix: str = "c") -> Path:
    """Compile a program with an MPI's own compiler, or leave the test out where there is none."""
    if shutil.which(by) is None:
        pytest.skip(f"no {by}")
    source = Path(f"program.{suffix}")
    source.write_text(text)
    subprocess.run([by, "-O1", source, "-o", "program"], check=True, timeout=60)
    return Path("program").absolute()


@pytest.mark.parametrize("layer", COMPILERS)
def test_a_compiled_program_is_timed_within_its_mpi_and_compared(tmp_path: Path, layer: str) -> None:
    program = compiled(PROGRAM, COMPILERS[layer])
    twin = tmp_path / "twin.toml"
    twin.write_text(TWIN.replace('"mpi4py/mpich"', f'"{layer}"'))
    frozen = predict_executable(program, ["one"], twin=twin, passes=2)
    assert frozen.setup == "library-host"
    assert frozen.noise is not None
    assert frozen.seconds.low <= frozen.noise.low <= frozen.seconds.value <= frozen.noise.high
    done = run(program, ["one"], launches=2, splits=1, out="actual")
    assert read(Run, Path("actual")) == done
    assert done.layer == layer
    assert done.printed == [f"rank {rank} of a program with 2 words\n" for rank in (0, 1)]
    for one in done.launches:
        assert len(one.per_rank_s) == 2
        # Rank 0 waits for rank 1, which alone computes.
        assert min(one.per_rank_s) >= 0.02
        assert one.seconds == max(one.per_rank_s)
        assert one.echo_us is not None
    assert done.split_launch == 3
    waits, computes = done.split
    assert waits.mpi_s >= 0.02 > waits.compute_s
    assert computes.compute_s >= 0.02
    agreement = compare(frozen, done)
    assert agreement.printed == "same"
    assert agreement.launches == 2


def test_a_program_in_fortran_is_timed_as_well() -> None:
    done = run(compiled(FORTRAN, "mpif90.openmpi", "f90"), launches=1, splits=1, out="actual")
    assert done.printed == ["rank 0\n", "rank 1\n"]
    assert done.seconds.value >= 0.02
    assert done.split[0].mpi_s >= 0.02 > done.split[0].compute_s


def test_one_that_ends_without_finalizing_has_no_time() -> None:
    program = compiled(PROGRAM, COMPILERS["mpi/mpich"])
    with pytest.raises(ProgramError, match="program leave on 2 ranks ended"):
        run(program, ["leave"], launches=1, splits=0, out="actual")


def test_a_program_runs_on_the_library_that_it_is_built_for() -> None:
    program = compiled(PROGRAM, COMPILERS["mpi/mpich"])
    ended = wiretwin("run", program, "--layer", "mpi/openmpi", "-o", "actual")
    assert ended.code == 2
    assert "mpi/mpich or a variant of it: the program is built for it" in ended.err
    with pytest.raises(InputError, match="is no MPI program"):
        run("/bin/true", out="actual")
