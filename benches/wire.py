"""Does the emulated wire keep its times? Real kernels at both ends, two namespaces, a TAP device each.

Prints one JSON line for each workload::

    {"bench": "wire/slope 10 Mbit/s", "unit": "% off the exact slope", "value": 0.3, "target_value": 3, ...}

- *slope*: UDP round trips with frames of 64 to 1400 octets, in turns; the slope of their median time
  against the size, beside the exact one, two serialisations of an octet. The median of several
  launches of the wire; all are in ``launches_percent``. What the two kernels themselves take for an
  octet is in it.
- *bulk*: one TCP connection by iperf3 in a process of its own, its first second left out, against the
  most that the wire can carry in full frames with timestamps (1448 of 1538 octets).
- *shared*: two pairs of hosts, a TCP connection each, on one medium; how much the pairs together miss
  of what frames and acknowledgements leave for data, and how far the lesser is behind the greater.

The wire has core 0 with a real-time priority, the hosts core 1.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import select
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from namespaces import Hosts, missing

SIZES = (64, 128, 256, 512, 768, 1024, 1280, 1400)
"""Frame sizes as Ethernet counts them, check sequence included."""

HEADERS = 14 + 4 + 20 + 8
"""Of these: Ethernet with check sequence, IPv4, UDP."""

RATES = {10: 3.0, 100: 3.0, 1000: 10.0}
"""Mbit/s, and the most that the slope may be off, in percent."""

LATE = "ns late"
LIMIT_S = 30.0
WIRE_PRIORITY = 40
HOST_PRIORITY = 10
DATA, FRAME, ACK = 1448, 1538, 90
"""Octets: data of a full segment with timestamps, its place on the line, an acknowledgement's place."""


def wire(medium: str, mbit_s: int) -> dict[str, Any]:
    """Return the wire of a workload."""
    return {
        "medium": medium,
        "rate_bit_s": mbit_s * 1_000_000,
        "delay_ns": 5_000,
        "cpu": 0,
        "priority": WIRE_PRIORITY,
    }


def receive(endpoint: socket.socket, buffer: bytearray) -> None:
    """Wait for a datagram by looking, for a sleeper wakes late and ever later the longer it slept."""
    end = time.perf_counter() + LIMIT_S
    while True:
        try:
            endpoint.recv_into(buffer)
            return
        except BlockingIOError:
            if time.perf_counter() > end:
                sys.exit(f"wire: a datagram did not come in {LIMIT_S:g} s")


@contextlib.contextmanager
def before_others() -> Iterator[None]:
    """Run on core 1 before all ordinary processes."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {1})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(HOST_PRIORITY))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, cores)


def round_trips(mbit_s: int, rounds: int, seed: int) -> tuple[dict[int, float], dict[str, Any]]:
    """Return the median round trip by frame size, in ns, and the wire's counters."""
    times: dict[int, list[int]] = {size: [] for size in SIZES}
    buffer = bytearray(2048)
    order = random.Random(seed)
    with Hosts(wire("duplex", mbit_s)) as hosts, contextlib.ExitStack() as stack:
        ends = []
        for number in (0, 1):
            with hosts.on(number):
                end = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            end.bind((hosts.address(number), 4000))
            ends.append(end)
        near, far = ends
        near.connect((hosts.address(1), 4000))
        far.connect((hosts.address(0), 4000))
        near.setblocking(False)
        far.setblocking(False)
        with before_others():
            for _ in range(rounds):
                for size in order.sample(SIZES, len(SIZES)):
                    payload = bytes(size - HEADERS)
                    start = time.perf_counter_ns()
                    near.send(payload)
                    receive(far, buffer)
                    far.send(payload)
                    receive(near, buffer)
                    times[size].append(time.perf_counter_ns() - start)
        counters = hosts.stop()
    return {size: statistics.median(of_size) for size, of_size in times.items()}, counters


def slope_of(medians: dict[int, float]) -> float:
    """Fit a straight line; its slope in ns per octet."""
    middle, level = statistics.mean(medians), statistics.mean(medians.values())
    above = sum((size - middle) * (ns - level) for size, ns in medians.items())
    return above / sum((size - middle) ** 2 for size in medians)


