"""The probe for mpi4py: the probe protocol over ``comm.Send`` and ``comm.Recv`` on NumPy arrays.

Run as ``mpiexec -n 2 python -m wiretwin.measure.probe_mpi4py SPEC``. Both ranks read the same
specification, whose ``rank`` and ``size`` are null (MPI knows them) and whose ``pin_cpu`` is a list,
one CPU per rank, or null. Messages travel as an ordinary user sends them: upper-case calls given a
NumPy array, so that what a twin learns here is what a script will pay.

- Each rank is pinned before MPI starts, so that threads of the library inherit it.
- The garbage collector is off while samples are taken.
- In ``send_busy`` and ``recv_busy`` one iteration is one sample, and a sample contains one reading of
  the clock (``clock.cost_ns`` of the first line).
- Before each timed receive of ``recv_busy`` the rank spins outside MPI until the message has had
  twice a round trip to arrive; of a message that goes by rendezvous only the request has.

The loops are defined in ``docs/reference/probe-protocol.md``.
"""

# ruff: noqa: D102 - what the methods of a loop do is said once, in `Loop`.

from __future__ import annotations

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

PROTOCOL = 1
LAYER = "mpi4py/mpich"
now = time.perf_counter_ns


def clock() -> dict[str, Any]:
    """Measure the clock: what a reading costs and how finely it ticks."""
    costs, ticks = [], []
    for _ in range(15):
        readings = [now() for _ in range(1000)]
        costs.append((readings[-1] - readings[0]) / 999)
        ticks += [b - a for a, b in itertools.pairwise(readings) if b > a]
    return {"name": "CLOCK_MONOTONIC", "cost_ns": min(costs), "resolution_ns": min(ticks)}


class Loop:
    """One step of the schedule, seen by both ranks.

    Parameters
    ----------
    comm
        The communicator of the messages.
    step
        The step, as in the specification.
    """

    sample_is_iteration = True
    """A sample is exactly one iteration."""

    def __init__(self, comm: Comm, step: dict[str, Any]) -> None:
        import numpy as np

        self.comm = comm
        self.messages = int(step.get("messages", 1))
        self.delay_ns = int(step.get("delay_ns", 0))
        size = int(step["bytes"])
        self.out = (np.arange(size, dtype=np.uint32) * 167 + 13).astype(np.uint8)
        self.into = np.zeros(size, dtype=np.uint8)
        self.small_out = np.ones(1, dtype=np.uint8)
        self.small_in = np.zeros(1, dtype=np.uint8)

    def client(self, iterations: int) -> int:
        """Run iterations on rank 0; return their time in nanoseconds."""
        raise NotImplementedError

    def server(self, iterations: int) -> None:
        """Run the same number of iterations on rank 1."""
        raise NotImplementedError

    def learn(self, typical_ns: float) -> None:
        """Take note of the typical time of an iteration, after the warm-up."""

    def check(self) -> None:
        """Check on rank 0 that what came back is what was sent."""
        if not (self.into == self.out).all():
            raise RuntimeError("the bytes that came back are not those that were sent")


class Echo(Loop):
    """There and back."""

    sample_is_iteration = False

    def client(self, iterations: int) -> int:
        comm, out, into = self.comm, self.out, self.into
        start = now()
        for _ in range(iterations):
            comm.Send(out, dest=1)
            comm.Recv(into, source=1)
        return now() - start

    def server(self, iterations: int) -> None:
        comm, into = self.comm, self.into
        for _ in range(iterations):
            comm.Recv(into, source=0)
            comm.Send(into, dest=0)


class TwoWrite(Loop):
    """A request in two messages, the reply in one."""

    sample_is_iteration = False

    def client(self, iterations: int) -> int:
        comm, into = self.comm, self.into
        half = len(self.out) // 2
        first, second = self.out[:half], self.out[half:]
        start = now()
        for _ in range(iterations):
            comm.Send(first, dest=1)
            comm.Send(second, dest=1)
            comm.Recv(into, source=1)
        return now() - start

    def server(self, iterations: int) -> None:
        comm, into = self.comm, self.into
        half = len(into) // 2
        first, second = into[:half], into[half:]
        for _ in range(iterations):
            comm.Recv(first, source=0)
            comm.Recv(second, source=0)
            comm.Send(into, dest=0)


