"""Programs that are wrong: a clear error with the exit code of its kind, and nothing left behind.

Each goes through `wiretwin predict`, and where it can also for real through `wiretwin run`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from predict_help import HEAD, RING, nothing_left, until, wiretwin

from wiretwin import process
from wiretwin.predict.live import _own_words

INPUT, SIMULATION, PROGRAM = 2, 4, 5

BAD = {
    "raises": (HEAD + "if rank:\n    1 / 0\ncomm.Barrier()\n", PROGRAM, "rank 1 raised ZeroDivisionError"),
    "exits": (
        HEAD + "import sys\nif rank:\n    sys.exit(3)\n",
        PROGRAM,
        "rank 1 exited with status 3 at {program}:7",
    ),
    "exits-while-another-waits": (
        HEAD + "import sys\nif rank:\n    sys.exit(3)\ncomm.recv(source=1)\n",
        PROGRAM,
        "rank 1 exited with status 3 at {program}:7\ndeadlock: 1 rank of 2 can never go on",
    ),
    "deadlocks": (
        HEAD + "comm.recv(source=1 - rank, tag=4)\n",
        SIMULATION,
        "rank 0 waits in recv at {program}:5 for a message from rank 1 with tag 4",
    ),
    "wrong-rank": (HEAD + "comm.send(1, dest=9)\n", PROGRAM, "Invalid rank"),
    "raises-under-the-library": (HEAD + "MPI.Win.Create(7)\n", PROGRAM, "TypeError"),
    "reads": (HEAD + "input('how many? ')\n", PROGRAM, "ranks have no standard input"),
    "syntax": ("x = (\n", INPUT, "{program}: line 1: is not Python"),
    "forced": (HEAD + "import os\nif rank:\n    os._exit(7)\n", PROGRAM, "rank 1 exited with status 7"),
    "aborts": (HEAD + "comm.Abort(6)\n", PROGRAM, "rank 0 called MPI_Abort(6)"),
    "crashes": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", PROGRAM, "SIGSEGV"),
    "starts-others": (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)', __file__])\n"
        "raise ValueError('and goes')\n",
        PROGRAM,
        "rank 0 raised ValueError",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_predicting_a_bad_program_ends_with_its_error(name: str, tmp_path: Path, twin: Path) -> None:
    text, code, said = BAD[name]
    program = tmp_path / "program.py"
    program.write_text(text)
    with nothing_left(program):
        ended = wiretwin("predict", program, "--twin", twin, "--passes", 1, "--limit", "60s")
    assert ended.code == code, ended.err
    assert ended.err.startswith("wiretwin: ")
    assert said.format(program=program) in ended.err
    assert "Traceback" not in ended.err.partition("stderr:")[0]
    assert not Path("results").exists() or not any(Path("results").iterdir())


def test_the_circle_of_a_deadlock_stands_in_the_message(tmp_path: Path, twin: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(BAD["deadlocks"][0])
    ended = wiretwin("predict", program, "--twin", twin)
    assert "rank 1 waits in recv" in ended.err
    assert "rank 0 waits for rank 1 waits for rank 0" in ended.err


@pytest.mark.parametrize(
    "name", ["raises", "exits", "wrong-rank", "forced", "aborts", "crashes", "reads", "syntax"]
)
def test_running_a_bad_program_ends_with_the_words_of_the_rank(name: str, tmp_path: Path) -> None:
    text, code, _ = BAD[name]
    said = {
        "raises": "rank 1 raised ZeroDivisionError: division by zero",
        "exits": "rank 1 exited with status 3",
        "wrong-rank": "invalid rank",
        "forced": "status 7",
        "reads": "ranks have no standard input",
        "aborts": "status 6",
        "crashes": "signal 11",
        "syntax": f"{program_line(1)}: is not Python",
    }
    program = tmp_path / "program.py"
    program.write_text(text)
    with nothing_left(program):
        ended = wiretwin("run", program, "--launches", 1, "--splits", 0, "--limit", "60s")
    assert ended.code == code, ended.err
    assert ended.err.startswith("wiretwin: program.py on 2 ranks" if code == PROGRAM else "wiretwin: ")
    assert said[name].lower() in ended.err.lower()
    assert not list(Path().rglob("run.json"))


def program_line(line: int) -> str:
    return f"program.py: line {line}"


def test_a_deadlock_for_real_is_ended_by_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: Sequence[str], *, limit_s: float, env: dict[str, str], futile: None) -> process.Finished:
        """Run into the limit as soon as both ranks wait, however long they take to start."""
        with process.child(argv, env=env) as (child, out, err):
            until(lambda: err.read_text() == "so far\nso far\n", 120.0)
            process.end_tree(child)
            done = process.Finished(child.returncode, out.read_text(), err.read_text(), limit_s)
        raise process.TimeLimit(argv, limit_s, done)

    monkeypatch.setattr(process, "run", run)
    program = tmp_path / "program.py"
    program.write_text(
        # In one write: what two ranks write in pieces, the launcher mixes.
        HEAD + "import os\nos.write(2, b'so far\\n')\ncomm.recv(source=1 - rank)\n"
    )
    with nothing_left(program):
        ended = wiretwin("run", program, "--launches", 1, "--limit", "5s")
    assert ended.code == PROGRAM
    assert ended.err == (
        "wiretwin: program.py on 2 ranks did not end within 5 s and was ended; "
        "its last words: so far\nso far. If it waits for a message that never comes, "
        "`wiretwin predict` says who waits for whom\n"
    )


def test_a_launchers_word_to_the_end_we_made_is_not_the_programs() -> None:
    banner = "\n\n====\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n====\nSee the FAQ\n"
    assert _own_words(process.Finished(15, banner, "", 5.0), []) == "none"
    assert _own_words(process.Finished(15, f"step 3 = {banner}", "", 5.0), []) == "step 3"


def test_a_simulated_run_that_the_kernel_ended_says_what_that_means(
    tmp_path: Path, twin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "run", lambda *_, **__: process.Finished(-signal.SIGKILL, "", "", 1.0))
    program = tmp_path / "program.py"
    program.write_text(HEAD)
    ended = wiretwin("predict", program, "--twin", twin, "--ranks", 100_000)
    assert ended.code == PROGRAM
    assert (
        "ended with signal SIGKILL: the kernel does that where memory has run out, and all 100000 ranks"
        in (ended.err)
    )


def test_a_program_that_leaves_by_force_with_status_0_is_told_apart(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + "import os\ncomm.Barrier()\nos._exit(0)\n")
    with nothing_left(program):
        ended = wiretwin("run", program, "--ranks", 1, "--launches", 1, "--limit", "30s")
    assert ended.code == PROGRAM
    assert "ended without saying how long it took" in ended.err
    assert "seconds.json" not in ended.err


def test_a_program_that_never_ends_is_ended_by_the_limit(tmp_path: Path, twin: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("while True:\n    pass\n")
    with nothing_left(program):
        ended = wiretwin("predict", program, "--twin", twin, "--limit", "2s")
    assert ended.code == PROGRAM
    assert "program.py: the simulated run did not end within 2 s and was ended" in ended.err


def test_what_looks_at_the_clock_takes_the_library_itself(tmp_path: Path, twin: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os\n"
        + HEAD
        + "if int.from_bytes(os.urandom(8)) and os.path.exists('flag'):\n    comm.Barrier()\n"
        + "open('flag', 'w').close()\ncomm.Barrier()\n"
    )
    with nothing_left(program):
        ended = wiretwin("predict", program, "--twin", twin, "--ranks", 1, "--passes", 1)
    assert ended.code == 0, ended.err
    assert "rank 0 took another path when it was measured alone" in ended.err
    assert "the clock, at files or at unseeded random numbers" in ended.err
    assert "mpich itself ran" in ended.err


@pytest.mark.parametrize("verb", ["predict", "run"])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.py", "no such file"),
        ("folder.py", "is a folder"),
        ("program.bin", "is not Python"),
        ("nonsense", "no such file; allowed: the file of a Python script"),
    ],
)
def test_what_is_no_program_is_refused(tmp_path: Path, twin: Path, verb: str, name: str, said: str) -> None:
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "program.bin").write_bytes(b"\x7fELF\x00\x01")
    ended = wiretwin(verb, tmp_path / name, *(["--twin", twin] if verb == "predict" else []))
    assert ended.code == INPUT
    assert name in ended.err
    assert said in ended.err
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranks", "0"], "--ranks: 0 is not allowed here; allowed: 1 and above"),
        (["--passes", "0"], "--passes: 0 is not allowed here; allowed: 1 to 1000"),
        (["--compute", "5"], "--compute: '5' has no unit; allowed: "),
        (
            ["--compute", "replay"],
            "--compute: 'replay' is not a time; allowed: measured, replay:FOLDER, or a number",
        ),
        (["--limit", "0.5s"], "--limit: '0.5s' is out of range"),
        (["--layer", "pvm"], "'pvm' is not in the twin; it has mpi4py/mpich"),
        (["--layer", "shm"], "overhead_send was not fitted for this layer"),
        (["--seed", "-1"], "--seed: -1 is not allowed here; allowed: 0 to"),
        (["--twin", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["--twin", "nowhere.toml", "--", "n=1"], "wiretwin: nowhere.toml: cannot be read"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(
    tmp_path: Path, twin: Path, words: list[str], said: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise RuntimeError('it ran')\n")
    ended = wiretwin("predict", program, "--twin", twin, *words)
    assert ended.code == INPUT, ended.err
    assert said in ended.err
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranks", "0"], "--ranks: 0 is not allowed here; allowed: 1 and above"),
        (["--launches", "0"], "--launches: 0 is not allowed here; allowed: 1 to 1000"),
        (["--splits", "-1"], "--splits: -1 is not allowed here; allowed: 0 to 1000"),
        (["--limit", "5"], "--limit: '5' has no unit"),
        (["--world", "simulated"], "--twin: is needed"),
    ],
)
def test_wrong_options_of_a_run_are_refused_before_anything_runs(
    tmp_path: Path, words: list[str], said: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise RuntimeError('it ran')\n")
    ended = wiretwin("run", program, *words)
    assert ended.code == INPUT, ended.err
    assert said in ended.err
    assert os.listdir() == []


def test_a_twin_is_needed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RING)
    ended = wiretwin("predict", program)
    assert (ended.code, ended.err) == (
        INPUT,
        "wiretwin: --twin: is needed; allowed: a file written by `wiretwin fit`; none with a --network that "
        "has hosts of its own, or `nothing` for hosts that cost nothing\n",
    )
