"""The wire accounted: what was carried for each message, how much of it certainly twice."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from recorded import FOLDER, load

import wiretwin as wt
from wiretwin.results import Launch, Layer, Result, StepTraffic
from wiretwin.understand.accounting import CONTROL_BYTES, HEADER_BYTES, accounts

SIZE, MESSAGES = 1000, 50


def traffic(**changed: int) -> pl.DataFrame:
    counts = {
        "payload_out": SIZE * MESSAGES,
        "payload_in": SIZE * MESSAGES,
        "bytes_out": (SIZE + HEADER_BYTES) * MESSAGES,
        "bytes_in": (SIZE + HEADER_BYTES) * MESSAGES,
        "packets_out": MESSAGES,
        "packets_in": MESSAGES,
    }
    row = {"launch": 1, "layer": "socket/tcp", "loop": "echo", "bytes": SIZE, "messages": 1, "delay_ns": 0}
    return pl.DataFrame([{**row, **counts, **changed}])


def test_a_message_a_packet_is_payload_and_headers() -> None:
    (one,) = accounts(traffic())
    assert (one.messages, one.payload, one.packets) == (2 * MESSAGES, 2 * SIZE * MESSAGES, 2 * MESSAGES)
    assert one.factor == pytest.approx((SIZE + HEADER_BYTES) / SIZE)
    assert one.packets_per_message == 1
    assert one.resent_share == 0
    assert one.crossed


def test_what_was_sent_again_is_told_from_headers_and_control_messages() -> None:
    again = 5
    sent = (SIZE + HEADER_BYTES) * (MESSAGES + again) + CONTROL_BYTES
    (one,) = accounts(traffic(bytes_out=sent, packets_out=MESSAGES + again))
    assert one.resent_share == pytest.approx(again / (2 * MESSAGES))
    control = (SIZE + HEADER_BYTES) * MESSAGES + CONTROL_BYTES
    (one,) = accounts(traffic(bytes_out=control))
    assert one.resent_share == 0


def test_a_librarys_envelope_is_not_data_sent_again() -> None:
    call, reply, asking = 44, 28, 300

    def step(size: int, again: int = 0) -> pl.DataFrame:
        more = {
            "bytes": size,
            "layer": "rpc/tirpc",
            "payload_out": size * MESSAGES,
            "payload_in": size * MESSAGES,
        }
        asked = asking if size > 1024 else 0
        ways = {
            f"bytes_{way}": (size + own + asked + HEADER_BYTES) * MESSAGES + size * again + CONTROL_BYTES
            for way, own in (("out", call), ("in", reply))
        }
        return traffic(**ways).with_columns(**{key: pl.lit(value) for key, value in more.items()})

    found = accounts(pl.concat([step(4), step(256), step(20_000)]))
    assert [one.envelope for one in found] == [(call + reply) / 2] * 3
    assert [one.resent_share for one in found] == [0, 0, 0]
    # What is sent again beyond that is still seen, a little less of it than there was.
    again = accounts(pl.concat([step(4), step(20_000, again=10)]))[1]
    assert 0.19 < again.resent_share <= 0.2


def test_what_did_not_cross_the_network_is_said() -> None:
    (one,) = accounts(traffic(bytes_out=300, bytes_in=300, packets_out=4, packets_in=4))
    assert not one.crossed


def test_other_loops_and_empty_messages_are_left_out() -> None:
    other = traffic().with_columns(loop=pl.lit("stream"))
    assert accounts(pl.concat([other, traffic().with_columns(bytes=pl.lit(0, dtype=pl.Int64))])) == []


def test_recorded_fragments_are_counted_and_clean_wires_send_nothing_again() -> None:
    mtu = {one.bytes: one.packets_per_message for one in load(FOLDER / "mtu.parquet").accounts}
    assert mtu[1400] < 1.5 < mtu[1500]
    for name in ("clean-wire", "clean-delay", "mtu"):
        assert all(one.resent_share < 0.02 for one in load(FOLDER / f"{name}.parquet").accounts)


def test_the_report_shows_the_wire(tmp_path: Path) -> None:
    layer = Layer(layer="socket/tcp", name="socket/tcp")
    result = Result.create(tmp_path / "r", seed=1, created_utc="2026-01-01T00:00:00Z", layers=[layer])
    step = {
        key: value for key, value in traffic().row(0, named=True).items() if key not in ("launch", "layer")
    }
    for number in (1, 2, 3):
        launch = Launch(
            launch=number,
            name="socket/tcp",
            order=number,
            started_utc="now",
            seconds=1.0,
            status="ok",
            traffic=[StepTraffic(**step)],
        )
        ones = {key: [1] for key in ("messages", "batch", "index")}
        result.append(
            launch, {"loop": ["echo"], "bytes": [SIZE], "value_ns": [10**5 + number], "delay_ns": [0]} | ones
        )
    result.finish("complete")
    page = wt.report(result=result, out=tmp_path / "report.html").read_text()
    assert "Bytes on the wire for each byte of payload" in page
    assert "it was the network" in page
