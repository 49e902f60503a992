"""Programs on four hosts, predicted from what was measured between two of them, and run for real.

    python benches/accuracy_hosts.py [--priority 10] [--layers socket/tcp,mpi/lam] [--rates 10Mbit,100Mbit]
                                     [--out results/hosts.jsonl] [--docs docs/accuracy-compiled.md]
    python benches/accuracy_hosts.py --scripts [--docs docs/how-to/hosts.md]

With --scripts: the shipped mpi4py scripts, by `wiretwin predict --twin … --network testbed:…`. A prediction
is frozen before its script runs; what is compared is the whole time. The rest is of the compiled programs:

For each layer and rate a testbed joins four hosts by a wire of that rate. An echo between two of them, and
nothing else, gives the network of the prediction; one rank alone gives the price of the program's work.
The prediction is written down before the program runs on all four. What is compared is communication: the
time of rank 0 less its computation. With --docs the tables in that page, between its two markers, are made
anew from everything in --out, which grows from run to run; the newest of each case counts. With --docs the
scripts join the record that intervals are learnt from (`accuracy_past`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import accuracy_past
import numpy as np

from wiretwin import _core
from wiretwin.errors import MeasureError, WiretwinError
from wiretwin.fit.api import fit
from wiretwin.measure import host
from wiretwin.measure.api import measure
from wiretwin.measure.launch import launch
from wiretwin.measure.schedule import steps
from wiretwin.predict.compare import compare
from wiretwin.predict.hosts import echo_network
from wiretwin.predict.live import Job, run_interleaved
from wiretwin.predict.named import NAMED, parse_parameters, run_live
from wiretwin.predict.predict import predict as predict_script
from wiretwin.predict.shipped import folder
from wiretwin.priority import VARIABLE
from wiretwin.results import Clock, Launch, Layer, Result
from wiretwin.stacks.layers import parse_layers
from wiretwin.testbed import Testbed, parse_link
from wiretwin.twin import Twin

BEGIN = "<!-- hosts: begin -->"
END = "<!-- hosts: end -->"
HOSTS = 4
LAYERS = "socket/tcp,mpi/lam,mpi/openmpi+yield,mpi/mpich+yield,pvm/pvm3+advise,pvm/pvm3"
#: The daemons of its launcher wait in a loop, and would leave nothing of two cores: only its ranks go first.
POLLS = "mpi/mpich"
#: Its daemons carry the messages, and by those before decide when to send one again.
REMEMBERS = ("pvm/pvm3",)
ECHOES = 3
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
#: The shipped scripts, so long that 100 Mbit/s and four ranks on two cores take a second or less.
SCRIPTS: list[tuple[str, tuple[str, ...]]] = [
    ("heat2d.py", ("--points", "256", "--steps", "200")),
    ("heat2d.py", ("--points", "768", "--steps", "50")),
    ("matmul.py", ("--size", "384", "--repeat", "4")),
    ("ring_allreduce.py", ("--elements", "2000", "--repeat", "100")),
    ("ring_allreduce.py", ("--elements", "20000", "--repeat", "20")),
    ("master_worker.py", ("--limit", "20000000", "--tasks", "100")),
    ("sample_sort.py", ("--keys", "100000", "--repeat", "4")),
]
SCRIPT_LAYER = "mpi4py/mpich"
SCRIPT_RATE = "100Mbit"
DELAY = "5us"
PASSES = 3
#: A host with one rank, which sends nothing.
FREE = [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}]
ALONE = {
    "nodes": [{"cores": 1, "idle": "sleep", "quantum_ps": 1000}],
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


def echo_alone(layer: str, bed: Testbed, out: Path) -> Result:
    """Echo each size by itself, with daemons of its own, as a program has them; all sizes `ECHOES` times.

    How long a daemon waits before it sends again follows from what it has carried before, and after an
    echo of short messages that is too short for long ones.
    """
    (configuration,) = parse_layers(layer)
    stack = configuration.kind.stack
    assert stack is not None, f"{layer} has daemons"
    cpus = host.measuring_cpus()
    result = Result.create(
        out, seed=1, created_utc=now(), host=host.describe(),
        layers=[Layer(layer=configuration.kind.name, name=layer, options=dict(configuration.options))],
    )  # fmt: skip
    for turn in range(1, ECHOES + 1):
        parts = []
        for size in SIZES:
            schedule = [step for step in steps([size], "curves", seconds=1.0) if step.loop == "echo"]
            with stack.up(bed, configuration.options) as session:
                outcome = launch(
                    configuration, schedule, limit_s=60.0, pins=cpus, place=bed, session=session
                )  # fmt: skip
            if outcome.status != "ok" or outcome.hello is None:
                raise MeasureError(f"{layer}, {size} bytes: {outcome.error}")
            result.manifest.layers[0].clock = Clock.model_validate(outcome.hello["clock"])
            parts.append(outcome.columns() or {})
        record = Launch(
            launch=turn, name=layer, order=turn - 1, started_utc=now(), seconds=0.0, status="ok", error=None
        )
        result.append(record, {key: np.concatenate([part[key] for part in parts]) for key in parts[0]})
    result.finish("complete")
    return result


def now() -> str:
    """Return the time of day as results have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def one_network(
    layer: str,
    rate: str,
    launches: int,
    budget_s: float,
    out: Path,
    programs: Sequence[tuple[str, tuple[str, ...]]] = PROGRAMS,
    priority: int | None = None,
) -> None:
    """Measure, predict and run programs on one layer at one rate; append to `out`."""
    with (
        tempfile.TemporaryDirectory(prefix="wiretwin-hosts-") as scratch,
        Testbed.up(HOSTS, parse_link("wire", rate=rate, delay="5us"), share=[scratch]) as bed,
        in_front(layer, priority),
    ):
        if layer in REMEMBERS:
            result = echo_alone(layer, bed, Path(scratch, "result"))
        else:
            result = measure(
                [layer], sizes=SIZES, purpose="curves", budget=f"{budget_s:g}s", launches=ECHOES, place=bed,
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


def scripts(
    hosts: int, launches: int, budget_s: float, out: Path, programs: Sequence[tuple[str, tuple[str, ...]]]
) -> None:
    """Measure between two of the hosts, predict the scripts on all, run them; append to `out`.

    The twin is kept beside `out`, and what is run later is predicted from the same.
    """
    kept = out.with_suffix(f".{hosts}.toml")
    with (
        tempfile.TemporaryDirectory(prefix="wiretwin-hosts-") as scratch,
        Testbed.up(
            hosts, parse_link("wire", rate=SCRIPT_RATE, delay=DELAY), share=[scratch, str(folder())]
        ) as bed,
    ):
        if not kept.exists():
            result = measure(
                [SCRIPT_LAYER], sizes=SIZES, budget=f"{budget_s:g}s", launches=ECHOES, place=bed,
                out=Path(scratch, "result"),
            )  # fmt: skip
            kept.write_text(fit(result, endpoints="require").to_toml(), encoding="utf-8")
        twin = Twin.read(kept)
        network = f"testbed:hosts={hosts},rate={SCRIPT_RATE}/s,delay={DELAY}"
        for number, (name, words) in enumerate(programs):
            frozen = predict_script(
                folder() / name, words, twin=twin, ranks=hosts, network=network, passes=PASSES,
                out=Path(scratch, f"predicted-{number}"),
            )  # fmt: skip
            row: dict[str, Any] = {
                "when": datetime.now(UTC).isoformat(timespec="seconds"),
                "hosts": hosts, "rate": SCRIPT_RATE, "program": name, "words": list(words),
                "network": network,
                "frozen_utc": frozen.frozen_utc, "digest": frozen.digest,
                "predicted": frozen.seconds.model_dump(mode="json"),
                "parts": [rank.model_dump(mode="json") for rank in frozen.per_rank],
                "notes": frozen.warnings,
            }  # fmt: skip
            job = Job(folder() / name, words, hosts, Path(scratch, f"actual-{number}"))
            (run,) = run_interleaved([job], launches=launches, splits=1, place=bed)
            row["actual"] = run.seconds.model_dump(mode="json")
            row["split"] = [rank.model_dump(mode="json") for rank in run.split]
            row["launches"] = [one.seconds for one in run.launches]
            row["past"] = accuracy_past.past(compare(frozen, run))
            with out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(script_line(row), file=sys.stderr)


def script_error(row: dict[str, Any]) -> float:
    """Return the relative error of a script's predicted time."""
    return float(row["predicted"]["value"] / row["actual"]["value"] - 1)


def script_line(row: dict[str, Any]) -> str:
    """Return a row of the scripts' table."""
    predicted, found = (
        f"{1e3 * row[kind]['value']:.0f} ({1e3 * row[kind]['low']:.0f} to {1e3 * row[kind]['high']:.0f})"
        for kind in ("predicted", "actual")
    )
    return f"| `{title(row)}` | {row['hosts']} | {predicted} | {found} | {100 * script_error(row):+.1f} % |"


def scripts_markdown(rows: list[dict[str, Any]]) -> str:
    """Return the scripts' table with its summary."""
    rows = sorted({(row["hosts"], title(row)): row for row in rows}.values(), key=lambda row: row["hosts"])
    said = []
    for hosts in dict.fromkeys(row["hosts"] for row in rows):
        errors = sorted(abs(script_error(row)) for row in rows if row["hosts"] == hosts)
        middle, worst = (f"{100 * value:.0f} %" for value in (statistics.median(errors), errors[-1]))
        said.append(f"on {hosts} hosts the median error is {middle}, the worst {worst}")
    head = "| script | hosts | predicted [ms] | actual [ms] | error |\n|---|---|---|---|---|"
    summed = f"On {rows[-1]['when'][:10]}, {'; '.join(said)}."
    return "\n".join([head, *map(script_line, rows), "", summed])


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
        f"| `{title(row)}` | {row['layer']} | {row['rate']} | "
        f"{1e3 * row['predicted_comm_s']:.1f} | {1e3 * comm:.1f} | {100 * error(row):+.1f} % | "
        f"{100 * comm / whole:.0f} % |"
    )


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the section's tables, one a rate, and their summary."""
    rows = newest(rows)
    most = [row for row in rows if dominated(row)]
    whole = [comm / elapsed for comm, elapsed in map(actual, rows)]
    where = "in all of which" if len(most) == len(rows) else f"in {len(most)} of which"
    text = [
        f"{len(rows)} cases, {where} communication dominates (at least {100 * DOMINATES:.0f} % of the time; "
        f"here {100 * min(whole):.0f} to {100 * max(whole):.0f} %). {spread('Of those', most)}",
        "",
    ]
    layers = list(dict.fromkeys(row["layer"] for row in rows))
    for rate in dict.fromkeys(row["rate"] for row in rows):
        at = {(title(row), row["layer"]): row for row in rows if row["rate"] == rate}
        columns = [layer for layer in layers if any(key[1] == layer for key in at)]
        text += [
            f"At {rate.replace('M', ' M')}/s, predicted / actual ms and the error{apart(at.values())}:",
            "",
            f"| | {' | '.join(columns)} |",
            f"|---|{'---|' * len(columns)}",
        ]
        for name in dict.fromkeys(key[0] for key in at):
            cells = [cell(at[name, layer]) if (name, layer) in at else "" for layer in columns]
            text.append(f"| `{name}` | {' | '.join(cells)} |")
        middle = [spread("", [row for row in at.values() if row["layer"] == layer]) for layer in columns]
        text += [f"| median, worst | {' | '.join(middle)} |", ""]
    return "\n".join(text).rstrip()


