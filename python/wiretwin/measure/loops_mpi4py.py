"""The loops of the probe for mpi4py: what both ranks do in an iteration, and what of it is timed.

A part of `wiretwin.measure.probe_mpi4py`. Each loop is defined in ``docs/reference/probe-protocol.md``.
"""

# ruff: noqa: D102 - what the methods of a loop do is said once, in `Loop`.

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from wiretwin.measure.memory import fill, ordinary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mpi4py.MPI import Comm

__all__ = ["LOOPS", "ON_ONE_CORE", "Cold", "Echo", "Fetch", "Loop", "RecvBusy", "on_core", "on_one_core"]

now = time.perf_counter_ns


@contextlib.contextmanager
def on_core(cpu: int) -> Iterator[None]:
    """Run on one core, and then again on those from before."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def on_one_core(cpus: Sequence[int]) -> Iterator[None]:
    """Run on the first core, as the other rank does, after both have met on the last."""
    with on_core(cpus[-1]):
        idle(SETTLE_NS)
        with on_core(cpus[0]):
            idle(SETTLE_NS)
            yield


def idle(for_ns: int) -> None:
    """Stay outside the library, and on the core, so long, nanoseconds."""
    until = now() + for_ns
    while now() < until:
        pass


class Loop:
    """One step of the schedule, seen by both ranks.

    Parameters
    ----------
    comm
        The communicator of the messages.
    step
        The step, as in the specification.
    """

    inside = False
    """Only part of an iteration is timed, by two readings of the clock around it."""
    alone = False
    """Rank 1 has no part in it."""
    silent = False
    """No message is in it."""
    ack = False
    """What comes back is a byte."""
    token = False
    """What goes out is a byte."""

    def __init__(self, comm: Comm, step: dict[str, Any]) -> None:
        import numpy as np

        self.comm = comm
        self.messages = int(step["messages"])
        self.pause_ns = int(step["delay_ns"])
        size = int(step["bytes"])
        self.out, self.into = ordinary(size), ordinary(size)
        fill(self.out)
        self.small_out = np.ones(1, dtype=np.uint8)
        self.small_in = np.zeros(1, dtype=np.uint8)

    @property
    def payload(self) -> tuple[int, int]:
        """The bytes that the messages of an iteration hold, out and back."""
        if self.alone or self.silent:
            return 0, 0
        out = 1 if self.token else len(self.out) * self.messages
        return out, 1 if self.ack else len(self.into)

    def lead(self, samples: int, batch: int) -> list[int]:
        """Take samples of `batch` iterations on rank 0; return their times in nanoseconds.

        One reading of the clock ends a sample and begins the next.
        """
        raise NotImplementedError

    def follow(self, iterations: int) -> None:
        """Do the same iterations on rank 1."""
        raise NotImplementedError


class Echo(Loop):
    """There and back."""

    def lead(self, samples: int, batch: int) -> list[int]:
        comm, out, into = self.comm, self.out, self.into
        values = []
        last = now()
        for _ in range(samples):
            for _ in range(batch):
                comm.Send(out, dest=1)
                comm.Recv(into, source=1)
            this = now()
            values.append(this - last)
            last = this
        return values

    def follow(self, iterations: int) -> None:
        comm, into = self.comm, self.into
        for _ in range(iterations):
            comm.Recv(into, source=0)
            comm.Send(into, dest=0)


class TwoWrite(Loop):
    """A request in two messages, the reply in one."""

    def lead(self, samples: int, batch: int) -> list[int]:
        comm, into = self.comm, self.into
        half = (len(self.out) + 1) // 2
        first, second = self.out[:half], self.out[half:]
        values = []
        last = now()
        for _ in range(samples):
            for _ in range(batch):
                comm.Send(first, dest=1)
                comm.Send(second, dest=1)
                comm.Recv(into, source=1)
            this = now()
            values.append(this - last)
            last = this
        return values

    def follow(self, iterations: int) -> None:
        comm, into = self.comm, self.into
        half = (len(into) + 1) // 2
        first, second = into[:half], into[half:]
        for _ in range(iterations):
            comm.Recv(first, source=0)
            comm.Recv(second, source=0)
            comm.Send(into, dest=0)


class Stream(Loop):
    """Several messages one way, then a one-byte acknowledgement."""

    ack = True

    def lead(self, samples: int, batch: int) -> list[int]:
        comm, out, ack, messages = self.comm, self.out, self.small_in, self.messages
        values = []
        last = now()
        for _ in range(samples):
            for _ in range(batch):
                for _ in range(messages):
                    comm.Send(out, dest=1)
                comm.Recv(ack, source=1)
            this = now()
            values.append(this - last)
            last = this
        return values

    def follow(self, iterations: int) -> None:
        comm, into, ack, messages = self.comm, self.into, self.small_out, self.messages
        for _ in range(iterations):
            for _ in range(messages):
                comm.Recv(into, source=0)
            comm.Send(ack, dest=0)


class Prtt(Loop):
    """Hoefler, Lichei & Rehm 2007: messages with a pause between one and the next, one reply."""

    def lead(self, samples: int, batch: int) -> list[int]:
        comm, out, into, pause = self.comm, self.out, self.into, self.pause_ns
        others = range(self.messages - 1)
        values = []
        last = now()
        for _ in range(samples):
            for _ in range(batch):
                comm.Send(out, dest=1)
                for _ in others:
                    if pause:
                        idle(pause)
                    comm.Send(out, dest=1)
                comm.Recv(into, source=1)
            this = now()
            values.append(this - last)
            last = this
        return values

    def follow(self, iterations: int) -> None:
        comm, into, messages = self.comm, self.into, self.messages
        for _ in range(iterations):
            for _ in range(messages):
                comm.Recv(into, source=0)
            comm.Send(into, dest=0)


class Call(Loop):
    """A send to nobody: what a call costs that moves nothing."""

    alone = True

    def lead(self, samples: int, batch: int) -> list[int]:
        from mpi4py import MPI

        comm, out, nobody = self.comm, self.out, MPI.PROC_NULL
        values = []
        last = now()
        for _ in range(samples):
            for _ in range(batch):
                comm.Send(out, dest=nobody)
            this = now()
            values.append(this - last)
            last = this
        return values

    def follow(self, iterations: int) -> None:
        raise AssertionError("rank 1 has no part in it")


class SendBusy(Loop):
    """The time inside the send call; an acknowledgement follows, untimed."""

    inside = True
    ack = True

    def lead(self, samples: int, batch: int) -> list[int]:
        comm, out, ack = self.comm, self.out, self.small_in
        values = []
        for _ in range(samples):
            total = 0
            for _ in range(batch):
                start = now()
                comm.Send(out, dest=1)
                total += now() - start
                comm.Recv(ack, source=1)
            values.append(total)
        return values

    def follow(self, iterations: int) -> None:
        comm, into, ack = self.comm, self.into, self.small_out
        for _ in range(iterations):
            comm.Recv(into, source=0)
            comm.Send(ack, dest=0)


class RecvBusy(Loop):
    """The time inside the receive call of a message that came during a pause before it."""

    inside = True
    token = True

    def lead(self, samples: int, batch: int) -> list[int]:
        comm, into, token, pause = self.comm, self.into, self.small_out, self.pause_ns
        values = []
        for _ in range(samples):
            total = 0
            for _ in range(batch):
                comm.Send(token, dest=1)
                idle(pause)
                start = now()
                comm.Recv(into, source=1)
                total += now() - start
            values.append(total)
        return values

    def follow(self, iterations: int) -> None:
        comm, out, token = self.comm, self.out, self.small_in
        for _ in range(iterations):
            comm.Recv(token, source=0)
            comm.Send(out, dest=0)


class Interrupt(RecvBusy):
    """How long a rank that computes loses its core for while messages come: its looks at the clock tell."""

    @property
    def payload(self) -> tuple[int, int]:
        """The bytes that the messages of an iteration hold, out and back."""
        return 1, len(self.into) * self.messages

    def lead(self, samples: int, batch: int) -> list[int]:
        comm, into, token, pause = self.comm, self.into, self.small_out, self.pause_ns
        values = []
        for _ in range(samples):
            total = 0
            for _ in range(batch):
                comm.Send(token, dest=1)
                last = now()
                until = last + pause
                while last < until:
                    this = now()
                    if this - last > DETOUR_NS:
                        total += this - last
                    last = this
                for _ in range(self.messages):
                    comm.Recv(into, source=1)
            values.append(total)
        return values

    def follow(self, iterations: int) -> None:
        comm, out, token = self.comm, self.out, self.small_in
        for _ in range(iterations):
            comm.Recv(token, source=0)
            comm.Send(out, dest=0)
            for _ in range(self.messages - 1):
                idle(APART_NS)
                comm.Send(out, dest=0)


class Fetch(Loop):
    """The time inside the receive call of a message whose sender has just written it and then left.

    Rank 1 writes the message, sends it without waiting and stays outside the library for twice the pause.
    A receive that is over long before takes the data by itself; one that is not waits for the sender.
    """

    inside = True

    def lead(self, samples: int, batch: int) -> list[int]:
        import numpy as np

        comm, into, ack, pause = self.comm, self.into, self.small_in, self.pause_ns
        order = np.array([pause], dtype=np.int64)
        values = []
        for _ in range(samples):
            total = 0
            for _ in range(batch):
                comm.Send(order, dest=1)
                idle(pause)
                start = now()
                comm.Recv(into, source=1)
                total += now() - start
                comm.Recv(ack, source=1)
            values.append(total)
        return values

    def follow(self, iterations: int) -> None:
        import numpy as np

        comm, out, ack = self.comm, self.out, self.small_out
        order = np.zeros(1, dtype=np.int64)
        for _ in range(iterations):
            comm.Recv(order, source=0)
            np.add(out, 1, out=out)
            request = comm.Isend(out, dest=0)
            idle(2 * int(order[0]))
            request.Wait()
            comm.Send(ack, dest=0)


class Cold(Loop):
    """What an echo and work take more one after the other than each among its own kind.

    Each finds caches and branch predictors as the other has left them. The work that is timed for itself is
    the same, and all other pieces have been done since as well.
    """

    inside = True

    def __init__(self, comm: Comm, step: dict[str, Any]) -> None:
        super().__init__(comm, step)
        self.work = pieces_of_work()
        self.first = 0

    @property
    def payload(self) -> tuple[int, int]:
        """The bytes that the messages of an iteration hold, out and back."""
        return 8 + 2 * len(self.out), 1 + 2 * len(self.into)

    def lead(self, samples: int, batch: int) -> list[int]:
        import numpy as np

        comm, ack = self.comm, self.small_in
        count = self.pieces()
        order = np.array([count], dtype=np.int64)
        values = []
        for _ in range(samples):
            total = 0
            for _ in range(batch):
                comm.Send(order, dest=1)
                comm.Recv(ack, source=1)
                begun = now()
                self.compute(0, count)
                self.echo()
                cold = now()
                self.echo()
                warm = now()
                self.compute(count, self.end(count))
                again = now()
                self.compute(0, count)
                end = now()
                self.compute(count, self.end(count))
                self.first += count
                total += (cold - begun) - (warm - cold) - (end - again)
            values.append(max(0, total))
        return values

    def follow(self, iterations: int) -> None:
        import numpy as np

        comm, out, into, ack = self.comm, self.out, self.into, self.small_out
        order = np.zeros(1, dtype=np.int64)
        for _ in range(iterations):
            comm.Recv(order, source=0)
            comm.Send(ack, dest=0)
            count = int(order[0])
            self.compute(0, count)
            for _ in range(2):
                comm.Recv(into, source=0)
                comm.Send(out, dest=0)
            self.compute(count, self.end(count))
            self.compute(0, self.end(count))
            self.first += count

    def echo(self) -> None:
        self.comm.Send(self.out, dest=1)
        self.comm.Recv(self.into, source=1)

    def pieces(self) -> int:
        """Return how many pieces of work fill the pause, if they are like all of them."""
        every = len(self.work)
        self.compute(0, every)
        begun = now()
        self.compute(0, every)
        return max(1, round(self.pause_ns * every / (now() - begun)))

    def end(self, count: int) -> int:
        """Return where the round of all pieces ends that the piece behind so many is in."""
        every = len(self.work)
        return (count // every + 1) * every

    def compute(self, begin: int, end: int) -> None:
        """Do these pieces of work, counted from the first of this iteration."""
        for number in range(begin, end):
            self.work[(self.first + number) % len(self.work)]()


class OneCore(Loop):
    """An echo of two ranks on one core: what one that waits does with it decides how long that takes."""

    def give(self, to: int) -> None:
        self.comm.Send(self.out, dest=to)

    def take(self, source: int) -> None:
        self.comm.Recv(self.into, source=source)

    def lead(self, samples: int, batch: int) -> list[int]:
        values = []
        for _ in range(samples):
            begun = now()
            for _ in range(batch):
                self.give(1)
                self.take(1)
            values.append(now() - begun)
        return values

    def follow(self, iterations: int) -> None:
        for _ in range(iterations):
            self.take(0)
            self.give(0)


class OneCoreObjects(OneCore):
    """The same of objects, for which a rank waits in another call."""

    def give(self, to: int) -> None:
        self.comm.send(None, dest=to)

    def take(self, source: int) -> None:
        self.comm.recv(source=source)


class OneCoreProbe(OneCore):
    """The same, where a rank waits in a probe."""

    def take(self, source: int) -> None:
        self.comm.Probe(source=source)
        super().take(source)


class OneCoreAny(OneCore):
    """The same, where a rank waits for any of its requests."""

    def take(self, source: int) -> None:
        from mpi4py import MPI

        MPI.Request.Waitany([self.comm.Irecv(self.into, source=source)])


class Slice(Loop):
    """How long a rank keeps a core that another one wants: both compute on it, and see when they do not."""

    inside = True
    silent = True

    def lead(self, samples: int, batch: int) -> list[int]:
        values: list[int] = []
        begun = last = now()
        end, whole = begun + samples * SLICES_NS, False
        while len(values) < samples and last < end:
            this = now()
            if this - last > AWAY_NS:
                if whole:  # the first began before we looked
                    values.append(last - begun)
                begun, whole = this, True
            last = this
        # Where it was never taken away, that is how long it was kept.
        return values + [last - begun] * (samples - len(values))

    def follow(self, iterations: int) -> None:
        idle(iterations * SLICES_NS)


class Beside(Loop):
    """How long a rank takes to compute for `pause_ns` of its time, beside one that waits on its core."""

    inside = True
    silent = True

    def lead(self, samples: int, batch: int) -> list[int]:
        comm, token, answer = self.comm, self.small_out, self.small_in
        values = []
        for _ in range(samples):
            comm.Recv(answer, source=1)  # which waits from now on
            begun, end = now(), time.thread_time_ns() + self.pause_ns
            while time.thread_time_ns() < end:
                pass
            values.append(now() - begun)
            comm.Send(token, dest=1)
        return values

    def follow(self, iterations: int) -> None:
        comm, token, answer = self.comm, self.small_in, self.small_out
        for _ in range(iterations):
            comm.Send(answer, dest=0)
            comm.Recv(token, source=0)


class OneCoreThere(Loop):
    """How long a rank takes to receive a message that has come, after computing beside one that waits."""

    inside = True
    silent = True

    def lead(self, samples: int, batch: int) -> list[int]:
        comm, token, answer = self.comm, self.small_out, self.small_in
        values = []
        for _ in range(samples):
            comm.Recv(answer, source=1)
            hand_on(2 * HANDED_ON)  # meanwhile the other one sends again, and waits
            idle(self.pause_ns)
            begun = now()
            comm.Recv(answer, source=1)
            values.append(now() - begun)
            comm.Send(token, dest=1)
        return values

    def follow(self, iterations: int) -> None:
        comm, token, answer = self.comm, self.small_in, self.small_out
        for _ in range(iterations):
            comm.Send(answer, dest=0)
            hand_on(HANDED_ON)  # meanwhile the first one is looked for, and received
            comm.Send(answer, dest=0)
            comm.Recv(token, source=0)


def pieces_of_work() -> list[Callable[[], Any]]:
    """Return what scripts do between calls, tens of microseconds each: little in common, and much code."""
    import json
    import re
    import textwrap
    from decimal import Decimal
    from fractions import Fraction

    import numpy as np

    table = {f"key {number}": [number, number / 7, str(number)] for number in range(12)}
    text = json.dumps(table)
    grid, column = np.arange(144.0).reshape(12, 12), np.arange(400.0)[::-1]
    return [
        lambda: json.loads(text),
        lambda: np.array2string(grid[0]),
        lambda: re.sub(r"[0-9]+", "number", text),
        lambda: np.sort(column).cumsum(),
        lambda: json.dumps(table),
        lambda: [Fraction(one, 7) + Fraction(2, 9) for one in range(5)],
        lambda: textwrap.wrap(text[:200], 40),
        lambda: np.dot(grid, grid).max(axis=0),
        lambda: [f"{one:.3f} {one!r}" for one in grid[0]],
        lambda: Decimal("1.1") ** 7 / Decimal(3),
        lambda: sorted(text),
        lambda: sum(one * one for one in range(300)),
    ]


def hand_on(times: int) -> None:
    """Let the other rank have the core, so often."""
    for _ in range(times):
        os.sched_yield()


LOOPS: dict[str, type[Loop]] = {
    "echo": Echo,
    "two_write": TwoWrite,
    "stream": Stream,
    "prtt": Prtt,
    "call": Call,
    "send_busy": SendBusy,
    "recv_busy": RecvBusy,
    "interrupt": Interrupt,
    "fetch": Fetch,
    "cold": Cold,
    "one_core": OneCore,
    "slice": Slice,
    "beside": Beside,
    "one_core_recv": OneCoreObjects,
    "one_core_probe": OneCoreProbe,
    "one_core_any": OneCoreAny,
    "one_core_there": OneCoreThere,
}
ON_ONE_CORE = frozenset(
    name for name, loop in LOOPS.items() if issubclass(loop, OneCore | OneCoreThere | Slice | Beside)
)
"""Loops of ranks that have both moved to one core."""
SETTLE_NS = 75_000_000
"""So long both are together on another core first, and then on that one: a kernel that shares cores between
groups of threads gives less of one to a group that has just loaded another: so both are alike."""
SLICES_NS = 12_000_000
"""A slice is looked for so long: the other's and one's own, with the usual tick of 4 ms, and half as much."""
AWAY_NS = 300_000
"""Who has not had the core for so long has lost it to another rank, and not to an interrupt."""
DETOUR_NS = 1_000
"""Between two looks at the clock nothing else takes so long but what interrupts the rank."""
APART_NS = 10_000
"""Messages that interrupt a rank are so far apart that none of them is taken together with the next, and the
kernel is still at work on the first when the second comes."""
HANDED_ON = 200
"""So often a rank hands its core on to let the other one get on: each time that one looks at least once."""
