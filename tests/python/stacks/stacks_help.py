"""What the tests of stacks share: skipping by name what is not installed, and seeing what is at work."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from wiretwin.measure.layers import Configuration, parse_layers, refusal
from wiretwin.process import MARK

LIBRARIES = ("mpi/mpich", "mpi/openmpi", "mpi/intel", "mpi/lam", "mpi/lam+lamd", "mpi/lam+usysv")
"""Configurations that Debian's packages bring, and one that its user has to ask for."""


def installed(name: str) -> Configuration:
    """Return a configuration; skip the test if it is not installed, which in CI it must be."""
    (configuration,) = parse_layers(name)
    refused = refusal(configuration)
    if refused is not None:
        if os.environ.get("CI") and "+wheel" not in name and not configuration.kind.opt_in:
            pytest.fail(f"{name}: {refused}")
        pytest.skip(f"{name}: {refused}")
    return configuration


def marked_processes() -> dict[int, str]:
    """Every process on this host that carries the mark of a launch or of a session of this test run."""
    found = {}
    for process in psutil.process_iter(["environ", "cmdline"]):
        environment = process.info["environ"] or {}
        if MARK in environment and environment.get("PYTEST_OF") == str(os.getpid()):
            found[process.pid] = " ".join(process.info["cmdline"] or [])
    return found


def folders() -> set[Path]:
    """Directories that launches, sessions and libraries make."""
    patterns = (("/dev/shm", "wiretwin-*"), ("/tmp", "lam-*"), ("/tmp", "ompi.*"), ("/tmp", "prte.*"))
    return {path for folder, pattern in patterns for path in Path(folder).glob(pattern)}