class Stream(Loop):
    """Several messages one way, then a one-byte acknowledgement."""

    def client(self, iterations: int) -> int:
        comm, out, ack, messages = self.comm, self.out, self.small_in, self.messages
        start = now()
        for _ in range(iterations):
            for _ in range(messages):
                comm.Send(out, dest=1)
            comm.Recv(ack, source=1)
        return now() - start

    def server(self, iterations: int) -> None:
        comm, into, ack, messages = self.comm, self.into, self.small_out, self.messages
        for _ in range(iterations):
            for _ in range(messages):
                comm.Recv(into, source=0)
            comm.Send(ack, dest=0)

    def check(self) -> None:
        """Nothing comes back."""


class Prtt(Loop):
    """Hoefler et al. 2007: n messages with a delay after each but the last, one reply."""

    def client(self, iterations: int) -> int:
        comm, out, into, delay = self.comm, self.out, self.into, self.delay_ns
        between = range(self.messages - 1)
        start = now()
        for _ in range(iterations):
            for _ in between:
                comm.Send(out, dest=1)
                if delay:
                    until = now() + delay
                    while now() < until:
                        pass
            comm.Send(out, dest=1)
            comm.Recv(into, source=1)
        return now() - start

    def server(self, iterations: int) -> None:
        comm, into, messages = self.comm, self.into, self.messages
        for _ in range(iterations):
            for _ in range(messages):
                comm.Recv(into, source=0)
            comm.Send(into, dest=0)


class Call(Loop):
    """A send to nobody: what a call costs that moves nothing."""

    sample_is_iteration = False

    def client(self, iterations: int) -> int:
        from mpi4py import MPI

        comm, out, nobody = self.comm, self.out, MPI.PROC_NULL
        start = now()
        for _ in range(iterations):
            comm.Send(out, dest=nobody)
        return now() - start

    def server(self, iterations: int) -> None:
        """Nothing arrives."""

    def check(self) -> None:
        """Nothing comes back."""


class SendBusy(Loop):
    """The time inside the send call, the receiver already waiting."""

    def client(self, iterations: int) -> int:
        comm, out, ack = self.comm, self.out, self.small_in
        total = 0
        for _ in range(iterations):
            start = now()
            comm.Send(out, dest=1)
            total += now() - start
            comm.Recv(ack, source=1)
        return total

    def server(self, iterations: int) -> None:
        comm, into, ack = self.comm, self.into, self.small_out
        for _ in range(iterations):
            comm.Recv(into, source=0)
            comm.Send(ack, dest=0)

    def check(self) -> None:
        """Nothing comes back."""


class RecvBusy(Loop):
    """The time inside the receive call, the message already there."""

    def __init__(self, comm: Comm, step: dict[str, Any]) -> None:
        super().__init__(comm, step)
        self.wait_ns = self.delay_ns

    def client(self, iterations: int) -> int:
        comm, into, token, wait = self.comm, self.into, self.small_out, self.wait_ns
        total = 0
        for _ in range(iterations):
            comm.Send(token, dest=1)
            until = now() + wait
            while now() < until:
                pass
            start = now()
            comm.Recv(into, source=1)
            total += now() - start
        return total

    def server(self, iterations: int) -> None:
        comm, out, token = self.comm, self.out, self.small_in
        for _ in range(iterations):
            comm.Recv(token, source=0)
            comm.Send(out, dest=0)

    def learn(self, typical_ns: float) -> None:
        """Give a message twice the time that asking for it and getting it takes."""
        if not self.delay_ns:
            self.wait_ns = 1000 + round(2 * typical_ns)


LOOPS: dict[str, type[Loop]] = {
    "echo": Echo,
    "two_write": TwoWrite,
    "stream": Stream,
    "prtt": Prtt,
    "call": Call,
    "send_busy": SendBusy,
    "recv_busy": RecvBusy,
}


def plan(step: dict[str, Any], loop: Loop, typical_ns: float, clock_ns: float) -> tuple[int, int]:
    """Choose the batch, so that the clock costs at most 1 % of a sample, and the number of samples."""
    batch = int(step.get("batch", 0))
    if loop.sample_is_iteration:
        batch = 1
    elif batch == 0:
        batch = max(1, math.ceil(100 * clock_ns / max(typical_ns, 1.0)))
    fitting = int(step.get("budget_ms", 10.0) * 1e6 / max(1.0, (typical_ns + loop_extra_ns(loop)) * batch))
    return batch, min(max(fitting, int(step.get("min_samples", 10))), int(step.get("max_samples", 2000)))


