"""Programs: predicted against actual, and where each rank's time went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import plotly.graph_objects as go

from wiretwin.plot import base, words
from wiretwin.plot.data import as_mapping
from wiretwin.plot.theme import KINDS, LIGHT, Theme, fade

MOST_RANKS = 16
"""Ranks whose bars are drawn at most."""

KIND_WORDS: Mapping[str, str] = {
    "compute": "compute",
    "endpoint": "endpoint",
    "wire": "wire",
    "waiting": "waiting",
    "mpi": "in MPI",
}
"""Kinds of time in words; `mpi` is what a real run can tell: all time inside MPI calls."""


def program_name(record: Any) -> str:
    """`heat2d.py 512 100 on 2 ranks` of a prediction or run."""
    record = as_mapping(record)
    words_of = [PurePath(str(record.get("program", "program"))).name, *map(str, record.get("args", []))]
    text = " ".join(words_of)
    text = text if len(text) <= 48 else text[:47] + "…"
    return f"{text} on {words.count_text(int(record.get('ranks', 1)), 'rank')}"


def predicted_vs_actual(comparisons: Sequence[Any], *, theme: Theme = LIGHT) -> go.Figure:
    """(predicted - actual) / actual per program, with intervals, over bands at 10 % and 25 %.

    The dot is at the medians. Its line spans the prediction's interval over the actual median; the grey bar
    behind it is the interval of the actual median itself.
    """
    records = [as_mapping(item) for item in comparisons]
    rows = [_relative(record) for record in records]
    height = 70 + 58 * len(rows)
    figure = base.empty(height, theme, "predicted_vs_actual")
    for half, opacity in ((25, 0.07), (10, 0.12)):
        figure.add_vrect(
            x0=-half, x1=half, fillcolor=fade(theme.good, opacity), line={"width": 0}, layer="below"
        )
    figure.add_vline(x=0, line={"color": theme.axis, "width": 1}, layer="below")
    y = list(range(len(rows)))
    _spans(figure, [(row["actual_low"], row["actual_high"]) for row in rows], y, theme.axis, 11, "actual")
    _spans(figure, [(row["low"], row["high"]) for row in rows], y, theme.series[0], 2, "predicted")
    figure.add_scatter(
        x=[row["error"] for row in rows],
        y=y,
        mode="markers",
        name="prediction, at the medians",
        marker={"size": 11, "color": theme.series[0], "line": {"color": theme.surface, "width": 1.5}},
        text=[row["text"] for row in rows],
        hovertemplate="%{text}<extra></extra>",
        meta={"part": "points"},
    )
    reach = max([28.0] + [abs(row[key]) * 1.08 for row in rows for key in ("error", "low", "high")])
    step = 10 if reach < 35 else (25 if reach < 130 else 100)
    ticks = [at for at in range(-1000, 1001, step) if abs(at) <= reach]
    figure.update_xaxes(
        range=[-reach, reach],
        tickvals=ticks,
        ticktext=[words.percent_text(at / 100, signed=at > 0).replace(".0", "") for at in ticks],
        showgrid=False,
        title={"text": "Predicted against actual time"},
    )
    figure.update_yaxes(range=[len(rows) - 0.5, -0.72], showgrid=False, showticklabels=False)
    for at, row in enumerate(rows):
        figure.add_annotation(
            text=words.escape(row["name"]),
            xref="paper",
            x=0.006,
            xanchor="left",
            y=at - 0.36,
            yanchor="middle",
            showarrow=False,
            font={"size": 12},
        )
    figure.update_layout(showlegend=False, margin={"t": 6})
    return figure


def compared(record: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return what is compared: predicted and actual time, of the state of the host that most launches saw."""
    predicted = record.get("predicted") or as_mapping(record["prediction"])["seconds"]
    actual = record.get("actual") or as_mapping(record["run"])["seconds"]
    return as_mapping(predicted), as_mapping(actual)


