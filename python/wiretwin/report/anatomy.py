"""The page of one message: where the time of its way goes, as a waterfall and a table."""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go

from wiretwin.model.anatomy import Anatomy, lines
from wiretwin.plot import base, words
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import Column, FigureBlock, Group, Page, Section, Table
from wiretwin.report.writer import html
from wiretwin.results import write_atomically

__all__ = ["render_anatomy"]

LAYERS = ("program", "message", "system", "transport", "adaptation", "driver", "adapter", "link", "switch")


def render_anatomy(found: Anatomy, out: Path) -> Path:
    """Write the page of one message.

    Raises
    ------
    StorageError
        When the file cannot be written.
    """
    network = found.network
    title = f"{network.stack}: where {words.time_text(found.latency_ps / 1e12)} of a message go"
    subtitle = f"{found.bytes} bytes · {network.between}"
    summed = lines(found)
    top = max(summed, key=lambda line: line.span_ps)
    lead = (
        "From the call that sends to the return of the call that receives, along the critical path: every "
        "picosecond on one line, waiting for what is taken on lines of its own."
    )
    summary = (
        f"The longest part is {top.activity} at {top.place}: {words.time_text(top.span_ps / 1e12)}, "
        f"{words.percent_text(top.span_ps / found.latency_ps)} of the whole."
    )
    columns = [
        Column("Where"),
        Column("Layer"),
        Column("Resource"),
        Column("Activity"),
        Column("Times", True),
        Column("Time [us]", True),
        Column("Share", True),
    ]
    rows = [
        [
            line.place,
            line.layer,
            line.resource,
            line.activity,
            str(line.times),
            f"{line.span_ps / 1e6:.3f}",
            words.percent_text(line.span_ps / found.latency_ps),
        ]
        for line in summed
    ]
    rows.append(["all", "", "", "", "", f"{found.latency_ps / 1e6:.3f}", words.percent_text(1.0)])
    table = Table("The parts, which sum to the latency", columns, rows)
    block = FigureBlock("anatomy", "The message as a waterfall", summary, _waterfall(found), table)
    section = Section("anatomy", "Where the time goes", "Anatomy", lead, [Group([block])])
    write_atomically(out, html(Page(title=title, subtitle=subtitle, sections=[section])).encode())
    return out


def _waterfall(found: Anatomy) -> go.Figure:
    summed = lines(found)
    labels = [f"{line.place}: {line.activity} ({line.layer})" for line in summed]
    row = {(line.place, line.layer, line.resource, line.activity): at for at, line in enumerate(summed)}
    figure = base.empty(110 + 24 * len(summed), LIGHT, "anatomy")
    for layer in dict.fromkeys(line.layer for line in summed):
        parts = [part for part in found.path if part.layer == layer]
        colour = LIGHT.series[LAYERS.index(layer) % len(LIGHT.series)]
        figure.add_trace(
            go.Bar(
                orientation="h",
                base=[part.start_ps / 1e6 for part in parts],
                x=[part.span_ps / 1e6 for part in parts],
                y=[labels[row[part.place, part.layer, part.resource, part.activity]] for part in parts],
                marker={
                    "color": colour,
                    "opacity": [0.4 if part.activity == "waiting" else 1 for part in parts],
                },
                name=layer,
                hovertemplate="%{y}: %{x:.3f} us from %{base:.3f} us<extra></extra>",
            )
        )
    figure.update_layout(barmode="overlay", showlegend=False)
    figure.update_yaxes(categoryorder="array", categoryarray=labels, autorange="reversed")
    figure.update_xaxes(title="time since the call [us]")
    return figure
