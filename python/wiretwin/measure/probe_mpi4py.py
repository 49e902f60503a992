"""The probe for mpi4py: the probe protocol over ``comm.Send`` and ``comm.Recv`` on NumPy arrays.

Run as ``mpiexec -n 2 python -m wiretwin.measure.probe_mpi4py SPEC``. Both ranks read the same
specification, whose ``rank`` and ``size`` are null (MPI knows them) and whose ``pin_cpu`` is a list,
one CPU per rank, or null. Messages travel as an ordinary user sends them: upper-case calls given a
NumPy array, so that what a twin learns here is what a script will pay.

- Each rank is pinned before MPI starts, so that threads of the library inherit it.
- The garbage collector is off while samples are taken.

Deviation: a rank that reaches ``limit_s`` is ended by the alarm's default action, without an ``error``
line: inside a call of MPI it runs no Python. The harness sees the alarm in what the launcher says.

The loops are defined in ``docs/reference/probe-protocol.md``.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import json
import math
import os
import signal
import statistics
import sys
import time
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretwin import priority
from wiretwin.measure import first_mpi4py
from wiretwin.measure.loops_mpi4py import LOOPS, ON_ONE_CORE, Echo, Fetch, Loop, RecvBusy, on_one_core
from wiretwin.measure.probe_spec import PROTOCOL, read, refuse
from wiretwin.measure.together_mpi4py import LOOPS as TOGETHER
from wiretwin.measure.together_mpi4py import Group, next_run
from wiretwin.place import read_counters

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

LAYERS = ("mpi4py/mpich", "mpi4py/openmpi")
RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK")
"""Where the launchers say the rank, before MPI starts."""
now = time.perf_counter_ns


def clock() -> dict[str, Any]:
    """Measure the clock: what a reading costs and how finely it ticks."""
    costs, ticks = [], []
    for _ in range(15):
        readings = [now() for _ in range(1000)]
        costs.append((readings[-1] - readings[0]) / 999)
        ticks += [b - a for a, b in itertools.pairwise(readings) if b > a]
    return {"name": "CLOCK_MONOTONIC", "cost_ns": min(costs), "resolution_ns": min(ticks)}


SETTLE = 2
"""Untimed iterations at the start of each run: the first ones still feel the control message."""
LONG_NS = 200_000
"""From so long an iteration on a control message is lost in it, and runs begin without untimed ones."""
SOUNDINGS = 10
"""Round trips that tell how long to pause before a timed receive."""
SLOW_SOUNDINGS = 4
"""And of messages beyond `QUICK_BYTES`, of which each takes longer than what disturbs it."""
QUICK_BYTES = 1 << 16
LEAST_PAUSE_NS = 20_000
CROSSING_LIMIT_S = 0.2
"""The longest to wait for the other rank, to see how far away it is."""


class Leader:
    """Rank 0 of a step: orders runs of iterations, decides how many, keeps the samples.

    Parameters
    ----------
    comm, control
        Communicators of the messages and of the orders.
    step
        The step, as in the specification.
    clock_ns
        Cost of one reading of the clock.
    known
        Sizes that have come back unchanged; with the median round trip, nanoseconds, if an echo was timed.
    """

    def __init__(
        self,
        comm: Comm,
        control: Comm,
        step: dict[str, Any],
        clock_ns: float,
        known: dict[int, float | None],
    ) -> None:
        self.comm, self.control, self.step, self.clock_ns = comm, control, step, clock_ns
        self.known = known
        self.payload_out = self.payload_in = 0

    def run(self, index: int) -> dict[str, Any]:
        """Take the samples; return the ``samples`` line."""
        step = self.step
        size = int(step["bytes"])
        loop = LOOPS[step["loop"]](self.comm, step)
        if not (loop.alone or loop.silent):
            if size not in self.known:
                self._verify(loop if isinstance(loop, Echo) else Echo(self.comm, step))
                self.known[size] = None
            if isinstance(loop, RecvBusy | Fetch) and not loop.pause_ns:
                typical = self.known[size] or self._sounded(Echo(self.comm, step))
                loop.pause_ns = LEAST_PAUSE_NS + round(2 * typical)
        self._order(loop, step["loop"], 1)
        (first,) = loop.lead(1, 1)
        warmup = int(step["warmup"])
        fastest = min(self._groups(loop, step["loop"], warmup) or [float(first)])
        batch = self._batch(loop, fastest)
        values: list[int] = []
        spent, estimate = 0.0, fastest * batch
        while count := next_run(step, len(values), spent, estimate):
            settle = SETTLE if estimate < LONG_NS * batch else 0
            self._order(loop, step["loop"], settle + count * batch)
            start = now()
            loop.lead(settle, 1)
            values += loop.lead(count, batch)
            took = now() - start
            spent += took
            estimate = took / count
        if type(loop) is Echo:
            self.known[size] = statistics.median(values) / batch
        return {
            "event": "samples",
            "step": index,
            "loop": step["loop"],
            "bytes": size,
            "messages": loop.messages,
            "delay_ns": int(step["delay_ns"]),
            "pause_ns": loop.pause_ns if isinstance(loop, RecvBusy | Fetch) else 0,
            "batch": batch,
            "first_ns": first,
            "values_ns": values,
        }

    def _order(self, loop: Loop, name: str, iterations: int) -> None:
        if not loop.alone:
            self.control.send((name, iterations), dest=1)
        out, back = loop.payload
        self.payload_out += out * iterations
        self.payload_in += back * iterations

    def _verify(self, echo: Echo) -> None:
        self._order(echo, "echo", 1)
        echo.lead(1, 1)
        if not (echo.into == echo.out).all():
            raise RuntimeError("the bytes that came back are not those that were sent")

    def _sounded(self, echo: Echo) -> float:
        """Return the typical round trip in nanoseconds, of a few."""
        count = SOUNDINGS if int(self.step["bytes"]) <= QUICK_BYTES else SLOW_SOUNDINGS
        return statistics.median(self._groups(echo, "echo", count))

    def _groups(self, loop: Loop, name: str, iterations: int) -> list[float]:
        """Do iterations in up to four groups; return the mean time of an iteration in each."""
        means = []
        size = -(-iterations // 4)
        while iterations > 0:
            count = min(size, iterations)
            self._order(loop, name, count)
            start = now()
            loop.lead(count, 1)
            means.append((now() - start) / count)
            iterations -= count
        return means

    def _batch(self, loop: Loop, iteration_ns: float) -> int:
        """Choose the iterations per sample, so that one reading of the clock costs at most 1 % of it."""
        if loop.inside:
            return 1
        return int(self.step["batch"]) or max(1, math.ceil(100 * self.clock_ns / iteration_ns))


def counted(leader: Leader, index: int, interface: str | None) -> dict[str, Any]:
    """Run a step; its line says what the interface carried meanwhile, if one is named."""
    if interface is None:
        return leader.run(index)
    before = carried(interface)
    line = leader.run(index)
    after = carried(interface)
    payload = {"payload_out": leader.payload_out, "payload_in": leader.payload_in}
    return line | {"network": payload | {key: after[key] - count for key, count in before.items()}}


def carried(interface: str) -> dict[str, int]:
    """Read what an interface has carried since it was made."""
    found = read_counters(Path("/proc/self/net/dev").read_text(), interface)
    if found is None:
        raise RuntimeError(f"there is no interface `{interface}`")
    return asdict(found)


def serve(comm: Comm, control: Comm, step: dict[str, Any]) -> None:
    """Do on rank 1 what rank 0 orders, until it orders nothing more."""
    loops: dict[str, Loop] = {}
    while True:
        name, iterations = control.recv(source=0)
        if not iterations:
            return
        if name not in loops:
            loops[name] = LOOPS[name](comm, step)
        loops[name].follow(iterations)


def say(event: dict[str, Any]) -> None:
    """Write one line of the protocol."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def settle(spec: dict[str, Any]) -> None:
    """Limit this process, tie it to its parent and pin it."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, float(spec["limit_s"]))
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    rank = next((int(os.environ[name]) for name in RANK_VARIABLES if name in os.environ), -1)
    if spec.get("pin_cpu") and rank >= 0:
        os.sched_setaffinity(0, {spec["pin_cpu"][rank % len(spec["pin_cpu"])]})


def crossed(world: Comm, directory: str, when: str) -> float | None:
    """Measure how far the two ranks are apart, in ns; None if they do not share the directory's memory."""
    from wiretwin._core import crossing_ns

    world.Barrier()
    with contextlib.suppress(OSError):
        return crossing_ns(os.path.join(directory, f"crossing-{when}"), world.rank == 0, CROSSING_LIMIT_S)
    return None


