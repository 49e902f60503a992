"""Networks of cell switches as JSON: nodes and lines, with the values of the data files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wiretwin.model.values import DATA, Sheet, read_sheet

__all__ = ["Credits", "an2", "crossbar", "line", "output_queued", "star"]

Json = dict[str, Any]
Credits = int | str | None
"""Of a circuit and line: a number of cells, ``"loop"``, or none for queues that lose."""

Read = Callable[[Sheet, str], float]


def an2() -> Sheet:
    """Return the values of the switch and its lines."""
    return read_sheet(DATA / "networks" / "an2.toml")


def _plain(sheet: Sheet, key: str) -> float:
    return sheet[key]


def crossbar(name: str, *, inside_cells: int | None = None, of: Read = _plain) -> Json:
    """Return a switch of the kind of AN2; with another speed inside where one is given."""
    sheet = an2()
    return {
        "name": name,
        "kind": "crossbar",
        "ports": int(of(sheet, "ports")),
        "matching": "pim",
        "iterations": int(of(sheet, "iterations")),
        "inside": inside_cells or int(of(sheet, "inside_cells")),
        "latency_ns": round(of(sheet, "latency_us") * 1000),
        "queue_cells": int(of(sheet, "queue_cells")),
        "discard": "tail",
        "circuits": int(of(sheet, "circuits")),
    }


def output_queued(name: str, *, buffer_cells: int) -> Json:
    """Return a switch with ports, latency and room for a circuit as AN2, but queues at the outputs."""
    sheet = an2()
    return {
        "name": name,
        "kind": "shared-buffer",
        "ports": int(sheet["ports"]),
        "service": "in-turn",
        "latency_ns": round(sheet["latency_us"] * 1000),
        "buffer_cells": buffer_cells,
        "queue_cells": int(sheet["queue_cells"]),
        "discard": "tail",
        "circuits": int(sheet["circuits"]),
    }


def line(first: str, second: str, length_m: float, credits: Credits, *, of: Read = _plain) -> Json:
    """Return a line of AN2's between two nodes."""
    sheet = an2()
    found: Json = {
        "between": [first, second],
        "bit_s": int(of(sheet, "line_bit_s")),
        "delay_ns": round(length_m * of(sheet, "propagation_ns_m")),
    }
    if credits is not None:
        found["credits"] = {"cells": credits}
    return found


def star(hosts: int, sar_ns: float, switch: Json, credits: Credits = "loop", *, of: Read = _plain) -> Json:
    """Return hosts around one switch."""
    names = [f"h{number}" for number in range(hosts)]
    length = of(an2(), "host_line_m")
    return {
        "nodes": [switch, *({"name": one, "kind": "host", "sar_ns": round(sar_ns)} for one in names)],
        "lines": [line(one, switch["name"], length, credits, of=of) for one in names],
    }
