"""Intervals by size, how wide they are, and which layers they tell apart."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from wiretwin.fit.stats import interval, summarise

__all__ = ["rank_layers", "size_table", "sizes_within"]


def size_table(samples: pl.DataFrame, *, loop: str = "echo", confidence: float = 0.95) -> pl.DataFrame:
    """Return the typical launch of every layer and size with its interval between launches.

    Parameters
    ----------
    samples
        Samples as in a result.
    loop
        The loop to take: of ``echo`` the one-way latency, of others the whole sample.
    confidence
        Of the intervals.

    Returns
    -------
    DataFrame
        ``layer, bytes, messages, delay_ns, launches, samples, value_us, low_us, high_us``, sorted. With one
        launch the interval is 0 to infinity.
    """
    summary = summarise(samples.filter(pl.col("loop") == loop))
    halved = 2.0 if loop == "echo" else 1.0
    key = ["layer", "bytes", "messages", "delay_ns"]
    rows = []
    for group, part in summary.group_by(key, maintain_order=True):
        found = interval(part["value_ns"].to_numpy() / halved / 1000.0, confidence)
        rows.append((*group, part.height, int(part["samples"].sum()), found.value, found.low, found.high))
    return pl.DataFrame(
        rows,
        schema={
            "layer": pl.String,
            "bytes": pl.UInt64,
            "messages": pl.UInt32,
            "delay_ns": pl.UInt64,
            "launches": pl.UInt32,
            "samples": pl.UInt64,
            "value_us": pl.Float64,
            "low_us": pl.Float64,
            "high_us": pl.Float64,
        },
        orient="row",
    ).sort(key)


def rank_layers(
    samples: pl.DataFrame, *, layers: Sequence[str] | None = None, confidence: float = 0.95
) -> pl.DataFrame:
    """Rank layers by one-way latency, size by size, only where their intervals separate.

    Parameters
    ----------
    samples
        Samples as in a result.
    layers
        The layers to rank; by default all.
    confidence
        Of the intervals.

    Returns
    -------
    DataFrame
        ``bytes, layer, value_us, low_us, high_us, rank, tied_with``, by size and value. ``rank`` is 1 + the
        number of layers that are certainly faster: whose whole interval lies below. ``tied_with`` lists
        the layers whose interval overlaps.
    """
    table = size_table(samples, confidence=confidence)
    if layers is not None:
        table = table.filter(pl.col("layer").is_in(list(layers)))
    rows = []
    for (size,), part in table.group_by("bytes", maintain_order=True):
        part = part.sort("value_us", "layer")
        names = part["layer"].to_list()
        low, high = part["low_us"].to_numpy(), part["high_us"].to_numpy()
        faster = high[None, :] < low[:, None]
        apart = faster | faster.T
        for i, name in enumerate(names):
            tied = [other for j, other in enumerate(names) if j != i and not apart[i, j]]
            value = part["value_us"][i]
            rows.append((size, name, value, low[i], high[i], 1 + int(faster[i].sum()), sorted(tied)))
    return pl.DataFrame(
        rows,
        schema={
            "bytes": pl.UInt64,
            "layer": pl.String,
            "value_us": pl.Float64,
            "low_us": pl.Float64,
            "high_us": pl.Float64,
            "rank": pl.UInt32,
            "tied_with": pl.List(pl.String),
        },
        orient="row",
    ).sort("bytes", "value_us", "layer")


def sizes_within(
    samples: pl.DataFrame, half_width: float = 0.15, *, confidence: float = 0.95
) -> pl.DataFrame:
    """Return at how many of its sizes each layer's one-way latency is known well.

    Parameters
    ----------
    samples
        Samples as in a result.
    half_width
        The largest half width of an interval between launches that counts, as a share of the value, above 0.
    confidence
        Of the intervals.

    Returns
    -------
    DataFrame
        ``layer, sizes, within``: the sizes measured, and how many of them are known so well; sorted by layer.
    """
    width = (pl.col("high_us") - pl.col("low_us")) / 2 / pl.col("value_us")
    return (
        size_table(samples, confidence=confidence)
        .group_by("layer")
        .agg(sizes=pl.len(), within=(width <= half_width).sum())
        .sort("layer")
    )
