"""How the times of a baseline's results have gone, from one result to the next."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from wiretwin.plot import base, words
from wiretwin.plot.theme import LIGHT, Theme
from wiretwin.understand.baselines import History

__all__ = ["times", "when"]


def when(found: History) -> list[str]:
    """Return the times at which the results were measured, as the names of their folders say."""
    stamps = [result.path.name for result in found.results]
    return [f"{one[:4]}-{one[4:6]}-{one[6:8]} {one[9:11]}:{one[11:13]}:{one[13:15]}" for one in stamps]


def times(found: History, size: int, *, theme: Theme = LIGHT) -> go.Figure:
    """Draw the times of one size in bytes, by result and configuration, with intervals."""
    figure = base.empty(320, theme, f"history-{size}")
    rows = [row for row in found.values if row.bytes == size]
    names, labels = list(dict.fromkeys(row.layer for row in found.values)), when(found)
    looks = base.looks(names, theme)
    for name in names:
        look, part = looks[name], [row for row in rows if row.layer == name]
        known = [math.isfinite(row.high) for row in part]
        label = words.escape(name)
        figure.add_scatter(
            x=[labels[row.number] for row in part],
            y=[row.us for row in part],
            error_y={
                "type": "data",
                "array": [row.high - row.us if ok else 0.0 for row, ok in zip(part, known, strict=True)],
                "arrayminus": [row.us - row.low if ok else 0.0 for row, ok in zip(part, known, strict=True)],
                "width": 3,
                "color": look.colour,
            },
            mode="lines+markers",
            line={"color": look.colour, "width": 2, "dash": look.dash},
            marker={"size": 8, "color": look.colour, "symbol": look.symbol},
            name=label,
            text=[f"{words.time_text(row.us / 1e6)}, {row.launches} launches" for row in part],
            hovertemplate=f"<b>{label}</b><br>%{{x}}<br>%{{text}}<extra></extra>",
            meta={"layer": name, "part": "curve"},
        )
    figure.update_xaxes(type="category")
    figure.update_yaxes(type="log")
    base.caption_y(figure, "One-way latency [us]" if found.loop == "echo" else "Time [us]")
    return figure
