"""Measured curves: throughput, latency, NetPIPE's signature and saturation graphs (Snell et al. 1996)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from wiretwin.errors import InputError
from wiretwin.plot import base, words
from wiretwin.plot.data import Floats, Source, echo_curves, layer_order, steps
from wiretwin.plot.theme import LIGHT, Theme

_COLUMNS = {"layer", "bytes", "time_us", "low_us", "high_us", "rate_MB_s", "rate_low_MB_s", "rate_high_MB_s"}


def throughput(
    source: Source,
    twin: Any = None,
    *,
    layers: Sequence[str] | None = None,
    theme: Theme = LIGHT,
) -> go.Figure:
    """Throughput against message size, with the interval between launches as a band.

    Parameters
    ----------
    source
        A result, its folder, its samples, or curves made by `wiretwin.plot.echo_curves`.
    twin
        If given, the sizes at which it says that a layer changes behaviour are marked on the curves.
    layers
        Which layers, in which order; by default all, in the order they were measured.
    theme
        Colours.
    """
    curves, names = _curves(source, layers)
    figure = base.empty(420, theme, "throughput")
    rates = _column(curves, "rate_MB_s")
    frame = _frame(rates)
    for name, look, part in _parts(curves, names, theme):
        size, rate = _column(part, "bytes"), _column(part, "rate_MB_s")
        low, high = _column(part, "rate_low_MB_s"), _column(part, "rate_high_MB_s")
        base.band(figure, name, look, (size, low), (size, high))
        base.beyond(figure, name, look, size, low, high, frame, _hover(part))
        base.line(figure, name, look, size, rate, _hover(part))
        _marks(figure, name, look, size, size, rate, twin)
    _frame_sizes(figure, curves)
    figure.update_yaxes(type="log", range=_log_range(frame), **_rate_ticks(rates))
    base.caption_y(figure, "Throughput")
    return figure


def latency(
    source: Source,
    twin: Any = None,
    *,
    up_to_bytes: int = 16384,
    layers: Sequence[str] | None = None,
    theme: Theme = LIGHT,
) -> go.Figure:
    """One-way latency against message size, for messages of at most `up_to_bytes`."""
    curves, names = _curves(source, layers)
    small = curves.filter(pl.col("bytes") <= up_to_bytes)
    curves = small if len(small) else curves
    figure = base.empty(400, theme, "latency")
    frame = _frame(_column(curves, "time_us"))
    for name, look, part in _parts(curves, names, theme):
        size, time = _column(part, "bytes"), _column(part, "time_us")
        low, high = _column(part, "low_us"), _column(part, "high_us")
        base.band(figure, name, look, (size, low), (size, high))
        base.beyond(figure, name, look, size, low, high, frame, _hover(part))
        base.line(figure, name, look, size, time, _hover(part))
        _marks(figure, name, look, size, size, time, twin)
    _frame_sizes(figure, curves)
    _frame_times(figure, curves, "y")
    figure.update_yaxes(range=_log_range(frame))
    base.caption_y(figure, "One-way latency")
    return figure


def signature(
    source: Source,
    twin: Any = None,
    *,
    layers: Sequence[str] | None = None,
    theme: Theme = LIGHT,
) -> go.Figure:
    """NetPIPE's signature graph: throughput against the time of the transfer, time logarithmic.

    A curve begins at the layer's latency and climbs as its time is better used. Interval and steps as in
    `throughput`.
    """
    curves, names = _curves(source, layers)
    figure = base.empty(420, theme, "signature")
    rates = _column(curves, "rate_MB_s")
    frame = _frame(rates)
    for name, look, part in _parts(curves, names, theme):
        time, rate = _column(part, "time_us"), _column(part, "rate_MB_s")
        quick, slow = (
            (_column(part, f"{end}_us"), _column(part, f"rate_{other}_MB_s"))
            for end, other in (("low", "high"), ("high", "low"))
        )
        base.band(figure, name, look, quick, slow)
        base.beyond(figure, name, look, time, slow[1], quick[1], frame, _hover(part))
        base.line(figure, name, look, time, rate, _hover(part))
        _marks(figure, name, look, _column(part, "bytes"), time, rate, twin)
    _frame_times(figure, curves, "x")
    figure.update_xaxes(title={"text": "Time of one message"})
    figure.update_yaxes(type="log", range=_log_range(frame), **_rate_ticks(rates))
    base.caption_y(figure, "Throughput")
    return figure


def saturation(
    source: Source,
    twin: Any = None,
    *,
    layers: Sequence[str] | None = None,
    theme: Theme = LIGHT,
) -> go.Figure:
    """NetPIPE's saturation graph: message size against the time of the transfer, both logarithmic.

    The ringed point of a curve is where half of its largest throughput is first reached: beyond it a
    larger message mostly takes longer in proportion. Interval and steps as in `throughput`.
    """
    curves, names = _curves(source, layers)
    figure = base.empty(420, theme, "saturation")
    for name, look, part in _parts(curves, names, theme):
        time, size = _column(part, "time_us"), _column(part, "bytes")
        base.band(figure, name, look, (_column(part, "low_us"), size), (_column(part, "high_us"), size))
        base.line(figure, name, look, time, size, _hover(part))
        _marks(figure, name, look, size, time, size, twin)
        reached = np.flatnonzero(_column(part, "rate_MB_s") >= np.nanmax(_column(part, "rate_MB_s")) / 2)
        if len(reached):
            at = int(reached[0])
            _ring(
                figure,
                name,
                look,
                [time[at]],
                [size[at]],
                [f"half of its largest throughput at {words.size_text(size[at])}"],
            )
    _frame_times(figure, curves, "x")
    figure.update_xaxes(title={"text": "Time of one message"})
    sizes = _column(curves, "bytes")
    if len(sizes):
        base.size_axis(figure, float(sizes.min()), float(sizes.max()), "y")
    base.caption_y(figure, "Message size")
    return figure


def _curves(source: Source, layers: Sequence[str] | None) -> tuple[pl.DataFrame, list[str]]:
    """Curves of sizes above zero (a logarithmic axis has no place for none), and their layers in order."""
    if isinstance(source, pl.DataFrame) and set(source.columns) >= _COLUMNS:
        curves, order = source, list(dict.fromkeys(str(name) for name in source["layer"]))
    else:
        curves, order = echo_curves(source), layer_order(source)
    names = list(layers) if layers is not None else order
    unknown = [name for name in names if name not in order]
    if unknown:
        raise InputError(key="layers", value=unknown[0], reason="was not measured", allowed=", ".join(order))
    curves = curves.filter(pl.col("bytes") > 0, pl.col("layer").is_in(names)).sort("layer", "bytes")
    present = set(curves["layer"])
    return curves, [name for name in names if name in present]


def _parts(
    curves: pl.DataFrame, names: Sequence[str], theme: Theme
) -> list[tuple[str, base.Look, pl.DataFrame]]:
    look = base.looks(names, theme)
    return [(name, look[name], curves.filter(pl.col("layer") == name)) for name in names]


def _column(frame: pl.DataFrame, name: str) -> Floats:
    return frame[name].cast(pl.Float64).to_numpy().astype(np.float64)


def _hover(part: pl.DataFrame) -> list[str]:
    """One text a point: size, one-way latency and rate, with intervals and what is behind them."""
    texts = []
    for row in part.iter_rows(named=True):
        texts.append(
            f"{words.size_text(row['bytes'])}: "
            f"{words.time_interval_text(row['time_us'] / 1e6, row['low_us'] / 1e6, row['high_us'] / 1e6)}, "
            f"{words.rate_text(row['rate_MB_s'])}"
        )
    return texts


def _ring(
    figure: go.Figure,
    name: str,
    look: base.Look,
    x: Sequence[float],
    y: Sequence[float],
    texts: Sequence[str],
    symbol: str = "circle-open",
) -> None:
    label = words.escape(name)
    figure.add_scatter(
        x=list(x),
        y=list(y),
        mode="markers",
        marker={"size": 13, "symbol": symbol, "color": look.colour, "line": {"width": 2}},
        text=list(texts),
        hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
        showlegend=False,
        legendgroup=label,
        meta={"layer": name, "part": "mark"},
    )


def _marks(
    figure: go.Figure, name: str, look: base.Look, size: Floats, x: Floats, y: Floats, twin: Any
) -> None:
    """Mark on a curve the sizes at which the twin says the layer changes behaviour."""
    if twin is None or len(size) < 2:
        return
    found = [step for step in steps(twin) if step["layer"] == name and size[0] < step["bytes"] <= size[-1]]
    if not found:
        return
    at = np.array([step["bytes"] for step in found], np.float64)
    on_x, on_y = (
        at if values is size else np.exp(np.interp(np.log(at), np.log(size), np.log(values)))
        for values in (x, y)
    )
    texts = [
        f"waits for the receiver (rendezvous) from {words.size_text(step['bytes'])}"
        if step["why"] == "rendezvous"
        else f"behaves differently from {words.size_text(step['bytes'])}"
        for step in found
    ]
    _ring(figure, name, look, on_x.tolist(), on_y.tolist(), texts, "diamond-open")


def _frame_sizes(figure: go.Figure, curves: pl.DataFrame) -> None:
    sizes = _column(curves, "bytes")
    if len(sizes):
        base.size_axis(figure, float(sizes.min()), float(sizes.max()), "x", "Message size")


def _frame_times(figure: go.Figure, curves: pl.DataFrame, which: str) -> None:
    times = _column(curves, "time_us") / 1e6
    if len(times):
        base.time_axis(figure, float(times.min()), float(times.max()), 1e-6, which)


def _frame(values: Floats) -> tuple[float, float]:
    """Frame a logarithmic axis by the curves; an interval of few launches may reach decades beyond them."""
    values = values[np.isfinite(values) & (values > 0)]
    if not len(values):
        return 0.0, math.inf
    low, high = math.log10(values.min()), math.log10(values.max())
    pad = 0.06 * max(high - low, 1.0)
    return 10.0 ** (low - pad), 10.0 ** (high + pad)


def _log_range(frame: tuple[float, float]) -> list[float] | None:
    return [math.log10(end) for end in frame] if math.isfinite(frame[1]) else None


def _rate_ticks(rates: Floats) -> dict[str, Any]:
    """Ticks for a logarithmic axis of rates, named with their unit."""
    low, high = _frame(rates)
    if not math.isfinite(high):
        return {}
    values = base.log_ticks(low, high)
    return {"tickvals": values, "ticktext": [words.tick_text(value, "rate") for value in values]}