def _relative(record: Mapping[str, Any]) -> dict[str, Any]:
    predicted, actual = compared(record)
    middle = actual["value"]

    def against(value: float) -> float:
        return float(100 * (value - middle) / middle)

    name = program_name(record["prediction"])
    text = (
        f"<b>{words.escape(name)}</b><br>"
        f"predicted {words.time_interval_text(predicted['value'], predicted['low'], predicted['high'])}<br>"
        f"actual {words.time_interval_text(actual['value'], actual['low'], actual['high'])}<br>"
        f"error {words.percent_text(record['error'], signed=True)}"
    )
    return {
        "name": name,
        "error": 100 * record["error"],
        "low": against(predicted["low"]),
        "high": against(predicted["high"]),
        "actual_low": against(actual["low"]),
        "actual_high": against(actual["high"]),
        "text": text,
    }


def _spans(
    figure: go.Figure,
    spans: Sequence[tuple[float, float]],
    y: Sequence[float],
    colour: str,
    width: float,
    part: str,
) -> None:
    """Level bars, one a row, as one trace."""
    figure.add_scatter(
        x=[value for low, high in spans for value in (low, high, None)],
        y=[value for at in y for value in (at, at, None)],
        mode="lines",
        line={"color": colour, "width": width},
        hoverinfo="skip",
        meta={"part": part},
    )


def breakdown(prediction: Any, run: Any = None, *, theme: Theme = LIGHT) -> go.Figure:
    """Stack the time of each rank: the model by its four kinds, beside the run by compute and in MPI."""
    modelled = {
        int(row["rank"]): {kind: float(row[f"{kind}_s"]) for kind in KINDS}
        for row in map(as_mapping, as_mapping(prediction).get("per_rank", []))
    }
    real: dict[int, dict[str, float]] = {}
    if run is not None:
        real = {
            int(row["rank"]): {"compute": float(row["compute_s"]), "mpi": float(row["mpi_s"])}
            for row in map(as_mapping, as_mapping(run).get("split", []))
        }
    bars: list[tuple[str, dict[str, float]]] = []
    for rank in shown_ranks(prediction):
        if rank in real:
            bars.append((f"rank {rank}, run", real[rank]))
        if rank in modelled:
            bars.append((f"rank {rank}, model", modelled[rank]))
    longest = max([sum(parts.values()) for _name, parts in bars], default=1.0)
    unit, unit_name = base.linear_time_unit(longest)
    figure = base.empty(96 + 30 * len(bars), theme, "breakdown")
    labels = [name for name, _parts in bars]
    for kind in ("compute", "mpi", *KINDS[1:]):
        values = [parts.get(kind, 0.0) for _name, parts in bars]
        if not any(values):
            continue
        totals = [sum(parts.values()) for _name, parts in bars]
        figure.add_bar(
            x=[value / unit for value in values],
            y=labels,
            orientation="h",
            name=KIND_WORDS[kind],
            marker={"color": theme.kinds[kind], "line": {"color": theme.surface, "width": 1}},
            customdata=[
                f"{KIND_WORDS[kind]} {words.time_text(value)}, {words.percent_text(value / total)}"
                if total > 0
                else ""
                for value, total in zip(values, totals, strict=True)
            ],
            hovertemplate="<b>%{y}</b><br>%{customdata}<extra></extra>",
            meta={"part": "kind", "kind": kind},
        )
    figure.update_layout(barmode="stack", bargap=0.28)
    figure.update_xaxes(title={"text": f"Time, {unit_name}"}, rangemode="tozero", gridcolor=theme.grid)
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont={"color": theme.ink})
    return figure


def shown_ranks(prediction: Any, most: int = MOST_RANKS) -> list[int]:
    """All ranks of a prediction, or `most` of them spread evenly, the busiest and the idlest among them."""
    rows = [as_mapping(row) for row in as_mapping(prediction).get("per_rank", [])]
    ranks = sorted(int(row["rank"]) for row in rows)
    if len(ranks) <= most:
        return ranks
    busy = sorted(rows, key=lambda row: (float(row["compute_s"]), int(row["rank"])))
    spread = {ranks[int(at)] for at in np.linspace(0, len(ranks) - 1, most - 2)}
    return sorted(spread | {int(busy[0]["rank"]), int(busy[-1]["rank"])})


def shares(rows: Sequence[Any], kinds: Sequence[str]) -> dict[str, float]:
    """Share of each kind in the time of all ranks together."""
    plain = [as_mapping(row) for row in rows]
    sums = {kind: float(np.sum([row[f"{kind}_s"] for row in plain])) for kind in kinds}
    total = sum(sums.values())
    return {kind: value / total if total > 0 else 0.0 for kind, value in sums.items()}
