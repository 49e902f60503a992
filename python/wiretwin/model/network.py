"""A network between hosts: what ``--network`` takes, as an object.

A network is written as a text (``fat-tree:hosts=64,rate=100Gbit/s``), as the table ``[network]`` of a TOML
file, as a topology of Slurm's with a rate beside it, as ibnetdiscover prints a subnet, or made here. Wherever
it comes from, it is read and checked by the compiled core, before anything runs.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.given import read_text
from wiretwin.model.infiniband import is_of_ibnetdiscover, read_subnet

__all__ = ["FROM_1_TO_2", "TESTBED", "VERSION", "Network", "network_table", "resolved", "words_of"]

_OPTION = "--network"
_LARGEST_FILE = 16 << 20
_ENDINGS = (".toml", ".conf", ".yaml", ".topo", ".txt")
"""How the names of files end that have a network: TOML, Slurm's two, and ibnetdiscover's output."""
#: The hosts of a testbed: a cable between two, a switch between more, and the cores of one machine for all.
TESTBED = "testbed"
#: The transport of layers that have this word in their name, such as ``mpi/openmpi+direct``.
DIRECT = "direct"
#: The version of scenarios, and how one of version 1 is changed.
VERSION: Final = 2
FROM_1_TO_2 = (
    f"{VERSION}. From 1 to 2: [network] has preset in place of switch, and what was its stack "
    "stands in [echo] or [[program]]; [twin] is twin = FILE, its layer a stack"
)


def _given(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


@dataclass(frozen=True)
class Network:
    """A checked network.

    Examples
    --------
    >>> import wiretwin as wt
    >>> wt.Network("fat-tree", hosts=64, rate="100 Gbit/s").switches
    16
    >>> wt.Network.parse("star:hosts=4,rate=1Gbit/s").hosts
    4

    Attributes
    ----------
    topology
        How nodes are joined: ``back-to-back``, ``star``, ``shared-cable``, ``ring``, ``chain``, ``dumbbell``,
        ``parking-lot``, ``tree``, ``fat-tree`` or ``listed``; or ``testbed``, hosts that share the cores of
        one machine.
    parameters
        The parameters of the topology, quantities as texts with their units.
    hosts, switches, lines
        How many there are; a line counts once for each direction.
    """

    topology: str
    parameters: dict[str, Any]
    hosts: int = field(init=False)
    switches: int = field(init=False)
    lines: int = field(init=False)
    plan: dict[str, Any] = field(init=False, repr=False)
    """The network as the core reads it."""

    def __init__(self, topology: str, **parameters: Any) -> None:
        self._take({"topology": topology, **parameters}, None)

    def _take(self, table: Mapping[str, Any], hosts: int | None) -> None:
        topology = table.get("topology")
        found = _read(_of_testbed(table, hosts) if topology == TESTBED else table, hosts)
        plan = json.loads(found["plan_json"], object_hook=_given)
        rest = {key: value for key, value in plan.items() if key != "topology"}
        for name, value in (
            ("topology", topology),
            ("parameters", rest),
            ("plan", plan),
            ("hosts", found["hosts"]),
            ("switches", found["switches"]),
            ("lines", found["lines"]),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def parse(cls, text: str, *, hosts: int | None = None) -> Network:
        """Read a network of the form ``NAME:key=value,key=value``, NAME being a topology or a file.

        For the files see `wiretwin.read_network`, and for the rest `of_table`.
        """
        return cls.of_table(resolved(network_table(text)), hosts=hosts)

    @classmethod
    def of_table(cls, table: Mapping[str, Any], *, hosts: int | None = None) -> Network:
        """Read a network as a table has it: `topology` and that one's parameters.

        Parameters
        ----------
        hosts
            How many hosts a topology has that takes a number and was given none.

        Raises
        ------
        InputError
            The network cannot be; key, value and what is allowed are named.
        """
        made = object.__new__(cls)
        made._take(table, hosts)
        return made

    @property
    def shares_cores(self) -> bool:
        """Whether the ranks of all hosts run on the cores of one machine."""
        return self.topology == TESTBED

    def under(self, layer: str) -> dict[str, Any]:
        """Return the plan under a layer: one of the direct transport is carried by that, packet by packet.

        A `transport` that the network names stands. Message by message nothing is carried by a transport:
        there the direct one is its costs.

        Raises
        ------
        InputError
            The layer's transport does not go over cells.
        """
        is_direct = DIRECT in re.split("[/+]", layer) and "transport" not in self.plan
        if not is_direct or self.plan.get("fidelity", "message") == "message":
            return self.plan
        return Network.of_table({**self.plan, "transport": DIRECT}).plan

    def __str__(self) -> str:
        words = ",".join(
            f"{key}={str(value).replace(' ', '')}"
            for key, value in self.parameters.items()
            if not isinstance(value, list)
        )
        return f"{self.topology}:{words}" if words else self.topology


def _of_testbed(table: Mapping[str, Any], hosts: int | None) -> dict[str, Any]:
    """Return the topology of a testbed's wire: see `docs/models/wire.md`."""
    rest = {key: value for key, value in table.items() if key != "topology"}
    if rest.get("hosts", hosts or 2) != 2:
        return {"topology": "star", **rest}
    rest.pop("hosts", None)
    return {"topology": "back-to-back", **rest}


