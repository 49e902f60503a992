"""The fit: segments over the data, residuals, and which segments are not straight."""

from __future__ import annotations

from typing import Any

import polars as pl

from wiretwin.plot import fits as draw
from wiretwin.plot import words
from wiretwin.report.findings import misfits
from wiretwin.report.inputs import Inputs
from wiretwin.report.page import Column, FigureBlock, Group, Key, Missing, Section, Table, TableBlock
from wiretwin.report.sections.curves import chips
from wiretwin.report.sections.layers import FIT


def build(inputs: Inputs) -> list[Section | Missing]:
    """Build the section; it needs both the data and the twin."""
    layers = inputs.twin.get("layers", {})
    if not layers:
        return [Missing("The fit and its residuals", FIT)]
    if not len(inputs.curves):
        return [Missing("The fit over its data", "wiretwin report measured --twin twin.toml")]
    both = [name for name in inputs.layers if layers.get(name, {}).get("half_round_trip")]
    if not both:
        return [Missing("The fit over its data (the twin has none of the measured layers)", FIT)]
    table = draw.residual_table(inputs.curves, inputs.twin, layers=both)
    bad, count = misfits(inputs, draw.LACK_OF_FIT_P)
    lead = (
        "Each layer's time is fitted by straight pieces, base + per byte x size; where the pieces change is "
        f"found from the data. {words.count_text(count, 'segment')} in all, "
        + (
            f"{bad} of them flagged: the launches agree better with each other than with a straight line."
            if bad
            else "and none shows a lack of fit."
        )
    )
    groups = [
        Group([_fit(inputs, both, table), _residuals(inputs, both, table)]),
        Group([_segments(inputs, both)]),
    ]
    shared = [chip for chip in chips(inputs) if chip.layer in both]
    return [Section("fit", "The twin against its data", "Fit", lead, groups, shared)]


def _fit(inputs: Inputs, names: list[str], table: pl.DataFrame) -> FigureBlock:
    rows = [
        [
            row["layer"],
            words.size_text(row["bytes"]),
            words.time_text(row["measured_us"] / 1e6),
            words.time_text(row["fitted_us"] / 1e6),
        ]
        for row in table.iter_rows(named=True)
    ]
    counts = [f"{name} {len(inputs.twin['layers'][name]['half_round_trip'])}" for name in names]
    return FigureBlock(
        "fit-curves",
        "Measured points, fitted segments",
        f"Segments per layer: {words.list_text(counts)}.",
        draw.fit(inputs.curves, inputs.twin, layers=inputs.layers),
        Table(
            "One-way latency, measured and fitted",
            [Column("Layer"), Column("Size", True), Column("Measured", True), Column("Fitted", True)],
            rows,
        ),
        keys=[
            Key("open", "measured median"),
            Key("line", "fitted segment"),
            Key("diamond", "a new segment begins"),
        ],
    )


def _residuals(inputs: Inputs, names: list[str], table: pl.DataFrame) -> FigureBlock:
    parts = []
    for name in names:
        part = table.filter(pl.col("layer") == name)
        if len(part):
            median = float(part["residual"].abs().median())  # type: ignore[arg-type]
            worst = float(part["residual"].abs().max())  # type: ignore[arg-type]
            parts.append(f"{name} {words.percent_text(median)} (worst {words.percent_text(worst)})")
    rows = [
        [row["layer"], words.size_text(row["bytes"]), words.percent_text(row["residual"], signed=True)]
        for row in table.iter_rows(named=True)
    ]
    return FigureBlock(
        "residuals",
        "What the fit leaves",
        f"Median absolute residual: {words.list_text(parts)}.",
        draw.residuals(inputs.curves, inputs.twin, layers=inputs.layers),
        Table(
            "(measured - fitted) / fitted",
            [Column("Layer"), Column("Size", True), Column("Residual", True)],
            rows,
        ),
        keys=[Key("zone", "within 5 %")],
    )


def _segments(inputs: Inputs, names: list[str]) -> TableBlock:
    rows: list[list[str]] = []
    flagged = set()
    for name in names:
        for part in inputs.twin["layers"][name]["half_round_trip"]:
            p = part.get("lack_of_fit_p")
            if p is not None and p < draw.LACK_OF_FIT_P:
                flagged.add(len(rows))
            rows.append(_segment(name, part, p))
    columns = [
        Column("Layer"),
        Column("From", True),
        Column("Below", True),
        Column("Base", True),
        Column("Per byte", True),
        Column("Samples", True),
        Column("Straight?"),
    ]
    return TableBlock(
        "segments",
        "Segments of the one-way latency",
        Table("The fitted segments", columns, rows, frozenset(flagged)),
        f"A segment is flagged where the lack-of-fit test gives p below {draw.LACK_OF_FIT_P}.",
    )


def _segment(name: str, part: dict[str, Any], p: float | None) -> list[str]:
    base, slope = part["base_ns"], part["per_byte_ns"]
    if p is None:
        verdict = "cannot be told"
    elif p < draw.LACK_OF_FIT_P:
        verdict = f"no, p {_p(p)}"
    else:
        verdict = f"yes, p {_p(p)}"
    return [
        name,
        words.size_text(part["from_bytes"]),
        words.size_text(part["to_bytes"]) if part.get("to_bytes") is not None else "no end",
        words.time_interval_text(base["value"] / 1e9, base["low"] / 1e9, base["high"] / 1e9),
        f"{words.digits(slope['value'])} ns ({words.digits(slope['low'])}"
        f"{words.TO}{words.digits(slope['high'])})",
        f"{int(part.get('samples', 0)):,}".replace(",", words.NARROW),
        verdict,
    ]


def _p(value: float) -> str:
    return (
        f"= {value:.2f}"
        if value >= 0.01
        else ("= " + words.digits(value, 1) if value >= 1e-4 else "< 0.0001")
    )
