"""An interrupt is never lost, wherever in the interpreter it falls."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_inside_a_destructor_comes_again(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(int(number))],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{int(number)}\n", "")
