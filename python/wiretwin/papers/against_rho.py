"""Figures of a paper's page that stand against rho: a curve with its band for each mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wiretwin.papers.curves import Drawn, Point, Quantity, chips, draw
from wiretwin.papers.records import Record
from wiretwin.plot import base, words
from wiretwin.plot.base import Look, looks
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import FigureBlock

__all__ = ["figures"]

MECHANISMS = {"ubr": "UBR alone", "abr": "ABR alone", "lme-ece": "LME/ECE"}
METRICS = {
    "latency_us": Quantity("Latency", "us"),
    "cell_loss_ratio": Quantity("Cells lost", "%", 100.0),
    "abr_share": Quantity("Cells by ABR", "%", 100.0),
    "ubr_kbit_s": Quantity("By UBR", "kbit/s"),
    "abr_kbit_s": Quantity("By ABR", "kbit/s"),
    "vbr_kbit_s": Quantity("By VBR", "kbit/s"),
    "cost_per_s": Quantity("Cost at the tariff, each second"),
}
"""What a metric is called and how it is drawn."""
DECADE = 10.0
"""Times whose largest is further than so many times from the least stand on a logarithmic scale."""


def figures(name: str, records: Sequence[Record]) -> Drawn:
    """Draw values against rho, a figure for each program and metric and a curve for each mechanism.

    What has no rho is left out.
    """
    drawn: dict[tuple[str, str], dict[str, list[Point]]] = {}
    for record in records:
        keys = record.keys
        if "rho" in keys and record.metric in METRICS:
            curves = drawn.setdefault((record.metric, keys["program"]), {})
            label = MECHANISMS[keys["mechanism"]]
            curves.setdefault(label, []).append((float(keys["rho"]), record))
    shown = looks(list(MECHANISMS.values()))
    blocks = [
        _figure(f"{name}-{program.lower()}-{metric}", metric, program, curves, shown)
        for (metric, program), curves in drawn.items()
    ]
    return blocks, chips(shown) if blocks else []


def _figure(
    ident: str, metric: str, program: str, curves: Mapping[str, list[Point]], shown: Mapping[str, Look]
) -> FigureBlock:
    what = METRICS[metric]
    figure = base.empty(380, LIGHT, ident)
    # No time, rate or share is below nothing, though an interval of few runs may reach there.
    floor = 0.5 if metric == "latency_us" else 0.0
    table, values = draw(figure, what, "rho", "Mechanism", curves, shown, floor)
    figure.update_xaxes(title={"text": "rho, offered load as a share of the line"})
    if metric == "latency_us" and max(values) > DECADE * min(values):
        base.time_axis(figure, min(values) / 1e6, max(values) / 1e6, 1e-6, "y")
        base.caption_y(figure, f"{what.title}, with its 90 % interval")
    else:
        figure.update_yaxes(rangemode="tozero")
        base.caption_y(figure, f"{what.whole}, with its 90 % interval")
    least, most = (words.digits(value, 4) for value in (min(values), max(values)))
    over = len(table.rows) // len(curves)
    return FigureBlock(
        ident,
        f"{what.title}, {program}",
        f"{len(curves)} mechanisms over {over} values of rho: {least} to {most} {what.unit}".rstrip() + ".",
        figure,
        replace(table, caption=f"{what.title} of {program} against rho"),
        half=True,
    )
