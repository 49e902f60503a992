"""A full sweep, 1 B to 8 MiB of one layer: by `wiretwin measure` in ten seconds, and by NetPIPE as it comes.

    python benches/full_sweep.py [--layer mpi/mpich] [--rounds 4] [--out results/sweeps.jsonl]

In a round each measures the same sizes once, in turns with the other. What counts is how far one measurement
may lie from the next: 1.96 standard deviations over the rounds, relative, in the median over the sizes.
NetPIPE takes each size with its neighbours three bytes off; it is given the mean of the three. With --out
rounds are kept in a file and all that is in it counts, so that they can be taken one at a time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from against import sessions, theirs

from wiretwin.fit.stats import summarise
from wiretwin.measure.api import measure
from wiretwin.measure.host import measuring_cpus
from wiretwin.measure.schedule import netpipe
from wiretwin.place import HERE
from wiretwin.stacks.layers import parse_layers

LARGEST = 8 << 20
BUDGET_S = 8.0
"""Of our measurement; bringing up and writing down come on top."""
TARGET_S = 10.0
PERTURBATION = 3
"""NetPIPE's own, bytes to either side of a size."""


def sizes() -> list[int]:
    return netpipe(LARGEST, perturbation=0)


def own(layer: str) -> dict[int, float]:
    """Measure once by our own verb; return the half round trip by size, in microseconds."""
    with tempfile.TemporaryDirectory(prefix="wiretwin-bench-") as folder:
        result = measure(
            [layer], sizes=sizes(), purpose="curves", budget=f"{BUDGET_S:g}s", precision="0.1%",
            pin=measuring_cpus() or "none", out=Path(folder, "result"),
        )  # fmt: skip
        echo = summarise(result.samples()).filter(pl.col("loop") == "echo")
        middle = echo.group_by("bytes").agg(pl.col("value_ns").median())
        return {int(size): value / 2000 for size, value in middle.iter_rows()}


def peer(layer: str) -> dict[int, float]:
    """Run NetPIPE once, with its perturbations; return the same."""
    (configuration,) = parse_layers(layer)
    with sessions(configuration, HERE) as session:
        found = theirs(
            configuration, HERE, session, (1, LARGEST), measuring_cpus(), perturbation=PERTURBATION
        )
    near: dict[int, list[float]] = {}
    for size, value in found.items():
        with contextlib.suppress(StopIteration):
            near.setdefault(next(one for one in sizes() if abs(one - size) <= PERTURBATION), []).append(value)
    return {size: statistics.fmean(values) for size, values in near.items()}


def width(sweeps: Sequence[Mapping[int, float]]) -> float:
    """Return how far one sweep may lie from the next, relative, in the median over the sizes."""
    common = set.intersection(*(set(one) for one in sweeps))
    return statistics.median(
        1.96 * statistics.stdev(math.log(one[size]) for one in sweeps) for size in common
    )


def line(layer: str, rounds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the bench's line from all rounds."""
    seconds = {who: statistics.median(one[who]["seconds"] for one in rounds) for who in ("ours", "theirs")}
    widths = {
        who: width([{int(size): value for size, value in one[who]["us"].items()} for one in rounds])
        for who in ("ours", "theirs")
    }
    return {
        "bench": f"measure/full sweep of {layer}",
        "unit": "s",
        "value": seconds["ours"],
        "target_value": TARGET_S,
        "reference": "NetPIPE",
        "reference_value": seconds["theirs"],
        "width": widths["ours"],
        "reference_width": widths["theirs"],
        "rounds": len(rounds),
        "sizes": len(sizes()),
    }


def main() -> int:
    """Print one line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layer", default="mpi/mpich")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rounds: list[dict[str, Any]] = []
    if options.out is not None and options.out.exists():
        rounds = [json.loads(text) for text in options.out.read_text("utf-8").splitlines()]
    for number in range(options.rounds):
        found: dict[str, Any] = {}
        turns = [("ours", own), ("theirs", peer)]
        for who, run in turns if number % 2 == 0 else turns[::-1]:
            begun = time.monotonic()
            values = run(options.layer)
            found[who] = {"seconds": time.monotonic() - begun, "us": values}
        rounds.append(found)
        if options.out is not None:
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
    if len(rounds) < 2:
        print("one round tells no width", file=sys.stderr)
        return 0
    print(json.dumps(line(options.layer, rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
