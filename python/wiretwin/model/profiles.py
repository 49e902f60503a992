"""From data files to the configuration of a simulated local network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wiretwin.errors import InputError
from wiretwin.model.host import host_names
from wiretwin.model.switches import crossbar, star
from wiretwin.model.values import DATA, Sheet, find_sheet, read_sheet

__all__ = ["Load", "Network", "Overrides", "lan_json"]

Overrides = Mapping[tuple[str, str], float]
"""Values to use instead of those on file, by name of the sheet and key."""

CACHE_OFF = 1 << 62

CIRCUITS = ("fore", "fore+reliable", "pvm-fore")
"""Message layers on circuits: they have no sockets."""


@dataclass(frozen=True)
class Load:
    """A station that only generates; see the model of background load.

    Attributes
    ----------
    share
        Of the time of the medium, 0 to 1.
    law
        ``constant``, ``poisson`` or ``on-off``.
    octets
        On ATM of a PDU of AAL 5, else of UDP in a datagram.
    to
        On ATM: the host at whose output port its cells come out.
    reserved
        On ATM: its cells go with those of circuits that have bandwidth.
    counted
        On a cable: ``line`` with preamble and gap, ``frame`` without.
    peak, burst
        Of law ``on-off``: the share within a burst, and units in a burst on average.
    """

    share: float
    law: str = "poisson"
    octets: int = 1460
    to: int = 1
    reserved: bool = False
    counted: str = "line"
    peak: float | None = None
    burst: float | None = None


@dataclass(frozen=True)
class Network:
    """A local ATM network.

    Attributes
    ----------
    stack
        The stack, such as ``fore/aal5``.
    host, adapter
        Every host and its adapter, by name; ``frames`` where the stack is not ATM.
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
    capture_host
        The host whose packets are captured, by number; none where there is none.
    bit_error
        The chance of each bit of a cell or frame to be wrong on each line: 0, or 1e-12 to 0.01.
    reassembly_timer_us
        How long after its first cell a PDU may take to be whole; for ever where there is none.
    load
        Stations that only generate.
    first_use_ms
        What the first message of a host to another takes besides.
    reserve_Mbit_s
        What the circuits between the first two hosts have reserved, each way; where circuits are set up by
        calls, what each of them asks for.
    circuits
        Circuits are set up by calls: which are there from the start, ``demand``, ``all``, ``mesh``,
        ``hypercube`` or ``tree``. None: permanent ones between every two hosts.
    buffer_kib, nodelay
        Of sockets: the size of both buffers of each, and whether both ends set ``TCP_NODELAY``.
    tcp
        The rules of TCP.
    switches
        A network of cell switches in place of one with a switch in the middle, as JSON: `papers.switches`.
    cut_messages
        Of ``fore``: a message longer than a PDU goes as several; else it is rejected.
    overrides
        Values to use instead of those on file.
    """

    stack: str
    host: str
    adapter: str = "frames"
    switch: str | None = None
    link: str = "taxi100"
    hosts: int = 2
    background: Mapping[str, int] | None = None
    cell_loss: float | None = None
    capture_host: int | None = None
    bit_error: float | None = None
    reassembly_timer_us: float | None = None
    load: tuple[Load, ...] = ()
    first_use_ms: float = 0.0
    reserve_Mbit_s: float | None = None
    circuits: str | None = None
    buffer_kib: int = 32
    tcp: str = "sunos41"
    nodelay: bool = True
    switches: Mapping[str, Any] | None = None
    cut_messages: bool = True
    overrides: Overrides = field(default_factory=dict)

    @property
    def between(self) -> str:
        """The hosts and what is between them, in words."""
        if self.adapter == "frames":
            return f"{self.hosts} {self.host} on one network"
        way = f"through {self.switch}" if self.switch else "back to back"
        return f"{self.hosts} {self.host} with {self.adapter}, {way}"

    def lan_json(self, *, capture_host: int | None = None) -> str:
        """Return its configuration as JSON, the packets of a host captured."""
        return lan_json(self if capture_host is None else replace(self, capture_host=capture_host))


class _Reader:
    """Sheets with some values replaced."""

    def __init__(self, overrides: Overrides) -> None:
        self.overrides = overrides

    def __call__(self, sheet: Sheet, key: str) -> float:
        if key not in sheet.values and sheet.base is not None:
            return self(sheet.parent(), key)
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
    if network.host == software.name:
        raise InputError(key="--host", value=network.host, allowed=", ".join(host_names()))
    host = {
        "name": network.host,
        **_host(of, software, find_sheet("hosts", network.host, "--host"), network),
        "adapter": _adapter(of, network),
    }
    if network.background is not None:
        host["background"] = dict(network.background)
    config: dict[str, Any] = {
        "stack": network.stack,
        "hosts": [host] * network.hosts,
        "pdu_bytes": round(of(software, "pdu_bytes")),
        "cut_messages": network.cut_messages,
        "stream_bytes": round(of(software, "stream_bytes")),
        **_lower(of, network),
    }
    if network.cell_loss is not None:
        config["cell_loss"] = network.cell_loss
    if network.capture_host is not None:
        config["capture_host"] = network.capture_host
    if network.bit_error is not None:
        config["bit_error"] = network.bit_error
    if network.reassembly_timer_us is not None:
        config["reassembly_timer_ps"] = _ps(network.reassembly_timer_us)
    if network.stack.startswith("pvm-mapped") and network.adapter != "frames":
        adapter = find_sheet("adapters", network.adapter, "--adapter")
        if "mapped_buffers" in adapter.values:
            config["mapped_buffers"] = round(of(adapter, "mapped_buffers"))
    if network.first_use_ms:
        config["first_use_ps"] = _ps(network.first_use_ms * 1e3)
    if network.load:
        config["load"] = [_load(one, network.stack.split("/")[-1]) for one in network.load]
    if network.circuits is not None:
        switch = _kind(find_sheet("networks", network.switch or "asx100", "--switch"), "switch")
        config["circuits"] = {
            "topology": network.circuits,
            "processing_ps": _ps(of(switch, "signal_us")),
            "peak_kbit_s": round((network.reserve_Mbit_s or 0) * 1e3),
        }
    elif network.reserve_Mbit_s is not None:
        rate = round(network.reserve_Mbit_s * 1e6)
        config["reservations"] = [
            {"from": one, "to": 1 - one, "target_bit_s": rate, "minimum_bit_s": rate} for one in (0, 1)
        ]
    return json.dumps(config)


def _load(one: Load, lower: str) -> dict[str, Any]:
    found: dict[str, Any] = {"law": one.law, "share": one.share, "octets": one.octets}
    if lower == "ethernet":
        found["counted"] = one.counted
    elif lower != "fddi":
        found |= {"to": one.to, "reserved": one.reserved}
    return found | {key: getattr(one, key) for key in ("peak", "burst") if getattr(one, key) is not None}


def _lower(of: _Reader, network: Network) -> dict[str, Any]:
    """Return what is under the message layer, and what sockets need of it."""
    lower = network.stack.split("/")[-1]
    found: dict[str, Any] = {}
    if lower == "ethernet":
        sheet = find_sheet("networks", "ethernet10", "network")
        hop = round(of(sheet, "hop_ns") * 1e3)
        found["cable"] = {"rate_bit_s": round(of(sheet, "rate_Mbit_s") * 1e6), "hop_ps": hop}
    elif lower == "fddi":
        sheet = find_sheet("networks", "fddi", "network")
        found["ring"] = {
            "rate_bit_s": round(of(sheet, "rate_Mbit_s") * 1e6),
            "hop_ps": round(of(sheet, "hop_ns") * 1e3),
            "latency_ps": round(of(sheet, "latency_ns") * 1e3),
            "target_ps": round(of(sheet, "target_ms") * 1e9),
        }
    elif (switches := _switches(of, network)) is not None:
        sheet = find_sheet("networks", "ip-over-atm", "network")
        found["switches"] = switches
    else:
        sheet = find_sheet("networks", "ip-over-atm", "network")
        link = _kind(find_sheet("networks", network.link, "--link"), "link")
        found["link"] = {
            "rate_bit_s": round(of(link, "rate_Mbit_s") * 1e6),
            "cell_bits": round(of(link, "cell_bits")),
            "propagation_ps": round(of(link, "propagation_ns") * 1e3),
        }
        if network.switch is not None:
            switch = _kind(find_sheet("networks", network.switch, "--switch"), "switch")
            found["switch"] = {
                "fabric_bit_s": round(of(switch, "fabric_Mbit_s") * 1e6),
                "module_bit_s": round(of(switch, "module_Mbit_s") * 1e6),
                "modules": round(of(switch, "modules")),
                "queue_cells": round(of(switch, "queue_cells")),
                "delay_ps": _ps(of(switch, "delay_us")),
            }
    if network.stack.split("/")[0] not in CIRCUITS:
        found["socket"] = {
            "tcp": network.tcp,
            # The paper's largest buffer is the most that SunOS gives: a little more than 51 KB.
            "buffer_bytes": network.buffer_kib * 1024,
            "nodelay": network.nodelay,
            "mtu_bytes": round(of(sheet, "mtu_bytes")),
            "encapsulation_bytes": round(of(sheet, "encapsulation_bytes")),
        }
    return found


def _switches(of: _Reader, network: Network) -> Mapping[str, Any] | None:
    """Return the network of cell switches, where there is one."""
    if network.switches is not None:
        return network.switches
    if network.switch is None or find_sheet("networks", network.switch, "--switch").kind != "crossbar":
        return None
    adapter = find_sheet("adapters", network.adapter, "--adapter")
    if adapter.kind != "whole-pdus":
        raise InputError(key="--adapter", value=adapter.name, allowed="otto, in a network of cell switches")
    return star(network.hosts, of(adapter, "sar_ns"), crossbar(network.switch, of=of), of=of)


def _kind(sheet: Sheet, kind: str) -> Sheet:
    if sheet.kind != kind:
        raise InputError(
            key=f"--{kind}", value=sheet.name, allowed=f"a {kind}; {sheet.name} is a {sheet.kind}"
        )
    return sheet


def _host(of: _Reader, software: Sheet, host: Sheet, network: Network) -> dict[str, Any]:
    factor = of(host, "cpu_factor")
    receive, wakeup = of(software, "receive_us"), of(software, "wakeup_share")
    copy = of(host, "copy_ns_per_byte")
    crc = of(software, "crc_ns_per_byte") * factor
    words, send = 0.0, of(software, "fore_send_us")
    if network.adapter != "frames":
        sheet = find_sheet("adapters", network.adapter, "--adapter")
        if sheet.kind == "series-100":
            words = of(sheet, "words_per_cell") * of(sheet, "word_us")
        if "driver_us" in sheet.values:
            send = of(sheet, "driver_us")

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
        "fore_send": path(send * factor),
        "fore_receive": path(receive * (1 - wakeup) / 2 * factor),
        "pdu_interrupt": path(receive * (1 - wakeup) / 2 * factor),
        **_socket_prices(of, software, network, path, copy),
        **_library_prices(of, software, host, network, path),
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


def _socket_prices(
    of: _Reader, software: Sheet, network: Network, path: Callable[..., dict[str, int]], copy: float
) -> dict[str, dict[str, int]]:
    """Return what sockets, TCP, IP and the driver under them cost."""
    factor = of(find_sheet("hosts", network.host, "--host"), "cpu_factor")
    whole = of(software, "socket_us") * factor
    lower = network.stack.split("/")[-1]
    driver = lower if lower in ("ethernet", "fddi") else "atm"
    each = copy * of(software, "atm_packet_factor") if driver == "atm" else 0.0
    packet_us = of(software, f"{driver}_packet_us")
    if driver == "atm":
        sheet = find_sheet("adapters", network.adapter, "--adapter")
        packet_us = of(sheet, "driver_us") if "driver_us" in sheet.values else packet_us
    packet = path(packet_us * factor, each)
    return {
        "socket_send": path(whole * of(software, "socket_send_share")),
        "socket_receive": path(whole * of(software, "socket_receive_share")),
        "segment_out": path(whole * of(software, "segment_out_share")),
        "segment_in": path(whole * of(software, "segment_in_share")),
        "ack_in": path(of(software, "ack_us") * factor),
        "timer_expiry": path(of(software, "timer_us") * factor),
        "mbuf": path(of(software, "mbuf_us") * factor),
        "checksum": path(0, copy * of(software, "checksum_factor")),
        "packet_out": packet,
        "packet_in": packet,
    }


def _library_prices(
    of: _Reader, software: Sheet, host: Sheet, network: Network, path: Callable[..., dict[str, int]]
) -> dict[str, dict[str, int]]:
    """Return what message layers do in the process that calls them; only looking is the kernel's."""
    copy, cold = of(host, "copy_ns_per_byte"), of(host, "cold_factor")
    own = of(host, "user_factor" if "user_factor" in host.values else "cpu_factor")
    library, user_copy = "library_us", "user_copy_factor"
    if network.stack.startswith("pvm"):
        library, user_copy = "pvm_library_us", "pvm_copy_factor"
    return {
        "select": path(of(software, "select_us") * of(host, "cpu_factor")),
        "library": path(of(software, library) * own),
        "user_copy": path(0, copy * of(software, user_copy), cold),
        "rpc_head": path(of(software, "rpc_head_us") * own),
        "xdr_item": path(of(software, "xdr_item_us") * own),
        "record_mark": path(of(software, "record_mark_us") * own),
        "forward": path(of(software, library) * of(software, "forward_factor") * own),
    }


def _adapter(of: _Reader, network: Network) -> dict[str, Any]:
    if network.adapter == "frames":
        return {"kind": "frames"}
    sheet = find_sheet("adapters", network.adapter, "--adapter")
    if sheet.kind == "whole-pdus":
        return {"kind": "frames"}
    fifos = {key: round(of(sheet, key)) for key in ("send_fifo_cells", "receive_fifo_cells")}
    if sheet.kind == "series-100":
        return {"kind": "series-100", **fifos, "interrupt_delay_ps": _ps(of(sheet, "interrupt_delay_us"))}
    pace = 0.0
    if network.switch is not None:
        switch = _kind(find_sheet("networks", network.switch, "--switch"), "switch")
        pace = of(switch, "circuit_pace_us")
    firmware = {}
    for layer in ("aal5", "aal34"):
        pdu, cell = _ps(of(sheet, f"{layer}_pdu_us")), _ps(of(sheet, f"{layer}_cell_us"))
        firmware[layer] = {
            "send_pdu_ps": pdu,
            "send_cell_ps": cell,
            "receive_cell_ps": cell,
            "receive_pdu_ps": pdu,
        }
    return {"kind": "series-200", **fifos, **firmware, "pace_ps": _ps(pace)}
