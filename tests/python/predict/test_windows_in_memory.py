"""Windows of Open MPI lie in memory that ranks reach without its owner's help, between hosts they do not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from predict_help import TWIN
from test_executable import compiled

from wiretwin.errors import SimulationError
from wiretwin.predict.executable import predict_executable
from wiretwin.predict.live import Job, run_interleaved
from wiretwin.predict.records import Prediction, Run
from wiretwin.testbed import Testbed
from wiretwin.twin import Twin

COMPILER = "mpicc.openmpi"
pytestmark = pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs Debian's Open MPI")

WINDOW = """
    double one = 1, *sum;
    long more = 1, before;
    MPI_Win window;
    %s
    *sum = 0;
    MPI_Barrier(WORLD);
    %s
    MPI_Barrier(WORLD);
    printf("%%g ms, %%g\\n", 1e3 * took, *sum);
    MPI_Win_free(&window);
"""
MAKES = [
    "sum = calloc(1, 8); MPI_Win_create(sum, 8, 8, MPI_INFO_NULL, WORLD, &window);",
    "MPI_Win_allocate(8, 8, MPI_INFO_NULL, WORLD, &sum, &window);",
]
#: Rank 0 adds while the owner of the memory does something else.
ADDS = """
    double took = MPI_Wtime();
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
        MPI_Accumulate(&one, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, MPI_SUM, window);
        MPI_Win_unlock(1, window);
    } else {
        usleep(20000);
    }
    took = MPI_Wtime() - took;
"""
#: Rank 1 keeps the lock while it does something else.
KEEPS = """
    if (rank == 0)
        usleep(1000);
    double took = MPI_Wtime();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    if (rank == 1)
        usleep(20000);
    MPI_Accumulate(&one, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, MPI_SUM, window);
    MPI_Win_unlock(1, window);
    took = MPI_Wtime() - took;
"""
#: Rank 0 asks for what the owner's library does in its calls, where memory is not the library's own.
COUNTS = """
    double took = MPI_Wtime();
    MPI_Win_lock_all(0, window);
    for (int time = 0; time < 10; time++) {
        MPI_Fetch_and_op(&more, &before, MPI_LONG, 1, 0, MPI_SUM, window);
        MPI_Win_flush(1, window);
    }
    MPI_Win_unlock_all(window);
    took = MPI_Wtime() - took;
    MPI_Barrier(WORLD);
    *sum = *(long *)sum;
"""
#: Rank 1 keeps the lock and waits for rank 0, which wants it.
STUCK = """
    double took = 0;
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
        MPI_Barrier(WORLD);
        MPI_Recv(&one, 1, MPI_DOUBLE, 0, 0, WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Barrier(WORLD);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
        MPI_Send(&one, 1, MPI_DOUBLE, 1, 0, WORLD);
    }
    MPI_Win_unlock(1, window);
"""


def predicted(makes: str, does: str, network: str | None = None) -> Prediction:
    """Predict two ranks whose computation takes no time."""
    program = compiled(WINDOW % (makes, does), by=COMPILER)
    twin = "nothing" if network else Twin.parse(TWIN.replace("mpi4py/mpich", "mpi/openmpi"), "a twin")
    return predict_executable(program, twin=twin, network=network, compute_ps=0, ends=False)


def told(record: Prediction | Run) -> list[tuple[float, float]]:
    """Return what each rank printed: how long it took in milliseconds, and its sum."""
    assert record.printed is not None
    lines = [text.split() for text in record.printed]
    return [(float(ms), float(total)) for ms, _, total in lines]


@pytest.mark.parametrize("makes", MAKES)
def test_nobody_waits_for_the_owner_of_memory(makes: str) -> None:
    (took, _), (_, total) = told(predicted(makes, ADDS))
    assert took < 1
    assert total == 1


def test_between_hosts_it_does() -> None:
    (took, _), (_, total) = told(predicted(MAKES[0], ADDS, "star:hosts=2,rate=10Gbit/s"))
    assert took >= 19
    assert total == 1


@pytest.mark.needs_hosts
@pytest.mark.parametrize("makes", MAKES)
@pytest.mark.parametrize(("does", "total"), [(ADDS, 1), (COUNTS, 20)])
def test_a_real_run_between_hosts_has_windows(makes: str, does: str, total: int) -> None:
    job = Job(compiled(WINDOW % (makes, does), by=COMPILER), (), 2, Path("actual"))
    with Testbed.up(2, share=[Path.cwd()]) as bed:
        (done,) = run_interleaved([job], launches=1, splits=0, place=bed)
    assert [found for _, found in told(done)] == [0, total]


def test_a_real_run_on_one_host_over_tcp_alone_has_windows() -> None:
    job = Job(compiled(WINDOW % (MAKES[0], COUNTS), by=COMPILER), (), 2, Path("actual"))
    (done,) = run_interleaved([job], launches=1, splits=0, layer="mpi/openmpi+tcp")
    assert [found for _, found in told(done)] == [0, 20]


@pytest.mark.parametrize("makes", MAKES)
def test_who_wants_a_lock_goes_on_when_it_is_given_up(makes: str) -> None:
    (took, _), (_, total) = told(predicted(makes, KEEPS))
    assert 18.9 < took < 20
    assert total == 2


@pytest.mark.parametrize("makes", MAKES)
def test_what_one_library_asks_of_another_is_done_in_its_calls(makes: str) -> None:
    (took, _), (_, total) = told(predicted(makes, COUNTS))
    assert took < 1
    assert total == 20


def test_a_deadlock_at_a_window_is_found() -> None:
    with pytest.raises(SimulationError, match="in MPI_Win_lock waits: what another rank does to a window"):
        predicted(MAKES[0], STUCK)
