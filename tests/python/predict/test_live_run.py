"""Real launches: what is kept, what an interrupt or a killed rank leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from predict_help import HEAD, RING, family, mentioning, nothing_left, until, wiretwin
from watching import becomes, made_here, own_group

from wiretwin.errors import InputError, ProgramError
from wiretwin.leftovers import Leftovers
from wiretwin.predict.live import Job, run, run_interleaved
from wiretwin.predict.records import Launch, Run, median_spread, read

#: Goes on until it is told to end by a file, or is ended.
LONG = HEAD + "comm.Barrier()\nopen(f'running-{rank}', 'w').close()\ncomm.recv(source=1 - rank)\n"


@contextmanager
def started(*words: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Start the `wiretwin` command as a user does; nothing of it is left afterwards."""
    command = [str(Path(sys.executable).with_name("wiretwin")), *map(str, words)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        for one in [*family(process.pid), process] if process.poll() is None else []:
            one.kill()
        process.communicate(timeout=30)


def test_every_launch_is_kept_and_the_split_apart(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RING + "sum(range(200_000))\n")
    with nothing_left(program):
        ended = wiretwin("run", program, "--launches", 2, "--splits", 1, "-o", "actual", "--format", "json")
    assert ended.code == 0, ended.err
    kept = read(Run, Path("actual"))
    lines = Path("actual/launches.jsonl").read_text().splitlines()
    assert [Launch.model_validate_json(line) for line in lines] == kept.launches
    assert [one.split is None for one in kept.launches] == [True, True, False]
    assert kept.seconds == median_spread([one.seconds for one in kept.launches[:2]])
    assert kept.seconds.meaning == "range of 2 launches"
    for one in kept.launches:
        assert one.seconds == max(one.per_rank_s)
        assert len(one.per_rank_s) == 2
    assert kept.split_launch == 3
    assert kept.split == kept.launches[2].split
    for part in kept.split:
        assert part.total_s == pytest.approx(kept.launches[2].per_rank_s[part.rank])
        assert part.compute_s > 0
        assert part.mpi_s > 0
        assert part.compute_s + part.mpi_s == pytest.approx(part.total_s)
    assert kept.launcher == ["mpiexec", "-n", "2"]
    rows = json.loads(ended.out)
    assert [row["seconds_s"] for row in rows] == [one.seconds for one in kept.launches]
    assert ended.err.endswith("run: actual\n")


def test_programs_take_turns(tmp_path: Path) -> None:
    jobs = []
    for name in ("a", "b"):
        program = tmp_path / f"{name}.py"
        program.write_text(HEAD + "print(MPI.Wtime() > 0)\n")
        jobs.append(Job(program, (), 1, tmp_path / name))
    turns: list[str] = []
    runs = run_interleaved(jobs, launches=2, splits=0, on_launch=lambda job, _: turns.append(job.name))
    assert turns == ["a.py", "b.py", "a.py", "b.py"]
    assert [one.program for one in runs] == ["a.py", "b.py"]
    assert all(one.split == [] for one in runs)


def test_a_folder_that_holds_a_run_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RING)
    run(program, ranks=1, launches=1, splits=0, out="actual")
    with pytest.raises(InputError, match=r"actual: .*launches\.jsonl.*allowed: a folder without"):
        run(program, ranks=1, launches=1, splits=0, out="actual")
    assert len(Path("actual/launches.jsonl").read_text().splitlines()) == 1


def test_a_killed_rank_ends_the_run_with_a_clear_error(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(LONG)
    with started("run", program, "--launches", 3, "--limit", "60s", "-o", "actual") as process:
        until(lambda: Path("running-0").exists() and Path("running-1").exists())
        ranks = [one for one in family(process.pid) if one.cmdline()[2:4] == ["-m", "wiretwin.mpi.live"]]
        assert len(ranks) == 2
        ranks[1].kill()
        _, err = process.communicate(timeout=60)
    assert process.returncode == ProgramError.exit_code
    assert err.startswith("wiretwin: program.py on 2 ranks ended with ")
    assert "9" in err
    assert mentioning(program) == []
    assert not Path("actual").exists()


def test_a_killed_launcher_leaves_no_rank(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(LONG)
    with started("run", program, "--launches", 3, "--limit", "60s") as process:
        until(lambda: Path("running-0").exists() and Path("running-1").exists())
        (launcher,) = [one for one in psutil.Process(process.pid).children() if "mpiexec" in one.name()]
        launcher.kill()
        _, err = process.communicate(timeout=60)
    assert process.returncode == ProgramError.exit_code
    assert "ended with signal SIGKILL" in err
    until(lambda: mentioning(program) == [])


def test_an_interrupt_keeps_the_launches_so_far(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    # The third launch goes on until it is ended.
    program.write_text(
        HEAD
        + "from pathlib import Path\n"
        + "done = comm.bcast(len(list(Path().glob('launch-*'))))\n"
        + "comm.Barrier()\n"
        + "if rank == 0:\n    Path(f'launch-{done}').touch()\n"
        + "if done == 2:\n    comm.recv(source=1 - rank)\n"
    )
    with started("run", program, "--launches", 5, "--limit", "60s", "-o", "actual") as process:
        until(lambda: Path("launch-2").exists())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == "wiretwin: interrupted; 2 launches kept in actual\n"
    assert mentioning(program) == []
    kept = read(Run, Path("actual"))
    assert len(kept.launches) == 2
    assert kept.split == []
    assert len(Path("actual/launches.jsonl").read_text().splitlines()) == 2


def test_a_launch_that_fails_keeps_those_before_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\nif os.path.exists('once'):\n    sys.exit('not again')\nopen('once', 'w').close()\n"
        "from mpi4py import MPI\n"
    )
    with nothing_left(program):
        ended = wiretwin("run", program, "--ranks", 1, "--launches", 3, "-o", "actual")
    assert ended.code == ProgramError.exit_code
    assert "not again" in ended.err
    assert "1 launch is kept in actual" in ended.err
    assert len(read(Run, Path("actual")).launches) == 1


@pytest.mark.parametrize("world", ["predict", "simulated"])
def test_an_interrupted_prediction_says_so_and_leaves_nothing(world: str, tmp_path: Path, twin: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("open('running', 'w').close()\nwhile True:\n    pass\n")
    words = ["predict"] if world == "predict" else ["run", "--world", "simulated"]
    with started(*words, program, "--twin", twin) as process:
        until(lambda: Path("running").exists())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("wiretwin: interrupted")
    assert ("nothing was recorded" in err) == (world == "predict")
    assert mentioning(program) == []
    assert not Path("results").exists()


@pytest.mark.parametrize(
    "end", ["comm.Abort(3)", "import os; os.kill(os.getpid(), 9)", "comm.recv(source=1 - rank)"]
)
def test_a_job_that_ends_by_force_leaves_no_shared_memory(tmp_path: Path, end: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + f"comm.Barrier()\n{end}\n")
    with own_group():
        before = Leftovers.now()
        with pytest.raises(ProgramError):
            run(program, ranks=2, launches=1, splits=0, out=tmp_path / "r", limit_s=4.0)
        becomes([], lambda: [*filter(made_here, before.lost_since(os.geteuid()).files)])
