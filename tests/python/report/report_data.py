"""Test data for the report: curves and programs made from formulas, in the shapes of the real formats.

Nothing here was measured. Names say so where they are shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

LAYERS: dict[str, tuple[float, float, float, int]] = {
    # half a round trip: base us, ns per byte, extra us from the step on, step in bytes
    "shm": (0.21, 0.085, 0.4, 1 << 18),
    "socket/unix": (5.6, 0.31, 9.0, 1 << 16),
    "socket/tcp": (8.3, 0.36, 14.0, 1 << 16),
    "socket/tcp+spin": (5.1, 0.36, 14.0, 1 << 16),
    "mpi4py/mpich": (0.95, 0.17, 3.5, 1 << 16),
}
SIZES = [4, 8, 16, 32, 61, 64, 67, 128, 256, 512, 1024, 2048, 4096, 8192] + [1 << k for k in range(14, 23)]


@dataclass
class FakeResult:
    """A result in memory: a manifest and samples."""

    manifest: dict[str, Any]
    frame: pl.DataFrame
    path: Path = Path("results/synthetic")
    damaged: list[str] = field(default_factory=list)

    def samples(self) -> pl.DataFrame:
        return self.frame


def half_round_trip_us(layer: str, size: float) -> float:
    base, slope, extra, step = LAYERS[layer]
    return base + slope * size / 1000 + (extra if size >= step else 0.0)


def samples(launches: int = 7, iterations: int = 30, layers: tuple[str, ...] = tuple(LAYERS)) -> pl.DataFrame:
    random = np.random.default_rng(5)
    rows = []
    number = 0
    for _round in range(launches):
        for layer in layers:
            number += 1
            placed = math.exp(random.normal(0, 0.02))
            for size in SIZES:
                batch = 50 if size < 4096 else 1
                mean = 2000 * half_round_trip_us(layer, size) * placed * batch
                values = mean * np.exp(random.normal(0, 0.03, iterations) ** 2 * 3)
                values[0] *= 6
                rows.append(
                    pl.DataFrame(
                        {
                            "launch": np.full(iterations, number, np.uint32),
                            "layer": [layer] * iterations,
                            "loop": ["echo"] * iterations,
                            "bytes": np.full(iterations, size, np.uint64),
                            "messages": np.ones(iterations, np.uint32),
                            "delay_ns": np.zeros(iterations, np.uint64),
                            "batch": np.full(iterations, batch, np.uint32),
                            "index": np.arange(iterations, dtype=np.uint32),
                            "value_ns": values.astype(np.uint64),
                        }
                    )
                )
    return pl.concat(rows)


def manifest(frame: pl.DataFrame) -> dict[str, Any]:
    launches = []
    for order, (number, name) in enumerate(
        frame.select("launch", "layer").unique(maintain_order=True).iter_rows()
    ):
        launches.append(
            {
                "launch": number,
                "name": name,
                "order": order,
                "started_utc": "2031-05-04T10:00:00Z",
                "seconds": 1.4,
                "status": "ok",
                "error": None,
            }
        )
    launches.append(
        {
            "launch": len(launches) + 1,
            "name": "socket/udp",
            "order": len(launches),
            "started_utc": "2031-05-04T10:01:00Z",
            "seconds": 20.0,
            "status": "failed",
            "error": "rank 1: no reply within 20 s (recvfrom)",
        }
    )
    names = list(dict.fromkeys(str(name) for name in frame["layer"]))
    return {
        "format": "wiretwin-result",
        "version": 1,
        "wiretwin": "0.0.0 (synthetic)",
        "created_utc": "2031-05-04T10:00:00Z",
        "seed": 1,
        "host": {
            "name": "synthetic-host",
            "cpu_model": "Formula Core 9000 at 3.0 GHz",
            "cores": 2,
            "kernel": "Linux 6.12.0",
            "governor": "performance",
            "memory_GiB": 16,
        },
        "options": {"schedule": "netpipe", "budget_s": 40, "launches_min": 5, "pin": True},
        "layers": [
            {
                "layer": name.split("+")[0],
                "name": name,
                "options": {"nodelay": True} if "tcp" in name else {},
                "effective": {"sndbuf_bytes": 2626560, "rcvbuf_bytes": 131072} if "socket" in name else {},
                "clock": {"name": "CLOCK_MONOTONIC_RAW", "cost_ns": 21.0, "resolution_ns": 1.0},
            }
            for name in names
        ],
        "launches": launches,
        "stopped": dict.fromkeys(names, "narrow") | {"socket/udp": "failed"},
    }


def result(**options: Any) -> FakeResult:
    frame = samples(**options)
    return FakeResult(manifest(frame), frame)


def estimate(value: float, spread: float = 0.03) -> dict[str, float]:
    return {"value": value, "low": value * (1 - spread), "high": value * (1 + spread)}


def figure(value: float) -> dict[str, float]:
    return estimate(value) | {"launches": 7, "samples": 4321}


def line(base_ns: float, slope_ns: float, start: int, end: int | None, p: float) -> dict[str, Any]:
    segment: dict[str, Any] = {
        "from_bytes": start,
        "base_ns": estimate(base_ns),
        "per_byte_ns": estimate(slope_ns),
        "samples": 900,
        "lack_of_fit_p": p,
    }
    return segment if end is None else segment | {"to_bytes": end}


def twin() -> dict[str, Any]:
    layers: dict[str, Any] = {}
    for name, (base, slope, extra, step) in LAYERS.items():
        peak = max(size / half_round_trip_us(name, size) for size in SIZES)

        def both(share: float, at: tuple[float, float, float, int] = (base, slope, extra, step)) -> list[Any]:
            return [
                line(1000 * at[0] * share, at[1] * share, 0, at[3], 0.41),
                line(
                    1000 * (at[0] + at[2]) * share, at[1] * share, at[3], None, 0.004 if at[0] == 8.3 else 0.2
                ),
            ]

        layers[name] = {
            "t_0_us": figure(half_round_trip_us(name, 4)),
            "r_max_MB_s": figure(peak),
            "n_half_bytes": figure(base * 1000 / slope),
            "call_ns": figure(38.0),
            "half_round_trip": both(1.0),
            "overhead_send": both(0.3),
            "overhead_recv": both(0.25),
            "latency": both(0.45),
        }
    layers["mpi4py/mpich"]["rendezvous_from_bytes"] = 1 << 16
    return {
        "format": "wiretwin-twin",
        "version": 1,
        "created_utc": "2031-05-04T10:02:00Z",
        "source": {"digest": "5f" * 32, "samples": 30000, "launches": 35},
        "host": {"name": "synthetic-host", "cpu_model": "Formula Core 9000 at 3.0 GHz", "cores": 2},
        "layers": layers,
    }


def timeline(ranks: int = 2, iterations: int = 600) -> pl.DataFrame:
    """Ranks that compute, exchange a halo with a neighbour, and wait for the slower one."""
    random = np.random.default_rng(11)
    clocks = np.zeros(ranks, np.int64)
    rows: list[tuple[int, int, int, str, str, str, int, int]] = []

    def add(rank: int, length: float, kind: str, name: str = "", site: str = "", size: int = 0) -> None:
        start = int(clocks[rank])
        clocks[rank] = start + int(length)
        rows.append((rank, start, int(clocks[rank]), kind, name, site, (rank + 1) % ranks, size))

    for _step in range(iterations):
        for rank in range(ranks):
            add(rank, 4.0e8 * (1 + 0.15 * rank) * math.exp(random.normal(0, 0.05)), "compute")
        late = int(clocks.max())
        for rank in range(ranks):
            add(rank, 0.9e6, "endpoint", "Sendrecv", "heat2d.py:41", 4096)
            if clocks[rank] < late:
                add(rank, late - int(clocks[rank]), "waiting", "Sendrecv", "heat2d.py:41")
            add(rank, 2.3e6, "wire", "Sendrecv", "heat2d.py:41", 4096)
            add(rank, 0.8e6, "endpoint", "Sendrecv", "heat2d.py:41", 4096)
    names = ["rank", "start_ps", "end_ps", "kind", "name", "site", "peer", "bytes"]
    return pl.DataFrame(rows, schema=names, orient="row")


PROGRAMS: tuple[tuple[str, list[str], float, float], ...] = (
    ("heat2d.py", ["512", "600"], 0.297, 0.031),
    ("matmul.py", ["384"], 0.0821, -0.044),
    ("ring_allreduce.py", ["65536"], 0.0114, 0.112),
    ("master_worker.py", ["64"], 0.640, -0.012),
    ("psort.py", ["200000"], 0.118, 0.071),
)


def comparison(program: str, args: list[str], actual: float, error: float, ranks: int = 2) -> dict[str, Any]:
    predicted = actual * (1 + error)
    launches = [
        {"seconds": actual * (1 + 0.01 * (k - 3)), "per_rank_s": [actual, actual * 0.98]} for k in range(7)
    ]
    return {
        "prediction": {
            "format": "wiretwin-prediction",
            "version": 1,
            "program": f"examples/{program}",
            "args": args,
            "ranks": ranks,
            "layer": "mpi4py/mpich",
            "seconds": estimate(predicted, 0.04),
            "per_rank": [
                {
                    "rank": rank,
                    "compute_s": predicted * (0.8 - 0.1 * rank),
                    "endpoint_s": predicted * 0.05,
                    "wire_s": predicted * 0.04,
                    "waiting_s": predicted * (0.11 + 0.1 * rank),
                    "total_s": predicted,
                }
                for rank in range(ranks)
            ],
            "messages": 1200,
            "compute": {"source": "measured", "statistic": "median", "passes": 3, "concurrent": 2},
            "digest": program.encode().hex(),
            "frozen_utc": "2031-05-04T10:03:00.000+00:00",
        },
        "run": {
            "format": "wiretwin-run",
            "version": 1,
            "program": f"examples/{program}",
            "args": args,
            "ranks": ranks,
            "launches": launches,
            "seconds": estimate(actual, 0.02),
            "split": [
                {
                    "rank": rank,
                    "compute_s": actual * (0.79 - 0.1 * rank),
                    "mpi_s": actual * (0.21 + 0.1 * rank),
                }
                for rank in range(ranks)
            ],
            "started_utc": "2031-05-04T10:03:05.000+00:00",
        },
        "error": error,
        "notes": [],
    }


def comparisons() -> list[dict[str, Any]]:
    return [comparison(*program) for program in PROGRAMS]


def everything() -> dict[str, Any]:
    """Arguments for `render` with nothing missing."""
    compared = comparisons()
    predictions = [dict(item["prediction"]) for item in compared]
    predictions[0]["timeline"] = timeline()
    predictions[1]["timeline"] = timeline(iterations=8)
    return {"result": result(), "twin": twin(), "predictions": predictions, "comparisons": compared}
