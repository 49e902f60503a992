"""What the first call of each kind takes in a fresh process, and later ones in a loop, by mpi4py.

A call that a process makes for the first time meets code that no core has run and tables that the library
fills on first use: tens of microseconds where a later one takes two. Both ranks make every kind of call in
turn, several times each; the order of the kinds is another in each launch, so that what kinds have in common
(objects are pickled, collectives set up) can be told from what is their own.

Before the first of them the ranks have done what a real run has before its program begins
(`wiretwin.mpi.live`): echoes and barriers. A receive is timed when its message is there.

Then come messages that nobody has asked for: behind a short one for which a rank waits in the library, one
of each length in turn comes before its receive is posted. The library reads what has come, and keeps it in
memory that it gets when it first needs some.

After all that each kind is called again and again (`wiretwin.loops`), as a program does that does
little else; what iterations take the slower rank is kept. At the end of a launch collective calls are made so
once more, by both ranks on one core (`lines_on_one_core`).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wiretwin.loops import COLLECTIVES, LOOPED, collective_calls, iterations, single_calls

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

__all__ = [
    "CALLS",
    "EARLY",
    "EARLY_BYTES",
    "LATER",
    "LOOP",
    "PEER",
    "SHARED",
    "lines",
    "lines_on_one_core",
    "order",
]

LOOP = "first"
"""The step's loop; the samples of a call are those of ``first_NAME``, of rank 1 ``first_NAME_peer``."""
PEER = "_peer"
LATER = "later_"
"""The samples of a kind's loop are those of ``later_NAME``."""
SHARED = "shared_"
"""The samples of a kind's loop on one core are those of ``shared_NAME``."""
EARLY = "early_"
"""Samples named ``early_BYTES`` are of messages of that length that come before their receive is posted."""
EARLY_BYTES = (64, 256, 1024, 4096, 16384)
CALLS = (
    "send", "Send", "isend", "Isend", "sendrecv", "Sendrecv", "bcast", "Bcast", "reduce", "Reduce",
    "allreduce", "Allreduce", "gather", "Gather", "scatter", "Scatter", "allgather", "Allgather",
    "alltoall", "Alltoall",
)  # fmt: skip
"""A send stands for the receive that it needs, too."""
RECEIVES = {"send": "recv", "Send": "Recv", "isend": "irecv", "Isend": "Irecv"}
TIMES = 6
_BLOCKS, _ITERATIONS = 8, 25
_SHARED_BLOCKS = 4
_SLICE_NS = 2_000_000
"""Ranks whose first iteration on one core takes longer on the mean keep the core for a time slice."""
_ECHOES, _ECHO_BYTES = 50, 1 << 16
_THERE_NS = 200_000
"""A message has come when its receiver has stayed away for so long."""
now = time.perf_counter_ns


def order(seed: int) -> list[str]:
    """Return the calls in the order of a launch."""
    calls = list(CALLS)
    random.Random(seed).shuffle(calls)
    return calls


def lines(world: Comm, own: Comm, seed: int, step: int) -> list[dict[str, Any]]:
    """Make every call; return the ``samples`` lines of both ranks, on rank 0, in the order of the calls.

    Parameters
    ----------
    world
        Whose first calls these are.
    own
        For what is between them.
    seed
        Of the order.
    step
        The number of the step in the schedule.
    """
    made = single_calls(world)
    _as_before_a_program(own)
    found = []
    for name in order(seed):
        call, sender = made[name], seed % 2
        away = name in RECEIVES and world.rank != sender
        values = []
        for _ in range(TIMES):
            own.Barrier()
            begin = now()
            while away and now() - begin < _THERE_NS:
                pass
            begin = now()
            call(sender)
            values.append(now() - begin)
        found.append((RECEIVES[name] if away else name, values))
    early = own.gather(_early(world, own, seed % 2), root=0)
    gathered = own.gather(found, root=0)
    looped = own.gather(_loops(own, iterations(world), LOOPED, _BLOCKS), root=0)
    if gathered is None or looped is None or early is None:
        return []
    first = [
        _samples(step, f"{LOOP}_{name}{PEER * rank}", 1, values)
        for of_both in zip(*gathered, strict=True)
        for rank, (name, values) in enumerate(of_both)
    ]
    came = [_samples(step, f"{EARLY}{size}", 1, values) for one in early for size, values in one.items()]
    return first + came + _slower(step, LATER, looped)


def _early(world: Comm, own: Comm, sender: int) -> dict[int, list[int]]:
    """Return by length what two receives take, the second for a message that came before it, in ns.

    From when the first one is posted, so that what the sender waits is in all of them; nothing at the sender.
    """
    found: dict[int, list[int]] = {}
    peer, word = 1 - world.rank, bytearray(1)
    for size in EARLY_BYTES:
        buffer = bytearray(size)
        for _ in range(TIMES):
            own.Barrier()
            begin = now()
            if world.rank == sender:
                while now() - begin < _THERE_NS:
                    pass
                world.Send(word, peer, 0)
                world.Send(buffer, peer, 1)
            else:
                world.Recv(word, peer, 0)
                world.Recv(buffer, peer, 1)
                found.setdefault(size, []).append(now() - begin)
    return found


def lines_on_one_core(world: Comm, own: Comm, step: int) -> list[dict[str, Any]]:
    """Run the loops of collective calls of two ranks that share a core; return as `lines` does."""
    looped = own.gather(_loops(own, collective_calls(world), COLLECTIVES, _SHARED_BLOCKS, _SLICE_NS), root=0)
    return [] if looped is None else _slower(step, SHARED, looped)


def _slower(step: int, name: str, looped: Sequence[Mapping[str, list[int]]]) -> list[dict[str, Any]]:
    """Return the lines of loops, of the slower rank each time."""
    both = ((kind, zip(*(of_one[kind] for of_one in looped), strict=True)) for kind in looped[0])
    return [_samples(step, name + kind, _ITERATIONS, [max(one) for one in pairs]) for kind, pairs in both]


def _loops(
    own: Comm,
    made: Mapping[str, Callable[[], Any]],
    kinds: Iterable[str],
    blocks: int,
    most_ns: int | None = None,
) -> dict[str, list[int]]:
    """Run the loop of each kind; return what an iteration takes, and then what blocks of them do, in ns.

    There is nothing of one whose first iteration takes longer than `most_ns` on the mean of both ranks.
    """
    found = {}
    for kind in kinds:
        iteration, took = made[kind], []
        for count in (1, *[_ITERATIONS] * blocks):
            own.Barrier()
            begin = now()
            for _ in range(count):
                iteration()
            took.append(now() - begin)
            if count == 1 and most_ns is not None and own.allreduce(took[0]) > 2 * most_ns:
                break
        else:
            found[kind] = took
    return found


def _samples(step: int, loop: str, batch: int, values: list[int]) -> dict[str, Any]:
    return {
        "event": "samples",
        "step": step,
        "loop": loop,
        "bytes": 0,
        "messages": 1,
        "delay_ns": 0,
        "pause_ns": 0,
        "batch": batch,
        "first_ns": values[0],
        "values_ns": values[1:],
    }


def _as_before_a_program(own: Comm) -> None:
    buffer = bytearray(_ECHO_BYTES)
    for _ in range(_ECHOES):
        if own.rank == 0:
            own.Send(buffer, 1)
            own.Recv(buffer, 1)
        else:
            own.Recv(buffer, 0)
            own.Send(buffer, 0)
    own.Barrier()
