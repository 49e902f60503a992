"""Tables as ``table``, ``osu``, ``csv``, ``json`` or ``parquet``: one place for every verb.

A table is a list of columns, each with its unit, and rows of plain values. Machine formats name a
column by its key, which ends in its unit (``t_0_us``); tables for people show title and unit.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wiretwin.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "Column",
    "CurveFormatOption",
    "Format",
    "FormatOption",
    "Table",
    "emit",
    "render",
    "show_printed",
]


WIDE = 200
LEAST_WIDTH = 8
"""A column of words that long gets at least so many characters, however many columns of numbers there are."""


class Format(StrEnum):
    """How a table is printed."""

    table = "table"
    osu = "osu"
    csv = "csv"
    json = "json"
    parquet = "parquet"


BINARY = "is binary and would go to a terminal"
ELSEWHERE = "a pipe or a file: `… > table.parquet`"


def _curve_format(form: Format) -> Format:
    """Reject what cannot be printed before anything is done."""
    if form is Format.parquet and sys.stdout.isatty():
        raise InputError(key="--format", value=form.value, reason=BINARY, allowed=ELSEWHERE)
    return form


def _table_format(form: Format) -> Format:
    if form is Format.osu:
        raise InputError(
            key="--format", value=form.value, reason="suits curves only; here is none", allowed=TABLES
        )
    return _curve_format(form)


TABLES = ", ".join(form for form in Format if form is not Format.osu)
FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        callback=_table_format,
        metavar=f"<{TABLES.replace(', ', '|')}>",
        help="table: for people; csv, json: keys end in their unit; parquet: binary, to a file or a pipe.",
    ),
]
CurveFormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        callback=_curve_format,
        help="table: for people; osu: the two columns of the OSU micro-benchmarks; csv, json: keys end in "
        "their unit; parquet: binary, to a file or a pipe.",
    ),
]
"""Of a verb that prints a curve."""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes
    ----------
    key
        Its name in machine formats; ends in the unit where there is one.
    title
        Its heading for people, with the unit: ``t_0 [us]``.
    digits
        Significant digits shown to people; machine formats carry the value in full.
    people
        Shown in ``table``; a column of detail is left to the machine formats.
    ends
        Keys of the columns with the ends of its interval: where that names no value, people read so in its
        place.
    """

    key: str
    title: str
    digits: int = 4
    people: bool = True
    ends: tuple[str, str] | None = None


@dataclass(frozen=True)
class Table:
    """A table to be printed.

    Attributes
    ----------
    name
        What it is, one line.
    columns, rows
        Its contents; a cell is a string, a number, a truth value or ``None``.
    osu
        Keys of the columns for the OSU format: group (or nothing), size, value. ``None`` if the table
        is no curve.
    """

    name: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    osu: tuple[str | None, str, str] | None = None


def emit(table: Table, form: Format, *, output: Path | None = None) -> None:
    """Print a table to standard output, or write it to a file.

    Raises
    ------
    InputError
        ``osu`` of a table that is no curve; ``parquet`` to a terminal.
    StorageError
        The file cannot be written.
    """
    if output is None and form is Format.table:
        is_plain = not sys.stdout.isatty() and (sys.stdout.encoding or "").lower() == "utf-8"
        text = _unfolded(table) if is_plain and "FORCE_COLOR" not in os.environ else None
        if text is not None:
            sys.stdout.write(text)
            return
        from rich.console import Console

        # What is not a terminal has no width to fold at.
        _print_rich(table, Console() if sys.stdout.isatty() else Console(width=WIDE))
        return
    data = render(table, form)
    if output is not None:
        from wiretwin.results import write_atomically

        write_atomically(output, data)
        return
    if form is Format.parquet and sys.stdout.isatty():
        raise InputError(key="--format", value="parquet", reason=BINARY, allowed=ELSEWHERE)
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def render(table: Table, form: Format) -> bytes:
    """Return a table in one of the formats, as bytes.

    Raises
    ------
    InputError
        ``osu`` of a table that is no curve.
    """
    match form:
        case Format.table:
            if (plain := _unfolded(table)) is not None:
                return plain.encode()
            from rich.console import Console

            text = io.StringIO()
            _print_rich(table, Console(file=text, width=WIDE, color_system=None))
            return text.getvalue().encode()
        case Format.osu:
            return _osu(table).encode()
        case Format.csv:
            lines = io.StringIO()
            writer = csv.writer(lines, lineterminator="\n")
            writer.writerow([column.key for column in table.columns])
            writer.writerows([["" if cell is None else cell for cell in row] for row in table.rows])
            return lines.getvalue().encode()
        case Format.json:
            records = [
                {column.key: _plain(cell) for column, cell in zip(table.columns, row, strict=True)}
                for row in table.rows
            ]
            return (json.dumps(records, indent=1, ensure_ascii=False) + "\n").encode()
        case Format.parquet:
            import pyarrow as pa
            import pyarrow.parquet as pq

            columns = {
                column.key: [row[place] for row in table.rows] for place, column in enumerate(table.columns)
            }
            binary = io.BytesIO()
            pq.write_table(pa.table(columns), binary)
            return binary.getvalue()


