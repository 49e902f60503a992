"""Ong & Farrell 2000: what is measured on which network."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from wiretwin.errors import InputError
from wiretwin.model.cases import case
from wiretwin.model.values import DATA, Sheet, read_sheet

__all__ = [
    "DRIVERS",
    "LIBRARIES",
    "MOST_MTU",
    "NICS",
    "PAPER",
    "Constant",
    "Setting",
    "asked_by",
    "constants",
    "of_stack",
    "paper",
    "setting",
    "sheets",
]

PAPER = "ong2000"
NICS = ("gnic-ii", "acenic", "sk-net")
DRIVERS = ("acenic-0.28", "acenic-0.32")
"""Adapters under drivers of other versions than the paper's own."""
FOLDER = DATA / "papers" / PAPER

Constant = tuple[str, str]
"""A free constant: the name of its sheet and its key."""

PAGE_OCTETS = 4096

MOST_BUFFER = 131_070
"""What Linux 2.2 gives at most: two bytes less than the 128 KB that the paper speaks of."""

STANDARD_MTU, MOST_MTU = 1500, 9000
"""The longest packets of Ethernet and of jumbo frames."""

ENCAPSULATION_OCTETS = 18
SWITCH = {"forwarding": "stored", "latency_ps": 5_000_000, "port_bytes": 1 << 20}
"""Between more than two hosts. Choice: the paper has none; 5 us and 1 MiB a port."""

OVER_VIS = ("via", "mpi-mvich")
"""Stacks over VIs: no sockets, and a driver of their own."""

ATM = ("fore_send", "fore_receive", "pdu_interrupt", "crc", "segment_cell", "reassemble_cell", "cell_out")


@cache
def paper() -> dict[str, Any]:
    """Return the data file of this paper."""
    return tomllib.loads((FOLDER / "paper.toml").read_text(encoding="utf-8"))


@cache
def sheets() -> dict[str, Sheet]:
    """Return the host's sheet and those of the adapters, by name, a driver's with what its base has."""
    found = {sheet.name: sheet for sheet in map(read_sheet, (FOLDER / f"{one}.toml" for one in _FILES))}
    for name in DRIVERS:
        own = found[name]
        found[name] = replace(own, values={**found[own.base or name].values, **own.values})
    return found


_FILES = ("host", *NICS, *DRIVERS, "m-via", "today/host", "today/nic", "today/vi")


def constants() -> dict[Constant, float]:
    """Return every value of the paper's sheets that was fitted."""
    return {
        (sheet.name, key): value.value
        for sheet in sheets().values()
        for key, value in sheet.values.items()
        if value.by == "fit" and sheet.base is None
    }


