"""From raw samples to curves: a median per launch, then the median over launches with its interval.

The launch is the unit of repetition: two iterations of one launch share its placement, its buffers and its
neighbours. So the interval is a bootstrap over launch medians, and a single launch has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

RESAMPLES = 2000
"""Bootstrap resamples behind an interval."""

LEVEL = 0.95
"""Share of resamples inside an interval."""

Floats = NDArray[np.float64]


class HasSamples(Protocol):
    """A result: anything with `samples()` in the columns of the result format."""

    def samples(self) -> pl.DataFrame:
        """Every raw sample, one a row."""
        ...


def samples_of(source: HasSamples | pl.DataFrame) -> pl.DataFrame:
    """Take a result or its sample frame; refuse a frame without the columns a curve needs."""
    frame = source if isinstance(source, pl.DataFrame) else source.samples()
    needed = ("launch", "layer", "loop", "bytes", "batch", "index", "value_ns")
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise ValueError(f"samples: column {missing[0]!r} is missing; needed are {', '.join(needed)}")
    return frame


def layer_order(source: HasSamples | pl.DataFrame) -> list[str]:
    """Layers in the order in which they were first launched, variants after their base."""
    frame = samples_of(source)
    first = frame.group_by("layer").agg(pl.col("launch").min()).sort("launch", "layer")
    names = [str(name) for name in first["layer"]]
    bases = list(dict.fromkeys(name.split("+")[0] for name in names))
    return sorted(names, key=lambda name: (bases.index(name.split("+")[0]), name.count("+"), name))


def bootstrap_median(values: Floats, seed: int = 1) -> tuple[float, float, float]:
    """Median of launch medians with its percentile bootstrap interval; one value has no interval (nan)."""
    middle = float(np.median(values))
    if len(values) < 2:
        return middle, float("nan"), float("nan")
    draws = np.random.default_rng((seed, len(values))).integers(0, len(values), (RESAMPLES, len(values)))
    medians = np.median(values[draws], axis=1)
    low, high = np.quantile(medians, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return middle, float(low), float(high)


def loop_medians(source: HasSamples | pl.DataFrame, loop: str, seed: int = 1) -> pl.DataFrame:
    """Nanoseconds per iteration of one loop: `layer bytes messages launches samples value_ns low_ns high_ns`.

    The first iteration of a launch (index 0) is left out. Rows are sorted by layer and size.
    """
    frame = samples_of(source)
    if "messages" not in frame.columns:
        frame = frame.with_columns(pl.lit(1, pl.UInt32).alias("messages"))
    keys = ["layer", "bytes", "messages"]
    per_launch = (
        frame.filter((pl.col("loop") == loop) & (pl.col("index") > 0))
        .with_columns((pl.col("value_ns") / pl.col("batch").clip(lower_bound=1)).alias("one_ns"))
        .group_by([*keys, "launch"])
        .agg(pl.col("one_ns").median(), pl.len().alias("samples"))
        .sort([*keys, "launch"])
        .group_by(keys, maintain_order=True)
        .agg(pl.col("one_ns"), pl.len().alias("launches"), pl.col("samples").sum())
    )
    triples = [bootstrap_median(np.asarray(row, np.float64), seed) for row in per_launch["one_ns"].to_list()]
    columns = np.asarray(triples, np.float64).reshape(-1, 3)
    return per_launch.drop("one_ns").with_columns(
        pl.Series("value_ns", columns[:, 0], pl.Float64),
        pl.Series("low_ns", columns[:, 1], pl.Float64),
        pl.Series("high_ns", columns[:, 2], pl.Float64),
    )


def echo_curves(source: HasSamples | pl.DataFrame, seed: int = 1) -> pl.DataFrame:
    """Turn the echo loop into curves.

    Columns: `layer bytes launches samples`, half a round trip as `time_us low_us high_us`, and the rate
    `rate_MB_s rate_low_MB_s rate_high_MB_s` = size / half a round trip (Lin et al. 1995), 10^6 bytes/s.
    """
    medians = loop_medians(source, "echo", seed)
    half = medians.select(
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
    """Sizes at which a layer changes behaviour: `layer bytes why` (`rendezvous` or `segment`)."""
    found: list[dict[str, Any]] = []
    for name, layer in as_mapping(twin).get("layers", {}).items():
        rendezvous = layer.get("rendezvous_from_bytes")
        edges = {int(part["from_bytes"]) for part in layer.get("half_round_trip", [])} - {0}
        lowest = min((int(part["from_bytes"]) for part in layer.get("half_round_trip", [])), default=0)
        edges -= {lowest}
        if rendezvous:
            edges.add(int(rendezvous))
        for edge in sorted(edges):
            found.append(
                {"layer": name, "bytes": edge, "why": "rendezvous" if edge == rendezvous else "segment"}
            )
    return found