def _read(table: Mapping[str, Any], hosts: int | None) -> _core.ReadNetwork:
    try:
        return _core.read_network(json.dumps(dict(table), default=str), hosts=hosts)
    except ValueError as error:
        key, found, allowed = error.args
        if found == "nothing":
            raise InputError(key=f"{_OPTION} {key}", reason="is needed", allowed=allowed) from None
        try:
            value = json.loads(found)
        except ValueError:
            value = found
        raise InputError(key=f"{_OPTION} {key}".rstrip(), value=value, allowed=allowed) from None


def network_table(text: str | Path, presets: Collection[str] = ()) -> dict[str, Any]:
    """Return the table of a network's text: `topology`, `preset` or `file`, and the keys after it."""
    name, _, words = str(text).partition(":")
    kind = "file" if name.endswith(_ENDINGS) else "preset" if name in presets else "topology"
    return words_of(words, {kind: name})


def resolved(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with what is in the `file` that it names, if it names one; see `table_in`."""
    rest = dict(table)
    return table_in(Path(str(rest.pop("file"))), rest) if "file" in rest else rest


def words_of(words: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with what a text says besides, ``key=value,key=value``: keys that it does not have.

    Raises
    ------
    InputError
        A word is not of that form, or its key is there already.
    """
    table = dict(table)
    for word in filter(None, words.split(",")):
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(key=_OPTION, value=word, allowed="key=value, such as rate=100Gbit/s")
        if key in table:
            raise InputError(key=f"{_OPTION} {key}", value=value, reason="is given twice", allowed="once")
        table[key] = int(value) if value.isdecimal() else value
    return table


def table_in(path: Path, besides: Mapping[str, Any]) -> dict[str, Any]:
    """Return the network's table of a file, with the keys given besides.

    The file is TOML, a topology of Slurm's (``.conf``, ``.yaml``), or what ibnetdiscover printed (``.topo``,
    ``.txt``, or any name).

    Raises
    ------
    InputError
        The file cannot be read or has none, or a key is in both.
    """
    text = read_text(path, most=_LARGEST_FILE)
    if path.suffix in (".conf", ".yaml"):
        from wiretwin.model.slurm import read_topology

        table = read_topology(path, text)
    elif path.suffix in (".topo", ".txt") or is_of_ibnetdiscover(text):
        table = read_subnet(path, text)
    else:
        try:
            document = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(file=path, reason=f"not TOML: {error}") from error
        if document.get("format") == "wiretwin-scenario" and document.get("version", VERSION) != VERSION:
            raise InputError(path, "version", document["version"], FROM_1_TO_2, "is not known here")
        found = document.get("network")
        if not isinstance(found, dict) or not {"topology", "preset"} & set(found):
            allowed = "a topology's name, or a preset's as network.preset"
            raise InputError(file=path, key="network.topology", reason="is needed", allowed=allowed)
        table = found
    for key, value in besides.items():
        if key in table:
            raise InputError(key=f"{_OPTION} {key}", value=value, reason="is given twice", allowed="once")
    return {**table, **besides}