def effective() -> dict[str, Any]:
    """Report what is in force: library, binding, where this rank may run."""
    import mpi4py
    from mpi4py import MPI

    return {
        "mpi4py": mpi4py.__version__,
        "library": " ".join(MPI.Get_library_version().splitlines()[0].strip("\0").split()),
        "mpi_standard": ".".join(map(str, MPI.Get_version())),
        "thread_level": MPI.Query_thread(),
        "cores": sorted(os.sched_getaffinity(0)),
    }


def main(argv: list[str]) -> int:
    """Run the probe; return its exit status, 0 only if everything was done."""
    place = "specification"
    try:
        spec = read(argv[1], LAYERS, (*LOOPS, first_mpi4py.LOOP), TOGETHER)
        for index, step in enumerate(spec["schedule"] or ()):
            if index and step["loop"] == first_mpi4py.LOOP:
                refuse(f"schedule[{index}].loop", step["loop"], "in schedule[0]: later it is no first call")
        settle(spec)
        place = "MPI"
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        together = spec["together"] is not None
        if world.size != 2 and not (together and world.size > 2):
            allowed = "2 or more" if together else "2, by `mpiexec -n 2`"
            raise RuntimeError(f"runs on {world.size} ranks; allowed: {allowed}")
        comm = world.Dup()
        priority.take()
    except Exception as error:
        say({"event": "error", "place": place, "reason": str(error)})
        return 2
    try:
        place = "clock"
        measured = clock()
        if world.rank == 0:
            hello = {"event": "hello", "protocol": PROTOCOL, "layer": spec["layer"], "effective": effective()}
            say(hello | {"clock": measured, "pid": os.getpid()})
        gc.collect()
        gc.disable()
        schedule = list(enumerate(spec["schedule"] or ()))
        calls = False
        if schedule and schedule[0][1]["loop"] == first_mpi4py.LOOP:
            place = first_mpi4py.LOOP
            # Both ranks know the folder, which is another one in each launch.
            for line in first_mpi4py.lines(world, comm, zlib.crc32(spec["directory"].encode()), 0):
                say(line)
            del schedule[0]
            calls = True
        control = world.Dup()  # MPICH takes 0.9 ms for its third communicator: not within a first call
        before = crossed(world, spec["directory"], "before")
        group = Group(comm, control)
        for index, step in enumerate(spec["together"] or () if world.rank == 0 else ()):
            place = f"together[{index}], {step['loop']}"
            for line in group.run(index, step):
                say(line)
        if together:
            place = "together"
            group.quit() if world.rank == 0 else group.serve()
        sizes: dict[int, float | None] = {}
        cpus = world.bcast(None if before is None else sorted(os.sched_getaffinity(0)))
        moved = contextlib.ExitStack()
        there = False
        for index, step in schedule:
            place = f"step {index} ({step['loop']})"
            if (step["loop"] in ON_ONE_CORE) != there:
                if cpus is None:  # not one host
                    continue
                there = not there
                if there:
                    moved.enter_context(on_one_core(cpus))
                else:
                    moved.close()
            if world.rank == 0:
                leader = Leader(comm, control, step, measured["cost_ns"], sizes)
                say(counted(leader, index, spec["interface"]))
                control.send(("end", 0), dest=1)
            else:
                serve(comm, control, step)
        moved.close()
        if calls and cpus is not None:
            place = first_mpi4py.SHARED
            with on_one_core(cpus):
                for line in first_mpi4py.lines_on_one_core(world, comm, 0):
                    say(line)
        place = "end"
        after = crossed(world, spec["directory"], "after")
        if world.rank == 0:
            known = before is not None and after is not None
            say({"event": "done", "crossing_ns": [before, after] if known else None})
        priority.give_back()
    except Exception as error:
        say({"event": "error", "place": f"rank {world.rank}, {place}", "reason": str(error)})
        world.Abort(1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
