"""Size lists against the published ones; the steps of a launch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretwin.errors import InputError
from wiretwin.measure.schedule import (
    COLD_NS,
    PRTT_LIMIT,
    QUICK_BYTES,
    lin,
    lin_fine,
    netpipe,
    parse_sizes,
    powers,
    steps,
)


def test_netpipe_gives_the_published_sequence() -> None:
    """As printed by NetPIPE 2.x with its perturbation of 3."""
    published = "1 2 3 4 6 8 12 13 16 19 21 24 27 29 32 35 45 48 51 61 64 67 93 96 99 125 128 131"
    assert netpipe(last=128) == [int(size) for size in published.split()]


def test_netpipe_without_perturbation_is_powers_of_two_and_halfway() -> None:
    expected = sorted({2**k for k in range(21)} | {3 * 2**k for k in range(19)})
    assert netpipe(perturbation=0) == [size for size in expected if size <= 2**20]


def test_lin_doubles_from_4_bytes_to_one_mebibyte() -> None:
    assert lin() == [4 * 2**k for k in range(19)]
    assert lin()[-1] == 1 << 20


def test_lin_fine_is_4_plus_96_k() -> None:
    sizes = lin_fine()
    assert (sizes[0], sizes[1], sizes[-1]) == (4, 100, 8164)
    assert len(sizes) == 86


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("4", [4]),
        ("64KiB,4,4B", [4, 65536]),
        ("1,4,1KiB..4KiB", [1, 4, 1024, 2048, 4096]),
        ("3..13", [3, 6, 12]),
        ("4..200+96", [4, 100, 196]),
        ("1.5KiB..8kB", [1536, 3072, 6144]),
        ("1KB,64k,1M", [1000, 65536, 1 << 20]),
        ("powers", powers()),
        ("lin-fine,1MiB", [*lin_fine(), 1 << 20]),
    ],
)
def test_size_lists_are_read(text: str, sizes: list[int]) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-4", "'-4' is not a size list"),
        ("", "'' is not a size list"),
        ("4,,8", "'' is not a size list"),
        ("nosuch", "'nosuch' is not a size list"),
        ("0", "'0' is out of range"),
        ("65MiB", "'65MiB' is out of range"),
        ("3GiB", "'3GiB' is out of range"),
        ("1.5", "'1.5' is out of range"),
        ("4 parsec", "'4 parsec' is not a size"),
        ("8..4", "'8..4' runs backwards"),
        ("1..1MiB+1", "gives 1048576 sizes"),
    ],
)
def test_a_wrong_size_list_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_sizes(text)
    assert str(caught.value).startswith("--sizes: ")
    assert words in str(caught.value)
    assert "allowed: " in str(caught.value)


@given(st.lists(st.integers(1, 1 << 26), min_size=1, max_size=50))
def test_a_list_of_sizes_is_sorted_and_has_each_once(sizes: list[int]) -> None:
    assert parse_sizes(",".join(map(str, sizes))) == sorted(set(sizes))


def test_curves_are_round_trips_and_two_writes() -> None:
    schedule = steps(lin(), "curves", seconds=1.9)
    expected = [("echo", size) for size in lin()] + [("two_write", 64), ("two_write", 1024)]
    assert [(step.loop, step.bytes) for step in schedule] == expected
    assert {step.budget_ms for step in schedule if step.loop == "echo"} == {90.0}


def test_one_byte_is_never_split_in_two_writes() -> None:
    assert {step.loop for step in steps([1], "fit", seconds=1)} >= {"echo", "prtt"}
    assert not any(step.loop == "two_write" for step in steps([1], "fit", seconds=1))
    assert [step.bytes for step in steps([1, 2], "curves", seconds=1) if step.loop == "two_write"] == [2]


def test_a_schedule_stays_within_its_time_and_the_layers_limit() -> None:
    schedule = steps(netpipe(perturbation=0), "fit", seconds=2.0, max_bytes=65507)
    assert sum(step.budget_ms for step in schedule) <= 2001
    assert max(step.bytes for step in schedule) == 49152
    assert {step.loop for step in schedule} == {
        "echo",
        "two_write",
        "call",
        "send_busy",
        "recv_busy",
        "stream",
        "prtt",
    }
    echo = sum(step.budget_ms for step in schedule if step.loop == "echo")
    assert echo == pytest.approx(1000, rel=0.01)


def test_parametrised_round_trips_have_one_many_and_delayed() -> None:
    schedule = steps([8, 1 << 20], "fit", seconds=1, delays_ns={8: 700, 1 << 20: 9})
    found = [(step.bytes, step.messages, step.delay_ns) for step in schedule if step.loop == "prtt"]
    assert found == [(8, 1, 0), (8, 16, 0), (8, 16, 700)]
    assert all(size <= PRTT_LIMIT for size, _, _ in found)


def test_a_launch_of_round_trips_alone_has_no_other_loop() -> None:
    schedule = steps(netpipe(perturbation=0), "fit", seconds=0.1, short=True, whole=False)
    assert [(step.loop, step.bytes) for step in schedule] == [("echo", n) for n in netpipe(perturbation=0)]


def test_every_launch_has_calls_behind_computation_where_a_layer_has_that_loop() -> None:
    loops = frozenset({"echo", "cold"})
    few, more = (
        steps([8, 64], "fit", seconds=0.1, short=True, whole=False, loops=one)
        for one in (loops - {"cold"}, loops)
    )
    assert [(step.loop, step.delay_ns) for step in more if step not in few] == [
        ("cold", work_ns) for work_ns in COLD_NS
    ]
    assert [step for step in more if step.loop == "echo"] == few


def test_loops_that_lines_are_fitted_to_have_few_of_the_large_sizes() -> None:
    sizes = parse_sizes("1..4MiB")
    for loop in ("send_busy", "recv_busy", "stream"):
        found = [step.bytes for step in steps(sizes, "fit", seconds=0.1) if step.loop == loop]
        quick = [1 << power for power in range(0, 17, 2)]
        assert found == [*quick, 1 << 17, 1 << 21, 1 << 22]


def test_no_delayed_round_trip_without_a_known_delay() -> None:
    assert not any(step.delay_ns for step in steps([8, 64], "fit", seconds=1))


def test_a_schedule_without_a_usable_size_is_empty() -> None:
    assert steps([1 << 20], "fit", seconds=1, max_bytes=1000) == []


def test_loops_that_a_layer_lacks_are_left_out() -> None:
    schedule = steps([4, 64], "fit", seconds=1.0, loops=frozenset({"echo", "two_write"}))
    assert [(step.loop, step.bytes) for step in schedule] == [("echo", 4), ("echo", 64), ("two_write", 64)]
    assert sum(step.budget_ms for step in schedule) == pytest.approx(1000)


def test_a_short_launch_streams_at_half_of_many_sizes_and_at_all_of_few() -> None:
    def streamed(sizes: list[int], short: bool) -> list[int]:
        made = steps(sizes, "fit", seconds=0.1, short=short)
        return [step.bytes for step in made if step.loop == "stream"]

    few, many = [4, 64, 1024, 16384, 1 << 20], parse_sizes("netpipe-base")
    assert streamed(few, True) == streamed(few, False)
    whole, short = streamed(many, False), streamed(many, True)
    assert len(short) < 0.7 * len(whole)
    # Long messages have few sizes as it is, and a line of their own.
    assert [size for size in short if size > QUICK_BYTES] == [size for size in whole if size > QUICK_BYTES]
