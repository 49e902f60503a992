"""The twin file: what is written is read back, what is wrong is refused by file, key, value and rule."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wiretwin.errors import InputError, StorageError
from wiretwin.twin import QUANTITIES, Base, Checks, Figure, Host, Layer, Rate, Segment, Source, Twin

TEXT = """
format = "wiretwin-twin"
version = 1
created_utc = "2026-01-01T00:00:00Z"
[source]
digest = "abc"
samples = 1000
launches = 7
[host]
name = "box"
cores = 2
[layers."mpi4py/mpich"]
t_0_us = { value = 1.2, low = 1.1, high = 1.3, launches = 7, samples = 1234 }
r_max_MB_s = { value = 9000, low = 8000, high = 9500.5, launches = 7, samples = 1234 }
n_half_bytes = { value = 20000, low = 15000, high = 25000, launches = 7, samples = 1234 }
call_ns = { value = 90, low = 80, high = 100, launches = 7, samples = 1234 }
rendezvous_from_bytes = 65537
[[layers."mpi4py/mpich".half_round_trip]]
from_bytes = 0
to_bytes = 8192
base_ns = { value = 600, low = 580, high = 620 }
per_byte_ns = { value = 0.1, low = 0.09, high = 0.11 }
samples = 400
lack_of_fit_p = 0.4
[[layers."mpi4py/mpich".half_round_trip]]
from_bytes = 8192
base_ns = { value = -200, low = -300, high = -100 }
per_byte_ns = { value = 0.25, low = 0.24, high = 0.26 }
samples = 300
from_bytes_low = 4097
from_bytes_high = 8192
"""


def test_values_follow_the_segment_that_holds_the_size() -> None:
    layer = Twin.parse(TEXT).layer("mpi4py/mpich")
    assert layer.at("half_round_trip", 0) == 600
    assert layer.at("half_round_trip", 8191) == pytest.approx(600 + 0.1 * 8191)
    assert layer.at("half_round_trip", 8192) == pytest.approx(-200 + 0.25 * 8192)
    sizes = [0, 1, 8191, 8192, 1 << 20]
    one_by_one = [layer.at("half_round_trip", size) for size in sizes]
    np.testing.assert_allclose(layer.curve("half_round_trip", sizes), one_by_one, rtol=1e-15)


def test_a_quantity_that_was_not_fitted_is_refused_by_name() -> None:
    layer = Twin.parse(TEXT).layer("mpi4py/mpich")
    with pytest.raises(InputError, match="gap was not fitted for this layer; it has half_round_trip"):
        layer.at("gap", 1)
    with pytest.raises(InputError, match=r"quantity 'speed'; allowed are half_round_trip, overhead_send"):
        layer.at("speed", 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="size = -1 bytes; allowed is 0 and above"):
        layer.at("half_round_trip", -1)
    with pytest.raises(InputError, match="size = -1 bytes; allowed is 0 and above"):
        layer.curve("half_round_trip", [4, -1])


def test_a_latency_may_be_negative_and_nothing_else() -> None:
    text = TEXT.replace("value = -200, low = -300", "value = -2500, low = -3000")
    layer = Twin.parse(text.replace("half_round_trip", "latency")).layer("mpi4py/mpich")
    assert layer.at("latency", 8192) == pytest.approx(-452)
    assert layer.curve("latency", [8192])[0] == pytest.approx(-452)
    with pytest.raises(InputError, match="give -452 ns at from_bytes = 8192; allowed is 0 ns and above"):
        Twin.parse(text)


def test_an_unknown_layer_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="layer 'shm' is not in the twin; it has mpi4py/mpich"):
        Twin.parse(TEXT).layer("shm")


def test_written_text_is_the_same_each_time_and_reads_back_equal(tmp_path: Path) -> None:
    twin = Twin.parse(TEXT)
    path = tmp_path / "a.toml"
    twin.write(path)
    assert Twin.read(path) == twin
    again = Twin.read(path).to_toml()
    assert again == path.read_text() == twin.to_toml()
    assert [p.name for p in tmp_path.iterdir()] == ["a.toml"]


def test_written_text_keeps_estimates_on_one_line() -> None:
    lines = Twin.parse(TEXT).to_toml().splitlines()
    assert "t_0_us = { value = 1.2, low = 1.1, high = 1.3, launches = 7, samples = 1234 }" in lines
    assert '[[layers."mpi4py/mpich".half_round_trip]]' in lines


MPI = 'layers."mpi4py/mpich"'
HRT = f"{MPI}.half_round_trip"
WRONG = [
    ("version = 1", "version = 2", "t.toml: written by a newer wiretwin: version 2, this one reads 1"),
    ("version = 1", "version = 0", "t.toml: version = 0; allowed is 1"),
    ("version = 1", "version = true", "t.toml: version = True; allowed is 1"),
    ("version = 1\n", "", "t.toml: version = (absent); allowed is 1"),
    ('"wiretwin-twin"', '"other"', "t.toml: format = 'other'; allowed is 'wiretwin-twin'"),
    ("version = 1", "version 1", "t.toml: not TOML: "),
    ("cores = 2", "cores = 2\ncolour = 1", "t.toml: host.colour = 1; this key is not known; allowed are"),
    ("cores = 2", "cores = 0", "t.toml: host.cores = 0; allowed is at least 1"),
    ("cores = 2", "cores = 2.5", "t.toml: host.cores = 2.5; allowed is a whole number"),
    ("cores = 2\n", "", "t.toml: host.cores is absent; it must be given"),
    ("cores = 2", 'cores = 2\nidle = "sleep"', "t.toml: host.idle = 'sleep'; allowed is 'spin' or 'yield'"),
    ("value = 1.2,", "value = nan,", f"t.toml: {MPI}.t_0_us.value = nan; allowed is a finite number"),
    ("value = 1.2,", "value = inf,", f"t.toml: {MPI}.t_0_us.value = inf; allowed is a finite number"),
    ("value = 1.2,", "value = -1.2,", f"t.toml: {MPI}.t_0_us.value = -1.2; allowed is at least 0"),
    ("value = 1.2,", 'value = "1.2 us",', f"{MPI}.t_0_us.value = '1.2 us'; allowed is a number"),
    ("value = 1.2,", "value = 1.4,", f"{MPI}.t_0_us: low = 1.1, value = 1.4, high = 1.3; allowed is low"),
    ("value = 0.1,", "value = -0.1,", f"{HRT}[0].per_byte_ns.value = -0.1; allowed is at least 0"),
    ("from_bytes = 0", "from_bytes = 4", f"{HRT}: segment 0 has from_bytes = 4; it must start at 0"),
    (
        "to_bytes = 8192",
        "to_bytes = 8000",
        f"{HRT}: segment 1 has from_bytes = 8192; it must go on at 8000",
    ),
    ("to_bytes = 8192\n", "", f"{HRT}: segment 0 has no to_bytes but segment 1 follows it"),
    ("from_bytes_high = 8192", "to_bytes = 9000", "from_bytes_low and from_bytes_high go together"),
    (
        "from_bytes = 8192",
        "from_bytes = 8192\nto_bytes = 9999",
        f"{HRT}: the last segment ends at to_bytes = 9999",
    ),
    ("to_bytes = 8192", "to_bytes = 0", "from_bytes = 0, to_bytes = 0; allowed is to_bytes above from_bytes"),
    (
        "value = -200, low = -300",
        "value = -2500, low = -3000",
        f"{HRT}: segment 1: base_ns = -2500 and per_byte_ns = 0.25 give -452 ns at from_bytes = 8192; "
        "allowed is 0 ns and above",
    ),
    ("from_bytes_low = 4097", "from_bytes_low = 9000", "allowed is from_bytes_low <= from_bytes"),
    ("lack_of_fit_p = 0.4", "lack_of_fit_p = 1.4", "lack_of_fit_p = 1.4; allowed is at most 1"),
    ("samples = 400", "samples = 400\nsample = 1", f"{HRT}[0].sample = 1; this key is not known"),
    ("launches = 7, samples", "launches = 0, samples", "launches = 0; allowed is at least 1"),
    ("[host]", "[hosts]", "t.toml: hosts = {'name': 'box', 'cores': 2}; this key is not known; allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), WRONG, ids=[w[2][:60] for w in WRONG])
def test_what_is_wrong_is_named(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in TEXT
    path = tmp_path / "t.toml"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        Twin.read(path)
    assert str(path) in str(caught.value)
    assert said.replace("t.toml", str(path)) in str(caught.value)


def test_no_layers_is_refused(tmp_path: Path) -> None:
    head = TEXT[: TEXT.index("[layers")]
    text = head.replace("[source]", "layers = {}\n[source]")
    with pytest.raises(InputError, match="layers is empty; allowed is at least 1"):
        Twin.parse(text)


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: cannot be read: No such file"):
        Twin.read(tmp_path / "none.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b'format = "wiretwin\xff"')
    with pytest.raises(InputError, match=r"binary\.toml: not a text file: byte 18 is not UTF-8"):
        Twin.read(binary)
    with pytest.raises(StorageError, match="not written: No such file"):
        Twin.parse(TEXT).write(tmp_path / "no" / "t.toml")


@given(st.text(alphabet=st.sampled_from('[]{}="#.\n\\ ab01-_nai+'), max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_twin_or_an_input_error(text: str) -> None:
    with pytest.raises(InputError):
        Twin.parse(text)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_twin_is_a_twin_or_an_input_error(data: st.DataObject) -> None:
    lines = TEXT.splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    value = data.draw(
        st.sampled_from(["0", "-1", "nan", "1e400", "[]", "{}", '"x"', "2026-01-01", "true", "[[1]]"])
    )
    key = lines[at].split("=")[0]
    lines[at] = f"{key}= {value}" if "=" in lines[at] else ""
    with contextlib.suppress(InputError):
        twin = Twin.parse("\n".join(lines))
        assert Twin.parse(twin.to_toml()) == twin


FINITE = st.floats(0, 1e12)


@st.composite
def segment_lists(draw: st.DrawFn) -> tuple[Segment, ...]:
    breaks = [0, *sorted(draw(st.sets(st.integers(1, 2**32), max_size=4)))]
    out = []
    for n, start in enumerate(breaks):
        rate, value = draw(st.floats(0, 1e3)), draw(FINITE)
        base = value - rate * start
        width = draw(FINITE)
        out.append(
            Segment(
                from_bytes=start,
                to_bytes=breaks[n + 1] if n + 1 < len(breaks) else None,
                base_ns=Base(value=base, low=base - width, high=base + width),
                per_byte_ns=Rate(value=rate, low=rate / 2, high=rate * 2),
                samples=draw(st.integers(0, 10**9)),
                lack_of_fit_p=draw(st.none() | st.floats(0, 1)),
            )
        )
    return tuple(out)


@given(st.dictionaries(st.text(min_size=1, max_size=12), segment_lists(), min_size=1, max_size=3), FINITE)
@settings(max_examples=150, deadline=None)
def test_any_twin_reads_back_equal_to_the_written_digits(
    layers: dict[str, tuple[Segment, ...]], figure: float
) -> None:
    f = Figure(value=figure, low=figure / 3, high=figure * 3, launches=3, samples=9)
    twin = Twin(
        created_utc="2026-01-01T00:00:00Z",
        source=Source(digest="d", samples=9, launches=3),
        host=Host(name="h", cores=1),
        layers={
            name: Layer(
                t_0_us=f,
                r_max_MB_s=f,
                n_half_bytes=f,
                checks=Checks(negative_latency_ns=figure),
                **dict.fromkeys(QUANTITIES, segments),
            )
            for name, segments in layers.items()
        },
    )
    text = twin.to_toml()
    tomllib.loads(text)
    back = Twin.parse(text)
    assert back.to_toml() == text
    for name, segments in layers.items():
        for wrote, read in zip(segments, back.layer(name).gap, strict=True):
            assert read.base_ns.value == pytest.approx(wrote.base_ns.value, rel=1e-9)
            assert read.per_byte_ns.value == pytest.approx(wrote.per_byte_ns.value, rel=1e-9)
