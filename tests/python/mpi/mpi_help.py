"""Set-up shared by the tests of simulated programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from wiretwin.mpi import SimulatedRun

#: Simulates a program given as text (or a path) and returns the run: the fixture `run`.
Simulate = Callable[..., SimulatedRun]

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PROGRAMS = ROOT / "examples" / "programs"


def model(ranks: int, cores: int = 64, call_ps: int = 200_000) -> str:
    """A made-up network: 0.5 us, 10 GB/s, rendezvous from 64 KiB, a core for every rank."""
    layer = {
        "call_ps": call_ps,
        "overhead_send": [{"from_bytes": 0, "base_ps": 400_000, "per_byte_fs": 50_000}],
        "overhead_recv": [{"from_bytes": 0, "base_ps": 400_000, "per_byte_fs": 50_000}],
        "latency": [{"from_bytes": 0, "base_ps": 500_000, "per_byte_fs": 100_000}],
        "gap": [{"from_bytes": 0, "base_ps": 100_000, "per_byte_fs": 0}],
        "rendezvous_from_bytes": 65_536,
        "unexpected_copy": None,
    }
    node = {"cores": cores, "idle": "spin", "quantum_ps": 4_000_000_000}
    return json.dumps(
        {"nodes": [node], "placement": [0] * ranks, "intra": layer, "inter": None, "link": None}
    )


def launcher(ranks: int) -> list[str]:
    """The start of a real MPI command."""
    return [str(Path(sys.executable).with_name("mpiexec")), "-n", str(ranks)]
