"""Pairs of hosts, as tables: the classes they fall into, each pair, and what is slow."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from wiretwin.cli.format import Column, Table

if TYPE_CHECKING:
    from wiretwin.results import Result

__all__ = ["class_table", "pair_rows", "say_slow"]


def class_table(result: Result) -> Table:
    """Return one row a layer and class: how many pairs, and what a short and a long message take."""
    from wiretwin.fit.pairs import classes_of

    rows = []
    for found in classes_of(result):
        for one in found.classes:
            least, most = min(one.times_us), max(one.times_us)
            rows.append(
                (
                    found.layer,
                    one.name,
                    len(one.pairs),
                    least,
                    one.times_us[least],
                    most,
                    one.times_us[most],
                    one.rate_MB_s,
                )
            )
    columns = (
        Column("layer", "layer"),
        Column("class", "class"),
        Column("pairs", "pairs"),
        Column("short_bytes", "short [B]", people=False),
        Column("short_us", "short message [us]"),
        Column("long_bytes", "long [B]"),
        Column("long_us", "long message [us]"),
        Column("rate_MB_s", "rate [MB/s]"),
    )
    return Table("classes of pairs, without slow hosts: one-way latency, rate", columns, rows)


def pair_rows(result: Result) -> Table:
    """Return one row a layer, pair and size: the one-way latency with its interval."""
    from wiretwin.fit.pairs import pair_table

    columns = (
        Column("layer", "layer"),
        Column("a", "host"),
        Column("b", "and host"),
        Column("size_bytes", "size [B]"),
        Column("launches", "launches"),
        Column("half_round_trip_us", "Latency [us]"),
        Column("low_us", "low", people=False),
        Column("high_us", "high", people=False),
    )
    return Table("one-way latency between pairs of hosts", columns, pair_table(result).rows())


def say_slow(result: Result) -> None:
    """Name on standard error the groups of hosts that were found, and what is slow."""
    from wiretwin.fit.pairs import classes_of

    for found in classes_of(result):
        if len(found.groups) > 1:
            print(f"{found.layer}: hosts near each other: {found.near}", file=sys.stderr)
        for one in found.slow:
            print(f"{found.layer}: slow: {one}", file=sys.stderr)
