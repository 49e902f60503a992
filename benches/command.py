"""The simulated world through the command line: processor time and memory of whole commands.

Each command is run as a user runs it, with a made-up twin, and waited for with all its children:
interpreters, imports, the run, the table. `ring` and `jacobi` are compiled programs, with a core for each
rank. The two scripts run on a host of two cores, and use mpi4py, whose messages run through Python; they
compute for less than is measured again, so that a command is one simulated run. A `Sendrecv` is the
difference between a long and a short one, over its calls.

Schedules in GOAL, a short and a long one, are read and replayed by turns, from one Python process that has
done so before; a message is what the long one takes more. Every rank has a core, as in the simulators of
schedules that the targets come from; the same on two cores, where the kernel is simulated too, is shown
beside it. Where LogGOPSim and its `txt2bin` are on the path, it replays the same schedules in turn, and the
ratio is shown; the time of `txt2bin`, which makes them binary for it, is left out.

Processor time is the machine's as much as the code's. The bare world of the same ring is in the bench
`programs`; here its figure per message includes what a command takes to start.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

#: A host whose messages take 0.5 + 0.7 + 0.6 us and 0.1 ns a byte.
TWIN = """
format = "wiretwin-twin"
version = 1
created_utc = "2026-01-01T00:00:00Z"
[source]
digest = "made up"
samples = 1
launches = 1
[host]
name = "made up"
cores = 2
idle = "yield"
quantum_ms = 4.0
"""
LAYER = """
[layers."{name}"]
t_0_us = {{ value = 1.8, low = 1.8, high = 1.8, launches = 1, samples = 1 }}
r_max_MB_s = {{ value = 9000, low = 9000, high = 9000, launches = 1, samples = 1 }}
n_half_bytes = {{ value = 16000, low = 16000, high = 16000, launches = 1, samples = 1 }}
call_ns = {{ value = 90, low = 90, high = 90, launches = 1, samples = 1 }}
rendezvous_from_bytes = 65537
"""
QUANTITY = """
[[layers."{name}".{quantity}]]
from_bytes = 0
base_ns = {{ value = {base}, low = {base}, high = {base} }}
per_byte_ns = {{ value = {per_byte}, low = {per_byte}, high = {per_byte} }}
samples = 1
"""
CALLS = (20, 1020)
"""How often each rank of the short and of the long run calls `Sendrecv`."""

TRIVIAL = """
from mpi4py import MPI

MPI.COMM_WORLD.barrier()
"""
SENDRECV = """
import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
here, there = np.zeros(16), np.zeros(16)
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
for _ in range(int(sys.argv[1])):
    comm.Sendrecv(here, right, recvbuf=there, source=left)
"""


def twin() -> str:
    """Return the twin, a layer for compiled programs and one for scripts."""
    text = TWIN
    for name in ("shm", "mpi4py/mpich"):
        text += LAYER.format(name=name)
        for quantity, base, per_byte in (
            ("overhead_send", 500, 0.05),
            ("overhead_recv", 600, 0.06),
            ("latency", 700, 0.02),
            ("gap", 100, 0.01),
        ):
            text += QUANTITY.format(name=name, quantity=quantity, base=base, per_byte=per_byte)
    return text


@dataclass(frozen=True, slots=True)
class Used:
    """What a command took with all its children: processor time, and the largest of their memories."""

    seconds: float
    megabytes: float


def command(folder: Path, words: Sequence[str]) -> Used:
    """Run `wiretwin` with `words` in `folder`, to its end."""
    return waited(
        folder, [sys.executable, "-c", "from wiretwin.cli import main; raise SystemExit(main())", *words]
    )


def waited(folder: Path, argv: Sequence[str]) -> Used:
    """Run a program in `folder`, to its end."""
    process = subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv[2:])} ended with status {process.returncode}")
    return Used(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)


def simulated(program: str, ranks: int, layer: str, *words: str) -> list[str]:
    """Return the words of a simulated run, of a script on two cores, of a compiled program on one a rank."""
    twin = "twin.toml" if program.endswith(".py") else "cores.toml"
    run = ["run", program, "--world", "simulated", "--twin", twin, "--ranks", str(ranks)]
    return [*run, "--layer", layer, "--", *words]


def ring(ranks: int, elements: int) -> list[str]:
    """Return the words of a round of `ring`."""
    return simulated("ring", ranks, "shm", f"elements={elements}", "rounds=1", "add=0.8ns")


REPLAY = """
import sys
import time
from statistics import median

from wiretwin import trace

twin, turns, *schedules = sys.argv[1:]
took = {schedule: [] for schedule in schedules}
for _ in range(1 + int(turns)):
    for schedule in schedules:
        begin = time.process_time()
        trace.replay(schedule, twin=twin, layer="shm", ends=False)
        took[schedule].append(time.process_time() - begin)
