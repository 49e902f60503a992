"""Messages and collective calls of Python objects: the lower-case half of a communicator.

Objects are really pickled, outside the MPI call, so that its time counts as computation. As in
mpi4py, a collective call on objects is one on their sizes and one on their bytes, and `reduce`,
`scan` and `exscan` are trees of messages of their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .buffers import simple
from .collective import Meeting
from .constants import ANY_SOURCE, ANY_TAG, PROC_NULL
from .failure import fail
from .numbers import c_int
from .ops import OPS, Op
from .pickling import pickle
from .rank import Rank, here
from .request import Request, _complete
from .rounds import gather_linear, rounds, rounds_of, scatter_linear
from .status import Status

if TYPE_CHECKING:
    from collections.abc import Generator

    from .rounds import Rounds

SUM = OPS["SUM"]
_COUNT_BYTES = 8
_IRECV_BYTES = 32768
"""What `irecv` makes room for unless told (mpi4py's `rc.irecv_bufsz`)."""

_NO_LIMIT = 1 << 62


class Objects:
    """The calls of a communicator on objects."""

    if TYPE_CHECKING:
        _context: int
        _ranks: tuple[int, ...]
        _inverse: dict[int, int]

        def _valid(self) -> None: ...
        def _root(self, root: int) -> int: ...
        def _post_send(self, rank: Rank, data: bytes, dest: int, tag: int, mode: str) -> int: ...
        def _post_receive(self, rank: Rank, capacity: int, source: int, tag: int) -> int: ...
        def _meet(self, rank: Rank, me: int, name: str, value: Any, root: int, nbytes: int) -> Meeting: ...
        def _part(self, rank: Rank, meeting: Meeting) -> None: ...
        def _steps(self, rank: Rank, sequence: int, plan: Rounds) -> Generator[list[int], None, None]: ...
        def _drive(self, rank: Rank, steps: Generator[list[int], None, None]) -> None: ...

    # Messages.

    def _send_object(self, name: str, obj: Any, dest: int, tag: int, mode: str) -> None:
        data = pickle.dumps(obj) if dest != PROC_NULL else b""
        rank = here()
        rank.enter(name)
        try:
            if dest == PROC_NULL:
                self._valid()
                return
            rank.wait_all([self._post_send(rank, data, dest, tag, mode)])
        finally:
            rank.leave()

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object."""
        self._send_object("send", obj, dest, tag, "standard")

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object from an attached buffer."""
        self._send_object("bsend", obj, dest, tag, "buffered")

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object, waiting until the receiver has begun to receive."""
        self._send_object("ssend", obj, dest, tag, "synchronous")

    def recv(
        self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Any:
        """Receive an object."""
        capacity = self._object_room(buf, _NO_LIMIT, warn=True)
        rank = here()
        rank.enter("recv")
        try:
            if source == PROC_NULL:
                self._valid()
                if status is not None:
                    status._set(PROC_NULL, ANY_TAG, 0)
                return None
            completion = rank.wait_all([self._post_receive(rank, capacity, source, tag)])[0]
            data = self._received(rank, completion, capacity, status)
        finally:
            rank.leave()
        return pickle.load(data)

    def _received(self, rank: Rank, completion: Any, capacity: int, status: Status | None) -> bytes:
        data = rank.open(completion)
        if status is not None:
            status._set(self._inverse[completion[1]], completion[2], min(len(data), capacity))
        if len(data) > capacity:
            fail("ERR_TRUNCATE", f"an object of {len(data)} bytes met a buffer of {capacity} bytes")
        return data

    def _object_room(self, buf: Any, default: int, warn: bool = False) -> int:
        if buf is None:
            return default
        if warn:
            warnings.warn("the 'buf' argument is deprecated", UserWarning, stacklevel=3)
        return buf if isinstance(buf, int) else simple(buf, True, 0).nbytes

    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Send one object and receive another, at the same time."""
        data = pickle.dumps(sendobj) if dest != PROC_NULL else b""
        capacity = self._object_room(recvbuf, _NO_LIMIT, warn=True)
        rank = here()
        rank.enter("sendrecv")
        try:
            self._valid()
            got = b""
            ids = [] if dest == PROC_NULL else [self._post_send(rank, data, dest, sendtag, "standard")]
            if source == PROC_NULL:
                if status is not None:
                    status._set(PROC_NULL, ANY_TAG, 0)
                if ids:
                    rank.wait_all(ids)
            else:
                receive = self._post_receive(rank, capacity, source, recvtag)
                for completion in rank.wait_all([*ids, receive]):
                    if completion[0] == receive:
                        got = self._received(rank, completion, capacity, status)
        finally:
            rank.leave()
        return pickle.load(got)

    def _start_send_object(self, name: str, obj: Any, dest: int, tag: int, mode: str) -> Request:
        data = pickle.dumps(obj) if dest != PROC_NULL else b""
        rank = here()
        rank.enter(name)
        try:
            if dest == PROC_NULL:
                self._valid()
                return Request()._finished()
            return Request()._send(self._post_send(rank, data, dest, tag, mode))
        finally:
            rank.leave()

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Start to send an object."""
        return self._start_send_object("isend", obj, dest, tag, "standard")

    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Start to send an object from an attached buffer."""
        return self._start_send_object("ibsend", obj, dest, tag, "buffered")

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Start to send an object; complete when the receiver has begun to receive."""
        return self._start_send_object("issend", obj, dest, tag, "synchronous")

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Start to receive an object of at most 32 KiB, or of what `buf` holds or says."""
        rank = here()
        rank.enter("irecv")
        try:
            request = Request()
            if source == PROC_NULL:
                self._valid()
                request._finished()._status = (PROC_NULL, ANY_TAG, 0, False)
                return request
            capacity = self._object_room(buf, _IRECV_BYTES)
            posted = self._post_receive(rank, capacity, source, tag)
            return request._receive(self, posted, None, capacity)  # type: ignore[arg-type]
        finally:
            rank.leave()

    # Collective calls.

    def _sized(
        self,
        name: str,
        value: Any,
        root: int,
        counts: str,
        plan: Callable[[int, dict[int, Any]], Rounds],
    ) -> dict[int, Any]:
        """Exchange sizes with the collective `counts`, then the bytes; returns all contributions."""
        rank = here()
        rank.enter(name)
        try:
            self._valid()
            if root >= 0:
                self._root(root)
            size, me = len(self._ranks), self._inverse[rank.index]
            meeting = self._meet(rank, me, name, value, root, 0)
            self._drive(
                rank, self._steps(rank, meeting.sequence, rounds(counts, me, size, root, _COUNT_BYTES))
            )
            self._drive(rank, self._steps(rank, meeting.sequence, plan(me, meeting.data)))
            data = dict(meeting.data)
            self._part(rank, meeting)
            return data
        finally:
            rank.leave()

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Send the root's object to all."""
        me, root = self.Get_rank(), c_int(root)  # type: ignore[attr-defined]
        mine = pickle.dumps(obj) if me == root else None
        size = len(self._ranks)
        data = self._sized(
            "bcast", mine, root, "bcast", lambda me, data: rounds("bcast", me, size, root, len(data[root]))
        )
        return pickle.load(data[root])

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Collect one object of each rank at the root."""
        me, root = self.Get_rank(), c_int(root)  # type: ignore[attr-defined]
        mine = pickle.dumps(sendobj)

        def plan(me: int, data: dict[int, bytes]) -> Rounds:
            lengths = [len(data[rank]) for rank in range(len(self._ranks))] if me == root else [len(mine)]
            return gather_linear(me, root, lengths)

        data = self._sized("gather", mine, root, "gather", plan)
        return [pickle.load(data[rank]) for rank in range(len(self._ranks))] if me == root else None

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """Give one object of the root's sequence to each rank."""
        me, root = self.Get_rank(), c_int(root)  # type: ignore[attr-defined]
        mine = _pickle_each(sendobj, len(self._ranks)) if me == root else None

        def plan(me: int, data: dict[int, list[bytes]]) -> Rounds:
            lengths = [len(item) for item in data[root]]
            return scatter_linear(me, root, lengths if me == root else [lengths[me]])

        data = self._sized("scatter", mine, root, "scatter", plan)
        return pickle.load(data[root][me])

    def allgather(self, sendobj: Any) -> list[Any]:
        """Collect one object of each rank at all ranks."""
        mine = pickle.dumps(sendobj)
        size = self.Get_size()  # type: ignore[attr-defined]
        data = self._sized(
            "allgather",
            mine,
            -1,
            "allgather",
            lambda me, data: rounds_of("allgather", me, tuple(len(data[rank]) for rank in range(size))),
        )
        return [pickle.load(data[rank]) for rank in range(size)]

    def alltoall(self, sendobj: Sequence[Any] | None) -> list[Any]:
        """Give each rank its own object of the sequence."""
        me, size = self.Get_rank(), self.Get_size()  # type: ignore[attr-defined]
        mine = _pickle_each(sendobj, size)

        def plan(me: int, data: dict[int, list[bytes]]) -> Rounds:
            incoming = tuple(len(data[rank][me]) for rank in range(size))
            return rounds_of("alltoall", me, tuple(len(item) for item in mine), incoming)

        data = self._sized("alltoall", mine, -1, "alltoall", plan)
        return [pickle.load(data[rank][me]) for rank in range(size)]

    # Reductions: trees of messages.

    def _swap(self, rank: Rank, me: int, tag: int, peer: int, out: bytes | None, receive: bool) -> bytes:
        """Send and/or receive an object's size, and then its bytes."""
        context, world = self._context + 1, self._ranks[peer]
        got = b""
        for count in (True, False):
            ids = []
            if receive:
                ids.append(rank.receive(context, world, tag, _NO_LIMIT))
            if out is not None:
                ids.append(rank.send(context, world, tag, bytes(_COUNT_BYTES) if count else out, "standard"))
            for completion in rank.wait_all(ids):
                if receive and completion[0] == ids[0]:
                    got = rank.open(completion)
        return got

    def _tree(self, name: str, sendobj: Any, root: int, body: Callable[..., Any]) -> Any:
        """Run `body(me, size, swap, work)`, a reduction made of messages."""
        rank = here()
        rank.enter(name)
        try:
            self._valid()
            if root >= 0:
                self._root(root)
            me = self._inverse[rank.index]
            meeting = self._meet(rank, me, name, None, root, 0)
            tag = meeting.sequence
            self._part(rank, meeting)

            def work(function: Callable[[], Any]) -> Any:
                kept: list[Any] = []
                rank.work("reduce", lambda: kept.append(function()))
                return kept[0]

            def swap(peer: int, obj: Any = None, send: bool = True, receive: bool = True) -> Any:
                out = work(lambda: pickle.dumps(obj)) if send else None
                got = self._swap(rank, me, tag, peer, out, receive)
                return work(lambda: pickle.load(got)) if receive else None

            return body(me, len(self._ranks), swap, work)
        finally:
            rank.leave()

    def reduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        """Combine the objects of all ranks at the root."""
        root = c_int(root)
        return self._tree("reduce", sendobj, root, _reduce_body(sendobj, op, root))

    def allreduce(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Combine the objects of all ranks at all ranks."""
        result = self._tree("allreduce", sendobj, -1, _reduce_body(sendobj, op, 0))
        return self.bcast(result, 0)

    def scan(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Combine the objects of the ranks up to this one."""
        return self._tree("scan", sendobj, -1, _scan_body(sendobj, op, True))

    def exscan(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """Combine the objects of the ranks before this one; rank 0 gets None."""
        return self._tree("exscan", sendobj, -1, _scan_body(sendobj, op, False))


def _pickle_each(items: Sequence[Any] | None, size: int) -> list[bytes]:
    listed = [None] * size if items is None else list(items)
    if len(listed) != size:
        raise ValueError(f"expecting {size} items, got {len(listed)}")
    return [pickle.dumps(item) for item in listed]


def _reduce_body(sendobj: Any, op: Any, root: int) -> Callable[..., Any]:
    def body(me: int, size: int, swap: Any, work: Any) -> Any:
        result = work(lambda: pickle.load(pickle.dumps(sendobj)))
        mask = 1
        while mask < size:
            if me & mask:
                swap(me & ~mask, result, receive=False)
                break
            if me | mask < size:
                other = swap(me | mask, send=False)
                result = work(lambda left=result, right=other: op(left, right))
            mask *= 2
        if root != 0:
            if me == 0:
                swap(root, result, receive=False)
            elif me == root:
                result = swap(0, send=False)
        return result if me == root else None

    return body


def _scan_body(sendobj: Any, op: Any, inclusive: bool) -> Callable[..., Any]:
    def body(me: int, size: int, swap: Any, work: Any) -> Any:
        result = work(lambda: pickle.load(pickle.dumps(sendobj)))
        partial, begun = result, inclusive
        mask = 1
        while mask < size:
            peer = me ^ mask
            if peer < size:
                other = swap(peer, partial)
                if me > peer:
                    partial = work(lambda left=other, right=partial: op(left, right))
                    result = work(lambda left=other, right=result: op(left, right)) if begun else other
                    begun = True
                else:
                    partial = work(lambda left=partial, right=other: op(left, right))
            mask *= 2
        return None if not inclusive and me == 0 else result

    return body


__all__ = ["Objects", "_complete"]
