"""A figure of the processors' time on a paper's page: what share each layer takes of a message."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from wiretwin.papers.curves import Drawn, chips
from wiretwin.papers.records import Record
from wiretwin.plot import base, words
from wiretwin.plot.base import looks
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import Column, FigureBlock, Table

__all__ = ["figures"]

LAYERS = ("program", "message", "system", "transport", "driver")
"""From the program down, as they are stacked."""


def figures(name: str, records: Sequence[Record]) -> Drawn:
    """Draw a bar for each stack and size, and what each layer takes as a part of it.

    What is no share of the processors is left out.
    """
    bars: dict[tuple[str, int], dict[str, float]] = {}
    for record in records:
        if record.metric == "cpu_share":
            keys = record.keys
            bars.setdefault((keys["stack"], int(keys["size"])), {})[keys["layer"]] = 100 * record.predicted
    if not bars:
        return [], []
    found = {layer for parts in bars.values() for layer in parts}
    layers = [*(layer for layer in LAYERS if layer in found), *sorted(found - set(LAYERS))]
    shown = looks(layers)
    places = [f"{stack}, {words.size_text(size)}" for stack, size in bars]
    ident = f"{name}-cpu-share"
    figure = base.empty(150 + 26 * len(places), LIGHT, ident)
    for layer in layers:
        figure.add_trace(
            go.Bar(
                x=[parts.get(layer, 0.0) for parts in bars.values()],
                y=places,
                orientation="h",
                name=layer,
                marker={"color": shown[layer].colour},
                meta={"layer": layer, "part": "curve"},
                hovertemplate=f"<b>{layer}</b><br>%{{y}}: %{{x:.1f}} %<extra></extra>",
            )
        )
    figure.update_layout(barmode="stack", showlegend=False)
    figure.update_xaxes(title="share of the time [%]", rangemode="tozero")
    figure.update_yaxes(autorange="reversed")
    columns = [Column("Stack and size"), *(Column(f"{layer} [%]", True) for layer in layers)]
    columns.append(Column("All [%]", True))
    rows = [
        [
            place,
            *(words.digits(parts[layer], 3) if layer in parts else "" for layer in layers),
            words.digits(sum(parts.values()), 3),
        ]
        for place, parts in zip(places, bars.values(), strict=True)
    ]
    wholes = {place: sum(parts.values()) for place, parts in zip(places, bars.values(), strict=True)}
    least, most = min(wholes, key=wholes.__getitem__), max(wholes, key=wholes.__getitem__)
    summary = (
        f"From {words.digits(wholes[least], 3)} % ({least}) to {words.digits(wholes[most], 3)} % ({most}); "
        "in the rest the processors stand still, or a process looks again and again for what has not come."
    )
    title = "Share of both processors' time that each layer takes of a message"
    return [FigureBlock(ident, title, summary, figure, Table(title, columns, rows))], chips(shown)
