"""What the tests of testbeds share."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest

from wiretwin.errors import MeasureError
from wiretwin.testbed import Testbed

LIMIT_S = 60
WITHOUT_INTERFACE = (
    "from pyroute2 import IPRoute\nwith IPRoute() as route:\n"
    "    route.link('del', index=route.link_lookup(ifname='eth0')[0])\n"
)
"""Takes a host off its network."""


@functools.cache
def reason_none() -> str | None:
    """Why this machine cannot have a testbed; nothing if it can."""
    try:
        with Testbed.up(1):
            return None
    except MeasureError as error:
        return str(error)


def need_testbed() -> None:
    """Skip the test by name where no testbed can be made; CI must be able to."""
    reason = reason_none()
    if reason is not None:
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)


def on(bed: Testbed, host: str, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a host and wait for its end."""
    command = bed.host(host).command(argv)
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def wiretwin(*argv: str, **keywords: object) -> subprocess.CompletedProcess[str]:
    """Run the command line and wait for its end."""
    return subprocess.run(
        program(*argv), capture_output=True, text=True, timeout=LIMIT_S, check=False, **keywords
    )  # type: ignore[call-overload, no-any-return]


def program(*argv: str) -> Sequence[str]:
    """The command line as a command."""
    return [sys.executable, "-c", "from wiretwin.cli import main; main()", *argv]


def until(running: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    """Wait for something that a process does; fail if it ends before, or does not do it in time."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        # Asks now and then, for what is waited for needs the cores.
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(0.005)
            pytest.fail(f"ended before: {running.communicate()}")
