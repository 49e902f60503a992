"""Unmodified mpi4py programs in the simulated world, and the same programs for real, timed alike.

`simulate` runs every rank of a script in this process, with the world of the core as its network;
`python -m wiretwin.mpi.live` runs it as one process of a real MPI job.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compute import Aggregated, ComputeSource, Given, Measured, Pass, Replay
    from .runtime import (
        DeadlockError,
        NotSimulatedError,
        ProgramFailedError,
        SimulatedRun,
        simulate,
    )

__all__ = [
    "Aggregated",
    "ComputeSource",
    "DeadlockError",
    "Given",
    "Measured",
    "NotSimulatedError",
    "Pass",
    "ProgramFailedError",
    "Replay",
    "SimulatedRun",
    "simulate",
]

_COMPUTE = {"Aggregated", "ComputeSource", "Given", "Measured", "Pass", "Replay"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'wiretwin.mpi' has no attribute {name!r}")
    home = "compute" if name in _COMPUTE else "runtime"
    return getattr(importlib.import_module(f"wiretwin.mpi.{home}"), name)
