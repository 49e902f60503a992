"""What the first call of each kind takes in a fresh process, by mpi4py.

A call that a process makes for the first time meets code that no core has run and tables that the library
fills on first use: tens of microseconds where a later one takes two. Both ranks make every kind of call in
turn, several times each; the order of the kinds is another in each launch, so that what kinds have in common
(objects are pickled, collectives set up) can be told from what is their own.

Before the first of them the ranks have done what a real run has before its program begins
(`wiretwin.mpi.live`): echoes and barriers. A receive is timed when its message is there.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

__all__ = ["CALLS", "LOOP", "PEER", "lines", "order"]

LOOP = "first"
"""The step's loop; the samples of a call are those of ``first_NAME``, of rank 1 ``first_NAME_peer``."""
PEER = "_peer"
CALLS = (
    "send", "Send", "isend", "Isend", "sendrecv", "Sendrecv", "bcast", "Bcast", "reduce", "Reduce",
    "allreduce", "Allreduce", "gather", "Gather", "scatter", "Scatter", "allgather", "Allgather",
    "alltoall", "Alltoall",
)  # fmt: skip
"""A send stands for the receive that it needs, too."""
RECEIVES = {"send": "recv", "Send": "Recv", "isend": "irecv", "Isend": "Irecv"}
TIMES = 6
_ECHOES, _ECHO_BYTES = 50, 1 << 16
_THERE_NS = 200_000
"""A message has come when its receiver has stayed away for so long."""
_WORDS = 10
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
    made = _calls(world)
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
    gathered = own.gather(found, root=0)
    if gathered is None:
        return []
    return [
        {
            "event": "samples",
            "step": step,
            "loop": f"{LOOP}_{name}{PEER * rank}",
            "bytes": 0,
            "messages": 1,
            "delay_ns": 0,
            "pause_ns": 0,
            "batch": 1,
            "first_ns": values[0],
            "values_ns": values[1:],
        }
        for of_both in zip(*gathered, strict=True)
        for rank, (name, values) in enumerate(of_both)
    ]


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


def _calls(world: Comm) -> dict[str, Callable[[int], Any]]:
    """Return what makes each call, given which rank sends where only one does."""
    import numpy as np

    rank, size = world.rank, world.size
    one, other = np.ones(_WORDS), np.zeros(_WORDS)
    all_, all_others = np.ones(_WORDS * size), np.zeros(_WORDS * size)
    peer = 1 - rank

    def either(send: Callable[[], Any], recv: Callable[[], Any]) -> Callable[[int], Any]:
        return lambda sender: send() if rank == sender else recv()

    def always(call: Callable[[], Any]) -> Callable[[int], Any]:
        return lambda _: call()

    return {
        "send": either(lambda: world.send(None, peer), lambda: world.recv(source=peer)),
        "Send": either(lambda: world.Send(one, peer), lambda: world.Recv(other, source=peer)),
        "isend": either(lambda: world.isend(None, peer).wait(), lambda: world.irecv(source=peer).wait()),
        "Isend": either(
            lambda: world.Isend(one, peer).Wait(), lambda: world.Irecv(other, source=peer).Wait()
        ),
        "sendrecv": always(lambda: world.sendrecv(None, peer, source=peer)),
        "Sendrecv": always(lambda: world.Sendrecv(one, peer, recvbuf=other, source=peer)),
        "bcast": always(lambda: world.bcast(None)),
        "Bcast": always(lambda: world.Bcast(one)),
        "reduce": always(lambda: world.reduce(1)),
        "Reduce": always(lambda: world.Reduce(one, other)),
        "allreduce": always(lambda: world.allreduce(1)),
        "Allreduce": always(lambda: world.Allreduce(one, other)),
        "gather": always(lambda: world.gather(1)),
        "Gather": always(lambda: world.Gather(one, all_)),
        "scatter": always(lambda: world.scatter([1] * size if rank == 0 else None)),
        "Scatter": always(lambda: world.Scatter(all_, one)),
        "allgather": always(lambda: world.allgather(1)),
        "Allgather": always(lambda: world.Allgather(one, all_)),
        "alltoall": always(lambda: world.alltoall([1] * size)),
        "Alltoall": always(lambda: world.Alltoall(all_, all_others)),
    }
