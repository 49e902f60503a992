"""Programs on four hosts, predicted from an echo between two of them, and run for real.

    python benches/accuracy_hosts.py [--priority 10] [--layers socket/tcp,mpi/lam] [--rates 10Mbit,100Mbit]
                                     [--out results/hosts.jsonl] [--docs docs/accuracy.md]

For each layer and rate a testbed joins four hosts by a wire of that rate. An echo between two of them, and
nothing else, gives the network of the prediction; one rank alone gives the price of the program's work.
The prediction is written down before the program runs on all four. What is compared is communication: the
time of rank 0 less its computation. With --docs the table in that page, between its two markers, is made
anew from everything in --out, which grows from run to run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wiretwin import _core
from wiretwin.errors import WiretwinError
from wiretwin.fit.api import fit
from wiretwin.measure.api import measure
from wiretwin.predict.hosts import echo_network
from wiretwin.predict.named import NAMED, parse_parameters, run_live
from wiretwin.priority import VARIABLE
from wiretwin.testbed import Testbed, parse_link

BEGIN = "<!-- hosts: begin -->"
END = "<!-- hosts: end -->"
HOSTS = 4
LAYERS = "socket/tcp,mpi/lam,mpi/openmpi+yield,mpi/mpich+yield,pvm/pvm3+advise,pvm/pvm3"
#: The daemons of its launcher wait in a loop, and would leave nothing of two cores: only its ranks go first.
POLLS = "mpi/mpich"
#: A message of 256 KiB takes 0.2 s at 10 Mbit/s.
SIZES = [4, 64, 256, 1024, 4096, 16384, 65536, 262144]
PROGRAMS: list[tuple[str, tuple[str, ...]]] = [
    ("mm", ("n=64", "rounds=4")),
    ("mm", ("n=128", "rounds=2")),
    ("mm", ("n=256", "rounds=1")),
    ("pde", ("n=64", "accuracy=6")),
    ("pde", ("n=256", "accuracy=3")),
    ("md", ("x=8", "y=8", "z=8", "steps=10")),
    ("md-coarse", ("steps=1",)),
]
#: A host with one rank, which sends nothing.
FREE = [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}]
ALONE = {
    "nodes": [{"cores": 1, "idle": "yield", "quantum_ps": 1000}],
    "placement": [0],
    "intra": {"call_ps": 0, "overhead_send": FREE, "overhead_recv": FREE, "latency": FREE, "gap": FREE},
}
#: From this share of communication on, a program is one of messages.
DOMINATES = 0.6
TARGET = 0.10
#: Of a core for real-time processes; Linux leaves 0.95 to all.
LEAST_SHARE = 0.9


def real_time_share() -> float:
    """Return the share of each core that the group of processes we are in leaves to real-time ones."""
    for text in Path("/proc/self/cgroup").read_text("utf-8").splitlines():
        _, controllers, group = text.split(":", 2)
        if "cpu" in controllers.split(","):
            folder = Path("/sys/fs/cgroup/cpu", group.lstrip("/"))
            try:
                words = [
                    int((folder / f"cpu.rt_{name}_us").read_text("ascii")) for name in ("runtime", "period")
                ]
            except OSError:
                break
            return words[0] / words[1]
    return 1.0


@contextlib.contextmanager
def in_front(layer: str, priority: int | None) -> Iterator[None]:
    """Run what is started inside before all other work of the machine; the testbed is there already."""
    if priority is None:
        yield
        return
    polls = layer.startswith(POLLS)
    if polls:
        os.environ[VARIABLE] = str(priority)
    else:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def price(program: str, words: Sequence[str]) -> int:
    """Return what a unit of the program's work costs, in picoseconds, from one rank alone.

    How many units there are is what the simulated program takes at a picosecond each.
    """
    run = run_live(NAMED[program], words, ranks=1)
    values, _ = parse_parameters(NAMED[program], words)
    (kind,) = NAMED[program].work
    parameters = json.dumps({**values, "costs_ps": {kind: 1}})
    units = int(_core.run_program(program, parameters, json.dumps(ALONE), 1, 1)["totals"]["compute_ps"][0])
    return round(1e12 * run.ranks[0].parts_s["compute"] / units)


def predict(program: str, words: Sequence[str], network: str, cost_ps: int) -> tuple[float, float, str]:
    """Return rank 0's time and computation in seconds, and the digest of its result."""
    values, _ = parse_parameters(NAMED[program], words)
    (kind,) = NAMED[program].work
    parameters = json.dumps({**values, "costs_ps": {kind: cost_ps}})
    run = _core.run_program(program, parameters, network, HOSTS, 1)
    compute = int(run["totals"]["compute_ps"][0]) / 1e12
    first = run["outcomes"][0]
    return first["elapsed_ps"] / 1e12, compute, first["digest"]


