"""What ranks did together, in figures: the slowest rank, the mean over ranks, rates, the tail, the overlap.

An iteration counts with its slowest rank, a launch with the median of its iterations, and what is reported is
the typical launch with its interval between launches (`wiretwin.fit.stats`). Percentiles are of all
iterations of all launches: they tell how far single calls stray, not how sure the figure is.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from wiretwin.fit.ranking import size_table

__all__ = ["BUSY", "MEAN", "PERCENTILES", "SCHEMA", "STREAMS", "loops_of", "single_times", "together_table"]

MEAN = "_mean"
"""Ends the name of the loop that holds the mean over the ranks, which is what the OSU benchmarks print."""
BUSY = "_busy"
"""Ends the name of the loop whose ranks compute meanwhile."""
STREAMS = {"pairs": 1, "bidirectional": 2, "put_stream": 1, "get_stream": 1}
"""Loops of several messages an iteration, with the ways they go."""
PERCENTILES = (0.5, 0.95, 0.99, 0.999)
KEY = ["layer", "loop", "bytes", "messages", "delay_ns"]
SCHEMA = {
    "layer": pl.String,
    "loop": pl.String,
    "bytes": pl.UInt64,
    "messages": pl.UInt32,
    "delay_ns": pl.UInt64,
    "launches": pl.UInt32,
    "samples": pl.UInt64,
    "value_us": pl.Float64,
    "low_us": pl.Float64,
    "high_us": pl.Float64,
    "mean_us": pl.Float64,
    "p50_us": pl.Float64,
    "p95_us": pl.Float64,
    "p99_us": pl.Float64,
    "p999_us": pl.Float64,
    "most_us": pl.Float64,
    "overlap": pl.Float64,
    "load": pl.Float64,
    "rate_MB_s": pl.Float64,
    "messages_per_s": pl.Float64,
}


def loops_of(samples: pl.DataFrame) -> list[str]:
    """Return the loops that ranks did together, in their order; none in another result."""
    names = [str(name) for name in samples["loop"].unique(maintain_order=True)]
    return [name for name in names if f"{name}{MEAN}" in names]


def single_times(
    samples: pl.DataFrame, layer: str, loop: str, size: int, delay_ns: int | None = None
) -> pl.Series:
    """Return the time of every iteration after the first of its launch, us, of all launches, in order.

    Parameters
    ----------
    samples
        Samples as in a result.
    layer, loop, size
        Which; the size is in bytes.
    delay_ns
        Of a load, the time from one message to the next; by default all.
    """
    part = samples.filter(
        pl.col("layer") == layer, pl.col("loop") == loop, pl.col("bytes") == size, pl.col("index") > 0
    )
    if delay_ns is not None:
        part = part.filter(pl.col("delay_ns") == delay_ns)
    return (part["value_ns"] / part["batch"] / 1000.0).alias("us")


def together_table(samples: pl.DataFrame, ranks: int = 2, loops: Sequence[str] | None = None) -> pl.DataFrame:
    """Return one row a layer, loop, size and load.

    Parameters
    ----------
    samples
        Samples as in a result.
    ranks
        How many ranks there were: what pairs carry together is as many times what one does.
    loops
        Which loops; by default all that ranks did together.

    Returns
    -------
    DataFrame
        The columns of `SCHEMA`. ``value_us`` is the slowest rank, with its interval between launches;
        ``mean_us`` the mean over the ranks; ``p50_us`` to ``most_us`` are over all iterations. ``overlap``,
        of a busy loop, is the share of the plain loop's time that is hidden behind computation, 0 to 1.
        ``load`` is the share of the messages that the layer carries one after the other, as ``pairs`` of the
        same size tells. ``rate_MB_s`` (10^6 bytes/s) and ``messages_per_s``, of a stream, are of all pairs
        together; of a load they are what is offered.
    """
    rows: list[tuple[object, ...]] = []
    values: dict[tuple[str, str, int], float] = {}
    windows: dict[tuple[str, int], int] = {}
    pairs = ranks // 2
    for loop in loops_of(samples) if loops is None else loops:
        means = {
            (row["layer"], row["bytes"], row["delay_ns"]): row["value_us"]
            for row in size_table(samples, loop=f"{loop}{MEAN}").iter_rows(named=True)
        }
        for row in size_table(samples, loop=loop).iter_rows(named=True):
            layer, size, delay = str(row["layer"]), int(row["bytes"]), int(row["delay_ns"])
            values[layer, loop, size] = row["value_us"]
            if loop == "pairs":
                windows[layer, size] = row["messages"]
            times = single_times(samples, layer, loop, size, delay)
            tail = [times.quantile(share, "nearest") for share in PERCENTILES]
            plain = values.get((layer, loop.removesuffix(BUSY), size)) if loop.endswith(BUSY) else None
            overlap = None if not plain else min(1.0, max(0.0, 1.0 - row["value_us"] / plain))
            per_us = pairs * STREAMS.get(loop, 0) * row["messages"] / row["value_us"]
            if loop == "load" and delay:
                per_us = pairs * 1000.0 / delay
            stream = values.get((layer, "pairs", size)) if loop == "load" and delay else None
            load = None if not stream else 1000.0 * stream / windows[layer, size] / delay
            rates = (per_us * size, per_us * 1e6) if per_us else (None, None)
            figures = (row["value_us"], row["low_us"], row["high_us"], means.get((layer, size, delay)))
            counts = (row["launches"], row["samples"])
            key = (layer, loop, size, row["messages"], delay)
            rows.append((*key, *counts, *figures, *tail, times.max(), overlap, load, *rates))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
