"""Report pages: a paper rebuilt, and the anatomy of a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go
from markupsafe import Markup, escape

from wiretwin.model.cases import keys_of
from wiretwin.model.values import Sheet
from wiretwin.papers import against_rho, collectives, matchings, shares
from wiretwin.papers.curves import Quantity, draw
from wiretwin.papers.curves import chips as chips_of
from wiretwin.papers.findings import findings, findings_of_fit
from wiretwin.papers.programs import SIDED, orders
from wiretwin.papers.records import Record, Tried
from wiretwin.plot import base, words
from wiretwin.plot.base import Look, looks
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import Chip, Column, FigureBlock, Group, Page, Section, Table, TableBlock
from wiretwin.report.writer import html
from wiretwin.results import write_atomically

__all__ = ["render"]

Trial = tuple[str, str, Tried]
"""A case, what was tried on it, and what came of that."""


def render(paper: str, records: list[Record], out: Path) -> Path:
    """Write the page of a paper's experiments.

    Raises
    ------
    StorageError
        When the file cannot be written.
    """
    from wiretwin.papers.run import PAPERS

    experiments = list(dict.fromkeys(record.experiment for record in records))
    trials = getattr(PAPERS[paper], "EVIDENCE", {})
    inputs = getattr(PAPERS[paper], "INPUTS", {})
    sections = [
        _experiment(
            name,
            [record for record in records if record.experiment == name],
            trials[name]() if name in trials else (),
            inputs[name]() if name in inputs else None,
        )
        for name in experiments
    ]
    fitted = [record for record in records if record.published is not None]
    values = "value" if len(fitted) == 1 else "values"
    said = f"{len(fitted)} {values} that the model was fitted to, {len(records) - len(fitted)} predicted"
    whole = set(experiments) == set(PAPERS[paper].EXPERIMENTS)
    found = findings(paper, None if whole else set(experiments)) + findings_of_fit(records)
    page = Page(
        title=PAPERS[paper].TITLE, subtitle=said, findings=[_marked(one) for one in found], sections=sections
    )
    write_atomically(out, html(page).encode())
    return out


def _marked(sentence: str) -> Markup:
    """Return a sentence for the page, what stands between backquotes as code."""
    parts = [escape(part) for part in sentence.split("`")]
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts)
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None else f"{_number(low)} to {_number(high)}"


def _experiment(
    name: str, records: list[Record], trials: Sequence[Trial], inputs: Sheet | None = None
) -> Section:
    rows = [
        [
            record.case,
            record.metric,
            _number(record.predicted),
            _interval(record.low, record.high),
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
    table = Table(f"All values of {name}", columns, rows, stacked=True)
    blocks: list[FigureBlock | TableBlock] = []
    sized = [record for record in records if " size=" in record.case and record.metric == "latency_us"]
    chips: list[Chip] = []
    if sized:
        figures, chips = _figures(name, sized)
        blocks += figures
        blocks += _rates(name, sized, records)
    if turns := [record for record in records if record.metric == "round_trip_us" and "size=" in record.case]:
        figure, chips = _round_trips(name, turns)
        blocks.append(figure)
    for kind in (against_rho, matchings, shares, collectives):
        figures, own = kind.figures(name, records)
        blocks += figures
        chips = own or chips
    compared = [record for record in records if record.published is not None]
    if compared:
        blocks.append(fit_errors(name, compared))
    if found := orders(records):
        ordered = [
            [one.of.removeprefix(f"{name} "), str(at), who, _number(time)]
            for one in found
            for at, (who, time) in enumerate(one.fastest_first, 1)
        ]
        heads = [Column("Program"), Column("Place", True), Column("Over"), Column("Time [s]", True)]
        title = "Stacks and networks, fastest first"
        summary = f"{len(found)} programs, each over what it was run on."
        blocks.append(TableBlock(f"{name}-orders", title, Table(title, heads, ordered), summary))
    if trials:
        blocks.append(_tried(name, trials))
    if inputs is not None:
        blocks.append(_inputs(name, inputs))
    predicted = sum(record.role == "prediction" for record in records)
    counted = f"{len(rows)} {'value' if len(rows) == 1 else 'values'}, {predicted} of them predicted."
    values = TableBlock(f"{name}-values", "Values", table, counted)
    lead = "Published values appear only where the model was fitted to them; the others are predictions."
    folded = len(rows) > 30
    if not folded:
        blocks.append(values)
    groups = [Group(blocks)] if blocks else []
    if folded:
        groups.append(Group([values], f"All {len(rows)} values", folded=True))
    return Section(name, name, name, lead, groups, chips)


def _inputs(name: str, sheet: Sheet) -> TableBlock:
    """List the values of a host: how each is known, with its interval where it has one."""
    rows = [
        [key, _number(one.value), _interval(one.low, one.high), one.by, one.source]
        for key, one in sheet.values.items()
    ]
    heads = [
        Column("Value"),
        Column("Number", True),
        Column("90 % interval", True),
        Column("Known by"),
        Column("Source"),
    ]
    known = [one.by for one in sheet.values.values()]
    summary = f"{len(known)} values, {known.count('measured')} of them measured."
    return TableBlock(f"{name}-inputs", sheet.title, Table(sheet.title, heads, rows, stacked=True), summary)


def _tried(name: str, trials: Sequence[Trial]) -> TableBlock:
    """Say of each interface what was tried on it, and what came of that."""
    rows = [
        [
            keys_of(case)["stack"],
            ability,
            "yes" if trial.able else "no",
            trial.evidence,
        ]
        for case, ability, trial in trials
    ]
    heads = [Column("Interface"), Column("Ability"), Column("Able"), Column("What came of it")]
    able = sum(trial.able for _, _, trial in trials)
    interfaces = len({case for case, _, _ in trials})
    summary = f"{interfaces} interfaces, each tried: {able} of {len(trials)} trials were a yes."
    title = "What was tried"
    return TableBlock(f"{name}-tried", title, Table(title, heads, rows, stacked=True), summary)


def fit_errors(name: str, records: list[Record]) -> FigureBlock:
    """Draw how far calibration values are from the published ones, in per cent, each of them in sight."""
    figure = base.empty(120 + 22 * len(records), LIGHT, f"errors-{name}")
    errors = [100 * (record.predicted / (record.published or 1) - 1) for record in records]
    cases = _labels([record.case for record in records])
    labels = [f"{cases[record.case]} {_symbol(record.metric)}" for record in records]
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
    figure.update_xaxes(title="error [%]", zeroline=True, range=[-reach, reach])
    figure.update_yaxes(autorange="reversed")
    rows = [[label, f"{error:+.1f} %"] for label, error in zip(labels, errors, strict=True)]
    table = Table("Errors of the fit", [Column("Value"), Column("Error", True)], rows)
    summary = f"{len(records)} calibration values; the furthest is {worst:+.1f} % off."
    return FigureBlock(f"{name}-errors", "The fit against what is published", summary, figure, table)


def _labels(cases: list[str]) -> dict[str, str]:
    """Name each case by what tells it from the others."""
    parts = [keys_of(case) for case in cases]
    keys = list(dict.fromkeys(key for one in parts for key in one))
    telling = [key for key in keys if len({one.get(key) for one in parts}) > 1]
    # Where the stack tells networks apart, the network and the adapter go without saying.
    least = [key for key in telling if key not in ("network", "adapter")] if "stack" in telling else telling
    labels = _joined(parts, least)
    if len(set(labels)) < len(set(cases)):
        labels = _joined(parts, telling)
    return {case: label or parts[0].get("stack", case) for case, label in zip(cases, labels, strict=True)}


def _joined(parts: list[dict[str, str]], keys: list[str]) -> list[str]:
    return [
        " ".join(_told(key, one[key], one.get("program", "")) for key in keys if key in one) for one in parts
    ]


def _symbol(metric: str) -> str:
    """Return a metric without its unit."""
    return next(
        (name for name in ("r_max", "n_half", "t0", "throughput") if metric.startswith(name)),
        metric.rsplit("_", 1)[0],
    )


def _told(key: str, value: str, program: str) -> str:
    size = f"n = {value}" if program in SIDED else f"{value} B"
    return {"buffer_kib": f"{value} KiB", "load": f"load {value}", "size": size}.get(key, value)


@dataclass(frozen=True)
class _Axis:
    """What latency is drawn against: a key of the case, and where a value stands."""

    key: str
    title: str
    hover: str


SIZE = _Axis("size", "Message size [bytes]", "%{x} bytes")
LOAD = _Axis("load", "Load on the lines to both hosts, a share of each", "load %{x}")

Curves = dict[str, list[tuple[float, Record]]]


def _curves(records: list[Record], axis: _Axis) -> Curves:
    """Sort values by case, without the key that they are drawn against."""
    curves: Curves = {}
    for record in records:
        keys = record.keys
        at = float(keys.pop(axis.key))
        curves.setdefault(" ".join(f"{key}={value}" for key, value in keys.items()), []).append((at, record))
    for points in curves.values():
        points.sort(key=lambda point: point[0])
    return curves


def _doubles(size: float) -> bool:
    return not int(size) & (int(size) - 1)


def _doubled(curves: Curves) -> Curves:
    """Keep the sizes that are powers of two."""
    return {case: [point for point in points if _doubles(point[0])] for case, points in curves.items()}


def _between(points: list[tuple[float, Record]]) -> list[tuple[float, Record]]:
    """Keep the sizes from the least to the greatest that is no power of two."""
    others = [at for at, _ in points if not _doubles(at)]
    return [point for point in points if others[0] <= point[0] <= others[-1]]


def _figures(name: str, records: list[Record]) -> tuple[list[FigureBlock], list[Chip]]:
    """Draw latency against size or load, a line for each case; sizes that double and fine ones apart."""
    if any(" load=" in record.case for record in records):
        drawn = {"by load": (_curves(records, LOAD), LOAD)}
    else:
        curves = _curves(records, SIZE)
        coarse = {case: points for case, points in _doubled(curves).items() if len(points) > 4}
        fine = {
            case: points if case not in coarse else _between(points)
            for case, points in curves.items()
            if case not in coarse or len(points) > len(coarse[case])
        }
        drawn = {"by size": (coarse, SIZE), "by size, in small steps": (fine, SIZE)}
    cases = list(dict.fromkeys(case for curves, _ in drawn.values() for case in curves))
    labels = _labels(cases)
    shown = looks(list(labels.values()))
    blocks = [
        _latency(f"{name}-latency-{number}", title, curves, axis, labels, shown)
        for number, (title, (curves, axis)) in enumerate(drawn.items())
        if curves
    ]
    return blocks, chips_of(shown) if len(shown) > 1 else []


def _round_trips(name: str, records: list[Record]) -> tuple[FigureBlock, list[Chip]]:
    """Draw round trips against size, a curve for each case."""
    found = _curves(records, SIZE)
    labels = _labels(list(found))
    curves = {labels[case]: points for case, points in found.items()}
    shown = looks(list(curves))
    figure = base.empty(420, LIGHT, f"{name}-round-trip")
    table, values = draw(figure, Quantity("Round trip", "us"), "size", "Case", curves, shown)
    sizes = [int(at) for points in curves.values() for at, _ in points]
    base.size_axis(figure, min(sizes), max(sizes), title="Message size")
    if max(values) > against_rho.DECADE * min(values):
        base.time_axis(figure, min(values) / 1e6, max(values) / 1e6, 1e-6, "y")
        base.caption_y(figure, "Round trip, with its 90 % interval")
    else:
        figure.update_yaxes(rangemode="tozero")
        base.caption_y(figure, "Round trip [us], with its 90 % interval")
    summary = f"{len(curves)} cases: {_number(min(values))} to {_number(max(values))} us."
    block = FigureBlock(f"{name}-round-trip", "Round trips by size", summary, figure, table)
    return block, chips_of(shown) if len(shown) > 1 else []


def _rates(name: str, sized: list[Record], records: list[Record]) -> list[FigureBlock]:
    """Draw throughput against size and against time (the signature), where both are known of each size."""
    rates = {record.case: record for record in records if record.metric == "throughput_Mbit_s"}
    both = [(one, rates[one.case]) for one in sized if one.case in rates]
    times = {one.case: one.predicted for one, _ in both}
    curves = {
        case: points for case, points in _curves([one for _, one in both], SIZE).items() if len(points) > 4
    }
    if not curves:
        return []
    labels = _labels(list(curves))
    shown = looks(list(labels.values()))
    columns = [Column("Case"), Column("Size", True), Column("Throughput", True), Column("Time [us]", True)]
    rows = [
        [labels[case], f"{at:g}", _number(one.predicted), _number(times[one.case])]
        for case, points in curves.items()
        for at, one in points
        if _doubles(at)
    ]
    blocks = []
    for ident, title, against_time in (
        (f"{name}-throughput", "Throughput by size", False),
        (f"{name}-signature", "Signature: throughput by time", True),
    ):
        figure = base.empty(420, LIGHT, ident)
        for case, points in curves.items():
            label, look = labels[case], shown[labels[case]]
            places = [times[one.case] / 1e6 if against_time else at for at, one in points]
            figure.add_trace(
                go.Scatter(
                    x=places,
                    y=[one.predicted for _, one in points],
                    customdata=[words.size_text(int(at)) for at, _ in points],
                    mode="lines+markers",
                    name=words.escape(label),
                    meta={"layer": label, "part": "curve"},
                    line={"color": look.colour, "dash": look.dash},
                    marker={"size": 4, "symbol": look.symbol},
                    hovertemplate=f"{words.escape(label)}: %{{customdata}}, %{{y:.0f}} Mbit/s<extra></extra>",
                )
            )
        places = [
            times[one.case] / 1e6 if against_time else at for points in curves.values() for at, one in points
        ]
        if against_time:
            base.time_axis(figure, min(places), max(places), 1.0, "x", "Time of a message")
        else:
            base.size_axis(figure, int(min(places)), int(max(places)), title="Message size")
        base.caption_y(figure, "Throughput [Mbit/s, of 2^20 bits each]")
        highest = max((one for _, one in both), key=lambda one: one.predicted)
        summary = f"{len(curves)} cases; the highest is {_number(highest.predicted)} Mbit/s."
        blocks.append(FigureBlock(ident, title, summary, figure, Table(title, columns, rows)))
    return blocks


def _latency(
    ident: str, title: str, curves: Curves, axis: _Axis, labels: dict[str, str], shown: Mapping[str, Look]
) -> FigureBlock:
    figure = base.empty(420, LIGHT, ident)
    rows = []
    for case, points in curves.items():
        label, look = labels[case], shown[labels[case]]
        places, values = [at for at, _ in points], [record.predicted for _, record in points]
        ends = [(record.low or record.predicted, record.high or record.predicted) for _, record in points]
        figure.add_trace(
            go.Scatter(
                x=places,
                y=values,
                error_y={
                    "type": "data",
                    "array": [high - value for value, (_, high) in zip(values, ends, strict=True)],
                    "arrayminus": [value - low for value, (low, _) in zip(values, ends, strict=True)],
                    "thickness": 1,
                    "width": 2,
                },
                mode="lines+markers",
                name=words.escape(label),
                meta={"layer": label, "part": "curve"},
                line={"color": look.colour, "dash": look.dash},
                marker={"size": 5, "symbol": look.symbol},
                hovertemplate=f"{words.escape(label)}: {axis.hover}, %{{y:.0f}} us<extra></extra>",
            )
        )
        rows += [[label, f"{at:g}", f"{value:.1f}"] for at, value in zip(places, values, strict=True)]
    every = [at for points in curves.values() for at, _ in points]
    values = [record.predicted for points in curves.values() for _, record in points]
    if axis is SIZE and max(every) >= 1 << 14 and min(every) < 64:
        base.size_axis(figure, min(every), max(every), title="Message size")
    else:
        figure.update_xaxes(title=axis.title)
    if max(values) > 10 * min(values):
        base.time_axis(figure, min(values) / 1e6, max(values) / 1e6, 1e-6, "y")
    base.caption_y(
        figure,
        "Latency, with its 90 % interval"
        if max(values) > 10 * min(values)
        else "Latency [us], with its 90 % interval",
    )
    columns = [Column("Case"), Column(axis.key.capitalize(), True), Column("Latency [us]", True)]
    cases = f"{len(curves)} cases, " if len(curves) > 1 else ""
    reaches = [words.size_text(int(at)) if axis is SIZE else f"{at:g}" for at in (min(every), max(every))]
    reach = f"{axis.key} from {reaches[0]} to {reaches[1]}"
    summary = f"{cases}{reach}: {min(values):.0f} to {max(values):.0f} us."
    return FigureBlock(ident, f"Latency {title}", summary, figure, Table(f"Latency {title}", columns, rows))
