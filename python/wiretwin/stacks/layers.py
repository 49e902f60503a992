"""The messaging layers that can be measured, their variants, and how each is started.

A measured configuration is a layer and words: ``socket/tcp`` (its defaults), ``socket/tcp+spin``,
``socket/tcp+buf64k+nagle``. Words are sorted in the full name, so each configuration has one name.
``docs/how-to/add-a-layer.md`` says how a layer is added.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from wiretwin.errors import InputError
from wiretwin.place import HERE, Apart, Place
from wiretwin.quantity import MAX_SIZE
from wiretwin.stacks import STACKS, Refusal, Stack
from wiretwin.stacks.nature import Meaning, Nature
from wiretwin.stacks.word import ALL_LOOPS, COMPILED, OVER_MESSAGES, STALLING, Word, fixed

__all__ = [
    "ALL_LOOPS",
    "LAYERS",
    "Configuration",
    "LayerKind",
    "Word",
    "mpiexec",
    "nature_of",
    "parse_layers",
    "refusal",
]

LARGEST_DATAGRAM = 65507
"""Payload of a UDP datagram over IPv4: 65535 - 20 - 8 (RFC 768, RFC 791)."""

_BUFFERS = tuple(Meaning(r"buf(\d+)k", "socket", name) for name in ("SO_SNDBUF", "SO_RCVBUF"))
_BUFFER = Word(
    r"buf(\d+)k",
    "bufNk",
    "socket buffers of N KiB at both ends, as asked for (the kernel doubles and bounds them)",
    lambda match: {
        "send_buffer_bytes": int(match[1]) * 1024,
        "receive_buffer_bytes": int(match[1]) * 1024,
    },
)
_LOSS = Word(
    r"loss(\d|[1-4]\d|50)",
    "lossN",
    "each end loses N % of its datagrams itself, sends a tenth twice and holds each for up to half a ms",
    lambda match: {
        "fault_loss_percent": int(match[1]),
        "fault_repeat_percent": 10,
        "fault_jitter_us": 500,
    },
)
_TIME = r"([1-9]\d{0,4})(us|ms)"


def _time(word: str, option: str, summary: str) -> Word:
    """Return a word that sets a time, written with its unit and handed on in ms."""
    return Word(
        word + _TIME,
        f"{word}Nms",
        f"{summary}: N us or ms",
        lambda match: {option: int(match[1]) / (1000 if match[2] == "us" else 1)},
    )


def _class(word: str, option: str, summary: str) -> Word:
    """Return a word that sets a class."""
    return Word(word + r"(\d|[1-5]\d|6[0-3])", f"{word}N", summary, lambda match: {option: int(match[1])})


_CIRCUITS = (
    _time("T_M", "high_ms", "a latency above T_M moves data to the backup circuit"),
    _time("T_m", "low_ms", "a latency below T_m, which is less than T_M, moves them back"),
    _time("T_L", "loss_ms", "a monitoring cell that is later than T_L is lost, and the latency high"),
    _time("monitor", "interval_ms", "the time from one monitoring cell to the next"),
    _class("ordinary", "dscp_ordinary", "the class (DSCP) of the ordinary circuit"),
    _class("backup", "dscp_backup", "the class (DSCP) of the backup circuit"),
)
_SPIN = fixed("spin", "waits by asking again and again, holding its core", wait="spin")
_YIELD = fixed("yield", "gives way to other processes on its core while waiting", wait="yield")
_OVER_VIS = (
    Word(
        r"eager([1-9]\d{0,2}|1[0-7]\d\d|1800)k",
        "eagerNk",
        "messages of up to N KiB (at most 1800) are sent without asking the receiver first, into as many"
        " posted buffers as that takes",
        # A buffer of 2048 B holds 2000 beside its head; of those emptied, 23 may be on nobody's way back.
        lambda match: {
            "rendezvous_bytes": int(match[1]) * 1024 + 1,
            "buffers": max(32, -(-int(match[1]) * 1024 // 2000) + 23),
        },
    ),
    Word(
        r"posted(2[3-9]|[3-9]\d|[1-9]\d\d|1000)",
        "postedN",
        "N buffers (23 to 1000) posted beforehand for each other rank",
        lambda match: {"buffers": int(match[1])},
    ),
    Word(
        r"return([2-9]|1[0-4])",
        "returnN",
        "credits are returned by a packet of their own after N emptied buffers (2 to 14)",
        lambda match: {"return_after": int(match[1])},
    ),
    Word(
        r"cache([1-9]\d{0,2}|[1-3]\d{3}|40[0-8]\d|409[0-6])",
        "cacheN",
        "N regions of memory (1 to 4096) stay registered",
        lambda match: {"registrations": int(match[1])},
    ),
)


@dataclass(frozen=True)
class LayerKind:
    """A messaging layer.

    Attributes
    ----------
    name
        ``socket/tcp``.
    summary
        One line for people.
    start
        ``pair``: one process per rank, each with its specification; ``mpiexec``: one launcher that
        starts both ranks with the same specification; ``stack``: as its stack says.
    probe
        The command of a rank, which the path of the specification follows.
    options
        Defaults, as given to the probe.
    words
        Its variants.
    max_bytes
        Its largest message.
    loops
        The loops its probe has.
    need
        Says what is missing and the line that gets it; nothing if it can be tried.
    stack
        What brings it up, for a messaging library.
    editions
        Words that stand for another installation of it.
    opt_in
        Runs only when asked for by name.
    by_address
        Between hosts its ranks are told the address of theirs.
    within_host
        Its ranks share memory, or something else that another host does not see.
    between_hosts
        It leads from one host to another only.
    nature
        What else it is like.
    """

    name: str
    summary: str
    start: Literal["pair", "mpiexec", "stack"]
    probe: tuple[str, ...] = COMPILED
    options: Mapping[str, Any] = field(default_factory=dict)
    words: Sequence[Word] = ()
    max_bytes: int = MAX_SIZE
    loops: frozenset[str] = ALL_LOOPS | OVER_MESSAGES
    need: Callable[[], Refusal | None] = lambda: None
    stack: Stack | None = None
    editions: tuple[str, ...] = ()
    opt_in: bool = False
    by_address: bool = False
    within_host: bool = False
    between_hosts: bool = False
    nature: Nature = field(default_factory=Nature)


@dataclass(frozen=True)
class Configuration:
    """A layer with its words, ready to be measured."""

    kind: LayerKind
    words: tuple[str, ...]
    options: Mapping[str, Any]
    loops: frozenset[str] = ALL_LOOPS | OVER_MESSAGES
    """The loops that are run on it."""
    max_bytes: int = MAX_SIZE
    """Its largest message."""

    @property
    def name(self) -> str:
        """The full name, ``socket/tcp+nagle+spin``."""
        return "+".join((self.kind.name, *self.words))


def mpiexec() -> Path | None:
    """Find the MPI launcher: the one beside this interpreter, else the first on PATH."""
    beside = Path(sys.executable).parent / "mpiexec"
    if beside.is_file():
        return beside
    found = shutil.which("mpiexec")
    return Path(found) if found else None


def _of_stack(stack: Stack) -> LayerKind:
    """Return a messaging library as a layer."""
    return LayerKind(
        stack.name,
        stack.summary,
        "stack",
        probe=stack.probe,
        options=stack.options,
        words=stack.words,
        max_bytes=stack.max_bytes,
        loops=stack.loops,
        stack=stack,
        editions=stack.editions,
        opt_in=stack.opt_in,
        nature=stack.nature,
    )


LAYERS: dict[str, LayerKind] = {
    kind.name: kind
    for kind in (
        LayerKind(
            "socket/tcp",
            "stream sockets over TCP on the loopback interface; blocking, Nagle's algorithm off",
            "pair",
            options={"wait": "block", "nodelay": True},
            words=(
                _SPIN,
                fixed("nagle", "Nagle's algorithm (RFC 896) on", loops=STALLING, nodelay=False),
                _BUFFER,
            ),
            by_address=True,
            nature=Nature(streams=True, own_header=0, is_bare=True, buffers="asked", meanings=_BUFFERS),
        ),
        LayerKind(
            "socket/udp",
            "datagram sockets over UDP on the loopback interface; blocking, loss counted",
            "pair",
            options={"wait": "block"},
            words=(_SPIN, _BUFFER),
            loops=ALL_LOOPS,
            max_bytes=LARGEST_DATAGRAM,
            by_address=True,
            nature=Nature(
                streams=True,
                loses=True,
                stalls=False,
                packet_headers=28,
                own_header=0,
                is_bare=True,
                meanings=_BUFFERS,
            ),
        ),
        LayerKind(
            "socket/unix",
            "stream sockets of the Unix domain; blocking",
            "pair",
            options={"wait": "block"},
            words=(_SPIN, _BUFFER),
            within_host=True,
            nature=Nature(
                streams=True, stalls=False, own_header=0, is_bare=True, buffers="fixed", meanings=_BUFFERS
            ),
        ),
        LayerKind(
            "shm",
            "a lock-free ring in memory shared by two processes; spinning",
            "pair",
            options={"wait": "spin"},
            words=(_YIELD,),
            within_host=True,
            nature=Nature(streams=True, spins=True, stalls=False),
        ),
        LayerKind(
            "pcaal/udp",
            "a reliable adaptation layer of one-cell PDUs over UDP, on circuits of two classes; blocking",
            "pair",
            options={"wait": "block"},
            words=(_SPIN, _LOSS, *_CIRCUITS),
            # A cell of 48 B holds 23 beside its stamp; a POLL after 25 of them is answered by a STAT.
            by_address=True,
            nature=Nature(is_bare=True, cells=(48, 23, 25)),
        ),
        LayerKind(
            "mpi-mvich/shm",
            "MPI over the VI Architecture as MVICH had it, in shared memory; spins unless crowded",
            "pair",
            options={"wait": "spin"},
            words=(_YIELD, *_OVER_VIS),
            within_host=True,
            nature=Nature(spins=True, switches=True, stalls=False),
        ),
        *(
            LayerKind(
                f"mpi-mvich/{device}",
                f"MPI over the VI Architecture as MVICH had it, {way}; spins unless crowded",
                "pair",
                options={"wait": "spin"},
                words=(_YIELD, *_OVER_VIS),
                # Ways of one layer: `all` has enough to share its time among.
                opt_in=True,
                by_address=True,
                between_hosts=device == "packet",
                nature=Nature(spins=True, switches=True),
            )
            for device, way in (
                ("udp", "by datagrams of the direct transport"),
                ("packet", "the direct transport's frames past the kernel by packet sockets"),
            )
        ),
        *map(_of_stack, STACKS.values()),
    )
}
"""Every layer by its name."""


def nature_of(name: str) -> Nature:
    """Return what a configuration's layer is like, by its full name; of an unknown one, as of most."""
    kind = LAYERS.get(name.split("+")[0])
    return Nature() if kind is None else kind.nature


