"""Calls of mpi4py between two ranks, by kind, and loops of them: run for real, simulated, and looked at.

The same loops tell three things: what a call of each kind takes for real (`wiretwin.measure.first_mpi4py`),
what its messages alone take in the simulated world (`wiretwin.predict.calls`), and what of a simulated rank's
time is the simulator's own (`wiretwin.mpi.looped`). Messages are small, objects `None` or a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "COLLECTIVES",
    "EXCHANGED_BYTES",
    "FAMILIES",
    "LOOPED",
    "collective_calls",
    "iterations",
    "single_calls",
    "streams",
]

FAMILIES: dict[str, tuple[str, ...]] = {
    "send": ("send", "ssend", "bsend"),
    "recv": ("recv",),
    "isend": ("isend", "issend", "ibsend"),
    "irecv": ("irecv",),
    "sendrecv": ("sendrecv",),
    "Send": ("Send", "Ssend", "Bsend", "Rsend"),
    "Recv": ("Recv",),
    "Isend": ("Isend", "Issend", "Ibsend", "Irsend"),
    "Irecv": ("Irecv",),
    "Sendrecv": ("Sendrecv", "Sendrecv_replace"),
    "Barrier": ("Barrier", "Ibarrier"),
    "bcast": ("bcast",),
    "reduce": ("reduce",),
    "allreduce": ("allreduce", "scan", "exscan"),
    "gather": ("gather",),
    "scatter": ("scatter",),
    "allgather": ("allgather",),
    "alltoall": ("alltoall",),
    "Bcast": ("Bcast", "Ibcast"),
    "Reduce": ("Reduce", "Ireduce"),
    "Allreduce": ("Allreduce", "Iallreduce", "Scan", "Exscan", "Reduce_scatter", "Reduce_scatter_block"),
    "Gather": ("Gather", "Gatherv", "Igather", "Igatherv"),
    "Scatter": ("Scatter", "Scatterv", "Iscatter", "Iscatterv"),
    "Allgather": ("Allgather", "Allgatherv", "Iallgather", "Iallgatherv"),
    "Alltoall": ("Alltoall", "Alltoallv", "Alltoallw", "Ialltoall", "Ialltoallv"),
}
"""Each kind, with the calls that are taken to share its code."""
TO_ONE = ("send", "recv", "isend", "irecv", "sendrecv", "Send", "Recv", "Isend", "Irecv", "Sendrecv")
COLLECTIVES = tuple(kind for kind in FAMILIES if kind not in TO_ONE)
LOOPED = tuple(kind for kind in FAMILIES if kind not in ("recv", "Send", "Recv"))
"""Kinds whose loops tell what a call takes: in an iteration both ranks make one call of the kind; in that of
``send`` an object goes there and back. What blocking calls with arrays take is measured by size."""
_WORDS = 10
EXCHANGED_BYTES = 8 * _WORDS
"""How long the messages of arrays are."""


def collective_calls(world: Any) -> dict[str, Callable[[], Any]]:
    """Return what makes each collective call on a communicator of mpi4py, with rank 0 as its root."""
    import numpy as np

    rank, size = world.rank, world.size
    one, other = np.ones(_WORDS), np.zeros(_WORDS)
    all_, all_others = np.ones(_WORDS * size), np.zeros(_WORDS * size)
    return {
        "Barrier": world.Barrier,
        "bcast": lambda: world.bcast(None),
        "Bcast": lambda: world.Bcast(one),
        "reduce": lambda: world.reduce(1),
        "Reduce": lambda: world.Reduce(one, other),
        "allreduce": lambda: world.allreduce(1),
        "Allreduce": lambda: world.Allreduce(one, other),
        "gather": lambda: world.gather(1),
        "Gather": lambda: world.Gather(one, all_),
        "scatter": lambda: world.scatter([1] * size if rank == 0 else None),
        "Scatter": lambda: world.Scatter(all_, one),
        "allgather": lambda: world.allgather(1),
        "Allgather": lambda: world.Allgather(one, all_),
        "alltoall": lambda: world.alltoall([1] * size),
        "Alltoall": lambda: world.Alltoall(all_, all_others),
    }


def iterations(world: Any) -> dict[str, Callable[[], Any]]:
    """Return by kind of `LOOPED` what one of two ranks does in an iteration of its loop."""
    import numpy as np

    peer = 1 - world.rank
    one, other = np.ones(_WORDS), np.zeros(_WORDS)

    def isend() -> None:
        request = world.isend(None, peer)
        world.recv(source=peer)
        request.wait()

    def irecv() -> None:
        request = world.irecv(source=peer)
        world.send(None, peer)
        request.wait()

    def begun_send() -> None:
        request = world.Isend(one, peer)
        world.Recv(other, source=peer)
        request.Wait()

    def begun_receive() -> None:
        request = world.Irecv(other, source=peer)
        world.Send(one, peer)
        request.Wait()

    def send() -> None:
        if world.rank == 0:
            world.send(None, peer)
        world.recv(source=peer)
        if world.rank:
            world.send(None, peer)

    found: dict[str, Callable[[], Any]] = {
        "send": send,
        "isend": isend,
        "irecv": irecv,
        "Isend": begun_send,
        "Irecv": begun_receive,
        "sendrecv": lambda: world.sendrecv(None, peer, source=peer),
        "Sendrecv": lambda: world.Sendrecv(one, peer, recvbuf=other, source=peer),
    }
    return found | collective_calls(world)


def streams(world: Any) -> dict[str, Callable[[], Any]]:
    """Return by kind, ``send`` and ``Send``, how one of two ranks sends, or receives if it is rank 1."""
    import numpy as np

    peer, words = 1 - world.rank, np.ones(_WORDS)
    if world.rank == 0:
        return {"send": lambda: world.send(None, peer), "Send": lambda: world.Send(words, peer)}
    return {"send": lambda: world.recv(source=peer), "Send": lambda: world.Recv(words, source=peer)}


def single_calls(world: Any) -> dict[str, Callable[[int], Any]]:
    """Return what makes each call of one of two ranks, given which of them sends where only one does.

    A send stands for the receive that it needs, too.
    """
    import numpy as np

    rank = world.rank
    one, other = np.ones(_WORDS), np.zeros(_WORDS)
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
    } | {kind: always(call) for kind, call in collective_calls(world).items()}
