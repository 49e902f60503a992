"""From a recorded run to what its ranks ask of a simulated world, with collectives as messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.trace.format import COLLECTIVES, MODES, Kind, Trace

__all__ = ["Operations", "operations"]

Step = tuple[str, int, int, int]
"""As `wiretwin._core.schedule` has it: what, with whom, from which byte, how many."""


@dataclass
class Operations:
    """What each rank does, as `wiretwin._core.World.replay` takes it.

    Attributes
    ----------
    traces
        By rank, with what its computations take.
    """

    traces: list[_core.RankTrace] = field(default_factory=list)

    @classmethod
    def of(cls, ranks: int) -> Operations:
        """Return those of so many ranks that do nothing."""
        return cls([_core.RankTrace() for _ in range(ranks)])

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return len(self.traces)

    @property
    def messages(self) -> int:
        """How many messages are sent."""
        return sum(trace.sends() for trace in self.traces)

    def add(self, rank: int, operation: Any, request: int = 0) -> int:
        """Append an operation; return the request that it makes."""
        self.traces[rank].append(operation, request)
        return request

    def compute(self, rank: int, span_ps: int) -> None:
        """Append a computation, if it takes any time."""
        if span_ps > 0:
            self.add(rank, ("compute", span_ps))


@dataclass
class _Call:
    """A collective, as one rank recorded it."""

    what: int
    root: int
    nbytes: int
    unit: int
    counts: dict[int, tuple[int, int]]


class _Communicators:
    """Numbers of communicators: those of the same ranks are one on each, in the order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[tuple[int, ...], int], int] = {}

    def number(self, members: tuple[int, ...], nth: int) -> int:
        return self._numbers.setdefault((members, nth), len(self._numbers))


def operations(trace: Trace, *, compute_scale: float = 1.0) -> Operations:
    """Return what the ranks of a recorded run do, its collectives by the algorithms of MPICH.

    A receive takes the message that it took in the recorded run, and a wait is for the requests that it had
    completed then. Probes are left out: what they found is received by the receive behind them.

    Parameters
    ----------
    trace
        The recorded run.
    compute_scale
        How much longer computation takes than it did then.

    Raises
    ------
    InputError
        The run used what is not recorded; ranks do not agree on a collective.
    """
    if trace.unknown:
        raise InputError(
            file=str(trace.path),
            reason=f"uses {', '.join(trace.unknown[:5])}, whose messages are not recorded",
            allowed="messages between two ranks, and blocking collectives",
        )
    made = Operations.of(trace.ranks)
    read = [_Reader(trace, rank) for rank in range(trace.ranks)]
    communicators = _Communicators()
    for reader in read:
        for number, members in reader.members.items():
            reader.contexts[number] = communicators.number(members, reader.nth[number])
    met = _meetings(read, trace)
    for reader in read:
        reader.write(made, met, compute_scale)
    return made


