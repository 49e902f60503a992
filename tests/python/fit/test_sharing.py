"""Two ranks on one core: how a rank waits there, and how long it keeps the core, as fitted."""

from __future__ import annotations

import polars as pl
import pytest
from fit_help import HOST

from wiretwin.fit.api import fit
from wiretwin.fit.sharing import sharing as fitted
from wiretwin.twin import Sharing, Twin

LOOPS = ("echo", "call", "send_busy", "recv_busy", "stream", "prtt")


def measured(one_core_ns: list[int], slice_ns: list[int], *, launches: int = 3) -> pl.DataFrame:
    """Return samples of a layer, and with each launch those of two ranks on one core."""
    samples = HOST.samples(launches=launches, loops=LOOPS)
    first = samples.row(0, named=True)
    rows = [
        first | {"launch": launch, "loop": loop, "bytes": size, "messages": 1, "delay_ns": 0, "batch": 1}
        | {"index": index, "value_ns": value}
        for launch in range(1, launches + 1)
        for loop, size, values in (("one_core", 4, one_core_ns), ("slice", 0, slice_ns))
        for index, value in enumerate(values)
    ]  # fmt: skip
    return pl.concat([samples, pl.DataFrame(rows, schema=samples.schema)])


def besides(samples: pl.DataFrame, loop: str, taken_ns: list[int], delay_ns: int = 0) -> pl.DataFrame:
    """Add to each launch what another loop took."""
    rows = samples.filter(pl.col("loop") == "slice").unique("launch", maintain_order=True)
    added = [
        row | {"loop": loop, "delay_ns": delay_ns, "index": index, "value_ns": value}
        for row in rows.iter_rows(named=True)
        for index, value in enumerate(taken_ns)
    ]
    return pl.concat([samples, pl.DataFrame(added, schema=samples.schema)])


def sharing(samples: pl.DataFrame) -> Sharing | None:
    return fit(samples).layer("synthetic").sharing


def test_ranks_that_hand_their_core_on_take_turns() -> None:
    # Other work of the host gets slices, too: what waited for one, and what was cut short, does not count.
    # Nor does an exchange that happened to find its core at once.
    samples = measured(
        [99_000_000, 30_000, 9_000_000, 20_000, 30_000], [1_000, 3_900_000, 1_200_000, 3_950_000]
    )
    found = sharing(samples)
    assert found is not None
    assert found.idle == "yield"
    assert (found.one_core_us.value, found.slice_ms.value) == pytest.approx((15.0, 3.95))
    layer = fit(samples).layer("synthetic")
    overheads_us = (layer.at("overhead_send", 4) + layer.at("overhead_recv", 4)) / 1e3
    assert found.turn_us.value == pytest.approx(15.0 - overheads_us)
    twin = fit(samples)
    assert Twin.parse(twin.to_toml()).to_toml() == twin.to_toml()


def test_between_hosts_the_latency_is_no_turn() -> None:
    samples = measured([60_000] * 3, [3_900_000] * 3)
    layer = fit(samples).layer("synthetic")
    parts_us = sum(layer.at(part, 4) for part in ("overhead_send", "latency", "overhead_recv")) / 1e3
    found = fitted(samples, layer, 0.95, between=True)
    assert found is not None
    assert found.turn_us.value == pytest.approx(30.0 - parts_us)
    # What is within the noise of the latency is a call at least.
    found = fitted(measured([round(1e3 * parts_us)] * 3, [3_900_000] * 3), layer, 0.95, between=True)
    assert found is not None
    assert layer.call_ns is not None
    assert found.turn_us.value == pytest.approx(layer.call_ns.value / 1e3)


def test_ranks_that_keep_their_core_exchange_a_message_a_slice() -> None:
    found = sharing(measured([8_000_000] * 3, [4_000_000] * 3))
    assert found is not None
    assert found.idle == "spin"


def test_what_was_not_measured_is_absent() -> None:
    assert sharing(HOST.samples(launches=3, loops=LOOPS)) is None
    assert sharing(measured([30_000] * 3, [4_000_000] * 3).filter(pl.col("loop") != "slice")) is None


def test_what_a_rank_that_computes_keeps_beside_one_that_waits() -> None:
    samples = measured([30_000] * 3, [4_000_000] * 3)
    without = sharing(samples)
    assert without is not None
    assert without.kept_share is None
    # The first is not timed, and what other work of the host took is no waiting rank's.
    found = sharing(besides(samples, "beside", [40_000_000, 160_000_000, 80_000_000], 40_000_000))
    assert found is not None
    assert found.kept_share is not None
    assert (found.kept_share.value, found.kept_share.launches) == (pytest.approx(0.5), 3)
    alone = sharing(besides(samples, "beside", [90_000_000, 40_000_000, 39_999_000], 40_000_000))
    assert alone is not None
    assert alone.kept_share is not None
    assert alone.kept_share.value == 1.0


def test_calls_that_keep_the_core_are_told_from_those_that_hand_it_on() -> None:
    samples = measured([30_000] * 3, [4_000_000] * 3)
    samples = besides(samples, "one_core_recv", [30_000, 8_000_000, 7_900_000, 25_000, 8_100_000])
    samples = besides(samples, "one_core_probe", [8_000_000] * 5)
    # Other work of the host takes slices, too, but not in most of the exchanges.
    samples = besides(samples, "one_core_any", [9_000_000, 30_000, 8_000_000, 28_000, 31_000])
    twin = fit(samples)
    found = twin.layer("synthetic").sharing
    assert found is not None
    assert found.keeping == ("recv", "sendrecv", "Probe", "Mprobe")
    assert Twin.parse(twin.to_toml()).to_toml() == twin.to_toml()


def test_a_rank_that_loses_its_core_before_it_has_what_has_come_offers_it() -> None:
    samples = measured([30_000] * 3, [4_000_000] * 3)
    without = sharing(samples)
    assert without is not None
    assert not without.offers
    for taken_ns, offers in ((1_010_000, True), (260_000, True), (240_000, False), (900, False)):
        # Other work of the host, and an exchange in which it had come before, do not count.
        there = besides(samples, "one_core_there", [9_000_000, 800, taken_ns, taken_ns, 4_000_000], 1_000_000)
        found = sharing(there)
        assert found is not None
        assert found.offers is offers, taken_ns
