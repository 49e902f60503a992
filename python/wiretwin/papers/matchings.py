"""Figures of matchings on a paper's page: what rounds find, and what a switch carries with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wiretwin.papers.curves import Drawn, Point, Quantity, chips, draw
from wiretwin.papers.records import Record
from wiretwin.plot import base, words
from wiretwin.plot.base import looks
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import FigureBlock

__all__ = ["figures"]

OTHERS = {"islip": "iSLIP", "fifo": "queues in order", "output-queued": "output queues"}
ROUNDS = {str(rounds): f"{rounds} round{'s' * (rounds > 1)}" for rounds in (1, 2, 3, 4)}
LABELS = [
    *(f"PIM, {rounds}" for rounds in ROUNDS.values()),
    *(f"iSLIP, {ROUNDS[rounds]}" for rounds in ("1", "4")),
    OTHERS["fifo"],
    OTHERS["output-queued"],
]
"""How curves are told apart, in the order of their looks."""
AT_LOAD = "1.0"
AT_PORTS = "16"
"""Where the other is varied."""

SHARE = Quantity("Share of a maximal matching", "%", 100.0)
CARRIED = Quantity("Throughput", "% of the outputs", 100.0)


def figures(name: str, records: Sequence[Record]) -> Drawn:
    """Draw what rounds find of a matching and what a switch carries, by the load and by the number of ports.

    What has no load or no number of ports is left out.
    """
    shown = looks(LABELS)
    blocks = []
    for what, metric, varied, fixed in (
        (SHARE, "matched_share", "load", ("ports", AT_PORTS)),
        (SHARE, "matched_share", "ports", ("load", AT_LOAD)),
        (CARRIED, "efficiency", "load", ("ports", AT_PORTS)),
        (CARRIED, "efficiency", "ports", ("load", AT_LOAD)),
    ):
        curves: dict[str, list[Point]] = {}
        for record in records:
            keys = record.keys
            if record.metric == metric and varied in keys and keys.get(fixed[0]) == fixed[1]:
                curves.setdefault(_label(keys), []).append((float(keys[varied]), record))
        if len({at for points in curves.values() for at, _ in points}) < 2:
            continue
        curves = {label: curves[label] for label in LABELS if label in curves}
        figure = base.empty(380, LIGHT, f"{name}-{metric}-{varied}")
        table, values = draw(figure, what, varied, "Matching", curves, shown)
        if varied == "ports":
            places = sorted(
                {at for points in curves.values() for at, _ in points if not int(at) & (int(at) - 1)}
            )
            figure.update_xaxes(
                title={"text": "ports"}, type="log", tickvals=places, ticktext=[f"{at:g}" for at in places]
            )
        else:
            figure.update_xaxes(
                title={
                    "text": "load: how likely an input asks for an output"
                    if what is SHARE
                    else "load of each input"
                }
            )
        base.caption_y(figure, what.whole)
        given = f"{AT_PORTS} ports" if varied == "load" else "full load"
        least, most = (words.digits(value, 4) for value in (min(values), max(values)))
        title = f"{what.title} by {varied}, {given}"
        said = f"{len(curves)} ways to match: {least} to {most} {what.unit}."
        blocks.append(
            FigureBlock(
                f"{name}-{metric}-{varied}", title, said, figure, replace(table, caption=title), half=True
            )
        )
    return blocks, chips(shown) if blocks else []


def _label(keys: dict[str, str]) -> str:
    mechanism = OTHERS.get(keys.get("mechanism", ""), "PIM")
    return f"{mechanism}, {ROUNDS[keys['iterations']]}" if "iterations" in keys else mechanism
