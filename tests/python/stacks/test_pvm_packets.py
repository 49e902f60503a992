"""The captures of PVM hold what `tests/golden/pvm/README.md` says of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[2] / "golden" / "pvm"
SIZES = (4, 4064, 10000)
FIRST, LAST, DATA, ACK = 1, 2, 4, 16
FRAGMENT = 4032
"""Octets of data in a full fragment."""
DAEMON = 0x80000000
USER_TAG = 1 << 24


@dataclass(frozen=True)
class Packet:
    """A datagram between daemons."""

    sender: int
    to: int
    source: int
    sequence: int
    acknowledged: int
    flags: int
    rest: bytes
    data: bytes

    @property
    def tag(self) -> int:
        return int.from_bytes(self.data[4:8], "big")


def frames(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield the last octet of the sender's address, the protocol and what is behind the IP header."""
    text = path.read_bytes()
    assert struct.unpack("<I", text[:4])[0] == 0xA1B2C3D4
    at = 24
    while at < len(text):
        (kept, length) = struct.unpack("<II", text[at + 8 : at + 16])
        assert kept == length, "a frame is cut"
        ip = text[at + 30 : at + 16 + kept]
        total = struct.unpack(">H", ip[2:4])[0]
        yield ip[15], ip[9], ip[(ip[0] & 15) * 4 : total]
        at += 16 + kept


def datagrams(path: Path) -> list[Packet]:
    """Return the datagrams between daemons."""
    found = []
    for sender, protocol, text in frames(path):
        if protocol == 17:
            body = text[8:]
            to, source, sequence, acknowledged, flags = struct.unpack(">IIHHB", body[:13])
            packet = Packet(sender, to, source, sequence, acknowledged, flags, body[13:16], body[16:])
            found.append(packet)
    return found


def segments(path: Path) -> list[tuple[int, bytes]]:
    """Return the payloads of TCP, in order, with their senders."""
    found = []
    for sender, protocol, text in frames(path):
        payload = text[(text[12] >> 4) * 4 :] if protocol == 6 else b""
        if payload:
            found.append((sender, payload))
    return found


def is_user(tag: int) -> bool:
    return tag < USER_TAG


def fragments(size: int) -> list[int]:
    whole, rest = divmod(size, FRAGMENT)
    return [FRAGMENT] * whole + ([rest] if rest or not whole else [])


def captures(route: str) -> list[Path]:
    return [GOLDEN / f"{route}-{size}.pcap" for size in SIZES]


@pytest.mark.parametrize("path", captures("normal") + captures("advise"), ids=lambda path: path.stem)
def test_every_data_packet_is_acknowledged_by_itself_before_the_next(path: Path) -> None:
    waiting: dict[int, int] = {}
    sent: dict[int, int] = {}
    acknowledged = 0
    for packet in datagrams(path):
        assert packet.rest == b"\0\0\0"
        if packet.flags & DATA:
            assert packet.flags & ACK == 0
            assert packet.sender not in waiting, "a window of one"
            assert packet.sequence == sent.get(packet.sender, packet.sequence - 1) + 1
            sent[packet.sender] = waiting[packet.sender] = packet.sequence
        else:
            assert (packet.flags, packet.sequence, packet.data) == (ACK, 0, b"")
            assert packet.to & DAEMON
            assert packet.source & DAEMON
            assert waiting.pop(3 - packet.sender) == packet.acknowledged
            acknowledged += 1
    assert acknowledged > 10
    assert not waiting


@pytest.mark.parametrize("size", SIZES)
def test_a_message_through_the_daemons_is_cut_every_4032_octets(size: int) -> None:
    path = GOLDEN / f"normal-{size}.pcap"
    assert not segments(path)
    for sender in (1, 2):
        packets = [
            packet for packet in datagrams(path) if packet.sender == sender and not packet.source & DAEMON
        ]
        start = next(at for at, one in enumerate(packets) if one.flags & FIRST and is_user(one.tag))
        expected = fragments(size)
        parts = packets[start : start + len(expected)]
        lengths = [len(part.data) - (32 if part.flags & FIRST else 0) for part in parts]
        assert lengths == expected
        assert [part.flags for part in parts] == [
            DATA | (FIRST if at == 0 else 0) | (LAST if at == len(parts) - 1 else 0)
            for at in range(len(parts))
        ]
        encoding, _, context = struct.unpack(">III", parts[0].data[:12])
        assert (encoding, context) == (0x10000000, 0)
        assert len(parts[0].data) + 16 <= 4080


@pytest.mark.parametrize("size", SIZES)
def test_a_message_from_task_to_task_has_the_same_fragments(size: int) -> None:
    path = GOLDEN / f"advise-{size}.pcap"
    tags = [packet.tag for packet in datagrams(path) if packet.flags & FIRST]
    connection = 0x80030001
    assert connection in tags, "TC_CONREQ"
    assert connection + 1 in tags, "TC_CONACK"
    assert not any(is_user(tag) for tag in tags), "the message does not pass the daemons"
    for sender in (1, 2):
        stream = b"".join(text for who, text in segments(path) if who == sender)
        lengths, inside = [], False
        while stream:
            length, flags = struct.unpack(">IB", stream[8:13])
            body, stream = stream[16 : 16 + length], stream[16 + length :]
            if flags & FIRST:
                inside = is_user(int.from_bytes(body[4:8], "big"))
            if inside:
                lengths.append(length - (32 if flags & FIRST else 0))
        assert lengths == fragments(size)


def test_payload_is_the_same_on_both_routes() -> None:
    normal = b"".join(
        packet.data[32:] if packet.flags & FIRST else packet.data
        for packet in datagrams(GOLDEN / "normal-10000.pcap")
        if packet.sender == 1 and not packet.source & DAEMON
    )
    there = [text for who, text in segments(GOLDEN / "advise-10000.pcap") if who == 1 and len(text) > 1000]
    direct = there[0][48:] + b"".join(text[16:] for text in there[1:])
    assert len(direct) == 10000
    assert direct in normal
