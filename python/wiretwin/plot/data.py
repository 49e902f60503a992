"""From raw samples to curves, by the same statistics as the fit: the launch is the unit of repetition."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiretwin.errors import InputError
from wiretwin.fit import size_table
from wiretwin.fit.stats import COLUMNS
from wiretwin.results import Result

Floats = NDArray[np.float64]


@runtime_checkable
class HasSamples(Protocol):
    """A result: anything with `samples()` in the columns of the result format."""

    def samples(self) -> pl.DataFrame:
        """Every raw sample, one a row."""
        ...


BREAK_P = 1e-5
"""A break of a fit is called a change of behaviour where its `break_p` is below this.

It is far below the usual 0.05, for a break is put where the noise helps it most.
"""

Source = HasSamples | pl.DataFrame | str | os.PathLike[str]
"""What figures are drawn from: a result, its folder, or its samples."""


def samples_of(source: Source) -> pl.DataFrame:
    """Return the samples of a source.

    Raises
    ------
    InputError
        It is none: no result in that folder, or a frame without the columns that a curve needs.
    """
    given: Any = Result.open(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else source
    if not isinstance(given, (pl.DataFrame, HasSamples)):
        allowed = "a result, its folder, or its samples"
        raise InputError(key="source", value=type(given).__name__, reason="has no samples", allowed=allowed)
    frame = given if isinstance(given, pl.DataFrame) else given.samples()
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        reason = f"samples: column {missing[0]!r} is missing"
        raise InputError(key="source", reason=reason, allowed=f"the columns {', '.join(COLUMNS)}")
    return frame


def layer_order(source: Source) -> list[str]:
    """Layers in the order in which they were first launched, variants after their base."""
    frame = samples_of(source)
    first = frame.group_by("layer").agg(pl.col("launch").min()).sort("launch", "layer")
    names = [str(name) for name in first["layer"]]
    bases = list(dict.fromkeys(name.split("+")[0] for name in names))
    return sorted(names, key=lambda name: (bases.index(name.split("+")[0]), name.count("+"), name))


def loop_times(source: Source, loop: str) -> pl.DataFrame:
    """Nanoseconds per iteration of one loop, by layer and size, with the interval between launches.

    Columns: `layer bytes messages delay_ns launches samples value_ns low_ns high_ns`. With one launch there
    is no interval: both ends are nan.
    """
    table = size_table(samples_of(source), loop=loop)
    scale = 2000.0 if loop == "echo" else 1000.0
    ends = [
        pl.when(pl.col("high_us").is_finite()).then(pl.col(f"{end}_us") * scale).otherwise(float("nan"))
        for end in ("low", "high")
    ]
    return table.select(
        "layer",
        "bytes",
        "messages",
        "delay_ns",
        "launches",
        "samples",
        (pl.col("value_us") * scale).alias("value_ns"),
        ends[0].alias("low_ns"),
        ends[1].alias("high_ns"),
    )


def echo_curves(source: Source) -> pl.DataFrame:
    """Turn the echo loop into curves.

    Columns: `layer bytes launches samples`, the one-way latency as `time_us low_us high_us`, and the rate
    `rate_MB_s rate_low_MB_s rate_high_MB_s` = size / the one-way latency (Lin et al. 1995), 10^6 bytes/s.
    """
    half = loop_times(source, "echo").select(
        "layer",
        "bytes",
        "launches",
        "samples",
        (pl.col("value_ns") / 2000).alias("time_us"),
        (pl.col("low_ns") / 2000).alias("low_us"),
        (pl.col("high_ns") / 2000).alias("high_us"),
    )
    return half.with_columns(
        (pl.col("bytes") / pl.col("time_us")).alias("rate_MB_s"),
        (pl.col("bytes") / pl.col("high_us")).alias("rate_low_MB_s"),
        (pl.col("bytes") / pl.col("low_us")).alias("rate_high_MB_s"),
    )


def as_mapping(source: Any) -> dict[str, Any]:
    """Take a twin, manifest or record as plain values: a pydantic model, or a mapping already."""
    if hasattr(source, "model_dump"):
        dumped: dict[str, Any] = source.model_dump(mode="json", exclude_none=True)
        return dumped
    if isinstance(source, Mapping):
        return dict(source)
    raise TypeError(f"{type(source).__name__}: a mapping or a pydantic model is needed")


def segment_values(segments: Sequence[Mapping[str, Any]], sizes: Floats) -> Floats:
    """Evaluate a piecewise line `base + per_byte * m` at each size, in ns; nan where none covers it."""
    out = np.full(len(sizes), np.nan)
    for segment in segments:
        end = segment.get("to_bytes")
        inside = (sizes >= segment["from_bytes"]) & (sizes < (np.inf if end is None else end))
        base, slope = segment["base_ns"]["value"], segment["per_byte_ns"]["value"]
        out[inside] = base + slope * sizes[inside]
    return out


def steps(twin: Any) -> list[dict[str, Any]]:
    """Sizes at which a layer changes behaviour: `layer bytes why` (`rendezvous` or `segment`).

    A segment counts where noise alone can hardly have made it, by its `break_p`, if the twin says.
    """
    found: list[dict[str, Any]] = []
    for name, layer in as_mapping(twin).get("layers", {}).items():
        rendezvous = layer.get("rendezvous_from_bytes")
        parts = sorted(layer.get("half_round_trip", []), key=lambda part: int(part["from_bytes"]))
        edges = {int(part["from_bytes"]) for part in parts[1:] if (part.get("break_p") or 0.0) < BREAK_P}
        if rendezvous:
            edges.add(int(rendezvous))
        for edge in sorted(edges):
            found.append(
                {"layer": name, "bytes": edge, "why": "rendezvous" if edge == rendezvous else "segment"}
            )
    return found
