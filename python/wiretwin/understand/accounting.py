"""The wire accounted: what the interface carried for each message, against what the message holds.

Counted are the echo steps: their payload is known both ways and nothing else is sent but the few control
messages between the ranks, for which `CONTROL_BYTES` a launch and direction is allowed. A messaging library
puts an envelope of its own around each message, and asks the receiver before it sends a long one: the
envelope is what its smallest messages carry beyond headers, and `ASKING_BYTES` are allowed where it may ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wiretwin.stacks.layers import nature_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CONTROL_BYTES", "HEADER_BYTES", "Account", "accounts"]

CONTROL_BYTES = 512
"""Choice: payload of control messages in one step of one launch and direction; 220 are usual."""
TCP_HEADERS = 14 + 20 + 32
"""Ethernet, IPv4 (RFC 791), TCP with time stamps (RFC 9293, RFC 7323): what an interface counts."""
HEADER_BYTES = TCP_HEADERS
"""The most that the headers of a packet take; a datagram of UDP takes 42, a later fragment 34."""
SMALL_BYTES = 1024
"""Up to this size a message is sent at once, and what it takes beyond headers is its envelope."""
ASKING_BYTES = 400
"""Choice: what a library may send to and fro before a message of more than `SMALL_BYTES`. Seen with offload,
where packets are few: 160 by MPICH and Open MPI, 320 by libfabric."""
WAYS = ("out", "in")


@dataclass(frozen=True)
class Account:
    """What crossed the wire for the echoes of one configuration and size, all launches together.

    Attributes
    ----------
    layer, bytes
        The configuration and the size of its messages.
    launches, messages
        How many there were, messages counted one way.
    payload, carried
        Bytes of the messages and bytes on the interface, both ways.
    packets
        Both ways. Where the interface segments, one of them may be several frames.
    resent_share
        At least this much of the payload was carried more than once: what remains of the bytes carried
        when the payload, the largest headers, the envelopes and the control messages are taken off, over
        the payload.
    crossed
        The interface carried at least the payload: it was the network.
    envelope
        Bytes that the library adds to each message, at least, the mean of both ways: the least that a
        message of up to `SMALL_BYTES` takes beyond payload, headers and control messages.
    """

    layer: str
    bytes: int
    launches: int
    messages: int
    payload: int
    carried: int
    packets: int
    resent_share: float
    crossed: bool
    envelope: float = 0.0

    @property
    def factor(self) -> float:
        """Bytes carried for each byte of payload."""
        return self.carried / self.payload

    @property
    def packets_per_message(self) -> float:
        """Packets for each message, acknowledgements and control messages among them."""
        return self.packets / self.messages


def accounts(traffic: pl.DataFrame, place: Mapping[str, Any] | None = None) -> list[Account]:
    """Account for the echoes in what crossed the interface.

    Parameters
    ----------
    traffic
        `wiretwin.results.Result.traffic`.
    place
        The manifest's place; not needed to count.

    Returns
    -------
    list of Account
        By configuration and size; empty if nothing was counted.
    """
    import polars as pl

    counts = ("payload_out", "payload_in", "bytes_out", "bytes_in", "packets_out", "packets_in")
    totals = (
        traffic.filter((pl.col("loop") == "echo") & (pl.col("bytes") > 0))
        .group_by("layer", "bytes", maintain_order=True)
        .agg(pl.col("launch").n_unique().alias("launches"), *(pl.col(name).sum() for name in counts))
        .sort("layer", "bytes", maintain_order=True)
    )
    rows = [row for row in totals.iter_rows(named=True) if row["payload_out"] + row["payload_in"]]
    envelopes: dict[tuple[str, str], float] = {}
    for row in rows:
        for way in WAYS if row["bytes"] <= SMALL_BYTES and not nature_of(row["layer"]).is_bare else ():
            each = _beyond(row, way) / max(1, row[f"payload_{way}"] // row["bytes"])
            key = row["layer"], way
            envelopes[key] = max(0.0, min(each, envelopes.get(key, each)))
    found = []
    for row in rows:
        envelope = {way: envelopes.get((row["layer"], way), 0.0) for way in WAYS}
        more = 0 if nature_of(row["layer"]).is_bare or row["bytes"] <= SMALL_BYTES else ASKING_BYTES
        over = 0.0
        for way in WAYS:
            messages = row[f"payload_{way}"] // row["bytes"]
            over += max(0.0, _beyond(row, way) - (envelope[way] + more) * messages)
        payload = row["payload_out"] + row["payload_in"]
        carried = row["bytes_out"] + row["bytes_in"]
        found.append(
            Account(
                layer=row["layer"],
                bytes=row["bytes"],
                launches=row["launches"],
                messages=payload // row["bytes"],
                payload=payload,
                carried=carried,
                packets=row["packets_out"] + row["packets_in"],
                resent_share=over / payload,
                crossed=carried >= payload,
                envelope=sum(envelope.values()) / len(WAYS),
            )
        )
    return found


def _beyond(row: Mapping[str, Any], way: str) -> int:
    """Return the bytes that went one way beyond payload, headers and control messages; may be below 0."""
    headers = HEADER_BYTES * row[f"packets_{way}"] + CONTROL_BYTES * row["launches"]
    return int(row[f"bytes_{way}"] - _framed(row, way) - headers)


def _framed(row: Mapping[str, Any], way: str) -> float:
    """Return the bytes of the messages that went one way, as cells where the layer makes cells of them."""
    payload = row[f"payload_{way}"]
    if (sent := nature_of(row["layer"]).cells) is None:
        return float(payload)
    cell_bytes, held, cells_of_poll = sent
    cells = payload / row["bytes"] * -(-row["bytes"] // held)
    return float(cells * cell_bytes * (1 + 2 / cells_of_poll))
