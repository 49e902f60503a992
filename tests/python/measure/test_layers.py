"""Layer names, variants and quantities as a person writes them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from wiretwin.errors import InputError
from wiretwin.quantity import format_size, format_time, parse_rate, parse_share, parse_time
from wiretwin.stacks.layers import ALL_LOOPS, LAYERS, parse_layer, parse_layers
from wiretwin.stacks.word import OVER_MESSAGES

ROOT = Path(__file__).resolve().parents[3]


def test_the_times_and_classes_of_the_adaptation_layer_are_words() -> None:
    words = "T_M40ms+T_m500us+T_L200ms+monitor10ms+ordinary0+backup46"
    options = parse_layer(f"pcaal/udp+{words}").options
    times = {"high_ms": 40.0, "low_ms": 0.5, "loss_ms": 200.0, "interval_ms": 10.0}
    assert options == {"wait": "block", **times, "dscp_ordinary": 0, "dscp_backup": 46}
    for wrong in ("T_M40", "T_M0ms", "backup64", "monitor100000ms"):
        with pytest.raises(InputError, match="has no variant"):
            parse_layer(f"pcaal/udp+{wrong}")


def test_each_configuration_has_one_name() -> None:
    one, two = parse_layers("socket/tcp+spin+nagle"), parse_layers(" socket/tcp+nagle+spin ")
    assert one == two
    assert one[0].name == "socket/tcp+nagle+spin"
    assert one[0].options["wait"] == "spin"
    assert one[0].options["nodelay"] is False


def test_nagle_leaves_only_the_loops_that_do_not_stall() -> None:
    plain, nagle = parse_layers("socket/tcp,socket/tcp+nagle")
    assert plain.loops == ALL_LOOPS | OVER_MESSAGES
    assert nagle.loops == {"echo", "two_write"}


def test_words_with_a_number_set_both_buffers() -> None:
    (found,) = parse_layers("socket/unix+buf64k")
    assert found.options["send_buffer_bytes"] == found.options["receive_buffer_bytes"] == 65536


def test_all_stands_for_every_layer_and_duplicates_fall_together() -> None:
    unasked = [name for name, kind in LAYERS.items() if not kind.opt_in]
    assert [found.name for found in parse_layers("all")] == unasked
    assert [found.name for found in parse_layers("shm,shm,socket/tcp")] == ["shm", "socket/tcp"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nosuch", "'nosuch' is no layer; "),
        (
            "nosuch",
            "allowed: socket/tcp, socket/udp, socket/unix, shm, pcaal/udp, mpi-mvich/shm, mpi-mvich/udp, ",
        ),
        ("tcp", "'tcp' is no layer (did you mean socket/tcp?); allowed: "),
        ("mpi/mpch", "'mpi/mpch' is no layer (did you mean mpi/mpich"),
        ("", "'' names no layer; allowed: all, socket/tcp"),
        ("socket/tcp+fast", "has no variant '+fast'; allowed: for socket/tcp: +spin, +nagle, +bufNk"),
        ("socket/unix+nagle", "has no variant '+nagle'; allowed: for socket/unix: +spin, +bufNk"),
        ("mpi4py/mpich+spin", "has no variant '+spin'; allowed: for mpi4py/mpich: +debian"),
        ("socket/tcp+buf64k+buf8k", "sets send_buffer_bytes twice, by +buf64k and +buf8k"),
        ("socket/tcp+spin+spin", "sets wait twice, by +spin and +spin"),
        ("socket/tcp+", "has no variant '+'"),
        (
            "mpi-mvich/shm+posted22",
            "has no variant '+posted22'; allowed: for mpi-mvich/shm: +yield, +eagerNk,",
        ),
        ("mpi-mvich/shm+eager64k+posted40", "sets buffers twice, by +eager64k and +posted40"),
        ("pcaal/udp+loss51", "has no variant '+loss51'; allowed: for pcaal/udp: +spin, +lossN, +T_MNms"),
    ],
)
def test_a_wrong_layer_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_layers(text)
    assert str(caught.value).startswith("--layers: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("500ms", 0.5), ("2min", 120), ("1.5 s", 1.5), ("7us", 7e-6), ("7 µs", 7e-6)],
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert parse_time(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5", "'5' has no unit; allowed: a number with a unit (ns, us, ms, s, min, h) from 1 s to 24 h"),
        ("-5s", "'-5s' is not a time"),
        ("5 hours", "'5 hours' is not a time"),
        ("", "'' is not a time"),
        ("0.1s", "'0.1s' is out of range"),
        ("2000min", "'2000min' is out of range"),
    ],
)
def test_a_wrong_time_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_time(text, "--budget", least_s=1.0)
    assert words in str(caught.value)


def test_rates_are_decimal_and_bare_numbers_refused() -> None:
    assert [parse_rate(text) for text in ("10kbit", "2.5Mbit", "10 Gbit/s")] == [10_000, 2_500_000, 10**10]
    for text, words in (("5", "has no unit"), ("9kbit", "out of range"), ("5MiB/s", "is not a rate")):
        with pytest.raises(InputError, match=words):
            parse_rate(text, least_bit_s=10_000)


def test_shares_are_read_and_bare_numbers_refused() -> None:
    assert parse_share("5%") == 0.05
    assert parse_share("0.5 %") == 0.005
    for text, words in (("5", "has no percent sign"), ("0.01%", "out of range"), ("x%", "not a percentage")):
        with pytest.raises(InputError, match=words):
            parse_share(text, "--precision")


@pytest.mark.parametrize(
    ("size", "text"),
    [(4, "4 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 20, "1 MiB"), (1500, "1500 B")],
)
def test_sizes_are_written(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (2.5e-8, "25 ns"), (1.25e-6, "1.25 us"), (30, "30 s"), (86400, "24 h")]
)
def test_times_are_written(seconds: float, text: str) -> None:
    assert format_time(seconds) == text


@pytest.mark.parametrize(("name", "status"), [("pcaal", 0), ("no_such_layer", 5)])
def test_the_proof_of_a_layer_fails_where_it_collects_no_test(name: str, status: int) -> None:
    text = (ROOT / "docs" / "how-to" / "add-a-layer.md").read_text()
    (command,) = re.findall(r"python -m (pytest \S+ -k \"\w+ and )NAME\"", text)
    words = shlex.split(f'{command}{name}"')
    done = subprocess.run(
        [sys.executable, "-m", *words, "--collect-only", "-q", "-p", "no:cacheprovider"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stdout
