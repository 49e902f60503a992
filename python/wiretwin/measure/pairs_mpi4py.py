"""Streams of pairs and one-sided calls of mpi4py: a part of `wiretwin.measure.together_mpi4py`.

Of n ranks the first half are paired with the second: rank r with rank r + n / 2. A rank that times nothing
has zeros for times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm, Win

__all__ = ["Window", "stream"]

PAGE = 4096
"""Windows are of whole pages: in a shorter one Debian's MPICH 4.0.2 reads the memory of another rank."""
_ADDING = ("accumulate", "get_accumulate")
_ONE_NUMBER = ("fetch_and_op", "compare_and_swap")
now = time.perf_counter_ns


def _pair(comm: Intracomm) -> tuple[int | None, int | None]:
    """Return the rank that this one does something to, and the one that does something to it."""
    half, rank = comm.size // 2, comm.rank
    if rank < half:
        return rank + half, None
    return None, rank - half if rank < 2 * half else None


def _sent(rank: int, size: int) -> Any:
    """Return bytes that tell their place and their rank."""
    import numpy as np

    at = np.arange(size, dtype=np.uint64)
    return (rank * 131 + at * 29 + (at >> 8) * 7 + 17).astype(np.uint8)


def stream(comm: Intracomm, loop: str, size: int, messages: int, iterations: int) -> list[int]:
    """Do ``pairs`` or ``bidirectional``; return the times of this rank, ns. No iterations: verify it."""
    import numpy as np
    from mpi4py import MPI

    to, by = _pair(comm)
    peer = to if to is not None else by
    if peer is None:
        return [0] * iterations
    out = _sent(comm.rank, size)
    into = np.zeros((messages, size), dtype=np.uint8)
    byte = np.zeros(1, dtype=np.uint8)
    both = loop == "bidirectional"

    def once() -> None:
        posted = [comm.Irecv(one, source=peer) for one in into] if both or to is None else []
        sent = [comm.Isend(out, dest=peer) for _ in range(messages)] if both or to is not None else []
        MPI.Request.Waitall(posted + sent)
        if not both:
            comm.Recv(byte, source=peer) if to is not None else comm.Send(byte, dest=peer)

    if not iterations:
        once()
        if (both or to is None) and not (into == _sent(peer, size)).all():
            raise RuntimeError(f"wrong data: {loop} of {size} bytes, at rank {comm.rank}")
        return []
    times = []
    last = now()
    for _ in range(iterations):
        once()
        this = now()
        times.append(this - last)
        last = this
    return times


class Window:
    """Memory of every rank that others read and change.

    Parameters
    ----------
    comm
        Of the ranks.
    """

    def __init__(self, comm: Intracomm) -> None:
        self.comm = comm
        self._window: Win | None = None
        self._room = 0

    def close(self) -> None:
        """Free it, at all ranks."""
        if self._window is not None:
            self._window.Unlock_all()
            self._window.Free()
            self._window = None

    def _fit(self, need: int) -> Win:
        """Return a window of at least so many bytes, locked at all ranks."""
        from mpi4py import MPI

        if self._window is None or self._room < need:
            self.close()
            self._room = -(-need // PAGE) * PAGE
            self._window = MPI.Win.Allocate(self._room, 1, comm=self.comm)
            self._window.Lock_all()
        return self._window

    def run(self, loop: str, size: int, messages: int, iterations: int) -> list[int]:
        """Do a one-sided loop; return the times of this rank, ns. No iterations: verify it."""
        import numpy as np

        messages = messages if loop.endswith("_stream") else 1
        window = self._fit(max(size * messages, 16))
        to, by = _pair(self.comm)
        kind = np.float32 if loop in _ADDING else np.int32 if loop in _ONE_NUMBER else np.uint8
        out = np.zeros(size // np.dtype(kind).itemsize, dtype=kind)
        into = np.zeros(len(out) * messages, dtype=kind)
        once = self._once(window, loop, -1 if to is None else to, messages, out, into)
        if not iterations:
            self._verify(window, loop, once, (to, by), (out, into))
            return []
        times = [0] * iterations
        self.comm.Barrier()
        if to is not None:
            for number in range(iterations):
                before = now()
                once()
                window.Flush(to)
                times[number] = now() - before
        self.comm.Barrier()
        return times

    @staticmethod
    def _once(window: Win, loop: str, to: int, messages: int, out: Any, into: Any) -> Callable[[], object]:
        """Return what starts an iteration at the rank that does something."""
        import numpy as np

        size, places = out.nbytes, range(messages)
        blocks = into.reshape(messages, -1)
        other = np.zeros_like(out)

        def put_all() -> None:
            for at in places:
                window.Put(out, to, at * size)

        def get_all() -> None:
            for at in places:
                window.Get(blocks[at], to, at * size)

        calls: dict[str, Callable[[], object]] = {
            "put": lambda: window.Put(out, to),
            "get": lambda: window.Get(into, to),
            "accumulate": lambda: window.Accumulate(out, to),
            "get_accumulate": lambda: window.Get_accumulate(out, into, to),
            "fetch_and_op": lambda: window.Fetch_and_op(out, into, to),
            "compare_and_swap": lambda: window.Compare_and_swap(out, other, into, to),
            "put_stream": put_all,
            "get_stream": get_all,
        }
        return calls[loop]

    def _verify(
        self,
        window: Win,
        loop: str,
        once: Callable[[], object],
        pair: tuple[int | None, int | None],
        buffers: tuple[Any, Any],
    ) -> None:
        """Do it once on values that tell where they come from; both ends look at what has come."""
        import numpy as np

        (to, by), (out, into) = pair, buffers
        reads, adds = loop in ("get", "get_stream"), loop in (*_ADDING, *_ONE_NUMBER)
        messages = into.size // out.size
        memory: Any = window.tomemory()
        mine = np.frombuffer(memory, dtype=out.dtype)[: into.size]

        def told(rank: int) -> Any:
            if adds:
                return (rank + 1 + np.arange(out.size) % 64).astype(out.dtype)
            return _sent(rank, out.size)

        mine[:] = np.tile(told(self.comm.rank), messages) if reads else 0
        out[:] = told(self.comm.rank)
        window.Sync()
        self.comm.Barrier()
        if to is not None:
            once()
            window.Flush(to)
        self.comm.Barrier()
        window.Sync()
        wrong = reads and to is not None and not (into == np.tile(told(to), messages)).all()
        wrong |= not reads and by is not None and not (mine == np.tile(told(by), messages)).all()
        if wrong:
            raise RuntimeError(f"wrong data: {loop} of {out.nbytes} bytes, at rank {self.comm.rank}")
        if adds:
            out[:] = 0  # sums stay finite
