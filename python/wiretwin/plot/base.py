"""What every figure shares: an empty figure in a theme, axes of sizes and times, the look of a layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from wiretwin.plot.theme import LIGHT, Theme, fade, template
from wiretwin.plot.words import escape, size_text, tick_text

Floats = NDArray[np.float64]

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "triangle-up", "x", "star", "hexagon")
LEAST_TICKS = 3
"""The fewest ticks that tell a reader what an axis shows."""
PLAIN_SIZES = tuple(4**power for power in range(18))


@dataclass(frozen=True)
class Look:
    """How a layer is drawn: a base layer has a colour, each of its variants a dash and a symbol."""

    colour: str
    dash: str
    symbol: str


def looks(layers: Sequence[str], theme: Theme = LIGHT) -> dict[str, Look]:
    """Give each layer its look, from the order of the layers alone."""
    bases: list[str] = []
    taken: set[tuple[int, int]] = set()
    out: dict[str, Look] = {}
    for layer in layers:
        base = layer.split("+")[0]
        if base not in bases:
            bases.append(base)
        again, colour = divmod(bases.index(base), len(theme.series))
        # Where colours come round again, dashes and symbols begin further on.
        style = next(style for style in count(3 * again) if (colour, style) not in taken)
        taken.add((colour, style))
        out[layer] = Look(theme.series[colour], _dash(style), SYMBOLS[style % len(SYMBOLS)])
    return out


def _dash(style: int) -> str:
    """Return the dash of a number: first those with a name, then ever longer ones."""
    return DASHES[style] if style < len(DASHES) else f"{2 * style}px,4px"


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


def beyond(
    figure: go.Figure,
    name: str,
    look: Look,
    x: Floats,
    low: Floats,
    high: Floats,
    frame: Sequence[float],
    texts: Sequence[str],
) -> None:
    """Mark where a band leaves the picture: an arrow at the edge that it crosses, with its ends as words.

    Parameters
    ----------
    x, low, high
        The places of the band and its ends there.
    frame
        The lowest and the highest value that the picture shows.
    texts
        The interval at each place, in words.
    """
    label = escape(name)
    for symbol, edge, gone in (
        ("triangle-up-open", frame[1], high > frame[1]),
        ("triangle-down-open", frame[0], low < frame[0]),
    ):
        at = np.flatnonzero(gone & np.isfinite(low) & np.isfinite(high))
        if not at.size:
            continue
        figure.add_scatter(
            x=x[at],
            y=np.full(at.size, edge),
            mode="markers",
            marker={"size": 8, "symbol": symbol, "color": look.colour, "line": {"width": 1.5}},
            cliponaxis=False,
            text=[f"the interval goes on beyond the picture: {texts[int(place)]}" for place in at],
            hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
            showlegend=False,
            legendgroup=label,
            meta={"layer": name, "part": "beyond"},
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


def log_ticks(low: float, high: float) -> list[float]:
    """Places of at least `LEAST_TICKS` ticks on a logarithmic axis from `low` to `high`, both above 0.

    Powers of ten where enough of them lie inside; else 1, 2 and 5 times, or each number of one digit times, a
    power of ten; on an axis too short for that, round numbers at even distances.
    """
    lowest, highest = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1,), (1, 2, 5), tuple(range(1, 10))):
        values = [step * 10.0**power for power in range(lowest, highest + 1) for step in steps]
        inside = [value for value in values if low <= value <= high]
        if len(inside) >= LEAST_TICKS:
            return inside
    power = math.floor(math.log10(max((high - low) / LEAST_TICKS, 1e-300)))
    for step in (5, 2, 1):
        width = step * 10.0**power
        inside = [number * width for number in range(math.ceil(low / width), math.floor(high / width) + 1)]
        if len(inside) >= LEAST_TICKS:
            return inside
    return [low, (low + high) / 2, high]


def size_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Ticks of a logarithmic axis of sizes: every sixteenth, or every fourth where few would be left."""
    inside = [size for size in PLAIN_SIZES if low * 0.999 <= size <= high * 1.001]
    coarse = [size for size in inside if math.log(size, 16).is_integer() or size == inside[0]]
    step = [s for s in inside if (int(math.log2(s)) - int(math.log2(inside[0]))) % 4 == 0] if inside else []
    chosen = inside if len(inside) <= 6 else (step if len(step) >= 3 else coarse)
    if len(chosen) < LEAST_TICKS:
        chosen = [size for size in (2**power for power in range(60)) if low * 0.999 <= size <= high * 1.001]
    if len(chosen) < LEAST_TICKS and low < high:
        chosen = sorted({round(low), round((low + high) / 2), round(high)})
    return [float(size) for size in chosen], [size_text(size) for size in chosen]


def time_ticks(low_s: float, high_s: float) -> tuple[list[float], list[str]]:
    """Ticks of a logarithmic axis of times: each power of ten between `low_s` and `high_s`, in seconds."""
    if not (0 < low_s <= high_s and math.isfinite(high_s)):
        return [], []
    values = log_ticks(low_s / 1.02, high_s * 1.02)
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
