"""Report pages: a paper rebuilt, and the anatomy of a message."""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go

from wiretwin.papers.anatomy import Anatomy, lines
from wiretwin.papers.records import Record
from wiretwin.plot import base, words
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import Column, FigureBlock, Group, Page, Section, Table, TableBlock
from wiretwin.report.writer import html
from wiretwin.results import write_atomically

__all__ = ["render", "render_anatomy"]

LAYERS = ("program", "message", "system", "transport", "adaptation", "driver", "adapter", "link", "switch")


def render(paper: str, records: list[Record], out: Path) -> Path:
    """Write the page of a paper's experiments.

    Raises
    ------
    StorageError
        When the file cannot be written.
    """
    from wiretwin.papers.run import PAPERS

    experiments = list(dict.fromkeys(record.experiment for record in records))
    sections = [
        _experiment(name, [record for record in records if record.experiment == name]) for name in experiments
    ]
    fitted = [record for record in records if record.published is not None]
    said = f"{len(fitted)} values that the model was fitted to, {len(records) - len(fitted)} predicted"
    page = Page(title=PAPERS[paper].TITLE, subtitle=said, sections=sections)
    write_atomically(out, html(page).encode())
    return out


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def _experiment(name: str, records: list[Record]) -> Section:
    rows = [
        [
            record.case,
            record.metric,
            _number(record.predicted),
            "" if record.low is None else f"{_number(record.low)} to {_number(record.high)}",
            record.role,
            _number(record.published),
            "" if record.published is None else f"{100 * (record.predicted / record.published - 1):+.1f} %",
        ]
        for record in records
    ]
    columns = [
        Column("Case"),
        Column("Metric"),
        Column("Model", True),
        Column("Interval", True),
        Column("Role"),
        Column("Published", True),
        Column("Error", True),
    ]
    table = Table(f"All values of {name}", columns, rows)
    blocks: list[FigureBlock | TableBlock] = []
    sized = [record for record in records if " size=" in record.case and record.metric == "latency_us"]
    if sized:
        blocks.append(_by_size(name, sized))
    compared = [record for record in records if record.published is not None]
    if compared:
        blocks.append(fit_errors(name, compared))
    blocks.append(TableBlock(f"{name}-values", "Values", table))
    lead = "Published values appear only where the model was fitted to them; the others are predictions."
    return Section(name, name, name, lead, [Group(blocks)])


def _short(record: Record) -> str:
    values = [part.split("=")[1] for part in record.case.split()]
    return " ".join([*values, record.metric.rsplit("_", 1)[0]])


def fit_errors(name: str, records: list[Record]) -> FigureBlock:
    """Draw how far calibration values are from the published ones, in per cent, each of them in sight."""
    figure = base.empty(120 + 22 * len(records), LIGHT, f"errors-{name}")
    errors = [100 * (record.predicted / (record.published or 1) - 1) for record in records]
    labels = [_short(record) for record in records]
    figure.add_trace(
        go.Scatter(
            x=errors,
            y=labels,
            mode="markers",
            marker={"color": LIGHT.series[0], "size": 9},
            hovertemplate="%{y}: %{x:+.1f} %<extra></extra>",
        )
    )
    worst = max(errors, key=abs)
    reach = max(30.0, 1.1 * abs(worst))
    figure.update_xaxes(title="model against published [%]", zeroline=True, range=[-reach, reach])
    figure.update_yaxes(autorange="reversed")
    rows = [[label, f"{error:+.1f} %"] for label, error in zip(labels, errors, strict=True)]
    table = Table("Errors of the fit", [Column("Value"), Column("Error", True)], rows)
    summary = f"{len(records)} calibration values; the furthest is {worst:+.1f} % off."
    return FigureBlock(f"{name}-errors", "The fit against what is published", summary, figure, table)


def _by_size(name: str, records: list[Record]) -> FigureBlock:
    figure = base.empty(380, LIGHT, f"latency-{name}")
    sizes = [int(record.case.rsplit("size=", 1)[1].split()[0]) for record in records]
    values = [record.predicted for record in records]
    ends = [(record.low or record.predicted, record.high or record.predicted) for record in records]
    figure.add_trace(
        go.Scatter(
            x=sizes,
            y=values,
            error_y={
                "type": "data",
                "array": [high - value for value, (_, high) in zip(values, ends, strict=True)],
                "arrayminus": [value - low for value, (low, _) in zip(values, ends, strict=True)],
                "thickness": 1,
            },
            mode="lines+markers",
            line={"color": LIGHT.series[0]},
            hovertemplate="%{x} bytes: %{y:.0f} us<extra></extra>",
        )
    )
    figure.update_xaxes(title="message [bytes]")
    base.caption_y(figure, "Latency [us], mean with its 90 % interval")
    rows = [[str(size), f"{value:.1f}"] for size, value in zip(sizes, values, strict=True)]
    table = Table("Latency by size", [Column("Bytes", True), Column("Latency [us]", True)], rows)
    summary = (
        f"{len(sizes)} sizes from {sizes[0]} to {sizes[-1]} bytes: {values[0]:.0f} to {values[-1]:.0f} us."
    )
    return FigureBlock(f"{name}-latency", "Latency by size", summary, figure, table)


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
