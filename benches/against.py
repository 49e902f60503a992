"""Our probe beside NetPIPE on the same layer, launch by launch in turns: do they agree, and how fast is each?

    .venv/bin/python benches/against.py [--layers mpi/mpich,…] [--rounds 5] [--up-to 64KiB] [--hosts 2]

NetPIPE prints for each size the least, over a few trials, of the mean half round trip of many repeats. The
samples of ours are given the same treatment before they are compared, and the medians that wiretwin itself
reports stand beside. A ratio is that of ours to theirs within one round; its interval is over the rounds.
Ranks are pinned to the same cores in both.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from wiretwin.measure.host import measuring_cpus
from wiretwin.measure.launch import launch
from wiretwin.measure.running import rendezvous
from wiretwin.measure.schedule import Step, netpipe
from wiretwin.place import HERE, Place, host_of
from wiretwin.process import end_tree
from wiretwin.quantity import parse_size
from wiretwin.stacks import Session
from wiretwin.stacks.layers import Configuration, parse_layers, refusal

PEERS = {"socket/tcp": "NPtcp", "mpi/mpich": "NPmpich2", "mpi/openmpi": "NPopenmpi", "mpi/lam": "NPlam"}
TRIALS = 3
"""Trials of NetPIPE 3.7, of which it keeps the fastest."""
LIMIT_S = 180.0
TELLING = 0.25
"""An interval wider than this to either side tells nothing: the host was in several states."""
T_95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
"""Student's t at 97.5 % by the number of rounds."""


def theirs(
    configuration: Configuration,
    place: Place,
    session: Session | None,
    bounds: tuple[int, int],
    pins: tuple[int, int] | None,
    offset: int = 0,
    perturbation: int = 0,
) -> dict[int, float]:
    """Run NetPIPE once; return the half round trip by size, in microseconds."""
    program = PEERS[configuration.kind.name]
    with rendezvous(place) as directory:
        directory.chmod(0o777)
        out = directory / "np.out"
        words = [program, "-l", str(bounds[0]), "-u", str(bounds[1]), "-p", str(perturbation)]
        words += ["-O", f"{offset},{offset}"]
        if session is None:
            _sockets(words, place, out, pins)
        else:
            script = directory / "pin"
            cores = pins or (0, 0)
            prefix = f"taskset -c {cores[0]}", f"taskset -c {cores[1]}"
            choose = '[ "${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-$LAMRANK}}" = 0 ]'
            body = f'if {choose}; then exec {prefix[0]} "$@"; else exec {prefix[1]} "$@"; fi'
            free = 'exec "$@"'
            script.write_text(f"#!/bin/sh\n{body if pins else free}\n")
            script.chmod(0o755)
            (command,) = session.commands([str(script), *words, "-o"], [out], 2)
            _run(list(command.argv), dict(command.env))
        return {int(row[0]): float(row[2]) * 1e6 for row in map(str.split, out.read_text().splitlines())}


