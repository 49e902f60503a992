"""An interrupt is never lost, wherever in the interpreter it falls."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from wiretwin.interruption import Interruption, came

SCRIPT = """
import os, sys, threading
from wiretwin.interruption import came, hear

hear(lambda _: 9)

class Dropped:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        for _ in range(1000):  # the handler runs in here
            pass

try:
    Dropped()
    threading.Event().wait()
except KeyboardInterrupt:
    print(int(came()))
"""


ENDING = """
import atexit, sys
from wiretwin.cli import main

atexit.register(lambda: (print("ending", flush=True), sys.stdin.read()))
main(["--version"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_has_done_its_work_ends_at_once(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline().split()[0], process.stdout.readline()] == ["wiretwin", "ending\n"]
        process.send_signal(number)
        assert process.wait(60) == -number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_inside_a_destructor_comes_again(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(int(number))],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{int(number)}\n", "")


def test_what_ended_an_earlier_run_is_not_said_of_the_next() -> None:
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGHUP)
    assert interruption.requested
    assert came() is signal.SIGHUP
    with Interruption():
        assert came() is signal.SIGINT
