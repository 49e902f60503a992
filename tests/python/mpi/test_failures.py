"""Programs that are wrong: each ends, and is told where and why."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mpi_help import PROGRAMS, Simulate, model

from wiretwin.errors import InputError
from wiretwin.mpi import DeadlockError, NotSimulatedError, ProgramFailedError, late, simulate

BROKEN = PROGRAMS / "broken"

HEAD = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank = comm.rank
"""


def test_a_deadlock_names_the_circle_the_calls_and_the_lines(run: Simulate) -> None:
    with pytest.raises(DeadlockError) as caught:
        run(BROKEN / "deadlock.py", 3)
    said = str(caught.value)
    assert "3 ranks of 3 can never go on" in said
    line = f"{BROKEN / 'deadlock.py'}:9"
    assert f"rank 0 waits in Recv at {line} for a message from rank 1 with tag 5" in said
    assert f"rank 2 waits in Recv at {line} for a message from rank 0 with tag 5" in said
    assert "rank 0 waits for rank 1 waits for rank 2 waits for rank 0" in said


def test_a_message_never_received_is_named_with_its_line(run: Simulate) -> None:
    with pytest.raises(DeadlockError) as caught:
        run(BROKEN / "never_receives.py")
    said = str(caught.value)
    assert "rank 1 waits in recv" in said
    assert "tag 8; rank 0 has ended" in said
    assert f"with tag 7, sent by rank 0 to rank 1 (send at {BROKEN / 'never_receives.py'}:8)" in said


def test_sends_that_wait_for_their_receivers_deadlock(run: Simulate) -> None:
    with pytest.raises(
        DeadlockError, match=r"rank 0 waits in Send at .*:7 for rank 1 to receive 800000 bytes"
    ):
        run(HEAD + "big = np.zeros(100_000)\ncomm.Send(big, 1 - rank, 3)\ncomm.Recv(big, 1 - rank)\n")
    # The same is well when messages are small enough to be sent eagerly.
    run(HEAD + "small = np.zeros(10)\ncomm.Send(small, 1 - rank, 3)\ncomm.Recv(small, 1 - rank)\n")


def test_requests_that_wait_are_listed_with_the_lines_that_made_them(run: Simulate) -> None:
    program = HEAD + (
        "room = np.zeros(4)\n"
        "first = comm.Irecv(room, source=1 - rank, tag=1)\n"
        "second = comm.Irecv(room, source=MPI.ANY_SOURCE, tag=2)\n"
        "MPI.Request.Waitall([first, second])\n"
    )
    with pytest.raises(DeadlockError) as caught:
        run(program)
    said = str(caught.value)
    assert "rank 0 waits in Waitall" in said
    assert "a message from rank 1 with tag 1 (Irecv at" in said
    assert "a message from any rank with tag 2 (Irecv at" in said


def test_a_probe_that_nobody_answers_deadlocks(run: Simulate) -> None:
    with pytest.raises(
        DeadlockError, match=r"rank 1 waits in Probe at .* for a message from rank 0 with tag 4"
    ):
        run(HEAD + "if rank:\n    comm.Probe(0, 4)\n")


def test_a_collective_call_that_some_do_not_make_deadlocks(run: Simulate) -> None:
    with pytest.raises(DeadlockError, match=r"waits in Barrier .* collective call 0"):
        run(HEAD + "if rank:\n    comm.Barrier()\n", 3)


def test_different_collective_calls_are_told_apart(run: Simulate) -> None:
    program = HEAD + "comm.Barrier() if rank else comm.Bcast(np.zeros(3), 0)\n"
    with pytest.raises(
        ProgramFailedError, match=r"rank 0 calls Bcast \(root 0, 24 bytes\) at .*rank 1 calls Barrier"
    ):
        run(program)
    program = HEAD + "comm.bcast(1, root=rank)\n"
    with pytest.raises(ProgramFailedError, match=r"bcast \(root 0\) at .* bcast \(root 1\)"):
        run(program)
    with pytest.raises(ProgramFailedError, match=r"24 bytes.*32 bytes"):
        run(HEAD + "comm.Bcast(np.zeros(3 + rank), 0)\n")
    gather = "comm.Gather(np.zeros(3 + (rank == 2)), np.zeros((3, 3)) if rank == 0 else None, 0)\n"
    with pytest.raises(ProgramFailedError, match=r"Gather \(root 0, (24|32) bytes\).*(24|32) bytes"):
        run(HEAD + gather, 3)


def test_an_exception_names_rank_and_line_and_keeps_the_traceback(run: Simulate) -> None:
    with pytest.raises(ProgramFailedError) as caught:
        run(BROKEN / "raises.py")
    assert str(caught.value) == (
        f"rank 1 raised ZeroDivisionError at {BROKEN / 'raises.py'}:7: division by zero"
    )
    assert caught.value.rank == 1
    assert "return value / 0" in caught.value.trace
    assert "divide(1)" in caught.value.trace
    assert "runtime.py" not in caught.value.trace


