"""Real runs by the import hook, and the example programs in both worlds."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from mpi_help import PROGRAMS, launcher, model

from wiretwin import leftovers, process
from wiretwin.mpi import simulate

SMALL = {
    "heat2d.py": ["--points", "40", "--steps", "30"],
    "matmul.py": ["--size", "37", "--repeat", "2"],
    "ring_allreduce.py": ["--elements", "1001", "--repeat", "3"],
    "master_worker.py": ["--limit", "100000", "--tasks", "9"],
    "sample_sort.py": ["--keys", "700", "--repeat", "2"],
}


def live(
    script: Path, *argv: str, ranks: int = 2, out: Path | None = None, split: bool = False
) -> process.Finished:
    env = process.single_threaded()
    env.pop("WIRETWIN_LIVE_OUT", None)
    env.pop("WIRETWIN_LIVE_SPLIT", None)
    if out is not None:
        env["WIRETWIN_LIVE_OUT"] = str(out)
    if split:
        env["WIRETWIN_LIVE_SPLIT"] = "1"
    command = [*launcher(ranks), sys.executable, "-P", "-m", "wiretwin.mpi.live", str(script), *argv]
    with leftovers.none_left(os.getuid()):  # of ranks that another's end has ended
        return process.run(command, limit_s=60.0, env=env)


def orphans(script: Path) -> list[int]:
    return [
        one.pid
        for one in psutil.process_iter(["cmdline"])
        if str(script) in (one.info["cmdline"] or []) and one.pid != os.getpid()
    ]


@pytest.mark.parametrize("name", sorted(SMALL))
def test_examples_say_the_same_in_both_worlds(name: str, tmp_path: Path) -> None:
    script, argv = PROGRAMS / name, SMALL[name]
    done = live(script, *argv, out=tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("ok\n")
    assert simulate(script, argv, 2, model(2)).output() == done.stdout
    assert len(json.loads((tmp_path / "out.json").read_text())["per_rank_s"]) == 2


@pytest.mark.parametrize("ranks", [1, 3, 4, 6])
@pytest.mark.parametrize("name", sorted(SMALL))
def test_examples_are_right_on_other_numbers_of_ranks(name: str, ranks: int) -> None:
    assert simulate(PROGRAMS / name, SMALL[name], ranks, model(ranks)).stdout[0].endswith("ok\n")


def test_a_live_run_splits_into_computation_and_calls(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import numpy as np\n"
        "from mpi4py import MPI\n"
        "comm = MPI.COMM_WORLD\n"
        "other = 1 - comm.rank\n"
        "for _ in range(5):\n"
        "    sum(range(200_000))\n"
        "    requests = [comm.Irecv(np.empty(10), other), comm.Isend(np.zeros(10), other)]\n"
        "    MPI.Request.Waitall(requests)\n"
        "part = comm.Split(0, comm.rank)\n"
        "part.allreduce(1)\n"
        "cart = part.Create_cart([2])\n"
        "cart.Barrier()\n"
        "assert isinstance(cart, MPI.Cartcomm) and isinstance(part, MPI.Intracomm)\n"
        "assert cart.Shift(0, 1) is not None and part == part and part != cart\n"
    )
    done = live(script, out=tmp_path / "out.json", split=True)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    for rank, part in enumerate(report["split"]):
        assert part["rank"] == rank
        counts = {name: cell[0] for name, cell in part["calls"].items()}
        assert counts == {
            "Irecv": 5, "Isend": 5, "Waitall": 5, "Split": 1, "allreduce": 1, "Create_cart": 1, "Barrier": 1
        }  # fmt: skip
        total = sum(cell[1] for cell in part["calls"].values())
        assert total == pytest.approx(part["mpi_s"])
        assert part["compute_s"] + part["mpi_s"] == pytest.approx(report["per_rank_s"][rank])
        assert part["compute_s"] > 0
    assert report["environment"]["threads"]["OMP_NUM_THREADS"] == "1"
    assert "numpy" in report["environment"]["imported"]


QUEUED = """
import os, subprocess, sys
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
try:
    from mpi4py import MPI
    def queued():
        return int(open("/proc/thread-self/schedstat").read().split()[1])
    if os.path.exists("/proc/thread-self/schedstat"):
        begin = queued()
        while queued() < begin + 20_000_000:
            pass
finally:
    other.kill()
    other.wait()