def refusal(configuration: Configuration, place: Place = HERE) -> Refusal | None:
    """Say why a configuration cannot run at a place, with the line that would change it; none if it may."""
    kind = configuration.kind
    if isinstance(place, Apart):
        return _apart(configuration, place)
    if kind.stack is not None:
        return kind.stack.refusal(configuration.options, place)
    if len(place.hosts) > 1 and kind.within_host:
        return Refusal("works within one host only", f"wiretwin measure --layers {configuration.name}")
    if len(place.hosts) == 1 and kind.between_hosts:
        line = f"wiretwin measure --layers {configuration.name} --hosts 2"
        return Refusal("leads from one host to another", line)
    return kind.need()


def _apart(configuration: Configuration, place: Apart) -> Refusal | None:
    """Say why a configuration cannot run between other machines: each of them is asked."""
    name = configuration.kind.name
    reasons = configuration.kind.nature.only_here
    reason = reasons.get("") or reasons.get(str(configuration.options.get("edition")))
    if reason is not None:
        return Refusal(reason, f"wiretwin measure --layers {name}")
    found = place.refusal(configuration.name)
    return None if found is None else Refusal(*found)


def parse_layer(text: str, key: str = "--layers") -> Configuration:
    """Read one configuration, ``socket/tcp+spin``.

    Raises
    ------
    InputError
        No such layer, a word it does not know, or two words that contradict each other.
    """
    name, *words = text.strip().split("+")
    kind = LAYERS.get(name)
    if kind is None:
        raise InputError(key=key, value=text, reason=_no_layer(name), allowed=", ".join(LAYERS))
    options = dict(kind.options)
    changed: dict[str, str] = {}
    loops, max_bytes = kind.loops, kind.max_bytes
    for word in words:
        for known in kind.words:
            match = re.fullmatch(known.pattern, word)
            if match is not None:
                break
        else:
            written = ", ".join(f"+{known.written}" for known in kind.words) or "none"
            raise InputError(
                key=key, value=text, reason=f"has no variant '+{word}'", allowed=f"for {name}: {written}"
            )
        for option, value in known.options(match).items():
            if option in changed:
                raise InputError(
                    key=key,
                    value=text,
                    reason=f"sets {option} twice, by +{changed[option]} and +{word}",
                    allowed="one of them",
                )
            options[option] = value
            changed[option] = word
        loops = loops & known.loops
        max_bytes = min(max_bytes, known.max_bytes or max_bytes)
    if kind.stack is not None:
        max_bytes = min(max_bytes, kind.stack.largest(options))
    return Configuration(kind, tuple(sorted(words)), options, loops, max_bytes)


def _no_layer(name: str) -> str:
    """Say that there is no such layer, and which may be meant: by a part of its name, or by its letters."""
    meant = [known for known in LAYERS if name in known.split("/")]
    meant = meant or get_close_matches(name, LAYERS, n=3)
    return f"is no layer (did you mean {' or '.join(meant)}?)" if meant else "is no layer"


def parse_layers(text: str, key: str = "--layers") -> list[Configuration]:
    """Read a comma-separated list of configurations.

    ``all`` stands for the default of every layer that does not have to be asked for by name.
    """
    parts = [part for part in (part.strip() for part in text.split(",")) if part]
    if not parts:
        raise InputError(key=key, value=text, reason="names no layer", allowed=", ".join(("all", *LAYERS)))
    found: dict[str, Configuration] = {}
    for part in parts:
        every = [name for name, kind in LAYERS.items() if not kind.opt_in]
        names = every if part == "all" else [part]
        for name in names:
            configuration = parse_layer(name, key)
            found[configuration.name] = configuration
    return list(found.values())
