"""A figure of curves with their bands on a paper's page, and the table of what it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from wiretwin.papers.records import Record
from wiretwin.plot import base, words
from wiretwin.plot.base import Look
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import Chip, Column, FigureBlock, Table

__all__ = ["Curves", "Drawn", "Point", "Quantity", "chips", "draw"]

Point = tuple[float, Record]
Curves = Mapping[str, list[Point]]
"""By label, values and where each stands."""
Drawn = tuple[list[FigureBlock], list[Chip]]
"""Figures that a module of one kind makes of an experiment, by its name and its values, and the chips of
their curves; none where no value is of the kind."""
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Quantity:
    """What is drawn: its name, the unit that it is drawn in, and by what it is multiplied for that."""

    title: str
    unit: str = ""
    scale: float = 1.0

    @property
    def whole(self) -> str:
        """Its name with its unit."""
        return f"{self.title} [{self.unit}]" if self.unit else self.title


def chips(shown: Mapping[str, Look]) -> list[Chip]:
    """Return a chip for each label."""
    return [
        Chip(label, LIGHT.series.index(look.colour), look.dash, look.symbol) for label, look in shown.items()
    ]


def draw(
    figure: go.Figure,
    what: Quantity,
    at: str,
    who: str,
    curves: Curves,
    shown: Mapping[str, Look],
    floor: float = 0,
) -> tuple[Table, list[float]]:
    """Draw curves with their intervals; return the table of what they show, and all values.

    Parameters
    ----------
    figure
        The figure that they are drawn in.
    what
        What is drawn upwards.
    at, who
        What is drawn to the right, and what a curve is, in a word.
    curves
        The values.
    shown
        How each label looks.
    floor
        No band reaches further down than this part of the least value of its curve.
    """
    rows: list[Sequence[str]] = []
    values: list[float] = []
    for label, points in curves.items():
        points.sort(key=lambda point: point[0])
        x = np.array([place for place, _ in points])
        middle, low, high = (
            what.scale * np.array([math.nan if value is None else value for value in column])
            for column in zip(*((one.predicted, one.low, one.high) for _, one in points), strict=True)
        )
        values += list(middle)
        base.band(figure, label, shown[label], (x, np.maximum(low, floor * np.nanmin(middle))), (x, high))
        told = [words.digits(value, 4) for value in middle]
        between = [
            "" if math.isnan(end) else f"{words.digits(begin, 4)} to {words.digits(end, 4)}"
            for begin, end in zip(low, high, strict=True)
        ]
        said = [
            f"{at} {place:g}: {value} {what.unit}".rstrip() + (f", {ends}" if ends else "")
            for place, value, ends in zip(x, told, between, strict=True)
        ]
        base.line(figure, label, shown[label], x, middle, said)
        rows += [
            [label, f"{place:g}", value, ends] for place, value, ends in zip(x, told, between, strict=True)
        ]
    figure.update_layout(showlegend=False)
    columns = [Column(who), Column(at, True), Column(what.whole, True), Column("90 % interval", True)]
    return Table(f"{what.title} against {at}", columns, rows), values
