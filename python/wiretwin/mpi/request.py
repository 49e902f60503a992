"""`mpi4py.MPI.Request`, `Prequest` and `Message`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

from .buffers import Buffer, Plain, incoming
from .constants import ANY_SOURCE, ANY_TAG, INTEGERS, PROC_NULL, UNDEFINED
from .failure import MPIException
from .names import refusing
from .pickling import pickle
from .rank import Completion, Rank, here
from .status import Status

if TYPE_CHECKING:
    from .comm import Comm

Steps = Generator[list[int], None, None]
"""A collective in progress: yields the world's requests it waits for."""

TRUNCATE = INTEGERS["ERR_TRUNCATE"]


@refusing
class Request:
    """A communication in progress.

    `_id` is the request of the world, 0 if there is none; a request without id and steps is null (or,
    when persistent, inactive) once `_done` has been taken.
    """

    __slots__ = (
        "_active",
        "_buffer",
        "_comm",
        "_done",
        "_error",
        "_id",
        "_object",
        "_pending",
        "_persistent",
        "_pickled",
        "_start",
        "_status",
        "_steps",
    )

    def __init__(self, request: Request | None = None) -> None:
        self._active = False
        self._done = False
        self._id = 0
        self._comm: Comm | None = None
        self._buffer: Buffer | Plain | None = None
        self._pickled = -1
        self._object: Any = None
        self._status = (ANY_SOURCE, ANY_TAG, 0, False)
        self._error: MPIException | None = None
        self._steps: Steps | None = None
        self._pending: set[int] = set()
        self._start: Callable[[], None] | None = None
        self._persistent = False
        if request is not None:
            for slot in Request.__slots__:
                setattr(self, slot, getattr(request, slot))

    # Making.

    def _send(self, request: int) -> Request:
        self._active, self._done, self._id = True, False, request
        return self

    def _finished(self) -> Request:
        """Make a request that is complete at once (to or from PROC_NULL, an empty collective)."""
        self._active = self._done = True
        return self

    def _receive(self, comm: Comm, request: int, buffer: Buffer | Plain | None, pickled: int = -1) -> Request:
        self._active, self._done, self._id = True, False, request
        self._comm, self._buffer, self._pickled = comm, buffer, pickled
        return self

    def _collect(self, rank: Rank, steps: Steps) -> Request:
        self._active, self._done = True, False
        self._steps = steps
        rank.background.append(self)
        self._advance(rank)
        return self

    # Progress.

    def _advance(self, rank: Rank) -> None:
        """Move a collective on until it waits or ends."""
        assert self._steps is not None
        while not self._pending:
            try:
                self._pending = set(next(self._steps))
            except StopIteration:
                self._steps = None
                self._done = True
                rank.background.remove(self)
                return

    def _arrive(self, rank: Rank, completion: Completion) -> None:
        """Take what the world says of this request."""
        if self._steps is not None:
            self._pending.discard(completion[0])
            rank.runtime.receives.pop(completion[0], None)
            self._advance(rank)
            return
        self._done = True
        self._id = 0
        comm = self._comm
        if comm is None:
            return
        if completion[4] == 0:  # cancelled
            rank.runtime.receives.pop(completion[0], None)
            self._status = (ANY_SOURCE, ANY_TAG, 0, True)
            return
        data = rank.open(completion)
        capacity = self._pickled if self._buffer is None else self._buffer.nbytes
        self._status = (comm._inverse[completion[1]], completion[2], min(len(data), capacity), False)
        if len(data) > capacity:
            self._error = MPIException(
                TRUNCATE, f"a message of {len(data)} bytes met a buffer of {capacity} bytes"
            )
        elif self._buffer is None:
            self._object = data
        else:
            self._buffer.unpack(data)

    def _take(self, status: Status | None) -> Any:
        """Hand over the result: the request becomes null or inactive."""
        data, error = self._object, self._error
        source, tag, nbytes, cancelled = self._status
        if status is not None:
            status._set(source, tag, nbytes, int(error) if error else 0, cancelled)
        self._active = self._done = False
        self._object, self._error = None, None
        self._status = (ANY_SOURCE, ANY_TAG, 0, False)
        if not self._persistent:
            self._comm, self._buffer = None, None
        if error is not None:
            raise error
        return data

    def _text(self) -> str:
        return f"request {self._id}"

    # mpi4py.

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Request):
            return NotImplemented
        return self is other or not (self or other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return self._active or self._persistent

    def Wait(self, status: Status | None = None) -> bool:
        """Wait until this request is complete."""
        rank = here()
        rank.enter("Wait")
        try:
            _complete(rank, [self], "all")
            self._take(status)
        finally:
            rank.leave()
        return True

    def Test(self, status: Status | None = None) -> bool:
        """Tell whether this request is complete."""
        rank = here()
        rank.enter("Test")
        try:
            flag = not self._active or _complete(rank, [self], "test")
            if flag:
                self._take(status)
            rank.note((flag,))
        finally:
            rank.leave()
        return flag

    def Get_status(self, status: Status | None = None) -> bool:
        """Tell whether this request is complete, and leave it as it is."""
        rank = here()
        rank.enter("Request_get_status")
        try:
            flag = not self._active or _complete(rank, [self], "test")
            if flag and status is not None:
                source, tag, nbytes, cancelled = self._status
                status._set(source, tag, nbytes, 0, cancelled)
            rank.note((flag,))
        finally:
            rank.leave()
        return flag

    def wait(self, status: Status | None = None) -> Any:
        """Wait, and return the object received."""
        rank = here()
        rank.enter("wait")
        try:
            _complete(rank, [self], "all")
            data = self._take(status)
        finally:
            rank.leave()
        return None if data is None else pickle.load(data)

    def test(self, status: Status | None = None) -> tuple[bool, Any]:
        """Test, and return the object received."""
        rank = here()
        rank.enter("test")
        data = None
        try:
            flag = not self._active or _complete(rank, [self], "test")
            if flag:
                data = self._take(status)
            rank.note((flag,))
        finally:
            rank.leave()
        return flag, None if data is None else pickle.load(data)

    @classmethod
    def Waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Wait until all requests are complete."""
        _wait_all("Waitall", requests, statuses)
        return True

    @classmethod
    def waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[Any]:
        """Wait for all, and return the objects received."""
        return _load(_wait_all("waitall", requests, statuses))

    @classmethod
    def Testall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Tell whether all requests are complete."""
        return _test_all("Testall", requests, statuses) is not None

    @classmethod
    def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """Test all, and return the objects received."""
        data = _test_all("testall", requests, statuses)
        return data is not None, None if data is None else _load(data)

    @classmethod
    def Waitany(cls, requests: Sequence[Request], status: Status | None = None) -> int:
        """Wait until one request is complete, and return its index."""
        return _wait_any("Waitany", requests, status)[0]

    @classmethod
    def waitany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, Any]:
        """Wait for one, and return its index and the object received."""
        index, data = _wait_any("waitany", requests, status)
        return index, None if data is None else pickle.load(data)

    @classmethod
    def Testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool]:
        """Tell whether one request is complete, and its index."""
        index, flag, _ = _test_any("Testany", requests, status)
        return index, flag

    @classmethod
    def testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool, Any]:
        """Test for one, and return its index and the object received."""
        index, flag, data = _test_any("testany", requests, status)
        return index, flag, None if data is None else pickle.load(data)

    @classmethod
    def Waitsome(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[int] | None:
        """Wait until at least one request is complete, and return the indices."""
        return _some("Waitsome", requests, statuses, "some")[0]

    @classmethod
    def waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """Wait for some, and return the indices and the objects received."""
        indices, data = _some("waitsome", requests, statuses, "some")
        return indices, None if data is None else _load(data)

    @classmethod
    def Testsome(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> list[int] | None:
        """Return the indices of the requests that are complete."""
        return _some("Testsome", requests, statuses, "test")[0]

    @classmethod
    def testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """Test for some, and return the indices and the objects received."""
        indices, data = _some("testsome", requests, statuses, "test")
        return indices, None if data is None else _load(data)

    def Cancel(self) -> None:
        """Cancel a receive that has not been matched."""
        rank = here()
        rank.enter("Cancel")
        try:
            if not self._active:
                raise MPIException(INTEGERS["ERR_REQUEST"], "the request is null or inactive")
            if self._id and self._comm is not None:
                rank.post(rank.index, ("cancel", self._id))
        finally:
            rank.leave()

    cancel = Cancel

    def Free(self) -> None:
        """Free the request: it becomes null."""
        if not self:
            raise MPIException(INTEGERS["ERR_REQUEST"], "the request is null")
        self._active = self._persistent = False
        self._start = None

    def free(self) -> None:
        """Free the request, as `Free`, unless it is null."""
        if self:
            self.Free()


@refusing
class Prequest(Request):
    """A persistent request."""

    __slots__ = ()

    @classmethod
    def _make(cls, start: Callable[[Prequest], None]) -> Prequest:
        made = cls()
        made._persistent = True
        made._start = lambda: start(made)
        return made

    def Start(self) -> None:
        """Start the communication."""
        rank = here()
        rank.enter("Start")
        try:
            self._begin()
        finally:
            rank.leave()

    def _begin(self) -> None:
        if self._start is None or self._active:
            what = "is still active" if self._active else "is null"
            raise MPIException(INTEGERS["ERR_REQUEST"], f"the persistent request {what}")
        self._start()

    @classmethod
    def Startall(cls, requests: Sequence[Prequest]) -> None:
        """Start all of the communications."""
        rank = here()
        rank.enter("Startall")
        try:
            for request in requests:
                request._begin()
        finally:
            rank.leave()


REQUEST_NULL = Request()


def wait_in_background(rank: Rank, ids: list[int]) -> list[Completion]:
    """Wait for requests of the world while collectives in progress move on."""
    missing = set(ids)
    found: list[Completion] = []
    while missing:
        owners = {pending: request for request in rank.background for pending in request._pending}
        for completion in rank.ask(sorted(missing) + sorted(owners), "any"):
            if completion[0] in missing:
                missing.discard(completion[0])
                found.append(completion)
            else:
                owners[completion[0]]._arrive(rank, completion)
    return found


def _complete(rank: Rank, requests: Sequence[Request], mode: str) -> bool:
    """Bring requests forward until `mode` (all, any, some, test) holds; tells whether all are done."""
    open_requests = [request for request in requests if request._active and not request._done]
    if not open_requests:
        if mode == "test" and rank.background:
            _poll(rank)
        return True
    if not rank.background:
        owners = {request._id: request for request in open_requests}
        if mode in ("any", "some") and len(open_requests) < sum(request._active for request in requests):
            mode = "test"  # one is done already
        ids = list(owners)
        completions = rank.wait_all(ids) if mode == "all" else rank.ask(ids, mode)
        for completion in completions:
            owners[completion[0]]._arrive(rank, completion)
        if not completions:
            rank.idle()
        return len(completions) == len(open_requests)
    if mode == "test":
        _poll(rank, open_requests)
        rank.idle()
        return all(request._done for request in open_requests)
    while True:
        done = [request for request in requests if request._active and request._done]
        if (mode != "all" and done) or all(request._done for request in open_requests):
            return all(request._done for request in open_requests)
        _round(rank, open_requests, "any")


def _round(rank: Rank, requests: Sequence[Request], mode: str) -> int:
    owners = {request._id: request for request in requests if request._id and not request._done}
    owners |= {pending: request for request in rank.background for pending in request._pending}
    if not owners:
        return 0
    completions = rank.ask(list(owners), mode)
    for completion in completions:
        owners[completion[0]]._arrive(rank, completion)
    return len(completions)


def _poll(rank: Rank, requests: Sequence[Request] = ()) -> None:
    while _round(rank, requests, "test"):
        pass


def _load(data: Sequence[Any]) -> list[Any]:
    return [None if item is None else pickle.load(item) for item in data]


def _statuses(statuses: list[Status] | None, count: int) -> list[Status | None]:
    if statuses is None:
        return [None] * count
    while len(statuses) < count:
        statuses.append(Status())
    return list(statuses)


def _take_all(requests: Sequence[Request], statuses: list[Status] | None) -> list[Any]:
    taken: list[Any] = []
    failed: MPIException | None = None
    for request, status in zip(requests, _statuses(statuses, len(requests)), strict=False):
        try:
            taken.append(request._take(status))
        except MPIException as error:
            failed = error
            taken.append(None)
    if failed is not None:
        raise MPIException(INTEGERS["ERR_IN_STATUS"], str(failed))
    return taken


def _wait_all(name: str, requests: Sequence[Request], statuses: list[Status] | None) -> list[Any]:
    rank = here()
    rank.enter(name)
    try:
        _complete(rank, requests, "all")
        return _take_all(requests, statuses)
    finally:
        rank.leave()


def _test_all(name: str, requests: Sequence[Request], statuses: list[Status] | None) -> list[Any] | None:
    rank = here()
    rank.enter(name)
    try:
        flag = _complete(rank, requests, "test")
        rank.note((flag,))
        return _take_all(requests, statuses) if flag else None
    finally:
        rank.leave()


def _wait_any(name: str, requests: Sequence[Request], status: Status | None) -> tuple[int, Any]:
    rank = here()
    rank.enter(name)
    try:
        if not any(request._active for request in requests):
            if status is not None:
                status._set(ANY_SOURCE, ANY_TAG, 0)
            return UNDEFINED, None
        _complete(rank, requests, "any")
        for index, request in enumerate(requests):
            if request._active and request._done:
                rank.note((index,))
                return index, request._take(status)
        raise AssertionError("the world ended a wait for any request without completing one")
    finally:
        rank.leave()


def _test_any(name: str, requests: Sequence[Request], status: Status | None) -> tuple[int, bool, Any]:
    rank = here()
    rank.enter(name)
    try:
        if not any(request._active for request in requests):
            if status is not None:
                status._set(ANY_SOURCE, ANY_TAG, 0)
            return UNDEFINED, True, None
        _complete(rank, requests, "test")
        for index, request in enumerate(requests):
            if request._active and request._done:
                rank.note((index,))
                return index, True, request._take(status)
        rank.note((-1,))
        return UNDEFINED, False, None
    finally:
        rank.leave()


def _some(
    name: str, requests: Sequence[Request], statuses: list[Status] | None, mode: str
) -> tuple[list[int] | None, list[Any] | None]:
    rank = here()
    rank.enter(name)
    try:
        if not any(request._active for request in requests):
            return None, None
        _complete(rank, requests, mode)
        indices = [i for i, request in enumerate(requests) if request._active and request._done]
        rank.note(indices)
        return indices, _take_all([requests[i] for i in indices], statuses)
    finally:
        rank.leave()


@refusing
class Message:
    """A matched message (`mpi4py.MPI.Message`).

    Its receive is posted when it is matched: the first receive with its source and tag takes exactly
    the message that the probe saw, so that no other receive can.
    """

    __slots__ = ("_comm", "_id", "_nbytes", "_no_proc")

    _comm: Comm | None
    _id: int
    _nbytes: int
    _no_proc: bool

    def __init__(self, message: Message | None = None) -> None:
        self._id = message._id if message else 0
        self._comm = message._comm if message else None
        self._nbytes = message._nbytes if message else 0
        self._no_proc = message._no_proc if message else False

    def __bool__(self) -> bool:
        return self._id != 0 or self._no_proc

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return (self._id, self._no_proc) == (other._id, other._no_proc)

    __hash__ = None  # type: ignore[assignment]

    def _request(self, buffer: Buffer | Plain | None) -> Request:
        if self._no_proc:
            made = Request()._finished()
            made._status = (PROC_NULL, ANY_TAG, 0, False)
            return made
        if not self._id or self._comm is None:
            raise MPIException(INTEGERS["ERR_REQUEST"], "the message is null: it was received already")
        made = Request()._receive(self._comm, self._id, buffer, self._nbytes)
        self._id = 0
        return made

    def Recv(self, buf: Any, status: Status | None = None) -> None:
        """Receive this message."""
        rank = here()
        rank.enter("Mrecv")
        try:
            request = self._request(incoming(buf, 0))
            _complete(rank, [request], "all")
            request._take(status)
        finally:
            rank.leave()

    def Irecv(self, buf: Any) -> Request:
        """Start to receive this message."""
        rank = here()
        rank.enter("Imrecv")
        try:
            return self._request(incoming(buf, 0))
        finally:
            rank.leave()

    def recv(self, status: Status | None = None) -> Any:
        """Receive this message as an object."""
        rank = here()
        rank.enter("mrecv")
        try:
            request = self._request(None)
            _complete(rank, [request], "all")
            data = request._take(status)
        finally:
            rank.leave()
        return None if data is None else pickle.load(data)

    def irecv(self) -> Request:
        """Start to receive this message as an object."""
        rank = here()
        rank.enter("imrecv")
        try:
            return self._request(None)
        finally:
            rank.leave()

    @classmethod
    def Probe(
        cls, comm: Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Match a message, waiting for it."""
        return comm.Mprobe(source, tag, status)

    @classmethod
    def Iprobe(
        cls, comm: Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Match a message if there is one."""
        return comm.Improbe(source, tag, status)

    probe = Probe
    iprobe = Iprobe


MESSAGE_NULL = Message()
MESSAGE_NO_PROC = Message()
MESSAGE_NO_PROC._no_proc = True
