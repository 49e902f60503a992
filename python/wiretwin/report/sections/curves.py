"""Measured curves: throughput, latency, signature, saturation."""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go
import polars as pl

from wiretwin.plot import base, words
from wiretwin.plot import curves as draw
from wiretwin.plot.data import steps
from wiretwin.plot.theme import LIGHT
from wiretwin.report.findings import bulk, leaders_by_size, small
from wiretwin.report.inputs import Inputs
from wiretwin.report.page import Chip, Column, FigureBlock, Group, Key, Missing, Section, Table, TableBlock

BAND = Key("band", "interval between launches (95 %)")
STEP = Key("diamond", "behaviour changes, by the fit")
BEYOND = Key("triangle", "the interval goes on beyond the picture")


def build(inputs: Inputs) -> list[Section | Missing]:
    """Build the section, or say how to measure."""
    if not len(inputs.curves.filter(pl.col("bytes") > 0)):
        return [Missing("The measured curves", "wiretwin measure --out measured")]
    groups = [
        Group([_throughput(inputs), _latency(inputs)]),
        Group([_signature(inputs), _saturation(inputs)]),
    ]
    best = _best(inputs)
    if best is not None:
        groups.append(Group([best]))
    patterns = _patterns(inputs)
    if patterns is not None:
        groups.append(Group([patterns]))
    lead = (
        "One message out, the same message back: half of that round trip is the time, size over time the "
        "throughput. A launch counts by its median; a point is the typical launch."
    )
    if inputs.launches and inputs.curves["launches"].max() == 1:
        lead += " Every layer was launched once only, so there are no intervals and nothing is ranked."
    return [Section("curves", "How fast each layer talks", "Curves", lead, groups, chips(inputs))]


def chips(inputs: Inputs) -> list[Chip]:
    """Make the shared legend: a layer, its colour's number, its dash and its symbol."""
    looks = base.looks(inputs.layers)
    return [
        Chip(name, LIGHT.series.index(look.colour), look.dash, look.symbol) for name, look in looks.items()
    ]


def _keys(inputs: Inputs, figure: go.Figure) -> list[Key]:
    """Explain what the figure has."""
    beyond = any(trace.meta["part"] == "beyond" for trace in figure.data)
    keys = []
    if inputs.curves["low_us"].is_finite().any():
        keys.append(BAND)
        if beyond:
            keys.append(BEYOND)
    if any(step["layer"] in inputs.layers for step in steps(inputs.twin)):
        keys.append(STEP)
    return keys


def _throughput(inputs: Inputs) -> FigureBlock:
    ranking = bulk(inputs)
    parts = []
    if ranking is not None:
        parts = [
            f"{row['layer']} {words.rate_text(row['rate_MB_s'])} at {words.size_text(row['bytes'])}"
            for row in ranking.order
        ]
    summary = f"Largest throughput of each layer: {words.list_text(parts)}."
    marked = [
        f"{step['layer']} at {words.size_text(step['bytes'])}"
        for step in steps(inputs.twin)
        if step["why"] == "rendezvous" and step["layer"] in inputs.layers
    ]
    if marked:
        summary += f" Rendezvous begins with {words.list_text(marked)}."
    figure = draw.throughput(inputs.curves, inputs.twin or None, layers=inputs.layers)
    return FigureBlock(
        "throughput",
        "Throughput against message size",
        summary,
        figure,
        _pivot(
            inputs,
            "Throughput by message size, with its interval between launches",
            lambda row: words.rate_interval_text(
                row["rate_MB_s"], row["rate_low_MB_s"], row["rate_high_MB_s"]
            ),
        ),
        keys=_keys(inputs, figure),
        linear="MB/s",
    )


def _latency(inputs: Inputs) -> FigureBlock:
    found = small(inputs)
    summary = "One-way latency of small messages."
    if found is not None:
        size, ranking = found
        parts = [f"{row['layer']} {words.time_text(row['time_us'] / 1e6)}" for row in ranking.order]
        summary = f"One-way latency of {words.size_text(size)}: {words.list_text(parts)}."
    figure = draw.latency(inputs.curves, inputs.twin or None, layers=inputs.layers)
    return FigureBlock(
        "latency",
        "Latency against message size",
        summary,
        figure,
        _pivot(
            inputs,
            "One-way latency by message size, with its interval between launches",
            lambda row: words.time_interval_text(
                row["time_us"] / 1e6, row["low_us"] / 1e6, row["high_us"] / 1e6
            ),
        ),
        keys=_keys(inputs, figure),
        linear="µs",
    )


def _signature(inputs: Inputs) -> FigureBlock:
    figure = draw.signature(inputs.curves, inputs.twin or None, layers=inputs.layers)
    return FigureBlock(
        "signature",
        "Signature: throughput against time",
        "NetPIPE's view: a curve starts at its layer's latency and rises as the time is better used. "
        "Of two curves the upper left one gives more for the same time.",
        figure,
        _long(inputs, "Time and throughput of each size", ("Time", "Throughput")),
        keys=_keys(inputs, figure),
        half=True,
    )


def _saturation(inputs: Inputs) -> FigureBlock:
    rows = []
    for name in inputs.layers:
        part = inputs.curves.filter(pl.col("layer") == name, pl.col("bytes") > 0).sort("bytes")
        if not len(part):
            continue
        half = float(part["rate_MB_s"].max()) / 2  # type: ignore[arg-type]
        at = part.filter(pl.col("rate_MB_s") >= half)["bytes"][0]
        rows.append(f"{name} {words.size_text(at)}")
    figure = draw.saturation(inputs.curves, inputs.twin or None, layers=inputs.layers)
    return FigureBlock(
        "saturation",
        "Saturation: message size against time",
        f"Half of the largest throughput is reached with {words.list_text(rows)}. From there on, a larger "
        "message mostly takes longer in proportion.",
        figure,
        _long(inputs, "Size and time of each message", ("Time",)),
        keys=[*_keys(inputs, figure), Key("ring", "half of its largest throughput")],
        half=True,
    )