def loop_extra_ns(loop: Loop) -> float:
    """Return what an iteration takes beyond what its sample shows."""
    return loop.wait_ns if isinstance(loop, RecvBusy) else 0.0


def run_client(
    comm: Comm, control: Comm, index: int, step: dict[str, Any], clock_ns: float
) -> dict[str, Any]:
    """Run a step on rank 0; return its ``samples`` line."""
    loop = LOOPS[step["loop"]](comm, step)
    first = loop.client(1)
    warm = [loop.client(1) for _ in range(int(step.get("warmup", 16)))]
    typical = statistics.median(warm or [first])
    loop.learn(typical)
    batch, samples = plan(step, loop, typical, clock_ns)
    control.send((batch, samples), dest=1)
    values = [loop.client(batch) for _ in range(samples)]
    loop.check()
    return {
        "event": "samples",
        "step": index,
        "loop": step["loop"],
        "bytes": int(step["bytes"]),
        "messages": loop.messages,
        "delay_ns": loop.wait_ns if isinstance(loop, RecvBusy) else loop.delay_ns,
        "batch": batch,
        "first_ns": first,
        "values_ns": values,
    }


def run_server(comm: Comm, control: Comm, step: dict[str, Any]) -> None:
    """Run a step on rank 1."""
    loop = LOOPS[step["loop"]](comm, step)
    for _ in range(1 + int(step.get("warmup", 16))):
        loop.server(1)
    batch, samples = control.recv(source=0)
    for _ in range(samples):
        loop.server(batch)


def say(event: dict[str, Any]) -> None:
    """Write one line of the protocol."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def read(path: str) -> dict[str, Any]:
    """Read and check the specification."""
    spec = json.loads(Path(path).read_text())
    if spec.get("protocol") != PROTOCOL:
        raise ValueError(f"protocol: {spec.get('protocol')!r}; allowed: {PROTOCOL}")
    if spec.get("layer") != LAYER:
        raise ValueError(f"layer: {spec.get('layer')!r}; allowed: {LAYER}")
    for number, step in enumerate(spec["schedule"]):
        if step["loop"] not in LOOPS:
            raise ValueError(f"schedule[{number}].loop: {step['loop']!r}; allowed: {', '.join(LOOPS)}")
    for option in spec.get("options", {}):
        raise ValueError(f"options.{option}: not known; allowed: none for {LAYER}")
    return dict(spec)


def settle(spec: dict[str, Any]) -> None:
    """Limit this process, tie it to its parent and pin it."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, float(spec["limit_s"]))
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
    rank = int(os.environ.get("PMI_RANK", "-1"))
    if spec.get("pin_cpu") and 0 <= rank < len(spec["pin_cpu"]):
        os.sched_setaffinity(0, {spec["pin_cpu"][rank]})


def effective() -> dict[str, Any]:
    """Report what is in force: library, binding, where this rank may run."""
    import mpi4py
    from mpi4py import MPI

    return {
        "mpi4py": mpi4py.__version__,
        "library": MPI.Get_library_version().splitlines()[0].strip().replace("\t", " "),
        "mpi_standard": ".".join(map(str, MPI.Get_version())),
        "thread_level": MPI.Query_thread(),
        "cpus": sorted(os.sched_getaffinity(0)),
    }


def main(argv: list[str]) -> int:
    """Run the probe; return its exit status, 0 only if everything was done."""
    place = "specification"
    try:
        spec = read(argv[1])
        settle(spec)
        place = "MPI"
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        if world.size != 2:
            raise RuntimeError(f"runs on {world.size} ranks; allowed: 2, by `mpiexec -n 2`")
        comm, control = world.Dup(), world.Dup()
    except Exception as error:
        say({"event": "error", "place": place, "reason": str(error)})
        return 2
    try:
        place = "clock"
        measured = clock()
        if world.rank == 0:
            hello = {"event": "hello", "protocol": PROTOCOL, "layer": LAYER, "effective": effective()}
            say(hello | {"clock": measured, "pid": os.getpid()})
        gc.collect()
        gc.disable()
        for index, step in enumerate(spec["schedule"]):
            place = f"step {index} ({step['loop']})"
            if world.rank == 0:
                say(run_client(comm, control, index, step, measured["cost_ns"]))
            else:
                run_server(comm, control, step)
        place = "end"
        world.Barrier()
        if world.rank == 0:
            say({"event": "done"})
    except Exception as error:
        say({"event": "error", "place": f"rank {world.rank}, {place}", "reason": str(error)})
        world.Abort(1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
