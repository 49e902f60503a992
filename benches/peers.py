"""Our probes beside the tools that other people measure the same layers with, in interleaved rounds.

``python benches/peers.py`` prints a table: for each layer and size the median half round trip of ours and of
theirs over the rounds, each with its range. In a round every pair runs once, ours and theirs one after the
other, so that a slow minute of the host falls on both. Both ends are pinned alike. A tool that is not
installed is named and passed over.

Like is compared with like: sockperf and ucx_perftest give a median, fi_pingpong a mean with the making of its
connection in it, which two runs of it tell apart, NPpvm the best of three means, and ours is taken in the
same way from all samples of a launch. On a busy host the last two are high, and differ from one run to the
next by what else ran.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from wiretwin import process
from wiretwin.measure import host
from wiretwin.measure.launch import launch
from wiretwin.measure.schedule import Step
from wiretwin.place import HERE
from wiretwin.stacks import STACKS
from wiretwin.stacks.layers import parse_layers
from wiretwin.stacks.wheels import WHEELS

SIZES = (64, 1024, 16384)
LIMIT_S = 20.0
IMB = str(WHEELS["intel"].folder / "bin" / "IMB-MPI1")
Readings = dict[int, float]
"""Half round trips in microseconds by size."""


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def serving(argv: Sequence[str], cpu: int, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """Keep a tool's server up on a core."""
    with process.child(["taskset", "-c", str(cpu), *argv], env=full(env)) as (child, _, _):
        yield
        if child.poll() is None:
            process.end_tree(child)


def full(env: Mapping[str, str] | None) -> dict[str, str] | None:
    return None if env is None else process.single_threaded() | dict(env)


