"""Networks of cell switches as the core reads them, with the values of the data files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wiretwin.model.values import DATA, Sheet, read_sheet

__all__ = ["Credits", "an2", "crossbar", "host", "line", "network", "output_queued", "star"]

Json = dict[str, Any]
Credits = int | str | None
"""Of a circuit and line: a number of cells, ``"loop"``, or none for queues that lose."""

Read = Callable[[Sheet, str], float]


def an2() -> Sheet:
    """Return the values of the switch and its lines."""
    return read_sheet(DATA / "networks" / "an2.toml")


def _plain(sheet: Sheet, key: str) -> float:
    return sheet[key]


def _switch(name: str, kind: str, of: Read, **more: Any) -> Json:
    """Return a switch with the ports, the latency and the room for circuits of AN2."""
    sheet = an2()
    switch = {
        "kind": kind,
        "ports": int(of(sheet, "ports")),
        "queue": int(of(sheet, "queue_cells")),
        "discard": "tail",
        "circuits": int(of(sheet, "circuits")),
        **more,
    }
    latency = f"{round(of(sheet, 'latency_us') * 1000)} ns"
    return {"name": name, "kind": "switch", "delay": latency, "switch": switch}


def crossbar(name: str, *, inside_cells: int | None = None, of: Read = _plain) -> Json:
    """Return a switch of the kind of AN2; with another speed inside where one is given."""
    sheet = an2()
    inside = inside_cells or int(of(sheet, "inside_cells"))
    iterations = int(of(sheet, "iterations"))
    return _switch(name, "crossbar", of, matching="pim", iterations=iterations, inside=inside)


def output_queued(name: str, *, buffer_cells: int, service: str = "in-turn") -> Json:
    """Return a switch with ports, latency and room for a circuit as AN2, but queues at the outputs."""
    return _switch(name, "output-queued", _plain, service=service, buffer=buffer_cells)


def host(name: str, sar_ns: float) -> Json:
    """Return a host whose adapter takes this for a cell."""
    return {"name": name, "kind": "host", "delay": f"{round(sar_ns)} ns"}


def line(first: str, second: str, length_m: float, credits: Credits, *, of: Read = _plain) -> Json:
    """Return a line of AN2's between two nodes."""
    sheet = an2()
    return {
        "from": first,
        "to": second,
        "rate": f"{int(of(sheet, 'line_bit_s'))} bit/s",
        "delay": f"{round(length_m * of(sheet, 'propagation_ns_m'))} ns",
        "credits": {"cells": "none" if credits is None else credits},
    }


def network(nodes: Sequence[Json], lines: Sequence[Json], **more: Any) -> Json:
    """Return the network of cells that these nodes and lines are."""
    return {"topology": "listed", "fidelity": "cell", "nodes": [*nodes], "lines": [*lines], **more}


def star(hosts: int, sar_ns: float, switch: Json, credits: Credits = "loop", *, of: Read = _plain) -> Json:
    """Return hosts around one switch."""
    names = [f"h{number}" for number in range(hosts)]
    length = of(an2(), "host_line_m")
    lines = [line(one, switch["name"], length, credits, of=of) for one in names]
    return network([switch, *(host(one, sar_ns) for one in names)], lines)
