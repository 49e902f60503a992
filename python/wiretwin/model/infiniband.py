"""A network out of what ``ibnetdiscover`` prints of an InfiniBand subnet.

The output (ibnetdiscover(8) of infiniband-diags) has a paragraph for each switch and channel adapter, and in
it a line for each port that is connected: the port, the node and port at the other end, and how wide and how
fast the link is. Each link stands there twice, once at either end. Routers and the aggregation nodes that
switches have for reductions in the network are left out, and so is what has no cable.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError

__all__ = ["is_of_ibnetdiscover", "read_subnet"]

_NODE = re.compile(r'(Switch|Ca|Rt)\s+\d+\s+"([SHR]-[0-9a-f]+)"\s*#\s*"(.*)"')
_PORT = re.compile(r'\[(\d+)\](?:\[ext \d+\])?(?:\([0-9a-f]+\))?\s*"([SHR]-[0-9a-f]+)"\[(\d+)\](.*)')
_RATE = re.compile(r"\s(\d+)x([A-Z]+\d*)(?:\s|$)")
_OTHER = re.compile(r"#|\w+=|Chassis\b|$")
_ADAPTER = re.compile(r"(\S+)(?: (?:HCA-\d+|[a-z]\w*_\d+))?")
_REDUCES = "Aggregation Node"
_GBIT_S = {
    "SDR": 2.0,
    "DDR": 4.0,
    "QDR": 8.0,
    "FDR10": 10.0,
    "FDR": 14.0625 * 64 / 66,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}
"""What a lane carries of packets, Gbit/s: the InfiniBand Trade Association's rates without the line code."""
_LANES = (1, 2, 4, 8, 12)
_End = tuple[str, int]
"""A port: the node's name in the file, and the port's number."""


def is_of_ibnetdiscover(text: str) -> bool:
    """Return whether a text is what ibnetdiscover prints."""
    return any(_NODE.match(line) for line in text.splitlines())


def read_subnet(path: Path, text: str) -> dict[str, Any]:
    """Read the output of ibnetdiscover: the nodes and lines of a listed network, with the rates it knows.

    A host has the name that its adapters are described by (``node7 mlx5_0``, ``node7 HCA-1``), or the
    adapter's own where they are described by a product; one with several adapters has a line for each. A
    switch has the name that it is described by, and where several have the same, its own behind it.

    Parameters
    ----------
    path
        The file's name, for errors.
    text
        What it holds.

    Raises
    ------
    InputError
        It is not what ibnetdiscover prints; the file, the line, the value and what is allowed are named.
    """
    described, links = _read(path, text)
    names = _names(described)
    used: dict[str, None] = {}
    lines = []
    for (one, other), rate in links.items():
        ends = (one[0], other[0])
        if all(end in names for end in ends):
            # A host is where its line leads to.
            above, below = ends if ends[0].startswith("S") else ends[::-1]
            line = {"from": names[above], "to": names[below]}
            lines.append(line if rate is None else line | {"rate": rate})
            used |= dict.fromkeys(ends)
    kinds = {"S": "switch", "H": "host"}
    nodes = {names[node]: kinds[node[0]] for node in described if node in used}
    listed = [{"name": name, "kind": kind} for name, kind in nodes.items()]
    return {"topology": "listed", "nodes": listed, "lines": lines}


def _read(path: Path, text: str) -> tuple[dict[str, str], dict[tuple[_End, _End], str | None]]:
    """Return how each node is described, and the rate of each link between two ports."""
    described: dict[str, str] = {}
    links: dict[tuple[_End, _End], str | None] = {}
    met: dict[str, str] = {}
    here = None
    for number, raw in enumerate(text.splitlines(), 1):
        line, place = raw.strip(), f"line {number}"
        if node := _NODE.match(line):
            here = node[2]
            if here in described:
                raise InputError(path, place, here, "each node once")
            described[here] = node[3]
        elif (port := _PORT.match(line)) and here is not None:
            ends = sorted([(here, int(port[1])), (port[2], int(port[3]))])
            links[ends[0], ends[1]] = _rate(path, place, port[4])
            met[port[2]] = place
        elif not _OTHER.match(line):
            allowed = "a Switch, a Ca, or a port of one, such as ibnetdiscover prints without options"
            raise InputError(path, place, line, allowed)
    for name, place in met.items():
        if name not in described:
            raise InputError(path, place, name, "a node of this file: is all of the output in it?")
    return described, links


def _rate(path: Path, place: str, rest: str) -> str | None:
    """Return the rate of a link; nothing if ibnetdiscover did not know it either."""
    # What is in quotes is free text, in which anything may stand.
    said = rest.rpartition('"')[2]
    if "??" in said:
        return None
    found = _RATE.search(said)
    if found is None or int(found[1]) not in _LANES or found[2] not in _GBIT_S:
        widths, speeds = ", ".join(f"{lanes}x" for lanes in _LANES), ", ".join(_GBIT_S)
        raise InputError(path, place, rest.strip(), f"a width of {widths}, and a speed of {speeds}: 4xEDR")
    return f"{round(1e9 * int(found[1]) * _GBIT_S[found[2]])} bit/s"


def _names(described: dict[str, str]) -> dict[str, str]:
    """Return the names of the network's nodes by those of the file, without what is no switch or host."""
    names = {}
    switches = [words for node, words in described.items() if node.startswith("S")]
    for node, words in described.items():
        if node.startswith("S"):
            names[node] = words if words and switches.count(words) == 1 else f"{words} {node}".strip()
        elif node.startswith("H") and _REDUCES not in words:
            host = _ADAPTER.fullmatch(words.strip("'"))
            names[node] = host[1] if host else node
    return names
