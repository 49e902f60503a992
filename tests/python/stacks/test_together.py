"""What any number of ranks do together, over the libraries that have it: every loop, and wrong data found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from stacks_help import installed

from wiretwin.errors import MeasureError
from wiretwin.measure import measure
from wiretwin.measure.launch import Outcome, launch
from wiretwin.measure.schedule import Step
from wiretwin.measure.together import FIXED
from wiretwin.stacks.layers import parse_layers
from wiretwin.stacks.word import BLOCKING, OF_MPI_2_2, OVER_MESSAGES, TOGETHER

RANKS = 3
LAYERS = ("mpi/mpich+yield", "mpi/openmpi+yield", "mpi/lam", "mpi4py/mpich", "socket/unix", "shm+yield")


def step(loop: str, size: int = 24) -> Step:
    """Few samples of a loop; 24 bytes are six numbers, which three ranks share evenly, and two messages."""
    delay = 50_000 if loop == "load" else 0
    return Step(
        loop,
        FIXED.get(loop, size),
        messages=2,
        delay_ns=delay,
        warmup=0,
        min_samples=2,
        max_samples=2,
        budget_ms=0.1,
    )


def launched(name: str, steps: list[Step], ranks: int = RANKS) -> Outcome:
    return launch(installed(name), steps, limit_s=60.0, pins=None, ranks=ranks, together=True)


@pytest.mark.parametrize("name", LAYERS)
def test_every_loop_of_a_layer_gives_what_it_has_to_and_its_times(name: str) -> None:
    """Each loop is verified by the probe before it is timed; sizes that ranks do not share evenly, too."""
    loops = sorted(installed(name).loops & TOGETHER)
    outcome = launched(name, [step(loop, size) for loop in loops for size in (24, 4100)])
    assert (outcome.status, outcome.error) == ("ok", None)
    sizes = {loop: [FIXED[loop]] * 2 if loop in FIXED else [24, 4100] for loop in loops}
    told = [(one["loop"], one["bytes"]) for one in outcome.steps]
    wanted = [(loop + end, size) for loop in loops for size in sizes[loop] for end in ("", "_mean")]
    assert told == wanted
    for slowest, mean in zip(outcome.steps[::2], outcome.steps[1::2], strict=True):
        assert len(slowest["values_ns"]) == len(mean["values_ns"]) == 2
        for most, middle in zip(slowest["values_ns"], mean["values_ns"], strict=True):
            assert most >= middle > 0


def test_what_a_library_does_not_have_is_not_run_on_it() -> None:
    (lam,) = parse_layers("mpi/lam")
    assert lam.loops & TOGETHER == set(BLOCKING) - OF_MPI_2_2 | OVER_MESSAGES
    for name in ("iallreduce", "reduce_scatter_block"):
        outcome = launched("mpi/lam", [step(name)])
        assert outcome.status == "failed"
        assert f"{name}, by MPI" in str(outcome.error)
    with pytest.raises(MeasureError, match=r"socket/tcp cannot run here: it has none of .*: barrier, bcast"):
        measure("socket/tcp", purpose="collectives")
    with pytest.raises(MeasureError, match=r"none of the loops of --for collectives: reduce_scatter_block$"):
        measure("mpi/lam", purpose="collectives", loops="reduce_scatter_block")


BROKEN = """
#include <mpi.h>
/* The last rank's first number is one too many. */
int MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    int rank, size, code = PMPI_Allreduce(out, in, count, type, op, comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank == size - 1 && type == MPI_FLOAT) *(float *)in += 1;
    return code;
}
"""


def test_a_wrong_sum_is_found_whichever_rank_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed("mpi/mpich")
    source, library = tmp_path / "broken.c", tmp_path / "broken.so"
    source.write_text(BROKEN)
    subprocess.run(["mpicc.mpich", "-shared", "-fPIC", "-o", library, source], check=True)
    assert launched("mpi/mpich", [step("allreduce")]).status == "ok"
    monkeypatch.setenv("LD_PRELOAD", str(library))
    outcome = launched("mpi/mpich", [step("allreduce")])
    assert outcome.status == "failed"
    assert f"wrong data: allreduce, at place 0 of rank {RANKS - 1}" in str(outcome.error)
