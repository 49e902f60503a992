"""Does the harness distort? The probe's echo against a bare C ping-pong, interleaved.

Prints one JSON line for each comparison::

    {"bench": "harness/tcp-spin-4B", "ratio": ..., "low": ..., "high": ..., "target_ratio": 1.05, ...}

``ratio`` is the median over pairs of (probe / C), each the median of its samples; ``low`` and
``high`` bound it by a 95 % bootstrap over pairs. Within a pair the two run one right after the
other, in an order that alternates, pinned to the same two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TARGET_RATIO = 1.05
LIMIT_S = 60.0
SAMPLES = 4000
WARMUP = 1000
COMPARISONS = {
    "tcp-spin-4B": ("socket/tcp", {"wait": "spin"}, "tcp_pingpong", 1),
    "shm-4B": ("shm", {"wait": "spin"}, "shm_pingpong", 20),
}


def compile_reference(name: str, folder: Path) -> Path:
    """Compile one of the references beside this file."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        sys.exit(f"harness: no C compiler {compiler!r} to build {name}.c with")
    binary = folder / name
    subprocess.run(
        [compiler, "-O2", "-o", str(binary), str(HERE / "c" / f"{name}.c")], check=True, timeout=LIMIT_S
    )
    return binary


def time_reference(binary: Path, batch: int, cores: tuple[int, int]) -> float:
    """The median round trip of the C ping-pong, in nanoseconds."""
    counts = [SAMPLES, WARMUP] if binary.name == "tcp_pingpong" else [SAMPLES, batch, WARMUP]
    command = [str(binary), "4", *map(str, counts), *map(str, cores)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
    return statistics.median(map(float, out.split())) / batch


def time_probe(layer: str, options: dict[str, Any], batch: int, cores: tuple[int, int]) -> float:
    """The median round trip of the probe's echo, in nanoseconds."""
    step = {
        "loop": "echo",
        "bytes": 4,
        "warmup": WARMUP,
        "min_samples": SAMPLES,
        "max_samples": SAMPLES,
        "budget_ms": 1000.0,
        "batch": batch,
    }
    with tempfile.TemporaryDirectory() as directory:
        processes = []
        for rank in (0, 1):
            spec = {
                "protocol": 1,
                "layer": layer,
                "rank": rank,
                "size": 2,
                "options": options,
                "directory": directory,
                "pin_cpu": cores[rank],
                "limit_s": LIMIT_S,
                "schedule": [step],
            }
            path = Path(directory) / f"spec-{rank}.json"
            path.write_text(json.dumps(spec))
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "wiretwin.probe", str(path)], stdout=subprocess.PIPE, text=True
                )
            )
        outputs = [process.communicate(timeout=2 * LIMIT_S)[0] for process in processes]
    for output in outputs:
        for line in map(json.loads, output.splitlines()):
            if line["event"] == "error":
                sys.exit(f"harness: the probe ended early: {line['place']}: {line['reason']}")
            if line["event"] == "samples":
                return statistics.median(line["values_ns"]) / batch
    sys.exit("harness: the probe gave no samples")


def interval(ratios: list[float], seed: int = 1) -> tuple[float, float]:
    """A 95 % bootstrap interval of the median."""
    stream = random.Random(seed)
    medians = sorted(statistics.median(stream.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[49], medians[1949]


def compare(name: str, pairs: int, cores: tuple[int, int], folder: Path) -> dict[str, Any]:
    """Run one comparison."""
    layer, options, reference, batch = COMPARISONS[name]
    binary = compile_reference(reference, folder)
    ratios, ours, theirs = [], [], []
    for pair in range(pairs):
        if pair % 2 == 0:
            probe = time_probe(layer, options, batch, cores)
            bare = time_reference(binary, batch, cores)
        else:
            bare = time_reference(binary, batch, cores)
            probe = time_probe(layer, options, batch, cores)
        ratios.append(probe / bare)
        ours.append(probe)
        theirs.append(bare)
    low, high = interval(ratios)
    return {
        "bench": f"harness/{name}",
        "ratio": round(statistics.median(ratios), 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "target_ratio": TARGET_RATIO,
        "ns": round(statistics.median(ours), 1),
        "reference_ns": round(statistics.median(theirs), 1),
        "reference": f"benches/c/{reference}.c",
        "pairs": pairs,
        "cores": list(cores),
    }


def main() -> None:
    """Print a line for each comparison asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15, help="interleaved pairs of runs (at least 2)")
    parser.add_argument("--only", choices=sorted(COMPARISONS), action="append", help="only this comparison")
    arguments = parser.parse_args()
    if arguments.pairs < 2:
        parser.error(f"--pairs {arguments.pairs}: at least 2")
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        sys.exit(f"harness: two cores are needed, this process may use {allowed}")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only or COMPARISONS:
            line = compare(name, arguments.pairs, (allowed[0], allowed[1]), Path(folder))
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
