"""What a session's daemons are ended by when we cannot do it ourselves any more.

``python -I -S keeper.py MARK DIRECTORY`` waits for the end of its standard input. If a line came before it,
all is in order and it ends. If not, whoever started it is gone: every process that carries the mark is
ended, and the directory is removed. It imports nothing of ours, is in a session of its own, and holds
nobody's pipes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time

GRACE_S = 2.0
KILLED_S = 10.0
STEP_S = 0.02


def carriers(mark: str) -> list[int]:
    """Return the processes that carry the mark in their environment, except this one."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    found.append(int(entry))
    return found


def main(mark: str, directory: str) -> int:
    """Wait, and clean up if need be."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read():
        return 0
    for number, limit_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, KILLED_S)):
        told: set[int] = set()
        deadline = time.monotonic() + limit_s
        # What was being started at a look is found by a later one.
        while (left := set(carriers(mark))) and time.monotonic() < deadline:
            for pid in left - told:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            told |= left
            time.sleep(STEP_S)
    shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
