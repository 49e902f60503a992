"""A rank of the simulated program: its clock, its calls, its path.

Between two MPI calls a rank computes; what that costs is decided by a `ComputeSource` and posted to
the world. The path digest grows with every call (place, operation) and every message received
(source, tag, length, beginning of the content), so that a repeat that takes another path is noticed.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import get_ident
from time import thread_time_ns
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import greenlet

if TYPE_CHECKING:
    from .request import Request
    from .runtime import Runtime

Completion = tuple[int, int, int, int, int]
"""Request, source (rank in the world), tag, bytes, message: what the world says of a finished request."""

NOBODY = -2
"""The source of no receive and the destination of no send, where a call may have both."""

_SHIM = __file__.rpartition("/")[0] + "/"
_CONTENT = 1024
"""How many bytes of a message go into the path digest."""

LONG = 4096
"""Shorter messages are not looked at: none of them stays with its sender until it is fetched."""

_POLLS = 100
_POLL_PS = 100_000
"""After so many polls at one instant (calls and computation are free), each has cost 100 ns."""

_OWED = 10
"""How much may be owed, as a multiple of our own share of a stretch. Where that share has become smaller than
it was when it was measured, no more than this is taken off what the program computes."""

_FIRST_DIGEST = 0x77697265


class Sites:
    """Source lines that call MPI, numbered in order of appearance."""

    def __init__(self) -> None:
        self.table: list[tuple[str, int]] = []
        self.keys: list[int] = []
        self._index: dict[tuple[str, int], int] = {}
        self._lines: dict[int, dict[int, int] | None] = {}
        self._codes: list[CodeType] = []

    def find(self, frame: FrameType | None) -> int:
        """Return the number of the innermost line outside this package."""
        lines_of = self._lines
        while frame is not None:
            code = frame.f_code
            try:
                lines = lines_of[id(code)]
            except KeyError:
                lines = None if code.co_filename.startswith(_SHIM) else {}
                lines_of[id(code)] = lines
                self._codes.append(code)  # keeps the identity taken
            if lines is not None:
                site = lines.get(frame.f_lasti)
                if site is None:
                    site = lines[frame.f_lasti] = self.add(code.co_filename, frame.f_lineno or 0)
                return site
            frame = frame.f_back
        return self.add("?", 0)

    def add(self, file: str, line: int) -> int:
        """Return the number of a line."""
        key = (file, line)
        if key not in self._index:
            self._index[key] = len(self.table)
            self.table.append(key)
            self.keys.append(zlib.crc32(f"{file}:{line}".encode()))
        return self._index[key]

    def text(self, site: int) -> str:
        """Return `file:line`."""
        file, line = self.table[site]
        return f"{file}:{line}"


_OPERATIONS: dict[str, int] = {}
_TOUCH = zlib.crc32(b"first touch")


def _operation(name: str) -> int:
    code = _OPERATIONS[name] = zlib.crc32(name.encode())
    return code


@dataclass(frozen=True, slots=True)
class OwnWork:
    """What of a measured stretch is this package's own, in nanoseconds, by the name of a call.

    Attributes
    ----------
    out_ns, into_ns
        Of the stretches after and before the call: the clock, the way out of it and into it. What each is by
        itself cannot be told; the sum for a pair of calls, one after the other, can.
    within_ns
        Of each piece of work that is done within the call.
    first_out_ns, first_into_ns, first_within_ns
        The same, beyond that, of a rank's first call of each name (`wiretwin.mpi.firsts`).
    """

    out_ns: Mapping[str, int] = field(default_factory=dict)
    into_ns: Mapping[str, int] = field(default_factory=dict)
    within_ns: Mapping[str, int] = field(default_factory=dict)
    first_out_ns: Mapping[str, int] = field(default_factory=dict)
    first_into_ns: Mapping[str, int] = field(default_factory=dict)
    first_within_ns: Mapping[str, int] = field(default_factory=dict)


class Rank:
    """One rank."""

    __slots__ = (
        "_polled",
        "_stuck",
        "arrived_ns",
        "asked",
        "asleep_ps",
        "attached",
        "away",
        "background",
        "bias_ns",
        "call_sites",
        "charge",
        "dead",
        "digest",
        "digests",
        "durations_ps",
        "finalized",
        "finished",
        "first_into",
        "first_out",
        "first_within",
        "give_way",
        "gone",
        "greenlet",
        "index",
        "initialized",
        "inside",
        "left_ns",
        "owed_ns",
        "own",
        "post",
        "post_enter",
        "post_exchange",
        "post_leave",
        "probing",
        "runtime",
        "sequences",
        "site",
        "sites",
        "sleeps",
        "thread",
        "waiting",
    )

    def __init__(self, index: int, runtime: Runtime) -> None:
        self.index = index
        self.runtime = runtime
        self.sites = runtime.sites
        self.post: Callable[[int, tuple[Any, ...]], int] = runtime.world.post
        self.post_enter: Callable[[int, int, str, int], None] = runtime.world.enter
        self.post_leave: Callable[[int], None] = runtime.world.leave
        self.post_exchange: Callable[..., tuple[int, int]] = runtime.world.exchange
        self.give_way: Callable[[], Any] = runtime.give_way
        self.charge = runtime.source.charge
        self.bias_ns = runtime.bias_ns
        self.own = runtime.own
        self.first_out, self.first_into = dict(self.own.first_out_ns), dict(self.own.first_into_ns)
        self.first_within = dict(self.own.first_within_ns)
        self.owed_ns = 0
        """What stretches took less than what is our own of them: the next ones are so much shorter."""
        self.away = runtime.away
        self.sleeps: Callable[[int, int], int] | None = getattr(runtime.source, "asleep_ps", None)
        self.greenlet: greenlet.greenlet | None = None
        self.left_ns = 0
        self.arrived_ns = 0
        self.thread = get_ident()
        self.digest = _FIRST_DIGEST
        self.durations_ps: list[int] = []
        self.asleep_ps: dict[int, int] = {}
        """By stretch, for how long of it the rank needed no core."""
        self.digests: list[int] = []
        self.call_sites: list[int] = []
        self.inside = ""
        self.site = 0
        self._polled = -1
        self._stuck = 0
        self.dead = False
        self.finished = False
        self.initialized: bool = False
        """It has called Init; importing MPI does, unless `mpi4py.rc.initialize` says otherwise."""
        self.finalized: bool = False
        self.attached: Any = None
        self.sequences: dict[int, int] = {}
        self.probing: tuple[int, int, int] | None = None
        self.waiting: Sequence[int] = ()
        self.asked: tuple[int, int, int] | None = None
        """Source, tag and context of the receive that a call waits for which sends and receives at once."""
        self.gone: dict[tuple[int | str, int], int] = {}
        """By receiver (or collective call) and length, a hash of the long message that went last."""
        self.background: list[Request] = []
        """Collectives in progress, moved on by every call that waits or tests (weak progress)."""

    # The border between the program and MPI.

    def enter(self, name: str, depth: int = 1) -> None:
        """End a stretch of computation: an MPI call begins, `depth` frames of this package below the program.

        A frame costs to be looked at: where `depth` is less than there are, the others are looked at too.
        """
        ps = self._arrive(name, depth + 1)
        self.post_enter(self.index, ps, name, self.site)

    def _arrive(self, name: str, depth: int) -> int:
        """Note where a call begins; returns what the stretch that it ends costs."""
        measured = (self.arrived_ns or thread_time_ns()) - self.left_ns
        if self.away is not None:
            measured += self.away.took_ns()
        self.arrived_ns = 0
        if get_ident() != self.thread:  # looked at first: to end such a thread as a rank would be is an error
            self.runtime.foreign_call(name, sys._getframe(depth))
        if self.dead:
            raise greenlet.GreenletExit
        sites = self.sites
        self.site = site = sites.find(sys._getframe(depth))
        own_ns = self.own_ns(name)
        self.inside = name
        code = _OPERATIONS.get(name) or _operation(name)
        self.digest = digest = hash((self.digest, sites.keys[site], code))
        return self._charged_ps(digest, site, measured, own_ns)

    def own_ns(self, name: str) -> int:
        """Return what is our own of a stretch that lies between the last call and one of that name."""
        own, half_ns = self.own, self.bias_ns // 2
        ns = own.out_ns.get(self.inside, half_ns) + own.into_ns.get(name, half_ns)
        if self.first_out or self.first_into:
            ns += self.first_out.pop(self.inside, 0) + self.first_into.pop(name, 0)
        return ns

    def _charged_ps(self, digest: int, site: int, measured_ns: int, own_ns: int) -> int:
        """Return what a stretch costs that took `measured_ns`, and keep it with the path to its end."""
        durations = self.durations_ps
        left_ns = measured_ns - own_ns - self.owed_ns
        # A thousandth at least: ranks that all take nothing would meet at one instant, in any order.
        measured_ps = max(1000 * left_ns, measured_ns)
        self.owed_ns = 0 if left_ns >= 0 else min(-left_ns, _OWED * own_ns)
        ps = self.charge(self.index, len(durations), digest, self.sites.table[site], measured_ps)
        if self.away is not None and self.away.asleep_ns:
            self.asleep_ps[len(durations)] = 1000 * self.away.asleep_ns
            self.away.asleep_ns = 0
        asleep = 0 if self.sleeps is None else self.sleeps(self.index, len(durations))
        durations.append(ps)
        self.digests.append(digest)
        self.call_sites.append(site)
        if not asleep:
            return ps
        self.post_leave(self.index)
        self.post(self.index, ("compute", ps - min(asleep, ps)))
        self.post(self.index, ("sleep", min(asleep, ps)))
        return 0

    def _account(self, digest: int, site: int, measured_ns: int, own_ns: int) -> None:
        self.post(self.index, ("compute", self._charged_ps(digest, site, measured_ns, own_ns)))

    def leave(self) -> None:
        """Begin a stretch of computation: the MPI call has ended; the world hears of it with the next."""
        if self.dead:
            return
        if self.away is not None:
            self.away.begin()
        self.left_ns = thread_time_ns()

    def begin(self) -> None:
        """Begin a stretch of computation."""
        if self.away is not None:
            self.away.begin()
        self.left_ns = thread_time_ns()

    def stretch_ns(self, until_ns: int = 0) -> int:
        """Return what the stretch has taken until now, or until a time of the thread's clock."""
        measured = (until_ns or thread_time_ns()) - self.left_ns
        return measured if self.away is None else measured + self.away.took_ns()

    def read_clock(self, name: str) -> int:
        """Return this rank's clock in picoseconds, what it has computed until now included."""
        measured = self.stretch_ns()
        if self.dead:
            raise greenlet.GreenletExit
        self._between(name, measured, None)
        if self.runtime.behind:
            # How long the computation took depends on the others: wait until the world knows.
            self.post(self.index, ("yield",))
            self.suspend()
        self.idle()
        now: int = self.runtime.clock_ps(self.index)
        self.begin()
        return now

    def sleep(self, ps: int) -> None:
        """Let time pass for this rank."""
        measured = self.stretch_ns()
        if self.dead:
            raise greenlet.GreenletExit
        self._between("sleep", measured, ps)
        self.begin()

    def _between(self, name: str, measured: int, extra_ps: int | None) -> None:
        """Account for computation, and for `extra_ps` as a stretch that costs what it says."""
        site = self.sites.find(sys._getframe(2))
        code = _OPERATIONS.get(name) or _operation(name)
        self.digest = digest = hash((self.digest, self.sites.keys[site], code))
        own_ns = self.own_ns(name)
        self.inside, self.site = name, site
        self.post_leave(self.index)
        self._account(digest, site, measured, own_ns)
        if extra_ps is not None:
            self.digest = digest = hash((digest, extra_ps))
            self.durations_ps.append(extra_ps)
            self.digests.append(digest)
            self.call_sites.append(site)
            self.post(self.index, ("sleep", extra_ps))

    def work(self, label: str, body: Callable[[], Any]) -> None:
        """Do work inside a call (a reduction) and charge what it takes."""
        begin = thread_time_ns()
        body()
        measured = thread_time_ns() - begin
        code = _OPERATIONS.get(label) or _operation(label)
        self.digest = digest = hash((self.digest, code))
        own_ns = self.own.within_ns.get(self.inside, self.bias_ns)
        if self.first_within:
            own_ns += self.first_within.pop(self.inside, 0)
        self._account(digest, self.site, measured, own_ns)

    def touch(self, took_ns: int) -> None:
        """Charge for the state of the memory a message goes to; a stretch of its own, if only of 0."""
        self.digest = digest = hash((self.digest, _TOUCH))
        self._account(digest, self.site, took_ns, 0)

    def suspend(self) -> Any:
        """Give way to the other ranks; returns what the world says."""
        outcome = self.give_way()
        if self.dead:
            raise greenlet.GreenletExit
        return outcome

    def idle(self) -> None:
        """Make sure that a program that polls gets ahead, even if calls and computation are free."""
        now = self.runtime.clock_ps(self.index)
        if now != self._polled:
            self._polled, self._stuck = now, 0
            return
        self._stuck += 1
        if self._stuck == _POLLS:
            self.post(self.index, ("compute", _POLLS * _POLL_PS))

    # Waiting.

    def wait_all(self, ids: list[int]) -> list[Completion]:
        """Wait until all requests of the world have finished."""
        if self.background:
            from .request import wait_in_background

            return wait_in_background(self, ids)
        self.waiting = ids
        self.post(self.index, ("wait", ids, "all"))
        outcome: list[Completion] = self.suspend()
        return outcome

    def ask(self, ids: list[int], mode: str) -> list[Completion]:
        """Wait for any or some, or test, requests of the world."""
        self.waiting = ids
        self.post(self.index, ("wait", ids, mode))
        outcome: list[Completion] = self.suspend()
        return outcome

    # Messages.

    def exchange(
        self,
        name: str,
        depth: int,
        context: int,
        receive: tuple[int, int, int],
        dest: int,
        tag: int,
        data: bytes,
        mode: str,
    ) -> Completion | None:
        """Begin a call that receives and sends at once, and wait; returns what the world says of the receive.

        `receive` is source, tag and capacity. A source or `dest` of `NOBODY` is no receive or no send.
        """
        if self.background:
            return self._exchange_in_background(name, depth, context, receive, dest, tag, data, mode)
        ps, site = self._arrive(name, depth + 1), self.site
        send = (dest, tag, len(data))
        waiting = self.post_exchange(self.index, ps, name, site, context, receive, send, mode)
        self.waiting = waiting
        source = receive[0]
        if source != NOBODY:
            self.asked = (source, receive[1], context)
        if dest != NOBODY:
            self.runtime.mail[waiting[1]] = (data, self.index, dest, tag, context, site, name)
        completion: Completion | None = self.give_way()
        if self.dead:
            raise greenlet.GreenletExit
        self.asked = None
        return completion

    def _exchange_in_background(
        self,
        name: str,
        depth: int,
        context: int,
        receive: tuple[int, int, int],
        dest: int,
        tag: int,
        data: bytes,
        mode: str,
    ) -> Completion | None:
        """Do as `exchange` while collectives in progress move on."""
        self.enter(name, depth + 1)
        ids = [] if receive[0] == NOBODY else [self.receive(context, *receive)]
        received = len(ids)
        if dest != NOBODY:
            ids.append(self.send(context, dest, tag, data, mode))
        completions = {completion[0]: completion for completion in self.wait_all(ids)}
        return completions[ids[0]] if received else None

    def send(self, context: int, dest: int, tag: int, data: bytes, mode: str) -> int:
        """Post a send of `data` to rank `dest` of the world."""
        request = self.post(self.index, ("send", context, dest, tag, len(data), mode))
        self.runtime.mail[request] = (data, self.index, dest, tag, context, self.site, self.inside)
        return request

    def mode_of(self, to: int | str, *parts: bytes, mode: str) -> str:
        """Return the mode of a send of a buffer: the world is told which was sent before and is as it was.

        The receiver's core may have it in its caches still. Told by its contents: a program that has written
        the same again is not known from one that has not written.
        """
        if mode != "standard" or self.away is not None:  # a recording has its modes
            return mode
        length = sum(map(len, parts))
        if length < LONG:
            return mode
        now = hash(parts)
        before, self.gone[to, length] = self.gone.get((to, length)), now
        return "unchanged" if now == before else mode

    def receive(self, context: int, source: int, tag: int, capacity: int) -> int:
        """Post a receive from rank `source` of the world, -1 for any."""
        request = self.post(self.index, ("recv", context, source, tag, capacity))
        self.runtime.receives[request] = (self.index, source, tag, context, self.site, self.inside)
        return request

    def open(self, completion: Completion) -> bytes:
        """Take the content of a message that has been received."""
        request, source, tag, nbytes, message = completion
        self.runtime.receives.pop(request, None)
        data = self.runtime.mail.pop(message)[0]
        self.digest = hash((self.digest, source, tag, nbytes, zlib.crc32(data[:_CONTENT])))
        return data

    def note(self, values: Iterable[int]) -> None:
        """Add to the path what a call answered."""
        self.digest = hash((self.digest, *values))


class Current:
    """Holds the rank that runs now."""

    __slots__ = ("rank",)

    rank: Rank


current = Current()
"""The rank that runs now; set at every switch."""


def arriving() -> None:
    """Note when a call begins whose arguments take a while to be looked at; `enter` follows."""
    try:
        current.rank.arrived_ns = thread_time_ns()
    except AttributeError:
        here()  # says that no program is running


def here() -> Rank:
    """Return the rank that runs now.

    Raises
    ------
    RuntimeError
        Outside a simulated program.
    """
    try:
        return current.rank
    except AttributeError:
        raise RuntimeError("no simulated program is running") from None
