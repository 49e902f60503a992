"""What was run, with which settings, on what; what failed; where the raw data are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from wiretwin.plot import words
from wiretwin.report.inputs import Inputs
from wiretwin.report.page import (
    Block,
    CodeBlock,
    Column,
    Group,
    ListBlock,
    Missing,
    Section,
    Table,
    TableBlock,
)

STOPPED = {
    "narrow": "interval narrow enough",
    "launches": "as many launches as were asked for",
    "budget": "time budget spent",
    "interrupt": "interrupted",
    "failed": "failed",
}


def build(inputs: Inputs) -> list[Section | Missing]:
    """Build the section; with nothing measured it still tells the host and versions of the twin."""
    blocks: list[Block] = []
    host = inputs.host
    if host:
        blocks.append(ListBlock("host", "The host", _pairs(host)))
    blocks.append(ListBlock("versions", "The record", _record(inputs)))
    if inputs.manifest.get("options"):
        blocks.append(ListBlock("options", "Options in force", _pairs(inputs.manifest["options"])))
    if inputs.manifest.get("layers"):
        blocks.append(_layers(inputs))
    failed = _failed(inputs)
    if failed is not None:
        blocks.append(failed)
    if inputs.predictions:
        blocks.append(_predictions(inputs))
    blocks.append(_redraw(inputs))
    lead = "Everything above can be drawn again from the records named here."
    return [Section("setting", "What was run, and on what", "Setting", lead, [Group(blocks)])]


def _text(value: Any) -> str:
    """Print a value of a manifest: plain for scalars, JSON for what is nested."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "not known"
    if isinstance(value, (list, tuple)) and all(
        not isinstance(item, (Mapping, list, tuple)) for item in value
    ):
        return ", ".join(_text(item) for item in value) or "none"
    if not value and isinstance(value, Mapping):
        return "none"
    if isinstance(value, (list, tuple)) and all(
        isinstance(item, Mapping) and item.keys() == {"name", "address"} for item in value
    ):
        return ", ".join(f"{item['name']} ({item['address']})" for item in value)
    if isinstance(value, (Mapping, list, tuple)):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return str(value)


def _pairs(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping) and value and len(value) <= 12:
            out += _pairs(value, f"{name}: ")
        else:
            out.append((name, _text(value)))
    return out


def _record(inputs: Inputs) -> list[tuple[str, str]]:
    manifest, source = inputs.manifest, inputs.twin.get("source") or {}
    pairs: list[tuple[str, str]] = []
    if manifest:
        ok = sum(launch.get("status") == "ok" for launch in manifest.get("launches", []))
        pairs += [
            ("measured", words.date_text(str(manifest.get("created_utc", "not known")))),
            ("wiretwin", str(manifest.get("wiretwin", "not known"))),
            ("seed", str(manifest.get("seed", "not known"))),
            ("launches", f"{ok} good of {len(manifest.get('launches', []))}"),
            ("samples", words.count_text(inputs.samples, "sample") + ", each one kept"),
        ]
        if manifest.get("state") not in (None, "complete"):
            pairs.append(("state", str(manifest["state"])))
    if inputs.path:
        pairs.append(("raw data", inputs.path))
    if inputs.twin:
        pairs.append(("twin made", words.date_text(str(inputs.twin.get("created_utc", "not known")))))
        if source.get("digest"):
            pairs.append(("twin made from", f"samples {str(source['digest'])[:16]}"))
    pairs += [("damaged file, left out", item) for item in inputs.damaged]
    return pairs


def _layers(inputs: Inputs) -> TableBlock:
    manifest = inputs.manifest
    stopped, because = manifest.get("stopped", {}), manifest.get("stopped_because", {})
    rows = []
    for layer in manifest["layers"]:
        name = layer.get("name", layer.get("layer", ""))
        launches = [item for item in manifest.get("launches", []) if item.get("name") == name]
        ok = sum(item.get("status") == "ok" for item in launches)
        clock = layer.get("clock") or {}
        rows.append(
            [
                name,
                "; ".join(f"{key} {value}" for key, value in _pairs(layer.get("options") or {})),
                "; ".join(f"{key} {value}" for key, value in _pairs(layer.get("effective") or {})),
                f"{clock['name']}, {words.time_text(clock.get('cost_ns', 0) / 1e9)} a reading"
                if clock
                else "",
                f"{ok} of {len(launches)}",
                because.get(name) or STOPPED.get(str(stopped.get(name)), str(stopped.get(name, ""))),
            ]
        )
    columns = [
        Column("Layer"),
        Column("Asked for"),
        Column("In force, as reported"),
        Column("Clock"),
        Column("Good launches", True),
        Column("Measured until"),
    ]
    return TableBlock(
        "measured-layers",
        "Layers and their settings",
        Table("Layers as measured", columns, rows, stacked=True),
    )


def _failed(inputs: Inputs) -> TableBlock | None:
    rows = [
        [
            str(launch.get("launch", "")),
            str(launch.get("name", "")),
            str(launch.get("status", "")),
            str(launch.get("error") or "no reason given"),
        ]
        for launch in inputs.manifest.get("launches", [])
        if launch.get("status") != "ok"
    ]
    if not rows:
        return None
    columns = [Column("Launch", True), Column("Layer"), Column("Status"), Column("Reason")]
    return TableBlock(
        "failed",
        "Launches that failed",
        Table("Launches that did not end well", columns, rows, stacked=True),
        f"{words.count_text(len(rows), 'launch', 'launches')} did not end well; samples taken before stay.",
    )


def _predictions(inputs: Inputs) -> TableBlock:
    rows = []
    for item in inputs.predictions:
        compute = item.get("compute") or {}
        how = compute.get("source", "")
        if how == "measured":
            passes = words.count_text(int(compute.get("passes", 1)), "pass", "passes")
            how = f"measured, {compute.get('statistic', '')} of {passes}"
        rows.append(
            [
                " ".join([str(item["program"]), *map(str, item.get("args", []))]),
                str(item["ranks"]),
                str(item.get("layer", "")),
                how,
                words.date_text(str(item.get("frozen_utc") or ""), seconds=True),
                str(item.get("digest", ""))[:16],
            ]
        )
    columns = [
        Column("Program"),
        Column("Ranks", True),
        Column("Layer"),
        Column("Compute"),
        Column("Frozen"),
        Column("Digest"),
    ]
    used = [at for at, _column in enumerate(columns) if at == 0 or any(row[at] for row in rows)]
    return TableBlock(
        "predictions",
        "Predictions",
        Table(
            "Predictions and their digests",
            [columns[at] for at in used],
            [[row[at] for at in used] for row in rows],
            stacked=True,
        ),
    )


def _redraw(inputs: Inputs) -> CodeBlock:
    folder = inputs.path or "measured"
    lines = [
        "import wiretwin as wt",
        "",
        f"result = wt.Result.open({folder!r})",
        "result.samples()               # every raw sample, a polars frame",
        "wt.plot.throughput(result)     # and latency, signature, saturation",
    ]
    if inputs.twin:
        lines += ['twin = wt.Twin.read("twin.toml")', "wt.plot.fit(result, twin)      # and residuals"]
    return CodeBlock(
        "redraw",
        "Draw it again",
        "\n".join(lines),
        "In Python; the command wiretwin report writes this page again.",
    )
