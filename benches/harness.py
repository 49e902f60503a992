"""Does the harness distort? The probe's echo against a bare C ping-pong, interleaved.

Prints one JSON line for each comparison::

    {"bench": "harness/tcp-spin-4B", "ratio": ..., "low": ..., "high": ..., "target_ratio": 1.05, ...}

``ratio`` is the median over turns of (probe / C), each the median of its samples; ``low`` and
``high`` bound it by a 95 % bootstrap over turns. In a turn the C program runs between two launches of
the probe, whose mean counts, pinned to the same two cores. Where the host was seen in several states
(see ``docs/explanation/states.md``) there is a line for each, of the turns that lie within it.
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

from wiretwin import states

HERE = Path(__file__).resolve().parent
TARGET_RATIO = 1.05
LIMIT_S = 60.0
SAMPLES = 4000
WARMUP = 1000
RING_LINES = 128
#: Layer, options, the reference with arguments of its own, round trips a sample. The ring in shared memory is
#: held against a ring of as many lines and as safe, and against a single line, which is neither.
COMPARISONS: dict[str, tuple[str, dict[str, Any], list[str], int]] = {
    "tcp-spin-4B": ("socket/tcp", {"wait": "spin"}, ["tcp_pingpong"], 1),
    "shm-4B": ("shm", {"wait": "spin"}, ["shm_pingpong", str(RING_LINES)], 20),
    "shm-4B-one-line": ("shm", {"wait": "spin"}, ["shm_pingpong", "1"], 20),
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


def time_reference(binary: Path, own: list[str], batch: int, cores: tuple[int, int]) -> float:
    """The median round trip of the C ping-pong, in nanoseconds."""
    counts = [SAMPLES, WARMUP] if binary.name == "tcp_pingpong" else [SAMPLES, batch, WARMUP]
    command = [str(binary), "4", *map(str, counts), *own, *map(str, cores)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
    return statistics.median(map(float, out.split())) / batch


def time_probe(
    layer: str, options: dict[str, Any], batch: int, cores: tuple[int, int]
) -> tuple[float, states.Ends | None]:
    """The median round trip of the probe's echo, in nanoseconds, and how far its ranks were apart."""
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
    found, crossing = None, None
    for output in outputs:
        for line in map(json.loads, output.splitlines()):
            if line["event"] == "error":
                sys.exit(f"harness: the probe ended early: {line['place']}: {line['reason']}")
            if line["event"] == "samples":
                found = statistics.median(line["values_ns"]) / batch
            if line["event"] == "done" and line["crossing_ns"]:
                crossing = tuple(line["crossing_ns"])
    if found is None:
        sys.exit("harness: the probe gave no samples")
    return found, crossing


def interval(ratios: list[float], seed: int = 1) -> tuple[float, float]:
    """A 95 % bootstrap interval of the median."""
    stream = random.Random(seed)
    medians = sorted(statistics.median(stream.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[49], medians[1949]


def compare(name: str, turns: int, cores: tuple[int, int], folder: Path) -> list[dict[str, Any]]:
    """Run one comparison; a line for each state of the host."""
    layer, options, (reference, *own), batch = COMPARISONS[name]
    binary = compile_reference(reference, folder)
    ours, theirs, ends = [], [], []
    for _ in range(turns):
        first, before = time_probe(layer, options, batch, cores)
        theirs.append(time_reference(binary, own, batch, cores))
        second, after = time_probe(layer, options, batch, cores)
        ours.append((first + second) / 2)
        # All four must be of one state: the least and the most stand for them.
        seen = [*(before or ()), *(after or ())]
        ends.append((min(seen), max(seen)) if before and after else None)
    found = states.groups(ends)
    if len(found) < 2:
        return [line_of(name, list(range(turns)), ours, theirs, ends, cores)]
    return [
        line_of(name, members, ours, theirs, ends, cores) | {"state": states.name(place, len(found))}
        for place, members in enumerate(found)
    ]


def line_of(
    name: str,
    members: list[int],
    ours: list[float],
    theirs: list[float],
    ends: list[states.Ends | None],
    cores: tuple[int, int],
) -> dict[str, Any]:
    """The line of some of the turns."""
    reference, *own = COMPARISONS[name][2]
    ratios = [ours[at] / theirs[at] for at in members]
    low, high = interval(ratios)
    apart = [time for at in members for time in ends[at] or ()]
    return {
        "bench": f"harness/{name}",
        "ratio": round(statistics.median(ratios), 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "target_ratio": TARGET_RATIO,
        "ns": round(statistics.median(ours[at] for at in members), 1),
        "reference_ns": round(statistics.median(theirs[at] for at in members), 1),
        "reference": " ".join((f"benches/c/{reference}.c", *own)),
        "turns": len(members),
        "crossing_ns": [round(min(apart), 1), round(max(apart), 1)] if apart else None,
        "cores": list(cores),
    }


def main() -> None:
    """Print a line for each comparison asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=15, help="interleaved turns (at least 2)")
    parser.add_argument("--only", choices=sorted(COMPARISONS), action="append", help="only this comparison")
    arguments = parser.parse_args()
    if arguments.turns < 2:
        parser.error(f"--turns {arguments.turns}: at least 2")
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        sys.exit(f"harness: two cores are needed, this process may use {allowed}")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only or COMPARISONS:
            for line in compare(name, arguments.turns, (allowed[0], allowed[1]), Path(folder)):
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
