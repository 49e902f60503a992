"""What ranks did together, as tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wiretwin.cli.format import Column, Table

if TYPE_CHECKING:
    from wiretwin.results import Result

__all__ = ["by_size", "crowded", "summary"]

_FIGURES = (
    Column("layer", "layer"),
    Column("loop", "loop"),
    Column("size_bytes", "size [B]"),
    Column("messages", "messages", people=False),
    Column("interval_ns", "a message every [ns]"),
    Column("launches", "launches", people=False),
    Column("samples", "samples", people=False),
    Column("slowest_rank_us", "slowest rank [us]", ends=("low_us", "high_us")),
    Column("low_us", "low"),
    Column("high_us", "high"),
    Column("settled", "settled", people=False),
    Column("mean_over_ranks_us", "mean of ranks [us]"),
    Column("p50_us", "p50 [us]"),
    Column("p95_us", "p95 [us]", people=False),
    Column("p99_us", "p99 [us]"),
    Column("p999_us", "p99.9 [us]"),
    Column("largest_us", "largest [us]"),
    Column("load_percent", "load [%]", digits=3),
    Column("overlap_percent", "overlap [%]", digits=3),
    Column("throughput_MB_s", "throughput [MB/s]"),
    Column("messages_per_s", "messages/s"),
)
_OF_LOADS = ("interval_ns", "p50_us", "p999_us", "largest_us")
"""Columns that only a load needs, for people."""
_OF_SOME = ("load_percent", "overlap_percent", "throughput_MB_s", "messages_per_s")
"""Columns that are left out where no row has them."""


def _rows(result: Result) -> list[dict[str, Any]]:
    from wiretwin.fit.together import together_table

    return together_table(result.samples(), result.manifest.options.get("ranks", 2)).to_dicts()


def _cells(row: dict[str, Any]) -> dict[str, object]:
    from wiretwin.fit.settled import settled

    own = {
        "size_bytes": row["bytes"],
        "interval_ns": row["delay_ns"] or None,
        "slowest_rank_us": row["value_us"],
        "settled": settled(row["low_us"], row["high_us"]),
        "mean_over_ranks_us": row["mean_us"],
        "largest_us": row["most_us"],
        "overlap_percent": None if row["overlap"] is None else 100.0 * row["overlap"],
        "load_percent": None if row["load"] is None else 100.0 * row["load"],
        "throughput_MB_s": row["rate_MB_s"],
    }
    return row | own


def _table(result: Result, rows: list[dict[str, Any]]) -> Table:
    cells = [_cells(row) for row in rows]
    loaded = any(row["delay_ns"] for row in rows)
    columns = [
        replace(one, people=one.people and (loaded or one.key not in _OF_LOADS))
        for one in _FIGURES
        if one.key not in _OF_SOME or any(row[one.key] is not None for row in cells)
    ]
    ranks = result.manifest.options.get("ranks")
    return Table(
        f"what {ranks} ranks did together" if ranks else "what ranks did together",
        columns,
        [tuple(row[one.key] for one in columns) for row in cells],
        osu=("layer and loop", "size_bytes", "mean_over_ranks_us"),
    )


def by_size(result: Result, *, osu: bool = False) -> Table:
    """Return one row a layer, loop and size.

    Parameters
    ----------
    result
        A result of ranks that did something together.
    osu
        For the OSU format, which names one group: layer and loop are one column.
    """
    table = _table(result, _rows(result))
    if not osu:
        return Table(table.name, table.columns, table.rows)
    group = Column("layer and loop", "layer and loop")
    rows = [(f"{row[0]} {row[1]}", *row) for row in table.rows]
    return Table(table.name, (group, *table.columns), rows, osu=table.osu)


def summary(result: Result) -> Table:
    """Return the rows of the shortest and of the longest messages of each layer and loop."""
    rows = _rows(result)
    ends: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        ends.setdefault((row["layer"], row["loop"]), []).append(row["bytes"])
    wanted = [
        row for row in rows if row["bytes"] in (min(sizes := ends[row["layer"], row["loop"]]), max(sizes))
    ]
    table = _table(result, wanted)
    return Table(table.name, table.columns, table.rows)


def crowded(result: Result) -> str | None:
    """Say that there were more ranks than processors, if there were: they took turns."""
    ranks, usable = result.manifest.options.get("ranks"), result.manifest.host.get("cpus_usable")
    place = result.manifest.options.get("place") or {}
    if not isinstance(ranks, int) or not usable or place.get("kind") not in ("here", "testbed"):
        return None
    if ranks <= len(usable):
        return None
    return (
        f"{ranks} ranks took turns on {len(usable)} CPUs: a rank that spins while it waits keeps others from "
        "theirs, for milliseconds (variants with +yield do not)"
    )
