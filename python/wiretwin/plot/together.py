"""What ranks did together: time against size, and how the times of single calls are distributed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl

from wiretwin.errors import InputError
from wiretwin.fit.together import SCHEMA, STREAMS, loops_of, single_times, together_table
from wiretwin.plot import base, words
from wiretwin.plot.data import Floats, Source, layer_order, samples_of
from wiretwin.plot.theme import LIGHT, Theme

__all__ = ["QUANTILES", "collective", "distribution", "drawn_distribution", "quantiles"]

QUANTILES = np.concatenate([np.linspace(0.0, 0.98, 99), np.linspace(0.985, 0.999, 15), [1.0]])
"""The shares of calls at which a distribution is drawn: finer where it is rare and long."""


def quantiles(samples: pl.DataFrame, layer: str, loop: str, size: int, delay_ns: int | None = None) -> Floats:
    """Return the times, us, that the shares `QUANTILES` of all calls do not exceed; empty without calls."""
    times = single_times(samples, layer, loop, size, delay_ns).to_numpy()
    if not len(times):
        return np.empty(0)
    return np.asarray(np.quantile(times, QUANTILES, method="inverted_cdf"), dtype=np.float64)


def collective(
    source: Source | pl.DataFrame,
    loop: str,
    *,
    layers: Sequence[str] | None = None,
    theme: Theme = LIGHT,
) -> go.Figure:
    """Time of the slowest rank against size, with the interval between launches as a band; of a stream, rate.

    Parameters
    ----------
    source
        A result of ranks that did something together, its folder, its samples, or a table of
        `wiretwin.fit.together.together_table`.
    loop
        What they did: ``allreduce``.
    layers
        Which layers, in which order; by default all, in the order they were measured.
    theme
        Colours.

    Raises
    ------
    InputError
        The loop was not measured.
    """
    if isinstance(source, pl.DataFrame) and set(source.columns) == set(SCHEMA):
        table, order = source, list(dict.fromkeys(source["layer"].to_list()))
    else:
        frame = samples_of(source)
        table, order = together_table(frame), layer_order(frame)
    known = list(dict.fromkeys(table["loop"].to_list()))
    if loop not in known:
        raise InputError(
            key="loop", value=loop, reason="was not measured", allowed=", ".join(known) or "none"
        )
    names = list(order if layers is None else layers)
    looks = base.looks(names, theme)
    streams = loop in STREAMS
    table = table.filter(pl.col("loop") == loop, pl.col("bytes") > 0).sort("layer", "bytes")
    figure = base.empty(320, theme, f"together-{loop}")
    for name in names:
        part = table.filter(pl.col("layer") == name)
        if not len(part):
            continue
        size, value, low, high, rate = (
            part[key].cast(pl.Float64).to_numpy()
            for key in ("bytes", "value_us", "low_us", "high_us", "rate_MB_s")
        )
        if streams:
            value, low, high = rate, rate * value / high, rate * value / low
        base.band(figure, name, looks[name], (size, low), (size, high))
        texts = [
            f"{words.size_text(row['bytes'])}: "
            f"{words.time_interval_text(row['value_us'] / 1e6, row['low_us'] / 1e6, row['high_us'] / 1e6)}, "
            f"mean of the ranks {words.time_text((row['mean_us'] or row['value_us']) / 1e6)}, "
            f"99 % of calls within {words.time_text(row['p99_us'] / 1e6)}"
            + (f", {words.rate_text(row['rate_MB_s'])}" if streams else "")
            for row in part.iter_rows(named=True)
        ]
        base.line(figure, name, looks[name], size, value, texts)
    sizes = table["bytes"].cast(pl.Float64).to_numpy()
    if len(sizes):
        base.size_axis(figure, float(sizes.min()), float(sizes.max()), "x", "Message, or block of one rank")
        if streams:
            rates = table["rate_MB_s"].to_numpy()
            ticks = base.log_ticks(float(rates.min()) / 1.02, float(rates.max()) * 1.02)
            texts = [words.tick_text(tick, "rate") for tick in ticks]
            figure.update_yaxes(type="log", tickvals=ticks, ticktext=texts)
        else:
            times = table["value_us"].to_numpy() / 1e6
            base.time_axis(figure, float(times.min()), float(times.max()), 1e-6, "y")
    base.caption_y(figure, "All pairs together" if streams else "Slowest rank")
    return figure


def distribution(
    source: Source,
    loop: str,
    size: int,
    *,
    layers: Sequence[str] | None = None,
    theme: Theme = LIGHT,
) -> go.Figure:
    """Share of calls that took at most so long, over all launches.

    Parameters
    ----------
    source
        A result, its folder, or its samples.
    loop
        Any loop: ``allreduce``.
    size
        Of a message, or of the block of one rank, in bytes.
    layers
        Which layers, in which order; by default all, in the order they were measured.
    theme
        Colours.

    Raises
    ------
    InputError
        No layer was measured with that loop and size.
    """
    samples = samples_of(source)
    order = layer_order(samples)
    found = {name: quantiles(samples, name, loop, size) for name in (order if layers is None else layers)}
    if not any(len(times) for times in found.values()):
        allowed = ", ".join(loops_of(samples)) or "a loop and a size of the result"
        raise InputError(key="loop", value=f"{loop} of {size} B", reason="was not measured", allowed=allowed)
    return drawn_distribution(found, f"distribution-{loop}-{size}", theme)


def drawn_distribution(found: dict[str, Floats], name: str, theme: Theme = LIGHT) -> go.Figure:
    """Draw the `quantiles` of each layer, us, on a logarithmic axis of time."""
    figure = base.empty(320, theme, name)
    looks = base.looks(list(found), theme)
    shares = 100.0 * QUANTILES
    for layer, times in found.items():
        if not len(times):
            continue
        label = words.escape(layer)
        texts = [
            f"{words.digits(share)} % of calls within {words.time_text(time / 1e6)}"
            for share, time in zip(shares, times, strict=True)
        ]
        figure.add_scatter(
            x=times,
            y=shares,
            mode="lines",
            line={"color": looks[layer].colour, "width": 2, "dash": looks[layer].dash, "shape": "hv"},
            name=label,
            legendgroup=label,
            text=texts,
            hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
            meta={"layer": layer, "part": "curve"},
        )
    every = np.concatenate([times for times in found.values() if len(times)])
    base.time_axis(figure, float(every.min()) / 1e6, float(every.max()) / 1e6, 1e-6, "x", "Time of one call")
    figure.update_yaxes(range=[0, 101], ticksuffix=" %")
    base.caption_y(figure, "Calls within")
    return figure
