"""OTF2, the traces of Score-P and others (Open Trace Format 2), read as a recorded run.

A trace has who sent how much to whom, which requests a wait completed, and of a collective what a rank sent
and received in all. From this follows what each rank asked of MPI (`wiretwin.trace.format`); bytes of
collectives are as Score-P counts them, where a rank that takes part in place counts one block less. Of
`MPI_Alltoallv` and `MPI_Alltoallw` a trace does not have what each pair exchanged: equal parts are taken.
"""

from __future__ import annotations

import importlib.metadata
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError
from wiretwin.predict.records import utc_now
from wiretwin.stacks import simulated
from wiretwin.trace.format import Manifest, Trace

__all__ = ["is_otf2", "read_otf2"]

_SEND, _ISEND, _RECV, _IRECV, _DONE, _WAIT, _PROBE, _COLLECTIVE, _COUNT, _MEMBER, _UNKNOWN, _END = range(
    1, 13
)
#: Collectives as a recorded run numbers them, by the names of OTF2.
_NUMBERS = {
    "BARRIER": 0, "CREATE_HANDLE": 0, "CREATE_HANDLE_AND_ALLOCATE": 0, "BCAST": 1, "REDUCE": 2,
    "ALLREDUCE": 3, "GATHER": 4, "GATHERV": 4, "SCATTER": 5, "SCATTERV": 5, "ALLGATHER": 6,
    "ALLGATHERV": 6, "ALLTOALL": 7, "ALLTOALLV": 7, "ALLTOALLW": 7, "REDUCE_SCATTER_BLOCK": 8,
    "REDUCE_SCATTER": 8, "SCAN": 9, "EXSCAN": 10,
}  # fmt: skip
_COMBINE = frozenset((2, 3, 8, 9, 10))
_OF_EACH = frozenset(("GATHERV", "SCATTERV", "ALLGATHERV", "REDUCE_SCATTER"))
_APART = (
    "MPI_Win_", "MPI_Put", "MPI_Get", "MPI_Rput", "MPI_Rget", "MPI_Accumulate", "MPI_Fetch", "MPI_Compare",
    "MPI_File_",
)  # fmt: skip
_ELEMENT_BYTES = 8
"""Of what is combined: a trace does not say it; it rounds the parts that algorithms split a vector into."""


def is_otf2(path: Path) -> bool:
    """Return whether a path names the anchor file of a trace in OTF2."""
    return path.suffix == ".otf2"


def read_otf2(path: str | Path, folder: Path) -> Trace:
    """Write what a trace in OTF2 has into an empty folder as a recorded run; return that.

    Parameters
    ----------
    path
        The anchor file, ``traces.otf2``, beside which the files of its processes are.
    folder
        Where the recorded run goes.

    Raises
    ------
    InputError
        It cannot be read, or has no processes of MPI; the package `otf2` is not installed.
    """
    import _otf2
    import otf2

    path = Path(path)
    if not path.is_file():
        raise InputError(file=str(path), reason="no such file", allowed="the anchor file of a trace in OTF2")
    try:
        with otf2.reader.open(str(path)) as trace:
            ranks = _Ranks(otf2, trace).read()
    except InputError as error:
        raise InputError(file=str(path), key=error.key, value=error.value, allowed=error.allowed) from None
    except (otf2.error.Error, _otf2.Error, OSError, UnicodeDecodeError, KeyError, ValueError) as error:
        raise InputError(file=str(path), reason=f"cannot be read: {error}") from error
    for number, rank in enumerate(ranks):
        with (folder / str(number)).open("wb") as file:
            file.write(b"wttrace1" + struct.pack("<2IQ", number, len(ranks), 0))
            file.writelines(
                one if isinstance(one, bytes) else struct.pack("<4i4Q", *one) for one in rank.records
            )
    manifest = Manifest(
        program=path.name,
        args=[],
        ranks=len(ranks),
        library="mpich",
        recorded_utc=utc_now(),
        wiretwin=importlib.metadata.version("wiretwin"),
    )
    (folder / Trace.MANIFEST).write_text(manifest.model_dump_json() + "\n", "utf-8")
    return Trace(folder)


