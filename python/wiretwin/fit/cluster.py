"""A cluster from its pairs: the launches that a twin is fitted to, and the network that joins its hosts.

The twin is that of the reference pair, of the fastest class between hosts. The network has the rates at
which the classes carry long messages, and on a way to further hosts the delay by which the shortest message
is later there: what a message of the reference pair takes is in the twin, less what the network's own lines
take.

Choice: a rate is what one pair gets alone. A trunk may carry more than one pair can send, which only pairs
measured at the same time would tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from wiretwin.errors import InputError
from wiretwin.fit.pairs import Classes, classify, pair_table, reference
from wiretwin.results import Result

__all__ = ["has_pairs", "network_of", "network_text", "reference_launches", "reference_network"]

PAYLOAD, ON_LINE = 1448, 1538
"""Bytes of a message in a full packet of a network without `mtu`, and what a line carries for it."""
LEAST_BIT_S, MOST_BIT_S = 10_000, 10**15


def has_pairs(result: Result) -> bool:
    """Whether pairs of hosts were measured."""
    return "pairs" in result.manifest.options


def reference_launches(result: Result) -> Result:
    """Return the result with the launches of its reference pairs alone, one pair a layer.

    Of a layer that was measured with round trips only, they are those of the pair that would be it.
    """
    table = pair_table(result)
    chosen = {(name, reference(table, name), False) for name in dict.fromkeys(table["layer"])}
    whole = {(one.name, one.hosts, True) for one in result.manifest.launches if one.whole}
    chosen = {one for one in chosen if one[0] not in {name for name, *_ in whole}} | whole
    launches = [one for one in result.manifest.launches if (one.name, one.hosts, one.whole) in chosen]
    return Result(result.path, result.manifest.model_copy(update={"launches": launches}), result.damaged)


def network_of(
    result: Result, layer: str | None = None, topology: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], Classes]:
    """Return the network that joins the hosts of a result, as a listed topology, and the classes behind it.

    Parameters
    ----------
    result
        Of pairs of hosts.
    layer
        Whose times; by default the first layer's.
    topology
        Nodes and lines, as `wiretwin.model.network.table_in` gives them; by default a switch
        for each group of hosts that was found, and where there are more than two a switch that joins these.

    Raises
    ------
    InputError
        There are no pairs of this layer, one size only, or hosts that the topology does not have.
    """
    table, hosts = pair_table(result), list(result.manifest.options.get("between", ()))
    layers = list(dict.fromkeys(table.filter(pl.col("a") != pl.col("b"))["layer"]))
    layer = layer or next(iter(layers), None)
    if layer is None or layer not in layers:
        allowed = ", ".join(layers) or "a result of `wiretwin measure --pairs all`"
        raise InputError(result.path, "layers", layer, allowed, "has no pairs of hosts")
    groups = _groups_of(topology, hosts) if topology is not None else ()
    found = classify(table, layer, hosts, groups)
    costs = _costs(table.filter(pl.col("layer") == layer), result.path)
    listed = dict(topology) if topology is not None else _inferred(found)
    return _with_rates(listed, found, costs), found


def _costs(own: pl.DataFrame, path: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the time of the shortest message, us, and the time a byte of the longest, us, of each pair."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for a, b, size, value in own.select("a", "b", "bytes", "value_us").iter_rows():
        if a != b:
            found.setdefault((a, b), []).append((size, value))
    costs = {}
    for pair, curve in found.items():
        (least, short), *_, (most, long) = sorted(curve) * (2 if len(curve) == 1 else 1)
        if most > least:
            costs[pair] = (short, max(long - short, short / 100) / (most - least))
    if not costs:
        raise InputError(path, "sizes", reason="one size tells no rate", allowed="two sizes or more")
    return costs


def _groups_of(topology: Mapping[str, Any], hosts: Sequence[str]) -> list[list[str]]:
    """Return the measured hosts of each switch."""
    above = {line["to"]: line["from"] for line in topology["lines"]}
    for host in hosts:
        if host not in above:
            raise InputError(
                key="--topology", value=host, reason="is not in it", allowed="every host measured"
            )
    switches = dict.fromkeys(above[host] for host in hosts)
    return [[host for host in hosts if above[host] == switch] for switch in switches]


def _inferred(found: Classes) -> dict[str, Any]:
    """Return a switch for each group, with what joins them."""
    switches = [f"switch{number}" for number in range(1, len(found.groups) + 1)]
    lines = [
        {"from": switch, "to": host}
        for switch, group in zip(switches, found.groups, strict=True)
        for host in group
    ]
    if len(switches) == 2:
        lines.append({"from": switches[0], "to": switches[1]})
    elif len(switches) > 2:
        lines += [{"from": "core", "to": switch} for switch in switches]
        switches.append("core")
    nodes = [{"name": name, "kind": "switch"} for name in switches]
    return {"topology": "listed", "nodes": nodes, "lines": lines}


def _with_rates(
    listed: Mapping[str, Any], found: Classes, costs: Mapping[tuple[str, str], tuple[float, float]]
) -> dict[str, Any]:
    """Give each line its rate and delay."""
    lame = {one.hosts[0] for one in found.slow if one.kind in ("host", "adapter")}
    at = {host: number for number, group in enumerate(found.groups) for host in group}
    sound = {pair: cost for pair, cost in costs.items() if not lame & set(pair)}
    inside = [cost for pair, cost in sound.items() if at[pair[0]] == at[pair[1]]]
    across = [cost for pair, cost in sound.items() if at[pair[0]] != at[pair[1]]]
    near = inside or across
    short, each = (median(cost[part] for cost in near) for part in (0, 1))
    # Below one switch are the lines of hosts; what is between switches is the way to those further away.
    further_us = max(0.0, median(cost[0] for cost in across) - short) if across and inside else 0.0
    trunk = median(cost[1] for cost in across) if across else each
    switches = {node["name"] for node in listed["nodes"] if node["kind"] == "switch"}
    trunks = [line for line in listed["lines"] if {line["from"], line["to"]} <= switches]
    on_the_way = 1 if len(trunks) == 1 else 2
    lines = []
    for line in listed["lines"]:
        host = line["to"]
        if host in switches:
            own = {"rate": _rate(max(trunk, each)), "delay": _delay(further_us / on_the_way)}
        elif host in lame:
            pairs = [cost for pair, cost in costs.items() if host in pair]
            later_us = max(0.0, min(cost[0] for cost in pairs) - short)
            own = {"rate": _rate(min(cost[1] for cost in pairs)), "delay": _delay(later_us)}
        else:
            own = {}
        # What a file says of rates is what its links could carry, not what messages got.
        lines.append({"from": line["from"], "to": host, **own})
    hosts = [
        *found.hosts,
        *(n["name"] for n in listed["nodes"] if n["name"] not in {*switches, *found.hosts}),
    ]
    nodes = [node for node in listed["nodes"] if node["kind"] == "switch"]
    nodes += [{"name": host, "kind": "host"} for host in hosts]
    return {"topology": "listed", "rate": _rate(each), "nodes": nodes, "lines": lines}


def _rate(each_us: float) -> str:
    """Write the rate of a line over which a byte of a message takes so long."""
    bit_s = 8e6 / each_us * ON_LINE / PAYLOAD
    return f"{round(min(max(bit_s, LEAST_BIT_S), MOST_BIT_S))} bit/s"


def _delay(time_us: float) -> str:
    return f"{round(1000 * time_us)} ns"


def reference_network(network: Mapping[str, Any]) -> str:
    """Return the way between two hosts at one switch of a network, as ``--network`` reads it."""
    return f"star:hosts=2,rate={network['rate'].replace(' ', '')}"


def network_text(network: Mapping[str, Any], found: Classes, digest: str) -> str:
    """Return a network as a file that ``--network`` reads, with what it rests on."""
    lines = [
        f"# Measured between {len(found.hosts)} hosts with {found.layer}; samples {digest}.",
        *(
            f"# {one.name}: {len(one.pairs)} pairs, {one.times_us[min(one.times_us)]:.4g} us for "
            f"{min(one.times_us)} B, {one.times_us[max(one.times_us)]:.4g} us for {max(one.times_us)} B"
            for one in found.classes
        ),
        *(f"# slow: {one}" for one in found.slow),
        "[network]",
        'topology = "listed"',
        f'rate = "{network["rate"]}"',
    ]
    for key in ("nodes", "lines"):
        lines.append(f"{key} = [")
        for entry in network[key]:
            lines.append(
                f"  {{ {', '.join(f'{name} = {_quoted(value)}' for name, value in entry.items())} }},"
            )
        lines.append("]")
    return "\n".join(lines) + "\n"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
