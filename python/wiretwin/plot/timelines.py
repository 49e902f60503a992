"""The timeline of a simulated program: one row a rank, coloured by kind of time.

A run may have millions of intervals and a screen has a few hundred columns. Few intervals are drawn one by
one. Many are summed into columns of equal width, and a column is divided by height into the shares of its
kinds: the time of each kind stays exact, only its order within a column is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from wiretwin.plot import base, words
from wiretwin.plot.data import Floats
from wiretwin.plot.programs import KIND_WORDS
from wiretwin.plot.theme import KINDS, LIGHT, Theme

MOST_RANKS = 64
"""Rows a figure shows at most."""

MOST_INTERVALS = 1500
"""Intervals that are still drawn one by one."""

CELLS = 3200
"""Columns times rows, where intervals are summed."""

_WIDTH = {"compute": 20, "endpoint": 20, "wire": 12, "waiting": 4}
_HALF_ROW = 0.38


def read_timeline(source: pl.DataFrame | str | Path) -> pl.DataFrame:
    """Take a timeline frame or the Parquet file of one; reject one without the columns needed."""
    frame = source if isinstance(source, pl.DataFrame) else pl.read_parquet(source)
    needed = ("rank", "start_ps", "end_ps", "kind")
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise ValueError(f"timeline: column {missing[0]!r} is missing; needed are {', '.join(needed)}")
    for name, kind, value in (
        ("name", pl.String, ""),
        ("site", pl.String, ""),
        ("peer", pl.Int64, -1),
        ("bytes", pl.UInt64, 0),
    ):
        if name not in frame.columns:
            frame = frame.with_columns(pl.lit(value, kind).alias(name))
    frame = frame.with_columns(
        pl.col("kind").cast(pl.String), pl.col("name").fill_null(""), pl.col("site").fill_null("")
    )
    unknown = sorted({str(kind) for kind in frame["kind"].unique()} - set(KINDS))
    if unknown:
        raise ValueError(f"timeline: kind {unknown[0]!r}; allowed are {', '.join(KINDS)}")
    return frame.filter(pl.col("end_ps") > pl.col("start_ps")).sort("rank", "start_ps")


def column_count(ranks: int) -> int:
    """Columns a summed timeline has."""
    return max(80, min(320, CELLS // max(1, ranks)))


def summed(frame: pl.DataFrame, edges: Floats) -> dict[int, dict[str, Floats]]:
    """Time of each kind between neighbouring `edges` (ps), by rank: `{rank: {kind: array}}`.

    The sum over all columns is the sum over all intervals: nothing is sampled, an interval is divided
    where an edge cuts it.
    """
    out: dict[int, dict[str, Floats]] = {}
    for (rank, kind), part in frame.group_by(["rank", "kind"], maintain_order=True):
        start = part["start_ps"].to_numpy().astype(np.float64)
        end = part["end_ps"].to_numpy().astype(np.float64)
        done = np.concatenate([[0.0], np.cumsum(end - start)])
        times = np.column_stack([start, end]).ravel()
        so_far = np.column_stack([done[:-1], done[1:]]).ravel()
        row = out.setdefault(int(rank), {})
        row[str(kind)] = np.diff(np.interp(edges, times, so_far))
    return out


def closer_window(frame: pl.DataFrame, per_rank: int = 120) -> tuple[int, int] | None:
    """Choose a window `(start_ps, end_ps)` about the middle with at most about so many intervals per rank.

    None if the whole run has little more than that.
    """
    ranks = frame["rank"].n_unique() if len(frame) else 0
    if not ranks:
        return None
    per_rank = max(12, min(per_rank, MOST_INTERVALS // (2 * ranks)))
    if len(frame) <= 3 * per_rank * ranks:
        return None
    counts = frame.group_by("rank").len().sort("len", "rank", descending=[True, False])
    busiest = frame.filter(pl.col("rank") == counts["rank"][0]).sort("start_ps")
    first = max(0, len(busiest) // 2 - per_rank // 2)
    last = min(len(busiest) - 1, first + per_rank)
    return int(busiest["start_ps"][first]), int(busiest["end_ps"][last])


def shown_ranks(frame: pl.DataFrame, most: int = MOST_RANKS) -> list[int]:
    """All ranks, or `most` of them spread evenly, the one that ends last among them."""
    ranks = [int(rank) for rank in frame["rank"].unique().sort()]
    if len(ranks) <= most:
        return ranks
    spread = {ranks[int(at)] for at in np.linspace(0, len(ranks) - 1, most - 1)}
    ends = frame.group_by("rank").agg(pl.col("end_ps").max()).sort("end_ps", "rank")
    return sorted(spread | {int(ends["rank"][-1])})


def timeline(
    source: pl.DataFrame | str | Path,
    *,
    window_ps: tuple[int, int] | None = None,
    most: int = MOST_INTERVALS,
    theme: Theme = LIGHT,
) -> go.Figure:
    """Draw what each rank does over virtual time: compute, endpoint, wire and waiting.

    Parameters
    ----------
    source
        A timeline frame or its Parquet file: `rank start_ps end_ps kind`, and if there `name site bytes`.
    window_ps
        Show only this part, `(start, end)`, in picoseconds.
    most
        Up to so many intervals are drawn one by one; more are summed into columns.
    theme
        Colours.
    """
    frame = read_timeline(source)
    ranks = shown_ranks(frame)
    frame = frame.filter(pl.col("rank").is_in(ranks))
    if window_ps is not None:
        low, high = window_ps
        frame = frame.filter((pl.col("end_ps") > low) & (pl.col("start_ps") < high)).with_columns(
            pl.col("start_ps").clip(lower_bound=low), pl.col("end_ps").clip(upper_bound=high)
        )
    start, end = window_ps if window_ps is not None else bounds(frame)
    unit, unit_name = base.linear_time_unit((end - start) / 1e12)
    row_of = {rank: at for at, rank in enumerate(ranks)}
    row_height = 44 if len(ranks) <= 8 else 26
    figure = base.empty(96 + row_height * len(ranks), theme, "timeline")
    if len(frame) <= most:
        _one_by_one(figure, frame, row_of, unit, theme, min(1.0, row_height / 36))
    else:
        edges = np.linspace(start, end, column_count(len(ranks)) + 1)
        _columns(figure, summed(frame, edges), edges, row_of, unit, theme)
    figure.update_xaxes(
        title={"text": f"Virtual time, {unit_name}"},
        range=[start / 1e12 / unit, end / 1e12 / unit],
        exponentformat="none",  # not 35.65k
        separatethousands=True,
    )
    figure.update_yaxes(
        tickvals=list(row_of.values()),
        ticktext=[f"rank {rank}" for rank in ranks],
        range=[len(ranks) - 0.5, -0.5],
        showgrid=False,
        fixedrange=True,
        tickfont={"color": theme.ink},
    )
    return figure


def bounds(frame: pl.DataFrame) -> tuple[int, int]:
    """Return the first start and the last end, ps."""
    if not len(frame):
        return 0, 1
    return int(frame["start_ps"].min() or 0), int(frame["end_ps"].max() or 1)  # type: ignore[arg-type]


def _one_by_one(
    figure: go.Figure, frame: pl.DataFrame, row_of: Mapping[int, int], unit: float, theme: Theme, scale: float
) -> None:
    """Draw every interval; those of a kind are one trace: start, middle, end, gap."""
    for kind in KINDS:
        part = frame.filter(pl.col("kind") == kind)
        if not len(part):
            continue
        start = part["start_ps"].to_numpy() / 1e12 / unit
        end = part["end_ps"].to_numpy() / 1e12 / unit
        rows = np.array([row_of[int(rank)] for rank in part["rank"]], np.float64)
        gap = np.full(len(start), np.nan)
        figure.add_scatter(
            x=np.column_stack([start, (start + end) / 2, end, gap]).ravel(),
            y=np.repeat(rows, 4),
            mode="lines",
            name=KIND_WORDS[kind],
            line={
                "color": theme.kinds[kind],
                "width": max(3, round(_WIDTH[kind] * scale)),
                "simplify": False,
            },
            connectgaps=False,
            text=_spread([_text(row) for row in part.iter_rows(named=True)]),
            hovertemplate="%{text}<extra></extra>",
            meta={"part": "kind", "kind": kind},
        )


def _spread(texts: Sequence[str]) -> list[str]:
    """Put a text at the start, the middle and the end of its interval, and none in the gap after it."""
    return [value for text in texts for value in ("", text, "", "")]


def _text(row: dict[str, Any]) -> str:
    length = words.time_text((row["end_ps"] - row["start_ps"]) / 1e12)
    head = f"<b>rank {row['rank']}: {KIND_WORDS[row['kind']]}</b> {length}"
    details = [words.escape(row[key]) for key in ("name", "site") if row[key]]
    if row["bytes"]:
        details.append(words.size_text(row["bytes"]))
    return "<br>".join([head, ", ".join(details)]) if details else head


def _columns(
    figure: go.Figure,
    sums: Mapping[int, Mapping[str, Floats]],
    edges: Floats,
    row_of: Mapping[int, int],
    unit: float,
    theme: Theme,
) -> None:
    """Draw a row's columns divided by height: compute lowest, then endpoint, wire, waiting."""
    width = np.diff(edges)
    x = np.repeat(edges / 1e12 / unit, 2)[1:-1]
    floors = {rank: np.zeros(len(width)) for rank in row_of}
    for kind in KINDS:
        xs: list[Floats] = []
        ys: list[Floats] = []
        for rank, row in row_of.items():
            share = sums.get(rank, {}).get(kind)
            if share is None or not share.any():
                continue
            low = floors[rank]
            high = floors[rank] = np.minimum(1.0, low + share / width)
            lower, upper = (np.repeat(row + _HALF_ROW * (1 - 2 * level), 2) for level in (low, high))
            xs += [x, x[::-1], np.array([np.nan])]
            ys += [lower, upper[::-1], np.array([np.nan])]
        if not xs:
            continue
        figure.add_scatter(
            x=np.concatenate(xs),
            y=np.round(np.concatenate(ys), 4),
            mode="lines",
            name=KIND_WORDS[kind],
            line={"width": 0, "color": theme.kinds[kind], "simplify": False},
            fill="toself",
            fillcolor=theme.kinds[kind],
            hoverinfo="skip",
            meta={"part": "kind", "kind": kind},
        )
    _hover_columns(figure, sums, edges, row_of, unit)


def _hover_columns(
    figure: go.Figure,
    sums: Mapping[int, Mapping[str, Floats]],
    edges: Floats,
    row_of: Mapping[int, int],
    unit: float,
) -> None:
    """One unseen point a column, which says what is in it."""
    middle = (edges[:-1] + edges[1:]) / 2e12 / unit
    texts = []
    for rank in row_of:
        kinds = sums.get(rank, {})
        for at in range(len(middle)):
            parts = [
                f"{KIND_WORDS[kind]} {words.time_text(kinds[kind][at] / 1e12)}"
                for kind in KINDS
                if kind in kinds and kinds[kind][at] >= 0.5
            ]
            texts.append(
                f"<b>rank {rank}</b>, {words.time_text((edges[at + 1] - edges[at]) / 1e12)} "
                f"from {words.time_text(edges[at] / 1e12)}<br>{'<br>'.join(parts) or 'ended'}"
            )
    figure.add_scatter(
        x=np.tile(middle, len(row_of)),
        y=np.repeat(np.array(list(row_of.values()), np.float64), len(middle)),
        mode="markers",
        marker={"size": 8, "opacity": 0},
        text=texts,
        hovertemplate="%{text}<extra></extra>",
        showlegend=False,
        meta={"part": "columns"},
    )