@dataclass
class _Rank:
    """What one rank did: its records, each the numbers that `trace.c` writes, or bytes of one with a name."""

    records: list[list[int] | bytes] = field(default_factory=list)
    contexts: dict[int, int] = field(default_factory=dict)
    """The number of each communicator, by the trace's own."""
    depth: int = 0
    """Functions of MPI that it is in."""
    has_begun: bool = False
    has_ended: bool = False
    since_ns: int = 0
    """When it left MPI last."""
    owed_ns: int = 0
    entered_ns: int = 0
    requests: int = 0
    posted: dict[int, list[int]] = field(default_factory=dict)
    """Records of what was begun, by the trace's request."""
    sent: list[list[int]] = field(default_factory=list)
    begun: list[list[int]] = field(default_factory=list)
    received: list[list[int]] = field(default_factory=list)
    done: list[list[int]] = field(default_factory=list)
    met: list[list[int]] = field(default_factory=list)
    """What the function has that it is in."""

    def enter(self, name: str, now_ns: int) -> None:
        self.depth += 1
        if self.depth == 1:
            self.entered_ns = now_ns
            if name == "MPI_Finalize":
                self.end(now_ns)

    def end(self, now_ns: int) -> None:
        """Take it that the rank ends."""
        if not self.has_ended:
            self.records.append([_END, 0, 0, 0, 0, 0, self.owed_ns + max(0, now_ns - self.since_ns), 0])
        self.has_ended = True

    def leave(self, name: str, now_ns: int) -> None:
        self.depth -= 1
        if self.depth > 0 or self.has_ended:
            return
        if not self.has_begun:
            # What a process did before MPI was there is not of the run.
            self.has_begun = name.startswith("MPI_Init")
            self.since_ns = now_ns
            return
        has_any = self.sent or self.begun or self.received or self.done or self.met
        if not has_any and simulated.is_local(name.removeprefix("MPI_")):
            return
        computed_ns = self.owed_ns + max(0, self.entered_ns - self.since_ns)
        inside_ns, self.since_ns, self.owed_ns = now_ns - self.entered_ns, now_ns, 0
        if not has_any and simulated.looks(name):
            self.owed_ns = computed_ns
            return
        if not has_any and name.startswith(_APART):
            self.records.append(_named(name))
            return
        self._note(computed_ns, inside_ns)

    def _note(self, computed_ns: int, inside_ns: int) -> None:
        """Write down what the function was that ends."""
        if self.sent and self.received:
            # Both at once: begun, and waited for.
            for kind, some in ((_IRECV, self.received), (_ISEND, self.sent)):
                for one in some:
                    one[0], one[5] = kind, self.number()
                    self.begun.append(one)
                    self.done.append([_DONE, *one[1:]])
            self.sent, self.received = [], []
        timed = [*self.begun, *self.sent, *self.received]
        ends = [*self.done, *self.met]
        if self.met:
            timed.append(self.met[-1])
        elif self.done or not timed:
            ends.append([_WAIT, 0, 0, 0, 0, 0, 0, 0])
            timed.append(ends[-1])
        timed[0][6], timed[-1][7] = computed_ns, inside_ns
        self.records += [*self.begun, *self.sent, *self.received, *ends]
        self.sent, self.begun, self.received, self.done, self.met = [], [], [], [], []

    def number(self) -> int:
        """Return the number of a new request, as `trace.c` makes them: of the standard mode."""
        self.requests += 1
        return 4 * self.requests


def _named(name: str) -> bytes:
    return struct.pack("<4i32s", _UNKNOWN, 0, 0, 0, name.encode())


