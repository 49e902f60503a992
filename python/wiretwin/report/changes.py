"""Two results compared, as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path

from wiretwin.plot import base, words
from wiretwin.plot.changes import ratios
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import Chip, Column, FigureBlock, Group, Key, Page, Section, Table
from wiretwin.report.writer import html
from wiretwin.results import write_atomically
from wiretwin.understand.changes import Change, Changes

__all__ = ["write"]


def write(found: Changes, out: Path) -> Path:
    """Write the page.

    Raises
    ------
    StorageError
        It cannot be written; nothing is then left.
    """
    changed = len(found.of("faster", "slower"))
    names = list(dict.fromkeys(row.layer for row in found.rows))
    looks = base.looks(names)
    chips = [Chip(name, LIGHT.series.index(one.colour), one.dash, one.symbol) for name, one in looks.items()]
    columns = [
        Column("Layer"),
        *(Column(title, True) for title in ("Size", "Before", "After", "Ratio")),
        Column(""),
    ]
    table = Table(
        "Times before and after, by configuration and size", columns, [_row(row) for row in found.rows]
    )
    figure = FigureBlock(
        "changes",
        "Time after over time before",
        " ".join(f"{line}." for line in found.summary()),
        ratios(found),
        table,
        keys=[Key("band", "interval (95 %)")],
    )
    lead = (
        "The launch is the unit of repetition. Filled marks changed beyond noise: of them at most a "
        "twentieth is expected to be chance (Benjamini & Hochberg 1995), however many sizes were compared."
    )
    count = f"{changed} of {len([row for row in found.rows if row.ratio is not None])}"
    page = Page(
        title=f"{count} sizes changed beyond noise",
        subtitle=f"{found.before} · {found.after}",
        findings=found.summary(),
        sections=[Section("changes", "What changed", "Changes", lead, [Group([figure])], chips)],
    )
    write_atomically(out, html(page).encode())
    return out


def _row(row: Change) -> list[str]:
    def time(value: float | None) -> str:
        return "" if value is None else words.time_text(value / 1e6)

    ratio = ""
    if row.ratio is not None:
        ends = "" if not row.high or row.high == float("inf") else f" [{row.low:.3g}, {row.high:.3g}]"
        ratio = f"{row.ratio:.3g}{ends}"
    return [
        row.layer,
        words.size_text(row.bytes),
        time(row.before_us),
        time(row.after_us),
        ratio,
        row.verdict,
    ]
