"""A daemon in the foreground on a host of a place: started with no pipe of ours, ended on the way out.

It belongs to a `wiretwin.stacks.daemons.Household`, whose mark it carries. On this machine the household
ends whatever carries the mark; on machines reached over ssh `end_elsewhere` does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from wiretwin import process
from wiretwin.marks import LAUNCH
from wiretwin.place import HostPlace, Place

__all__ = ["await_condition", "daemon", "end_elsewhere"]

STEP_S = 0.01
"""Between two looks at a condition."""
LIMIT_S = 10.0
"""The longest a look at a host's processes may take, seconds."""
_ON_THIS_MACHINE = ("here", "testbed")

_FIND = """
for d in /proc/[0-9]*; do
  if tr '\\0' '\\n' <"$d/environ" 2>/dev/null | grep -qxF "$1"; then echo "${d#/proc/}"; fi
done
"""


@contextlib.contextmanager
def daemon(
    host: HostPlace, argv: Sequence[str], *, env: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a daemon that stays in the foreground; end it on the way out.

    Parameters
    ----------
    env
        Variables for it, the household's mark among them.
    log
        Where all it prints goes.

    Raises
    ------
    OSError
        It is not there.
    """
    with log.open("ab") as out:
        started = process.start(
            host.command(argv, env=env),
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(os.environ) | dict(env),
        )
    try:
        yield started
    finally:
        if started.poll() is None:
            process.end_tree(started)


def await_condition(condition: Callable[[], bool], limit_s: float) -> bool:
    """Look at a condition until it holds, at most `limit_s` seconds; returns whether it holds."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(STEP_S)
    return True


def end_elsewhere(place: Place, token: str) -> None:
    """End every process that carries a mark on hosts that are other machines: TERM, then KILL."""
    if place.describe().get("kind") in _ON_THIS_MACHINE:
        return
    for host in place.hosts:
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = _marked_on(host, token)
            if not left:
                break
            with contextlib.suppress(OSError, process.TimeLimit):
                words = ["kill", f"-{int(number)}", *(str(pid) for pid in sorted(left))]
                process.run(host.command(words), limit_s=LIMIT_S)


def _marked_on(host: HostPlace, token: str) -> set[int]:
    """Find the processes of a host that carry a mark; an unreachable host has none that we could end."""
    argv = host.command(["sh", "-c", _FIND, "sh", f"{LAUNCH}={token}"])
    try:
        found = process.run(argv, limit_s=LIMIT_S).stdout
    except (OSError, process.TimeLimit):
        return set()
    return {int(word) for word in found.split() if word.isdigit()}
