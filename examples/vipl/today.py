"""What Ong and Farrell measured in 2000, on this machine: TCP, LAM, MPICH, VIA and MVICH.

    python today.py [BUDGET]

Prints one table in Markdown: half a round trip of the smallest message (t_0), the largest throughput
(r_max) and the size at which half of it is reached (n_half), from curves of 4 B to 1 MiB; of 1999 from the
model of the paper's hosts on GNIC-II, to 32 KiB over VIs; of today within this host and, as root, between two
hosts of a testbed. Then where MVICH is quicker by rendezvous. BUDGET is the time of each measurement, by
default 60s.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from math import exp, log
from pathlib import Path

import polars as pl

import wiretwin as wt
from wiretwin.fit.onestate import in_one_state

Curve = Mapping[int, float]
"""Half a round trip in microseconds, by size in bytes."""
SIZES = "4,8,16,32,64,128,256,512,1KiB..1MiB"
LAYERS = "socket/tcp,mpi/lam,mpi/mpich,mpi-mvich/shm"
BETWEEN = "socket/tcp,mpi/lam,mpi/mpich,mpi-mvich/udp,mpi-mvich/packet"
EAGER, RENDEZVOUS = "mpi-mvich/shm+eager1024k", "mpi-mvich/shm+eager1k"
VNETTEST = ("-s", "5000")
EXPERIMENTS = ("tcp", "mpi", "via", "mvich")
THEN = {
    "TCP": "stack=socket/tcp/gige network=gige host=p3-450 nic=gnic-ii mtu=1500 buffer_kib=128",
    "LAM": "stack=mpi-lam/tcp/gige network=gige host=p3-450 nic=gnic-ii mtu=1500",
    "MPICH": "stack=mpi-mpich/tcp/gige network=gige host=p3-450 nic=gnic-ii mtu=1500",
    "VIA": "stack=via/gige network=gige host=p3-450 nic=gnic-ii mtu=1500",
    "MVICH": "stack=mpi-mvich/gige network=gige host=p3-450 nic=gnic-ii mtu=1500",
}


def told(*words: str) -> str:
    """What a command prints."""
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"today.py: `{' '.join(words)}` ended with {done.returncode}")
    return done.stdout


def wiretwin(*words: str) -> str:
    """What a verb of wiretwin prints."""
    return told(str(Path(sys.executable).parent / "wiretwin"), *words)


def of_1999() -> Mapping[str, Curve]:
    """The model's curves of the paper's hosts."""
    rows = json.loads(wiretwin("papers", "ong2000", *EXPERIMENTS, "--quick", "--format", "json"))
    curves: dict[str, dict[int, float]] = {}
    for row in rows:
        for name, case in THEN.items():
            case_of, _, size = row["case"].partition(" size=")
            if case_of == case and size and row["metric"] == "latency_us":
                curves.setdefault(name, {})[int(size)] = row["predicted"]
    return {name: curves[name] for name in THEN if name in curves}


def measured(folder: Path, layers: str, budget: str, *more: str) -> Mapping[str, Curve]:
    """The curves of layers: the median of the launches' medians, over launches in one state of the host."""
    words = ("--sizes", SIZES, "--for", "curves", "--budget", budget, "--no-report", *more)
    wiretwin("measure", "--layers", layers, *words, "--format", "json", "-o", str(folder))
    samples = in_one_state(wt.Result.open(folder)).samples
    later = samples.filter((pl.col("loop") == "echo") & (pl.col("index") > 0))
    each = later.with_columns(half_us=pl.col("value_ns") / pl.col("batch") / 2000)
    launches = each.group_by("layer", "bytes", "launch").agg(pl.col("half_us").median())
    found: dict[str, dict[int, float]] = {}
    for layer, size, half_us in (
        launches.group_by("layer", "bytes").agg(pl.col("half_us").median()).iter_rows()
    ):
        found.setdefault(layer, {})[size] = half_us
    return found


def vnettest(folder: Path) -> Curve:
    """The curve of a VI, by the example in C, built as its page says: the median of five runs."""
    library = json.loads(wiretwin("direct", "vipl", "--format", "json"))["VIPL"]
    program = str(folder / "vnettest")
    linked = (f"-I{library}", f"-L{library}", "-l:libvipl.so.1", f"-Wl,-rpath,{library}")
    told("cc", "-O2", f"{library}/vnettest.c", *linked, "-o", program)
    runs: dict[int, list[float]] = {}
    for _ in range(5):
        for line in told(program, *VNETTEST).splitlines():
            size, half_us = line.split()
            runs.setdefault(int(size), []).append(float(half_us))
    return {size: sorted(values)[2] for size, values in runs.items()}


def figures(curve: Curve) -> tuple[float, float, float]:
    """t_0 in us, r_max in MB/s and n_half in bytes, between two sizes along their logarithms."""
    rates = sorted((size, size / half_us) for size, half_us in curve.items())
    r_max = max(rate for _, rate in rates)
    n_half = float(rates[0][0])
    for (size, rate), (larger, higher) in pairwise(rates):
        if rate < r_max / 2 <= higher:
            n_half = exp(log(size) + log(larger / size) * log(r_max / 2 / rate) / log(higher / rate))
            break
    return curve[min(curve)], r_max, n_half


def switch_over(eager: Curve, rendezvous: Curve) -> str:
    """The size from which on rendezvous is the quicker one at every size."""
    slower = [size for size in eager if size > 1024 and rendezvous[size] >= eager[size]]
    larger = [size for size in sorted(eager) if size > max(slower, default=1024)]
    return f"from {larger[0]} B" if larger else "at no size"


def main() -> None:
    """Measure, and print."""
    budget = sys.argv[1] if len(sys.argv) > 1 else "60s"
    rows = [("1999, the model", name, curve) for name, curve in of_1999().items()]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        here = measured(folder / "here", f"{LAYERS},{EAGER},{RENDEZVOUS}", budget)
        eager, rendezvous = here[EAGER], here[RENDEZVOUS]
        rows += [
            ("today, one host", name, here[name]) for name in sorted(here) if name not in (EAGER, RENDEZVOUS)
        ]
        rows.append(("today, one host", "VIA (vnettest)", vnettest(folder)))
        if os.geteuid() == 0:
            between = measured(folder / "between", BETWEEN, budget, "--hosts", "2")
            rows += [("today, two hosts", name, curve) for name, curve in sorted(between.items())]
    print("| When and where | What | t_0 [us] | r_max [MB/s] | n_half [B] |\n|---|---|---:|---:|---:|")
    for where, name, curve in rows:
        t_0, r_max, n_half = figures(curve)
        print(f"| {where} | {name} | {t_0:.2f} | {r_max:.0f} | {n_half:.0f} |")
    print(f"\nMVICH of today is quicker by rendezvous {switch_over(eager, rendezvous)}.")


if __name__ == "__main__":
    main()