def one_network(
    layer: str,
    rate: str,
    launches: int,
    budget_s: float,
    out: Path,
    programs: Sequence[tuple[str, tuple[str, ...]]] = PROGRAMS,
    priority: int | None = None,
    echoes: int = 3,
) -> None:
    """Measure, predict and run programs on one layer at one rate; append to `out`."""
    with (
        tempfile.TemporaryDirectory(prefix="wiretwin-hosts-") as scratch,
        Testbed.up(HOSTS, parse_link("wire", rate=rate, delay="5us"), share=[scratch]) as bed,
        in_front(layer, priority),
    ):
        result = measure(
            [layer], sizes=SIZES, purpose="curves", budget=f"{budget_s:g}s", launches=echoes, place=bed,
            out=Path(scratch, "result"),
        )  # fmt: skip
        costs_of = fit(result, endpoints="skip").layer(layer)
        network = json.dumps(echo_network(costs_of, HOSTS, cores=len(os.sched_getaffinity(0))))
        for program, words in programs:
            cost = price(program, words)
            seconds, compute, digest = predict(program, words, network, cost)
            row: dict[str, Any] = {
                "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "layer": layer,
                "rate": rate,
                "program": program,
                "words": list(words),
                "priority": priority,
                "echoes": costs_of.r_max_MB_s.launches,
                "costs": costs_of.model_dump(mode="json"),
                "cost_ps": cost,
                "predicted_s": seconds,
                "predicted_comm_s": seconds - compute,
                "launches": [],
            }
            for _ in range(launches):
                first = run_live(NAMED[program], words, layer=layer, ranks=HOSTS, place=bed).ranks[0]
                if first.digest != digest or not first.verified:
                    raise SystemExit(f"{program} over {layer}: another result than simulated")
                comm = first.elapsed_s - first.parts_s["compute"]
                row["launches"].append({"elapsed_s": first.elapsed_s, "comm_s": comm})
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(line(row), file=sys.stderr)


def actual(row: dict[str, Any]) -> tuple[float, float]:
    """Return the medians of communication and of the whole, in seconds."""
    comm = statistics.median(one["comm_s"] for one in row["launches"])
    return comm, statistics.median(one["elapsed_s"] for one in row["launches"])


def error(row: dict[str, Any]) -> float:
    """Return the relative error of the predicted communication time."""
    return float(row["predicted_comm_s"]) / actual(row)[0] - 1


def dominated(row: dict[str, Any]) -> bool:
    """Whether the program spent most of its time on messages."""
    comm, whole = actual(row)
    return comm >= DOMINATES * whole


def line(row: dict[str, Any]) -> str:
    """Return a row of the table."""
    comm, whole = actual(row)
    return (
        f"| `{' '.join([row['program'], *row['words']])}` | {row['layer']} | {row['rate']} | "
        f"{1e3 * row['predicted_comm_s']:.1f} | {1e3 * comm:.1f} | {100 * error(row):+.1f} % | "
        f"{100 * comm / whole:.0f} % |"
    )


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the section's tables and their summary."""
    newest = {(row["layer"], row["rate"], row["program"], *row["words"]): row for row in rows}
    rows = list(newest.values())
    text = []
    for title, group in (
        ("Where communication dominates", [row for row in rows if dominated(row)]),
        ("Where computation does", [row for row in rows if not dominated(row)]),
    ):
        if not group:
            continue
        errors = sorted(abs(error(row)) for row in group)
        text += [
            f"{title} ({len(group)} cases): median error {100 * statistics.median(errors):.1f} %, "
            f"worst {100 * errors[-1]:.1f} %.",
            "",
            "| program | layer | rate | predicted ms | actual ms | error | share of the whole |",
            "|---|---|---|---|---|---|---|",
            *(line(row) for row in group),
            "",
        ]
    return "\n".join(text).rstrip()


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the bench's line."""
    errors = [abs(error(row)) for row in rows if dominated(row)]
    middle = statistics.median(errors) if errors else None
    return {
        "bench": "accuracy/hosts",
        "cases": len(rows),
        "cases_dominated": len(errors),
        "median_error_percent": None if middle is None else round(100 * middle, 2),
        "target_median_percent": 100 * TARGET,
        "met": middle is not None and middle <= TARGET,
    }


def main() -> int:
    """Run what was asked for; returns 0 whether the target is met or not, for timing decides no test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", default=LAYERS, help="none: only the table")
    parser.add_argument("--rates", default="10Mbit,100Mbit")
    parser.add_argument("--programs", default=",".join(dict.fromkeys(name for name, _ in PROGRAMS)))
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of echo a layer and rate")
    parser.add_argument("--echoes", type=int, default=3, help="launches of the echo that the budget is for")
    parser.add_argument(
        "--priority",
        type=int,
        help="real-time priority of the testbed and its ranks, so that nothing else comes before one that is "
        f"woken; of {POLLS}, whose daemons poll, the ranks alone",
    )
    parser.add_argument("--out", type=Path, default=Path("results/hosts.jsonl"))
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    if options.priority is not None:
        share = real_time_share()
        if share < LEAST_SHARE:
            # The wire has a real-time priority, too: it would stop for half a second at a time.
            parser.error(
                f"--priority: this group's real-time processes get {share:.0%} of a core and stop then"
            )
    chosen = [one for one in PROGRAMS if one[0] in options.programs.split(",")]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for layer in options.layers.split(",") if options.layers != "none" else ():
        for rate in options.rates.split(","):
            try:
                one_network(
                    layer, rate, options.launches, options.budget, options.out, chosen, options.priority,
                    options.echoes,
                )  # fmt: skip
            except WiretwinError as failure:
                print(f"{layer} at {rate}: {failure}", file=sys.stderr)
    if not options.out.exists():
        print("nothing was run", file=sys.stderr)
        return 1
    rows = [json.loads(text) for text in options.out.read_text("utf-8").splitlines()]
    print(json.dumps(summary(rows)))
    if options.docs is not None:
        page = options.docs.read_text("utf-8")
        head, rest = page.split(BEGIN)
        tail = rest.split(END)[1]
        options.docs.write_text(f"{head}{BEGIN}\n\n{markdown(rows)}\n\n{END}{tail}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
