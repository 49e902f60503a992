"""Tables in every format, byte for byte."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from wiretwin.cli.format import WIDE, Column, Format, Table, _print_rich, _unfolded, render
from wiretwin.errors import InputError

CURVE = Table(
    "one-way latency by size",
    (
        Column("layer", "layer"),
        Column("size_bytes", "size [B]"),
        Column("half_round_trip_us", "Latency [us]"),
        Column("low_us", "low", people=False),
        Column("narrow", "narrow"),
    ),
    (
        ("shm", 4, 0.123456, 0.1, True),
        ("shm", 1048576, 123456.789, 1e5, False),
        ("socket/tcp", 4, None, float("inf"), None),
    ),
    osu=("layer", "size_bytes", "half_round_trip_us"),
)


def text(form: Format) -> str:
    return render(CURVE, form).decode()


def test_table_is_for_people() -> None:
    lines = [line.rstrip() for line in text(Format.table).splitlines()]
    assert lines == [
        "one-way latency by size",
        "",
        " layer       size [B]  Latency [us]  narrow",
        " ───────────────────────────────────────────",
        " shm                4        0.1235  yes",
        " shm          1048576        123457  no",
        " socket/tcp         4             -  -",
        "",
    ]


@pytest.mark.parametrize("rows", [0, 1, 40])
def test_a_table_that_needs_no_folding_is_written_as_rich_writes_it(rows: int) -> None:
    columns = (
        Column("rank", "rank"),
        Column("s", "total [s]"),
        Column("no", "no", people=False),
        Column("d", "d"),
    )
    cells = [(number, number / 7 or None, 1, "a word or two" * (number % 3)) for number in range(rows)]
    table = Table("ranks", columns, cells)
    folded = io.StringIO()
    _print_rich(table, Console(file=folded, width=WIDE, color_system=None))
    assert _unfolded(table) == folded.getvalue()
    wide = Table("ranks", (Column("a", "a" * WIDE),), [])
    assert _unfolded(wide) is _unfolded(Table("longer", (Column("a", "a"),), [])) is None


def test_osu_has_the_two_columns_of_the_osu_benchmarks() -> None:
    assert text(Format.osu).splitlines() == [
        "# one-way latency by size: shm",
        "# Size                Latency (us)",
        "4                             0.12",
        "1048576                  123456.79",
        "# one-way latency by size: socket/tcp",
        "# Size                Latency (us)",
        "4                                -",
    ]


def test_csv_names_units_and_carries_values_in_full() -> None:
    assert text(Format.csv).splitlines() == [
        "layer,size_bytes,half_round_trip_us,low_us,narrow",
        "shm,4,0.123456,0.1,True",
        "shm,1048576,123456.789,100000.0,False",
        "socket/tcp,4,,inf,",
    ]


def test_json_is_a_list_of_records_without_infinities() -> None:
    assert json.loads(text(Format.json)) == [
        {"layer": "shm", "size_bytes": 4, "half_round_trip_us": 0.123456, "low_us": 0.1, "narrow": True},
        {
            "layer": "shm", "size_bytes": 1048576, "half_round_trip_us": 123456.789, "low_us": 1e5,
            "narrow": False,
        },
        {"layer": "socket/tcp", "size_bytes": 4, "half_round_trip_us": None, "low_us": None, "narrow": None},
    ]  # fmt: skip


def test_parquet_has_the_same_columns() -> None:
    table = pq.read_table(io.BytesIO(render(CURVE, Format.parquet)))
    assert table.column_names == [column.key for column in CURVE.columns]
    assert table.column("half_round_trip_us").to_pylist() == [0.123456, 123456.789, None]
    assert table.column("size_bytes").to_pylist() == [4, 1048576, 4]


def test_osu_of_a_table_that_is_no_curve_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"--format: 'osu' suits curves only; 'x' is none; allowed: table, csv"
    ):
        render(Table("x", CURVE.columns, ()), Format.osu)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (12.3456, "12.35"),
        (9999.0, "9999"),
        (123456.0, "123456"),
        (1e12, "1.000e+12"),
        (1e-7, "1.000e-07"),
    ],
)
def test_numbers_for_people_have_four_digits(value: float, shown: str) -> None:
    table = Table("t", (Column("a_us", "a"),), ((value,),))
    assert render(table, Format.table).decode().splitlines()[4].strip() == shown


def test_headings_fold_and_a_column_of_words_keeps_its_room_beside_many_numbers() -> None:
    columns = [Column("paper", "paper")]
    columns += [Column(f"v{number}", f"a heading of several words {number}") for number in range(16)]
    rows = [["vila1998", *(1234.5 for _ in range(16))], ["all", *(0.25 for _ in range(16))]]
    lines = render(Table("wide", columns, rows), Format.table).decode().splitlines()
    (row,) = [line for line in lines if "vila1998" in line]
    assert row.split() == ["vila1998", *["1234"] * 16]
    assert any(line.split() == ["all", *["0.25"] * 16] for line in lines)
