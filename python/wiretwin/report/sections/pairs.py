"""Pairs of hosts: who is near whom, what is slow, and every pair in a square."""

from __future__ import annotations

import polars as pl

from wiretwin.fit.pairs import Classes
from wiretwin.plot import pairs as draw
from wiretwin.plot import words
from wiretwin.report.inputs import Inputs
from wiretwin.report.page import Column, FigureBlock, Group, ListBlock, Missing, Section, Table, TableBlock


def build(inputs: Inputs) -> list[Section | Missing]:
    """Build the section; nothing where no pairs of hosts were measured."""
    if not inputs.classes:
        return []
    groups = []
    for found in inputs.classes:
        sizes = sorted(inputs.pairs.filter(pl.col("layer") == found.layer)["bytes"].unique())
        squares = [_matrix(inputs.pairs, found, size) for size in sizes]
        groups.append(Group([_classes(found), *_slow(found), *squares], found.layer))
    lead = (
        "Each pair of hosts was measured by itself, and each host with itself. Classes of pairs are found in "
        "the times: hosts that are near each other fall into groups. In the squares a darker field is a "
        "longer time; hosts of a group stand beside each other."
    )
    return [Section("pairs", "Pairs of hosts", "Pairs of hosts", lead, groups)]


def _classes(found: Classes) -> TableBlock:
    sizes = sorted({size for one in found.classes for size in one.times_us})
    columns = [
        Column("Class"),
        Column("Pairs", True),
        *(Column(words.size_text(size), True) for size in sizes),
    ]
    rows = [
        [
            one.name,
            str(len(one.pairs)),
            *(words.time_text(one.times_us[size] / 1e6) if size in one.times_us else "" for size in sizes),
        ]
        for one in found.classes
    ]
    text = (
        f"Near each other: {found.near}."
        if len(found.groups) > 1
        else "All hosts are alike far from each other."
    )
    caption = "median one-way latency by size, without slow hosts"
    return TableBlock(f"classes-{found.layer}", "Classes of pairs", Table(caption, columns, rows), text)


def _slow(found: Classes) -> list[ListBlock]:
    if not found.slow:
        return []
    pairs = [(one.subject[0].upper() + one.subject[1:], one.evidence) for one in found.slow]
    return [ListBlock(f"slow-{found.layer}", "What is slow", pairs)]


def _matrix(table: pl.DataFrame, found: Classes, size: int) -> FigureBlock:
    own = table.filter((pl.col("layer") == found.layer) & (pl.col("bytes") == size)).sort("value_us")
    hosts = [host for group in found.groups for host in group]
    between = own.filter(pl.col("a") != pl.col("b"))
    named = ""
    if len(between):
        (fast, slow) = (between.row(at, named=True) for at in (0, -1))
        named = " to ".join(
            f"{words.time_text(one['value_us'] / 1e6)} ({one['a']} and {one['b']})" for one in (fast, slow)
        )
    rows = [
        [row["a"], row["b"], words.time_text(row["value_us"] / 1e6), str(row["launches"])]
        for row in own.iter_rows(named=True)
    ]
    columns = [Column("Host"), Column("And host"), Column("One-way latency", True), Column("Launches", True)]
    return FigureBlock(
        f"pairs-{found.layer}-{size}",
        f"Every pair: {words.size_text(size)}",
        f"A message of {words.size_text(size)} takes {named} between two hosts.",
        draw.matrix(table, found.layer, size, hosts),
        Table(f"pairs of hosts, {words.size_text(size)}, the fastest first", columns, rows),
        half=True,
    )
