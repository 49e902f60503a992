"""A network out of the file in which Slurm keeps a cluster's topology.

``topology.conf`` of the plugin ``topology/tree`` (topology.conf(5)) names each switch with its nodes or with
the switches below it; ``topology.yaml`` (topology.yaml(5)) says the same of one topology or several. They
give no rates: those are said beside the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError

__all__ = ["read_topology"]

_NAMES = ("switchname", "nodes", "switches", "linkspeed", "comment")
_PART = re.compile(r"([^,\[\]]*)(?:\[([^\]]*)\])?([^,\[\]]*)(?:,|$)")
_MOST_NAMES = 131_072
#: Where a switch stands in its file, its name, its nodes and the switches below it, as hostlist expressions.
_Switch = tuple[str, str, str, str]


def read_topology(path: Path, text: str) -> dict[str, Any]:
    """Read a topology of Slurm's: the nodes and lines of a listed network, without a rate.

    Parameters
    ----------
    path
        The file's name, for errors; one that ends in ``.yaml`` is a ``topology.yaml``.
    text
        What it holds.

    Raises
    ------
    InputError
        It is not what Slurm writes there; the file, the place, the value and what is allowed are named.
    """
    return _listed(path, _of_yaml(path, text) if path.suffix == ".yaml" else _of_conf(path, text))


def _listed(path: Path, found: Iterable[_Switch]) -> dict[str, Any]:
    hosts: dict[str, None] = {}
    switches: dict[str, None] = {}
    lines: list[dict[str, str]] = []
    for place, name, nodes, children in found:
        if name in switches:
            raise InputError(path, place, name, "each switch once")
        switches[name] = None
        own = list(_each(path, place, nodes))
        hosts |= dict.fromkeys(own)
        lines += [{"from": name, "to": below} for below in (*own, *_each(path, place, children))]
    listed = [{"name": name, "kind": "switch"} for name in switches]
    listed += [{"name": name, "kind": "host"} for name in hosts]
    return {"topology": "listed", "nodes": listed, "lines": lines}


def _of_conf(path: Path, text: str) -> Iterator[_Switch]:
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.partition("#")[0].split()
        if not words:
            continue
        place = f"line {number}"
        values = _values(path, place, words)
        name, nodes, children = (values.get(key, "") for key in ("switchname", "nodes", "switches"))
        if not name:
            raise InputError(path, place, raw.strip(), "SwitchName=… with Nodes=… or Switches=…")
        if not nodes and not children:
            raise InputError(path, place, raw.strip(), "Nodes=… or Switches=…, with a name or more")
        yield place, name, nodes, children


def _of_yaml(path: Path, text: str) -> Iterator[_Switch]:
    import yaml

    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(path, reason=f"not YAML: {error}") from None
    listed = found if isinstance(found, list) else []
    trees = [one for one in listed if isinstance(one, dict) and isinstance(one.get("tree"), dict)]
    chosen = [one for one in trees if one.get("cluster_default") is True][:1] or trees
    if len(chosen) != 1:
        names = ", ".join(str(one.get("topology")) for one in trees) or "none"
        raise InputError(path, "tree", names, "one topology of the type tree, or one that is cluster_default")
    place = f"{chosen[0].get('topology')}.tree.switches"
    entries = chosen[0]["tree"].get("switches")
    if not isinstance(entries, list):
        raise InputError(path, place, entries, "a list of switches")
    for number, one in enumerate(entries):
        words = one if isinstance(one, dict) else {}
        name, nodes, children = (words.get(key, "") for key in ("switch", "nodes", "children"))
        if (
            not all(isinstance(word, str) for word in (name, nodes, children))
            or not name
            or not nodes + children
        ):
            raise InputError(
                path, f"{place}[{number}]", one, "switch: NAME with nodes: NAMES or children: NAMES"
            )
        yield f"{place}[{number}]", name, nodes, children


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
