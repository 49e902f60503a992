"""The parts a report is made of, before they become HTML."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go


@dataclass(frozen=True)
class Column:
    """A table column; `number` sets it right-aligned in tabular figures."""

    title: str
    number: bool = False


@dataclass(frozen=True)
class Table:
    """A table of texts. The first column heads its row."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    flagged: frozenset[int] = frozenset()
    """Rows to be marked; what the mark means is said in the row itself."""
    stacked: bool = False
    """Whether a narrow screen shows each row as a small list: for rows of words."""


@dataclass(frozen=True)
class Key:
    """An entry of a figure's legend: a swatch in a CSS class, and what it stands for."""

    swatch: str
    text: str


@dataclass(frozen=True)
class FigureBlock:
    """A figure with everything that stands for it where it cannot be seen."""

    id: str
    title: str
    summary: str
    """The figure in sentences, for eyes and ears alike."""
    figure: go.Figure
    table: Table
    keys: Sequence[Key] = ()
    note: str = ""
    linear: str = ""
    """Unit for a linear vertical scale, if the figure offers one."""
    zoom: bool = False
    """Whether it has buttons to zoom and move along the horizontal axis."""
    half: bool = False
    """Whether two such figures stand side by side on a wide screen."""

    @property
    def height(self) -> int:
        """Pixels."""
        return int(self.figure.layout.height)

    def spec(self) -> dict[str, Any]:
        """Return what the page's script draws."""
        plain: dict[str, Any] = json.loads(self.figure.to_json(engine="json"))
        plain["layout"]["showlegend"] = False
        captioned = any(note.get("name") == "y-caption" for note in plain["layout"].get("annotations", []))
        plain["layout"].setdefault("margin", {})["t"] = 34 if captioned else 6
        return plain


@dataclass(frozen=True)
class TableBlock:
    """A table that stands on its own."""

    id: str
    title: str
    table: Table
    summary: str = ""


@dataclass(frozen=True)
class ListBlock:
    """Names and values."""

    id: str
    title: str
    pairs: Sequence[tuple[str, str]]
    code: bool = False


@dataclass(frozen=True)
class CodeBlock:
    """A few lines to copy."""

    id: str
    title: str
    text: str
    summary: str = ""


Block = FigureBlock | TableBlock | ListBlock | CodeBlock


@dataclass(frozen=True)
class Group:
    """Blocks that belong together; a folded one is opened by the reader."""

    blocks: Sequence[Block]
    title: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Chip:
    """A layer in the legend that all curves of a section share."""

    layer: str
    colour: int
    dash: str
    symbol: str


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading."""

    id: str
    title: str
    short: str
    """For the navigation."""
    lead: str
    groups: Sequence[Group] = ()
    chips: Sequence[Chip] = ()

    @property
    def blocks(self) -> list[Block]:
        """Every block, folded ones too."""
        return [block for group in self.groups for block in group.blocks]


@dataclass(frozen=True)
class Missing:
    """A section that was left out, and the command that adds it."""

    title: str
    command: str


@dataclass(frozen=True)
class Step:
    """A step of the loop: its verb and what this run made of it; `figure` is empty if it was not taken."""

    verb: str
    figure: str
    detail: str


@dataclass
class Page:
    """The whole report."""

    title: str
    subtitle: str
    findings: list[Any] = field(default_factory=list)
    cautions: list[Any] = field(default_factory=list)
    loop: list[Step] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)

    def figures(self) -> list[FigureBlock]:
        """Every figure in reading order."""
        return [
            block for section in self.sections for block in section.blocks if isinstance(block, FigureBlock)
        ]
