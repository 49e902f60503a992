"""The twin: what a fit says about a host and its messaging layers, as one TOML file.

Format ``wiretwin-twin``, version 1. Every time is in nanoseconds, every size in bytes, every rate in
10^6 bytes per second, except where the key says otherwise. A quantity that depends on the message size
is a list of segments, each a straight line ``base + per_byte * bytes`` over ``from_bytes <= bytes <
to_bytes``; together they cover every size from 0 without gaps. LogGP's letters stand in the comments.

Reading rejects anything it does not know: the message names the file, the key, the value and what is
allowed. Writing is deterministic: the same twin gives the same bytes.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from wiretwin.errors import InputError, StorageError
from wiretwin.faults import explain, quoted, shown
from wiretwin.given import read_text
from wiretwin.loops import LOOPED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "FORMAT",
    "QUANTITIES",
    "VERSION",
    "Checks",
    "Costs",
    "Crossing",
    "Estimate",
    "Figure",
    "FirstCall",
    "Host",
    "Layer",
    "Quantity",
    "Segment",
    "Source",
    "State",
    "Twin",
]

FORMAT: Final = "wiretwin-twin"
VERSION: Final = 1

Quantity = Literal[
    "half_round_trip", "overhead_send", "latency", "overhead_recv", "busy_send", "busy_recv", "fetch", "gap"
]
QUANTITIES: Final[tuple[Quantity, ...]] = (
    "half_round_trip",
    "overhead_send",
    "latency",
    "overhead_recv",
    "busy_send",
    "busy_recv",
    "fetch",
    "gap",
)
#: What is a time of its own, never negative.
_TIMES: Final = (
    "overhead_send",
    "overhead_recv",
    "busy_send",
    "busy_recv",
    "fetch",
    "gap",
    "half_round_trip",
)

# Bounds far above any machine, so that a conversion to integer picoseconds cannot overflow 64 bits.
_MAX_NS: Final = 1e15
_MAX_PER_BYTE_NS: Final = 1e9
_MAX_BYTES: Final = 2**62
# A line may dip below zero at its own start by what rounding to the written digits can do, no more.
_ROUNDING_NS: Final = 1e-3
_ROUNDING: Final = 1e-9
_DIGITS: Final = 10
#: So many kinds of first calls a model tells apart.
MOST_FIRST: Final = 64

Size = Annotated[int, Field(ge=0, le=_MAX_BYTES)]
Count = Annotated[int, Field(ge=0, le=_MAX_BYTES)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class _Strict(BaseModel):
    """Nothing unknown, nothing converted, no NaN or infinity, nothing changed after it was made."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Estimate(_Strict):
    """A value with its confidence interval, ``low <= value <= high``; the unit is in the key."""

    value: float
    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Estimate:
        if not self.low <= self.value <= self.high:
            raise ValueError(
                f"low = {self.low:g}, value = {self.value:g}, high = {self.high:g}; "
                "allowed is low <= value <= high"
            )
        return self


class Figure(Estimate):
    """An estimate with the numbers of launches and samples behind it; none of its values is negative."""

    RANGE: ClassVar[tuple[float, float]] = (0.0, _MAX_NS)
    value: Annotated[float, Field(ge=0.0, le=_MAX_NS)]
    low: Annotated[float, Field(ge=0.0, le=_MAX_NS)]
    high: Annotated[float, Field(ge=0.0, le=_MAX_NS)]
    launches: Annotated[int, Field(ge=1, le=_MAX_BYTES)]
    samples: Annotated[int, Field(ge=1, le=_MAX_BYTES)]


class Base(Estimate):
    """The constant of a line, in ns: may be negative where the line itself is not, over its range."""

    RANGE: ClassVar[tuple[float, float]] = (-_MAX_NS, _MAX_NS)
    value: Annotated[float, Field(ge=-_MAX_NS, le=_MAX_NS)]
    low: Annotated[float, Field(ge=-_MAX_NS, le=_MAX_NS)]
    high: Annotated[float, Field(ge=-_MAX_NS, le=_MAX_NS)]