short, long = (median(seconds[1:]) for seconds in took.values())
print(long - short)
"""
TURNS = 7
"""How often each schedule is replayed."""
ROUNDS = {"ring of 1024 ranks": (10, 210), "alltoall of 64 ranks": (3, 53)}
"""How many rounds the short and the long schedule have."""


def schedule(kind: str, rounds: int) -> str:
    """Return a schedule in GOAL whose ranks wait for all of a round's messages before the next round."""
    ranks, others = (1024, 1) if kind.startswith("ring") else (64, 63)
    lines = [f"num_ranks {ranks}"]
    for rank in range(ranks):
        lines.append(f"rank {rank} {{")
        number = gate = 0
        for _ in range(rounds):
            begun = []
            for apart in range(1, others + 1):
                for text in (
                    f"recv 128b from {(rank - apart) % ranks}",
                    f"send 128b to {(rank + apart) % ranks}",
                ):
                    number += 1
                    lines.append(f"l{number}: {text} tag 0")
                    if gate:
                        lines.append(f"l{number} requires l{gate}")
                    begun.append(number)
            number += 1
            gate = number
            lines.append(f"l{gate}: calc 0")
            lines += [f"l{gate} requires l{one}" for one in begun]
        lines.append("}")
    return "\n".join(lines)


def replayed(folder: Path, kind: str, twin: str) -> float:
    """Return the nanoseconds of processor time that a message of a schedule takes to be read and replayed."""
    argv = [sys.executable, "-c", REPLAY, twin, str(TURNS), *(f"{rounds}.goal" for rounds in ROUNDS[kind])]
    done = subprocess.run(
        argv,
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return each_ns(kind, float(done.stdout))


def each_ns(kind: str, more_s: float) -> float:
    """Return the nanoseconds a message that the long schedule takes more, of how many seconds it does."""
    each = 1024 if kind.startswith("ring") else 64 * 63
    return 1e9 * more_s / (each * (ROUNDS[kind][1] - ROUNDS[kind][0]))


def by_loggopsim(folder: Path, kind: str) -> float:
    """Return the nanoseconds of processor time that a message takes LogGOPSim, with its own LogGP network."""
    took = [waited(folder, ["LogGOPSim", "-f", f"{rounds}.bin", "--batchmode"]) for rounds in ROUNDS[kind]]
    return each_ns(kind, took[1].seconds - took[0].seconds)


def replays(folder: Path, turns: int) -> None:
    """Show what a message of a schedule takes, beside LogGOPSim if it is there."""
    beside = all(map(shutil.which, ("LogGOPSim", "txt2bin")))
    for kind, target, theirs in (("ring of 1024 ranks", 350, 630), ("alltoall of 64 ranks", 450, 5150)):
        for rounds in ROUNDS[kind]:
            (folder / f"{rounds}.goal").write_text(schedule(kind, rounds))
            if beside:
                waited(folder, ["txt2bin", "-i", f"{rounds}.goal", "-o", f"{rounds}.bin"])
        unit = "ns of processor time per message"
        ours = []
        ratios = []
        for _ in range(turns):
            ours.append(replayed(folder, kind, "cores.toml"))
            if beside:
                ratios.append(ours[-1] / by_loggopsim(folder, kind))
        show(f"a schedule replayed, {kind}", unit, median(ours), target_value=target)
        if ratios:
            name = f"a schedule replayed, {kind}, beside LogGOPSim"
            show(name, "ratio", median(ratios), target_value=round(target / theirs, 3))
        show(f"a schedule replayed, {kind} on two cores", unit, replayed(folder, kind, "twin.toml"))


def show(bench: str, unit: str, value: float, **more: float) -> None:
    """Print a line."""
    print(json.dumps({"bench": f"command/{bench}", "unit": unit, "value": value, **more}), flush=True)


def main() -> None:
    """Print a line for each workload."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="once each, and only the small ones")
    quick = parser.parse_args().quick
    turns = 1 if quick else 3
    with tempfile.TemporaryDirectory(prefix="wiretwin-bench-") as name:
        folder = Path(name)
        (folder / "twin.toml").write_text(twin())
        (folder / "cores.toml").write_text(twin().replace("cores = 2", "cores = 16384"))
        (folder / "trivial.py").write_text(TRIVIAL)
        (folder / "sendrecv.py").write_text(SENDRECV)

        def used(words: Sequence[str]) -> Used:
            found = [command(folder, words) for _ in range(turns)]
            return Used(median(one.seconds for one in found), max(one.megabytes for one in found))

        trivial = used(simulated("trivial.py", 2, "mpi4py/mpich"))
        show("a trivial script, 2 ranks", "s of processor time", trivial.seconds, target_value=1.5)
        for elements in (1, 1024):
            took = used(ring(1024, elements))
            messages = 1024 * 2 * 1023
            name = f"ring of 1024 ranks, elements={elements}"
            show(name, "us of processor time per message", 1e6 * took.seconds / messages, MB=took.megabytes)
        short, long = (used(simulated("sendrecv.py", 64, "mpi4py/mpich", str(calls))) for calls in CALLS)
        each = 1e6 * (long.seconds - short.seconds) / (64 * (CALLS[1] - CALLS[0]))
        show("mpi4py Sendrecv, 64 ranks", "us of processor time per message", each, target_value=20)
        replays(folder, turns)
        if quick:
            return
        large = (
            ("ring of 4096 ranks, elements=1024", ring(4096, 1024)),
            (
                "jacobi of 16384 ranks, 100 iterations",
                simulated("jacobi", 16384, "shm", "iterations=100", "stencil-point=2ns"),
            ),
        )
        for name, words in large:
            took = command(folder, words)
            show(name, "s of processor time", took.seconds, target_value=60)
            show(f"{name}, memory", "MB", took.megabytes, target_value=1000)


if __name__ == "__main__":
    main()
