"""Recordings of a simulated run: enough to run one rank of it alone, or to run its trace again.

Running alone is how computation is measured as it will happen: each rank in a process and on a core
of its own, its caches its own, as many ranks side by side as the host has cores. The world then
answers from the recording, so that the rank takes the path it took; a rank that does not is rejected.

Running the trace again gives the same run on another network, or with other durations of the
computation, without running the program: exact as long as no answer that the program got depends on
time (no `ANY_SOURCE`, no Waitany, Waitsome, Test or probe, no look at a clock), which
`Recording.timed` tells.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wiretwin import _core
from wiretwin.errors import SimulationError

from . import outside
from .rank import NOBODY

if TYPE_CHECKING:
    from .runtime import Runtime


class DepartureError(SimulationError):
    """A rank that ran alone left the path of the recording."""


@dataclass(slots=True)
class Recording:
    """A run as its ranks saw it.

    Attributes
    ----------
    traces
        What each rank asked and was answered.
    clocks_ps
        What each look of each rank at its clock showed, in picoseconds.
    mail
        Messages by number, of what `Runtime.mail` holds the contents alone.
    meetings
        What the ranks left at each collective call, by the call's key.
    contexts
        Numbers of the communicators that were made.
    timed
        Whether an answer the program got may depend on time.
    """

    traces: list[_core.RankTrace]
    clocks_ps: list[list[int]]
    mail: dict[int, Any] = field(default_factory=dict)
    meetings: dict[Any, tuple[dict[int, Any], Any]] = field(default_factory=dict)
    contexts: dict[Any, int] = field(default_factory=dict)
    timed: bool = False

    def content_bytes(self) -> int:
        """Return about how much the messages and contributions hold, in bytes; equal messages once."""
        size = sum(len(data) for data in {id(letter[0]): letter[0] for letter in self.mail.values()}.values())
        for data, _ in self.meetings.values():
            size += sum(getattr(value, "nbytes", 0) or _length(value) for value in data.values())
        return size

    def is_silent(self) -> bool:
        """Return whether no rank has asked the world for anything but computation."""
        return all(trace.is_silent() for trace in self.traces)

    def for_rank(self, rank: int) -> Recording:
        """Return the part of the recording that `rank` needs when it runs alone."""
        trace = self.traces[rank]
        wanted = set(trace.messages())
        others = range(len(self.traces))
        return Recording(
            traces=[trace if index == rank else _core.RankTrace() for index in others],
            clocks_ps=[self.clocks_ps[rank] if index == rank else [] for index in others],
            mail={number: letter for number, letter in self.mail.items() if number in wanted},
            meetings=self.meetings,
            contexts=self.contexts,
            timed=self.timed,
        )


def _length(value: Any) -> int:
    return len(value) if isinstance(value, (bytes, bytearray)) else 0


class _KeptMail(dict[int, Any]):
    """Mail that remembers what was taken out of it."""

    def __init__(self, kept: dict[int, Any]) -> None:
        super().__init__()
        self._kept = kept
        self._contents: dict[bytes, tuple[bytes]] = {}
        """Messages of equal content are kept once."""

    def pop(self, key: int, *default: Any) -> Any:
        letter = dict.pop(self, key, *default)
        if letter is not None:
            data = letter[0]
            self._kept[key] = self._contents.get(data) or self._contents.setdefault(data, (data,))
        return letter


class _KeptMeetings(dict[Any, Any]):
    """Meetings that remember what was left at them."""

    def __init__(self, kept: dict[Any, tuple[dict[int, Any], Any]]) -> None:
        super().__init__()
        self._kept = kept

    def pop(self, key: Any, *default: Any) -> Any:
        meeting = super().pop(key, *default)
        if meeting is not None:
            self._kept[key] = (meeting.data, meeting.result)
        return meeting


class Recorder:
    """Takes part in a simulated run and keeps a `Recording` of it."""

    only: int | None = None

    def __init__(self, ranks: int) -> None:
        self._recording = Recording([], [[] for _ in range(ranks)])
        self._world: _core.World | None = None

    @property
    def recording(self) -> Recording:
        """What has been kept; the run is over."""
        if self._world is not None:
            self._recording.timed |= self._world.timed
            self._recording.traces = self._world.recorded()
            self._world = None
        return self._recording

    def open(self, world: _core.World) -> _core.World:
        """Return the world that the ranks talk to: the real one, which writes down what they say."""
        world.record()
        self._world = world
        return world

    def furnish(self, runtime: Runtime) -> None:
        """Put the remembering stores in place."""
        read, recording = runtime.clock_ps, self._recording
        runtime.mail = _KeptMail(recording.mail)
        runtime.meetings = _KeptMeetings(recording.meetings)
        recording.contexts = runtime.contexts

        def clock_ps(rank: int) -> int:
            recording.timed = True
            now = read(rank)
            recording.clocks_ps[rank].append(now)
            return now

        runtime.clock_ps = clock_ps


class Solo:
    """Lets one rank run alone, the world and the other ranks played from a recording.

    Where others run on its core, it begins when `together` returns, and hands the core on whenever it waits.
    """

    def __init__(
        self, recording: Recording, rank: int, *, together: Callable[[], None] | None = None
    ) -> None:
        self.only: int | None = rank
        self.recording = recording
        self.together = together

    def open(self, world: Any) -> Any:
        """Return the world that the rank talks to; the real one is not used."""
        return _SoloWorld(self.recording.traces[self.only or 0], self.only or 0, self.together is not None)

    def furnish(self, runtime: Runtime) -> None:
        """Put the recorded mail, contributions and contexts in place."""
        runtime.mail = _RecordedMail(self.recording.mail)
        runtime.meetings = _RecordedMeetings(self.recording.meetings)
        runtime.contexts = dict(self.recording.contexts)
        clocks = iter(self.recording.clocks_ps[self.only or 0])

        def clock_ps(rank: int) -> int:
            try:
                return next(clocks)
            except StopIteration:
                raise DepartureError(
                    f"rank {rank} takes another path when it runs alone: it looks at the clock once more"
                ) from None

        runtime.clock_ps = clock_ps


class _RecordedMail(dict[int, Any]):
    """Mail that stays as it is: what a rank sends goes to nobody, and what it receives is not freed.

    Were messages stored or freed as the rank goes, its own arrays would come to lie where the simulator's
    memory just was, elsewhere each time, on pages never touched or in none of its caches.
    """

    def __setitem__(self, key: int, letter: Any) -> None:
        """Forget what is sent."""

    def get(self, key: int, default: Any = None) -> Any:
        """Say that nothing is on its way: what is here was received in the run that was recorded."""
        return default

    def pop(self, key: int, *default: Any) -> Any:
        """Hand a letter out, and keep it."""
        return self[key]


class _RecordedMeetings(dict[Any, Any]):
    """Meetings at which the others have been already."""

    def __init__(self, kept: dict[Any, tuple[dict[int, Any], Any]]) -> None:
        super().__init__()
        self._kept = kept

    def __setitem__(self, key: Any, meeting: Any) -> None:
        alone = key[1] < 0  # the only rank of its communicator: nobody has been there
        if key in self._kept and not alone:
            data, result = self._kept[key]
            meeting.data = _RecordedData(data)
            meeting.result = result
        super().__setitem__(key, meeting)

    def pop(self, key: Any, *default: Any) -> Any:
        return super().pop(key, None)


class _RecordedData(dict[int, Any]):
    """What the ranks left at a meeting; a stand-in never takes the place of what it stands for."""

    def __setitem__(self, rank: int, value: Any) -> None:
        if outside.is_stand_in(value):
            return
        if isinstance(value, list):
            kept = self[rank]
            value = [kept[at] if outside.is_stand_in(new) else new for at, new in enumerate(value)]
        super().__setitem__(rank, value)


class _SoloWorld:
    """Answers from a recording."""

    def __init__(self, trace: _core.RankTrace, rank: int, shared: bool) -> None:
        self._player = _core.TracePlayer(trace)
        self._shared = shared
        self._rank = rank
        self._is_in_call = False
        self._exchanged: int | None = None

    def post(self, rank: int, operation: _core.WorldOp) -> int:
        try:
            return self._player.post(operation)
        except ValueError as error:
            raise DepartureError(f"rank {rank}: {error}") from None

    def enter(self, rank: int, ps: int, name: str, site: int) -> None:
        self.leave(rank)
        self.post(rank, ("compute", ps))
        self.post(rank, ("enter", name, site))
        self._is_in_call = True

    def leave(self, rank: int) -> None:
        if self._is_in_call:
            self._is_in_call = False
            self.post(rank, ("exit",))

    def exchange(
        self,
        rank: int,
        ps: int,
        name: str,
        site: int,
        context: int,
        receive: tuple[int, int, int],
        send: tuple[int, int, int],
        mode: str,
    ) -> tuple[int, int]:
        self.enter(rank, ps, name, site)
        received = 0 if receive[0] == NOBODY else self.post(rank, ("recv", context, *receive))
        sent = 0 if send[0] == NOBODY else self.post(rank, ("send", context, *send, mode))
        self.post(rank, ("wait", [one for one in (received, sent) if one], "all"))
        self._exchanged = received
        return received, sent

    def step(self) -> list[tuple[int, Any]]:
        if self._shared:
            os.sched_yield()  # the rank waits: others have its core
        resumed = self._player.resume()
        if resumed is None:
            return []
        outcome: Any = resumed[0]
        if self._exchanged is not None:
            outcome = next((one for one in outcome if one[0] == self._exchanged), None)
            self._exchanged = None
        return [(self._rank, outcome)]

    def blocked(self) -> list[Any]:
        return []

    def now_ps(self, rank: int) -> int:
        raise DepartureError(f"rank {rank} runs alone: the world's clock does not go")


def replay(
    recording: Recording,
    world: Any,
    durations_ps: Sequence[Sequence[int]],
    asleep_ps: Sequence[Mapping[int, int]] = (),
) -> None:
    """Run the trace of a recording in a fresh world, with other durations of the computation.

    Parameters
    ----------
    world
        A `_core.World` of as many ranks in which nothing has happened yet.
    durations_ps
        The computation, rank by rank and stretch by stretch, in picoseconds.
    asleep_ps
        By rank and stretch for how long of it no core is needed, where that is any time.

    Raises
    ------
    SimulationError
        When the trace does not run to its end there: a program whose path depends on time.
    """
    asleep = [sorted(rank.items()) for rank in asleep_ps]
    if not world.replay(recording.traces, durations_ps, asleep):
        late = min((rank for rank, *_ in world.blocked()), default=0)
        raise SimulationError(
            f"the recorded trace does not run to its end: rank {late} waits for what never comes; "
            "the program's path depends on time"
        )