def _plain(cell: Any) -> Any:
    """JSON knows no infinity; a value that is not finite is absent."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _shown(cell: Any, digits: int) -> str:
    match cell:
        case None:
            return "-"
        case bool():
            return "yes" if cell else "no"
        case float() if not math.isfinite(cell):
            return "-"
        case float() if cell == 0 or 1e-3 <= abs(cell) < 10**digits:
            return f"{cell:.{digits}g}"
        case float() if 10**digits <= abs(cell) < 1e9:
            return f"{cell:.0f}"
        case float():
            return f"{cell:.{digits - 1}e}"
        case _:
            return str(cell)


def _numeric(table: Table, place: int) -> bool:
    cells = [row[place] for row in table.rows if row[place] is not None]
    return bool(cells) and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells)


def _unfolded(table: Table) -> str | None:
    """Write a table as `_print_rich` does where nothing is folded or coloured, a hundred times as fast.

    Nothing where it is wider than `WIDE`, its name is wider than the table, or a character is not ASCII.
    """
    places = [place for place, column in enumerate(table.columns) if column.people]
    columns: list[list[str]] = []
    for place in places:
        cells = [table.columns[place].title, *(_cell(table, row, place) for row in table.rows)]
        if not all(cell.isascii() and cell.isprintable() for cell in cells):
            return None
        width = max(map(len, cells))
        if _numeric(table, place):
            columns.append([cell.rjust(width) for cell in cells])
        else:
            columns.append([cell.ljust(width) for cell in cells])
    lines = [f" {'  '.join(cells)}  " for cells in zip(*columns, strict=True)]
    width = len(lines[0]) if lines else 0
    name = table.name
    if not (lines and name and name == name.strip() and name.isascii() and name.isprintable()):
        return None
    if width > WIDE or len(name) > width:
        return None
    empty, rule = " " * width, f" {'─' * (width - 2)} "
    return "\n".join([name.ljust(width), empty, lines[0], rule, *lines[1:], empty, ""])


def _print_rich(table: Table, console: Console) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(title=Text(table.name), box=box.SIMPLE_HEAD, title_justify="left", padding=(0, 1, 0, 0))
    places = [place for place, column in enumerate(table.columns) if column.people]
    for place in places:
        right = _numeric(table, place)
        title = Text(table.columns[place].title)
        # Headings fold, numbers do not; and no column of words gives all its room to numbers.
        longest = max((len(_cell(table, row, place)) for row in table.rows), default=0)
        least = longest if right else min(longest, LEAST_WIDTH)
        shown.add_column(title, justify="right" if right else "left", overflow="fold", min_width=least)
    for row in table.rows:
        shown.add_row(*(Text(_cell(table, row, place)) for place in places))
    console.print(shown)


def _cell(table: Table, row: Sequence[Any], place: int) -> str:
    """Write a cell for people: the value, or that its interval names none."""
    column = table.columns[place]
    if column.ends is not None and row[place] is not None:
        from wiretwin.fit.settled import NOT_SETTLED, settled

        keys = [one.key for one in table.columns]
        if not settled(*(row[keys.index(end)] for end in column.ends)):
            return NOT_SETTLED
    return _shown(row[place], column.digits)


def _osu(table: Table) -> str:
    """Write the two columns of the OSU micro-benchmarks, a header comment before each curve."""
    if table.osu is None:
        raise InputError(
            key="--format", value="osu", reason=f"suits curves only; {table.name!r} is none",
            allowed=TABLES,
        )  # fmt: skip
    group_key, size_key, value_key = table.osu
    place = {column.key: number for number, column in enumerate(table.columns)}
    title = table.columns[place[value_key]].title.replace("[us]", "(us)").replace("[MB/s]", "(MB/s)")
    lines: list[str] = []
    group: Any = object()
    for row in table.rows:
        found = row[place[group_key]] if group_key else table.name
        if found != group:
            group = found
            lines += [f"# {table.name}: {group}" if group_key else f"# {group}", f"# {'Size':<12}{title:>20}"]
        value = row[place[value_key]]
        lines.append(f"{row[place[size_key]]:<14}{'-' if value is None else f'{value:.2f}':>20}")
    return "\n".join(lines) + "\n"


def show_printed(texts: Sequence[str] | None, form: Format) -> None:
    """Print what the ranks of a program printed: before a table for people, else to standard error."""
    from wiretwin.predict.printed import lines

    for line in lines(texts or []):
        print(line, file=sys.stdout if form is Format.table else sys.stderr)
