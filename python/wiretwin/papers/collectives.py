"""Figures of collective operations on a paper's page: how long a call takes by the number of hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wiretwin.papers.curves import Drawn, Point, Quantity, chips, draw
from wiretwin.papers.records import Record
from wiretwin.plot import base, words
from wiretwin.plot.base import looks
from wiretwin.plot.theme import LIGHT
from wiretwin.report.page import FigureBlock

__all__ = ["figures", "is_call"]

_OF_ALL = ("barrier", "bcast", "allgather", "alltoall", "gather", "scatter")
_REDUCING = ("reduce", "allreduce", "reduce-scatter", "scan", "exscan")
OPERATIONS = frozenset((*_OF_ALL, *_REDUCING))
TIME = Quantity("Time of a call", "us")


def is_call(record: Record) -> bool:
    """Whether a value is how long a collective operation takes between so many hosts."""
    keys = record.keys
    return record.metric == "time_us" and keys.get("program") in OPERATIONS and "ports" in keys


def figures(name: str, records: Sequence[Record]) -> Drawn:
    """Draw a figure for each operation and size, and in it a curve for each library.

    What is no time of a call is left out.
    """
    calls: dict[tuple[str, int], dict[str, list[Point]]] = {}
    for record in records:
        if is_call(record):
            keys = record.keys
            which = (keys["program"], int(keys.get("size", 0)))
            library = keys["stack"].split("/")[0]
            calls.setdefault(which, {}).setdefault(library, []).append((float(keys["ports"]), record))
    shown = looks(list(dict.fromkeys(library for curves in calls.values() for library in curves)))
    blocks = []
    for (program, size), curves in calls.items():
        ident = f"{name}-{program}-{size}"
        figure = base.empty(340, LIGHT, ident)
        table, values = draw(figure, TIME, "hosts", "Library", curves, shown)
        places = sorted({at for points in curves.values() for at, _ in points})
        ticks = [f"{at:g}" for at in places]
        figure.update_xaxes(title={"text": "hosts"}, type="log", tickvals=places, ticktext=ticks)
        base.time_axis(figure, min(values) / 1e6, max(values) / 1e6, 1e-6, "y")
        base.caption_y(figure, "Time of a call, with its 90 % interval")
        title = f"{program}, {words.size_text(size)} each" if size else program
        last = {library: points[-1][1] for library, points in curves.items()}
        said = f"With {places[-1]:g} hosts {_quickest(last)}."
        blocks.append(FigureBlock(ident, title, said, figure, replace(table, caption=title), half=True))
    return blocks, chips(shown)


def _quickest(times: Mapping[str, Record]) -> str:
    """Say which library takes the least: it is the fastest only where its interval touches no other's."""
    first = min(times, key=lambda library: times[library].predicted)
    high = _ends(times[first])[1]
    near = [library for library, one in times.items() if library != first and _ends(one)[0] <= high]
    took = words.time_text(times[first].predicted / 1e6)
    if not near:
        return f"{first} is the fastest: {took}"
    return f"{first} takes the least, {took}, and cannot be told from {words.list_text(near)}"


def _ends(record: Record) -> tuple[float, float]:
    """Return the ends of a value's interval, both the value itself where it has none."""
    return (
        record.predicted if record.low is None else record.low,
        record.predicted if record.high is None else record.high,
    )