def test_an_exit_status_is_reported_after_the_others_have_ended(run: Simulate) -> None:
    with pytest.raises(ProgramFailedError, match=r"rank 1 exited with status 3 at .*exits\.py:10") as caught:
        run(BROKEN / "exits.py", 3)
    assert caught.value.status == 3
    with pytest.raises(ProgramFailedError, match=r"rank 0 exited with status 1 .out of ideas. at"):
        run(HEAD + "import sys\nif rank == 0:\n    sys.exit('out of ideas')\n")


def test_leaving_early_with_status_0_is_an_end_like_another(run: Simulate) -> None:
    done = run(HEAD + "import sys\nprint(rank)\nif rank == 0:\n    sys.exit()\nprint('more')\n")
    assert done.stdout == ["0\n", "1\nmore\n"]
    assert done.exit_status == [0, 0]


def test_others_that_wait_for_a_rank_that_exited_are_told_so(run: Simulate) -> None:
    with pytest.raises(ProgramFailedError, match=r"(?s)rank 0 exited with status 4.*rank 0 has ended"):
        run(HEAD + "import sys\nif rank == 0:\n    sys.exit(4)\ncomm.recv(source=0)\n")


def test_forced_exits_end_the_rank_and_not_the_simulator(run: Simulate) -> None:
    with pytest.raises(ProgramFailedError, match=r"rank 1 exited with status 5"):
        run(HEAD + "import os\nif rank:\n    os._exit(5)\n")


def test_abort_ends_all(run: Simulate) -> None:
    with pytest.raises(ProgramFailedError, match=r"rank 1 called MPI_Abort\(9\) at .*:8") as caught:
        run(HEAD + "if rank == 0:\n    comm.recv(source=1)\ncomm.Abort(9)\n")
    assert caught.value.status == 9


def test_a_rank_that_does_not_exist(run: Simulate) -> None:
    with pytest.raises(
        ProgramFailedError, match=r"wrong_rank\.py:8: Invalid rank: .* has value 2, must be from 0 to 1"
    ):
        run(BROKEN / "wrong_rank.py")


def test_what_ranks_printed_stays_with_the_error(run: Simulate) -> None:
    with pytest.raises(ProgramFailedError) as caught:
        run(HEAD + "print('so far', rank)\nif rank:\n    1 / 0\ncomm.recv(source=1)\n")
    assert any("rank 1 stdout: so far 1" in note for note in caught.value.__notes__)


def test_cleaning_up_runs_when_a_rank_is_ended(run: Simulate, tmp_path: Path) -> None:
    program = HEAD + (
        "import pathlib\n"
        "try:\n"
        "    if rank:\n"
        "        1 / 0\n"
        "    comm.recv(source=1)\n"
        "finally:\n"
        f"    pathlib.Path({str(tmp_path)!r}, f'cleaned-{{rank}}').touch()\n"
        "    if rank == 0:\n"
        "        comm.Barrier()\n"
    )
    with pytest.raises(ProgramFailedError):
        run(program)
    assert (tmp_path / "cleaned-0").exists()


def test_messages_left_over_at_the_end_are_a_warning(run: Simulate) -> None:
    done = run(HEAD + "if rank == 0:\n    for _ in range(2):\n        comm.send('hello', dest=1, tag=6)\n")
    said = f"2 messages of {len(pickle.dumps('hello', 5))} bytes with tag 6, sent by rank 0 to rank 1"
    assert [text for text in done.warnings if said in text]


def test_a_forked_process_that_calls_mpi_ends_the_run_with_that_reason(run: Simulate) -> None:
    program = HEAD + "import os\nchild = rank or os.fork()\ncomm.Barrier()\n"
    with pytest.raises(
        NotSimulatedError, match=r"Barrier was called by a process that a rank has forked, at .*:8"
    ):
        run(program, 2)