class Rate(Estimate):
    """The time of one more byte, in ns: never negative."""

    RANGE: ClassVar[tuple[float, float]] = (0.0, _MAX_PER_BYTE_NS)
    value: Annotated[float, Field(ge=0.0, le=_MAX_PER_BYTE_NS)]
    low: Annotated[float, Field(ge=0.0, le=_MAX_PER_BYTE_NS)]
    high: Annotated[float, Field(ge=0.0, le=_MAX_PER_BYTE_NS)]


class Segment(_Strict):
    """One straight piece: ``base_ns + per_byte_ns * bytes`` for ``from_bytes <= bytes < to_bytes``."""

    from_bytes: Size
    to_bytes: Size | None = None
    """Exclusive; absent = no end."""
    base_ns: Base
    per_byte_ns: Rate
    samples: Count
    """Samples between the two sizes; 0 for a line that was derived from others."""
    lack_of_fit_p: Probability | None = None
    """Small = the launches agree with each other but not with a straight line; absent = cannot be told."""
    break_p: Probability | None = None
    """The chance of so bad a line through this segment and the one before, if there were no break; absent for
    the first segment and where it cannot be told."""
    from_bytes_low: Size | None = None
    from_bytes_high: Size | None = None
    """Where the break at ``from_bytes`` may lie; absent for the first segment and for derived ones."""

    @model_validator(mode="after")
    def _sound(self) -> Segment:
        if self.to_bytes is not None and self.to_bytes <= self.from_bytes:
            raise ValueError(
                f"from_bytes = {self.from_bytes}, to_bytes = {self.to_bytes}; "
                "allowed is to_bytes above from_bytes"
            )
        low, high = self.from_bytes_low, self.from_bytes_high
        if (low is None) != (high is None):
            raise ValueError("from_bytes_low and from_bytes_high go together: give both or neither")
        if low is not None and high is not None and not low <= self.from_bytes <= high:
            raise ValueError(
                f"from_bytes_low = {low}, from_bytes = {self.from_bytes}, from_bytes_high = {high}; "
                "allowed is from_bytes_low <= from_bytes <= from_bytes_high"
            )
        return self

    def at(self, size: float) -> float:
        """Time of a message of ``size`` bytes on this line, in ns."""
        return self.base_ns.value + self.per_byte_ns.value * size


class Checks(_Strict):
    """What the fit rests on, had to put right or could not make agree; a key without a finding is absent."""

    endpoints_lack: str | None = None
    """What was not measured that overheads and latency need, in words."""
    endpoints_of: Literal["all states"] | None = None
    """The launches that the overheads are of, where they are not those of the state of the host alone."""
    overhead_send_by: Literal["prtt", "send_busy"] | None = None
    """The loop that overhead_send rests on."""
    gap_by: Literal["prtt", "stream"] | None = None
    """The loop that gap rests on."""
    negative_latency_ns: Annotated[float, Field(ge=0.0, le=_MAX_NS)] | None = None
    """By how much the two overheads exceeded the one-way latency at worst: both ends are busy at once."""
    negative_latency_at_bytes: Size | None = None
    overhead_reduced_percent: Annotated[float, Field(ge=0.0, le=100.0)] | None = None
    """The largest share of the overheads taken away so that the latency is not negative or falling."""
    send_busy_percent: Annotated[float, Field(ge=-100.0, le=1e9)] | None = None
    """Median over the sizes of (time inside the send call / overhead by round trip) - 1, in percent."""
    send_busy_worst_percent: Annotated[float, Field(ge=-100.0, le=1e9)] | None = None
    send_busy_worst_at_bytes: Size | None = None
    recv_busy_over_stream_percent: Annotated[float, Field(ge=0.0, le=1e9)] | None = None
    """By how much a receive timed alone exceeded what a stream allows a message; the stream's was taken."""


class Crossing(_Strict):
    """How far apart the ranks were in the launches of a fit: a cache line there and back, in ns."""

    low: Annotated[float, Field(gt=0.0, le=_MAX_NS)]
    high: Annotated[float, Field(gt=0.0, le=_MAX_NS)]

    @model_validator(mode="after")
    def _ordered(self) -> Crossing:
        if not self.low <= self.high:
            raise ValueError(f"low = {self.low:g}, high = {self.high:g}; allowed is low <= high")
        return self


