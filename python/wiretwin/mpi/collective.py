"""Collective calls on buffers.

Time comes from the rounds of `_core.schedule`: sends and receives of lengths, on a context of the
communicator's own. Data goes through a *meeting*: each rank leaves what it contributes when it
enters; when its rounds are over, everything its result depends on has been left, because every
message it waited for was sent after its sender had entered. Nothing is taken of a block of no bytes,
for which there is no message. Reductions combine in the order of the
real library (`ops.py`); the reduction steps of a schedule are done on scratch data of the same
length, and the time that takes is charged like computation.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import ops, outside
from .buffers import IN_PLACE, Buffer, simple, vector
from .constants import TAG_LIMIT
from .failure import fail
from .numbers import c_int
from .ops import OPS, Op
from .rank import Rank, arriving, here
from .request import Request
from .rounds import Rounds, gather_linear, rounds, rounds_of, scatter_linear

if TYPE_CHECKING:
    from .datatype import Datatype

SUM = OPS["SUM"]

_BINOMIAL_REDUCE_BYTES = 2048
_HALVING_BYTES = 512 * 1024


class Meeting:
    """One collective call of all ranks of a communicator."""

    __slots__ = ("data", "first", "key", "left", "name", "nbytes", "result", "root", "sequence")

    def __init__(
        self, key: tuple[int, int], name: str, root: int, nbytes: int, size: int, first: Any
    ) -> None:
        self.key = key
        self.sequence = key[1]
        self.name = name
        self.root = root
        self.nbytes = nbytes
        self.left = size
        self.first = first
        self.data: dict[int, Any] = {}
        self.result: bytes | None = None

    def all(self) -> list[Any]:
        """Return what every rank has contributed, by rank."""
        return [self.data[rank] for rank in range(len(self.data))]


class Collectives:
    """The collective calls of a communicator."""

    if TYPE_CHECKING:
        _context: int
        _ranks: tuple[int, ...]
        _inverse: dict[int, int]
        _name: str

        def _valid(self) -> None: ...

    # Machinery.

    def _root(self, root: int) -> int:
        if not 0 <= root < len(self._ranks):
            fail("ERR_ROOT", f"root has value {root}, must be from 0 to {len(self._ranks) - 1}")
        return root

    def _meet(self, rank: Rank, me: int, name: str, value: Any, root: int, nbytes: int) -> Meeting:
        """Leave a contribution; all ranks must make the same call."""
        sequence = rank.sequences.get(self._context, 0)
        rank.sequences[self._context] = sequence + 1
        key = (self._context, sequence if len(self._ranks) > 1 else -1 - rank.index)
        meetings = rank.runtime.meetings
        meeting = meetings.get(key)
        if meeting is None:
            first = (me, rank.inside, rank.site)
            meeting = Meeting((key[0], key[1]), name, root, nbytes, len(self._ranks), first)
            meeting.sequence = sequence
            meetings[key] = meeting
        elif meeting.name != name or meeting.root != root or not _agree(meeting, me, nbytes):
            who, inside, site = meeting.first
            fail(
                "ERR_OTHER",
                f"collective call {sequence} of {self._name or 'the communicator'} differs between ranks: "
                f"rank {who} calls {_call(inside, meeting.root, meeting.nbytes)} at "
                f"{rank.sites.text(site)}, rank {me} calls {_call(rank.inside, root, nbytes)} at "
                f"{rank.sites.text(rank.site)}",
            )
        elif _tells_more(meeting, me, nbytes):
            meeting.first, meeting.nbytes = (me, rank.inside, rank.site), nbytes
        meeting.data[me] = value
        return meeting

    def _part(self, rank: Rank, meeting: Meeting) -> None:
        """Leave a meeting; the last one clears it away."""
        meeting.left -= 1
        if meeting.left == 0:
            rank.runtime.meetings.pop(meeting.key, None)

    def _steps(
        self,
        rank: Rank,
        sequence: int,
        plan: Rounds,
        reduce: Callable[[int], None] | None = None,
        mode: str = "standard",
    ) -> Generator[list[int], None, None]:
        """Post the rounds of a schedule one after the other; yields what to wait for.

        What is sent before anything has been received is sent in `mode`.
        """
        context, tag, ranks = self._context + 1, sequence & TAG_LIMIT, self._ranks
        post, me, receives = rank.post, rank.index, rank.runtime.receives
        for step in plan:
            ids = []
            for what, peer, _, length in step:
                if what == "recv":
                    request = post(me, ("recv", context, ranks[peer], tag, length))
                    receives[request] = (me, ranks[peer], tag, context, rank.site, rank.inside)
                    ids.append(request)
            for what, peer, _, length in step:
                if what == "send":
                    ids.append(post(me, ("send", context, ranks[peer], tag, length, mode)))
            if ids:
                yield ids
            if any(what == "recv" for what, *_ in step):
                mode = "standard"
            if reduce is not None:
                for what, _, _, length in step:
                    if what == "reduce" and length:
                        reduce(length)

    def _drive(self, rank: Rank, steps: Generator[list[int], None, None]) -> None:
        receives = rank.runtime.receives
        for ids in steps:
            for completion in rank.wait_all(ids):
                receives.pop(completion[0], None)

    def _run(
        self,
        rank: Rank,
        me: int,
        sequence: int,
        collective: str,
        root: int,
        nbytes: int,
        reduce: Callable[[int], None] | None = None,
    ) -> None:
        plan = rounds(collective, me, len(self._ranks), root, nbytes)
        self._drive(rank, self._steps(rank, sequence, plan, reduce))

    def _blocking(
        self,
        name: str,
        prepare: Callable[[Rank, int], tuple[Any, int, int]],
        plan: Callable[[int, int, int], Rounds],
        finish: Callable[[Meeting, int], None],
        reduce: Callable[[Rank], Callable[[int], None]] | None = None,
    ) -> None:
        """Run one collective call: `prepare` gives contribution, root and bytes."""
        rank = here()
        rank.enter(name)
        try:
            for _ in self._collective(rank, name, prepare, plan, finish, reduce, True):
                raise AssertionError("a blocking collective call does not yield")
        finally:
            rank.leave()

    def _started(
        self,
        name: str,
        prepare: Callable[[Rank, int], tuple[Any, int, int]],
        plan: Callable[[int, int, int], Rounds],
        finish: Callable[[Meeting, int], None],
        reduce: Callable[[Rank], Callable[[int], None]] | None = None,
    ) -> Request:
        rank = here()
        rank.enter(name)
        try:
            steps = self._collective(rank, name, prepare, plan, finish, reduce, False)
            return Request()._collect(rank, steps)
        finally:
            rank.leave()

    def _collective(
        self,
        rank: Rank,
        name: str,
        prepare: Callable[[Rank, int], tuple[Any, int, int]],
        plan: Callable[[int, int, int], Rounds],
        finish: Callable[[Meeting, int], None],
        reduce: Callable[[Rank], Callable[[int], None]] | None,
        blocking: bool,
    ) -> Generator[list[int], None, None]:
        self._valid()
        me = self._inverse[rank.index]
        value, root, nbytes = prepare(rank, me)
        meeting = self._meet(rank, me, name, value, root, nbytes)
        work = reduce(rank) if reduce is not None else None
        parts = value if isinstance(value, list) else [value]
        is_buffer = all(isinstance(part, bytes) for part in parts)
        mode = rank.mode_of(name, *parts, mode="standard") if is_buffer else "standard"
        steps = self._steps(rank, meeting.sequence, plan(me, root, nbytes), work, mode)
        if blocking:
            self._drive(rank, steps)
        else:
            yield from steps
        try:
            finish(meeting, me)
        finally:
            self._part(rank, meeting)

    def _scheduled(self, collective: str) -> Callable[[int, int, int], Rounds]:
        return lambda me, root, nbytes: rounds(collective, me, len(self._ranks), root, nbytes)

    # Barrier and broadcast.

    def Barrier(self) -> None:
        """Wait until all ranks are here."""
        arriving()
        self._blocking("Barrier", _nothing, self._scheduled("barrier"), _done)

    barrier = Barrier

    def Ibarrier(self) -> Request:
        """Start a barrier."""
        arriving()
        return self._started("Ibarrier", _nothing, self._scheduled("barrier"), _done)

    def _bcast_parts(self, buf: Any, root: int) -> Any:
        kept: list[Buffer] = []
        root = c_int(root)

        def prepare(rank: Rank, me: int) -> tuple[Any, int, int]:
            self._root(root)
            buffer = simple(buf, me != root, root, 0)
            kept.append(buffer)
            return buffer.pack() if me == root else None, root, buffer.nbytes

        def finish(meeting: Meeting, me: int) -> None:
            if me != root and kept[0].nbytes:
                kept[0].unpack(meeting.data[root])

        return prepare, self._scheduled("bcast"), finish

    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Send the root's buffer to all."""
        arriving()
        self._blocking("Bcast", *self._bcast_parts(buf, root))

    def Ibcast(self, buf: Any, root: int = 0) -> Request:
        """Start a broadcast."""
        arriving()
        return self._started("Ibcast", *self._bcast_parts(buf, root))

    # Gather and scatter.

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Collect one block of each rank at the root."""
        arriving()
        self._gather("Gather", sendbuf, recvbuf, root, False)

    def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Collect blocks of any length at the root."""
        arriving()
        self._gather("Gatherv", sendbuf, recvbuf, root, True)

    def _gather(self, name: str, sendbuf: Any, recvbuf: Any, root: int, varying: bool) -> None:
        size = len(self._ranks)
        parts: list[Buffer] = []
        own: list[int] = []
        root = c_int(root)

        def prepare(rank: Rank, me: int) -> tuple[Any, int, int]:
            self._root(root)
            if me == root:
                parts.extend(_parts(recvbuf, True, size, varying))
            if sendbuf is IN_PLACE:
                if me != root:
                    fail("ERR_BUFFER", "only the root may use IN_PLACE")
                mine = parts[root]
            else:
                mine = simple(sendbuf, False, 0, 0)
            own.append(mine.nbytes)
            block = parts[root].nbytes if me == root else mine.nbytes
            return mine.pack(sent=me != root), root, -1 if varying else block

        def plan(me: int, _: int, nbytes: int) -> Rounds:
            if not varying:
                return rounds("gather", me, size, root, nbytes)
            lengths = [part.nbytes for part in parts]
            return gather_linear(me, root, lengths if me == root else own)

        def finish(meeting: Meeting, me: int) -> None:
            if me == root:
                for other, part in enumerate(parts):
                    if part.nbytes and not (other == me and sendbuf is IN_PLACE):
                        _fill(part, meeting.data[other], other, me)

        self._blocking(name, prepare, plan, finish)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Give one block of the root's buffer to each rank."""
        arriving()
        self._scatter("Scatter", sendbuf, recvbuf, root, False)

    def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Give blocks of any length of the root's buffer to the ranks."""
        arriving()
        self._scatter("Scatterv", sendbuf, recvbuf, root, True)

    def _scatter(self, name: str, sendbuf: Any, recvbuf: Any, root: int, varying: bool) -> None:
        size = len(self._ranks)
        mine: list[Buffer | None] = []
        parts: list[Buffer] = []
        root = c_int(root)

        def prepare(rank: Rank, me: int) -> tuple[Any, int, int]:
            self._root(root)
            if me == root:
                parts.extend(_parts(sendbuf, False, size, varying))
            if recvbuf is IN_PLACE:
                if me != root:
                    fail("ERR_BUFFER", "only the root may use IN_PLACE")
                mine.append(None)
            else:
                mine.append(simple(recvbuf, True, 0, 0))
            if varying:
                nbytes = -1
            elif parts:
                nbytes = parts[0].nbytes
            else:
                nbytes = _size(mine[0])
            blocks = [part.pack(sent=other != root) for other, part in enumerate(parts)]
            return blocks, root, nbytes

        def plan(me: int, _: int, nbytes: int) -> Rounds:
            if not varying:
                return rounds("scatter", me, size, root, nbytes)
            lengths = [part.nbytes for part in parts]
            return scatter_linear(me, root, lengths if me == root else [_size(mine[0])])

        def finish(meeting: Meeting, me: int) -> None:
            if mine[0] is not None and mine[0].nbytes:
                _fill(mine[0], meeting.data[root][me], root, me)

        self._blocking(name, prepare, plan, finish)

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Collect one block of each rank at all ranks."""
        arriving()
        self._blocking("Allgather", *self._allgather_parts(sendbuf, recvbuf, False))

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Collect blocks of any length at all ranks."""
        arriving()
        self._blocking("Allgatherv", *self._allgather_parts(sendbuf, recvbuf, True))

    def Iallgather(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Start to collect one block of each rank at all ranks."""
        arriving()
        return self._started("Iallgather", *self._allgather_parts(sendbuf, recvbuf, False))

    def _allgather_parts(self, sendbuf: Any, recvbuf: Any, varying: bool) -> Any:
        size = len(self._ranks)
        parts: list[Buffer] = []

        def prepare(rank: Rank, me: int) -> tuple[Any, int, int]:
            parts.extend(_parts(recvbuf, True, size, varying))
            mine = parts[me] if sendbuf is IN_PLACE else simple(sendbuf, False, 0, 0)
            return mine.pack(sent=size > 1), -1, -1 if varying else mine.nbytes

        def plan(me: int, root: int, nbytes: int) -> Rounds:
            if not varying:
                return rounds("allgather", me, size, -1, nbytes)
            return rounds_of("allgather", me, tuple(part.nbytes for part in parts))

        def finish(meeting: Meeting, me: int) -> None:
            for other, part in enumerate(parts):
                if part.nbytes and not (other == me and sendbuf is IN_PLACE):
                    _fill(part, meeting.data[other], other, me)

        return prepare, plan, finish

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Give each rank its own block of the buffer."""
        arriving()
        self._blocking("Alltoall", *self._alltoall_parts(sendbuf, recvbuf, False))

    def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """Give each rank its own block, of any length."""
        arriving()
        self._blocking("Alltoallv", *self._alltoall_parts(sendbuf, recvbuf, True))

    def Ialltoall(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Start to give each rank its own block."""
        arriving()
        return self._started("Ialltoall", *self._alltoall_parts(sendbuf, recvbuf, False))

    def Ialltoallv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Start to give each rank its own block, of any length."""
        arriving()
        return self._started("Ialltoallv", *self._alltoall_parts(sendbuf, recvbuf, True))

    def _alltoall_parts(self, sendbuf: Any, recvbuf: Any, varying: bool) -> Any:
        size = len(self._ranks)
        outgoing: list[Buffer] = []
        incoming: list[Buffer] = []

        def prepare(rank: Rank, me: int) -> tuple[Any, int, int]:
            incoming.extend(_parts(recvbuf, True, size, varying))
            outgoing.extend(incoming if sendbuf is IN_PLACE else _parts(sendbuf, False, size, varying))
            nbytes = -1 if varying else outgoing[0].nbytes
            return [part.pack(sent=other != me) for other, part in enumerate(outgoing)], -1, nbytes

        def plan(me: int, root: int, nbytes: int) -> Rounds:
            if not varying:
                return rounds("alltoall", me, size, -1, nbytes)
            lengths = tuple(part.nbytes for part in outgoing)
            return rounds_of("alltoall", me, lengths, tuple(part.nbytes for part in incoming))

        def finish(meeting: Meeting, me: int) -> None:
            for other, part in enumerate(incoming):
                if part.nbytes:
                    _fill(part, meeting.data[other][me], other, me)

        return prepare, plan, finish

    # Reductions.

    def _reduction(
        self,
        sendbuf: Any,
        recvbuf: Any,
        op: Op,
        root: int,
        collective: str,
        combine: Callable[[Meeting, Datatype, int], bytes | None],
    ) -> Any:
        """Prepare Reduce (root >= 0), Allreduce, Scan or Exscan (root -1)."""
        kept: list[tuple[Buffer | None, Datatype]] = []
        apart = False

        def prepare(rank: Rank, me: int) -> tuple[Any, int, int]:
            nonlocal apart
            apart = rank.runtime.apart
            if collective == "reduce":
                self._root(root)
            receiver = simple(recvbuf, True, 0, 0) if root < 0 or me == root else None
            if sendbuf is not IN_PLACE:
                mine = simple(sendbuf, False, 0, 0)
            elif receiver is not None:
                mine = receiver
            else:
                fail("ERR_BUFFER", "only the root may use IN_PLACE")
            if receiver is not None:
                _same(mine.datatype, receiver.datatype, mine.count, receiver.count)
            op._combiner(mine.datatype)
            kept.append((receiver, mine.datatype))
            return mine.pack(sent=len(self._ranks) > 1), root, mine.nbytes

        def finish(meeting: Meeting, me: int) -> None:
            receiver, datatype = kept[0]
            # Of nothing there are no messages: others may not be here yet.
            if receiver is None or not receiver.nbytes:
                return
            data = combine(meeting, datatype, me)
            if data is not None:
                receiver.unpack(data)

        def reduce(rank: Rank) -> Callable[[int], None]:
            return _scratch(rank, op, lambda: kept[0][1])

        def plan(me: int, _: int, nbytes: int) -> Rounds:
            unit = max(kept[0][1].Get_size(), 1)
            return rounds(collective, me, len(self._ranks), root, nbytes, unit, op._commute, apart)

        return prepare, plan, finish, reduce

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> None:
        """Combine the buffers of all ranks at the root."""
        arriving()
        root = c_int(root)

        def combine(meeting: Meeting, datatype: Datatype, me: int) -> bytes:
            if meeting.nbytes <= _BINOMIAL_REDUCE_BYTES and op._commute:
                return _fold(meeting.all(), op, datatype, lambda a, f: ops.binomial(a, f, root))
            return _fold(meeting.all(), op, datatype, ops.recursive_doubling)

        self._blocking("Reduce", *self._reduction(sendbuf, recvbuf, op, root, "reduce", combine))

    def _allreduce_parts(self, sendbuf: Any, recvbuf: Any, op: Op) -> Any:
        def combine(meeting: Meeting, datatype: Datatype, me: int) -> bytes:
            if meeting.result is None:
                meeting.result = _fold(meeting.all(), op, datatype, ops.recursive_doubling)
            return meeting.result

        return self._reduction(sendbuf, recvbuf, op, -1, "allreduce", combine)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine the buffers of all ranks at all ranks."""
        arriving()
        self._blocking("Allreduce", *self._allreduce_parts(sendbuf, recvbuf, op))

    def Iallreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        """Start to combine the buffers of all ranks at all ranks."""
        arriving()
        return self._started("Iallreduce", *self._allreduce_parts(sendbuf, recvbuf, op))

    def Scan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine the buffers of the ranks up to this one."""
        arriving()
        self._scan("Scan", sendbuf, recvbuf, op, 1)

    def Exscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine the buffers of the ranks before this one; rank 0 keeps its buffer."""
        arriving()
        self._scan("Exscan", sendbuf, recvbuf, op, 0)

    def _scan(self, name: str, sendbuf: Any, recvbuf: Any, op: Op, own: int) -> None:
        def combine(meeting: Meeting, datatype: Datatype, me: int) -> bytes | None:
            below = [meeting.data[i] for i in range(me + own)]
            return _fold(below, op, datatype, ops.prefix) if below else None

        self._blocking(name, *self._reduction(sendbuf, recvbuf, op, -1, name.lower(), combine))

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        """Combine the buffers of all ranks, and give each rank one block."""
        size = len(self._ranks)
        if sendbuf is IN_PLACE:
            whole = simple(recvbuf, True, 0, size)
            counts = [whole.count] * size
            source = whole.part(0, whole.count * size)
        else:
            whole = simple(recvbuf, True, 0, 0)
            source = simple(sendbuf, False, 0, size)
            _same(source.datatype, whole.datatype, source.count, whole.count)
            counts = [source.count] * size
            source = source.part(0, source.count * size)
        target = whole.part(0, whole.count)
        self._reduce_scatter("Reduce_scatter_block", source, target, counts, op)

    def Reduce_scatter(
        self, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None = None, op: Op = SUM
    ) -> None:
        """Combine the buffers of all ranks, and give each rank a block of its length."""
        target = simple(recvbuf, True, 0, 0)
        source = target if sendbuf is IN_PLACE else simple(sendbuf, False, 0, 0)
        if recvcounts is None:
            if sendbuf is IN_PLACE:
                raise ValueError("recvcounts must be given with IN_PLACE")
            received = np.empty(len(self._ranks), "i8")
            self.Allgather(np.array([target.count], "i8"), received)
            counts = [int(count) for count in received]
        else:
            counts = [int(count) for count in recvcounts]
        if len(counts) != len(self._ranks):
            raise ValueError(f"expecting {len(self._ranks)} items, got {len(counts)}")
        if source.count != sum(counts):
            what = "receive" if sendbuf is IN_PLACE else "send"
            raise ValueError(f"mismatch in {what} count {source.count} and sum(counts) {sum(counts)}")
        self._reduce_scatter("Reduce_scatter", source, target, counts, op)

    def _reduce_scatter(self, name: str, source: Buffer, target: Buffer, counts: list[int], op: Op) -> None:
        datatype = source.datatype

        def prepare(rank: Rank, me: int) -> tuple[Any, int, int]:
            op._combiner(datatype)
            return source.pack(sent=len(counts) > 1), -1, source.nbytes

        def plan(me: int, root: int, nbytes: int) -> Rounds:
            unit = max(datatype.Get_size(), 1)
            lengths = tuple(count * unit for count in counts)
            return rounds_of("reduce_scatter", me, lengths, None, unit, op._commute)

        def finish(meeting: Meeting, me: int) -> None:
            size = datatype.Get_size()
            begin, end = sum(counts[:me]) * size, sum(counts[: me + 1]) * size
            if begin == end:
                return
            data = [meeting.data[i][begin:end] for i in range(len(counts))]
            if not op._commute:
                folded = _fold(data, op, datatype, ops.recursive_doubling)
            elif source.nbytes < _HALVING_BYTES:
                folded = _fold(data, op, datatype, ops.recursive_halving)
            else:
                folded = _fold(data, op, datatype, lambda a, f: ops.backwards(a, f, me))
            target.unpack(folded)

        self._blocking(name, prepare, plan, finish, lambda rank: _scratch(rank, op, lambda: datatype))


def _nothing(rank: Rank, me: int) -> tuple[Any, int, int]:
    return None, -1, 0


def _done(meeting: Meeting, me: int) -> None:
    pass


def _agree(meeting: Meeting, me: int, nbytes: int) -> bool:
    """Whether a rank's block fits that of the ranks before it.

    In a gather a rank may send less than the root has room for, in a scatter it may have more room than the
    root sends: real libraries accept both. Between two ranks of which neither is the root, nothing is to fit.
    """
    if nbytes < 0 or meeting.nbytes == nbytes:
        return True
    if meeting.name not in ("Gather", "Scatter"):
        return False
    known = meeting.first[0] == meeting.root
    if not known and me != meeting.root:
        return True
    block, of_root = (nbytes, meeting.nbytes) if known else (meeting.nbytes, nbytes)
    return block <= of_root if meeting.name == "Gather" else block >= of_root


def _tells_more(meeting: Meeting, me: int, nbytes: int) -> bool:
    """Whether later ranks are held against this one: the root, or, before it, what fits it least."""
    if nbytes < 0 or meeting.nbytes == nbytes or meeting.first[0] == meeting.root:
        return False
    return me == meeting.root or (nbytes > meeting.nbytes) == (meeting.name == "Gather")


def _call(name: str, root: int, nbytes: int) -> str:
    parts = [f"root {root}"] if root >= 0 else []
    parts += [f"{nbytes} bytes"] if nbytes > 0 else []
    return f"{name} ({', '.join(parts)})" if parts else name


def _same(left: Datatype, right: Datatype, send: int, receive: int) -> None:
    if left != right:
        raise ValueError("mismatch in send and receive MPI datatypes")
    if send != receive:
        raise ValueError(f"mismatch in send count {send} and receive count {receive}")


def _parts(message: Any, writable: bool, size: int, varying: bool) -> list[Buffer]:
    """Return the block of each rank in a buffer."""
    if varying:
        many = vector(message, writable, size)
        return [many.part(rank) for rank in range(size)]
    whole = simple(message, writable, 0, size)
    return [whole.part(rank * whole.count, whole.count) for rank in range(size)]


def _size(buffer: Buffer | None) -> int:
    return buffer.nbytes if buffer is not None else 0


def _fill(part: Buffer, data: bytes, source: int, me: int) -> None:
    if len(data) > part.nbytes:
        fail(
            "ERR_TRUNCATE",
            f"{len(data)} bytes of rank {source} met room for {part.nbytes} bytes",
        )
    if source == me:
        part.copy_own(data)
    else:
        part.unpack(data)


def _fold(data: list[bytes], op: Op, datatype: Datatype, order: Callable[[list[Any], Any], Any]) -> bytes:
    if len(data) == 1:
        return data[0]
    combine = op._combiner(datatype)
    arrays = [op._array(item, datatype) for item in data]
    with np.errstate(all="ignore"):
        folded = order(arrays, combine)
    result: bytes = folded.astype(arrays[0].dtype, copy=False).tobytes()
    return result


def _scratch(rank: Rank, op: Op, datatype: Callable[[], Datatype]) -> Callable[[int], None]:
    """Return what does a reduction step of some bytes on scratch data.

    In place where it can be, as a library reduces, on memory that has been touched before.
    """

    def reduce(nbytes: int) -> None:
        kind = datatype()
        # Of two elements at least: numpy takes twice as long for one as for two.
        whole = max(nbytes // max(kind.Get_size(), 1), 2) * kind.Get_size()
        left, right = (
            op._array(cast(bytes, _scratch_bytes(side, whole)), kind) for side in ("left", "right")
        )
        combine = op._combiner(kind)
        if isinstance(combine, np.ufunc):
            rank.work("reduce", lambda: combine(left, right, out=right))
        else:
            rank.work("reduce", lambda: combine(left, right))

    return reduce


_SCRATCH: dict[str, Any] = {}


def _scratch_bytes(side: str, nbytes: int) -> Any:
    """Return zeroed bytes, touched, kept for the next reduction."""
    kept = _SCRATCH.get(side)
    if kept is None or kept.size < nbytes:
        kept = _SCRATCH[side] = outside.memory(nbytes)
        kept[:] = 0
    return kept[:nbytes]