def _sockets(words: Sequence[str], place: Place, out: Path, pins: tuple[int, int] | None) -> None:
    """NPtcp is a pair of processes: the receiver first."""
    pin = [["taskset", "-c", str(core)] for core in pins] if pins else [[], []]
    receiver = subprocess.Popen(
        host_of(place, 1).command([*pin[1], *words]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = host_of(place, 1).address
        deadline = time.monotonic() + 10
        while ":138A" not in _listening(place) and time.monotonic() < deadline:  # port 5002
            time.sleep(0.01)
        _run(host_of(place, 0).command([*pin[0], *words, "-h", address, "-o", str(out)]), {})
        receiver.wait(10)
    finally:
        if receiver.poll() is None:
            end_tree(receiver)


def _listening(place: Place) -> str:
    argv = host_of(place, 1).command(["cat", "/proc/self/net/tcp"])
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20).stdout


def _run(argv: list[str], env: dict[str, str]) -> None:
    done = subprocess.run(
        argv,
        env=dict(os.environ) | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{argv[0]} ended with {done.returncode}: {done.stderr[-400:]}")


def ours(
    configuration: Configuration,
    place: Place,
    session: Session | None,
    sizes: Sequence[int],
    pins: tuple[int, int] | None,
    budget_ms: float,
) -> tuple[dict[int, float], dict[int, float]]:
    """Run our probe once; return by size NetPIPE's statistic of the samples, and the median, in us."""
    steps = [
        Step("echo", size, warmup=8, min_samples=12, max_samples=4000, budget_ms=budget_ms) for size in sizes
    ]
    outcome = launch(configuration, steps, limit_s=LIMIT_S, pins=pins, place=place, session=session)
    if outcome.status != "ok":
        sys.exit(f"{configuration.name}: {outcome.error}")
    least = {}
    for step in outcome.steps:
        values = [value / step["batch"] / 2000 for value in step["values_ns"]]
        third = max(1, len(values) // TRIALS)
        means = [statistics.fmean(values[at : at + third]) for at in range(0, third * TRIALS, third)]
        least[step["bytes"]] = min(means)
    return least, {size: median / 2000 for size, median in outcome.medians("echo").items()}


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of positive values and its 95 % interval."""
    logs = [math.log(value) for value in values]
    mean = statistics.fmean(logs)
    half = T_95[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def verdict(low: float, high: float) -> str:
    """Say what an interval of a ratio tells; one that would agree with anything tells nothing."""
    if math.sqrt(high / low) - 1 > TELLING:
        return "inconclusive"
    return "agree" if low <= 1 <= high else "differ"


@contextlib.contextmanager
def at(hosts: int, share: Sequence[Path] = ()) -> Iterator[Place]:
    """Yield this host, or a testbed of `hosts` hosts that see these folders."""
    if hosts == 1:
        yield HERE
        return
    from wiretwin.testbed import Testbed

    with Testbed.up(hosts, share=share) as bed:
        yield bed


def sessions(configuration: Configuration, place: Place) -> contextlib.AbstractContextManager[Session | None]:
    """Bring the stack of a layer up, if it has one."""
    stack = configuration.kind.stack
    return contextlib.nullcontext() if stack is None else stack.up(place, configuration.options)


def compare(configuration: Configuration, place: Place, args: argparse.Namespace) -> list[dict[str, object]]:
    """Launch ours and theirs in turns; return a row for each size."""
    pins = None if args.free else measuring_cpus()
    rounds = []
    with sessions(configuration, place) as session:
        for number in range(args.rounds):
            first = (
                theirs(configuration, place, session, args.bounds, pins, args.offset) if number % 2 else None
            )
            own = ours(configuration, place, session, args.sizes, pins, args.budget_ms)
            rounds.append(
                (own, first or theirs(configuration, place, session, args.bounds, pins, args.offset))
            )
    rows = []
    for size in args.sizes:
        if any(size not in peer for _, peer in rounds):
            continue
        ratio, low, high = interval([own[0][size] / peer[size] for own, peer in rounds])
        rows.append(
            {
                "layer": configuration.name,
                "bytes": size,
                "ours_us": statistics.median(own[0][size] for own, _ in rounds),
                "ours_median_us": statistics.median(own[1][size] for own, _ in rounds),
                "theirs_us": statistics.median(peer[size] for _, peer in rounds),
                "ratio": ratio,
                "low": low,
                "high": high,
                "verdict": verdict(low, high),
            }
        )
    return rows


def main() -> None:
    """Print a row for each layer and size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=5, choices=sorted(T_95))
    parser.add_argument("--from", dest="least", default="1")
    parser.add_argument("--up-to", default="64KiB")
    parser.add_argument("--offset", type=int, default=0, help="where in a page NetPIPE's buffers begin")
    parser.add_argument("--budget-ms", type=float, default=30.0, help="of each of our steps")
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--free", action="store_true", help="leave the ranks to the scheduler")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.bounds = parse_size(args.least, "--from"), parse_size(args.up_to, "--up-to")
    sizes = [size for size in netpipe(args.bounds[1], perturbation=0) if size & (size - 1) == 0]
    args.sizes = [size for size in sizes if size >= args.bounds[0]]
    with at(args.hosts) as place:
        for configuration in parse_layers(args.layers):
            program = PEERS.get(configuration.kind.name)
            reason = refusal(configuration, place)
            if program is None or reason is not None or shutil.which(program) is None:
                print(f"{configuration.name}: left out: {reason or 'no peer tool here'}")
                continue
            rows = compare(configuration, place, args)
            for row in rows:
                if args.json:
                    print(json.dumps(row), flush=True)
                else:
                    words = (
                        f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()
                    )
                    print("  ".join(word.rjust(9) for word in words), flush=True)
            if not args.json:
                print("  ".join(key.rjust(9) for key in rows[0]), flush=True)


if __name__ == "__main__":
    main()