"""


def test_time_without_a_core_is_told_where_ranks_do_not_share_them(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(QUEUED)
    done = live(script, ranks=1, out=tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    if Path("/proc/thread-self/schedstat").exists():
        assert 0.02 <= report["queued_s"] <= report["per_rank_s"][0]
    else:
        assert report["queued_s"] is None
    script.write_text("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n")  # queue for each other
    done = live(script, ranks=len(os.sched_getaffinity(0)) + 1, out=tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["queued_s"] is None


def test_without_the_split_nothing_is_wrapped(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "from mpi4py import MPI\n"
        "assert type(MPI.COMM_WORLD).__module__ == 'mpi4py.MPI' and MPI.Intracomm is type(MPI.COMM_WORLD)\n"
        "assert type(MPI.Intracomm.Send).__name__ == 'cython_function_or_method'\n"
    )
    done = live(script, ranks=1, out=tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.json").read_text())["split"] is None


def test_a_program_of_several_files_finds_them(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("class Thing:\n    n = 4\n")
    script = tmp_path / "main.py"
    script.write_text(
        "import sys\nfrom helper import Thing\nfrom mpi4py import MPI\n"
        "class Mine:\n    n = 5\n"
        "got = MPI.COMM_WORLD.bcast((Thing(), Mine()), 0)\n"
        "said = f'{got[0].n} {got[1].n} {sys.argv[1:]} {__name__} {__file__ == sys.argv[0]}'\n"
        "for one in MPI.COMM_WORLD.gather(said) or []:\n"
        "    print(one)\n"
    )
    done = live(script, "a", "b c")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "4 5 ['a', 'b c'] __main__ True\n" * 2


def test_a_program_s_own_statistics_are_found_in_both_worlds(tmp_path: Path) -> None:
    (tmp_path / "statistics.py").write_text("def mean(numbers):\n    return 'mine'\n")
    script = tmp_path / "without-a-suffix"
    script.write_text(
        "import sys, mpi4py\n"
        "mpi4py.rc.initialize = False\n"
        "from mpi4py import MPI\n"
        "import statistics\n"
        "before = MPI.Is_initialized()\n"
        "MPI.Init()\n"
        "if MPI.COMM_WORLD.rank == 0:\n"
        "    folder = sys.path[0] == sys.argv[0].rpartition('/')[0]\n"
        "    print(statistics.mean([1]), before, MPI.Is_initialized(), MPI.Is_thread_main(), folder)\n"
        "MPI.Finalize()\n"
    )
    done = live(script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == simulate(script, [], 2, model(2)).output() == "mine False True True True\n"


def test_a_program_may_initialize_and_finalize_by_itself(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import mpi4py\nmpi4py.rc.initialize = False\nfrom mpi4py import MPI\n"
        "MPI.Init()\nprint(MPI.COMM_WORLD.allreduce(1), MPI.Is_initialized(), MPI.Is_finalized())\n"
        "MPI.Finalize()\nassert MPI.Is_finalized()\n"
        "from time import perf_counter\nbegin = perf_counter()\nsum(range(20_000_000))\n"
        "print(perf_counter() - begin)\n"
    )
    done = live(script, ranks=1, out=tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    said, after_s = done.stdout.splitlines()
    assert said == "1 True False"
    # What comes after Finalize is not counted.
    assert json.loads((tmp_path / "out.json").read_text())["per_rank_s"][0] < float(after_s)
    assert simulate(script, [], 1, model(1)).stdout[0].splitlines()[0] == said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises.py", "rank 1 raised ZeroDivisionError: division by zero"),
        ("exits.py", "rank 1 exited with status 3"),
        ("wrong_rank.py", "rank 0 raised Exception: Invalid rank"),
    ],
)
def test_an_error_of_one_rank_ends_the_job(name: str, said: str, tmp_path: Path) -> None:
    script = PROGRAMS / "broken" / name
    done = live(script, out=tmp_path / "out.json")
    assert done.returncode != 0
    assert said in done.stderr
    assert not (tmp_path / "out.json").exists()
    assert orphans(script) == []


def test_a_deadlock_is_ended_by_the_limit_and_leaves_no_process() -> None:
    script = PROGRAMS / "broken" / "deadlock.py"
    command = [*launcher(2), sys.executable, "-P", "-m", "wiretwin.mpi.live", str(script)]
    with leftovers.none_left(os.getuid()), pytest.raises(process.TimeLimit):
        process.run(command, limit_s=3.0, env=process.single_threaded())
    assert orphans(script) == []


@pytest.mark.parametrize(
    ("text", "said"), [(None, "No such file"), ("def f(:\n", "invalid syntax")], ids=["missing", "no-python"]
)
def test_a_script_that_cannot_run_is_refused(text: str | None, said: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    if text is not None:
        script.write_text(text)
    done = live(script, ranks=1)
    assert done.returncode == 2
    assert said in done.stderr