def client(argv: Sequence[str], cpu: int, wanted: str, env: Mapping[str, str] | None = None) -> list[float]:
    """Run a tool's client on a core until it finds its server; return the numbers that `wanted` finds."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        done = process.run(["taskset", "-c", str(cpu), *argv], limit_s=LIMIT_S, env=full(env))
        match = re.search(wanted, done.stdout + done.stderr, re.MULTILINE)
        if done.returncode == 0 and match is not None:
            return [float(number) for number in match.groups()]
        if time.monotonic() > deadline:
            raise RuntimeError(f"{argv[0]} ended with {done.returncode}: {done.last_words()}")
        time.sleep(0.05)


def sizes_of(tool: str, lines: Sequence[tuple[str, str]], done: process.Finished) -> Readings:
    """Return what a tool printed for the wanted sizes; name those that it left out, and how it ended."""
    found = {int(size): float(value) for size, value in lines}
    missing = ", ".join(f"{size} B" for size in SIZES if size not in found)
    if missing:
        how = f"it ended with {done.returncode}: {done.last_words()}"
        print(f"{tool} printed no line for {missing}; {how}; left out of this round", file=sys.stderr)
    return {size: found[size] for size in SIZES if size in found}


def sockperf(protocol: str) -> Callable[[tuple[int, int]], Readings]:
    def run(cpus: tuple[int, int]) -> Readings:
        found = {}
        for size in SIZES:
            port = ["-i", "127.0.0.1", "-p", str(free_port()), *(["--tcp"] if protocol == "tcp" else [])]
            with serving(["sockperf", "server", *port], cpus[1]):
                words = ["sockperf", "ping-pong", *port, "-m", str(size), "-t", "1"]
                (found[size],) = client(words, cpus[0], r"percentile 50\.000 =\s*([\d.]+)")
        return found

    return run


def ucx(tls: str) -> Callable[[tuple[int, int]], Readings]:
    def run(cpus: tuple[int, int]) -> Readings:
        found = {}
        env = {"UCX_TLS": tls, "UCX_WARN_UNUSED_ENV_VARS": "n"}
        for size in SIZES:
            port = str(free_port())
            with serving(["ucx_perftest", "-p", port], cpus[1], env):
                words = [
                    "127.0.0.1",
                    "-p",
                    port,
                    "-t",
                    "tag_lat",
                    "-s",
                    str(size),
                    "-n",
                    "10000",
                    "-w",
                    "1000",
                ]
                (found[size],) = client(["ucx_perftest", *words], cpus[0], r"^Final:\s+\d+\s+([\d.]+)", env)
        return found

    return run


def past_start(short: tuple[int, float], long: tuple[int, float]) -> float:
    """Return the mean of what a longer run has more than a shorter one.

    Both have the same cost at their start, which falls out. Each run is a count and its mean.
    """
    return (long[0] * long[1] - short[0] * short[1]) / (long[0] - short[0])


FABRIC_COUNTS = (5000, 20000)
"""Round trips of two runs of fi_pingpong, whose first message, within what it times, makes the connection."""


def fabric(provider: str) -> Callable[[tuple[int, int]], Readings]:
    wanted = r"^\d+\w*\s.*s\s+[\d.]+\s+([\d.]+)\s+[\d.]+\s*$"

    def run(cpus: tuple[int, int]) -> Readings:
        found = {}
        for size in SIZES:
            means = []
            for count in FABRIC_COUNTS:
                port = str(free_port())
                words = ["fi_pingpong", "-p", provider, "-e", "rdm", "-m", "tagged"]
                words += ["-I", str(count), "-S", str(size)]
                with serving([*words, "-B", port], cpus[1]):
                    means += client([*words, "-P", port, "127.0.0.1"], cpus[0], wanted)
            short, long = zip(FABRIC_COUNTS, means, strict=True)
            found[size] = past_start(short, long)
        return found

    return run


def netpipe_pvm(cpus: tuple[int, int]) -> Readings:
    """NPpvm: direct route and data in place, hard-wired."""
    stack = STACKS["pvm/pvm3"]
    (configuration,) = parse_layers("pvm/pvm3+advise+inplace")
    with stack.up(HERE, configuration.options) as session:
        # The command that sets a rank's variables, with another program in the place of the probe.
        (one, two) = session.commands(["NPpvm"], [HERE.directory, HERE.directory], 2)
        words = ["-l", str(min(SIZES)), "-u", str(max(SIZES) + 1), "-p", "0", "-n", "500", "-o", "/dev/null"]
        receiver = subprocess.Popen(
            ["taskset", "-c", str(cpus[1]), *list(two.argv)[:-1], *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        try:
            sender = ["taskset", "-c", str(cpus[0]), *list(one.argv)[:-1], "-h", "localhost", *words]
            done = process.run(sender, limit_s=LIMIT_S)
        finally:
            receiver.kill()
            receiver.wait()
    lines = re.findall(r"(\d+) bytes\s+\d+ times -->.* in\s+([\d.]+) usec", done.stdout + done.stderr)
    return sizes_of("NPpvm", lines, done)


def imb(cpus: tuple[int, int]) -> Readings:
    """IMB-MPI1 of the Intel MPI that `wiretwin doctor --get intel` brings, over its libfabric's TCP."""
    (configuration,) = parse_layers("mpi/intel+tcp")
    with STACKS["mpi/intel"].up(HERE, configuration.options) as session:
        powers = f"{min(SIZES).bit_length() - 1}:{max(SIZES).bit_length() - 1}"
        pinned = f'exec taskset -c $([ "$PMI_RANK" = 0 ] && echo {cpus[0]} || echo {cpus[1]}) "$@"'
        words = ["sh", "-c", pinned, "rank", IMB, "PingPong", "-msglog", powers, "-iter", "5000"]
        # The path of a specification is the last word of a rank's command; IMB is given none.
        (command,) = session.commands(words, [HERE.directory], 2)
        done = process.run(command.argv[:-1], limit_s=LIMIT_S, env=full(command.env))
    rows = re.findall(r"^ +(\d+) +\d+ +([\d.]+) +[\d.]+$", done.stdout, re.MULTILINE)
    return sizes_of("IMB-MPI1", rows, done)


def readings(name: str, run: Callable[[tuple[int, int]], Readings], cpus: tuple[int, int]) -> Readings:
    """Run a tool once; one that does not end, or fails, is named and has no readings in this round."""
    try:
        return run(cpus)
    except (process.TimeLimit, RuntimeError) as failure:
        said = failure.finished.last_words() if isinstance(failure, process.TimeLimit) else ""
        print(f"{name}: {failure}; left out of this round {said}".rstrip(), file=sys.stderr)
        return {}