class _Reader:
    """The records of one rank."""

    def __init__(self, trace: Trace, rank: int) -> None:
        self.rank, self.path = rank, trace.path / str(rank)
        self.records = trace.records(rank).tolist()
        self.members: dict[int, tuple[int, ...]] = {}
        self.nth: dict[int, int] = {}
        self.contexts: dict[int, int] = {}
        self.calls: dict[int, list[_Call]] = {}
        found: dict[int, dict[int, int]] = {}
        counts: dict[int, tuple[int, int]] = {}
        for kind, peer, tag, context, nbytes, request, _, _ in self.records:
            if kind == Kind.MEMBER:
                found.setdefault(context, {})[tag] = peer
            elif kind == Kind.COUNT:
                counts[peer] = (nbytes, request)
            elif kind == Kind.COLLECTIVE:
                self.calls.setdefault(context, []).append(_Call(tag, peer, nbytes, request, counts))
                counts = {}
        seen: Counter[tuple[int, ...]] = Counter()
        for number in sorted(found):
            members = tuple(found[number][index] for index in range(len(found[number])))
            self.members[number], self.nth[number] = members, seen[members]
            seen[members] += 1

    def write(self, made: Operations, met: dict[int, list[_Call]], compute_scale: float) -> None:
        """Append what the rank does."""
        rank, next_request = self.rank, 1
        requests: dict[int, int] = {}
        probed: dict[tuple[int, int], int] = {}
        waited: list[int] = []
        begun: Counter[int] = Counter()
        for kind, peer, tag, number, nbytes, request, compute_ns, _ in self.records:
            made.compute(rank, round(compute_ns * 1000 * compute_scale))
            if kind == Kind.PROBE:
                probed[peer, tag] = number
            elif kind == Kind.RECV and number < 0:
                # A matched receive: its communicator is that of its probe.
                number = probed[peer, tag]
            there = self.members.get(number, ())
            context = 2 * self.contexts.get(number, 0)
            if kind in (Kind.SEND, Kind.ISEND):
                mode = MODES[request % 4]
                made.add(rank, ("enter", "MPI_Send" if kind == Kind.SEND else "MPI_Isend", -1))
                one = made.add(rank, ("send", context, there[peer], tag, nbytes, mode), next_request)
                next_request += 1
                if kind == Kind.SEND:
                    made.add(rank, ("wait", [one], "all"))
                else:
                    requests[request] = one
                made.add(rank, ("exit",))
            elif kind == Kind.RECV:
                made.add(rank, ("enter", "MPI_Recv", -1))
                one = made.add(rank, ("recv", context, there[peer], tag, nbytes), next_request)
                next_request += 1
                made.add(rank, ("wait", [one], "all"))
                made.add(rank, ("exit",))
            elif kind == Kind.IRECV:
                source, wanted = self.taken.get(request, (peer, max(tag, -1)))
                made.add(rank, ("enter", "MPI_Irecv", -1))
                posted = ("recv", context, there[source] if source >= 0 else -1, wanted, nbytes)
                requests[request] = made.add(rank, posted, next_request)
                next_request += 1
                made.add(rank, ("exit",))
            elif kind == Kind.DONE:
                waited.append(requests.pop(request))
            elif kind == Kind.WAIT:
                made.add(rank, ("enter", "MPI_Wait", -1))
                if waited:
                    made.add(rank, ("wait", waited, "all"))
                    waited = []
                made.add(rank, ("exit",))
            elif kind == Kind.COLLECTIVE:
                nth = begun[number]
                begun[number] += 1
                call = met[self.contexts[number]][nth]
                made.add(rank, ("enter", f"MPI_{COLLECTIVES[call.what].capitalize()}", -1))
                own = self.calls[number][nth].counts
                for step in _rounds(call, own, there.index(rank), len(there)):
                    started = []
                    for what, other, _, length in sorted(step, key=lambda one: one[0] != "recv"):
                        if what == "recv":
                            operation: Any = ("recv", context + 1, there[other], nth & 0x7FFF_FFFF, length)
                        elif what == "send":
                            operation = (
                                "send",
                                context + 1,
                                there[other],
                                nth & 0x7FFF_FFFF,
                                length,
                                "standard",
                            )
                        else:
                            continue
                        started.append(made.add(rank, operation, next_request))
                        next_request += 1
                    if started:
                        made.add(rank, ("wait", started, "all"))
                made.add(rank, ("exit",))
            elif kind == Kind.END:
                made.add(rank, ("enter", "MPI_Finalize", -1))
        made.add(rank, ("finish",))

    @cached_property
    def taken(self) -> dict[int, tuple[int, int]]:
        """By request, whose message a receive has taken, and with which tag."""
        done = (one for one in self.records if one[0] == Kind.DONE)
        return {request: (peer, tag) for _, peer, tag, _, _, request, _, _ in done}


def _meetings(read: Sequence[_Reader], trace: Trace) -> dict[int, list[_Call]]:
    """Put together what the ranks of each communicator know of each collective."""
    met: dict[int, list[_Call]] = {}
    for reader in read:
        for number, calls in reader.calls.items():
            known = met.setdefault(reader.contexts[number], [])
            for nth, call in enumerate(calls):
                if nth == len(known):
                    known.append(_Call(call.what, call.root, call.nbytes, call.unit, dict(call.counts)))
                    continue
                other = known[nth]
                if (other.what, other.root) != (call.what, call.root):
                    raise InputError(
                        file=str(trace.path),
                        reason=f"rank {reader.rank} calls {COLLECTIVES[call.what]} of root {call.root} where "
                        f"another calls {COLLECTIVES[other.what]} of root {other.root}",
                    )
                other.nbytes = max(other.nbytes, call.nbytes)
                other.counts |= call.counts
    return met


def _rounds(call: _Call, own: dict[int, tuple[int, int]], me: int, size: int) -> list[list[Step]]:
    """Return the messages of one rank of a collective, by round; `own` are the counts that it gave itself."""
    if size == 1:
        return []
    name = COLLECTIVES[call.what]
    if not call.counts:
        return _core.schedule(name, "auto", me, size, max(call.root, 0), call.nbytes, unit=max(1, call.unit))
    if name == "alltoall":
        sent, received = ([own[rank][way] for rank in range(size)] for way in (0, 1))
        return _core.schedule(name, "auto", me, size, counts=sent, recv_counts=received)
    lengths = [call.counts.get(rank, (0, 0))[0] for rank in range(size)]
    if name in ("gather", "scatter"):
        towards, away = ("recv", "send") if name == "gather" else ("send", "recv")
        if me != call.root:
            return [[(away, call.root, 0, lengths[me])]] if lengths[me] else []
        return [[(towards, rank, 0, length) for rank, length in enumerate(lengths) if length and rank != me]]
    return _core.schedule(name, "auto", me, size, counts=lengths, unit=max(1, call.unit))
