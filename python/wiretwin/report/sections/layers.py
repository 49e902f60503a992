"""The table t_0, r_max, n_half per layer, and where a message's time goes in each."""

from __future__ import annotations

from typing import Any

import numpy as np

from wiretwin.fit.curve import CurveFigures
from wiretwin.fit.stats import Interval
from wiretwin.plot import words
from wiretwin.plot.data import segment_values
from wiretwin.report.inputs import Inputs
from wiretwin.report.page import Column, Group, Missing, Section, Table, TableBlock
from wiretwin.understand.accounting import Account
from wiretwin.understand.detect import DETECTORS

SIZES = (4, 1024, 65536)
"""Sizes at which the parts of a message's time are shown."""

FIT = "wiretwin fit measured -o twin.toml"


def build(inputs: Inputs) -> list[Section | Missing]:
    """Build the section from the twin, and from the measured curves for layers that it does not have."""
    layers = {name: _measured(found) for name, found in inputs.figures.items()}
    layers |= inputs.twin.get("layers", {})
    if not layers:
        return [Missing("The table t_0, r_max, n_half", FIT)]
    names = [name for name in inputs.layers if name in layers] + [
        name for name in layers if name not in inputs.layers
    ]
    blocks = [_characteristics(names, layers, inputs)]
    parts = _parts(names, layers)
    if parts is not None:
        blocks.append(parts)
    lead = (
        "t_0 is the one-way latency of the smallest message, r_max the largest throughput measured, n_half "
        "the size at which half of it is reached (Lin et al. 1995), all read off the measured curve. "
        "Brackets hold the 95 % interval between launches."
    )
    return [Section("layers", "The layers in three numbers", "Layers", lead, [Group(blocks)])]


def _measured(found: CurveFigures) -> dict[str, Any]:
    """Write the figures of a curve as a twin has them."""

    def figure(one: Interval, scale: float) -> dict[str, Any]:
        low, value, high = (scale * end for end in (one.low, one.value, one.high))
        return {"value": value, "low": low, "high": high, "launches": found.launches}

    return {
        "t_0_us": figure(found.t_0_ns, 1e-3),
        "r_max_MB_s": figure(found.r_max, 1e3),
        "n_half_bytes": figure(found.n_half_bytes, 1.0),
    }


def _characteristics(names: list[str], layers: dict[str, Any], inputs: Inputs) -> TableBlock:
    found = inputs.understanding.findings if inputs.understanding else []
    largest: dict[str, Account] = {}
    for account in inputs.understanding.accounts if inputs.understanding else ():
        if account.layer not in largest or account.bytes > largest[account.layer].bytes:
            largest[account.layer] = account
    rows = []
    for name in names:
        layer = layers[name]
        rows.append(
            [
                name,
                _figure(layer.get("t_0_us"), words.time_interval_text, 1e-6),
                _figure(layer.get("r_max_MB_s"), words.rate_interval_text),
                _figure(layer.get("n_half_bytes"), words.size_interval_text),
                _figure(layer.get("call_ns"), words.time_interval_text, 1e-9),
                words.size_text(layer["rendezvous_from_bytes"]) if layer.get("rendezvous_from_bytes") else "",
                words.count_text(int((layer.get("t_0_us") or {}).get("launches", 0)), "launch", "launches"),
                f"{largest[name].envelope:.0f} B"
                if name in largest and largest[name].envelope >= 0.5
                else "",
                f"{largest[name].factor:.3f}" if name in largest else "",
                ", ".join(
                    dict.fromkeys(DETECTORS[one.name].title.lower() for one in found if one.layer == name)
                ),
            ]
        )
    columns = [
        Column("Layer"),
        Column("t_0", True),
        Column("r_max", True),
        Column("n_half", True),
        Column("Empty call", True),
        Column("Rendezvous from", True),
        Column("Measured in", True),
        Column("Envelope", True),
        Column("Carried / payload", True),
        Column("Found"),
    ]
    used = [at for at, _column in enumerate(columns) if at == 0 or any(row[at] for row in rows)]
    table = Table(
        "t_0, r_max and n_half of each layer",
        [columns[at] for at in used],
        [[row[at] for at in used] for row in rows],
    )
    note = (
        ""
        if not largest
        else (
            "Envelope: what the library adds to each message on the wire, at least. Carried / payload: "
            "at the largest size, with all headers."
        )
    )
    return TableBlock("characteristics", "t_0, r_max, n_half", table, note)


def _figure(value: dict[str, Any] | None, text: Any, scale: float = 1.0) -> str:
    if not value:
        return ""
    low, high = value.get("low"), value.get("high")
    return str(
        text(
            value["value"] * scale,
            None if low is None else low * scale,
            None if high is None else high * scale,
        )
    )


def _parts(names: list[str], layers: dict[str, Any]) -> TableBlock | None:
    """Send overhead, latency and receive overhead at a few sizes."""
    quantities = ("overhead_send", "latency", "overhead_recv")
    rows = []
    for name in names:
        if not all(layers[name].get(quantity) for quantity in quantities):
            continue
        for size in SIZES:
            at = np.array([float(size)])
            values = [float(segment_values(layers[name][quantity], at)[0]) / 1e9 for quantity in quantities]
            if not np.all(np.isfinite(values)):
                continue
            total = sum(values)
            endpoint = (values[0] + values[2]) / total if total > 0 else 0.0
            cells = [words.time_text(max(0.0, value)) for value in values]
            rows.append(
                [name, words.size_text(size), *cells, words.time_text(total), words.percent_text(endpoint)]
            )
    if not rows:
        return None
    columns = [
        Column("Layer"),
        Column("Size", True),
        Column("Send overhead", True),
        Column("Latency", True),
        Column("Receive overhead", True),
        Column("Sum", True),
        Column("At the endpoints", True),
    ]
    return TableBlock(
        "parts",
        "Endpoints apart from the network",
        Table("The parts of the one-way latency, as fitted", columns, rows),
        "As fitted: what the sender's and the receiver's processors pay, and what passes between them.",
    )
