"""From data files to the configuration of a simulated local network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from wiretwin.errors import InputError
from wiretwin.papers.values import DATA, Sheet, find_sheet, read_sheet

__all__ = ["Network", "Overrides", "lan_json"]

Overrides = Mapping[tuple[str, str], float]
"""Values to use instead of those on file, by name of the sheet and key."""

CACHE_OFF = 1 << 62


@dataclass(frozen=True)
class Network:
    """A local ATM network.

    Attributes
    ----------
    stack
        The stack, such as ``fore/aal5``.
    host, adapter
        Every host and its adapter, by name.
    switch
        The switch in the middle, or none: two hosts back to back.
    link
        Every link.
    hosts
        How many hosts.
    background
        What else runs on each host; see ``lan_json``.
    cell_loss
        The chance of a cell to be lost on each link.
    """

    stack: str
    host: str
    adapter: str
    switch: str | None = None
    link: str = "taxi100"
    hosts: int = 2
    background: Mapping[str, int] | None = None
    cell_loss: float | None = None
    overrides: Overrides = field(default_factory=dict)


class _Reader:
    """Sheets with some values replaced."""

    def __init__(self, overrides: Overrides) -> None:
        self.overrides = overrides

    def __call__(self, sheet: Sheet, key: str) -> float:
        return self.overrides.get((sheet.name, key), sheet[key])


def _ps(value_us: float) -> int:
    return round(value_us * 1e6)


def lan_json(network: Network) -> str:
    """Return the configuration of a network as JSON.

    Raises
    ------
    InputError
        There is no such host, adapter, link or switch, or a file lacks a value.
    """
    of = _Reader(network.overrides)
    software = read_sheet(DATA / "hosts" / "software.toml")
    link = _kind(find_sheet("networks", network.link, "--link"), "link")
    host = {
        "name": network.host,
        **_host(of, software, find_sheet("hosts", network.host, "--host"), network.adapter),
        "adapter": _adapter(of, network),
    }
    if network.background is not None:
        host["background"] = dict(network.background)
    config: dict[str, Any] = {
        "stack": network.stack,
        "hosts": [host] * network.hosts,
        "pdu_bytes": round(of(software, "pdu_bytes")),
        "cut_messages": True,
        "stream_bytes": round(of(software, "stream_bytes")),
        "link": {
            "rate_bit_s": round(of(link, "rate_Mbit_s") * 1e6),
            "cell_bits": round(of(link, "cell_bits")),
            "propagation_ps": round(of(link, "propagation_ns") * 1e3),
        },
    }
    if network.cell_loss is not None:
        config["cell_loss"] = network.cell_loss
    if network.switch is not None:
        switch = _kind(find_sheet("networks", network.switch, "--switch"), "switch")
        config["switch"] = {
            "fabric_bit_s": round(of(switch, "fabric_Mbit_s") * 1e6),
            "module_bit_s": round(of(switch, "module_Mbit_s") * 1e6),
            "modules": round(of(switch, "modules")),
            "queue_cells": round(of(switch, "queue_cells")),
            "delay_ps": _ps(of(switch, "delay_us")),
        }
    return json.dumps(config)


def _kind(sheet: Sheet, kind: str) -> Sheet:
    if sheet.kind != kind:
        raise InputError(
            key=f"--{kind}", value=sheet.name, allowed=f"a {kind}; {sheet.name} is a {sheet.kind}"
        )
    return sheet


def _host(of: _Reader, software: Sheet, host: Sheet, adapter: str) -> dict[str, Any]:
    factor = of(host, "cpu_factor")
    receive, wakeup = of(software, "receive_us"), of(software, "wakeup_share")
    copy = of(host, "copy_ns_per_byte")
    crc = of(software, "crc_ns_per_byte") * factor
    words = 0.0
    if adapter == "series-100":
        sheet = find_sheet("adapters", adapter, "--adapter")
        words = of(sheet, "words_per_cell") * of(sheet, "word_us")

    def path(time_us: float, byte_ns: float = 0.0, cold: float = 1.0) -> dict[str, int]:
        byte = round(byte_ns * 1e3)
        return {"call_ps": _ps(time_us), "byte_ps": byte, "cold_byte_ps": round(byte * cold)}

    cold = of(host, "cold_factor")
    prices = {
        "trap": path(of(software, "trap_us") * factor),
        "interrupt": path(of(software, "interrupt_us") * factor),
        "context_switch": path(receive * wakeup * factor),
        "copy_in": path(0, copy, cold),
        "copy_out": path(0, copy * of(software, "copy_out_factor"), cold),
        "fore_send": path(of(software, "fore_send_us") * factor),
        "fore_receive": path(receive * (1 - wakeup) / 2 * factor),
        "pdu_interrupt": path(receive * (1 - wakeup) / 2 * factor),
        "crc": path(0, crc),
        "segment_cell": path(of(software, "cell_us") * factor),
        "reassemble_cell": path(of(software, "cell_us") * factor),
        "cell_out": path(words),
        "cell_in": path(words),
    }
    bus = {
        "setup_ps": round(of(host, "dma_setup_ns") * 1e3),
        "byte_ps": round(of(host, "dma_ns_per_byte") * 1e3),
    }
    return {"cache_bytes": min(round(of(host, "cache_bytes")), CACHE_OFF), "prices": prices, "bus": bus}


def _adapter(of: _Reader, network: Network) -> dict[str, Any]:
    sheet = find_sheet("adapters", network.adapter, "--adapter")
    fifos = {key: round(of(sheet, key)) for key in ("send_fifo_cells", "receive_fifo_cells")}
    if sheet.kind == "series-100":
        return {"kind": "series-100", **fifos, "interrupt_delay_ps": _ps(of(sheet, "interrupt_delay_us"))}
    pace = 0.0
    if network.switch is not None:
        pace = of(find_sheet("networks", network.switch, "--switch"), "circuit_pace_us")
    pdu, cell = _ps(of(sheet, "aal5_pdu_us")), _ps(of(sheet, "aal5_cell_us"))
    firmware = {"send_pdu_ps": pdu, "send_cell_ps": cell, "receive_cell_ps": cell, "receive_pdu_ps": pdu}
    return {"kind": "series-200", **fifos, "aal5": firmware, "pace_ps": _ps(pace)}
