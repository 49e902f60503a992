"""The timeline of each simulated program, whole and closer."""

from __future__ import annotations

from typing import Any

import polars as pl

from wiretwin.plot import programs, words
from wiretwin.plot import timelines as draw
from wiretwin.plot.theme import KINDS
from wiretwin.report.inputs import Inputs
from wiretwin.report.page import Block, Column, FigureBlock, Group, Key, Missing, Section, Table
from wiretwin.report.sections.programs import PREDICT

KEYS = [Key(f"kind-{kind}", programs.KIND_WORDS[kind]) for kind in KINDS]


def build(inputs: Inputs) -> list[Section | Missing]:
    """Build the section from the predictions that kept a timeline."""
    shown = [(item, frame) for item, frame in inputs.timelines if len(frame)]
    if not shown:
        return [Missing("The timeline of the simulated program", PREDICT)]
    groups = []
    for at, (prediction, frame) in enumerate(shown):
        name = programs.program_name(prediction)
        blocks: list[Block] = [_whole(at, name, frame)]
        window = draw.closer_window(frame)
        if window is not None:
            blocks.append(_closer(at, name, frame, window))
        groups.append(Group(blocks, title=name, folded=at > 0))
    lead = (
        "What each rank does in virtual time: it computes, pays for a call at an endpoint, has bytes on the "
        "wire, or waits for another rank. Zoom with the buttons, by dragging, or with the keys + and -."
    )
    return [Section("timeline", "The simulated program, rank by rank", "Timeline", lead, groups)]


def _whole(at: int, name: str, frame: pl.DataFrame) -> FigureBlock:
    notes = []
    ranks = frame["rank"].n_unique()
    if len(frame) > draw.MOST_INTERVALS:
        count = draw.column_count(min(ranks, draw.MOST_RANKS))
        start, end = draw.bounds(frame)
        notes.append(
            f"To keep this file small, {words.count_text(len(frame), 'interval')} are summed into {count} "
            f"columns of {words.time_text((end - start) / count / 1e12)}. A colour's height is its share "
            "of the column: the time of each kind is exact, its order within a column is not shown."
        )
    if ranks > draw.MOST_RANKS:
        notes.append(
            f"{draw.MOST_RANKS} of {ranks} ranks are shown, spread evenly, the last to end among them."
        )
    last = int(frame["end_ps"].max()) / 1e12  # type: ignore[arg-type]
    return FigureBlock(
        f"timeline-{at + 1}",
        f"The whole run: {name}",
        f"{words.count_text(ranks, 'rank')} over {words.time_text(last)} of virtual time, "
        f"{words.count_text(len(frame), 'interval')}.",
        draw.timeline(frame),
        _totals(name, frame),
        keys=KEYS,
        note=" ".join(notes),
        zoom=True,
    )


def _closer(at: int, name: str, frame: pl.DataFrame, window: tuple[int, int]) -> FigureBlock:
    low, high = window
    inside = frame.filter((pl.col("end_ps") > low) & (pl.col("start_ps") < high))
    return FigureBlock(
        f"closer-{at + 1}",
        f"A closer look: {name}",
        f"{words.time_text((high - low) / 1e12)} from the middle of the run, beginning at "
        f"{words.time_text(low / 1e12)}: {words.count_text(len(inside), 'interval')} as simulated.",
        draw.timeline(frame, window_ps=window),
        _sites(name, frame),
        keys=KEYS,
        zoom=True,
    )


def _totals(name: str, frame: pl.DataFrame) -> Table:
    sums = _sum(frame, ["rank"])
    rows = [
        [f"rank {row['rank']}", *(words.time_text(row[kind] / 1e12) for kind in KINDS)]
        for row in sums.sort("rank").iter_rows(named=True)
    ]
    columns = [Column("Rank"), *(Column(programs.KIND_WORDS[kind], True) for kind in KINDS)]
    return Table(f"Virtual time by rank and kind: {name}", columns, rows)


def _sites(name: str, frame: pl.DataFrame, most: int = 12) -> Table:
    """List the source lines at which the most time goes by outside compute."""
    sums = _sum(frame.filter(pl.col("kind") != "compute"), ["site", "name"])
    ordered = sums.with_columns(
        (pl.col("endpoint") + pl.col("wire") + pl.col("waiting")).alias("sum_ps")
    ).sort(["sum_ps", "site", "name"], descending=[True, False, False])
    rows: list[list[str]] = []
    for row in ordered.head(most).iter_rows(named=True):
        rows.append(_site(row))
    columns = [
        Column("Source line"),
        Column("Call"),
        *(Column(programs.KIND_WORDS[kind], True) for kind in KINDS[1:]),
    ]
    return Table(f"Where communication takes its time, all ranks, whole run: {name}", columns, rows)


def _site(row: dict[str, Any]) -> list[str]:
    return [
        row["site"] or "not known",
        row["name"] or "",
        *(words.time_text(row[kind] / 1e12) for kind in KINDS[1:]),
    ]


def _sum(frame: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    length = pl.col("end_ps").cast(pl.Int64) - pl.col("start_ps").cast(pl.Int64)
    return frame.group_by(keys).agg(length.filter(pl.col("kind") == kind).sum().alias(kind) for kind in KINDS)
