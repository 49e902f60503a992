import signal
import subprocess
import sys

import psutil
import pytest
from watching import becomes

from wiretwin import process
from wiretwin.marks import end_all

LIMIT_S = 60.0


def ended(pid: int) -> bool:
    """Whether a process is no more, or is one that nobody has asked for its end yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_output_and_status_come_back():
    done = process.run([sys.executable, "-c", "import sys; print('out'); sys.exit('why')"], limit_s=20)
    assert (done.returncode, done.stdout, done.last_words()) == (1, "out\n", "why")


def test_a_stack_trace_does_not_hide_what_failed():
    frames = [
        "/usr/lib/libmpi.so.12(PMPI_Win_complete+0x9a) [0x7f6b951b78ba]",
        "./program(+0x1583) [0x55a99fbe8583]",
        "[host:12] [ 3] /lib/x86_64-linux-gnu/libc.so.6(__libc_start_main+0x85)[0x7f6b93e45305]",
    ] * 3
    assert process.closing(["Assertion failed", *frames, "Abort(1)"], 6) == ["Assertion failed", "Abort(1)"]
    assert process.closing(frames, 2) == frames[-2:]


def test_what_a_launcher_says_of_a_rank_that_failed_does_not_hide_what_the_rank_said():
    rule = "-" * 74
    returned = [rule, "Primary job  terminated normally, but 1 process returned", "a code.", rule]
    detected = [rule, "mpirun detected that one or more processes exited with non-zero status", "1", rule]
    said = ["ValueError: mismatch", *returned, *detected]
    assert process.closing(said, 4) == ["ValueError: mismatch"]
    assert process.closing(detected, 4) == detected


def test_a_child_is_ended_with_all_its_descendants():
    grandchild = (
        "import subprocess as s, sys; p = s.Popen([sys.executable, '-c', 'input()'], stdin=s.PIPE);"
        "print(p.pid, flush=True); p.wait()"
    )
    with process.child([sys.executable, "-c", grandchild]) as (child, out, _):
        becomes(True, lambda: out.read_text().endswith("\n"), LIMIT_S)
        process.end_tree(child)
        assert ended(int(out.read_text()))
        assert child.returncode is not None


def test_a_child_that_ignores_sigterm_is_killed_at_its_limit():
    # What is ignored is inherited: there is no moment in which the child does not.
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with pytest.raises(process.TimeLimit, match=r"within 0\.5 s") as caught:
            process.run([sys.executable, "-c", "import signal\nwhile True: signal.pause()"], limit_s=0.5)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught.value.finished.returncode == -signal.SIGKILL


def test_what_has_ignored_sigterm_is_gone_too_when_the_tree_has_ended():
    """Also where it takes longer than the grace to be gone, as on a busy host: the one below is large."""
    large = "import signal; memory = b'x' * (256 << 20); print('on', flush=True)\nwhile True: signal.pause()"
    parent = (
        "import signal, subprocess as s, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f"p = s.Popen([sys.executable, '-c', {large!r}], stdout=s.PIPE);"
        "p.stdout.readline(); print(p.pid, flush=True); p.wait()"
    )
    with process.child([sys.executable, "-c", parent]) as (child, out, _):
        becomes(True, lambda: out.read_text().endswith("\n"), LIMIT_S)
        process.end_tree(child, grace_s=0.01)
        assert ended(int(out.read_text()))


def test_an_exception_inside_the_block_leaves_no_child():
    with pytest.raises(KeyboardInterrupt), process.child([sys.executable, "-c", "input()"]) as (p, _, _):
        raise KeyboardInterrupt
    assert p.poll() is not None


def test_what_a_child_leaves_behind_is_gone_when_the_block_ends():
    # The memory of the one that is left takes a while to be given back.
    left = "import signal; memory = b'x' * (256 << 20); print('on', flush=True); signal.pause()"
    leaves = (
        f"import subprocess as s, sys; p = s.Popen([sys.executable, '-c', {left!r}], stdout=s.PIPE);"
        "p.stdout.readline(); print(p.pid)"
    )
    done = process.run([sys.executable, "-c", leaves], limit_s=60)
    assert ended(int(done.stdout))


def test_what_is_found_only_after_others_have_gone_is_ended_too():
    asleep = [subprocess.Popen(["sleep", "600"]) for _ in range(4)]
    end_all(lambda: {one.pid for one in [one for one in asleep if one.poll() is None][:1]})
    assert [one.wait(0) for one in asleep] == [-15, -9, -9, -9]


def test_the_environment_holds_numerical_libraries_to_one_thread():
    assert process.single_threaded({})["OMP_NUM_THREADS"] == "1"
