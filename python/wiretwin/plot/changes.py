"""What changed between two results: the ratio of times against message size."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from wiretwin.plot import base, words
from wiretwin.plot.theme import LIGHT, Theme
from wiretwin.understand.changes import Changes

__all__ = ["ratios"]


def ratios(found: Changes, *, theme: Theme = LIGHT) -> go.Figure:
    """Time after over time before, by size, with intervals; filled where it changed beyond noise."""
    figure = base.empty(380, theme, "changes")
    rows = [row for row in found.rows if row.ratio is not None and row.bytes > 0]
    names = list(dict.fromkeys(row.layer for row in rows))
    looks = base.looks(names, theme)
    for name in names:
        look, part = looks[name], [row for row in rows if row.layer == name]
        ratio = np.array([row.ratio or np.nan for row in part])
        ends = [(row.low, row.high) for row in part]
        known = [low is not None and high is not None and np.isfinite(high) for low, high in ends]
        up = [
            float(high or 0) - r if ok else 0.0 for (_, high), r, ok in zip(ends, ratio, known, strict=True)
        ]
        down = [
            r - float(low or 0) if ok else 0.0 for (low, _), r, ok in zip(ends, ratio, known, strict=True)
        ]
        changed = [row.verdict in ("faster", "slower") for row in part]
        label = words.escape(name)
        figure.add_scatter(
            x=[row.bytes for row in part],
            y=ratio,
            error_y={"type": "data", "array": up, "arrayminus": down, "width": 3, "color": look.colour},
            mode="markers",
            marker={
                "size": 8,
                "color": look.colour,
                "symbol": [look.symbol if one else f"{look.symbol}-open" for one in changed],
            },
            name=label,
            text=[f"{words.size_text(row.bytes)}: {row.ratio:.3g}, {row.verdict}" for row in part],
            hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
            meta={"layer": name, "part": "curve"},
        )
    if rows:
        base.size_axis(
            figure, min(row.bytes for row in rows), max(row.bytes for row in rows), "x", "Message size"
        )
        figure.add_hline(y=1.0, line={"width": 1, "color": theme.axis})
    figure.update_yaxes(type="log")
    base.caption_y(figure, "Time after / time before")
    return figure
