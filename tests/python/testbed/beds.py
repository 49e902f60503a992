"""What the tests of testbeds share."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from wiretwin.errors import MeasureError
from wiretwin.testbed import Testbed

LIMIT_S = 60


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
