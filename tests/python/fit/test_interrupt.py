"""What a message that comes takes of a rank that computes, as fitted."""

from __future__ import annotations

import polars as pl
import pytest
from fit_help import HOST

from wiretwin.fit.api import fit
from wiretwin.fit.synthetic import Lines, Machine
from wiretwin.twin import Interrupt, Twin


def interrupted(
    taken_ns: dict[int, list[int]], *, launches: int = 3, machine: Machine = HOST
) -> pl.DataFrame:
    """Return samples of a layer, and with each launch what its receiver lost, by the message's length."""
    samples = machine.samples(launches=launches)
    first = samples.row(0, named=True)
    rows = [
        first | {"launch": launch, "loop": "interrupt", "bytes": size, "messages": 1, "batch": 1}
        | {"index": index, "value_ns": value + 10 * launch}
        for launch in range(1, launches + 1)
        for size, values in taken_ns.items()
        for index, value in enumerate(values)
    ]  # fmt: skip
    return pl.concat([samples, pl.DataFrame(rows, schema=samples.schema)])


def found(samples: pl.DataFrame) -> Interrupt | None:
    return fit(samples).layer("synthetic").interrupt


def test_it_is_a_line_through_the_typical_losses() -> None:
    # The first iteration is none of them; nor does it matter what else interrupts a rank now and then.
    samples = interrupted(
        {size: [999_000, 14_000 + 8 * size, 14_000 + 8 * size, 700_000] for size in (4, 1024, 8192)}
    )
    line = found(samples)
    assert line is not None
    assert line.takes_us.value == pytest.approx(14.02)
    assert line.takes_us.low <= 14.01
    assert line.takes_us.high >= 14.03
    assert line.per_byte_ns.value == pytest.approx(8.0)
    assert line.takes_us.launches == 3
    assert Twin.parse(fit(samples).to_toml()).to_toml() == fit(samples).to_toml()


def test_messages_that_interrupt_nobody_take_nothing() -> None:
    line = found(interrupted({4: [0] * 5, 1024: [0] * 5}))
    assert line is not None
    assert line.takes_us.value < 0.05
    assert line.per_byte_ns.value == 0.0


def test_messages_that_wait_for_their_receiver_are_left_out() -> None:
    waits = Machine(
        send=Lines(((0, 300.0, 0.02), (4096, 40_000.0, 0.02))),
        recv=Lines(((0, 400.0, 0.03), (4096, 40_000.0, 0.03))),
        latency=HOST.latency,
        gap=HOST.gap,
        call_ns=90.0,
    )
    taken = {4: [10_000] * 5, 1024: [10_000 + 2 * 1020] * 5, 8192: [10_000] * 5}
    samples = interrupted(taken, machine=waits)
    layer = fit(samples).layer("synthetic")
    assert layer.rendezvous_from_bytes is not None
    assert layer.rendezvous_from_bytes <= 8192
    assert layer.interrupt is not None
    assert layer.interrupt.per_byte_ns.value == pytest.approx(2.0)


def test_one_size_or_one_launch_makes_no_line() -> None:
    assert found(interrupted({4: [10_000] * 5})) is None
    assert found(HOST.samples(launches=3)) is None
    few = interrupted({4: [10_000] * 5, 1024: [12_000] * 5})
    assert found(few.filter((pl.col("loop") != "interrupt") | (pl.col("launch") == 1))) is None


def test_what_a_kernel_at_work_saves_is_told_by_several() -> None:
    alone = interrupted({4: [20_000] * 5, 1024: [21_020] * 5})
    several = interrupted({4: [20_000 + 3 * 8_000] * 5}).filter(pl.col("loop") == "interrupt")
    samples = pl.concat([alone, several.with_columns(messages=pl.lit(4, several.schema["messages"]))])
    line = found(samples)
    assert line is not None
    assert line.takes_us.value == pytest.approx(20.016)
    assert line.saved_us is not None
    assert line.saved_us.value == pytest.approx(12.013, abs=0.01)
    assert Twin.parse(fit(samples).to_toml()).to_toml() == fit(samples).to_toml()
    only = found(alone)
    assert only is not None
    assert only.saved_us is None