@dataclass(frozen=True)
class Setting:
    """Hosts back to back, or, if there are more than two, around a switch.

    Attributes
    ----------
    nic, mtu, buffer_kib
        The adapter, the largest IP packet in bytes, the size of both socket buffers; a library asks for
        buffers of its own.
    library
        ``mpi-lam``, ``mpi-mpich``, ``mpi``, ``via`` or ``mpi-mvich``; none for sockets.
    asked_kib, switch_over, transfer_kib
        Instead of what the library has: the socket buffers that it asks for, the first length that goes by
        rendezvous, the longest message of a descriptor.
    duplex
        ``full``, as the paper has it; ``half``, ``half-in-bursts``: both hosts share the line.
    overrides
        Values to use instead of those on file.
    hosts
        How many.
    host, driver, device, tcp, rate_Gbit_s
        Whose prices; VIs whose and of which device; the rules of TCP; what the line carries.
    """

    nic: str
    mtu: int = 1500
    buffer_kib: int = 128
    library: str | None = None
    asked_kib: int | None = None
    switch_over: int | None = None
    transfer_kib: int | None = None
    duplex: str = "full"
    overrides: Mapping[Constant, float] = field(default_factory=dict)
    hosts: int = 2
    host: str = "p3-450"
    driver: str = "m-via"
    device: str = "m-via"
    tcp: str = "linux22"
    rate_Gbit_s: int = 1

    @property
    def case(self) -> str:
        """Its case."""
        return case(
            stack=self.stack,
            network="gige",
            host=self.host,
            nic=self.nic,
            mtu=self.mtu,
            buffer_kib=self.asked_kib if self.library else self.buffer_kib,
            transfer_kib=self.transfer_kib,
            switch_over=self.switch_over,
            link=f"{self.rate_Gbit_s}G" if self.rate_Gbit_s > 1 else None,
            ports=self.hosts if self.hosts > 2 else None,
        )

    @property
    def stack(self) -> str:
        """Its stack."""
        return f"{self.library}/gige" if self.is_over_vis else f"{self.library or 'socket'}/tcp/gige"

    @property
    def is_over_vis(self) -> bool:
        """Whether it has VIs instead of sockets."""
        return self.library in OVER_VIS

    @property
    def has_jumbo_wait(self) -> bool:
        """Whether its driver has the adapter wait otherwise with interrupts for jumbo frames."""
        return not self.is_over_vis and "jumbo_coalesce_us" in sheets()[self.nic].values

    @property
    def most_bytes(self) -> int | None:
        """The longest message that it carries, where there is one: that of a descriptor."""
        return self._transfer if self.library == "via" else None

    @property
    def most_eager_bytes(self) -> int | None:
        """The longest message that may go without rendezvous, where it has to find buffers."""
        if not self.is_over_vis:
            return None
        # Of each buffer 48 octets are a head, and 14 are kept back.
        return (round(self.value("buffers")) - 14) * (round(self.value("buffer_bytes")) - 48)

    @property
    def _transfer(self) -> int:
        kib = self.transfer_kib
        return round(self._value(self.driver, "transfer_bytes")) if kib is None else kib << 10

    def value(self, key: str) -> float:
        """Return a value of what drives its VIs."""
        return self._value(self.driver, key)

    def under(self, overrides: Mapping[Constant, float]) -> Setting:
        """Return it with other values."""
        return replace(self, overrides=overrides)

    @property
    def between(self) -> str:
        """The hosts and what is between them, in words."""
        line = {
            "full": "back to back" if self.hosts == 2 else "around a switch",
            "half": "in half duplex",
            "half-in-bursts": "in half duplex with bursts",
        }[self.duplex]
        return f"{self.hosts} {self.host} with {self.nic}, MTU {self.mtu}, {line}"

    def _value(self, sheet: str, key: str) -> float:
        return self.overrides.get((sheet, key), sheets()[sheet][key])

    def lan_json(self, *, capture_host: int | None = None) -> str:
        """Return the configuration of the network as JSON, the packets of a host captured."""

        def host(key: str) -> float:
            return self._value(self.host, key)

        def nic(key: str) -> float:
            return self._value(self.nic, key)

        def ps(value_us: float) -> int:
            return round(value_us * 1e6)

        def price(call_us: float = 0.0, byte_ns: float = 0.0) -> dict[str, int]:
            cold = round(byte_ns * 1e3)
            return {
                "call_ps": ps(call_us),
                "byte_ps": round(cold * host("warm_share")),
                "cold_byte_ps": cold,
            }

        copy = host("copy_ns_per_byte")

        def mvia(key: str) -> float:
            return self._value(self.driver, key)

        prices: dict[str, dict[str, int]] = {
            "trap": price(host("trap_us")),
            "interrupt": price(host("interrupt_us")),
            "context_switch": price(host("context_switch_us")),
            "copy_in": price(0, copy),
            "copy_out": price(0, copy),
            "checksum": price(0, copy * host("checksum_share")),
            "socket_send": price(host("socket_us")),
            "socket_receive": price(host("socket_us")),
            "segment_out": price(host("segment_us")),
            "segment_in": price(host("segment_us")),
            "ack_in": price(host("ack_us")),
            "timer_expiry": price(host("timer_us")),
            "mbuf": price(),
            "packet_out": price(host("packet_us")),
            "packet_in": price(host("packet_us")),
            "select": price(host("select_us")),
            "library": price(host("library_us"), host("lam_ns_per_byte") if self.library == "mpi-lam" else 0),
            "user_copy": price(0, copy),
            # What ATM would cost, and other message layers.
            **{name: price() for name in (*ATM, "cell_in")},
            **{name: price() for name in ("rpc_head", "xdr_item", "record_mark", "forward")},
        }
        wait = "jumbo_coalesce" if self.mtu > STANDARD_MTU and self.has_jumbo_wait else "coalesce"
        driver = mvia if self.is_over_vis else nic
        one = {
            "name": self.host,
            "cache_bytes": round(host("cache_bytes")),
            "prices": prices,
            "bus": {"setup_ps": 0, "byte_ps": 0},
            "adapter": {"kind": "frames"},
        }
        if self.is_over_vis:
            prices |= {
                "fast_trap": price(mvia("fast_trap_us")),
                "doorbell": price(mvia("poll_us")),
                "via_poll": price(mvia("poll_us")),
                "via_packet_out": price(mvia("fragment_us")),
                "via_packet_in": price(mvia("fragment_us")),
                "via_copy": price(0, copy * mvia("copy_share")),
                "register_memory": price(mvia("register_us"), mvia("register_page_us") * 1e3 / PAGE_OCTETS),
                "deregister_memory": price(mvia("register_us")),
            }
        return json.dumps(
            {
                "stack": self.stack,
                "hosts": [one] * self.hosts,
                "pdu_bytes": 4096,
                "cut_messages": True,
                "stream_bytes": 1 << 22,
                "gige": {
                    "rate_bit_s": self.rate_Gbit_s * 1_000_000_000,
                    **({} if self.duplex == "full" else {"duplex": self.duplex}),
                    "propagation_ps": 25_000,
                    "adapter": {
                        "bus_setup_ps": ps(host("bus_setup_us")),
                        "bus_byte_ps": round(host("bus_byte_ns") * 1e3),
                        "frame_ps": ps(nic("frame_us")),
                        "send_frames": round(nic("send_frames")),
                        "receive_bytes": round(nic("receive_bytes")),
                        "coalesce_frames": round(driver(f"{wait}_frames")),
                        "coalesce_ps": ps(driver(f"{wait}_us")),
                        "pause": self.duplex == "full",
                    },
                    **({"switch": SWITCH} if self.hosts > 2 else {}),
                },
                **({} if capture_host is None else {"capture_host": capture_host}),
                **(self._vi() if self.is_over_vis else self._sockets()),
            }
        )

    def _sockets(self) -> dict[str, Any]:
        asked = asked_by(self.library)
        buffer = asked.get("buffer_bytes", self.buffer_kib * 1024)
        if self.library and self.asked_kib is not None:
            buffer = self.asked_kib * 1024
        if self.library == "mpi-mpich":
            buffer = round(buffer * self._value(self.host, "mpich_buffer_factor"))
        socket = {
            "tcp": self.tcp,
            "buffer_bytes": min(buffer, MOST_BUFFER) if self.tcp == "linux22" else buffer,
            "nodelay": True,
            "mtu_bytes": self.mtu,
            "encapsulation_bytes": ENCAPSULATION_OCTETS,
        }
        if not asked:
            return {"socket": socket}
        return {"socket": socket, "rendezvous_from_bytes": self.switch_over or asked["rendezvous_from_bytes"]}

    def _vi(self) -> dict[str, Any]:
        def mvia(key: str) -> int:
            return round(self._value(self.driver, key))

        vi = {
            "device": self.device,
            "reliability": "unreliable-delivery" if self.device == "m-via" else "reliable-delivery",
            "mtu_bytes": self.mtu,
            "max_transfer_bytes": self._transfer,
            "buffers": mvia("buffers"),
            "buffer_bytes": mvia("buffer_bytes"),
        }
        if self.library == "via":
            return {"vi": vi}
        return {"vi": vi, "rendezvous_from_bytes": self.switch_over or mvia("rendezvous_from_bytes")}


