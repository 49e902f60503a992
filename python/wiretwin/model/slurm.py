"""A network out of the file in which Slurm keeps a cluster's topology.

``topology.conf`` of the plugin ``topology/tree`` (topology.conf(5)) names each switch with its nodes or with
the switches below it. It gives no rates: those are said beside the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError

__all__ = ["read_topology"]

_NAMES = ("switchname", "nodes", "switches", "linkspeed", "comment")
_PART = re.compile(r"([^,\[\]]*)(?:\[([^\]]*)\])?([^,\[\]]*)(?:,|$)")
_MOST_NAMES = 131_072


def read_topology(path: Path, text: str) -> dict[str, Any]:
    """Read a ``topology.conf``: the nodes and lines of a listed network, without a rate.

    Parameters
    ----------
    path
        The file's name, for errors.
    text
        What it holds.

    Raises
    ------
    InputError
        A line is not what Slurm writes there; the file, the line, the value and what is allowed are named.
    """
    hosts: dict[str, None] = {}
    switches: dict[str, None] = {}
    lines: list[dict[str, str]] = []
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.partition("#")[0].split()
        if not words:
            continue
        place = f"line {number}"
        values = _values(path, place, words)
        name = values.get("switchname")
        if name is None:
            raise InputError(path, place, raw.strip(), "SwitchName=… with Nodes=… or Switches=…")
        if name in switches:
            raise InputError(path, place, name, "each switch once")
        switches[name] = None
        below = [
            *_each(path, place, values.get("nodes", "")),
            *_each(path, place, values.get("switches", "")),
        ]
        if not below:
            raise InputError(path, place, raw.strip(), "Nodes=… or Switches=…, with a name or more")
        hosts |= dict.fromkeys(_each(path, place, values.get("nodes", "")))
        lines += [{"from": name, "to": child} for child in below]
    nodes = [{"name": name, "kind": "switch"} for name in switches]
    nodes += [{"name": name, "kind": "host"} for name in hosts]
    return {"topology": "listed", "nodes": nodes, "lines": lines}


def _values(path: Path, place: str, words: list[str]) -> dict[str, str]:
    values = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key.lower() not in _NAMES:
            raise InputError(path, place, word, "SwitchName=, Nodes=, Switches= and LinkSpeed=")
        values[key.lower()] = value
    return values


def _each(path: Path, place: str, expression: str) -> Iterator[str]:
    """Yield the names of a hostlist expression, such as ``tux[0-3,12],mole``."""
    made = 0
    at = 0
    while at < len(expression):
        match = _PART.match(expression, at)
        if match is None or match.end() == at:
            raise InputError(path, place, expression, "names and ranges such as tux[0-3,12]")
        at = match.end()
        before, ranges, after = match.groups()
        for middle in [""] if ranges is None else _numbers(path, place, ranges):
            made += 1
            if made > _MOST_NAMES:
                raise InputError(path, place, expression, f"{_MOST_NAMES} names at most")
            if name := f"{before}{middle}{after}":
                yield name


def _numbers(path: Path, place: str, ranges: str) -> Iterator[str]:
    for part in ranges.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
            raise InputError(path, place, f"[{ranges}]", "numbers and ranges such as [0-3,12]")
        for number in range(int(first), int(last) + 1):
            yield f"{number:0{len(first)}}"
