"""A network between hosts: what ``--network`` takes, as an object.

A network is written as a text (``fat-tree:hosts=64,rate=100Gbit/s``), as the table ``[network]`` of a TOML
file, as a ``topology.conf`` of Slurm with a rate beside it, or made here. Wherever it comes from, it is read
and checked by the compiled core, before anything runs.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.given import read_text

__all__ = ["Network"]

_OPTION = "--network"
_LARGEST_FILE = 16 << 20


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
        ``parking-lot``, ``tree``, ``fat-tree`` or ``listed``.
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
        self._take(_read({"topology": topology, **parameters}, None))

    def _take(self, found: _core.ReadNetwork) -> None:
        plan = json.loads(found["plan_json"])
        rest = {key: value for key, value in plan.items() if key != "topology"}
        for name, value in (
            ("topology", plan["topology"]),
            ("parameters", rest),
            ("plan", plan),
            ("hosts", found["hosts"]),
            ("switches", found["switches"]),
            ("lines", found["lines"]),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def parse(cls, text: str, *, hosts: int | None = None) -> Network:
        """Read a network from its text, or from the file that the text names.

        Parameters
        ----------
        text
            ``NAME:key=value,key=value``, where NAME is a topology, the path of a Slurm ``topology.conf``, or
            the path of a TOML file that ends in ``.toml`` and lacks the keys given here.
        hosts
            How many hosts a topology has that takes a number and was given none.

        Raises
        ------
        InputError
            The file cannot be read, or the network cannot be; key, value and what is allowed are named.
        """
        made = object.__new__(cls)
        name, _, words = text.partition(":")
        if name.endswith(".toml"):
            made._take(_read(_with(_table(Path(name)), words), hosts))
        elif name.endswith(".conf"):
            made._take(_read(_with(_slurm(Path(name)), words), hosts))
        else:
            made._take(_read(text, hosts))
        return made

    @classmethod
    def of(cls, given: str | Path | Network, *, hosts: int | None = None) -> Network:
        """Return a network as it is, or read it as :meth:`parse` does."""
        return given if isinstance(given, Network) else cls.parse(str(given), hosts=hosts)

    def __str__(self) -> str:
        words = ",".join(
            f"{key}={str(value).replace(' ', '')}"
            for key, value in self.parameters.items()
            if not isinstance(value, list)
        )
        return f"{self.topology}:{words}" if words else self.topology


def _read(given: str | dict[str, Any], hosts: int | None) -> _core.ReadNetwork:
    text = given if isinstance(given, str) else json.dumps(given, default=str)
    try:
        return _core.read_network(text, hosts=hosts)
    except ValueError as error:
        key, found, allowed = error.args
        if found == "nothing":
            raise InputError(key=f"{_OPTION} {key}", reason="is needed", allowed=allowed) from None
        try:
            value = json.loads(found)
        except ValueError:
            value = found
        raise InputError(key=f"{_OPTION} {key}".rstrip(), value=value, allowed=allowed) from None


def _slurm(path: Path) -> dict[str, Any]:
    from wiretwin.model.slurm import read_topology

    return read_topology(path, read_text(path, most=_LARGEST_FILE))


def _with(table: dict[str, Any], words: str) -> dict[str, Any]:
    """Return a file's table with what is said beside the file: keys that the table does not have."""
    table = dict(table)
    for word in filter(None, words.split(",")):
        key, equals, value = word.partition("=")
        if not equals or key in table:
            raise InputError(key=_OPTION, value=word, allowed="key=value, such as rate=100Gbit/s")
        table[key] = value
    return table


def _table(path: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(read_text(path, most=_LARGEST_FILE))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(file=path, reason=f"not TOML: {error}") from error
    table = document.get("network")
    if not isinstance(table, dict) or "topology" not in table:
        raise InputError(file=path, key="network.topology", reason="is needed", allowed="a topology's name")
    return table
