"""Set-up shared by the tests of predictions: a made-up twin, programs, and the processes left behind."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from wiretwin import keeper
from wiretwin.cli.app import main
from wiretwin.predict.records import (
    ComputeNote,
    Launch,
    ModelledRank,
    Prediction,
    RealRank,
    Run,
    Spread,
    median_spread,
)

#: A host of two cores whose messages take 0.5 + 0.7 + 0.6 us and 0.3 ns a byte; spans in proportion.
TWIN = """
format = "wiretwin-twin"
version = 1
created_utc = "2026-01-01T00:00:00Z"
[source]
digest = "abc"
samples = 1000
launches = 7
[host]
name = "box"
cores = 2
idle = "yield"
quantum_ms = 4.0
[layers."mpi4py/mpich"]
t_0_us = { value = 2.0, low = 1.8, high = 2.5, launches = 7, samples = 1234 }
r_max_MB_s = { value = 9000, low = 8000, high = 9500.5, launches = 7, samples = 1234 }
n_half_bytes = { value = 20000, low = 15000, high = 25000, launches = 7, samples = 1234 }
call_ns = { value = 90, low = 80, high = 100, launches = 7, samples = 1234 }
rendezvous_from_bytes = 65537
[[layers."mpi4py/mpich".overhead_send]]
from_bytes = 0
to_bytes = 8192
base_ns = { value = 500, low = 400, high = 600 }
per_byte_ns = { value = 0.05, low = 0.04, high = 0.06 }
samples = 400
[[layers."mpi4py/mpich".overhead_send]]
from_bytes = 8192
base_ns = { value = 700.1234, low = 600, high = 800 }
per_byte_ns = { value = 0.025, low = 0.02, high = 0.03 }
samples = 400
[[layers."mpi4py/mpich".latency]]
from_bytes = 0
base_ns = { value = 700, low = 600, high = 800 }
per_byte_ns = { value = 0.2, low = 0.19, high = 0.21 }
samples = 400
[[layers."mpi4py/mpich".overhead_recv]]
from_bytes = 0
base_ns = { value = 600, low = 500, high = 700 }
per_byte_ns = { value = 0.05, low = 0.04, high = 0.06 }
samples = 400
[[layers."mpi4py/mpich".gap]]
from_bytes = 0
base_ns = { value = 800, low = 700, high = 900 }
per_byte_ns = { value = 0.1, low = 0.09, high = 0.11 }
samples = 400
[[layers."mpi4py/mpich".half_round_trip]]
from_bytes = 0
base_ns = { value = 1800, low = 1500, high = 2100 }
per_byte_ns = { value = 0.3, low = 0.29, high = 0.31 }
samples = 400
[layers.shm]
t_0_us = { value = 0.2, low = 0.1, high = 0.3, launches = 7, samples = 1234 }
r_max_MB_s = { value = 9000, low = 8000, high = 9500.5, launches = 7, samples = 1234 }
n_half_bytes = { value = 20000, low = 15000, high = 25000, launches = 7, samples = 1234 }
[[layers.shm.half_round_trip]]
from_bytes = 0
base_ns = { value = 200, low = 100, high = 300 }
per_byte_ns = { value = 0.3, low = 0.29, high = 0.31 }
samples = 400
"""

HEAD = """import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
"""

#: A round of messages and a collective call on any number of ranks.
RING = (
    HEAD
    + """
out, got = np.full(100, float(rank)), np.empty(100)
for _ in range(3):
    out *= 1.5
    comm.Sendrecv(out, (rank + 1) % size, 7, got, (rank - 1) % size, 7)
assert comm.allreduce(rank) == size * (size - 1) // 2
"""
)


@dataclass(frozen=True)
class Ended:
    """How a command of wiretwin ended, run in this process."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        """Standard output as text."""
        return self.raw.decode()


def wiretwin(*words: str | Path) -> Ended:
    """Run a command of wiretwin in this process."""
    raw, err = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(word) for word in words])
        except SystemExit as request:
            code = int(request.code or 0)
    return Ended(code, raw.getvalue(), err.getvalue())


def family(pid: int | None = None) -> list[psutil.Process]:
    """Return the processes that descend from `pid` (from this process)."""
    return psutil.Process(pid).children(recursive=True)


def mentioning(path: Path) -> list[int]:
    """Return the processes of this test, whoever their parent is, whose command names `path`.

    A process is of this test if it has its TMPDIR: other runs on the machine are not its business.
    """
    found = []
    for one in psutil.process_iter(["cmdline", "environ"]):
        ours = (one.info["environ"] or {}).get("TMPDIR") == os.environ.get("TMPDIR")
        if ours and one.pid != os.getpid() and any(str(path) in word for word in one.info["cmdline"] or []):
            found.append(one.pid)
    return found


@contextlib.contextmanager
def nothing_left(program: Path) -> Iterator[None]:
    """Check that no process and no temporary folder is left that was not there before."""
    keeper.name()  # this process's own, which stays
    before = {one.pid for one in family()}
    folders = scratch()
    yield
    assert {one.pid for one in family()} <= before
    assert mentioning(program) == []
    assert scratch() <= folders


def scratch() -> set[Path]:
    """Return the temporary folders of wiretwin that are there now (the tests have a TMPDIR of their own)."""
    return set(Path(tempfile.gettempdir()).glob("wiretwin-*"))


def until(condition: Any, limit_s: float = 30.0) -> None:
    """Wait for a condition, not longer than the limit."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit_s} s"
        time.sleep(0.01)


def prediction(**changes: Any) -> Prediction:
    """A sealed prediction, with changes."""
    parts = [
        ModelledRank(rank=rank, compute_s=0.5, endpoint_s=0.25, wire_s=0.125, waiting_s=0.125, total_s=1.0)
        for rank in range(2)
    ]
    values: dict[str, Any] = {
        "program": "ring.py",
        "program_sha256": "ab",
        "args": ["--points", "8"],
        "ranks": 2,
        "layer": "mpi4py/mpich",
        "twin_sha256": "cd",
        "network": {"nodes": []},
        "seed": 1,
        "compute": ComputeNote(source="measured", passes=3),
        "seconds": Spread(value=1.0, low=0.9, high=1.25, meaning="range"),
        "per_rank": parts,
        "messages": 6,
        "trace_digest": "ef",
        "wiretwin": "0",
        "frozen_utc": "2026-01-01T00:00:00.000+00:00",
    }
    return Prediction.model_validate(values | changes).sealed()


def run_record(**changes: Any) -> Run:
    """A sealed run, with changes."""
    split = [RealRank(rank=rank, compute_s=0.5, mpi_s=0.25, total_s=0.75) for rank in range(2)]
    values: dict[str, Any] = {
        "program": "ring.py",
        "program_sha256": "ab",
        "args": ["--points", "8"],
        "ranks": 2,
        "layer": "mpi4py/mpich",
        "launcher": ["mpiexec", "-n", "2"],
        "library": "mpich",
        "launches": [Launch(seconds=0.8, per_rank_s=[0.8, 0.7])],
        "seconds": median_spread([0.8]),
        "split": split,
        "wiretwin": "0",
        "started_utc": "2026-01-01T00:01:00.000+00:00",
    }
    return Run.model_validate(values | changes).sealed()


def rewrite(path: Path, **changes: Any) -> None:
    """Change keys of a JSON file without a new digest."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
