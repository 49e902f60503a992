"""Run the benches of our own code and show each beside its reference and its target.

A bench is a command that prints JSON lines, one for each workload. It times its reference in the
same run, in turns with our code, for only the ratio of the two survives a change of machine::

    {"bench": "engine/hold exponential 10000", "unit": "ns per event", "ns": 27.0,
     "reference": "BinaryHeap", "reference_ns": 62.9, "ratio": 0.43, "target_ratio": 0.65}

- ``bench`` names the workload: the room, a slash, what is done.
- ``ns``, or ``value`` for what is not a time, is our figure, in ``unit`` (``ns`` where absent).
- ``reference`` names what it is compared with; ``reference_ns`` or ``reference_value`` is its figure.
- ``ratio`` is ours over the reference's; ``low`` and ``high`` bound it where the bench knows.
- ``target_ratio`` and ``target_value`` are the most that ``ratio`` and the figure may be; ``target_ns``
  is only shown, for a time is the machine's as much as the code's.

All but ``bench`` and the figure may be absent; further keys are kept by ``--json``. To add a bench,
add a row to ``BENCHES``.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
"""Where every bench runs."""

LIMIT_S = 1200
"""The most a bench may take, its build included."""

PLAIN_COLUMNS = 110
"""The width of the tables where there is no terminal to ask."""


@dataclass(frozen=True)
class Bench:
    """A command whose standard output is JSON lines."""

    name: str
    command: tuple[str, ...]
    quick: tuple[str, ...] = ()
    """Arguments that make it short and rough."""


def cargo_bench(crate: str, bench: str) -> tuple[str, ...]:
    """Run a bench program of a crate."""
    return ("cargo", "bench", "--quiet", "--locked", "--package", crate, "--bench", bench)


BENCHES = (
    Bench("queue", cargo_bench("wiretwin-engine", "hold"), ("--", "--quick")),
    Bench("ranks", cargo_bench("wiretwin-engine", "ranks"), ("--", "--quick")),
    Bench("messages", cargo_bench("wiretwin-net", "ranks"), ("--", "--quick")),
    Bench("programs", cargo_bench("wiretwin-net", "programs"), ("--", "--quick")),
    Bench("command", (sys.executable, "benches/command.py"), ("--quick",)),
    Bench("protocols", cargo_bench("wiretwin-proto", "sscop"), ("--", "--quick")),
    Bench("packets", cargo_bench("wiretwin-net", "packets"), ("--", "--quick")),
    Bench("tree", cargo_bench("wiretwin-net", "tree"), ("--", "--quick")),
    Bench("lan", cargo_bench("wiretwin-net", "lan"), ("--", "--quick")),
    Bench("mpi", cargo_bench("wiretwin-net", "mpi"), ("--", "--quick")),
    Bench("codec", cargo_bench("wiretwin-wire", "codec"), ("--", "--quick")),
    Bench("cells", cargo_bench("wiretwin-net", "cell_switch"), ("--", "--quick")),
    Bench("fabric", cargo_bench("wiretwin-net", "fabric"), ("--", "--quick")),
    Bench("vipl", cargo_bench("wiretwin-vipl", "vipl"), ("--", "--quick")),
    Bench("live-cells", cargo_bench("wiretwin-host", "pcaal"), ("--", "--quick")),
    Bench("harness", (sys.executable, "benches/harness.py"), ("--turns", "3")),
    Bench("wire", (sys.executable, "benches/wire.py"), ("--quick",)),
    Bench("direct", (sys.executable, "benches/direct.py"), ("--quick",)),
    Bench("direct-programs", (sys.executable, "benches/direct_programs.py"), ("--quick",)),
    Bench("full-sweep", (sys.executable, "benches/full_sweep.py"), ("--rounds", "2")),
    Bench("sweep", (sys.executable, "benches/sweep.py"), ("--quick",)),
    Bench("service", (sys.executable, "benches/service.py"), ("--quick",)),
)


class BenchError(Exception):
    """A bench that ended badly or printed something else."""


@dataclass(frozen=True)
class Line:
    """One workload's figures."""

    data: dict[str, Any]

    @property
    def name(self) -> str:
        """The workload."""
        return str(self.data["bench"])

    @property
    def figure(self) -> float:
        """Ours, in ``unit``."""
        return float(self.data["ns"] if "ns" in self.data else self.data["value"])

    @property
    def unit(self) -> str:
        """What ``figure`` counts."""
        return str(self.data.get("unit", "ns"))

    @property
    def reference_figure(self) -> float | None:
        """The reference's, in ``unit``."""
        figure = self.data.get("reference_ns", self.data.get("reference_value"))
        return None if figure is None else float(figure)

    @property
    def verdict(self) -> str:
        """``ok`` or ``miss``; empty where there is no target."""
        met = [
            float(value) <= float(self.data[target])
            for target, value in (("target_ratio", self.data.get("ratio")), ("target_value", self.figure))
            if target in self.data and value is not None
        ]
        if not met:
            return ""
        return "ok" if all(met) else "miss"

    @property
    def target(self) -> str:
        """The targets, as a person reads them."""
        parts = []
        if "target_ratio" in self.data:
            parts.append(f"{self.data['target_ratio']:g}")
        if "target_value" in self.data:
            parts.append(f"{self.data['target_value']:g} {self.unit.split(',')[0].split()[0]}")
        if "target_ns" in self.data:
            parts.append(f"({self.data['target_ns']:g} ns)")
        return " ".join(parts)


