"""Which ranks share a host in the simulated world, and windows of memory that they share."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_executable import MPICC, NOTHING, OPEN_MPI, compiled

from wiretwin.errors import WiretwinError
from wiretwin.predict.executable import predict_executable

WINDOW = """
    MPI_Comm host;
    MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &host);
    int of_host, on_host, unit;
    MPI_Comm_rank(host, &of_host);
    MPI_Comm_size(host, &on_host);
    MPI_Aint bytes;
    int *own, *next;
    MPI_Win window;
    MPI_Win_allocate_shared(sizeof *own, sizeof *own, MPI_INFO_NULL, argc > 1 ? WORLD : host, &own, &window);
    MPI_Win_shared_query(window, (of_host + 1) % on_host, &bytes, &unit, &next);
    MPI_Win_fence(0, window);
    *own = 100 + rank;
    MPI_Win_fence(0, window);
    printf("%d of %d, beside %d", of_host, on_host, *next);
    MPI_Win_shared_query(window, MPI_PROC_NULL, &bytes, &unit, &next);
    printf(", first %d, %ld bytes of %d\\n", *next, (long)bytes, unit);
    MPI_Win_free(&window);
"""


def printed(program: Path, *args: str) -> list[str] | None:
    """Predict four ranks, two on each of two hosts that cost nothing; what they printed."""
    return predict_executable(
        program, args, twin=NOTHING[1], network="star:hosts=2,rate=10Gbit/s", ranks=4, ranks_per_host=2,
        compute_ps=0, ends=False,
    ).printed  # fmt: skip


@pytest.mark.parametrize("compiler", [MPICC, OPEN_MPI])
def test_ranks_of_a_host_share_memory(compiler: str | Path) -> None:
    found = printed(compiled(WINDOW, by=compiler))
    assert found == [
        "1 of 2, beside 101, first 101, 4 bytes of 4\n",
        "0 of 2, beside 100, first 101, 4 bytes of 4\n",
        "1 of 2, beside 103, first 103, 4 bytes of 4\n",
        "0 of 2, beside 102, first 103, 4 bytes of 4\n",
    ]


def test_ranks_of_several_hosts_do_not() -> None:
    with pytest.raises(WiretwinError, match="the ranks of the communicator are on several hosts; allowed"):
        printed(compiled(WINDOW), "world")


def test_a_script_meets_what_a_real_run_has_before_it() -> None:
    script = Path("script.py")
    script.write_text(
        "import sys\n"
        "print('statistics' in sys.modules, sys.argv[1:], __name__)\n"
        "import atexit, statistics\n"
        "from mpi4py import MPI\n"
        "atexit.register(lambda: print(MPI.Is_finalized()))\n"
        "MPI.Init()\n"
        "MPI.Win.Create(None).Free()\n"
    )
    found = predict_executable(script, ["5"], twin="nothing", network=NOTHING[3], ranks=2, compute_ps=0)
    assert found.printed == ["True ['5'] __main__\nFalse\n"] * 2
