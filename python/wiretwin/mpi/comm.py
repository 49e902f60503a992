"""Communicators: messages between two ranks, and what makes new communicators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import thread_time_ns
from typing import TYPE_CHECKING, Any

from .buffers import Buffer, Plain, incoming, outgoing, simple
from .collective import Collectives
from .constants import ANY_SOURCE, ANY_TAG, INTEGERS, PROC_NULL, TAG_LIMIT, UNDEFINED
from .failure import fail, refuse
from .group import Group
from .names import refuse_name, refusing
from .numbers import c_int
from .objects import Objects
from .rank import LONG, NOBODY, Rank, here
from .request import MESSAGE_NO_PROC, Message, Prequest, Request, _complete, _poll
from .status import Status

if TYPE_CHECKING:
    from .topology import Cartcomm

Mode = str

NO_RECEIVE = (NOBODY, 0, 0)
"""What `Rank.exchange` takes where a call receives nothing."""

_CONTEXT_MASK_BYTES = 256
"""What MPICH reduces over a communicator to agree on the context of a new one."""


@refusing
class Comm(Collectives, Objects):
    """`mpi4py.MPI.Comm`."""

    def __init__(self, comm: Comm | None = None) -> None:
        source = comm if comm is not None else _NULL_STATE
        self._context: int = source._context
        self._ranks: tuple[int, ...] = source._ranks
        self._inverse: dict[int, int] = source._inverse
        self._name: str = source._name
        self._attributes: dict[int, Any] = {}
        self._predefined = False

    @classmethod
    def _make(cls, context: int, ranks: Sequence[int], name: str = "") -> Any:
        made = cls()
        made._context = context
        made._ranks = tuple(ranks)
        made._inverse = {rank: i for i, rank in enumerate(ranks)}
        made._name = name
        return made

    def __bool__(self) -> bool:
        return self._context >= 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comm):
            return NotImplemented
        return self._context == other._context

    def __hash__(self) -> int:
        return hash(self._context)

    def __reduce__(self) -> Any:
        if self._predefined or not self:
            return (_predefined, (self._name if self else "MPI_COMM_NULL",))
        raise ValueError("cannot pickle a communicator")

    # Who and where.

    def _valid(self) -> None:
        if self._context < 0:
            fail("ERR_COMM", "null communicator (or one that has been freed)")

    def Get_size(self) -> int:
        """Return the number of ranks."""
        self._valid()
        return len(self._ranks)

    def Get_rank(self) -> int:
        """Return the rank of the caller."""
        self._valid()
        return self._inverse[here().index]

    size = property(Get_size)
    rank = property(Get_rank)

    def Get_group(self) -> Group:
        """Return the group of ranks."""
        self._valid()
        return Group._of(self._ranks)

    group = property(Get_group)

    def Get_name(self) -> str:
        """Return the name."""
        self._valid()
        return self._name

    def Set_name(self, name: str) -> None:
        """Name the communicator."""
        self._valid()
        self._name = name

    name = property(Get_name, Set_name)

    def Is_inter(self) -> bool:
        """Tell whether this is an intercommunicator: never here."""
        self._valid()
        return False

    def Is_intra(self) -> bool:
        """Tell whether this is an intracommunicator."""
        self._valid()
        return True

    is_inter = property(Is_inter)
    is_intra = property(Is_intra)

    def Get_topology(self) -> int:
        """Return the kind of topology, UNDEFINED for none."""
        self._valid()
        return UNDEFINED

    topology = property(lambda self: self.Get_topology())
    is_topo = property(lambda self: self.Get_topology() != UNDEFINED)

    def Compare(self, comm: Comm) -> int:
        """Return IDENT, CONGRUENT, SIMILAR or UNEQUAL."""
        self._valid()
        comm._valid()
        if self._context == comm._context:
            return INTEGERS["IDENT"]
        if self._ranks == comm._ranks:
            return INTEGERS["CONGRUENT"]
        same = sorted(self._ranks) == sorted(comm._ranks)
        return INTEGERS["SIMILAR" if same else "UNEQUAL"]

    def Get_attr(self, keyval: int) -> Any:
        """Return an attribute: TAG_UB, WTIME_IS_GLOBAL, UNIVERSE_SIZE, APPNUM or one of your own."""
        self._valid()
        own = {
            INTEGERS["TAG_UB"]: TAG_LIMIT,
            INTEGERS["WTIME_IS_GLOBAL"]: 1,
            INTEGERS["APPNUM"]: 0,
            INTEGERS["UNIVERSE_SIZE"]: here().runtime.size,
            INTEGERS["LASTUSEDCODE"]: INTEGERS["ERR_LASTCODE"],
        }
        return own.get(keyval, self._attributes.get(keyval))

    def Set_attr(self, keyval: int, attrval: Any) -> None:
        """Set an attribute."""
        self._valid()
        self._attributes[keyval] = attrval

    def Delete_attr(self, keyval: int) -> None:
        """Delete an attribute."""
        self._valid()
        self._attributes.pop(keyval, None)

    @classmethod
    def Create_keyval(
        cls,
        copy_fn: Callable[..., Any] | None = None,
        delete_fn: Callable[..., Any] | None = None,
        nopython: bool = False,
    ) -> int:
        """Create a key for attributes that are not copied."""
        if copy_fn is not None or delete_fn is not None:
            refuse("Comm.Create_keyval with callbacks", "call it without copy_fn and delete_fn")
        runtime = here().runtime
        runtime.keyvals += 1
        return runtime.keyvals

    @classmethod
    def Free_keyval(cls, keyval: int) -> int:
        """Free a key."""
        return INTEGERS["KEYVAL_INVALID"]

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Set the error handler; errors are always raised as exceptions, as mpi4py sets it."""
        self._valid()
        if errhandler is not ERRORS_RETURN:
            refuse(f"Comm.Set_errhandler({errhandler._name})", "errors are raised (MPI.ERRORS_RETURN)")

    def Get_errhandler(self) -> Errhandler:
        """Return the error handler."""
        self._valid()
        return ERRORS_RETURN

    def Abort(self, errorcode: int = 0) -> None:
        """End the whole program."""
        rank = here()
        rank.enter("Abort")
        rank.runtime.abort(rank, errorcode)

    # Messages of buffers.

    def _peer(self, rank: int, what: str) -> int:
        ranks = self._ranks
        if not 0 <= rank < len(ranks):
            self._valid()
            fail("ERR_RANK", f"{what} has value {rank}, must be from 0 to {len(ranks) - 1}")
        return ranks[rank]

    def _source(self, source: int) -> int:
        if source == ANY_SOURCE:
            self._valid()
            return -1
        return self._peer(source, "source rank")

    def _to(self, dest: int, tag: int) -> int:
        """Return the rank of the world that a message goes to."""
        ranks = self._ranks
        peer = ranks[dest] if 0 <= dest < len(ranks) else self._peer(dest, "destination rank")
        if not 0 <= tag <= TAG_LIMIT:
            fail("ERR_TAG", f"tag has value {tag}, must be from 0 to {TAG_LIMIT}")
        return peer

    def _from(self, source: int, tag: int) -> int:
        """Return the rank of the world that a message comes from, -1 for any."""
        ranks = self._ranks
        peer = ranks[source] if 0 <= source < len(ranks) else self._source(source)
        if not ANY_TAG <= tag <= TAG_LIMIT:
            fail("ERR_TAG", f"tag has value {tag}, must be from 0 to {TAG_LIMIT} or ANY_TAG")
        return peer

    def _post_send(
        self, rank: Rank, data: bytes, dest: int, tag: int, mode: Mode, *, is_buffer: bool = False
    ) -> int:
        dest, tag = c_int(dest), c_int(tag)
        peer = self._to(dest, tag)
        if mode == "buffered":
            rank.runtime.check_attached(rank, len(data))
        if is_buffer:
            mode = rank.mode_of(peer, data, mode=mode)
        return rank.send(self._context, peer, tag, data, mode)

    def _post_receive(self, rank: Rank, capacity: int, source: int, tag: int) -> int:
        source, tag = c_int(source), c_int(tag)
        return rank.receive(self._context, self._from(source, tag), tag, capacity)

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send, waiting until the buffer may be used again."""
        self._exchange("Send", buf, dest, tag, None, PROC_NULL, 0, None, "standard")

    def Ssend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send, waiting until the receiver has begun to receive."""
        self._exchange("Ssend", buf, dest, tag, None, PROC_NULL, 0, None, "synchronous")

    def Bsend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send from an attached buffer."""
        self._exchange("Bsend", buf, dest, tag, None, PROC_NULL, 0, None, "buffered")

    def Rsend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send to a receive that has been posted."""
        self._exchange("Rsend", buf, dest, tag, None, PROC_NULL, 0, None, "ready")

    def Recv(
        self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> None:
        """Receive, waiting for the message."""
        self._exchange("Recv", None, PROC_NULL, 0, buf, source, tag, status)

    def _store(self, rank: Rank, completion: Any, buffer: Buffer | Plain, status: Status | None) -> None:
        data = rank.open(completion)
        size = len(data)
        capacity = buffer.nbytes
        error = INTEGERS["ERR_TRUNCATE"] if size > capacity else 0
        if status is not None:
            status._set(self._inverse[completion[1]], completion[2], min(size, capacity), error)
        if error:
            fail("ERR_TRUNCATE", f"a message of {size} bytes met a buffer of {capacity} bytes")
        buffer.unpack(data)

    def _exchange(
        self,
        name: str,
        sendbuf: Any,
        dest: int,
        sendtag: int,
        recvbuf: Any,
        source: int,
        recvtag: int,
        status: Status | None,
        mode: Mode = "standard",
    ) -> None:
        """Send and receive, or do one of them alone, the other rank being `PROC_NULL`.

        Where both buffers are one object, it must be writable to be sent. What is given is looked at before
        the world hears of the call; the stretch that the call ends was over before that.
        """
        rank = here()
        rank.arrived_ns = thread_time_ns()
        try:
            self._valid()
            data, to = b"", NOBODY
            if dest != PROC_NULL:
                dest, sendtag = c_int(dest), c_int(sendtag)
                data, to = outgoing(sendbuf, dest, writable=sendbuf is recvbuf), self._to(dest, sendtag)
                if mode == "buffered":
                    rank.runtime.check_attached(rank, len(data))
                if len(data) >= LONG:
                    mode = rank.mode_of(to, data, mode=mode)
            buffer, receive = incoming(recvbuf, source), NO_RECEIVE
            if source != PROC_NULL:
                source, recvtag = c_int(source), c_int(recvtag)
                receive = (self._from(source, recvtag), recvtag, buffer.nbytes)
            elif status is not None:
                status._set(PROC_NULL, ANY_TAG, 0)
        except BaseException:
            rank.enter(name, 3)
            rank.leave()
            raise
        if to == NOBODY and receive is NO_RECEIVE:
            rank.enter(name, 3)
            rank.leave()
            return
        completion = rank.exchange(name, 3, self._context, receive, to, sendtag, data, mode)
        try:
            if completion is not None:
                self._store(rank, completion, buffer, status)
        finally:
            rank.leave()

    def Sendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send one message and receive another, at the same time."""
        self._exchange("Sendrecv", sendbuf, dest, sendtag, recvbuf, source, recvtag, status)

    def Sendrecv_replace(
        self,
        buf: Any,
        dest: int,
        sendtag: int = 0,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send the content of a buffer and receive into it."""
        self._exchange("Sendrecv_replace", buf, dest, sendtag, buf, source, recvtag, status)

    def _start_send(self, name: str, buf: Any, dest: int, tag: int, mode: Mode) -> Request:
        rank = here()
        rank.enter(name, 3)
        try:
            if dest == PROC_NULL:
                self._valid()
                return Request()._finished()
            data = outgoing(buf, dest)
            return Request()._send(self._post_send(rank, data, dest, tag, mode, is_buffer=True))
        finally:
            rank.leave()

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Start to send."""
        return self._start_send("Isend", buf, dest, tag, "standard")

    def Issend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Start to send; complete when the receiver has begun to receive."""
        return self._start_send("Issend", buf, dest, tag, "synchronous")

    def Ibsend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Start to send from an attached buffer."""
        return self._start_send("Ibsend", buf, dest, tag, "buffered")

    def Irsend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Start to send to a receive that has been posted."""
        return self._start_send("Irsend", buf, dest, tag, "ready")

    def Irecv(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Start to receive."""
        rank = here()
        rank.enter("Irecv")
        try:
            return self._begin_receive(rank, Request(), buf, source, tag)
        finally:
            rank.leave()

    def _begin_receive(self, rank: Rank, request: Request, buf: Any, source: int, tag: int) -> Request:
        if source == PROC_NULL:
            self._valid()
            request._finished()._status = (PROC_NULL, ANY_TAG, 0, False)
            return request
        buffer = incoming(buf, source)
        return request._receive(self, self._post_receive(rank, buffer.nbytes, source, tag), buffer)

    # Persistent requests.

    def _persistent_send(self, name: str, buf: Any, dest: int, tag: int, mode: Mode) -> Prequest:
        rank = here()
        rank.enter(name)
        try:
            self._valid()
            message = simple(buf, False, dest)
            if dest != PROC_NULL:
                self._peer(c_int(dest), "destination rank")

            def start(request: Prequest) -> None:
                if dest == PROC_NULL:
                    request._finished()
                else:
                    data = message.pack()
                    request._send(self._post_send(here(), data, dest, tag, mode, is_buffer=True))

            return Prequest._make(start)
        finally:
            rank.leave()

    def Send_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """Make a persistent send."""
        return self._persistent_send("Send_init", buf, dest, tag, "standard")

    def Ssend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """Make a persistent synchronous send."""
        return self._persistent_send("Ssend_init", buf, dest, tag, "synchronous")

    def Bsend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """Make a persistent buffered send."""
        return self._persistent_send("Bsend_init", buf, dest, tag, "buffered")

    def Rsend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """Make a persistent ready send."""
        return self._persistent_send("Rsend_init", buf, dest, tag, "ready")

    def Recv_init(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Prequest:
        """Make a persistent receive."""
        rank = here()
        rank.enter("Recv_init")
        try:
            self._valid()
            if source != PROC_NULL:
                self._source(c_int(source))
            simple(buf, True, source)

            def start(request: Prequest) -> None:
                self._begin_receive(here(), request, buf, source, tag)

            return Prequest._make(start)
        finally:
            rank.leave()

    # Probing.

    def _look(self, name: str, source: int, tag: int, wait: bool) -> tuple[int, int, int] | None:
        """Return source in the world, tag and bytes of a message that is there."""
        rank = here()
        source, tag = c_int(source), c_int(tag)
        ranks = self._ranks
        peer = ranks[source] if 0 <= source < len(ranks) else self._source(source)
        if not ANY_TAG <= tag <= TAG_LIMIT:
            fail("ERR_TAG", f"tag has value {tag}, must be from 0 to {TAG_LIMIT} or ANY_TAG")
        found: tuple[int, int, int] | None
        if wait and not rank.background:
            rank.probing = (peer, tag, self._context)
            rank.post(rank.index, ("probe", self._context, peer, tag))
            found = rank.suspend()[:3]
            rank.probing = None
        else:
            found = None
            while True:
                if rank.background:
                    _poll(rank)
                rank.post(rank.index, ("probe_now", self._context, peer, tag))
                seen = rank.suspend()
                found = None if seen is None else seen[:3]
                if found is not None or not wait:
                    break
                rank.idle()
            if found is None:
                rank.idle()
        rank.note((-1,) if found is None else found)
        return found

    def _probe(self, name: str, source: int, tag: int, status: Status | None, wait: bool) -> bool:
        rank = here()
        rank.enter(name)
        try:
            if source == PROC_NULL:
                self._valid()
                if status is not None:
                    status._set(PROC_NULL, ANY_TAG, 0)
                return True
            found = self._look(name, source, tag, wait)
            if found is not None and status is not None:
                status._set(self._inverse[found[0]], found[1], found[2])
            return found is not None
        finally:
            rank.leave()

    def Probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> bool:
        """Wait for a message without receiving it."""
        return self._probe("Probe", source, tag, status, True)

    def Iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> bool:
        """Tell whether there is a message."""
        return self._probe("Iprobe", source, tag, status, False)

    def _match(self, name: str, source: int, tag: int, status: Status | None, wait: bool) -> Message | None:
        rank = here()
        rank.enter(name)
        try:
            if source == PROC_NULL:
                self._valid()
                if status is not None:
                    status._set(PROC_NULL, ANY_TAG, 0)
                return Message(MESSAGE_NO_PROC)
            found = self._look(name, source, tag, wait)
            if found is None:
                return None
            if status is not None:
                status._set(self._inverse[found[0]], found[1], found[2])
            message = Message()
            message._id = rank.receive(self._context, *found)
            message._comm = self
            message._nbytes = found[2]
            return message
        finally:
            rank.leave()

    def Mprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Message:
        """Wait for a message and match it."""
        message = self._match("Mprobe", source, tag, status, True)
        assert message is not None
        return message

    def Improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Match a message if there is one."""
        return self._match("Improbe", source, tag, status, False)

    probe, iprobe, mprobe, improbe = Probe, Iprobe, Mprobe, Improbe

    def Attach_buffer(self, buf: Any) -> None:
        """Attach memory for buffered sends."""
        here().runtime.attach(here(), buf)

    def Detach_buffer(self) -> Any:
        """Detach the memory for buffered sends."""
        return here().runtime.detach(here())

    # New communicators.

    def _agree(self, name: str, value: Any) -> tuple[dict[int, Any], int]:
        """Exchange a value between all ranks; returns the values by rank, and the number of the call."""
        rank = here()
        rank.enter(name)
        try:
            self._valid()
            me = self._inverse[rank.index]
            meeting = self._meet(rank, me, name, value, -1, 0)
            self._run(rank, me, meeting.sequence, "allgather", -1, 8)
            self._run(rank, me, meeting.sequence, "allreduce", -1, _CONTEXT_MASK_BYTES)
            values = dict(meeting.data)
            self._part(rank, meeting)
            return values, meeting.sequence
        finally:
            rank.leave()

    def _new_context(self, sequence: int, color: int) -> int:
        contexts = here().runtime.contexts
        return contexts.setdefault((self._context, sequence, color), 4 + 2 * len(contexts))

    def Dup(self, info: Any = None) -> Any:
        """Return a copy with its own messages."""
        _, sequence = self._agree("Dup", None)
        made = type(self)._make(self._new_context(sequence, 0), self._ranks, self._name and "")
        self._copy_topology(made)
        return made

    Clone = Dup

    def _copy_topology(self, made: Any) -> None:
        pass

    def Split(self, color: int = 0, key: int = 0) -> Any:
        """Return the communicator of the ranks that give the same color, ordered by key."""
        color, key = c_int(color), c_int(key)
        if color < 0 and color != UNDEFINED:
            fail("ERR_ARG", f"color has value {color}, must be at least 0 or UNDEFINED")
        values, sequence = self._agree("Split", (color, key))
        if color == UNDEFINED:
            return COMM_NULL
        members = sorted((other[1], rank) for rank, other in values.items() if other[0] == color)
        return Intracomm._make(self._new_context(sequence, color), [self._ranks[rank] for _, rank in members])

    def Split_type(self, split_type: int, key: int = 0, info: Any = None) -> Any:
        """Split by host (`COMM_TYPE_SHARED`): ranks placed on the same node stay together."""
        if split_type == UNDEFINED:
            return self.Split(UNDEFINED, key)
        if split_type != INTEGERS["COMM_TYPE_SHARED"]:
            refuse(f"Comm.Split_type({split_type})", "MPI.COMM_TYPE_SHARED and MPI.UNDEFINED are")
        rank = here()
        return self.Split(rank.runtime.placement[rank.index], key)

    def Create(self, group: Group) -> Any:
        """Return the communicator of a group; all ranks call, those outside get COMM_NULL."""
        _, sequence = self._agree("Create", None)
        if here().index not in group._members:
            return COMM_NULL
        for member in group._members:
            if member not in self._inverse:
                fail("ERR_GROUP", f"rank {member} of the world is not in {self._name or 'the communicator'}")
        return Intracomm._make(self._new_context(sequence, min(group._members)), group._members)

    def Free(self) -> None:
        """Free the communicator: it becomes COMM_NULL."""
        self._valid()
        if self._predefined:
            fail("ERR_COMM", f"{self._name} is permanent and cannot be freed")
        self._context = -1

    def free(self) -> None:
        """Free the communicator, as `Free`, unless it is predefined or null."""
        if self and not self._predefined:
            self.Free()

    Disconnect = Free


class _NullState:
    """What a communicator made from nothing is."""

    _context = -1
    _ranks: tuple[int, ...] = ()
    _inverse: dict[int, int] = {}  # noqa: RUF012 - never changed
    _name = "MPI_COMM_NULL"


_NULL_STATE: Any = _NullState()


@refusing
class Intracomm(Comm):
    """`mpi4py.MPI.Intracomm`."""

    def Create_cart(
        self, dims: Sequence[int], periods: Sequence[bool] | bool | None = None, reorder: bool = False
    ) -> Cartcomm:
        """Return a communicator whose ranks are points of a grid."""
        from .topology import create_cart

        made: Cartcomm = create_cart(self, dims, periods)
        return made

    def Create_group(self, group: Group, tag: int = 0) -> Any:
        """Return the communicator of a group; only its members call."""
        rank = here()
        if rank.index not in group._members:
            return COMM_NULL
        inner = Intracomm._make(self._context, group._members)
        inner._context = self._new_context(-1 - tag, hash(group._members))
        _, sequence = inner._agree("Create_group", None)
        return Intracomm._make(inner._new_context(sequence, 0), group._members)

    def Cart_map(self, dims: Sequence[int], periods: Sequence[bool] | None = None) -> int:
        """Return the rank that a grid would give the caller."""
        total = 1
        for dim in dims:
            total *= dim
        return self.rank if self.rank < total else UNDEFINED


@refusing
class Intercomm(Comm):
    """`mpi4py.MPI.Intercomm`: a name for annotations and `isinstance`; there are none."""

    def __init__(self, comm: Any = None) -> None:
        refuse_name("Intercomm")


class _Self(Intracomm):
    """`COMM_SELF`: every rank alone."""

    @property
    def _ranks(self) -> tuple[int, ...]:
        return (here().index,)

    @_ranks.setter
    def _ranks(self, value: tuple[int, ...]) -> None:
        pass

    @property
    def _inverse(self) -> dict[int, int]:
        return {here().index: 0}

    @_inverse.setter
    def _inverse(self, value: dict[int, int]) -> None:
        pass

    def Dup(self, info: Any = None) -> Intracomm:
        """Return a copy with its own messages."""
        return self.Split(0, 0)  # type: ignore[no-any-return]

    Clone = Dup

    def _new_context(self, sequence: int, color: int) -> int:
        contexts = here().runtime.contexts
        key = (self._context, sequence, here().index)
        return contexts.setdefault(key, 4 + 2 * len(contexts))


_Self.__name__ = _Self.__qualname__ = "Intracomm"


@refusing
class Errhandler:
    """`mpi4py.MPI.Errhandler`: errors are raised as exceptions, as mpi4py has it by default."""

    def __init__(self, name: str = "ERRHANDLER_NULL") -> None:
        self._name = name

    def Free(self) -> None:
        """Free the handler."""


ERRHANDLER_NULL = Errhandler()
ERRORS_RETURN = Errhandler("ERRORS_RETURN")
ERRORS_ARE_FATAL = Errhandler("ERRORS_ARE_FATAL")
ERRORS_ABORT = Errhandler("ERRORS_ABORT")

COMM_NULL = Comm()
COMM_WORLD: Intracomm = Intracomm._make(0, (), "MPI_COMM_WORLD")
COMM_WORLD._predefined = True
COMM_SELF: Intracomm = _Self._make(2, (), "MPI_COMM_SELF")
COMM_SELF._predefined = True


def _predefined(name: str) -> Comm:
    return {"MPI_COMM_WORLD": COMM_WORLD, "MPI_COMM_SELF": COMM_SELF}.get(name, COMM_NULL)


def open_world(size: int) -> None:
    """Give COMM_WORLD its ranks, at the start of a simulation."""
    COMM_WORLD._ranks = tuple(range(size))
    COMM_WORLD._inverse = {rank: rank for rank in range(size)}
    COMM_WORLD._attributes.clear()


__all__ = [
    "COMM_NULL", "COMM_SELF", "COMM_WORLD", "ERRHANDLER_NULL", "ERRORS_ABORT", "ERRORS_ARE_FATAL",
    "ERRORS_RETURN", "Comm", "Errhandler", "Intracomm", "_complete", "open_world",
]  # fmt: skip
