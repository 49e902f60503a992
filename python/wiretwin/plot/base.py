"""What every figure shares: an empty figure in a theme, axes of sizes and times, the look of a layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from wiretwin.plot.theme import LIGHT, Theme, fade, template
from wiretwin.plot.words import escape, size_text, tick_text

Floats = NDArray[np.float64]

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "triangle-up", "x", "star", "hexagon")
PLAIN_SIZES = tuple(4**power for power in range(18))


@dataclass(frozen=True)
class Look:
    """How a layer is drawn: a base layer has a colour, each of its variants a dash and a symbol."""

    colour: str
    dash: str
    symbol: str


def looks(layers: Sequence[str], theme: Theme = LIGHT) -> dict[str, Look]:
    """Give each layer its look, from the order of the layers alone."""
    variants: dict[str, int] = {}
    out: dict[str, Look] = {}
    for layer in layers:
        base = layer.split("+")[0]
        variant = variants[base] = variants.get(base, -1) + 1
        again, colour = divmod(list(variants).index(base), len(theme.series))
        # Where colours come round again, dashes and symbols begin further on.
        style = variant + 3 * again
        out[layer] = Look(theme.series[colour], DASHES[style % len(DASHES)], SYMBOLS[style % len(SYMBOLS)])
    return out


def empty(height: int, theme: Theme = LIGHT, name: str = "") -> go.Figure:
    """Make a figure with the theme's layout and nothing in it; `name` labels it for the report's script."""
    figure = go.Figure(layout={"template": template(theme)})
    figure.update_layout(
        height=height,
        uirevision="kept",
        meta={"name": name},
        hovermode="closest",
    )
    return figure


def line(figure: go.Figure, name: str, look: Look, x: Floats, y: Floats, texts: Sequence[str]) -> None:
    """Draw a curve; `texts` say each of its points."""
    label = escape(name)
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines+markers",
        name=label,
        legendgroup=label,
        line={"color": look.colour, "width": 2, "dash": look.dash},
        marker={"size": 5, "symbol": look.symbol, "color": look.colour},
        text=list(texts),
        hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
        meta={"layer": name, "part": "curve"},
    )


Edge = tuple[Floats, Floats]
"""The places of a band's edge and its heights there."""


def band(figure: go.Figure, name: str, look: Look, one: Edge, other: Edge) -> None:
    """Fill what lies between two edges, where both are known, behind a curve."""
    known = np.all([np.isfinite(values) for values in (*one, *other)], axis=0)
    if not known.any():
        return
    figure.add_scatter(
        x=np.concatenate([other[0][known], one[0][known][::-1]]),
        y=np.concatenate([other[1][known], one[1][known][::-1]]),
        mode="lines",
        line={"width": 0, "color": look.colour},
        fill="toself",
        fillcolor=fade(look.colour, 0.18),
        hoverinfo="skip",
        showlegend=False,
        legendgroup=escape(name),
        meta={"layer": name, "part": "band"},
    )


def caption_y(figure: go.Figure, text: str) -> None:
    """Say what the vertical axis shows: above it and level, which reads faster and costs no width."""
    figure.add_annotation(
        text=text,
        xref="paper",
        yref="paper",
        x=0,
        y=1,
        xanchor="left",
        yanchor="bottom",
        yshift=8,
        showarrow=False,
        font={"size": 12},
        name="y-caption",
    )


def size_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Ticks of a logarithmic axis of sizes: every sixteenth, or every fourth where few would be left."""
    inside = [size for size in PLAIN_SIZES if low * 0.999 <= size <= high * 1.001]
    coarse = [size for size in inside if math.log(size, 16).is_integer() or size == inside[0]]
    step = [s for s in inside if (int(math.log2(s)) - int(math.log2(inside[0]))) % 4 == 0] if inside else []
    chosen = inside if len(inside) <= 6 else (step if len(step) >= 3 else coarse)
    return [float(size) for size in chosen], [size_text(size) for size in chosen]


def time_ticks(low_s: float, high_s: float) -> tuple[list[float], list[str]]:
    """Ticks of a logarithmic axis of times: each power of ten between `low_s` and `high_s`, in seconds."""
    if not (0 < low_s <= high_s and math.isfinite(high_s)):
        return [], []
    powers = range(math.ceil(math.log10(low_s / 1.5)), math.floor(math.log10(high_s * 1.5)) + 1)
    values = [10.0**power for power in powers]
    if len(values) < 2:
        # Within a decade: 1, 2 and 5 times a power of ten.
        lowest = math.floor(math.log10(low_s))
        steps = [step * 10.0**power for power in (lowest, lowest + 1) for step in (1, 2, 5)]
        values = [value for value in steps if low_s / 1.5 <= value <= high_s * 1.5]
    return values, [tick_text(value, "time") for value in values]


def size_axis(figure: go.Figure, low: float, high: float, which: str = "x", title: str = "") -> None:
    """Make an axis one of message sizes."""
    values, texts = size_ticks(low, high)
    update = figure.update_xaxes if which == "x" else figure.update_yaxes
    pad = 0.03 * math.log10(max(high / low, 10))
    update(
        type="log",
        tickvals=values,
        ticktext=texts,
        range=[math.log10(low) - pad, math.log10(high) + pad],
        minor={"ticks": ""},
        title={"text": title},
    )


def time_axis(
    figure: go.Figure, low_s: float, high_s: float, unit_s: float, which: str = "x", title: str = ""
) -> None:
    """Make an axis one of times on a logarithmic scale; the data are in units of `unit_s` seconds."""
    values, texts = time_ticks(low_s, high_s)
    update = figure.update_xaxes if which == "x" else figure.update_yaxes
    update(
        type="log",
        tickvals=[value / unit_s for value in values],
        ticktext=texts,
        title={"text": title},
    )


def linear_time_unit(longest_s: float) -> tuple[float, str]:
    """Choose the unit of a linear axis of times up to `longest_s`: its length in seconds and its name."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if longest_s >= unit:
            return unit, name
    return 1e-9, "ns"
