"""What a testbed is to be: its hosts, the link between them, what they see of the machine."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError
from wiretwin.quantity import format_rate, parse_rate, parse_time
from wiretwin.testbed.outputs import Outputs, parse_outputs

__all__ = ["Host", "Link", "Plan", "parse_link"]

MOST_HOSTS = 64
PRIVATE = ("/tmp", "/run", "/dev/shm")
"""Folders that every host has for itself; they are empty at first."""
INTERFACE = "eth0"
SUBNET = "10.20.0"
"""The first three bytes of the hosts' addresses, which exist in the testbed's namespaces only."""
PREFIX_LENGTH = 24
MTUS = (576, 9000)
"""Least (RFC 791) and largest packet that a link may be asked to carry, bytes."""
RATES = (10_000, 10_000_000_000)
"""Least and largest rate of a link, bit/s."""
RULES = ("loss", "duplicate", "reorder", "corrupt")
OUTPUTS = ("strict_priority", "weights", "queue", "background", "sources", "burst")
"""Options of a wire about the outputs of its switch."""
LINKS = "veth, shared, wire"
TRUNK = "trunk"
"""What joins two switches."""
_TOKEN_BUCKET = (
    "a token bucket is no wire: below its burst nothing takes time, and each direction has a bucket of its "
    "own, so round trips come out wrong"
)


@dataclass(frozen=True, slots=True)
class Host:
    """One host: its place in the list is its number less one."""

    number: int

    @property
    def name(self) -> str:
        """Its name: ``h1`` is the first."""
        return f"h{self.number}"

    @property
    def address(self) -> str:
        """Its IP address."""
        return f"{SUBNET}.{self.number}"

    @property
    def mac(self) -> str:
        """Its Ethernet address, of the locally administered kind."""
        return f"02:00:0a:14:00:{self.number:02x}"


@dataclass(frozen=True, slots=True)
class Link:
    """What joins the hosts.

    Attributes
    ----------
    kind
        ``veth``: virtual Ethernet to a bridge, as fast as it goes. ``shared``: the same, all hosts
        sharing one rate fairly. ``wire``: a user-space wire that holds every frame for the time it takes.
    mtu
        Largest packet, bytes.
    offload
        Segmentation offload on ``veth``: the kernel hands over up to 64 KiB at a time.
    rate_bit_s
        Of ``shared`` and ``wire``.
    delay_ns
        Of ``wire``: on the way, besides the time on the wire.
    medium
        Of ``wire``: ``duplex``, a wire for each host and direction, or ``shared``, one for all.
    rules
        Of ``wire``: the share of frames lost, duplicated, reordered, corrupted.
    only
        Of ``wire``: the protocol (``tcp``, ``udp``, ``icmp``) whose packets its rules act on, if not on all.
    held
        Of ``wire``: for how many nanoseconds it holds packets of a class (DSCP), as a congested queue does.
    seed
        Of ``wire``: of the random choices behind the rules.
    outputs
        Of ``wire``: queues by class, their room and background load at each output of its switch.
    switches
        Of ``veth``: switches in a row, each with as many hosts as the next, in order of their names.
    slow_bit_s
        Of ``veth``: by the name of a host, or `TRUNK` for the cables between switches, a lower rate in both
        directions, by a token bucket: long messages take that rate, short ones pass at once.
    """

    kind: str = "veth"
    mtu: int = 1500
    offload: bool = True
    rate_bit_s: int | None = None
    delay_ns: int = 0
    medium: str = "duplex"
    rules: Mapping[str, float] = field(default_factory=dict)
    seed: int = 1
    held: Mapping[str, int] = field(default_factory=dict)
    only: str | None = None
    switches: int = 1
    slow_bit_s: Mapping[str, int] = field(default_factory=dict)
    outputs: Outputs = field(default_factory=Outputs)

    def describe(self) -> dict[str, Any]:
        """Return what applies to its kind, for a manifest; keys end in their unit."""
        words: dict[str, Any] = {"kind": self.kind, "mtu_bytes": self.mtu}
        if self.kind != "wire":
            words["offload"] = self.offload
        if self.switches > 1:
            words["switches"] = self.switches
        if self.slow_bit_s:
            words["slow_bit_s"] = dict(self.slow_bit_s)
        if self.rate_bit_s is not None:
            words["rate_bit_s"] = self.rate_bit_s
        if self.kind == "wire":
            words |= {"delay_ns": self.delay_ns, "medium": self.medium}
            words |= {"rules": dict(self.rules), "seed": self.seed}
            if self.only is not None:
                words["only"] = self.only
            if self.held:
                words["held_ns"] = dict(self.held)
            words |= self.outputs.describe()
        return words

    def wire_rules(self) -> list[dict[str, Any]]:
        """Return its rules as the wire reads them; a reordered frame lets one other pass, or waits 10 ms."""
        actions = {"loss": "drop"}
        narrowed = {} if self.only is None else {"protocol": self.only}
        return [
            {actions.get(name, name): share} | ({"frames": 1} if name == "reorder" else {}) | narrowed
            for name, share in self.rules.items()
        ] + [{"reorder": 1.0, "hold_ns": time, "dscp": int(dscp)} for dscp, time in self.held.items()]

    def wire(self) -> dict[str, Any]:
        """Return the wire as its process and the simulated world read it, without its ports."""
        spec: dict[str, Any] = {
            "medium": self.medium,
            "rate_bit_s": self.rate_bit_s,
            "delay_ns": self.delay_ns,
            "mtu": self.mtu,
            "rules": self.wire_rules(),
            "seed": self.seed,
        }
        switch = self.outputs.switch()
        return spec if switch is None else spec | {"switch": switch}

    @property
    def words(self) -> str:
        """The link in a few words, for people."""
        parts = [self.kind]
        if self.rate_bit_s is not None:
            parts.append(format_rate(self.rate_bit_s))
        if self.kind == "wire":
            parts.append(self.medium)
            if self.delay_ns:
                parts.append(f"delay {self.delay_ns / 1000:g} us")
            parts += [f"{name} {share:.4g}" for name, share in self.rules.items()]
            parts += [] if self.only is None else [f"of {self.only} only"]
            parts += [f"DSCP {dscp} held {time / 1e6:g} ms" for dscp, time in self.held.items()]
            parts += self.outputs.words
        parts += [] if self.switches == 1 else [f"{self.switches} switches"]
        parts += [f"{name} slowed to {format_rate(rate)}" for name, rate in self.slow_bit_s.items()]
        parts.append(f"MTU {self.mtu}")
        if self.kind != "wire" and not self.offload:
            parts.append("no offload")
        return ", ".join(parts)


def parse_link(
    kind: str = "veth",
    *,
    rate: str | None = None,
    delay: str | None = None,
    mtu: int = 1500,
    offload: bool = True,
    medium: str | None = None,
    rules: Mapping[str, str | None] | None = None,
    seed: int = 1,
    hold: str | None = None,
    only: str | None = None,
    switches: int = 1,
    slow: str | None = None,
    outputs: Mapping[str, str | None] | None = None,
) -> Link:
    """Read a link from its options as written on the command line.

    Raises
    ------
    InputError
        A kind that does not exist, an option that it does not have, a value out of range.
    """
    if kind in ("tbf", "htb", "netem"):
        raise InputError(
            key="--link", value=kind, reason=_TOKEN_BUCKET, allowed=f"{LINKS}; wire holds every frame"
        )
    if kind not in ("veth", "shared", "wire"):
        raise InputError(key="--link", value=kind, allowed=LINKS)
    if not MTUS[0] <= mtu <= MTUS[1]:
        raise InputError(key="--mtu", value=mtu, allowed=f"{MTUS[0]} to {MTUS[1]} bytes")
    if kind != "veth":
        for option, value, usual in (("--switches", switches, 1), ("--slow", slow, None)):
            if value != usual:
                raise InputError(
                    key=option, value=value, reason=f"is not for --link {kind}", allowed="with --link veth"
                )
    if not 1 <= switches <= MOST_HOSTS:
        raise InputError(key="--switches", value=switches, allowed=f"1 to {MOST_HOSTS}")
    given = {name: share for name, share in (rules or {}).items() if share is not None}
    asked = {name: word for name, word in (outputs or {}).items() if word is not None}
    if kind != "wire":
        unknown = {"--delay": delay, "--medium": medium, "--hold": hold, "--only": only} | {
            f"--{name.replace('_', '-')}": word for name, word in (given | asked).items()
        }
        for option, value in unknown.items():
            if value is not None:
                raise InputError(
                    key=option, value=value, reason=f"is not for --link {kind}", allowed="with --link wire"
                )
    elif not offload:
        raise InputError(
            key="--no-offload", reason="has nothing to switch off on --link wire", allowed="with --link veth"
        )
    if kind == "veth":
        if rate is not None:
            raise InputError(
                key="--rate", value=rate, reason=f"on veth would be a token bucket, and {_TOKEN_BUCKET}",
                allowed="with --link wire, or with --link shared for programs",
            )  # fmt: skip
        return Link(mtu=mtu, offload=offload, switches=switches, slow_bit_s=_slowed(slow, switches))
    if rate is None:
        raise InputError(key="--rate", reason=f"is needed with --link {kind}", allowed="such as 10Mbit")
    rate_bit_s = parse_rate(rate, least_bit_s=RATES[0], most_bit_s=RATES[1])
    if kind == "shared":
        return Link("shared", mtu=mtu, offload=False, rate_bit_s=rate_bit_s)
    if only not in (None, "tcp", "udp", "icmp"):
        raise InputError(key="--only", value=only, allowed="tcp, udp, icmp")
    if medium not in (None, "duplex", "shared"):
        raise InputError(key="--medium", value=medium, allowed="duplex, shared")
    if medium == "shared" and asked:
        option = f"--{next(iter(asked)).replace('_', '-')}"
        raise InputError(
            key=option, reason="is of the outputs of a switch", allowed="without --medium shared"
        )
    return Link(
        "wire",
        mtu=mtu,
        offload=False,
        rate_bit_s=rate_bit_s,
        delay_ns=round(1e9 * parse_time(delay, "--delay", most_s=1.0)) if delay is not None else 0,
        medium=medium or "duplex",
        rules={name: _share(word, f"--{name}") for name, word in given.items()},
        seed=seed,
        held=_held(hold) if hold is not None else {},
        only=only,
        outputs=parse_outputs(**asked),
    )


def _slowed(text: str | None, switches: int) -> dict[str, int]:
    """Read what is slowed, and to what rate: ``h3=100Mbit,trunk=1Gbit``."""
    slowed: dict[str, int] = {}
    for part in text.split(",") if text is not None else ():
        name, equals, rate = part.strip().partition("=")
        known = re.fullmatch(r"h[1-9]\d?", name) or (name == TRUNK and switches > 1)
        if not equals or not known or name in slowed:
            allowed = "hosts and rates such as h3=100Mbit,h4=1Gbit, and with --switches trunk; each once"
            raise InputError(key="--slow", value=text, allowed=allowed)
        slowed[name] = parse_rate(rate, "--slow", least_bit_s=RATES[0], most_bit_s=RATES[1])
    return slowed


def _held(text: str) -> dict[str, int]:
    """Read what is held and how long: ``8=30ms``, with commas between several."""
    held: dict[str, int] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*=\s*(.+)", part)
        if match is None or int(match[1]) > 63 or match[1] in held:
            allowed = "a DSCP from 0 to 63 and a time, such as 8=30ms; each class once"
            raise InputError(key="--hold", value=text, allowed=allowed)
        held[match[1]] = round(1e9 * parse_time(match[2], "--hold", most_s=1.0))
    return held


def _share(text: str, key: str) -> float:
    """Read a share of frames; nothing to 100 %, as fine as it is written."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip())
    share = float(Decimal(match[1]) / 100) if match else -1.0
    if not 0.0 <= share <= 1.0:
        raise InputError(key=key, value=text, allowed="a percentage from 0% to 100%, such as 0.1%")
    return share


