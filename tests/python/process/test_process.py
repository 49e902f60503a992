import contextlib
import sys

import psutil
import pytest

from wiretwin import process


def test_output_and_status_come_back():
    done = process.run([sys.executable, "-c", "import sys; print('out'); sys.exit('why')"], limit_s=20)
    assert (done.returncode, done.stdout, done.last_words()) == (1, "out\n", "why")


def test_a_child_over_its_limit_is_ended_with_all_its_descendants():
    grandchild = (
        "import subprocess as s, sys; p = s.Popen([sys.executable, '-c', 'input()'], stdin=s.PIPE);"
        "print(p.pid, flush=True); p.wait()"
    )
    with pytest.raises(process.TimeLimit, match="within 1 s") as caught:
        process.run([sys.executable, "-c", grandchild], limit_s=1)
    assert not psutil.pid_exists(int(caught.value.finished.stdout))


def test_a_child_that_ignores_sigterm_is_killed():
    stubborn = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);print('on', flush=True); signal.pause()"
    )
    with pytest.raises(process.TimeLimit) as caught:
        process.run([sys.executable, "-c", stubborn], limit_s=1)
    assert caught.value.finished.returncode == -9


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
    with contextlib.suppress(psutil.NoSuchProcess):
        assert psutil.Process(int(done.stdout)).status() == psutil.STATUS_ZOMBIE


def test_the_environment_holds_numerical_libraries_to_one_thread():
    assert process.single_threaded({})["OMP_NUM_THREADS"] == "1"
