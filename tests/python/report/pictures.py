"""Every kind of picture that our pages have, besides those of `report_data.everything` and of the papers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from wiretwin import plot
from wiretwin.plot.changes import ratios
from wiretwin.plot.history import times
from wiretwin.plot.pairs import matrix
from wiretwin.report.page import Column, FigureBlock, Group, Page, Section, Table
from wiretwin.results import Launch, Layer, Result
from wiretwin.sweep.plan import Axis
from wiretwin.sweep.record import Folder, Plan, Run
from wiretwin.sweep.run import Sweep
from wiretwin.understand.baselines import history, keep, of_name
from wiretwin.understand.changes import changes

SIZES = [4 << k for k in range(0, 12, 2)]


def swept(folder: Path) -> Sweep:
    """A sweep over numbers and words, in which the last point has one run only."""
    axes = (
        Axis("share", ("network", "load", 0, "share"), (0.1, 0.3, 0.5, 0.7)),
        Axis("size", ("echo", "size"), ("4 B", "4 KiB")),
    )
    points = tuple({"share": share, "size": size} for share in axes[0].values for size in axes[1].values)
    plan = Plan(scenario={"name": "an echo"}, over=["share", "size"], replications=3, most=3, confidence=0.95)
    found = Folder.open(folder, plan)
    for point, values in enumerate(points):
        for replication in range(3 if point < len(points) - 1 else 1):
            us = (
                100.0
                + 900.0 * float(values["share"])
                + 40.0 * replication
                + (values["size"] == "4 KiB") * 500
            )
            found.append(Run(point, replication, replication, {"latency_us": us}, "d", None, 0.1))
    found.release()
    return Sweep(found, axes, points)


def measured(folder: Path, day: int, factor: float, layers: tuple[str, ...] = ("shm", "shm+yield")) -> Result:
    """A result of a day, whose launches scatter by 2 %."""
    random = np.random.default_rng(day)
    date = f"2026-01-{day:02}T00:00:00Z"
    made = Result.create(
        folder, seed=day, created_utc=date, layers=[Layer(layer=name, name=name) for name in layers]
    )
    for number in range(1, 5 * len(layers) + 1):
        spread = np.exp(random.normal(0, 0.02, len(SIZES)))
        columns: dict[str, Any] = {
            "loop": ["echo"] * len(SIZES),
            "bytes": SIZES,
            "value_ns": [round(one) for one in 1e5 * factor * (1 + np.array(SIZES) / 4096) * spread],
        }
        columns |= {key: [value] * len(SIZES) for key, value in CONSTANT.items()}
        name = layers[number % len(layers)]
        made.append(
            Launch(launch=number, name=name, order=number, started_utc=date, seconds=1.0, status="ok"),
            columns,
        )
    made.finish("complete")
    return made


CONSTANT = {"messages": 1, "delay_ns": 0, "batch": 1, "index": 1}


def pairs() -> pl.DataFrame:
    """Three hosts, of which one pair was not measured."""
    rows = [("a", "a", 4.0), ("b", "b", 4.1), ("c", "c", 4.0), ("a", "b", 9.0), ("a", "c", 9.5)]
    same = {"layer": "socket/tcp", "bytes": 4}
    return pl.DataFrame([{**same, "a": a, "b": b, "value_us": us} for a, b, us in rows])


def pictures(folder: Path, together: Result) -> dict[str, Any]:
    """The figures by name."""
    results = [
        measured(folder / f"day-{day}", day, factor) for day, factor in ((1, 1.0), (2, 1.01), (3, 2.0))
    ]
    main = of_name("main", folder / "kept")
    for result in results:
        keep(result, main)
    past = history(main)
    found = swept(folder / "swept")
    return {
        "history": times(past, 64),
        "changes": ratios(changes(results[0], results[2])),
        "no-changes": ratios(changes(results[0], results[1])),
        "pairs": matrix(pairs(), "socket/tcp", 4, ["a", "b", "c"]),
        "sweep": plot.sweep(found, "latency_us"),
        "collective": plot.collective(together, "iallreduce"),
        "distribution": plot.distribution(together, "iallreduce", 4),
    }


def page(figures: dict[str, Any]) -> Page:
    """One page with all of them."""
    table = Table("values", [Column("Value")], [["one"]])
    blocks = [FigureBlock(name, name, name, figure, table) for name, figure in figures.items()]
    return Page("pictures", "", sections=[Section("all", "all", "all", "", [Group(blocks)])])


def alike(figure: Any) -> list[str]:
    """The layers of a figure that share colour and dash, or colour and symbol where no line is drawn."""
    plain = json.loads(figure.to_json(engine="json"))
    looks: dict[tuple[str, ...], str] = {}
    found = []
    for trace in plain["data"]:
        if trace.get("meta", {}).get("part") != "curve":
            continue
        line, marker = trace.get("line", {}), trace.get("marker", {})
        lines = "lines" in trace.get("mode", "lines")
        colour = line.get("color") if lines else marker.get("color")
        symbol = marker.get("symbol")
        style = line.get("dash", "solid") if lines else str(symbol if isinstance(symbol, str) else symbol[0])
        other = looks.setdefault((str(colour), style.removesuffix("-open")), trace["meta"]["layer"])
        if other != trace["meta"]["layer"]:
            found.append(f"{other} and {trace['meta']['layer']}")
    return found


def unmarked(figure: Any) -> list[str]:
    """The layers whose band leaves the picture, though no mark says so."""
    marked = {trace.meta["layer"] for trace in figure.data if (trace.meta or {}).get("part") == "beyond"}
    found = []
    for trace in figure.data:
        if (trace.meta or {}).get("part") != "band" or trace.meta["layer"] in marked:
            continue
        for axis, values in ((figure.layout.xaxis, trace.x), (figure.layout.yaxis, trace.y)):
            if axis.range is None:
                continue  # the axis is as long as what is drawn
            places = np.log10(np.array(values, float)) if axis.type == "log" else np.array(values, float)
            if (places < axis.range[0] - 1e-9).any() or (places > axis.range[1] + 1e-9).any():
                found.append(trace.meta["layer"])
    return found
