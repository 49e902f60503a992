"""The fit over the data, and what it leaves: segments and relative residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from wiretwin.plot import base, words
from wiretwin.plot.curves import _column, _curves, _frame_sizes, _frame_times, _parts
from wiretwin.plot.data import Floats, Source, as_mapping, segment_values
from wiretwin.plot.theme import LIGHT, Theme, fade

LACK_OF_FIT_P = 0.01
"""Below this probability a segment is said not to be a straight line."""


def fit(
    source: Source,
    twin: Any,
    *,
    layers: Sequence[str] | None = None,
    theme: Theme = LIGHT,
) -> go.Figure:
    """One-way latency as measured (points) and as fitted (lines); a break is a gap with a ring after it."""
    curves, names = _curves(source, layers)
    figure = base.empty(440, theme, "fit")
    for name, look, part in _parts(curves, names, theme):
        label, size = words.escape(name), _column(part, "bytes")
        segments = _segments(twin, name)
        figure.add_scatter(
            x=size,
            y=_column(part, "time_us"),
            mode="markers",
            name=label,
            legendgroup=label,
            marker={"size": 6, "symbol": look.symbol + "-open", "color": look.colour},
            text=[
                f"{words.size_text(s)}: measured {words.time_text(t / 1e6)}"
                for s, t in zip(size, _column(part, "time_us"), strict=True)
            ],
            hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
            meta={"layer": name, "part": "curve"},
        )
        if not segments or not len(size):
            continue
        x, y = _pieces(segments, float(size.min()), float(size.max()))
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": look.colour, "width": 1.6},
            showlegend=False,
            legendgroup=label,
            hoverinfo="skip",
            connectgaps=False,
            meta={"layer": name, "part": "fit"},
        )
        _breaks(figure, name, look, segments, float(size.min()), float(size.max()))
    _frame_sizes(figure, curves)
    _frame_times(figure, curves, "y")
    base.caption_y(figure, "One-way latency")
    return figure


def residuals(
    source: Source,
    twin: Any,
    *,
    layers: Sequence[str] | None = None,
    theme: Theme = LIGHT,
) -> go.Figure:
    """(measured - fitted) / fitted against size, in percent, with a band at 5 % either way."""
    frame = residual_table(source, twin, layers=layers)
    curves, names = _curves(source, layers)
    figure = base.empty(300, theme, "residuals")
    figure.add_hrect(y0=-5, y1=5, fillcolor=fade(theme.muted, 0.07), line={"width": 0}, layer="below")
    figure.add_hline(y=0, line={"color": theme.axis, "width": 1}, layer="below")
    for name, look, _part in _parts(curves, names, theme):
        part = frame.filter(pl.col("layer") == name)
        if not len(part):
            continue
        label = words.escape(name)
        figure.add_scatter(
            x=_column(part, "bytes"),
            y=_column(part, "residual") * 100,
            mode="lines+markers",
            name=label,
            legendgroup=label,
            line={"color": look.colour, "width": 1, "dash": look.dash},
            marker={"size": 5, "symbol": look.symbol, "color": look.colour},
            text=[
                f"{words.size_text(row['bytes'])}: {words.percent_text(row['residual'], signed=True)}"
                for row in part.iter_rows(named=True)
            ],
            hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
            meta={"layer": name, "part": "curve"},
        )
    _frame_sizes(figure, curves)
    reach = 100 * float(frame["residual"].abs().max() or 0) if len(frame) else 0.0  # type: ignore[arg-type]
    reach = max(6.5, reach * 1.1)
    figure.update_yaxes(ticksuffix=" %", range=[-reach, reach])
    base.caption_y(figure, "Measured against fitted")
    return figure


def residual_table(source: Source, twin: Any, *, layers: Sequence[str] | None = None) -> pl.DataFrame:
    """`layer bytes measured_us fitted_us residual` (a share) for every size that a segment covers."""
    curves, names = _curves(source, layers)
    rows = []
    for name in names:
        part = curves.filter(pl.col("layer") == name)
        size, measured = _column(part, "bytes"), _column(part, "time_us")
        fitted = segment_values(_segments(twin, name), size) / 1000
        for s, m, f in zip(size, measured, fitted, strict=True):
            if np.isfinite(f) and f > 0:
                rows.append((name, int(s), float(m), float(f), float((m - f) / f)))
    schema = {
        "layer": pl.String,
        "bytes": pl.UInt64,
        "measured_us": pl.Float64,
        "fitted_us": pl.Float64,
        "residual": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _segments(twin: Any, layer: str) -> list[dict[str, Any]]:
    parts = as_mapping(twin).get("layers", {}).get(layer, {}).get("half_round_trip", [])
    return sorted((dict(part) for part in parts), key=lambda part: int(part["from_bytes"]))


def _pieces(segments: Sequence[dict[str, Any]], low: float, high: float) -> tuple[Floats, Floats]:
    """Points along each segment, even in the logarithm, with a gap (nan) between two segments."""
    xs, ys = [], []
    for segment in segments:
        end = segment.get("to_bytes")
        start, stop = max(low, segment["from_bytes"]), min(high, np.inf if end is None else end - 1e-9)
        if start > stop:
            continue
        x = np.geomspace(start, stop, 24)
        xs += [x, np.array([np.nan])]
        ys += [segment_values([segment], x) / 1000, np.array([np.nan])]
    return (np.concatenate(xs), np.concatenate(ys)) if xs else (np.empty(0), np.empty(0))


def _breaks(
    figure: go.Figure,
    name: str,
    look: base.Look,
    segments: Sequence[dict[str, Any]],
    low: float,
    high: float,
) -> None:
    starts = [segment for segment in segments[1:] if low < segment["from_bytes"] <= high]
    if not starts:
        return
    at = np.array([segment["from_bytes"] for segment in starts], np.float64)
    label = words.escape(name)
    figure.add_scatter(
        x=at,
        y=segment_values(segments, at) / 1000,
        mode="markers",
        marker={"size": 13, "symbol": "diamond-open", "color": look.colour, "line": {"width": 2}},
        showlegend=False,
        legendgroup=label,
        text=[f"a new segment from {words.size_text(size)}" for size in at],
        hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
        meta={"layer": name, "part": "mark"},
    )