def newest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the newest row of each case, in the order of the first."""
    return list({(row["layer"], row["rate"], title(row)): row for row in rows}.values())


def title(row: dict[str, Any]) -> str:
    """Return a program with its parameters."""
    return " ".join([row["program"], *row["words"]])


def cell(row: dict[str, Any]) -> str:
    """Return a case in short; in brackets where computation dominates."""
    text = f"{1e3 * row['predicted_comm_s']:.1f} / {1e3 * actual(row)[0]:.1f} {100 * error(row):+.1f} %"
    return text if dominated(row) else f"({text})"


def apart(rows: Iterable[dict[str, Any]]) -> str:
    """Return what brackets mean, if there are any."""
    return "" if all(map(dominated, rows)) else ", in brackets where computation dominates"


def spread(of: str, rows: list[dict[str, Any]]) -> str:
    """Return the median and the worst error of cases in which communication dominates."""
    errors = sorted(abs(error(row)) for row in rows if dominated(row))
    if not errors:
        return ""
    middle, worst = (f"{100 * value:.1f} %" for value in (statistics.median(errors), errors[-1]))
    return f"{of}: median error {middle}, worst {worst}." if of else f"{middle}, {worst}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the bench's line."""
    rows = newest(rows)
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
    parser.add_argument("--programs", help="names, with commas; by default all")
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument(
        "--budget", type=float, help="seconds of echo a layer and rate; default: 10, of --scripts 30"
    )
    parser.add_argument(
        "--priority",
        type=int,
        help="real-time priority of the testbed and its ranks, so that nothing else comes before one that is "
        f"woken; of {POLLS}, whose daemons poll, the ranks alone",
    )
    parser.add_argument("--hosts", type=int, default=HOSTS, help="of --scripts")
    parser.add_argument("--scripts", action="store_true", help="the shipped scripts, in place of programs")
    parser.add_argument(
        "--out", type=Path, help="default: results/hosts.jsonl, of scripts hosts-scripts.jsonl"
    )
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    if options.priority is not None:
        share = real_time_share()
        if share < LEAST_SHARE:
            # The wire has a real-time priority, too: it would stop for half a second at a time.
            parser.error(
                f"--priority: this group's real-time processes get {share:.0%} of a core and stop then"
            )
    if options.budget is None:
        options.budget = 30.0 if options.scripts else 10.0  # a launch of all loops takes 6 s at 100 Mbit/s
    if options.out is None:
        options.out = Path("results/hosts-scripts.jsonl" if options.scripts else "results/hosts.jsonl")
    known = SCRIPTS if options.scripts else PROGRAMS
    chosen = [one for one in known if options.programs is None or one[0] in options.programs.split(",")]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    layers = options.layers.split(",") if options.layers != "none" else []
    if options.scripts and layers:
        scripts(options.hosts, options.launches, options.budget, options.out, chosen)
        layers = []
    for layer in layers:
        for rate in options.rates.split(","):
            try:
                one_network(
                    layer, rate, options.launches, options.budget, options.out, chosen, options.priority
                )
            except WiretwinError as failure:
                print(f"{layer} at {rate}: {failure}", file=sys.stderr)
    if not options.out.exists():
        print("nothing was run", file=sys.stderr)
        return 1
    rows = [json.loads(text) for text in options.out.read_text("utf-8").splitlines()]
    if not options.scripts:
        print(json.dumps(summary(rows)))
    if options.docs is not None:
        page = options.docs.read_text("utf-8")
        head, rest = page.split(BEGIN)
        tail = rest.split(END)[1]
        table = (scripts_markdown if options.scripts else markdown)(rows)
        options.docs.write_text(f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}", encoding="utf-8")
        accuracy_past.add(row["past"] for row in rows if "past" in row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
