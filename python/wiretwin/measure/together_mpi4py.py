"""What any number of ranks of mpi4py do together: the loops ``together`` of the probe protocol.

A part of `wiretwin.measure.probe_mpi4py`. Upper-case calls on NumPy arrays: sums of ``float32``, everything
else of bytes. Every rank times its own call, with a barrier before each that is not timed; rank 0 says what
to do and how often, and gathers the times.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wiretwin.measure.pairs_mpi4py import Window, stream
from wiretwin.stacks.word import BLOCKING, NONBLOCKING, ONE_SIDED, PAIRS

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm, Request

__all__ = ["LOOPS", "Group", "next_run"]

LOOPS = (*BLOCKING, *NONBLOCKING, *ONE_SIDED, *PAIRS)
SOUNDINGS = 10
"""Iterations that tell how long to compute where the plain call was not timed before."""
NUMBER_BYTES = 4
_TO_ALL = ("scatter", "alltoall", "scatterv", "alltoallv", "alltoallw")
"""Calls that send a block to each rank."""
_FROM_ALL = ("gather", "allgather", "alltoall", "gatherv", "allgatherv", "alltoallv", "alltoallw")
"""Calls that receive a block from each rank."""
_SUMS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block")
now = time.perf_counter_ns


@dataclass(frozen=True)
class Call:
    """A collective call with its buffers."""

    name: str
    whole: Callable[[], Any]
    """The blocking call."""
    start: Callable[[], Request]
    """The non-blocking one."""
    out: Any
    into: Any


def _call(comm: Intracomm, name: str, size: int) -> Call:
    """Return a collective call by its name without an ``i`` or ``_busy``, with buffers of `size` bytes."""
    import numpy as np
    from mpi4py import MPI

    ranks, rank = comm.size, comm.rank
    kind = np.dtype(np.float32 if name in _SUMS else np.uint8)
    length = size // kind.itemsize
    if name == "reduce_scatter_block":
        length = -(-length // ranks) * ranks  # all ranks keep the same number of numbers
    out = np.zeros(length * (ranks if name in _TO_ALL else 1), dtype=kind)
    into = np.zeros(length * (ranks if name in _FROM_ALL else 1), dtype=kind)
    counts = [length] * ranks
    if name == "reduce_scatter":
        counts = [length // ranks + (one < length % ranks) for one in range(ranks)]
    places = [one * length for one in range(ranks)]
    blocks = [out, counts, places, MPI.BYTE], [into, counts, places, MPI.BYTE]
    types = [MPI.BYTE] * ranks
    shared = into if rank else out
    # Only a root has something to scatter, and to gather into.
    head, tail = (blocks[0], blocks[1]) if rank == 0 else (None, None)
    given = {
        "barrier": (),
        "bcast": (shared, 0),
        "reduce": (out, into if rank == 0 else None, MPI.SUM, 0),
        "allreduce": (out, into, MPI.SUM),
        "gather": (out, into if rank == 0 else None, 0),
        "scatter": (out if rank == 0 else None, into, 0),
        "allgather": (out, into),
        "alltoall": (out, into),
        "reduce_scatter": (out, into[: counts[rank]], counts, MPI.SUM),
        "gatherv": (out, tail, 0),
        "scatterv": (head, into, 0),
        "allgatherv": (out, blocks[1]),
        "alltoallv": blocks,
        "alltoallw": ([out, counts, places, types], [into, counts, places, types]),
        "reduce_scatter_block": (out, into[: length // ranks], MPI.SUM),
    }[name]
    method = name.capitalize()
    whole, start = getattr(comm, method), getattr(comm, f"I{name}")
    return Call(name, lambda: whole(*given), lambda: start(*given), out, into)


def _sent(call: Call, rank: int) -> Any:
    """Return what a rank sends: values that tell their place and their rank."""
    import numpy as np

    at = np.arange(len(call.out), dtype=np.uint64)
    if call.name in _SUMS:
        return (rank + at % 64).astype(np.float32)
    return (rank * 131 + at * 29 + (at >> 8) * 7 + 17).astype(np.uint8)


def _expected(call: Call, ranks: int, rank: int, length: int) -> Any:
    """Return what has to come at a rank; nothing where nothing comes."""
    import numpy as np

    name = call.name
    if name == "barrier" or (rank and name in ("reduce", "gather", "gatherv")):
        return None
    if name in _SUMS:
        total = sum(_sent(call, one) for one in range(ranks))
        if not name.startswith("reduce_scatter"):
            return total
        counts = [len(total) // ranks + (one < len(total) % ranks) for one in range(ranks)]
        return total[sum(counts[:rank]) : sum(counts[: rank + 1])]
    if name == "bcast":
        return _sent(call, 0) if rank else None
    if name in ("scatter", "scatterv"):
        # The root's buffer holds a block for each rank.
        at = np.arange(rank * length, (rank + 1) * length, dtype=np.uint64)
        return (at * 29 + (at >> 8) * 7 + 17).astype(np.uint8)
    blocks = [_sent(call, one) for one in range(ranks)]
    if name in ("alltoall", "alltoallv", "alltoallw"):
        blocks = [block[rank * length : (rank + 1) * length] for block in blocks]
    return np.concatenate(blocks)


class Group:
    """A rank of the group.

    Parameters
    ----------
    comm, control
        Communicators of the calls and of the orders.
    """

    def __init__(self, comm: Intracomm, control: Intracomm) -> None:
        self.comm, self.control = comm, control
        self._known: dict[tuple[str, int], float] = {}
        self._verified: set[tuple[str, int]] = set()
        self._calls: dict[tuple[str, int], Call] = {}
        self._window = Window(comm)

    def _take_part(self, loop: str, size: int, messages: int, iterations: int, busy_ns: int) -> list[int]:
        """Do something so often; return this rank's times, nanoseconds. No iterations: verify it."""
        if loop in PAIRS:
            return stream(self.comm, loop, size, messages, iterations)
        if loop in ONE_SIDED:
            return self._window.run(loop, size, messages, iterations)
        plain = loop.removesuffix("_busy")
        starts = plain.startswith("i")
        name = plain[1:] if starts else plain
        call = self._calls.get((name, size))
        if call is None:
            self._calls = {(name, size): _call(self.comm, name, size)}  # the last one's memory is given back
            call = self._calls[name, size]
        whole = (lambda: call.start().Wait()) if starts else call.whole
        if not iterations:
            self._verify(call, size, whole)
            return []
        barrier = self.comm.Barrier
        wait_before = name != "barrier" or plain != loop
        times = []
        for _ in range(iterations):
            if wait_before:
                barrier()
            before = now()
            if plain != loop:
                request = call.start()
                begun = last = now()
                while last < begun + busy_ns:
                    last = now()
                request.Wait()
                times.append(now() - before - (last - begun))
            else:
                whole()
                times.append(now() - before)
        return times

    def _verify(self, call: Call, size: int, whole: Callable[[], Any]) -> None:
        ranks, rank = self.comm.size, self.comm.rank
        call.out[:] = _sent(call, rank)
        call.into[:] = 0
        whole()
        expected = _expected(call, ranks, rank, size)
        if expected is not None and not (call.into[: len(expected)] == expected).all():
            raise RuntimeError(f"wrong data: {call.name} of {size} bytes, at rank {rank}")

    def serve(self) -> None:
        """Do at any rank but 0 what rank 0 says, until it says that nothing more will come."""
        while (order := self.control.bcast(None)) is not None:
            self.control.gather(self._take_part(*order))
        self._window.close()

    def _lead(self, step: dict[str, Any], loop: str, iterations: int, busy_ns: int) -> list[tuple[int, int]]:
        """Have all do something; return the slowest rank and the mean over those that time something."""
        order = (loop, int(step["bytes"]), int(step["messages"]), iterations, busy_ns)
        self.control.bcast(order)
        by_rank = self.control.gather(self._take_part(*order)) or []
        told = [[one for one in times if one] or [0] for times in zip(*by_rank, strict=True)]
        return [(max(times), round(sum(times) / len(times))) for times in told]

    def quit(self) -> None:
        """Tell all others that nothing more will come."""
        self.control.bcast(None)
        self._window.close()

    def run(self, index: int, step: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Take the samples of a step at rank 0; yield the two ``samples`` lines."""
        loop, size, warmup = step["loop"], int(step["bytes"]), int(step["warmup"])
        key = (loop, size)
        if key not in self._verified:
            self._lead(step, loop, 0, 0)
            self._verified.add(key)
        busy_ns = int(step["delay_ns"])
        plain = loop.removesuffix("_busy")
        if plain != loop and not busy_ns:
            if (plain, size) not in self._known:
                self._known[plain, size] = statistics.median(
                    slowest for slowest, _ in self._lead(step, plain, SOUNDINGS, 0)
                )
            busy_ns = round(self._known[plain, size])
        (first,) = self._lead(step, loop, 1, busy_ns)
        estimate = float(first[0])
        if warmup:
            start = now()
            self._lead(step, loop, warmup, busy_ns)
            estimate = min(estimate, (now() - start) / warmup)
        taken: list[tuple[int, int]] = []
        spent = 0.0
        while count := next_run(step, len(taken), spent, estimate):
            start = now()
            taken += self._lead(step, loop, count, busy_ns)
            took = now() - start
            spent += took
            estimate = took / count
        self._known[key] = statistics.median(slowest for slowest, _ in taken)
        line = {
            "event": "samples",
            "step": index,
            "loop": loop,
            "bytes": size,
            "messages": int(step["messages"]),
            "delay_ns": int(step["delay_ns"]),
            "pause_ns": busy_ns,
            "batch": 1,
            "first_ns": first[0],
            "values_ns": [slowest for slowest, _ in taken],
        }
        yield line
        yield line | {
            "loop": f"{loop}_mean",
            "first_ns": first[1],
            "values_ns": [mean for _, mean in taken],
        }


def next_run(step: dict[str, Any], taken: int, spent_ns: float, sample_ns: float) -> int:
    """Choose how many samples come next: at most half of what the budget seems to allow; 0: done."""
    least = int(step["min_samples"])
    most = max(least, int(step["max_samples"]))
    missing = max(0, least - taken)
    affordable = int(max(0.0, step["budget_ms"] * 1e6 - spent_ns) / max(1.0, sample_ns))
    wanted = affordable // 2 if affordable > 16 else affordable
    return min(max(wanted, missing), most - taken)