def test_a_forked_process_that_calls_nothing_harms_nobody(run: Simulate) -> None:
    program = HEAD + (
        "import os\n"
        "if rank == 0:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os.execv('/bin/true', ['true'])\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "comm.Barrier()\n"
    )
    assert run(program, 2).exit_status == [0, 0]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("count == 2000", r"rank 0 was at .*program.py:\d, after 0 calls of MPI .*"),
        (
            "MPI.COMM_WORLD.Iprobe() or count == 2000",
            r"\d+ calls of MPI were made until then, .* the last 1000 all Iprobe at .*program.py:5",
        ),
    ],
)
def test_a_run_that_is_late_says_what_it_was_doing(tmp_path: Path, condition: str, said: str) -> None:
    """The program finds the alarm set and raises it itself, so that no clock decides what it was doing."""
    file = tmp_path / "program.py"
    file.write_text(
        "import signal\n"
        "from mpi4py import MPI\n"
        "assert 60 < signal.getitimer(signal.ITIMER_REAL)[0] <= 3600\n"
        "count = 0\n"
        f"while not ({condition}):\n"
        "    count += 1\n"
        "while True:\n"
        "    signal.raise_signal(signal.SIGALRM)\n"
    )
    text = (
        "import time\n"
        "from wiretwin.mpi import late, runtime\n"
        "late._LONG_S = 3600.0\n"
        f"runtime.simulate({str(file)!r}, [], 1, {model(1)!r}, ends_s=time.monotonic() + 3600)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (late.STATUS, ""), done.stderr
    assert re.fullmatch(said, done.stderr)


def test_a_run_that_computes_for_ever_says_so(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text("import signal\nsignal.raise_signal(signal.SIGALRM)\n")
    text = (
        "import time\n"
        "from wiretwin.mpi import late, runtime\n"
        "late._LONG_S = 1e-9\n"
        f"runtime.simulate({str(file)!r}, [], 1, {model(1)!r}, ends_s=time.monotonic() + 3600)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == late.STATUS, done.stderr
    assert re.fullmatch(r"rank 0 was at .*program.py:2, .*, and had computed for .* s", done.stderr)


def test_calls_from_another_thread_are_refused(run: Simulate) -> None:
    program = HEAD + (
        "import threading\n"
        "said = []\n"
        "def talk():\n"
        "    try:\n"
        "        comm.Barrier()\n"
        "    except RuntimeError as error:\n"
        "        said.append(str(error))\n"
        "if rank == 0:\n"
        "    thread = threading.Thread(target=talk)\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "    assert said\n"
    )
    with pytest.raises(NotSimulatedError, match=r"Barrier was called by another thread .*py:\d+: threads"):
        run(program)


def test_a_thread_gets_an_ordinary_error_when_the_run_is_being_ended(tmp_path: Path, run: Simulate) -> None:
    said = tmp_path / "said"
    program = HEAD + (
        "import pathlib, threading\n"
        "ended = threading.Event()\n"
        "def talk():\n"
        "    ended.wait()\n"
        "    try:\n"
        "        comm.Barrier()\n"
        "    except BaseException as error:\n"
        f"        pathlib.Path({str(said)!r}).write_text(type(error).__name__)\n"
        "if rank == 1:\n"
        "    raise ValueError\n"
        "thread = threading.Thread(target=talk)\n"
        "thread.start()\n"
        "try:\n"
        "    comm.recv()\n"
        "finally:\n"
        "    ended.set()\n"
        "    thread.join()\n"
    )
    with pytest.raises(ProgramFailedError):
        run(program, 2)
    assert said.read_text() == "RuntimeError"


def test_a_message_that_a_thread_may_not_send_is_no_deadlock(run: Simulate) -> None:
    program = HEAD + (
        "import threading\n"
        "go = threading.Event()\n"
        "def talk():\n"
        "    go.wait(5)\n"
        "    try:\n"
        "        comm.send(1, dest=1 - rank)\n"
        "    except RuntimeError:\n"
        "        pass\n"
        "thread = threading.Thread(target=talk)\n"
        "thread.start()\n"
        "go.set()\n"
        "comm.recv()\n"
        "thread.join()\n"
    )
    with pytest.raises(NotSimulatedError, match="send was called by another thread than the main one"):
        run(program)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("MPI.Win.Create(None)", "MPI.Win is not simulated; one-sided"),
        ("comm.Spawn('x')", "Intracomm.Spawn is not simulated"),
        ("comm.Alltoallw(None, None)", "Intracomm.Alltoallw is not simulated"),
        ("comm.Igatherv(None, None)", "Intracomm.Igatherv is not simulated"),
        ("MPI.File.Open(comm, 'x')", "MPI.File is not simulated"),
        ("MPI.DOUBLE.Create_darray(1, 0, [], [], [], [])", "Datatype.Create_darray is not simulated"),
        ("from mpi4py import futures", "mpi4py.futures is not simulated"),
        ("import mpi4py.util.pkl5", "mpi4py.util.* is not simulated"),
        ("import mpi4py; mpi4py.rc.recv_mprobe = False", "mpi4py.rc.recv_mprobe = False is not simulated"),
        (
            "comm.Set_errhandler(MPI.ERRORS_ARE_FATAL)",
            "Comm.Set_errhandler.ERRORS_ARE_FATAL. is not simulated",
        ),
    ],
)
def test_what_is_not_simulated_is_refused_by_name(run: Simulate, line: str, said: str) -> None:
    with pytest.raises(NotSimulatedError, match=rf"rank 0, .*program\.py:6: {said}"):
        run(HEAD + line + "\n", 1)


def test_what_mpi4py_does_not_have_either_is_an_ordinary_error(run: Simulate) -> None:
    done = run(
        HEAD + "print(hasattr(comm, 'nonsense'), hasattr(MPI, 'nonsense'), hasattr(MPI.DOUBLE, 'x'))\n", 1
    )
    assert done.stdout[0] == "False False False\n"


def test_bad_input_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.py: cannot be read"):
        simulate(tmp_path / "nowhere.py", [], 2, model(2))
    broken = tmp_path / "broken.py"
    broken.write_text("x = (\n")
    with pytest.raises(InputError, match=r"broken\.py: line 1: is not Python"):
        simulate(broken, [], 2, model(2))
    good = tmp_path / "good.py"
    good.write_text("")
    with pytest.raises(InputError, match=r"ranks: 0"):
        simulate(good, [], 0, model(1))
    with pytest.raises(InputError, match="model"):
        simulate(good, [], 2, "{}")
