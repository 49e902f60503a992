"""The anatomy of one message: where its time went, by layer and resource."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from wiretwin._core import lan_anatomy, lan_capture
from wiretwin.errors import InputError, SimulationError
from wiretwin.model.echo import SEED

if TYPE_CHECKING:
    from wiretwin._core import LanSegments

__all__ = ["Anatomy", "Line", "Named", "Pair", "anatomy", "capture", "chrome_trace", "cpu_shares", "lines"]

ROUNDS = 2
"""The message looked at is that of the second round trip, as the first is left out everywhere."""

MOST_BYTES = 8 << 20
"""The longest message that is taken apart: all that is done for it is kept, cell by cell."""


class Named(Protocol):
    """Hosts of which the first sends the second a message, in words."""

    @property
    def stack(self) -> str:
        """The stack, such as ``fore/aal5``."""

    @property
    def between(self) -> str:
        """The hosts and what is between them, in words."""


class Pair(Named, Protocol):
    """The same in every detail."""

    def lan_json(self, *, capture_host: int | None = None) -> str:
        """Return the configuration of the network as JSON, the packets of a host captured."""


@dataclass(frozen=True)
class Line:
    """One stretch of the critical path, or all that is alike: from one end of the message to the other.

    Attributes
    ----------
    layer, resource, activity, place
        What, and whose: ``host 0``, ``link 1``. `activity` is ``waiting`` where the resource was taken.
    start_ps
        After the beginning of the message, of the first of them.
    span_ps
        Of all of them.
    times
        How many.
    """

    layer: str
    resource: str
    activity: str
    place: str
    start_ps: int
    span_ps: int
    times: int


@dataclass(frozen=True)
class Anatomy:
    """A message that was taken apart; the spans of `path` sum to `latency_ps`."""

    network: Named
    bytes: int
    latency_ps: int
    path: list[Line]
    busy: LanSegments
    begun_ps: int
    digest: str


def _place(layer: str, resource: str, number: int) -> str:
    if layer in ("link", "switch"):
        return f"{layer} {number}"
    return f"host {number}" if resource in ("cpu", "bus") else f"adapter {number}"


def anatomy(network: Pair, size: int) -> Anatomy:
    """Take apart a message of `size` bytes from one host to another.

    Raises
    ------
    InputError
        The network or the size is rejected.
    SimulationError
        The message was lost.
    """
    _refuse_long(size)
    try:
        found = lan_anatomy(network.lan_json(), size, ROUNDS, SEED)
    except ValueError as error:
        raise _refused(error) from None
    except RuntimeError as error:
        raise SimulationError(str(error)) from None
    path = found["path"]
    parts: list[Line] = []
    rows = zip(
        path["layer"],
        path["resource"],
        path["activity"],
        path["place"].tolist(),
        path["start_ps"].tolist(),
        path["end_ps"].tolist(),
        path["waited_ps"].tolist(),
        strict=True,
    )
    for layer, resource, activity, number, start, end, waited in rows:
        place = _place(layer, resource, number)
        begun = start - found["begun_ps"]
        if waited:
            parts.append(Line(layer, resource, "waiting", place, begun - waited, waited, 1))
        if end > start:
            parts.append(Line(layer, resource, activity, place, begun, end - start, 1))
    latency = found["ended_ps"] - found["begun_ps"]
    total = sum(part.span_ps for part in parts)
    if total != latency:
        raise AssertionError(f"the parts of a message sum to {total} ps, and it took {latency} ps")
    return Anatomy(network, size, latency, parts, found["busy"], found["begun_ps"], found["digest"])


def cpu_shares(network: Pair, size: int) -> tuple[dict[str, float], str]:
    """Return the share of both processors' time that each layer takes of a message, and the run's digest.

    What is done for the message counts, also beside its critical path; the rest of the time the processors
    stand still, or a process looks again and again for what has not come.
    """
    found = lan_anatomy(network.lan_json(), size, ROUNDS, SEED)
    busy = found["busy"]
    spans: dict[str, int] = {}
    rows = zip(
        busy["layer"], busy["resource"], busy["start_ps"].tolist(), busy["end_ps"].tolist(), strict=True
    )
    for layer, resource, start, end in rows:
        if resource == "cpu":
            spans[layer] = spans.get(layer, 0) + end - start
    whole = 2 * (found["ended_ps"] - found["begun_ps"])
    return {layer: span / whole for layer, span in spans.items()}, found["digest"]


def _refused(error: ValueError) -> InputError:
    """Say that it is the size where the message layer does not carry a message of that length."""
    reason = str(error)
    return InputError(key="SIZE" if reason.startswith("a message of ") else None, reason=reason)


def _refuse_long(size: int) -> None:
    if size > MOST_BYTES:
        raise InputError(
            key="SIZE",
            value=size,
            reason="is too long to be taken apart",
            allowed=f"at most {MOST_BYTES} bytes",
        )


def capture(network: Pair, size: int, host: int = 0) -> bytes:
    """Return what a host sends and receives until a message of `size` bytes and its answer have come twice.

    A file in the pcap format: packets and PDUs with their times, as ``tcpdump`` on that host would write it.

    Raises
    ------
    InputError
        The network, the size or the host is rejected, or the stack has no captures.
    SimulationError
        A connection was given up.
    """
    _refuse_long(size)
    try:
        return lan_capture(network.lan_json(capture_host=host), size, ROUNDS, SEED)
    except ValueError as error:
        raise _refused(error) from None
    except RuntimeError as error:
        raise SimulationError(str(error)) from None


def lines(found: Anatomy) -> list[Line]:
    """Sum up what is alike, in the order in which each first happens."""
    summed: dict[tuple[str, str, str, str], Line] = {}
    for part in found.path:
        key = (part.layer, part.resource, part.activity, part.place)
        old = summed.get(key)
        if old is None:
            summed[key] = part
        else:
            summed[key] = Line(*key, old.start_ps, old.span_ps + part.span_ps, old.times + 1)
    return list(summed.values())


def chrome_trace(found: Anatomy) -> str:
    """Return all that was done for the message as a Chrome trace, which Perfetto opens.

    One thread for each resource of a host, link or switch; times in microseconds after the message began.
    What only passes time, of which several things do at once, is on tracks of its own (asynchronous events).
    The critical path is a process of its own.
    """
    events: list[dict[str, object]] = []
    threads: dict[tuple[int, str], int] = {}

    def thread(process: int, name: str) -> int:
        if (process, name) not in threads:
            threads[process, name] = len(threads)
            argument = {"name": name}
            number = threads[process, name]
            events.append({"ph": "M", "pid": process, "tid": number, "name": "thread_name", "args": argument})
        return threads[process, name]

    for number, title in ((0, "all that was done"), (1, "critical path")):
        events.append({"ph": "M", "pid": number, "tid": 0, "name": "process_name", "args": {"name": title}})
    busy = found.busy
    for at, activity in enumerate(busy["activity"]):
        layer, resource = busy["layer"][at], busy["resource"][at]
        place = _place(layer, resource, int(busy["place"][at]))
        start, end = int(busy["start_ps"][at]), int(busy["end_ps"][at])
        row = thread(0, f"{place}: {resource}")
        event = _event(0, row, activity, layer, start - found.begun_ps, end - start)
        if resource == "delay":
            del event["dur"]
            ident = f"{at:#x}"
            events.append({**event, "ph": "b", "id": ident})
            events.append({**event, "ph": "e", "id": ident, "ts": (end - found.begun_ps) / 1e6})
        else:
            events.append(event)
    for part in found.path:
        row = thread(1, "path")
        events.append(
            _event(1, row, f"{part.activity} ({part.place})", part.layer, part.start_ps, part.span_ps)
        )
    document = {
        "otherData": {
            "format": "wiretwin-anatomy",
            "version": "1",
            "bytes": found.bytes,
            "digest": found.digest,
        },
        "displayTimeUnit": "ns",
        "traceEvents": events,
    }
    return json.dumps(document) + "\n"


def _event(
    process: int, thread: int, name: str, layer: str, start_ps: int, span_ps: int
) -> dict[str, object]:
    return {
        "ph": "X",
        "pid": process,
        "tid": thread,
        "name": name,
        "cat": layer,
        "ts": start_ps / 1e6,
        "dur": span_ps / 1e6,
    }
