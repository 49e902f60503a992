"""What a few instructions before each send cost over UCX's shared memory, seen with UCX's own tool.

``python benches/before_send.py`` runs ucx_perftest as it is and with a small library before it
(`benches/c/before_send.c`) that spends so many turns of an empty loop before each send, in turns with our own
probe, and prints the half round trip for each. It is what `docs/against.md` says of the two tools at 64
octets: a caller pays a step, not in proportion to what it does.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from peers import client, free_port, of, serving

from wiretwin.measure import host
from wiretwin.measure.launch import launch
from wiretwin.measure.schedule import Step
from wiretwin.stacks.layers import parse_layers

SOURCE = Path(__file__).parent / "c" / "before_send.c"
TURNS = (0, 2, 5, 10, 20, 40, 80, 160)
LINE = r"^Final:\s+\d+\s+([\d.]+)\s+([\d.]+)"


def built(folder: Path) -> Path:
    """Compile the library."""
    into = folder / "before_send.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(into), str(SOURCE), "-ldl"], check=True)
    return into


def turn_ns(library: Path) -> float:
    """Return how long a turn of the empty loop takes: the least of a few runs."""
    turns = ctypes.CDLL(str(library)).turns
    turns.argtypes, turns.restype = [ctypes.c_long], None
    count, best = 1_000_000, float("inf")
    for _ in range(20):
        begun = time.perf_counter_ns()
        turns(count)
        best = min(best, (time.perf_counter_ns() - begun) / count)
    return best


def theirs(size: int, cpus: tuple[int, int], env: Mapping[str, str]) -> tuple[float, float]:
    """Return the median and the mean that ucx_perftest prints, in microseconds."""
    whole = {"UCX_TLS": "sm,self", "UCX_WARN_UNUSED_ENV_VARS": "n"} | dict(env)
    port = str(free_port())
    with serving(["ucx_perftest", "-p", port], cpus[1], whole):
        words = f"ucx_perftest 127.0.0.1 -p {port} -t tag_lat -s {size} -n 50000 -w 1000".split()
        median, mean = client(words, cpus[0], LINE, whole)
    return median, mean


def ours(size: int, cpus: tuple[int, int]) -> tuple[float, float]:
    """Return the median and the mean of our probe's samples, in microseconds."""
    (configuration,) = parse_layers("ucx+shm")
    step = Step("echo", size, min_samples=2000, max_samples=50000, budget_ms=150.0)
    outcome = launch(configuration, [step], limit_s=20.0, pins=cpus)
    if outcome.status != "ok":
        raise RuntimeError(f"ucx+shm: {outcome.error}")
    (found,) = outcome.steps
    scale = found["batch"] * 2000.0
    return of(found["values_ns"], "median") / scale, of(found["values_ns"], "mean") / scale


def main() -> int:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--size", type=int, default=64)
    options = parser.parse_args()
    cpus = host.measuring_cpus() or (0, 0)
    seen: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        library = built(Path(folder))
        one = turn_ns(library)
        for _ in range(options.rounds):
            seen.setdefault("ours |", []).append(ours(options.size, cpus))
            seen.setdefault("ucx_perftest as it is |", []).append(theirs(options.size, cpus, {}))
            for turns in TURNS:
                env = {"LD_PRELOAD": str(library), "BEFORE_SEND_TURNS": str(turns)}
                name = f"ucx_perftest, {turns} turns | {turns * one:.1f}"
                seen.setdefault(name, []).append(theirs(options.size, cpus, env))
    print(f"{options.size} octets; half round trips in microseconds; one turn takes {one:.2f} ns\n")
    print("| | before a send, ns | median | mean |")
    print("|---|---|---|---|")
    for name, pairs in seen.items():
        columns = [
            f"{statistics.median(column):.3f} ({min(column):.3f}-{max(column):.3f})"
            for column in zip(*pairs, strict=True)
        ]
        print(f"| {name} | " + " | ".join(columns) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
