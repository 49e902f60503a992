"""The history of a baseline, as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path

from wiretwin.plot import base, words
from wiretwin.plot.history import times, when
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import Chip, Column, FigureBlock, Group, Key, Page, Section, Table
from wiretwin.report.writer import html
from wiretwin.results import write_atomically
from wiretwin.understand.baselines import History, Kept

__all__ = ["write"]


def write(found: History, out: Path) -> Path:
    """Write the page: a figure for the least, the middle and the largest size that every result has.

    Raises
    ------
    StorageError
        It cannot be written; nothing is then left.
    """
    names = list(dict.fromkeys(row.layer for row in found.values))
    looks = base.looks(names)
    chips = [Chip(name, LIGHT.series.index(one.colour), one.dash, one.symbol) for name, one in looks.items()]
    labels = when(found)
    figures = [_figure(found, size, labels) for size in _shown(found)]
    lines = [
        f"{label}: {line}"
        for label, step in zip(labels[1:], found.steps, strict=True)
        for line in step.summary()
    ]
    lead = (
        "Each result was measured at its time and compared with the one before it; of the sizes that are "
        "called faster or slower at most a twentieth is expected to be chance (Benjamini & Hochberg 1995)."
    )
    count = "1 result" if len(labels) == 1 else f"{len(labels)} results"
    page = Page(
        title=f"{found.name}: {count}",
        subtitle=f"{labels[0]} to {labels[-1]} (UTC)",
        findings=lines,
        sections=[Section("history", "How it has gone", "History", lead, [Group(figures)], chips)],
    )
    write_atomically(out, html(page).encode())
    return out


def _shown(found: History) -> list[int]:
    by_result = [
        {row.bytes for row in found.values if row.number == number} for number in range(len(found.results))
    ]
    sizes = sorted(set.intersection(*by_result)) or sorted(set.union(*by_result))
    return sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]})


def _figure(found: History, size: int, labels: list[str]) -> FigureBlock:
    rows = [row for row in found.values if row.bytes == size]
    columns = [Column("Measured"), Column("Layer"), *(Column(one, True) for one in ("Time", "Launches"))]
    title = f"Messages of {words.size_text(size)}"
    return FigureBlock(
        f"history-{size}",
        title,
        " ".join(_sentence(rows, name) for name in dict.fromkeys(row.layer for row in rows)),
        times(found, size),
        Table(title, columns, [_row(row, labels[row.number]) for row in rows]),
        keys=[Key("band", "interval (95 %)")],
    )


def _sentence(rows: list[Kept], name: str) -> str:
    part = [row.us / 1e6 for row in rows if row.layer == name]
    if len(part) == 1:
        return f"{name} took {words.time_text(part[0])}."
    return f"{name} went from {words.time_text(part[0])} to {words.time_text(part[-1])}."


def _row(row: Kept, label: str) -> list[str]:
    interval = ""
    if row.high != float("inf"):
        interval = f" [{words.time_text(row.low / 1e6)}, {words.time_text(row.high / 1e6)}]"
    return [label, row.layer, f"{words.time_text(row.us / 1e6)}{interval}", str(row.launches)]
