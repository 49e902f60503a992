"""What crossed the wire against what the messages hold."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from wiretwin.plot import base, words
from wiretwin.plot.theme import LIGHT, Theme
from wiretwin.understand.accounting import Account

__all__ = ["overhead"]


def overhead(
    accounts: Sequence[Account], *, layers: Sequence[str] | None = None, theme: Theme = LIGHT
) -> go.Figure:
    """Bytes on the interface for each byte of payload, against message size; 1 is the payload alone.

    `layers`, all that there are, gives each the look that it has in other figures.
    """
    figure = base.empty(360, theme, "wire")
    names = list(dict.fromkeys(one.layer for one in accounts))
    looks = base.looks(layers or names, theme)
    for name in names:
        look, part = looks[name], [one for one in accounts if one.layer == name]
        label = words.escape(name)
        figure.add_scatter(
            x=[one.bytes for one in part],
            y=[one.factor for one in part],
            mode="lines+markers",
            name=label,
            line={"color": look.colour, "width": 2, "dash": look.dash},
            marker={"size": 5, "symbol": look.symbol, "color": look.colour},
            text=[
                f"{words.size_text(one.bytes)}: {one.factor:.3f} times the payload, "
                f"{one.packets_per_message:.2f} packets a message"
                for one in part
            ],
            hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
            meta={"layer": name, "part": "curve"},
        )
    if accounts:
        sizes = [one.bytes for one in accounts]
        base.size_axis(figure, float(min(sizes)), float(max(sizes)), "x", "Message size")
    figure.update_yaxes(type="log")
    base.caption_y(figure, "Bytes carried / payload")
    return figure