LIBRARIES = {
    "socket/tcp/gige": None,
    "mpi-lam/tcp/gige": "mpi-lam",
    "mpi-mpich/tcp/gige": "mpi-mpich",
    "mpi/tcp/gige": "mpi",
    "via/gige": "via",
    "mpi-mvich/gige": "mpi-mvich",
}
"""The stacks that the paper's hosts have prices for, and their libraries."""


DUPLEX = ("full", "half", "half-in-bursts")


GENERAL = {"buffer_bytes": 131_072, "rendezvous_from_bytes": 65_536}
"""What MPI that is nobody's asks for, if its user sets nothing else."""


def asked_by(library: str | None) -> Mapping[str, int]:
    """Return the socket buffers and the switch-over of a library over sockets; of others nothing."""
    asked: Mapping[str, int] = {"mpi": GENERAL, **paper()["mpi"]}.get(library or "", {})
    return asked


def of_stack(
    stack: str,
    nic: str = NICS[0],
    mtu: int = 1500,
    duplex: str = "full",
    switch_over: int | None = None,
) -> Setting:
    """Return two hosts with this stack; of MPI with a switch-over of one's own.

    Raises
    ------
    InputError
        There are no costs of such a stack or adapter on file, the MTU is none of Ethernet or more than the
        adapter takes, or there is no such duplex.
    """
    if stack not in LIBRARIES:
        raise InputError(key="STACK", value=stack, allowed=f"over gige: {', '.join(LIBRARIES)}")
    if nic not in NICS:
        raise InputError(key="--nic", value=nic, allowed=", ".join(NICS))
    if not 576 <= mtu <= MOST_MTU:
        raise InputError(key="--mtu", value=mtu, allowed=f"576 to {MOST_MTU}")
    most = max(paper()["mtu_bytes"][nic])
    if mtu > most:
        allowed = f"576 to {most} with {nic}, which has no jumbo frames"
        raise InputError(key="--mtu", value=mtu, allowed=allowed)
    if duplex not in DUPLEX:
        raise InputError(key="--duplex", value=duplex, allowed=", ".join(DUPLEX))
    library = LIBRARIES[stack]
    if switch_over is not None and not (library or "").startswith("mpi"):
        raise InputError(key="--switch-over", value=switch_over, allowed="nothing: only MPI has rendezvous")
    one = Setting(nic, mtu, library=library, duplex=duplex, switch_over=switch_over)
    if one.most_eager_bytes is not None and (switch_over or 0) > one.most_eager_bytes + 1:
        allowed = f"1 to {one.most_eager_bytes + 1}: what is shorter must find buffers"
        raise InputError(key="--switch-over", value=switch_over, allowed=allowed)
    return one


def setting(row: Mapping[str, Any]) -> Setting:
    """Return the setting of a calibration row."""
    return Setting(row["nic"], row["mtu"], row.get("buffer_kib", 128), row.get("library"))
