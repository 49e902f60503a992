"""A sweep, as one self-contained HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from wiretwin.plot import base, words
from wiretwin.plot.sweep import curves, key_of, sweep
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import Chip, Column, FigureBlock, Group, Key, Page, Section, Table
from wiretwin.report.writer import html
from wiretwin.results import write_atomically
from wiretwin.sweep.run import Sweep

__all__ = ["write"]


def write(found: Sweep, out: str | os.PathLike[str]) -> Path:
    """Write the page: a figure for each metric, with the table of what it shows.

    Raises
    ------
    StorageError
        It cannot be written; nothing is then left.
    """
    names = list(curves(found))
    looks = base.looks(names)
    chips = [Chip(name, LIGHT.series.index(one.colour), one.dash, one.symbol) for name, one in looks.items()]
    plan, runs = found.folder.plan, len(found.folder.runs)
    said = [_finding(found, metric) for metric in found.metrics]
    failed = len(found.folder.failed)
    lead = (
        "A point is the mean over its replications, of which each has a seed of its own. Replication i has "
        "the same seed at every point. Lines join the points and say nothing about what lies between them."
    )
    figures = [_figure(found, metric) for metric in found.metrics]
    keys = " and ".join(axis.key for axis in found.axes)
    page = Page(
        title=f"{plan.scenario.get('name') or 'A sweep'}, over {keys}",
        subtitle=f"{words.count_text(len(found.points), 'point')} · {words.count_text(runs, 'run')} · "
        f"digest {found.digest}",
        findings=[line for line in said if line],
        cautions=[f"{words.count_text(failed, 'run')} failed and are left out."] if failed else [],
        sections=[Section("sweep", "What the runs came to", "Metrics", lead, [Group(figures)], chips)],
    )
    target = Path(out)
    write_atomically(target, html(page).encode())
    return target


def _finding(found: Sweep, metric: str) -> str:
    """Say where a metric is least and where it is most; nothing where it is the same everywhere."""
    known = [
        (found.at(number, metric).mean, point)
        for number, point in enumerate(found.points)
        if found.at(number, metric).count
    ]
    if not known:
        return ""
    (least, first), (most, last) = (end(known, key=lambda one: one[0]) for end in (min, max))
    if least == most:
        return ""
    return (
        f"{metric} goes from {words.digits(least, 4)} at {_named(first)} to {words.digits(most, 4)} "
        f"at {_named(last)}."
    )


def _named(point: Mapping[str, object]) -> str:
    return ", ".join(f"{key}={value}" for key, value in point.items())


def _figure(found: Sweep, metric: str) -> FigureBlock:
    share = f"{100 * found.folder.plan.confidence:g} %"
    rows = []
    for number, point in enumerate(found.points):
        one = found.at(number, metric)
        ends = "" if one.low is None or one.high is None else f"{one.low:.4g} to {one.high:.4g}"
        mean = f"{one.mean:.4g}" if one.count else ""
        rows.append([*map(str, point.values()), mean, ends, str(one.count)])
    heads = [Column(axis.key) for axis in found.axes]
    heads += [Column("Mean", True), Column(f"{share} interval", True), Column("Runs", True)]
    return FigureBlock(
        f"sweep-{metric}",
        f"{metric} against {key_of(found).key}",
        _finding(found, metric) or f"{metric} is the same at every point.",
        sweep(found, metric),
        Table(f"{metric} by point: mean over the replications", heads, rows),
        keys=[Key("band", f"interval ({share})")],
        half=True,
    )