def slope(mbit_s: int, launches: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Compare the slope with the exact one."""
    exact = 2 * 8000 / mbit_s
    runs = [round_trips(mbit_s, rounds, seed) for seed in range(launches)]
    slopes = [slope_of(medians) for medians, _ in runs]
    percents = [100 * (found / exact - 1) for found in slopes]
    yield {
        "bench": f"wire/slope {mbit_s} Mbit/s",
        "unit": "% off the exact slope",
        "value": round(abs(statistics.median(percents)), 2),
        "target_value": RATES[mbit_s],
        "launches_percent": [round(percent, 2) for percent in percents],
        "slope_ns": round(statistics.median(slopes), 3),
        "exact_ns": exact,
        "medians_us": {size: round(ns / 1000, 2) for size, ns in runs[0][0].items()},
    }
    for share in ("p50", "p99"):
        late = [counters["lateness_ns"][share] for _, counters in runs]
        yield {
            "bench": f"wire/lateness {share}, round trips at {mbit_s} Mbit/s",
            "unit": LATE,
            "value": statistics.median(late),
            "max_ns": [counters["lateness_ns"]["max"] for _, counters in runs],
        }


def iperf(hosts: Hosts, pairs: list[tuple[int, int]], seconds: int) -> list[float]:
    """Run a TCP connection in each pair at the same time; Mbit/s of data received."""
    with contextlib.ExitStack() as stack:

        def start(host: int, *arguments: str) -> subprocess.Popen[bytes]:
            command = ["nice", "-n", "-20", "taskset", "-c", "1", "iperf3", "--forceflush"]
            process = subprocess.Popen(hosts.command(host, [*command, *arguments]), stdout=subprocess.PIPE)
            stack.enter_context(process)
            # Undone first: leaving the context of a process waits for its end.
            stack.callback(process.kill)
            return process

        servers = [start(server, "-s", "-1") for _, server in pairs]
        for process in servers:
            assert process.stdout is not None
            said = b""
            while b"listening" not in said:
                ready = select.select([process.stdout], [], [], LIMIT_S)[0]
                more = os.read(process.stdout.fileno(), 4096) if ready else b""
                if not more:
                    sys.exit(f"wire: iperf3 does not listen: {said!r}")
                said += more
        clients = [
            start(client, "-c", hosts.address(server), "-t", str(seconds), "-O", "1", "-J")
            for client, server in pairs
        ]
        reports = [json.loads(client.communicate(timeout=seconds + LIMIT_S)[0]) for client in clients]
        for process in servers:
            process.communicate(timeout=LIMIT_S)
    for report in reports:
        if "error" in report:
            sys.exit(f"wire: iperf3: {report['error']}")
    return [report["end"]["sum_received"]["bits_per_second"] / 1e6 for report in reports]


def processor_s(pid: int) -> float:
    """Return the processor time that a process has had."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bulk(mbit_s: int, seconds: int, target: float | None) -> Iterator[dict[str, Any]]:
    """Send as much as goes."""
    with Hosts(wire("duplex", mbit_s)) as hosts:
        assert hosts.process is not None
        start, before = time.monotonic(), processor_s(hosts.process.pid)
        [found] = iperf(hosts, [(0, 1)], seconds)
        share = (processor_s(hosts.process.pid) - before) / (time.monotonic() - start)
        counters = hosts.stop()
    most = mbit_s * DATA / FRAME
    yield {
        "bench": f"wire/bulk TCP at {mbit_s} Mbit/s",
        "unit": "% below what the wire carries",
        "value": round(100 * (1 - found / most), 2),
        **({} if target is None else {"target_value": target}),
        "mbit_s": round(found, 1),
        "most_mbit_s": round(most, 1),
        "core_share": round(share, 2),
    }
    late = counters["lateness_ns"]
    yield {
        "bench": f"wire/lateness p99, bulk at {mbit_s} Mbit/s",
        "unit": LATE,
        "value": late["p99"],
        "p50_ns": late["p50"],
        "max_ns": late["max"],
    }


def shared(mbit_s: int, seconds: int) -> Iterator[dict[str, Any]]:
    """Let two pairs talk on one medium."""
    with Hosts(wire("shared", mbit_s), count=4) as hosts:
        found = iperf(hosts, [(0, 1), (2, 3)], seconds)
        hosts.stop()
    # An acknowledgement for every second segment.
    most = mbit_s * 2 * DATA / (2 * FRAME + ACK)
    yield {
        "bench": f"wire/shared {mbit_s} Mbit/s, two pairs together",
        "unit": "% below what the wire carries",
        "value": round(100 * (1 - sum(found) / most), 2),
        "mbit_s": [round(each, 2) for each in found],
        "most_mbit_s": round(most, 2),
    }
    yield {
        "bench": f"wire/shared {mbit_s} Mbit/s, the lesser pair",
        "unit": "% below the greater",
        "value": round(100 * (1 - min(found) / max(found)), 2),
    }


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one launch, short")
    quick = parser.parse_args().quick
    reason = missing()
    if reason is None and len(os.sched_getaffinity(0)) < 2:
        reason = "needs two cores, one for the wire and one for the hosts"
    if reason is None and shutil.which("iperf3") is None:
        reason = "needs iperf3 (Debian: iperf3)"
    if reason is not None:
        print(f"wire: {reason}", file=sys.stderr)
        return 1
    launches, rounds, seconds = (1, 40, 2) if quick else (5, 150, 4)
    workloads = [slope(mbit_s, launches, rounds) for mbit_s in RATES]
    workloads += [bulk(100, seconds, None), bulk(1000, seconds, 5.0), shared(10, 2 * seconds)]
    late = []
    for line in itertools.chain.from_iterable(workloads):
        if line["unit"] == LATE:
            late.append(line)
        else:
            print(json.dumps(line), flush=True)
    for line in late:
        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