class Costs(_Strict):
    """What messages cost on a layer.

    ``half_round_trip = overhead_send + latency + overhead_recv`` at every size, where all four are
    given. The overheads include ``call_ns``. A quantity that was not measured is absent.
    """

    t_0_us: Figure
    """One-way latency of ``t_0_bytes``."""
    t_0_bytes: Size = 4
    """4, or the smallest measured size above 0 where 4 was not measured."""
    r_max_MB_s: Figure
    """Largest 2 M / RTT over the measured sizes, in 10^6 bytes/s."""
    n_half_bytes: Figure
    """Smallest size at which half of r_max is reached on the measured curve."""
    call_ns: Figure | None = None
    """A call that moves nothing: the language binding."""
    rendezvous_from_bytes: Size | None = None
    """Smallest size that waits for the receiver; absent if none was found."""
    overhead_send: tuple[Segment, ...] = ()  # o_s
    overhead_recv: tuple[Segment, ...] = ()  # o_r
    latency: tuple[Segment, ...] = ()  # L, with the bytes on the way: L + G m
    """Negative where both ends are busy with a message at the same time, if the fit kept that overlap."""
    busy_send: tuple[Segment, ...] = ()
    """A send whose receiver is not at the message at the same time, so that it alone takes this long;
    absent where that is ``overhead_send``, or where messages do not pass through a buffer piece by piece."""
    busy_recv: tuple[Segment, ...] = ()
    """A receive of a message that is there already, likewise; absent where ``busy_send`` is."""
    fetch: tuple[Segment, ...] = ()
    """A receive that takes a waiting rendezvous message, just written, out of its sender's memory; absent if
    senders push."""
    gap: tuple[Segment, ...] = ()  # g + G m
    half_round_trip: tuple[Segment, ...] = ()
    checks: Checks | None = None
    crossing_ns: Crossing | None = None
    """From the nearest to the farthest that the ranks were apart; absent if that was not measured."""

    @field_validator(*QUANTITIES, mode="before")
    @classmethod
    def _as_tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator(*_TIMES)
    @classmethod
    def _never_negative(cls, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        for number, segment in enumerate(segments):
            start, base, rate = segment.from_bytes, segment.base_ns.value, segment.per_byte_ns.value
            if segment.at(start) < -(_ROUNDING_NS + _ROUNDING * abs(base)):
                raise ValueError(
                    f"segment {number}: base_ns = {base:g} and per_byte_ns = {rate:g} give "
                    f"{segment.at(start):g} ns at from_bytes = {start}; allowed is 0 ns and above"
                )
        return segments

    @field_validator(*QUANTITIES)
    @classmethod
    def _cover_every_size(cls, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        expected: int | None = 0
        for number, segment in enumerate(segments):
            if expected is None:
                raise ValueError(
                    f"segment {number - 1} has no to_bytes but segment {number} follows it; "
                    f"allowed is to_bytes = {segment.from_bytes} there"
                )
            if segment.from_bytes != expected:
                where = "start at 0" if number == 0 else f"go on at {expected}, where the one before ends"
                raise ValueError(f"segment {number} has from_bytes = {segment.from_bytes}; it must {where}")
            expected = segment.to_bytes
        if segments and expected is not None:
            raise ValueError(
                f"the last segment ends at to_bytes = {expected}; it must have no to_bytes, "
                "so that every size has a time"
            )
        return segments

    def at(self, quantity: Quantity, size: int) -> float:
        """Time of ``quantity`` for a message of ``size`` bytes, in ns; negative for a latency at most.

        Raises
        ------
        InputError
            If the quantity is unknown or was not fitted for this layer, or the size is negative.
        """
        if size < 0:
            raise InputError(reason=f"size = {size} bytes; allowed is 0 and above")
        for segment in reversed(self.segments(quantity)):
            if size >= segment.from_bytes:
                return segment.at(size) if quantity == "latency" else max(0.0, segment.at(size))
        raise AssertionError("segments cover every size from 0, checked when the layer was made")

    def curve(self, quantity: Quantity, sizes: ArrayLike) -> NDArray[np.float64]:
        """Evaluate ``quantity`` at many sizes in bytes, in ns; the same errors as :meth:`at`."""
        import numpy as np

        segments = self.segments(quantity)
        at = np.asarray(sizes, dtype=np.float64)
        if at.size and float(at.min()) < 0:
            raise InputError(reason=f"size = {at.min():g} bytes; allowed is 0 and above")
        which = np.searchsorted([s.from_bytes for s in segments], at, side="right") - 1
        base = np.array([s.base_ns.value for s in segments])[which]
        rate = np.array([s.per_byte_ns.value for s in segments])[which]
        times = np.asarray(base + rate * at, dtype=np.float64)
        return times if quantity == "latency" else np.maximum(0.0, times)

    def segments(self, quantity: Quantity) -> tuple[Segment, ...]:
        """Return the segments of a quantity, at least one; the same errors as :meth:`at`."""
        if quantity not in QUANTITIES:
            raise InputError(reason=f"quantity {quantity!r}; allowed are {', '.join(QUANTITIES)}")
        segments: tuple[Segment, ...] = getattr(self, quantity)
        if not segments:
            fitted = [name for name in QUANTITIES if getattr(self, name)]
            lack = self.checks.endpoints_lack if self.checks else None
            raise InputError(
                reason=f"{quantity} was not fitted for this layer; it has {', '.join(fitted) or 'none'}"
                + (f" (not measured enough: {lack})" if lack else "")
            )
        return segments


class Sharing(_Strict):
    """What ranks of a layer do on a core that they share, and what the kernel does with them."""

    idle: Literal["spin", "yield"]
    """A waiting rank keeps the core to the end of its slice, or hands it on after each look for messages."""
    one_core_us: Figure
    """One-way latency of the smallest message between two ranks on one core."""
    turn_us: Figure
    """What that takes beyond both overheads: one look for messages, and handing the core on."""
    slice_ms: Figure
    """How long a rank that computes keeps a core that another one wants."""
    kept_share: Figure | None = None
    """What share of a core a rank that computes gets beside one that waits; absent if not measured."""
    keeping: tuple[str, ...] = ()
    """Calls in which a rank that waits keeps the core to the end of its slice, though it yields elsewhere."""
    offers: bool = False
    """Whether a rank that yields offers its core once in each wait, even for a message that has come."""

    @field_validator("keeping", mode="before")
    @classmethod
    def _tuple_of_names(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value


class FirstCall(_Strict):
    """What a rank's first call of a kind takes beyond a later one: once for all these names.

    With ``early_from_bytes`` it is the cost of a message instead: of the first one of at least that length
    which the receiver's library reads before the receive is posted. A message that is received in one of
    `calls` counts as read before.
    """

    calls: Annotated[tuple[str, ...], Field(min_length=1)]
    takes_us: Figure
    early_from_bytes: Annotated[int, Field(ge=1)] | None = None

    @field_validator("calls", mode="before")
    @classmethod
    def _tuple_of_names(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value


class Cold(_Strict):
    """What a call takes more behind computation: it finds caches as that has left them."""

    after_us: Annotated[float, Field(gt=0.0)]
    """How long it has computed."""
    takes_us: Figure


class LoopedCall(_Strict):
    """What calls of a kind take that follow each other: an iteration of its loop (`wiretwin.loops`).

    The two ranks have a core each, or share one.
    """

    kind: str
    takes_us: Figure
    one_core_us: Figure | None = None

    @field_validator("kind")
    @classmethod
    def _that_there_is(cls, value: str) -> str:
        if value not in LOOPED:
            raise ValueError(f"{value!r} has no loop; allowed are {', '.join(LOOPED)}")
        return value


class Interrupt(_Strict):
    """What a message that comes from another host takes of its receiver's core while that computes."""

    takes_us: Figure
    """The shortest message, and the envelope of one that waits for its receiver."""
    per_byte_ns: Figure
    saved_us: Figure | None = None
    """How much less one takes that comes while the kernel is at work on another; absent if not measured."""


class State(Costs):
    """What messages cost in one state of the host, told from the others by how far apart the ranks are."""

    name: Annotated[str, Field(min_length=1)]
    crossing_ns: Crossing


class Layer(Costs):
    """One measured configuration of a messaging layer, for example ``socket/tcp+spin``.

    Its own costs are those over all launches; where the host was seen in several states, `states` has those
    of each, nearest ranks first.
    """

    states: tuple[State, ...] = ()
    sharing: Sharing | None = None
    """Absent where it was not measured: `Host.idle` and `Host.quantum_ms` hold then."""
    interrupt: Interrupt | None = None
    """Absent where it was not measured: within a host."""
    first: Annotated[tuple[FirstCall, ...], Field(max_length=MOST_FIRST)] = ()
    """What first calls take, each sum of those it is named in; absent where it was not measured."""
    cold: Annotated[tuple[Cold, ...], Field(max_length=MOST_FIRST)] = ()
    """By how long a rank has computed, the shortest first; absent where it was not measured."""
    looped: Annotated[tuple[LoopedCall, ...], Field(max_length=MOST_FIRST)] = ()
    """What calls take in a loop, the smallest messages; absent where it was not measured."""
    largest_bytes: Size | None = None
    """The longest message that was echoed; longer ones are on the last lines. Absent in twins of before."""

    @field_validator("states", "first", "cold", "looped", mode="before")
    @classmethod
    def _tuple_of_tables(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("states")
    @classmethod
    def _apart(cls, states: tuple[State, ...]) -> tuple[State, ...]:
        for nearer, farther in pairwise(states):
            if nearer.crossing_ns.high >= farther.crossing_ns.low:
                raise ValueError(
                    f"crossing_ns of {nearer.name!r} ends at {nearer.crossing_ns.high:g} and that of "
                    f"{farther.name!r} begins at {farther.crossing_ns.low:g}; allowed are states that lie "
                    "apart, nearest first"
                )
        if len({state.name for state in states}) < len(states):
            raise ValueError(f"{', '.join(s.name for s in states)}; allowed are names that differ")
        return states

    @field_validator("cold")
    @classmethod
    def _rising(cls, cold: tuple[Cold, ...]) -> tuple[Cold, ...]:
        for shorter, longer in pairwise(one.after_us for one in cold):
            if shorter >= longer:
                raise ValueError(
                    f"after_us {shorter:g} comes before {longer:g}; allowed is the shortest first"
                )
        return cold

    def in_state(self, name: str | None) -> Costs:
        """Return the costs in a state, or over all launches; InputError if there is no such state."""
        if name is None:
            return self
        for state in self.states:
            if state.name == name:
                return state
        have = ", ".join(state.name for state in self.states) or "none"
        raise InputError(reason=f"state {name!r} is not in the twin's layer; it has {have}")


class Source(_Strict):
    """The record that the fit came from."""

    digest: str
    """Digest of the result's samples."""
    samples: Count
    launches: Count
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.95
    """Of every interval in the file."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Of the fit's resampling."""
    left_out: dict[str, str] | None = None
    """By name the layers that were measured too little to be fitted, with what they lack."""


class Host(_Strict):
    """The host that was measured, and how its processes behave while they wait."""

    name: str
    cpu_model: str = "unknown"
    cores: Annotated[int, Field(ge=1, le=2**20)]
    kernel: str = "unknown"
    governor: str = "unknown"
    hypervisor: str = "unknown"
    idle: Literal["spin", "yield"] = "spin"
    """A waiting rank keeps its core, or gives it to another."""
    quantum_ms: Annotated[float, Field(gt=0.0, le=1e6)] = 4.0
    """Longest time a rank keeps a core that another one wants."""
    between: str | None = None
    """What joined the two ranks that were measured, where they lived on two hosts, in words."""
    network: str | None = None
    """The same as ``--network`` reads it, where it is known so exactly: it is part of the latency, and a
    prediction on another network takes it out of that."""


class Twin(_Strict):
    """A host and its layers as fitted; see the module's text."""

    format: Literal["wiretwin-twin"] = FORMAT
    version: Literal[1] = VERSION
    created_utc: str
    source: Source
    host: Host
    layers: Annotated[dict[str, Layer], Field(min_length=1)]

    def layer(self, name: str) -> Layer:
        """Return a layer by name; InputError with the names there are if it is not one of them."""
        if name not in self.layers:
            raise InputError(
                reason=f"layer {name!r} is not in the twin; it has {', '.join(sorted(self.layers))}"
            )
        return self.layers[name]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Twin:
        """Read a twin file.

        Raises
        ------
        InputError
            If the file cannot be read, is not TOML, is of another format or a newer version, or breaks a
            rule; the message names the file, the key, the value and what is allowed.
        """
        return cls.parse(read_text(path), str(path))

    @classmethod
    def parse(cls, text: str, name: str = "twin") -> Twin:
        """Read a twin from TOML text; ``name`` stands for the file in errors. As :meth:`read`."""
        try:
            document = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            raise InputError(reason=f"{name}: not TOML: {error}") from error
        found = document.get("format")
        if found != FORMAT:
            raise InputError(reason=f"{name}: format = {shown(found)}; allowed is {FORMAT!r}")
        version = document.get("version")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise InputError(reason=f"{name}: version = {shown(version)}; allowed is {VERSION}")
        if version > VERSION:
            raise InputError(
                reason=f"{name}: written by a newer wiretwin: version {version}, this one reads {VERSION}"
            )
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise InputError(reason=explain(name, error, cls)) from error

    def to_toml(self) -> str:
        """Return the file's text: the same twin gives the same text."""
        document = self.model_dump(exclude_none=True)
        layers = document.pop("layers")
        lines = [
            "# Written by wiretwin fit. Times in ns, sizes in bytes, rates in 10^6 bytes/s where not said "
            "otherwise;",
            "# a segment is base_ns + per_byte_ns * bytes from from_bytes up to, not including, to_bytes.",
        ]
        tables = {key: document.pop(key) for key in ("source", "host")}
        lines += [_pair(key, value) for key, value in document.items()]
        for key, table in tables.items():
            lines += ["", f"[{key}]", *(_pair(name, value) for name, value in table.items())]
        for layer_name in sorted(layers):
            lines += _layer_lines(f"layers.{quoted(layer_name)}", layers[layer_name])
        return "\n".join(lines) + "\n"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the twin file, whole or not at all; StorageError if it cannot be written."""
        target = Path(path)
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            try:
                partial.write_text(self.to_toml(), encoding="utf-8", newline="\n")
                os.replace(partial, target)
            finally:
                partial.unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(target, f"not written: {error.strerror or error}") from error


def _layer_lines(path: str, layer: Mapping[str, Any], *, listed: bool = False) -> list[str]:
    lines = ["", f"[[{path}]]" if listed else f"[{path}]"]
    lines += [_pair(k, v) for k, v in layer.items() if not isinstance(v, tuple) and k != "checks"]
    if layer.get("checks"):
        lines += ["", f"[{path}.checks]", *(_pair(k, v) for k, v in layer["checks"].items())]
    for quantity in QUANTITIES:
        for segment in layer[quantity]:
            lines += ["", f"[[{path}.{quantity}]]", *(_pair(k, v) for k, v in segment.items())]
    for one in layer.get("first", ()):
        table = one | {"calls": list(one["calls"])}
        lines += ["", f"[[{path}.first]]", *(_pair(key, value) for key, value in table.items())]
    for key in ("cold", "looped"):
        for one in layer.get(key, ()):
            lines += ["", f"[[{path}.{key}]]", *(_pair(name, value) for name, value in one.items())]
    for state in layer.get("states", ()):
        lines += _layer_lines(f"{path}.states", state, listed=True)
    return lines


def _pair(key: str, value: object) -> str:
    if isinstance(value, Mapping):
        return f"{key} = {{ {', '.join(_pair(k, v) for k, v in value.items())} }}"
    return tomli_w.dumps({key: _rounded(value) if isinstance(value, float) else value}).rstrip("\n")


def _rounded(value: float) -> float:
    """Keep ten significant digits: monotone, so that low <= value <= high survives."""
    return float(f"{value:.{_DIGITS}g}") + 0.0