class _Ranks:
    """A trace that is read, event by event."""

    def __init__(self, otf2: Any, trace: Any) -> None:
        self._otf2, self._trace = otf2, trace
        kinds = otf2.GroupType
        of_mpi = [
            one
            for one in trace.definitions.groups
            if one.group_type == kinds.COMM_LOCATIONS and one.paradigm == otf2.Paradigm.MPI
        ]
        if not of_mpi:
            raise InputError(key="groups", value="no processes of MPI", allowed="a trace of a program of MPI")
        self._locations = {location: number for number, location in enumerate(of_mpi[0].members)}
        self.ranks = [_Rank() for _ in self._locations]
        self._members: dict[int, list[int]] = {}
        self._is_own: set[int] = set()
        for comm in sorted(trace.definitions.comms, key=lambda one: one._ref):
            group = getattr(comm, "group", None)
            if group is None or group.paradigm != otf2.Paradigm.MPI:
                continue
            if group.group_type == kinds.COMM_SELF:
                self._is_own.add(comm._ref)
                continue
            self._members[comm._ref] = [self._locations[one] for one in group.members]
        self._resolution = trace.timer_resolution
        for number, rank in enumerate(self.ranks):
            for ref, members in self._members.items():
                if number in members:
                    self._join(rank, ref, members)

    def _join(self, rank: _Rank, ref: int, members: list[int]) -> None:
        """Give a rank a communicator: all of them in the same order."""
        context = rank.contexts.setdefault(ref, len(rank.contexts))
        rank.records += [[_MEMBER, there, at, context, 0, 0, 0, 0] for at, there in enumerate(members)]

    def read(self) -> list[_Rank]:
        """Read all events; return the ranks."""
        events = self._otf2.events
        known: dict[type, Callable[[_Rank, int, Any], None]] = {
            events.MpiSend: self._send,
            events.MpiRecv: self._receive,
            events.MpiIsend: self._isend,
            events.MpiIrecvRequest: self._irecv,
            events.MpiIsendComplete: self._done,
            events.MpiIrecv: self._received,
            events.MpiRequestCancelled: lambda rank, _, __: rank.records.append(_named("MPI_Cancel")),
            events.MpiCollectiveEnd: self._meet,
        }
        for one in ("NonBlockingCollectiveRequest", "MpiMrecv", "MpiImrecv"):
            known[getattr(events, one)] = lambda rank, _, event: rank.records.append(
                _named(type(event).__name__)
            )
        last_ns = 0
        for location, event in self._trace.events:
            number = self._locations.get(location)
            if number is None:
                continue
            rank, kind = self.ranks[number], type(event)
            last_ns = event.time * 1_000_000_000 // self._resolution
            if kind is events.Enter or kind is events.Leave:
                name = event.region.name
                if name.startswith("MPI_"):
                    (rank.enter if kind is events.Enter else rank.leave)(name, last_ns)
            elif not rank.has_ended and (act := known.get(kind)) is not None:
                act(rank, number, event)
        for rank in self.ranks:
            rank.end(max(last_ns, rank.since_ns) if rank.depth else rank.since_ns)
        return self.ranks

    def _context(self, rank: _Rank, number: int, comm: Any) -> int:
        ref = comm._ref
        if ref not in rank.contexts:
            if ref not in self._is_own:
                rank.records.append(_named("an intercommunicator"))
                return 0
            self._join(rank, ref, [number])
        return rank.contexts[ref]

    def _send(self, rank: _Rank, number: int, event: Any) -> None:
        context = self._context(rank, number, event.communicator)
        rank.sent.append([_SEND, event.receiver, event.msg_tag, context, event.msg_length, 0, 0, 0])

    def _receive(self, rank: _Rank, number: int, event: Any) -> None:
        context = self._context(rank, number, event.communicator)
        rank.received.append([_RECV, event.sender, event.msg_tag, context, event.msg_length, 0, 0, 0])

    def _isend(self, rank: _Rank, number: int, event: Any) -> None:
        context = self._context(rank, number, event.communicator)
        record = [_ISEND, event.receiver, event.msg_tag, context, event.msg_length, rank.number(), 0, 0]
        rank.posted[event.request_id] = record
        rank.begun.append(record)

    def _irecv(self, rank: _Rank, _: int, event: Any) -> None:
        record = [_IRECV, 0, 0, 0, 0, rank.number(), 0, 0]
        rank.posted[event.request_id] = record
        rank.begun.append(record)

    def _done(self, rank: _Rank, _: int, event: Any) -> None:
        record = rank.posted.pop(event.request_id)
        rank.done.append([_DONE, *record[1:6], 0, 0])

    def _received(self, rank: _Rank, number: int, event: Any) -> None:
        record = rank.posted.pop(event.request_id)
        # From whom it is known only now.
        context = self._context(rank, number, event.communicator)
        record[1:5] = [event.sender, event.msg_tag, context, event.msg_length]
        rank.done.append([_DONE, *record[1:6], 0, 0])

    def _meet(self, rank: _Rank, number: int, event: Any) -> None:
        what = str(event.collective_op).rpartition(".")[2]
        if what not in _NUMBERS:
            return
        context = self._context(rank, number, event.communicator)
        members = self._members.get(event.communicator._ref, [number])
        me, ranks = members.index(number), len(members)
        root = event.root if 0 <= event.root < ranks else 0
        sent, received, nth = event.size_sent, event.size_received, _NUMBERS[what]
        others = max(1, ranks - 1)
        if nth in (2, 4):
            block = sent or received // others
        elif nth in (1, 5):
            block = received or sent // others
        elif nth in (3, 6, 7, 8):
            block = sent // ranks if sent % ranks == 0 else sent // others
        elif nth == 9:
            block = (
                received // (me + 1) if sent * (me + 1) == received * (ranks - me) else received // max(1, me)
            )
        else:
            block = received // me if me else sent // others
        if what in _OF_EACH:
            # Each rank tells of its own block, and all of them make the whole.
            own = sent if what == "GATHERV" else received
            own = {"ALLGATHERV": sent // ranks, "REDUCE_SCATTER": received // ranks}.get(what, own)
            rank.met.append([_COUNT, me, 0, 0, own, 0, 0, 0])
            block = 0
        unit = min(_ELEMENT_BYTES, max(1, block)) if nth in _COMBINE else 1
        rank.met.append([_COLLECTIVE, root, nth, context, block, unit, 0, 0])