PEERS: Sequence[tuple[str, str, str, str, Callable[[tuple[int, int]], Readings]]] = (
    ("socket/tcp", "sockperf", "sockperf --tcp", "median", sockperf("tcp")),
    ("socket/udp", "sockperf", "sockperf", "median", sockperf("udp")),
    ("pvm/pvm3+advise+inplace", "NPpvm", "NPpvm", "best", netpipe_pvm),
    ("mpi/intel+tcp", IMB, "IMB PingPong", "mean", imb),
    ("ucx", "ucx_perftest", "ucx_perftest tag_lat", "median", ucx("tcp,self")),
    ("ucx+shm", "ucx_perftest", "ucx_perftest tag_lat", "median", ucx("sm,self")),
    ("libfabric", "fi_pingpong", "fi_pingpong tagged, past its start", "mean", fabric("tcp;ofi_rxm")),
    ("libfabric+shm", "fi_pingpong", "fi_pingpong tagged, past its start", "mean", fabric("shm")),
)
"""Layer, program, what the table calls it, which statistic it gives, how it is run."""


def of(values: Sequence[float], statistic: str) -> float:
    """Return a statistic of a launch's samples, as a tool would take it."""
    if statistic == "median":
        return statistics.median(values)
    if statistic == "mean":
        return statistics.fmean(values)
    third = len(values) // 3
    return min(statistics.fmean(values[at * third : (at + 1) * third]) for at in range(3))


def ours(name: str, cpus: tuple[int, int], statistic: str) -> Readings:
    """Measure one layer once by our own probe."""
    (configuration,) = parse_layers(name)
    steps = [Step("echo", size, min_samples=500, max_samples=20000, budget_ms=150.0) for size in SIZES]
    outcome = launch(configuration, steps, limit_s=LIMIT_S, pins=cpus)
    if outcome.status != "ok":
        raise RuntimeError(f"{name}: {outcome.error}")
    return {
        step["bytes"]: of(step["values_ns"], statistic) / step["batch"] / 2000.0 for step in outcome.steps
    }


def row(name: str, tool: str, size: int, mine: Sequence[float], theirs: Sequence[float]) -> str:
    """Return a line of the table."""

    def shown(values: Sequence[float]) -> str:
        return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"

    if not mine or not theirs:
        return f"| `{name}` | {tool} | {size} | {shown(mine) if mine else ''} | | | no line |"

    ratio = statistics.median(mine) / statistics.median(theirs)
    apart = max(mine) < min(theirs) or max(theirs) < min(mine)
    verdict = "apart" if apart else "agree"
    return f"| `{name}` | {tool} | {size} | {shown(mine)} | {shown(theirs)} | {ratio:.2f} | {verdict} |"


def main() -> int:
    """Run the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="layers, separated by commas")
    options = parser.parse_args()
    cpus = host.measuring_cpus() or (0, 0)
    wanted = [name for name in options.only.split(",") if name]
    mine: dict[str, list[Readings]] = {}
    theirs: dict[str, list[Readings]] = {}
    present = []
    for name, program, tool, statistic, run in PEERS:
        if shutil.which(program) is None:
            print(f"{name}: no `{program}` here", file=sys.stderr)
        elif not wanted or name in wanted:
            present.append((name, f"{tool} ({statistic})", statistic, run))
    for number in range(options.rounds):
        for name, _, statistic, run in present if number % 2 == 0 else present[::-1]:
            mine.setdefault(name, []).append(ours(name, cpus, statistic))
            theirs.setdefault(name, []).append(readings(name, run, cpus))
    print("| layer | tool | bytes | ours, us | theirs, us | ratio | |")
    print("|---|---|---|---|---|---|---|")
    for name, tool, _, _ in present:
        for size in SIZES:
            pair = ([one[size] for one in rounds[name] if size in one] for rounds in (mine, theirs))
            print(row(name, tool, size, *pair))
    return 0


if __name__ == "__main__":
    sys.exit(main())