def parse(text: str) -> Line:
    """Read one line of a bench."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise BenchError(f"not a JSON line: {text.strip()!r}") from error
    if not isinstance(data, dict) or not isinstance(data.get("bench"), str):
        raise BenchError(f"a line without `bench`, the workload's name: {text.strip()!r}")
    figures = [data[key] for key in ("ns", "value") if key in data]
    if len(figures) != 1 or isinstance(figures[0], bool) or not isinstance(figures[0], int | float):
        raise BenchError(f"{data['bench']}: needs a number as `ns` or as `value`: {text.strip()!r}")
    if "target_ratio" in data and "ratio" not in data:
        raise BenchError(f"{data['bench']}: has `target_ratio` but no `ratio`")
    return Line(data)


def run(bench: Bench, quick: bool = False, limit_s: float = LIMIT_S) -> Iterator[Line]:
    """Run a bench and yield its lines as they come."""
    command = [*bench.command, *(bench.quick if quick else ())]
    try:
        # A session of its own, so that stopping it ends what it has started, too.
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
    except OSError as error:
        raise BenchError(f"{bench.name}: {command[0]} does not start: {error.strerror}") from error
    stopped = threading.Event()

    def end() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def stop() -> None:
        stopped.set()
        end()

    limit = threading.Timer(limit_s, stop)
    with process:
        limit.start()
        try:
            assert process.stdout is not None
            for text in process.stdout:
                if text.strip():
                    yield parse(text)
            status = process.wait()
        finally:
            limit.cancel()
            if process.poll() is None:
                end()
    if stopped.is_set():
        raise BenchError(f"{bench.name}: stopped after {limit_s:g} s")
    if status != 0:
        raise BenchError(f"{bench.name}: {' '.join(command)} ended with status {status}")


def tables(lines: list[Line]) -> Iterator[Table]:
    """Show lines, a table for each unit and reference."""
    groups = itertools.groupby(lines, key=lambda line: (line.unit, line.data.get("reference", "")))
    for (unit, reference), members in groups:
        title = f"{unit}, beside {reference}" if reference else unit
        grid = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
        grid.add_column("workload", overflow="fold")
        for column in ("ours", "reference", "ratio", "at most"):
            grid.add_column(column, justify="right")
        grid.add_column("")
        for line in members:
            ratio = line.data.get("ratio")
            bounds = f" ({line.data['low']:.3f}-{line.data['high']:.3f})" if "low" in line.data else ""
            figure = line.reference_figure
            style = {"ok": "green", "miss": "red"}.get(line.verdict, "default")
            grid.add_row(
                line.name,
                f"{line.figure:,.1f}",
                "" if figure is None else f"{figure:,.1f}",
                "" if ratio is None else f"{ratio:.3f}{bounds}",
                line.target,
                f"[{style}]{line.verdict}[/]",
            )
        yield grid


def machine() -> str:
    """The machine, as far as it explains a figure."""
    model = platform.processor() or platform.machine()
    try:
        for text in Path("/proc/cpuinfo").read_text().splitlines():
            if text.startswith("model name"):
                model = text.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} logical cores, {platform.system()} {platform.release()}"


def main(arguments: list[str] | None = None, benches: tuple[Bench, ...] = BENCHES) -> int:
    """Run the benches asked for; the exit status is 1 where one fails, or misses under ``--strict``."""
    names = [bench.name for bench in benches]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="BENCH", help=f"any of {', '.join(names)}; all if none")
    parser.add_argument("--quick", action="store_true", help="short and rough")
    parser.add_argument("--strict", action="store_true", help="a missed target is a failure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every line here as well")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(names))
    if unknown:
        parser.error(f"no bench {', '.join(unknown)}; there are {', '.join(names)}")
    log = Console(stderr=True)
    console = Console() if sys.stdout.isatty() else Console(width=PLAIN_COLUMNS)
    lines: list[Line] = []
    failures: list[str] = []
    for bench in benches:
        if options.names and bench.name not in options.names:
            continue
        with log.status(f"{bench.name}: building") as status:
            try:
                for line in run(bench, quick=options.quick):
                    lines.append(line)
                    status.update(f"{bench.name}: {line.name}: {line.figure:,.1f} {line.unit}")
            except BenchError as error:
                failures.append(str(error))
    for grid in tables(lines):
        console.print(grid)
    console.print(f"on {machine()}")
    if options.json is not None:
        options.json.write_text("".join(json.dumps(line.data) + "\n" for line in lines))
    for failure in failures:
        log.print(f"[red]failed[/] {failure}")
    misses = sum(line.verdict == "miss" for line in lines)
    if misses:
        console.print(f"{misses} of {sum(line.verdict != '' for line in lines)} targets missed")
    return 1 if failures or (misses and options.strict) else 0


def end_at(number: int, _: object) -> None:
    """End as at Ctrl-C, so that the bench under way ends, too."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, end_at)
    sys.exit(main())
