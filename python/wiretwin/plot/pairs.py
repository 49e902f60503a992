"""Every two hosts in a square: how long a message takes between them, by colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import polars as pl

from wiretwin.plot import base, words
from wiretwin.plot.theme import LIGHT, Theme

__all__ = ["matrix"]

CELL, FRAME = 22, 120
"""Pixels of a host, and of what is around the square."""
LEAST, MOST = 260, 640


def matrix(
    table: pl.DataFrame, layer: str, size: int, hosts: Sequence[str], *, theme: Theme = LIGHT
) -> go.Figure:
    """Draw the one-way latency between every two hosts; on the diagonal, within a host.

    Parameters
    ----------
    table
        As `wiretwin.fit.pairs.pair_table`.
    layer, size
        Which rows: the layer, and the message size in bytes.
    hosts
        In the order of the rows and columns: those of one switch beside each other show as a block.
    theme
        Colours; the darker, the longer, on a logarithmic scale. A pair that was not measured is empty.
    """
    at = {host: number for number, host in enumerate(hosts)}
    time_us = np.full((len(hosts), len(hosts)), np.nan)
    rows = table.filter((pl.col("layer") == layer) & (pl.col("bytes") == size))
    for a, b, value in rows.select("a", "b", "value_us").iter_rows():
        time_us[at[a], at[b]] = time_us[at[b], at[a]] = value
    height = min(MOST, max(LEAST, CELL * len(hosts) + FRAME))
    figure = base.empty(height, theme, f"pairs-{layer}-{size}")
    texts = [
        [f"{a} and {b}: {words.time_text(time / 1e6)}" for b, time in zip(hosts, row, strict=True)]
        for a, row in zip(hosts, time_us, strict=True)
    ]
    known = time_us[np.isfinite(time_us)]
    ends = np.log10([known.min(), known.max()]) if known.size else np.array([0.0, 1.0])
    ticks = np.linspace(ends[0], ends[1] if ends[1] > ends[0] else ends[0] + 0.01, base.LEAST_TICKS)
    figure.add_heatmap(
        x=list(hosts),
        y=list(hosts),
        z=np.log10(time_us),
        text=texts,
        hovertemplate="%{text}<extra></extra>",
        hoverongaps=False,
        colorscale=[[0.0, theme.grid], [1.0, theme.series[0]]],
        colorbar={
            "tickvals": list(ticks),
            "ticktext": [words.time_text(10**tick / 1e6) for tick in ticks],
            "thickness": 12,
            "outlinewidth": 0,
        },
        xgap=1,
        ygap=1,
        meta={"part": "pairs"},
    )
    figure.update_yaxes(autorange="reversed", type="category", showgrid=False)
    figure.update_xaxes(type="category", showgrid=False)
    return figure
