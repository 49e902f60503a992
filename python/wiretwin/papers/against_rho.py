"""Figures of a paper's page that stand against rho: a curve with its band for each mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from wiretwin.papers.records import Record
from wiretwin.plot import base, words
from wiretwin.plot.base import Look, looks
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import Chip, Column, FigureBlock, Table

__all__ = ["figures"]

MECHANISMS = {"ubr": "UBR alone", "abr": "ABR alone", "lme-ece": "LME/ECE"}
METRICS = {
    "latency_us": ("Latency", "us", 1.0),
    "cell_loss_ratio": ("Cells lost", "%", 100.0),
    "abr_share": ("Cells by ABR", "%", 100.0),
    "ubr_kbit_s": ("By UBR", "kbit/s", 1.0),
    "abr_kbit_s": ("By ABR", "kbit/s", 1.0),
    "vbr_kbit_s": ("By VBR", "kbit/s", 1.0),
    "cost_per_s": ("Cost at the tariff, each second", "", 1.0),
}
"""What a metric is called, in which unit it is drawn, and by what it is multiplied for that."""
DECADE = 10.0
"""Times whose largest is further than so many times from the least stand on a logarithmic scale."""

Point = tuple[float, Record]


def figures(name: str, records: Sequence[Record]) -> tuple[list[FigureBlock], list[Chip]]:
    """Draw values against rho, a figure for each program and metric and a curve for each mechanism.

    Parameters
    ----------
    name
        The experiment.
    records
        Its values; those without a rho are left out.
    """
    drawn: dict[tuple[str, str], dict[str, list[Point]]] = {}
    for record in records:
        keys = dict(part.split("=", 1) for part in record.case.split())
        if "rho" in keys and record.metric in METRICS:
            curves = drawn.setdefault((record.metric, keys["program"]), {})
            curves.setdefault(keys["mechanism"], []).append((float(keys["rho"]), record))
    shown = looks(list(MECHANISMS))
    blocks = [
        _figure(f"{name}-{program.lower()}-{metric}", metric, program, curves, shown)
        for (metric, program), curves in drawn.items()
    ]
    chips = [
        Chip(MECHANISMS[key], LIGHT.series.index(look.colour), look.dash, look.symbol)
        for key, look in shown.items()
    ]
    return blocks, chips


def _figure(
    ident: str, metric: str, program: str, curves: Mapping[str, list[Point]], shown: Mapping[str, Look]
) -> FigureBlock:
    title, unit, scale = METRICS[metric]
    figure = base.empty(380, LIGHT, ident)
    rows, values = [], []
    for mechanism, points in curves.items():
        points.sort(key=lambda point: point[0])
        at = np.array([rho for rho, _ in points])
        middle, low, high = (
            scale * np.array([math.nan if value is None else value for value in column])
            for column in zip(*((one.predicted, one.low, one.high) for _, one in points), strict=True)
        )
        values += list(middle)
        label = MECHANISMS[mechanism]
        # No time, rate or share is below nothing, though an interval of few runs may reach there.
        floor = 0.5 * np.nanmin(middle) if metric == "latency_us" else 0.0
        base.band(figure, label, shown[mechanism], (at, np.maximum(low, floor)), (at, high))
        said = [
            f"rho {rho:g}: {_told(value)} {unit}".rstrip()
            + ("" if math.isnan(end) else f", {_told(begin)} to {_told(end)}")
            for rho, value, begin, end in zip(at, middle, low, high, strict=True)
        ]
        base.line(figure, label, shown[mechanism], at, middle, said)
        rows += [
            [label, f"{rho:g}", _told(value), "" if math.isnan(end) else f"{_told(begin)} to {_told(end)}"]
            for rho, value, begin, end in zip(at, middle, low, high, strict=True)
        ]
    figure.update_xaxes(title={"text": "rho, offered load as a share of the line"})
    whole = f"{title} [{unit}]" if unit else title
    if metric == "latency_us" and max(values) > DECADE * min(values):
        base.time_axis(figure, min(values) / 1e6, max(values) / 1e6, 1e-6, "y")
        base.caption_y(figure, f"{title}, with its 90 % interval")
    else:
        figure.update_yaxes(rangemode="tozero")
        base.caption_y(figure, f"{whole}, with its 90 % interval")
    figure.update_layout(showlegend=False)
    columns = [Column("Mechanism"), Column("rho", True), Column(whole, True), Column("90 % interval", True)]
    reach = f"{_told(min(values))} to {_told(max(values))} {unit}".rstrip()
    return FigureBlock(
        ident,
        f"{title}, {program}",
        f"{len(curves)} mechanisms over {len(rows) // len(curves)} values of rho: {reach}.",
        figure,
        Table(f"{title} of {program} against rho", columns, rows),
        half=True,
    )


def _told(value: float) -> str:
    return words.digits(value, 4)