@dataclass(frozen=True, slots=True)
class Plan:
    """A testbed to be made.

    Attributes
    ----------
    count
        How many hosts.
    link
        What joins them.
    visible
        Folders of the machine below `PRIVATE` that the hosts see nevertheless.
    """

    count: int
    link: Link
    visible: Sequence[str] = ()

    @property
    def hosts(self) -> list[Host]:
        """The hosts, from ``h1``."""
        return [Host(number) for number in range(1, self.count + 1)]

    def cores(self, machine: Sequence[int]) -> list[int] | None:
        """Return the core of each host, where hosts on a wire fill the cores of the machine; else nothing.

        The wire's work for a message then never falls on the core of the host that sends it
        (`taken_from`), as if each host had its own adapter.
        """
        if self.link.kind != "wire" or not 1 < len(machine) <= self.count:
            return None
        return [machine[number % len(machine)] for number in range(self.count)]

    def taken_from(self, machine: Sequence[int]) -> list[int] | None:
        """Return the core from which the wire takes what each host sends, where hosts have cores.

        Never the sender's; with two cores that of every receiver which does not share the sender's.
        """
        if self.cores(machine) is None:
            return None
        return [machine[(number + 1) % len(machine)] for number in range(self.count)]

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return {"hosts": self.count, "link": asdict(self.link), "visible": list(self.visible)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Plan:
        """Read back what `to_json` wrote."""
        link = {**value["link"], "outputs": Outputs(**value["link"]["outputs"])}
        return cls(int(value["hosts"]), Link(**link), list(value["visible"]))


def folder_of(program: Path, bed: str | None = None, visible: Sequence[str] = ()) -> list[Path]:
    """Return the folder of a program that hosts are to share, if they would not see it otherwise.

    Parameters
    ----------
    program
        The program, as the user has named it.
    bed, visible
        The name of a testbed that stands already, and the folders that its hosts see.

    Raises
    ------
    InputError
        The hosts cannot see the program.
    """
    folder = Path(os.path.abspath(program)).parent
    private = next((one for one in PRIVATE if folder.is_relative_to(one)), None)
    if private is None or not folder.is_dir():
        return []
    own = f"is not seen by the hosts: each has a {private} of its own"
    if bed is not None and not any(folder.is_relative_to(one) for one in visible):
        allowed = f"a testbed that was brought up with --share {folder}"
        raise InputError(key=f"testbed {bed!r}", value=str(program), reason=own, allowed=allowed)
    if str(folder) == private:
        raise InputError(value=str(program), reason=own, allowed=f"a program in a folder inside {private}")
    return [folder]


def make_plan(hosts: int, link: Link, share: Sequence[str | Path] = ()) -> Plan:
    """Check the number of hosts, and find out which folders they must see.

    The folders of the interpreter and of wiretwin, the working directory and `share` are visible on every
    host; this matters for those that lie in a folder which every host has for itself.

    Raises
    ------
    InputError
        Too many hosts or too few; a folder that is not there or may not be shared.
    """
    if not 1 <= hosts <= MOST_HOSTS:
        raise InputError(key="--hosts", value=hosts, allowed=f"1 to {MOST_HOSTS}")
    if link.switches > hosts:
        raise InputError(key="--switches", value=link.switches, allowed=f"1 to {hosts}, the number of hosts")
    for name in link.slow_bit_s:
        if name != TRUNK and int(name[1:]) > hosts:
            raise InputError(key="--slow", value=name, allowed=f"h1 to h{hosts}, trunk")
    for name in link.outputs.background:
        host = name.rpartition(":")[0]
        if host and int(host[1:]) > hosts:
            raise InputError(key="--background", value=host, allowed=f"h1 to h{hosts}")
    here = Path(__file__).resolve().parents[2]
    wanted = [Path(sys.prefix), Path(sys.base_prefix), here]
    with contextlib.suppress(OSError):
        wanted.append(Path.cwd())
    given = [Path(os.path.abspath(folder)) for folder in share]
    for folder in given:
        if not folder.is_dir():
            raise InputError(key="--share", value=str(folder), reason="is no folder")
        if any(Path(private).is_relative_to(folder) for private in PRIVATE):
            raise InputError(
                key="--share",
                value=str(folder),
                reason=f"holds what every host has for itself ({', '.join(PRIVATE)})",
                allowed="a folder inside it",
            )
    visible = {
        str(folder)
        for folder in (*wanted, *given)
        if any(folder.is_relative_to(private) and str(folder) != private for private in PRIVATE)
    }
    return Plan(hosts, link, sorted(visible))
