"""The whole fit: from samples to a twin that says what the machine is, or an error that says what lacks."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import wiretwin.fit
from wiretwin.errors import InputError
from wiretwin.fit import fit, rank_layers, size_table, sizes_within
from wiretwin.fit.stats import summarise
from wiretwin.fit.synthetic import HALF_OCTAVES, Lines, Machine, Noise
from wiretwin.results import Clock, Launch, Layer, Result
from wiretwin.twin import Twin

EAGER = Machine(
    send=Lines(((0, 300.0, 0.02), (8192, 1500.0, 0.02))),
    recv=Lines(((0, 400.0, 0.03), (8192, 700.0, 0.01))),
    latency=Lines(((0, 200.0, 0.01),)),
    gap=Lines(((0, 500.0, 0.05), (8192, 2000.0, 0.03))),
    call_ns=90.0,
)
PARTS = ("overhead_send", "latency", "overhead_recv")


@pytest.fixture(scope="module")
def noisy_samples() -> pl.DataFrame:
    return EAGER.samples(noise=Noise(), seed=11)


def test_a_known_machine_comes_back_from_noisy_samples(noisy_samples: pl.DataFrame) -> None:
    layer = fit(noisy_samples).layer("synthetic")
    assert layer.t_0_us.low <= float(EAGER.half_round_trip(4)) / 1000 <= layer.t_0_us.high
    assert layer.call_ns is not None
    assert layer.call_ns.low <= 90 <= layer.call_ns.high
    assert layer.rendezvous_from_bytes == 8192
    truth = {
        "half_round_trip": EAGER.half_round_trip(HALF_OCTAVES),
        "overhead_send": EAGER.send(HALF_OCTAVES),
        "overhead_recv": EAGER.recv(HALF_OCTAVES),
        "gap": EAGER.gap(HALF_OCTAVES),
    }
    for quantity, times in truth.items():
        share = layer.curve(quantity, HALF_OCTAVES) / times - 1  # type: ignore[arg-type]
        assert np.abs(share).max() < 0.08, quantity


WITH_FETCH = ("echo", "call", "send_busy", "recv_busy", "stream", "prtt", "fetch")


def test_launches_of_round_trips_alone_narrow_the_curve_and_leave_the_ends_as_they_are() -> None:
    samples = EAGER.samples(launches=7, noise=Noise(), seed=11)
    alone = pl.col("launch").is_in([4, 5, 7]) & (pl.col("loop") != "echo")
    layer = fit(samples.filter(~alone)).layer("synthetic")
    assert layer.t_0_us.launches == 7
    assert layer.checks is None or layer.checks.endpoints_lack is None
    truth = {
        "half_round_trip": EAGER.half_round_trip(HALF_OCTAVES),
        "overhead_send": EAGER.send(HALF_OCTAVES),
        "overhead_recv": EAGER.recv(HALF_OCTAVES),
        "gap": EAGER.gap(HALF_OCTAVES),
    }
    for quantity, times in truth.items():
        share = layer.curve(quantity, HALF_OCTAVES) / times - 1  # type: ignore[arg-type]
        assert np.abs(share).max() < 0.08, quantity


def test_what_a_receiver_takes_by_itself_comes_back() -> None:
    truth = Lines(((0, 700.0, 0.02), (8192, 1500.0, 0.06)))
    layer = fit(replace(EAGER, fetch=truth).samples(noise=Noise(), seed=12, loops=WITH_FETCH)).layer(
        "synthetic"
    )
    assert layer.rendezvous_from_bytes == 8192
    large = HALF_OCTAVES[HALF_OCTAVES >= 8192]
    share = layer.curve("fetch", large) / truth(large) - 1
    assert np.abs(share).max() < 0.08
    assert (
        Twin.parse(fit(replace(EAGER, fetch=truth).samples(loops=WITH_FETCH)).to_toml())
        .layer("synthetic")
        .fetch
    )


def test_a_receive_that_waited_for_its_sender_is_no_fetch() -> None:
    assert fit(EAGER.samples(noise=Noise(), seed=13, loops=WITH_FETCH)).layer("synthetic").fetch == ()
    # One launch in three whose sender was kept from its core changes nothing.
    truth = Lines(((0, 700.0, 0.02), (8192, 1500.0, 0.06)))
    samples = replace(EAGER, fetch=truth).samples(launches=3, loops=WITH_FETCH)
    spoilt = (pl.col("loop") == "fetch") & (pl.col("launch") == 2)
    late = samples.with_columns(
        value_ns=pl.when(spoilt).then(pl.col("value_ns") + 10_000_000).otherwise(pl.col("value_ns"))
    )
    found = fit(late).layer("synthetic")
    assert found.at("fetch", 1 << 20) == pytest.approx(float(truth(1 << 20)), rel=0.02)


@pytest.mark.parametrize("stream", ["socket/unix", "shm"])
def test_a_byte_stream_has_no_rendezvous(noisy_samples: pl.DataFrame, stream: str) -> None:
    renamed = noisy_samples.with_columns(layer=pl.lit(stream))
    assert fit(renamed).layer(stream).rendezvous_from_bytes is None


def test_the_parts_add_up_exactly_at_every_size(noisy_samples: pl.DataFrame) -> None:
    layer = Twin.parse(fit(noisy_samples).to_toml()).layer("synthetic")
    sizes = np.unique(np.logspace(0, 24, 500, base=2).astype(np.int64))
    parts = sum(layer.curve(part, sizes) for part in PARTS)  # type: ignore[arg-type]
    np.testing.assert_allclose(parts, layer.curve("half_round_trip", sizes), rtol=1e-6, atol=1e-3)


def test_overlapping_ends_are_kept_or_reduced_and_add_up_either_way() -> None:
    overlapping = Machine(EAGER.send, EAGER.recv, Lines(((0, -250.0, 0.01),)), EAGER.gap)
    samples = overlapping.samples(noise=Noise(), seed=3)
    sizes = [0, 4, 100, 8191, 8192, 1 << 20]
    kept, reduced = (fit(samples, overlap=o).layer("synthetic") for o in ("keep", "reduce"))
    for layer in (kept, reduced):
        parts = sum(layer.curve(part, sizes) for part in PARTS)  # type: ignore[arg-type]
        np.testing.assert_allclose(parts, layer.curve("half_round_trip", sizes), rtol=1e-6, atol=1e-3)
        assert layer.checks is not None
        assert layer.checks.negative_latency_ns == pytest.approx(250, rel=0.2)
    assert kept.at("latency", 4) == pytest.approx(-250, rel=0.2)
    assert kept.at("overhead_send", 4) == pytest.approx(300, rel=0.1)
    assert reduced.at("latency", 0) == 0
    assert reduced.at("overhead_send", 4) == pytest.approx(300 * 450 / 700, rel=0.1)
    assert kept.checks is not None
    Twin.parse(fit(samples, overlap="keep").to_toml())


@pytest.mark.parametrize(("layer", "streams"), [("shm", True), ("socket/tcp", True), ("synthetic", False)])
def test_ends_that_copy_at_once_are_also_told_alone_where_a_buffer_is_between(
    layer: str, streams: bool
) -> None:
    overlapping = Machine(EAGER.send, EAGER.recv, Lines(((0, -250.0, -0.02),)), EAGER.gap)
    samples = overlapping.samples(noise=Noise(), seed=3).with_columns(layer=pl.lit(layer))
    found = Twin.parse(fit(samples).to_toml()).layer(layer)
    assert all(line.per_byte_ns.value >= 0 for part in PARTS for line in found.segments(part))
    assert (bool(found.busy_send), bool(found.busy_recv)) == (streams, streams)
    if streams:
        for size in (4, 1 << 16, 1 << 20):
            assert found.at("busy_send", size) == pytest.approx(float(EAGER.send(size)), rel=0.1)
            assert found.at("busy_recv", size) == pytest.approx(float(EAGER.recv(size)), rel=0.1)
    apart = fit(replace(EAGER).samples(noise=Noise(), seed=3).with_columns(layer=pl.lit(layer))).layer(layer)
    assert apart.busy_send == ()


def test_segments_count_their_samples_and_breaks_have_intervals(noisy_samples: pl.DataFrame) -> None:
    layer = fit(noisy_samples).layer("synthetic")
    first, second = layer.half_round_trip
    assert second.from_bytes_low is not None
    assert second.from_bytes_low <= 8192 <= (second.from_bytes_high or 0)
    assert first.samples + second.samples == HALF_OCTAVES.size * 5 * 9
    assert layer.latency[0].samples == 0
    assert layer.t_0_us.samples == 5 * 9


def test_the_same_samples_give_the_same_twin_in_any_order(noisy_samples: pl.DataFrame) -> None:
    shuffled = noisy_samples.sample(fraction=1.0, shuffle=True, seed=5)
    assert fit(shuffled).to_toml() == fit(noisy_samples).to_toml()
    assert fit(EAGER.samples(noise=Noise(), seed=12)).source.digest != fit(noisy_samples).source.digest


def test_a_twin_is_written_and_read_back(noisy_samples: pl.DataFrame, tmp_path: Path) -> None:
    twin = fit(noisy_samples, host={"name": "box", "cores": 2, "idle": "yield"})
    twin.write(tmp_path / "twin.toml")
    back = Twin.read(tmp_path / "twin.toml")
    assert back.to_toml() == twin.to_toml()
    assert (back.host.name, back.host.idle) == ("box", "yield")


def test_a_curve_without_endpoint_loops_is_a_curve() -> None:
    samples = EAGER.samples(loops=("echo",))
    layer = fit(samples).layer("synthetic")
    assert layer.half_round_trip
    assert not layer.overhead_send
    assert not layer.latency
    with pytest.raises(
        InputError, match=r"latency was not fitted .* \(not measured enough: prtt .* recv_busy"
    ):
        layer.at("latency", 4)
    with pytest.raises(InputError) as caught:
        fit(samples, endpoints="require")
    assert "layer synthetic: was measured too little" in str(caught.value)
    assert "prtt (messages above 1, delay_ns longer than a round trip) or send_busy: 0 sizes" in str(
        caught.value
    )
    assert "recv_busy: 0 sizes with at least 2 launches, needed are 3" in str(caught.value)


def test_two_launches_that_leave_an_interval_open_are_fitted() -> None:
    samples = EAGER.samples(launches=2, loops=("echo",))
    last = (pl.col("launch") == samples["launch"].max()) & (pl.col("bytes") > 1024)
    apart = samples.with_columns(value_ns=pl.when(last).then(10_000).otherwise(1) * pl.col("value_ns"))
    layer = fit(apart, endpoints="skip").layer("synthetic")
    assert layer.r_max_MB_s.high == layer.r_max_MB_s.RANGE[1]
    assert layer.r_max_MB_s.low < layer.r_max_MB_s.value < layer.r_max_MB_s.high


def test_endpoints_can_be_skipped(noisy_samples: pl.DataFrame) -> None:
    layer = fit(noisy_samples, endpoints="skip").layer("synthetic")
    assert layer.half_round_trip
    assert not layer.overhead_send
    assert not layer.gap


def test_missing_is_listed_for_the_loop_that_lacks_sizes() -> None:
    samples = EAGER.samples()
    few = samples.filter((pl.col("loop") != "recv_busy") | pl.col("bytes").is_in([1, 64]))
    (lacking,) = wiretwin.fit.missing_for_endpoints(summarise(few))
    assert lacking == "recv_busy: 2 sizes with at least 2 launches, needed are 3"
    assert wiretwin.fit.missing_for_endpoints(summarise(samples)) == []


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (pl.col("launch") == 1, "layer synthetic: has 1 launch with loop echo"),
        (pl.col("loop") == "call", "layer synthetic: has 0 launches with loop echo"),
        (pl.col("bytes") < 4, "layer synthetic: has loop echo at 1, 2 bytes only; allowed: loop echo in at"),
        (pl.col("value_ns") == 0, "holds no samples; allowed: at least two launches of one layer"),
    ],
)
def test_too_little_data_is_refused_by_layer_loop_and_sizes(keep: pl.Expr, said: str) -> None:
    with pytest.raises(InputError) as caught:
        fit(EAGER.samples().filter(keep))
    assert said in str(caught.value)


def test_a_layer_with_one_launch_is_left_out_by_name_and_the_others_are_fitted() -> None:
    samples = pl.concat(
        [
            EAGER.samples(layer="known", launches=3),
            EAGER.samples(layer="seen-once", launches=1).with_columns(pl.col("launch") + 10),
        ]
    )
    twin = fit(samples)
    assert list(twin.layers) == ["known"]
    assert twin.layers == fit(samples, layers=["known"]).layers
    lacks = "has 1 launch with loop echo; an interval between launches needs more"
    assert twin.source.left_out == {"seen-once": lacks}
    assert Twin.parse(twin.to_toml()).source == twin.source
    with pytest.raises(InputError, match=f"layer seen-once: {lacks}"):
        fit(samples, layers=["known", "seen-once"])
    with pytest.raises(InputError, match=f"layer seen-once: {lacks}"):
        fit(samples.filter(pl.col("layer") == "seen-once"))


def test_round_trips_of_no_time_are_not_used() -> None:
    samples = EAGER.samples()
    coarse = pl.when(pl.col("bytes") < 8).then(0).otherwise(pl.col("value_ns")).alias("value_ns")
    layer = fit(samples.with_columns(coarse), endpoints="skip").layer("synthetic")
    assert layer.t_0_bytes == 8
    with pytest.raises(InputError, match="has 0 launches with loop echo"):
        fit(samples.with_columns(value_ns=0))


def test_wrong_arguments_are_named(noisy_samples: pl.DataFrame) -> None:
    with pytest.raises(InputError, match="layers: 'shm' was not measured; allowed: synthetic"):
        fit(noisy_samples, layers=["shm"])
    with pytest.raises(InputError, match=r"confidence: 1\.5"):
        fit(noisy_samples, confidence=1.5)
    with pytest.raises(InputError, match="tolerance: 0 "):
        fit(noisy_samples, tolerance=0)
    with pytest.raises(InputError, match=r"host\.colour: is not known; allowed: name"):
        fit(noisy_samples, host={"colour": 1})


def test_hundreds_of_sizes_are_fitted_alike() -> None:
    sizes = np.unique(np.concatenate([np.arange(1, 1200), HALF_OCTAVES]))
    layer = fit(EAGER.samples(sizes=sizes, launches=2, each=1, loops=("echo",))).layer("synthetic")
    share = layer.curve("half_round_trip", HALF_OCTAVES) / EAGER.half_round_trip(HALF_OCTAVES) - 1
    assert np.abs(share).max() < 0.02


def test_a_result_folder_gives_host_clock_and_digest(tmp_path: Path) -> None:
    result = Result.create(
        tmp_path / "r",
        seed=1,
        created_utc="2026-02-03T04:05:06Z",
        host={"name": "box", "cores": 2, "system": "Linux 6", "virtualisation": "kvm", "memory_MiB": 1},
        layers=[
            Layer(layer="shm", name="shm", clock=Clock(name="c", cost_ns=40.0, resolution_ns=1.0)),
        ],
    )
    samples = EAGER.samples(layer="shm", launches=3)
    for number in (1, 2, 3):
        part = samples.filter(pl.col("launch") == number).drop("launch", "layer")
        result.append(
            Launch(launch=number, name="shm", order=0, started_utc="", seconds=1.0, status="ok"),
            {name: part[name].to_list() for name in part.columns},
        )
    result.finish("complete")
    opened = Result.open(tmp_path / "r")
    twin = wiretwin.fit(opened)  # type: ignore[operator]
    assert (twin.host.name, twin.host.cores, twin.host.kernel) == ("box", 2, "Linux 6")
    assert twin.created_utc == "2026-02-03T04:05:06Z"
    assert twin.source.digest == opened.digest()
    assert (twin.source.launches, twin.source.samples) == (3, samples.height)
    without = fit(samples, layers=["shm"]).layer("shm").at("overhead_recv", 4)
    assert twin.layer("shm").at("overhead_recv", 4) == pytest.approx(without - 40, abs=2)
    assert fit(str(tmp_path / "r")) == fit(tmp_path / "r") == fit(opened)


SLOW = Machine(
    send=Lines(((0, 500.0, 0.05), (8192, 2500.0, 0.05))),
    recv=Lines(((0, 700.0, 0.06), (8192, 1700.0, 0.03))),
    latency=Lines(((0, 400.0, 0.03),)),
    gap=Lines(((0, 900.0, 0.1), (8192, 4000.0, 0.09))),
    call_ns=90.0,
)


def changing(
    folder: Path,
    machines: list[Machine],
    crossings: list[tuple[float, float] | None],
    only_echo: frozenset[int] | set[int] = frozenset(),
) -> Result:
    """A result whose launches were made on one machine or another, some without the loops of the ends."""
    result = Result.create(
        folder, seed=1, created_utc="2026-02-03T04:05:06Z", layers=[Layer(layer="shm", name="shm")]
    )
    count = len(crossings)
    made = [machine.samples(launches=count, noise=Noise(), seed=5) for machine in machines]
    for number, (samples, crossing) in enumerate(zip(made, crossings, strict=True), 1):
        kept = (pl.col("loop") == "echo") | (number not in only_echo)
        part = samples.filter((pl.col("launch") == number) & kept).drop("launch", "layer")
        record = Launch(
            launch=number,
            name="shm",
            order=number,
            started_utc="",
            seconds=1.0,
            status="ok",
            crossing_ns=crossing,
        )
        result.append(record, {name: part[name].to_list() for name in part.columns})
    result.finish("complete")
    return Result.open(folder)


def test_the_states_of_a_host_are_fitted_apart(tmp_path: Path) -> None:
    near, far, between = (80.0, 90.0), (400.0, 430.0), (80.0, 400.0)
    machines = [EAGER, SLOW, EAGER, SLOW, SLOW, EAGER, SLOW]
    layer = fit(changing(tmp_path / "two", machines, [near, far, near, far, far, near, between])).layer("shm")
    assert [state.name for state in layer.states] == ["near", "far"]
    for state, machine, crossing in zip(layer.states, (EAGER, SLOW), (near, far), strict=True):
        assert (state.crossing_ns.low, state.crossing_ns.high) == crossing
        assert state.t_0_us.launches == 3
        for size in (4, 1000, 100_000):
            assert state.at("half_round_trip", size) == pytest.approx(
                float(machine.half_round_trip(size)), rel=0.1
            )
    assert layer.crossing_ns is not None
    assert (layer.crossing_ns.low, layer.crossing_ns.high) == (80.0, 430.0)
    assert layer.t_0_us.launches == 7


def test_a_state_without_overheads_of_its_own_has_those_of_all_launches(tmp_path: Path) -> None:
    near, far = (80.0, 90.0), (400.0, 430.0)
    machines = [EAGER, EAGER, SLOW, SLOW, SLOW]
    layer = fit(changing(tmp_path / "few", machines, [near, near, far, far, far], {3, 4})).layer("shm")
    close, away = layer.states
    assert close.checks is not None
    assert close.checks.endpoints_of is None
    assert away.checks is not None
    assert away.checks.endpoints_of == "all states"
    assert away.t_0_us.launches == 3
    assert all(math.isfinite(one.base_ns.low + one.base_ns.high) for one in away.latency)
    for size in (4, 1000, 100_000):
        parts = [away.at(part, size) for part in ("overhead_send", "latency", "overhead_recv")]
        assert sum(parts) == pytest.approx(float(SLOW.half_round_trip(size)), rel=0.1)


def test_a_distance_that_changes_no_cost_makes_no_state(tmp_path: Path) -> None:
    crossings: list[tuple[float, float] | None] = [(80.0, 80.0), (400.0, 400.0)] * 2
    assert fit(changing(tmp_path / "same", [EAGER] * 4, crossings)).layer("shm").states == ()
    unknown = fit(changing(tmp_path / "unknown", [EAGER, SLOW] * 2, [None] * 4)).layer("shm")
    assert (unknown.states, unknown.crossing_ns) == ((), None)


def test_a_state_seen_once_is_in_the_whole_only(tmp_path: Path) -> None:
    crossings: list[tuple[float, float] | None] = [(80.0, 80.0)] * 3 + [(400.0, 400.0)]
    layer = fit(changing(tmp_path / "once", [EAGER] * 3 + [SLOW], crossings)).layer("shm")
    assert layer.states == ()
    assert layer.t_0_us.launches == 4


def test_a_stream_that_seems_to_take_no_time_bounds_nothing() -> None:
    samples = EAGER.samples(launches=3)
    spoilt = (pl.col("loop") == "stream") & (pl.col("bytes") == 4) & (pl.col("launch") == 2)
    quick = samples.with_columns(
        value_ns=pl.when(spoilt).then(1).otherwise(pl.col("value_ns")).cast(pl.UInt64)
    )
    layer, whole = (fit(some).layer("synthetic") for some in (quick, samples))
    assert layer.at("overhead_recv", 4) == pytest.approx(whole.at("overhead_recv", 4), rel=0.05)
    checks = layer.checks
    assert checks is None or (checks.recv_busy_over_stream_percent or 0.0) >= 0.0


def two_layers(faster: float, noise: Noise, seed: int = 0) -> pl.DataFrame:
    quick = Machine(
        send=Lines(((0, 300.0 * faster, 0.0),)),
        recv=Lines(((0, 300.0 * faster, 0.0),)),
        latency=Lines(((0, 400.0 * faster, 0.0),)),
        gap=Lines(((0, 500.0, 0.0),)),
    )
    slow = Machine(
        send=Lines(((0, 300.0, 0.0),)),
        recv=Lines(((0, 300.0, 0.0),)),
        latency=Lines(((0, 400.0, 0.0),)),
        gap=Lines(((0, 500.0, 0.0),)),
    )
    sizes = [4, 1024]
    options = {"sizes": sizes, "loops": ("echo",), "noise": noise}
    return pl.concat(
        [
            quick.samples(layer="quick", seed=seed, **options),  # type: ignore[arg-type]
            slow.samples(layer="slow", seed=seed + 1000, **options),  # type: ignore[arg-type]
        ]
    )


def test_layers_are_ranked_where_intervals_separate() -> None:
    ranks = rank_layers(two_layers(0.5, Noise()))
    assert ranks.select("bytes", "layer", "rank").rows() == [
        (4, "quick", 1),
        (4, "slow", 2),
        (1024, "quick", 1),
        (1024, "slow", 2),
    ]
    assert ranks["tied_with"].to_list() == [[], [], [], []]


def test_layers_that_cannot_be_told_apart_are_tied() -> None:
    ranks = rank_layers(two_layers(0.99, Noise(launch=0.1)))
    assert ranks["rank"].to_list() == [1, 1, 1, 1]
    assert sorted(ranks["tied_with"].to_list()) == [["quick"], ["quick"], ["slow"], ["slow"]]
    assert rank_layers(two_layers(0.5, Noise()), layers=["slow"])["rank"].to_list() == [1, 1]


def test_equal_layers_are_seldom_ranked_apart() -> None:
    wrong = 0
    for seed in range(100):
        ranks = rank_layers(two_layers(1.0, Noise(spoilt=0.0), seed).filter(pl.col("bytes") == 4))
        wrong += ranks["rank"].max() == 2
    # Two 95 % intervals miss each other less often than one of them misses the truth.
    assert wrong <= 3


def test_more_sizes_are_known_well_with_more_launches(noisy_samples: pl.DataFrame) -> None:
    table = size_table(noisy_samples)
    widths = sorted((table["high_us"] - table["low_us"]) / 2 / table["value_us"])
    middle = widths[len(widths) // 2]
    ((_, sizes, within),) = sizes_within(noisy_samples, middle).rows()
    assert (sizes, within) == (len(widths), len(widths) // 2 + 1)
    two = noisy_samples.filter(pl.col("launch") <= 2)
    assert sizes_within(two, middle)["within"][0] < within
    one = noisy_samples.filter(pl.col("launch") == 1)
    assert sizes_within(one)["within"][0] == 0


def test_a_size_table_of_another_loop_is_not_halved(noisy_samples: pl.DataFrame) -> None:
    table = size_table(EAGER.samples(), loop="recv_busy").filter(pl.col("bytes") == 1)
    assert table["value_us"][0] == pytest.approx(float(EAGER.recv(1)) / 1000, rel=1e-2)
    half = size_table(EAGER.samples(batch=8)).filter(pl.col("bytes") == 4)
    assert half["value_us"][0] == pytest.approx(float(EAGER.half_round_trip(4)) / 1000, rel=1e-3)


@pytest.mark.parametrize(
    ("column", "loop", "said"),
    [
        ("value_ns", "call", "launch 1, synthetic, call, 0 bytes: 'value_ns"),
        ("value_ns", "recv_busy", "launch 1, synthetic, recv_busy, 1 bytes: 'value_ns"),
        ("delay_ns", "prtt", "launch 1, synthetic, prtt, 1 bytes: 'delay_ns"),
        (
            "bytes",
            "echo",
            "launch 1, synthetic, echo, 18446744073709551615 bytes: 'bytes",
        ),
    ],
)
def test_a_sample_that_nothing_can_have_taken_is_rejected_by_its_place(
    column: str, loop: str, said: str, noisy_samples: pl.DataFrame
) -> None:
    there = (pl.col("loop") == loop) & (pl.col("launch") == 1)
    largest = pl.lit(2**64 - 1, dtype=pl.UInt64)
    samples = noisy_samples.with_columns(pl.when(there).then(largest).otherwise(column).alias(column))
    with pytest.raises(InputError) as caught:
        fit(samples)
    assert str(caught.value).startswith(f"{said} 18446744073709551615 ")


def test_samples_that_no_twin_can_hold_are_rejected_by_their_layer(noisy_samples: pl.DataFrame) -> None:
    # Within what a launch may take, by itself; a million times what a message takes otherwise.
    there = pl.col("loop") == "recv_busy"
    hours = pl.lit(9 * 10**13, dtype=pl.UInt64)
    samples = noisy_samples.with_columns(value_ns=pl.when(there).then(hours).otherwise("value_ns"))
    with pytest.raises(InputError, match="layer synthetic: the samples give what no twin can hold: Checks"):
        fit(samples)