def _pivot(inputs: Inputs, caption: str, text: Any) -> Table:
    """One row a size, one column a layer."""
    cells = {(row["bytes"], row["layer"]): text(row) for row in inputs.curves.iter_rows(named=True)}
    sizes = [int(size) for size in inputs.curves["bytes"].unique().sort()]
    rows = [
        [words.size_text(size), *(cells.get((size, name), "") for name in inputs.layers)] for size in sizes
    ]
    return Table(caption, [Column("Size", True), *(Column(name, True) for name in inputs.layers)], rows)


def _long(inputs: Inputs, caption: str, wanted: tuple[str, ...]) -> Table:
    """One row a layer and size."""
    rows = []
    for name in inputs.layers:
        part = inputs.curves.filter(pl.col("layer") == name).sort("bytes")
        for row in part.iter_rows(named=True):
            cells = [name, words.size_text(row["bytes"])]
            if "Time" in wanted:
                cells.append(words.time_text(row["time_us"] / 1e6))
            if "Throughput" in wanted:
                cells.append(words.rate_text(row["rate_MB_s"]))
            rows.append(cells)
    columns = [Column("Layer"), Column("Size", True), *(Column(title, True) for title in wanted)]
    return Table(caption, columns, rows)


def _best(inputs: Inputs, most: int = 14) -> TableBlock | None:
    """Name the fastest layer for each range of sizes, or those that cannot be told apart."""
    found = leaders_by_size(inputs)
    if not found:
        return None
    rows = []
    once = any(ranking.unsure for _, _, _, ranking in found)
    for first, last, leaders, ranking in found:
        at = (
            words.size_text(first)
            if first == last
            else f"{words.size_text(first)} to {words.size_text(last)}"
        )
        rest = [row for row in ranking.order if row not in leaders]
        slowest = max((row["high_us"] for row in leaders), default=math.inf)
        bound = min((row["low_us"] for row in rest), default=math.inf) / slowest
        ahead = words.at_least_text(bound) if rest and math.isfinite(bound) and bound > 1 else ""
        names = (
            words.list_text([row["layer"] for row in leaders])
            if len(ranking.unsure) < len(leaders)
            else "not known"
        )
        rows.append(
            [
                at,
                names,
                "alone" if len(leaders) == 1 else "one launch only" if ranking.unsure else "overlap",
                ahead and f"{ahead} ({rest[0]['layer']})",
            ]
        )
    columns = [
        Column("Messages of"),
        Column("Fastest"),
        Column("Intervals"),
        Column("The next takes at least, at the upper end"),
    ]
    if len(rows) > most:
        return None
    return TableBlock(
        "best",
        "Which layer for which size",
        Table("The fastest layer by message size", columns, rows, stacked=True),
        "Layers whose intervals overlap share a row: here they cannot be told apart. "
        + ("A layer launched only once has no interval and cannot be ranked. " if once else "")
        + "A layer takes part up to the longest message it was measured with.",
    )


def _patterns(inputs: Inputs) -> TableBlock | None:
    """Show what else programs do: a request in two writes, and one way only."""
    two, stream, echo = (inputs.loops.get(loop) for loop in ("two_write", "stream", "echo"))
    if echo is None or (two is None and stream is None):
        return None
    plain = {(row["layer"], row["bytes"]): row for row in echo.iter_rows(named=True)}
    columns = [Column("Layer")]
    cells: dict[str, list[str]] = {name: [name] for name in inputs.layers}
    if two is not None:
        by_key = {(row["layer"], row["bytes"]): row for row in two.iter_rows(named=True)}
        size = int(two["bytes"].min())  # type: ignore[arg-type]
        at = words.size_text(size)
        columns += [
            Column(f"{at} there and back", True),
            Column("the same, sent in two writes", True),
            Column("Longer by", True),
        ]
        for name in inputs.layers:
            one, other = plain.get((name, size)), by_key.get((name, size))
            cells[name] += [_round_trip(one), _round_trip(other), _longer(one, other)]
    if stream is not None:
        columns += [Column("One way only, largest rate", True), Column("with messages of", True)]
        best = (
            stream.filter(pl.col("bytes") > 0)
            .with_columns((pl.col("messages") * pl.col("bytes") * 1000 / pl.col("value_ns")).alias("rate"))
            .sort("rate", descending=True)
            .unique("layer", keep="first", maintain_order=True)
        )
        rates = {row["layer"]: row for row in best.iter_rows(named=True)}
        for name in inputs.layers:
            row = rates.get(name)
            cells[name] += ["", ""] if row is None else [_stream(row), words.size_text(row["bytes"])]
    return TableBlock(
        "patterns",
        "Other ways to talk",
        Table("Round trips in one write and in two, and one-way streams", columns, list(cells.values())),
        "A request written in two pieces meets delayed acknowledgements where a layer has them; a stream "
        "sends without waiting for replies.",
    )


def _round_trip(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    return words.time_interval_text(row["value_ns"] / 1e9, row["low_ns"] / 1e9, row["high_ns"] / 1e9)


def _longer(one: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    """By how much two writes take longer, where the intervals separate."""
    if one is None or other is None:
        return ""
    if other["low_ns"] > one["high_ns"]:
        return words.share_text(other["value_ns"] / one["value_ns"] - 1)
    return "not for certain"


def _stream(row: dict[str, Any]) -> str:
    moved = row["messages"] * row["bytes"] * 1000
    return words.rate_interval_text(row["rate"], moved / row["high_ns"], moved / row["low_ns"])
