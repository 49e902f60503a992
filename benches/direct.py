"""The direct transport under unmodified MPIs, against each MPI's own paths.

Prints one JSON line for each comparison::

    {"bench": "direct/mpi/openmpi 8 B", "ns": 2300.0, "reference": "BTL tcp", "reference_ns": 5600.0,
     "ratio": 0.41, "low": ..., "high": ..., "target_ratio": 0.45, ...}

Two network namespaces of a testbed, joined by one pair of virtual Ethernet interfaces without a bridge, and
one core for each rank. In a turn every path is launched once and measures all sizes; the order alternates.
``ratio`` is the median over turns of ours over theirs in the same turn, each the median of its samples, where
*theirs* is the path whose median over all turns is least for the size; ``low`` and ``high`` are quartiles.
The kernel's paths run without our packet sockets on the interface: they go with our ranks. Without an MPI, a
packet socket of ours is held against a bare ping-pong of frames as long by one (``c/packet_pingpong.c``).
The rows of loss are of the same packet socket while both interfaces drop a hundredth of the frames that come
in (``lossy.py``): the 99th percentile of a round trip of 8 B, and the time of 1 MiB in a stream to
that without loss, through the same program on both interfaces, which then drops nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path as File
from typing import Any

from harness import compile_reference

from wiretwin.measure.host import measuring_cpus
from wiretwin.measure.launch import launch
from wiretwin.measure.schedule import Step
from wiretwin.place import HERE, Place
from wiretwin.stacks.layers import parse_layers, refusal
from wiretwin.testbed import Testbed

LIMIT_S = 60.0
STREAM = 64
"""Messages under way at once in the rows of message rate."""
TARGETS = {
    8: 0.45,
    1024: 0.55,
    4096: 1.10,
    16384: 1.35,
    65536: 1.35,
    1 << 17: 1.10,
    1 << 20: 1.10,
    4 << 20: 1.10,
}
"""The most that one way may take, by size, as a share of the best path of the kernel."""
RATE_TARGET = 0.5
MEMORY_TARGET = 1.4
BARE_TARGET = 1.25
LOST_ONE_IN = 100
LOSES_NONE = (1 << 31) - 1
"""So seldom that a bench loses none: what is left is the cost of the program itself."""
P99_TARGET_US = 500.0
LOSS_TARGET = 2.0
"""The most that a message of 1 MiB may take under loss, as a multiple of its time without."""
BARE_BYTES = 28 + 48
"""What follows the Ethernet header of a frame with 8 B: IPv4 and UDP, and our header with a tag."""


@dataclass(frozen=True)
class Path:
    """A layer and what is set for it."""

    name: str
    layer: str
    env: Mapping[str, str] = field(default_factory=dict)


HERE_FOLDER = File(__file__).resolve().parent
OFI = {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi"}
PATHS = {
    "openmpi": (
        Path("BTL tcp", "mpi/openmpi"),
        Path("libfabric tcp", "mpi/openmpi", {**OFI, "OMPI_MCA_mtl_ofi_provider_include": "tcp;ofi_rxm"}),
        Path("libfabric net", "mpi/openmpi", {**OFI, "OMPI_MCA_mtl_ofi_provider_include": "net"}),
        Path("direct", "mpi/openmpi+direct"),
    ),
    "mpich": (
        Path("libfabric tcp", "mpi/mpich+wheel", {"FI_PROVIDER": "tcp", "MPIR_CVAR_CH4_NETMOD": "ofi"}),
        Path("UCX tcp", "mpi/mpich"),
        Path("direct", "mpi/mpich+direct"),
    ),
}
MEMORY = {
    "openmpi": (Path("its own shared memory", "mpi/openmpi"), Path("direct", "mpi/openmpi+direct")),
    "mpich": (Path("its own shared memory", "mpi/mpich+wheel"), Path("direct", "mpi/mpich+direct")),
}


@contextlib.contextmanager
def setting(env: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for a while."""
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def join_directly(bed: Testbed) -> None:
    """Replace the interfaces of both hosts, which lead to a bridge, by one pair that is up.

    The kernel says a little later that an interface runs, and UCX leaves out one that does not.
    """
    hosts = bed.hosts

    def on(number: int, *argv: str) -> str:
        command = hosts[number].command(argv)
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout

    holder = subprocess.Popen(
        hosts[1].command(["sh", "-c", "echo $$; exec sleep 60"]), stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        namespace = f"/proc/{holder.pid}/ns/net"
        macs = [json.loads(on(at, "ip", "-j", "link", "show", "eth0"))[0]["address"] for at in (0, 1)]
        for at in (0, 1):
            on(at, "ip", "link", "set", "eth0", "name", "old0")
            on(at, "ip", "address", "flush", "dev", "old0")
            on(at, "ip", "link", "set", "old0", "down")
        ends = [["name", "eth0", "address", mac] for mac in macs]
        on(0, "ip", "link", "add", *ends[0], "type", "veth", "peer", *ends[1], "netns", namespace)
    finally:
        holder.kill()
        holder.wait()
    for at in (0, 1):
        on(at, "ip", "address", "add", f"{hosts[at].address}/24", "dev", "eth0")
        on(at, "ip", "link", "set", "eth0", "up")
    end = time.monotonic() + LIMIT_S
    while any(
        json.loads(on(at, "ip", "-j", "link", "show", "eth0"))[0]["operstate"] != "UP" for at in (0, 1)
    ):
        assert time.monotonic() < end, "an interface that does not come up"
        time.sleep(0.02)


def steps(sizes: Sequence[int], scale: int, rate: bool) -> list[Step]:
    """Return the schedule of a launch: one way by size, and the rate of messages of 8 B."""
    found = []
    for size in sizes:
        samples = scale * max(10, min(200, (1 << 22) // max(size, 1)))
        found.append(
            Step(
                "echo",
                size,
                warmup=50,
                min_samples=samples // 4,
                max_samples=samples,
                budget_ms=300.0,
                batch=1,
            )
        )
    if rate:
        found.append(
            Step("stream", 8, messages=STREAM, warmup=20, min_samples=50, max_samples=200 * scale, batch=1)
        )
    return found


def measured(path: Path, schedule: list[Step], place: Place) -> list[float] | None:
    """Launch a path once; the median of each step in nanoseconds, one way or of a message."""
    (configuration,) = parse_layers(path.layer)
    if refused := refusal(configuration, place):
        print(f"direct: {path.name} of {path.layer} is left out: {refused}", file=sys.stderr)
        return None
    with setting(path.env):
        outcome = launch(configuration, schedule, limit_s=LIMIT_S, pins=measuring_cpus(), place=place)
    if outcome.status != "ok":
        print(f"direct: {path.name} of {path.layer}: {outcome.error}", file=sys.stderr)
        return None
    share = [2 if step.loop == "echo" else step.messages for step in schedule]
    return [
        statistics.median(step["values_ns"]) / step.get("batch", 1) / one
        for step, one in zip(outcome.steps, share, strict=True)
    ]


def bare(bed: Testbed, binary: File, samples: int) -> float:
    """The median of the bare ping-pong between both hosts in nanoseconds, one way."""
    hosts, roles = bed.hosts, ("first", "second")

    def mac(at: int) -> str:
        command = hosts[at].command(["ip", "-j", "link", "show", "eth0"])
        out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
        return str(json.loads(out)[0]["address"])

    ends = []
    try:
        for at, cpu in enumerate(measuring_cpus() or (0, 0)):
            counts = map(str, (BARE_BYTES, samples, 50, cpu))
            command = hosts[at].command([str(binary), "eth0", mac(1 - at), *counts, roles[at]])
            ends.append(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
            )
        for end in ends:
            assert end.stdout is not None
            assert end.stdout.readline() == "ready\n"
        times, _ = ends[0].communicate("go\n", timeout=LIMIT_S)
        return statistics.median(map(float, times.split())) / 2
    finally:
        for end in ends:
            end.kill()
            end.wait()


@contextlib.contextmanager
def losing(bed: Testbed, one_in: int) -> Iterator[None]:
    """Have the interfaces of all hosts drop one frame in so many of those that come in."""
    with contextlib.ExitStack() as stack:
        for host in bed.hosts:
            command = host.command([sys.executable, str(HERE_FOLDER / "lossy.py"), "eth0", str(one_in)])
            end = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            stack.callback(end.communicate, timeout=LIMIT_S)
            assert end.stdout is not None
            assert end.stdout.readline() == "ready\n"
        yield


def loss_rows(bed: Testbed, scale: int, turns: int) -> list[dict[str, Any]]:
    """Measure a packet socket of ours with and without loss; return the rows."""
    (configuration,) = parse_layers("direct/packet")
    echo = Step("echo", 8, warmup=50, min_samples=1000, max_samples=2000 * scale, budget_ms=5e3, batch=1)
    stream = Step("stream", 1 << 20, messages=16, warmup=1, min_samples=10, max_samples=20, budget_ms=5e3)
    tails: list[float] = []
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(turns):
        for lossy in (False, True):
            with losing(bed, LOST_ONE_IN if lossy else LOSES_NONE):
                outcome = launch(
                    configuration, [echo, stream], limit_s=LIMIT_S, pins=measuring_cpus(), place=bed
                )
            if outcome.status != "ok":
                print(f"direct: {configuration.name} with loss: {outcome.error}", file=sys.stderr)
                return []
            round_trips, streams = (step["values_ns"] for step in outcome.steps)
            times[lossy].append(statistics.median(streams) / 16)
            if lossy:
                tails.append(statistics.quantiles(round_trips, n=100)[98] / 1e3)
    ratio = statistics.median(
        with_ / without for without, with_ in zip(times[False], times[True], strict=True)
    )
    return [
        {
            "bench": "direct/packet 8 B, 1 % lost, p99 of a round trip",
            "value": round(statistics.median(tails), 1),
            "unit": "us",
            "target_value": P99_TARGET_US,
        },
        {
            "bench": "direct/packet 1 MiB in a stream, 1 % lost",
            "ns": round(statistics.median(times[True]), 1),
            "reference": "without loss",
            "reference_ns": round(statistics.median(times[False]), 1),
            "ratio": round(ratio, 3),
            "target_ratio": LOSS_TARGET,
        },
    ]


def compare(
    paths: Sequence[Path], figures_of: Callable[[Path], list[float] | None], turns: int
) -> dict[str, list[list[float]]]:
    """Return each path's figures of every turn; a path that does not run is left out."""
    found: dict[str, list[list[float]]] = {path.name: [] for path in paths}
    for turn in range(turns):
        for path in paths if turn % 2 == 0 else paths[::-1]:
            if path.name not in found:
                continue
            figures = figures_of(path)
            if figures is None:
                del found[path.name]
            else:
                found[path.name].append(figures)
    return found


def line(name: str, found: Mapping[str, list[list[float]]], at: int, target: float | None) -> dict[str, Any]:
    """Return one row: ours to the best of theirs."""
    ours = [figures[at] for figures in found.get("direct", ())]
    others = {
        path: [figures[at] for figures in turns]
        for path, turns in found.items()
        if path != "direct" and turns
    }
    if not ours or not others:
        sys.exit(
            f"direct: {name}: {'every path of the kernel' if ours else 'the direct transport'} has failed"
        )
    best = min(others, key=lambda path: statistics.median(others[path]))
    ratios = [mine / theirs for mine, theirs in zip(ours, others[best], strict=True)]
    low, middle, high = (
        statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    )
    row = {
        "bench": f"direct/{name}",
        "ns": round(statistics.median(ours), 1),
        "reference": best,
        "reference_ns": round(statistics.median(others[best]), 1),
        "ratio": round(middle, 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "turns": len(ours),
    }
    return row if target is None else row | {"target_ratio": target}


def main() -> int:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three turns of few samples")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--mpi", choices=sorted(PATHS))
    parser.add_argument("--sizes", help="sizes in bytes with commas between")
    parser.add_argument("--only", choices=["hosts", "memory", "loss"])
    options = parser.parse_args()
    turns = options.turns or (3 if options.quick else 9)
    scale = 1 if options.quick else 5
    sizes = [int(size) for size in options.sizes.split(",")] if options.sizes else list(TARGETS)
    chosen = [options.mpi] if options.mpi else list(PATHS)
    if os.geteuid() != 0:
        print("direct: left out: namespaces with one pair of interfaces need root", file=sys.stderr)
        return 0
    if options.only in (None, "loss"):
        with Testbed.up(2, name=f"db-{os.getpid()}") as bed:
            join_directly(bed)
            for row in loss_rows(bed, scale, turns):
                print(json.dumps(row), flush=True)
    if options.only in (None, "hosts"):
        with Testbed.up(2, name=f"db-{os.getpid()}") as bed:
            join_directly(bed)
            for mpi in chosen:
                of = partial(measured, schedule=steps(sizes, scale, rate=True), place=bed)
                found = compare(PATHS[mpi], of, turns)
                for at, size in enumerate(sizes):
                    print(json.dumps(line(f"{mpi} {size} B", found, at, TARGETS.get(size))), flush=True)
                rate = line(f"{mpi} 8 B, {STREAM} under way, each", found, len(sizes), RATE_TARGET)
                print(json.dumps(rate), flush=True)
            with tempfile.TemporaryDirectory(dir=bed.directory) as folder:
                binary = compile_reference("packet_pingpong", File(folder))
                (step,) = steps([8], scale, rate=False)
                figures: dict[str, list[list[float]]] = {"a bare packet socket": [], "direct": []}
                for _ in range(turns):
                    ours = measured(Path("direct", "direct/packet"), [step], bed)
                    if ours is None:
                        break
                    figures["direct"].append(ours)
                    figures["a bare packet socket"].append([bare(bed, binary, step.max_samples)])
                else:
                    print(json.dumps(line("packet 8 B, without MPI", figures, 0, BARE_TARGET)), flush=True)
    if options.only in (None, "memory"):
        for mpi in chosen:
            of = partial(measured, schedule=steps([8], scale, rate=False), place=HERE)
            found = compare(MEMORY[mpi], of, turns)
            print(json.dumps(line(f"{mpi} 8 B, one host", found, 0, MEMORY_TARGET)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
