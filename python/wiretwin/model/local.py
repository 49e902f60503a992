"""Networks of the 1990s in every detail, by name: hosts, adapters, cells and frames, under any stack.

``asx100:host=sparc2,adapter=series-200`` is what ``--network`` takes where a topology such as
``star:rate=10Gbit/s`` is the coarser kind. The hosts are those of the data files, not a twin's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.model import gigabit, profiles
from wiretwin.model.host import Host, host_names
from wiretwin.model.network import TESTBED, Network, network_table, resolved, words_of
from wiretwin.model.switches import crossbar, star
from wiretwin.model.values import find_sheet, sheet_names
from wiretwin.quantity import parse_rate, parse_size, parse_time

__all__ = ["MPI_LAYERS", "PRESETS", "LocalNetwork", "own_hosts", "preset_for", "read_network"]

MPI_LAYERS = ("mpi-mpich", "mpi-lam", "mpi", "mpi-mvich")
"""Message layers that carry mpi4py scripts."""

_OPTION = "--network"
_MOST_HOSTS = 64


@dataclass(frozen=True)
class Preset:
    """A network by name.

    Attributes
    ----------
    what
        It, in a line.
    lower
        What its stacks end in; on some ATM networks also in ``aal34``.
    defaults
        Its keys, and what each is if it is left out; none where that is nothing.
    hosts
        How many there may be.
    """

    what: str
    lower: str
    defaults: Mapping[str, str | None]
    hosts: tuple[int, int] = (2, _MOST_HOSTS)


_HOST = {"host": "sparc2", "first_use": "0ms"}
_SOCKETS = {"buffer": "32KiB", "nodelay": "true"}
_ATM = {
    **_HOST, "adapter": "series-200", "link": "taxi100", "cell_loss": "0", "load": None, **_SOCKETS
}  # fmt: skip

PRESETS: Mapping[str, Preset] = {
    "ethernet10": Preset(
        "Ethernet of 10 Mbit/s on one cable", "ethernet", {**_HOST, **_SOCKETS, "load": None}
    ),
    "fddi": Preset("FDDI, a ring of 100 Mbit/s", "fddi", {**_HOST, **_SOCKETS, "load": None}),
    "atm": Preset("two hosts back to back over ATM", "aal5", _ATM, (2, 2)),
    "asx100": Preset("ATM hosts at an ASX-100", "aal5", {**_ATM, "reserve": None}),
    "an2": Preset(
        "ATM hosts at an AN2 switch, with credits or without",
        "aal5",
        {"host": "alpha-170", "first_use": "0ms", "credits": "loop", **_SOCKETS},
        (2, 16),
    ),
    "gige": Preset(
        "Gigabit Ethernet of 1999: two Pentium III back to back, more of them at a switch",
        "gige",
        {"nic": "gnic-ii", "mtu": "1500", "duplex": "full", "switch_over": None},
    ),
}
"""The networks, by name."""


def _grouped(allowed: str) -> str:
    """Return a list of stacks by what they end in, and the reason behind it as it is."""
    names, bracket, why = allowed.partition(" (")
    ends: dict[str, list[str]] = {}
    for name in names.split(", "):
        above, _, end = name.rpartition("/")
        ends.setdefault(above, []).append(end)
    groups: dict[str, list[str]] = {}
    for above, below in ends.items():
        groups.setdefault(" or ".join(below), []).append(above)
    text = "; ".join(f"{', '.join(above)} over {below}" for below, above in groups.items())
    return f"{text}{bracket}{why}"


def own_hosts(stack: str, network: str | None = None) -> LocalNetwork:
    """Return the network, or what a stack ends in where there is none, under that stack, with two hosts.

    Raises
    ------
    InputError
        The network has no hosts of its own, or cannot be.
    """
    found = read_network(network or preset_for(stack), stack=stack)
    if not isinstance(found, LocalNetwork):
        allowed = f"{', '.join(PRESETS)}; a topology such as star:rate=10Gbit/s joins hosts of a --twin"
        raise InputError(key="--network", value=network, allowed=allowed)
    return found


def preset_for(stack: str) -> str:
    """Return the network that a stack is on where none is named.

    Raises
    ------
    InputError
        What the stack ends in is no network here.
    """
    lower = stack.split("/")[-1]
    found = {"aal5": "asx100", "aal34": "asx100"} | {
        one.lower: name for name, one in PRESETS.items() if one.lower != "aal5"
    }
    if stack.startswith("pvm-mapped"):
        return "an2"
    if lower not in found:
        raise InputError(key="STACK", value=stack, allowed=f"one that ends in {', '.join(found)}")
    return found[lower]


@dataclass(frozen=True)
class LocalNetwork:
    """One of these networks, of so many hosts, under a stack.

    Examples
    --------
    >>> from wiretwin.model.local import LocalNetwork
    >>> network = LocalNetwork.parse("asx100:host=sparc2", stack="pvm-advise/tcp/aal5", hosts=4)
    >>> print(network)
    asx100:host=sparc2,hosts=4 under pvm-advise/tcp/aal5

    Attributes
    ----------
    preset
        Its name.
    stack
        The path from program to link, such as ``mpi-mpich/tcp/aal5``.
    hosts
        How many; a rank on each.
    parameters
        The keys that were given, quantities as texts with their units.
    load
        Stations that only generate.
    host
        What its hosts cost, where that is not on file by name.
    """

    preset: str
    stack: str
    hosts: int
    parameters: Mapping[str, str]
    load: tuple[profiles.Load, ...] = ()
    host: Host | None = None

    @classmethod
    def parse(cls, text: str, *, stack: str | None = None, hosts: int = 2) -> LocalNetwork:
        """Read a network of the form ``NAME:key=value,key=value``; for the rest see `of`."""
        name, _, words = text.partition(":")
        return cls.of(words_of(words, {"preset": name}), stack=stack, hosts=hosts)

    @classmethod
    def of(cls, table: Mapping[str, Any], *, stack: str | None = None, hosts: int = 2) -> LocalNetwork:
        """Read a network as a table has it: `preset`, and that one's keys; see `PRESETS`.

        Parameters
        ----------
        table
            Values are texts, or whole numbers, shares and truth values as TOML has them; `load` may be a list
            of tables with the attributes of `wiretwin.model.profiles.Load`, and `host` a `Host`, or the file
            of one (``.toml``).
        stack
            The stack; MPICH's of the time where there is none.
        hosts
            How many hosts, unless the table says.

        Raises
        ------
        InputError
            There is no such network, or a key, a value or the stack is none of it; what is allowed is named.
        """
        given = dict(table)
        name = str(given.pop("preset"))
        preset = PRESETS.get(name)
        if preset is None:
            raise InputError(key=_OPTION, value=name, allowed=", ".join(PRESETS))
        known = [*preset.defaults, "hosts", "fidelity"]
        host: Host | None = None
        if "host" in known and isinstance(given.get("host"), Host):
            host = given["host"]
        elif "host" in known and str(given.get("host", "")).endswith(".toml"):
            host = Host.read(given["host"])
        if host is not None:
            given["host"] = host.name
        load: tuple[profiles.Load, ...] = ()
        if "load" in known and isinstance(given.get("load"), (list, tuple)):
            load = tuple(_load(number, one) for number, one in enumerate(given.pop("load")))
        for key, value in given.items():
            if key not in known:
                raise InputError(
                    key=f"{_OPTION} {key}", value=value, reason="is no key of it", allowed=", ".join(known)
                )
            given[key] = str(value).lower() if isinstance(value, bool) else str(value)
        unit = "cell" if preset.lower == "aal5" else "packet"
        if (fidelity := given.pop("fidelity", unit)) != unit:
            raise InputError(key=f"{_OPTION} fidelity", value=fidelity, allowed=f"{unit}, for {name}")
        least, most = preset.hosts
        count = given.pop("hosts", str(hosts))
        if not count.isdecimal() or not least <= int(count) <= most:
            raise InputError(key=f"{_OPTION} hosts", value=count, allowed=f"{least} to {most}, for {name}")
        made = cls(name, stack or f"{MPI_LAYERS[0]}/tcp/{preset.lower}", int(count), given, load, host)
        lowers = ("aal5", "aal34") if "adapter" in preset.defaults else (preset.lower,)
        if made.stack.split("/")[-1] not in lowers:
            ends = " or ".join(f"/{lower}" for lower in lowers)
            raise InputError(key="--stack", value=made.stack, allowed=f"one that ends in {ends}, on {name}")
        made.check()
        return made

    def __str__(self) -> str:
        words = ",".join(f"{key}={value}" for key, value in {**self.parameters, "hosts": self.hosts}.items())
        return f"{self.preset}:{words} under {self.stack}"

    @property
    def carries_mpi(self) -> bool:
        """Whether its message layer is one of MPI: scripts need one."""
        return self.stack.split("/")[0] in MPI_LAYERS

    @property
    def plan(self) -> dict[str, Any]:
        """The network as the core reads it."""
        plan: dict[str, Any] = json.loads(self.settings.lan_json())
        return plan

    def check(self) -> None:
        """Reject a network that cannot be.

        Raises
        ------
        InputError
            A value is none of its key, or the stack cannot be.
        """
        try:
            _core.check_lan(self.settings.lan_json())
        except ValueError as error:
            key, value, allowed = error.args
            if key == "stack":
                raise InputError(key="--stack", value=self.stack, allowed=_grouped(allowed)) from None
            if key.startswith("reservations"):
                key, value = "reserve", self._value("reserve")
            raise InputError(key=f"{_OPTION} {key}", value=value, allowed=allowed) from None
        idle = [key for key in _SOCKETS if key in self.parameters]
        if idle and self.stack.split("/")[0] in profiles.CIRCUITS:
            allowed = "nothing, on circuits without sockets"
            raise InputError(key=f"{_OPTION} {idle[0]}", value=self.parameters[idle[0]], allowed=allowed)

    @property
    def settings(self) -> profiles.Network | gigabit.Setting:
        """What it is made of, with the values of the data files to come."""
        return self._gigabit() if self.preset == "gige" else self._profile()

    def _value(self, key: str) -> str | None:
        return self.parameters.get(key, PRESETS[self.preset].defaults[key])

    def _text(self, key: str) -> str:
        return self._value(key) or ""

    def _profile(self) -> profiles.Network:
        host = self._choice("host", host_names()) if self.host is None else self.host.base
        frames = PRESETS[self.preset].lower != "aal5"
        network = profiles.Network(
            self.stack,
            host,
            hosts=self.hosts,
            first_use_ms=1e3 * parse_time(self._text("first_use"), f"{_OPTION} first_use", most_s=60.0),
            buffer_kib=self._kib("buffer"),
            nodelay=self._choice("nodelay", ("true", "false")) == "true",
            load=self.load,
            overrides={} if self.host is None else self.host.overrides,
        )
        if share := "load" in self.parameters and self._share("load"):
            network = replace(network, load=(profiles.Load(share),))
        if frames:
            return network
        if self.preset == "an2":
            return replace(network, adapter="otto", switch="an2", switches=self._an2())
        return replace(
            network,
            adapter=self._named("adapter", "adapters", but=("otto",)),
            switch="asx100" if self.preset == "asx100" else None,
            link=self._named("link", "networks", kind="link"),
            cell_loss=self._share("cell_loss") or None,
            reserve_Mbit_s=self._reserve() if self.preset == "asx100" else None,
        )

    def _an2(self) -> dict[str, Any]:
        text = self._text("credits")
        if not (text in ("loop", "none") or (text.isdecimal() and 1 <= int(text) <= 1 << 20)):
            raise InputError(
                key=f"{_OPTION} credits",
                value=text,
                allowed="loop (what a line's round trip needs), none, or 1 to 1048576 cells of a circuit",
            )
        count = None if text == "none" else text if text == "loop" else int(text)
        sar_ns = find_sheet("adapters", "otto", "adapter")["sar_ns"]
        return star(self.hosts, sar_ns, crossbar("an2"), count)

    def _gigabit(self) -> gigabit.Setting:
        switch_over = self._value("switch_over")
        mtu = self._text("mtu")
        if not mtu.isdecimal():
            raise InputError(key=f"{_OPTION} mtu", value=mtu, allowed=f"576 to {gigabit.MOST_MTU}")
        length = None if switch_over is None else parse_size(switch_over, f"{_OPTION} switch_over")
        try:
            setting = gigabit.of_stack(self.stack, self._text("nic"), int(mtu), self._text("duplex"), length)
        except InputError as error:
            key = str(error.key).removeprefix("--").replace("-", "_")
            named = "--stack" if key == "STACK" else f"{_OPTION} {key}"
            raise InputError(key=named, value=error.value, allowed=error.allowed) from None
        return replace(setting, hosts=self.hosts)

    def _named(self, key: str, folder: str, *, kind: str | None = None, but: tuple[str, ...] = ()) -> str:
        known = [name for name in sheet_names(folder) if name not in but]
        if kind is not None:
            known = [name for name in known if find_sheet(folder, name, key).kind == kind]
        return self._choice(key, known)

    def _choice(self, key: str, allowed: tuple[str, ...] | list[str]) -> str:
        value = self._text(key)
        if value not in allowed:
            raise InputError(key=f"{_OPTION} {key}", value=value, allowed=", ".join(allowed))
        return value

    def _kib(self, key: str) -> int:
        size = parse_size(self._text(key), f"{_OPTION} {key}", least=1024)
        if size % 1024:
            raise InputError(key=f"{_OPTION} {key}", value=self._text(key), allowed="a whole number of KiB")
        return size // 1024

    def _share(self, key: str) -> float:
        text = self._value(key)
        if text is None:
            return 0.0
        try:
            share = float(text)
        except ValueError:
            share = -1.0
        if not 0.0 <= share <= 1.0:
            raise InputError(key=f"{_OPTION} {key}", value=text, allowed="a share from 0 to 1")
        return share

    def _reserve(self) -> float | None:
        text = self._value("reserve")
        return None if text is None else parse_rate(text, f"{_OPTION} reserve") / 1e6


def _load(number: int, table: object) -> profiles.Load:
    """Return a station that only generates, from its table; its values are checked by the core."""
    known = {one.name for one in fields(profiles.Load)}
    if not isinstance(table, Mapping) or not {"share"} <= set(table) <= known:
        key = f"{_OPTION} load[{number}]"
        raise InputError(key=key, value=table, allowed=f"share, and of the others {', '.join(sorted(known))}")
    return profiles.Load(**table)


def read_network(
    given: str | Path | Mapping[str, Any] | Network | LocalNetwork,
    *,
    stack: str | None = None,
    hosts: int = 2,
) -> Network | LocalNetwork:
    """Read what joins hosts, however it is given: what every ``--network`` means.

    Parameters
    ----------
    given
        A text, ``NAME:key=value,key=value``, where NAME is a topology, one of `PRESETS`, or a file: one in
        TOML with a table ``[network]``, a ``topology.conf`` or ``topology.yaml`` of Slurm's, or what
        ibnetdiscover printed, as a ``.topo`` or ``.txt``; such a
        table; or a network.
    stack
        That of a network whose hosts are its own.
    hosts
        How many hosts there are if the network takes a number and was given none.

    Raises
    ------
    InputError
        The file cannot be read, or the network cannot be; key, value and what is allowed are named.
    """
    if isinstance(given, (Network, LocalNetwork)):
        return given
    table = resolved(network_table(given, PRESETS) if isinstance(given, (str, Path)) else given)
    if "preset" in table:
        return LocalNetwork.of(table, stack=stack, hosts=hosts)
    try:
        return Network.of_table(table, hosts=hosts)
    except InputError as error:
        # A topology that is known can be refused for what goes with it.
        if error.key != f"{_OPTION} topology" or not str(error.allowed).startswith("back-to-back"):
            raise
        allowed = f"a preset, {', '.join(PRESETS)}; or a topology, {error.allowed}, {TESTBED}"
        raise InputError(key=_OPTION, value=error.value, allowed=allowed, reason=error.reason) from None
