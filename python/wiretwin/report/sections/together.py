"""What ranks did together: time against size, and the distribution of single calls, loop by loop."""

from __future__ import annotations

from typing import Any

import polars as pl

from wiretwin.fit.together import BUSY, STREAMS
from wiretwin.plot import together as draw
from wiretwin.plot import words
from wiretwin.report.inputs import Inputs
from wiretwin.report.page import Column, FigureBlock, Group, Missing, Section, Table, TableBlock
from wiretwin.report.sections.curves import BAND, chips


def build(inputs: Inputs) -> list[Section | Missing]:
    """Build the section; nothing where ranks did nothing together."""
    table = inputs.together
    if not len(table):
        return []
    ranks = (inputs.manifest.get("options") or {}).get("ranks")
    many = f"{ranks} ranks" if ranks else "ranks"
    groups = []
    for loop in dict.fromkeys(table["loop"].to_list()):
        if loop.endswith(BUSY):
            continue
        found = _loads(inputs, loop) if _part(inputs, loop)["delay_ns"].max() else _plain(inputs, loop)
        groups.append(Group(found, loop))
    overlap = _overlap(inputs)
    if overlap is not None:
        groups.append(Group([overlap]))
    lead = (
        f"Each of {many} times its own part. An iteration counts with its slowest rank, a launch with its "
        "median; a point is the typical launch. Distributions are of all calls of all launches. The mean "
        "over the ranks, which the OSU benchmarks print, stands in the tables."
    )
    return [Section("together", f"What {many} do together", "Together", lead, groups, chips(inputs))]


def _part(inputs: Inputs, loop: str) -> pl.DataFrame:
    return inputs.together.filter(pl.col("loop") == loop)


def _plain(inputs: Inputs, loop: str) -> list[FigureBlock]:
    """Draw a loop against size, where it has sizes, and how its calls are distributed."""
    part = _part(inputs, loop)
    least = int(part["bytes"].min())  # type: ignore[arg-type]
    calls = _calls(inputs, part, f"calls-{loop}", loop)
    return [_times(inputs, loop, part, least), calls] if part["bytes"].n_unique() > 1 else [calls]


def _times(inputs: Inputs, loop: str, part: pl.DataFrame, least: int) -> FigureBlock:
    if loop in STREAMS:
        best = part.sort("rate_MB_s", descending=True).unique("layer", keep="first", maintain_order=True)
        named = [f"{row['layer']} {words.rate_text(row['rate_MB_s'])}" for row in best.iter_rows(named=True)]
        title, summary = "rate against size", f"Largest rate of all pairs together: {words.list_text(named)}."
    else:
        first = part.filter(pl.col("bytes") == least).sort("value_us")
        named = [
            f"{row['layer']} {words.time_text(row['value_us'] / 1e6)}" for row in first.iter_rows(named=True)
        ]
        title = "time against size"
        summary = f"{loop} of {words.size_text(least)}: {words.list_text(named)}."
    return FigureBlock(
        f"together-{loop}",
        f"{loop}: {title}",
        summary,
        draw.collective(inputs.together, loop, layers=inputs.layers),
        _table(part, f"{loop}: slowest rank, with its interval between launches, and mean of the ranks"),
        keys=[BAND] if part["high_us"].is_finite().any() else [],
        linear="MB/s" if loop in STREAMS else "µs",
        half=True,
    )


def _table(part: pl.DataFrame, caption: str) -> Table:
    rates = part["rate_MB_s"].is_not_null().any()
    titles = ["Slowest rank", "Mean of ranks", *(["Rate", "Messages per second"] if rates else [])]
    rows = []
    for row in part.sort("bytes").iter_rows(named=True):
        low, high = row["low_us"] / 1e6, row["high_us"] / 1e6
        mean = "" if row["mean_us"] is None else words.time_text(row["mean_us"] / 1e6)
        time = words.time_interval_text(row["value_us"] / 1e6, low, high)
        more = [words.rate_text(row["rate_MB_s"]), words.digits(row["messages_per_s"])] if rates else []
        rows.append([words.size_text(row["bytes"]), row["layer"], time, mean, *more])
    return Table(
        caption, [Column("Size", True), Column("Layer"), *(Column(one, True) for one in titles)], rows
    )


def _calls(inputs: Inputs, part: pl.DataFrame, name: str, title: str) -> FigureBlock:
    """Draw how the calls of the shortest messages are distributed."""
    least = int(part["bytes"].min())  # type: ignore[arg-type]
    rows = part.filter(pl.col("bytes") == least).sort("p99_us").to_dicts()
    named = [f"{row['layer']} {words.time_text(row['p99_us'] / 1e6)}" for row in rows]
    at = f" of {words.size_text(least)}" if least else ""
    keys = {row["layer"]: (row["layer"], row["loop"], row["delay_ns"]) for row in rows}
    found = {layer: inputs.calls[keys[layer]] for layer in inputs.layers if layer in keys}
    columns = ["Half within", "95 %", "99 %", "99.9 %", "Longest"]
    loads = any(row["load"] for row in rows)
    first = ["Layer", *(["Load", "Messages per second"] if loads else [])]
    return FigureBlock(
        name,
        f"{title}: distribution of calls{at}",
        f"99 % of calls are within {words.list_text(named)}.",
        draw.drawn_distribution(found, name),
        Table(
            f"{title}{at}: shares of calls",
            [Column(first[0]), *(Column(one, True) for one in [*first[1:], *columns])],
            [[row["layer"], *(_load(row) if loads else ()), *_tail(row)] for row in rows],
        ),
        half=True,
    )


def _loads(inputs: Inputs, loop: str) -> list[FigureBlock]:
    """Draw a load of each layer after the other, the lowest first: how latency is distributed under it."""
    number = pl.col("delay_ns").rank("dense", descending=True).over("layer", "bytes")
    part = _part(inputs, loop).with_columns(number=number)
    every = sorted(part["number"].unique())
    return [
        _calls(
            inputs,
            part.filter(pl.col("number") == at),
            f"calls-{loop}-{at}",
            f"{loop} {at} of {len(every)}, the lowest first",
        )
        for at in every
    ]


def _load(row: dict[str, Any]) -> list[str]:
    share = "" if row["load"] is None else words.share_text(row["load"])
    return [share, words.digits(row["messages_per_s"])]


def _tail(row: dict[str, Any]) -> list[str]:
    keys = ("p50_us", "p95_us", "p99_us", "p999_us", "most_us")
    return [words.time_text(row[key] / 1e6) for key in keys]


def _overlap(inputs: Inputs) -> TableBlock | None:
    """Say how much of each call is hidden behind computation; nothing if none was measured so."""
    part = inputs.together.filter(pl.col("overlap").is_not_null())
    if not len(part):
        return None
    sizes = [int(size) for size in part["bytes"].unique().sort()]
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for row in part.iter_rows(named=True):
        key = (row["layer"], row["loop"].removesuffix(BUSY))
        cells.setdefault(key, {})[row["bytes"]] = words.share_text(row["overlap"])
    return TableBlock(
        "overlap",
        "What is hidden behind computation",
        Table(
            "Share of a call's time that is hidden when its ranks compute for as long",
            [Column("Layer"), Column("Call"), *(Column(words.size_text(size), True) for size in sizes)],
            [[*key, *(by_size.get(size, "") for size in sizes)] for key, by_size in cells.items()],
        ),
        "A rank starts the call, computes for as long as the call takes by itself, and ends it. What is "
        "spent inside the two calls is what is left of it; the rest is hidden.",
    )
