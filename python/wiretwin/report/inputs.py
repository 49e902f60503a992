"""What a report is made from, brought to plain values and checked once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from wiretwin.errors import InputError
from wiretwin.fit.cluster import has_pairs, reference_launches
from wiretwin.fit.curve import CurveFigures, curve_figures
from wiretwin.fit.onestate import in_one_state
from wiretwin.fit.pairs import SCHEMA as PAIRS
from wiretwin.fit.pairs import Classes, classes_of, pair_table
from wiretwin.fit.stats import by_launch, summarise
from wiretwin.fit.together import SCHEMA, together_table
from wiretwin.given import read_text
from wiretwin.plot.data import Floats, as_mapping, echo_curves, layer_order, loop_times, samples_of
from wiretwin.plot.timelines import read_timeline
from wiretwin.plot.together import quantiles
from wiretwin.predict.records import MOST_BYTES, Comparison, Prediction, Run
from wiretwin.results import Result
from wiretwin.understand.advice import Advice, advise
from wiretwin.understand.api import Understanding, understand

_EMPTY_CURVES = {
    "layer": pl.String,
    "bytes": pl.UInt64,
    "launches": pl.UInt32,
    "samples": pl.UInt64,
    "time_us": pl.Float64,
    "low_us": pl.Float64,
    "high_us": pl.Float64,
    "rate_MB_s": pl.Float64,
    "rate_low_MB_s": pl.Float64,
    "rate_high_MB_s": pl.Float64,
}


_KEYS = {
    "wiretwin-prediction": {*Prediction.model_fields, "timeline"},
    "wiretwin-run": set(Run.model_fields),
    "wiretwin-comparison": {*Comparison.model_fields, "format", "version"},
}
"""The keys of a record, by its format."""


@dataclass
class Inputs:
    """Everything a section may need; what was not given is empty."""

    manifest: dict[str, Any] = field(default_factory=dict)
    path: str = ""
    damaged: list[str] = field(default_factory=list)
    curves: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_EMPTY_CURVES))
    loops: dict[str, pl.DataFrame] = field(default_factory=dict)
    layers: list[str] = field(default_factory=list)
    figures: dict[str, CurveFigures] = field(default_factory=dict)
    """t_0, r_max and n_half by layer, of those with at least two launches."""
    together: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    """What ranks did together, one row a layer, loop and size."""
    calls: dict[tuple[str, str, int], Floats] = field(default_factory=dict)
    """By layer, loop and, of a load, time from one message to the next in ns, else 0: how single calls of the
    shortest messages are distributed."""
    pairs: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PAIRS))
    """One-way latencies between every two hosts, where they were measured by themselves."""
    classes: list[Classes] = field(default_factory=list)
    """What these say of the hosts, by layer."""
    launches: int = 0
    samples: int = 0
    twin: dict[str, Any] = field(default_factory=dict)
    predictions: list[dict[str, Any]] = field(default_factory=list)
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    """By layer the state of the host that its figures and curves are of, where they depend on it."""
    understanding: Understanding | None = None
    advice: Advice | None = None

    @property
    def host(self) -> dict[str, Any]:
        """The host as the measurement or else the fit saw it."""
        return dict(self.manifest.get("host") or self.twin.get("host") or {})

    @property
    def timelines(self) -> list[tuple[dict[str, Any], pl.DataFrame]]:
        """Predictions that came with a timeline, and that timeline."""
        return [(item, item["_timeline"]) for item in self.predictions if item.get("_timeline") is not None]

    def run_of(self, prediction: dict[str, Any]) -> dict[str, Any] | None:
        """Find the run that a prediction was compared with, if it was."""
        for item in self.comparisons:
            if _identity(item["prediction"]) == _identity(prediction):
                return dict(item["run"])
        return None


def gather(
    result: Any = None,
    twin: Any = None,
    predictions: Sequence[Any] = (),
    comparisons: Sequence[Any] = (),
) -> Inputs:
    """Bring what `render` was given to plain values.

    Raises
    ------
    InputError
        When a record is of another format, lacks a key that the report needs, or its timeline cannot be read.
    """
    inputs = Inputs()
    if result is not None:
        _take_result(inputs, result)
    if twin is not None:
        inputs.twin = as_mapping(twin)
    inputs.comparisons = [_comparison(item) for item in comparisons]
    inputs.predictions = [_prediction(item) for item in predictions]
    known = {_identity(item) for item in inputs.predictions}
    for item in inputs.comparisons:
        if _identity(item["prediction"]) not in known:
            inputs.predictions.append(_prediction(item["prediction"]))
    return inputs


def _take_result(inputs: Inputs, result: Any) -> None:
    inputs.manifest = as_mapping(result.manifest)
    inputs.path = str(getattr(result, "path", "") or "")
    inputs.damaged = [str(item) for item in getattr(result, "damaged", [])]
    frame = samples_of(result)
    inputs.samples = len(frame)
    inputs.launches = frame["launch"].n_unique()
    if not len(frame):
        return
    if isinstance(result, Result) and has_pairs(result):
        inputs.pairs, inputs.classes = pair_table(result), classes_of(result)
        # All else is of one pair of hosts.
        result = reference_launches(result)
        frame = result.samples()
    inputs.layers = layer_order(frame)
    if isinstance(result, Result):
        found = in_one_state(result)
        frame, inputs.states = found.samples, found.states
    inputs.curves = echo_curves(frame)
    echoes = summarise(frame).filter((pl.col("loop") == "echo") & (pl.col("bytes") > 0))
    for layer in inputs.layers:
        part = echoes.filter(pl.col("layer") == layer)
        if part["launch"].n_unique() >= 2:
            inputs.figures[layer] = curve_figures(by_launch(part))
    for loop in sorted(str(name) for name in frame["loop"].unique()):
        inputs.loops[loop] = loop_times(frame, loop)
    inputs.together = together_table(frame, (inputs.manifest.get("options") or {}).get("ranks") or 2)
    shortest = pl.col("bytes") == pl.col("bytes").min().over("layer", "loop")
    for row in inputs.together.filter(shortest).iter_rows(named=True):
        key = (row["layer"], row["loop"], row["delay_ns"])
        inputs.calls[key] = quantiles(frame, key[0], key[1], row["bytes"], key[2])
    if isinstance(result, Result):
        inputs.understanding = understand(result)
        inputs.advice = advise(result, inputs.understanding)


def _identity(prediction: dict[str, Any]) -> tuple[Any, ...]:
    return (
        prediction.get("digest") or "",
        prediction.get("program"),
        tuple(map(str, prediction.get("args", []))),
        prediction.get("ranks"),
    )


def _record(item: Any, wanted: str, file: str) -> dict[str, Any]:
    """Take a record as a mapping, a model, a JSON file or the folder that holds one."""
    if isinstance(item, (str, Path)):
        path = Path(item)
        path = path / file if path.is_dir() else path
        try:
            record = json.loads(read_text(path, most=MOST_BYTES, keys=_KEYS[wanted]))
        except ValueError as error:
            raise InputError(path, reason=str(error), allowed=f"a readable {wanted} record") from error
        if not isinstance(record, dict):
            raise InputError(path, value=type(record).__name__, allowed=f"a {wanted} record")
        beside = path.with_name("timeline.parquet")
        if "timeline" not in record and beside.exists():
            record["timeline"] = str(beside)
    else:
        record = as_mapping(item)
    found = record.get("format", wanted)
    if found != wanted:
        raise InputError(key="format", value=found, allowed=wanted)
    return dict(record)


def _prediction(item: Any) -> dict[str, Any]:
    record = _record(item, "wiretwin-prediction", "prediction.json")
    _need(record, "prediction", ("program", "ranks", "seconds"))
    source = record.get("timeline")
    record["_timeline"] = None
    if source is not None:
        try:
            record["_timeline"] = read_timeline(source)
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            raise InputError(
                key=f"timeline of {record['program']}",
                value=source if isinstance(source, str) else None,
                reason=str(error),
                allowed="a timeline that `predict` wrote",
            ) from error
    return record


def _comparison(item: Any) -> dict[str, Any]:
    """Take a comparison as a mapping, a model, a JSON file, or a folder with a comparison or with a pair."""
    if isinstance(item, (str, Path)):
        folder = Path(item)
        if (folder / "run.json").exists() and not (folder / "comparison.json").exists():
            record = _pair(folder)
        else:
            record = _record(item, "wiretwin-comparison", "comparison.json")
    else:
        record = as_mapping(item)
    _need(record, "comparison", ("prediction", "run", "error"))
    record = dict(record)
    for key in ("prediction", "run"):
        record[key] = _record(record[key], f"wiretwin-{key}", f"{key}.json")
        _need(record[key], key, ("program", "ranks", "seconds"))
    return record


def _pair(folder: Path) -> dict[str, Any]:
    """Join the prediction and the run of one folder."""
    prediction = _record(folder, "wiretwin-prediction", "prediction.json")
    run = _record(folder, "wiretwin-run", "run.json")
    _need(prediction, "prediction", ("program", "ranks", "seconds"))
    _need(run, "run", ("program", "ranks", "seconds"))
    if prediction["program"] != run["program"] or prediction["ranks"] != run["ranks"]:
        raise InputError(
            folder / "run.json",
            "program",
            f"{run['program']} on {run['ranks']} ranks",
            f"{prediction['program']} on {prediction['ranks']} ranks, what the prediction was made for",
        )
    error = prediction["seconds"]["value"] / run["seconds"]["value"] - 1
    return {"prediction": prediction, "run": run, "error": error}


def _need(record: dict[str, Any], what: str, keys: Sequence[str]) -> None:
    for key in keys:
        if key not in record:
            raise InputError(
                key=f"{what}.{key}", reason="is missing", allowed=f"a record with {', '.join(keys)}"
            )
