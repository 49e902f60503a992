"""What the tests of stacks share: skipping by name what is not installed, and the folders at work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wiretwin.stacks.layers import Configuration, parse_layers, refusal

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


def folders() -> set[Path]:
    """Directories that launches, sessions and libraries make."""
    patterns = (("/dev/shm", "wiretwin-*"), ("/tmp", "lam-*"), ("/tmp", "ompi.*"), ("/tmp", "prte.*"))
    return {path for folder, pattern in patterns for path in Path(folder).glob(pattern)}
