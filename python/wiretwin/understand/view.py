"""A configuration as the detectors see it: its curve, what crossed the wire, the options in force.

A view holds one number a launch and size (the median of its samples), so a recorded view is a few
kilobytes and says all that a detector may ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from wiretwin.fit.stats import Array, ByLaunch, Interval, by_launch, interval, summarise

if TYPE_CHECKING:
    import polars as pl

    from wiretwin.results import Result
    from wiretwin.understand.accounting import Account

__all__ = ["View", "views"]


@dataclass(frozen=True)
class View:
    """One configuration.

    Attributes
    ----------
    name, layer
        ``socket/tcp+nagle``, ``socket/tcp``.
    options, effective
        As asked for, and as the kernel or the library reports them.
    loops
        By loop with one message an iteration and no delay: times of an iteration by launch and size, ns.
    accounts
        What crossed the wire, size by size; empty within one host.
    place
        As in the manifest's options: hosts and the link between them.
    pins
        CPUs of the two ranks, if they were pinned.
    foreign
        The program that measured, if it was not this one.
    """

    name: str
    layer: str
    options: Mapping[str, Any]
    effective: Mapping[str, Any]
    loops: Mapping[str, ByLaunch]
    accounts: Sequence[Account] = ()
    place: Mapping[str, Any] = field(default_factory=dict)
    pins: tuple[int, ...] | None = None
    foreign: str | None = None

    @property
    def words(self) -> list[str]:
        """The words of the configuration."""
        return self.name.split("+")[1:]

    @property
    def hosts(self) -> int:
        """On how many hosts it was measured."""
        return max(1, len(self.place.get("hosts", ())))

    @property
    def link(self) -> Mapping[str, Any]:
        """The link between the hosts, empty within one."""
        found: Mapping[str, Any] = self.place.get("link") or {}
        return found

    def half_us(self, loop: str = "echo") -> tuple[Array, Array]:
        """Return sizes above 0 and half an iteration by launch and size, microseconds; whole columns only."""
        empty = np.zeros(0)
        data = self.loops.get(loop)
        if data is None:
            return empty, np.zeros((0, 0))
        kept = np.isfinite(data.values).any(axis=0) & (data.sizes > 0)
        return data.sizes[kept].astype(np.float64), data.values[:, kept] / 2000.0

    def typical_us(self, loop: str = "echo") -> tuple[Array, list[Interval]]:
        """Return sizes and half an iteration at each with its interval between launches, microseconds."""
        sizes, values = self.half_us(loop)
        return sizes, [interval(values[:, column]) for column in range(sizes.size)]


def view_of(summary: pl.DataFrame, **known: Any) -> View:
    """Make a view from a summary of samples of one configuration."""
    import polars as pl

    plain = summary.filter((pl.col("messages") == 1) & (pl.col("delay_ns") == 0))
    loops = {
        str(loop): by_launch(plain.filter(pl.col("loop") == loop))
        for loop in plain["loop"].unique().sort()
        if loop != "call"
    }
    return View(loops=loops, **known)


def views(result: Result) -> list[View]:
    """Return every measured configuration, in one state of its host, in the order of the manifest.

    Of a result of many pairs of hosts it is one typical pair.
    """
    import polars as pl

    from wiretwin.fit.cluster import has_pairs, reference_launches
    from wiretwin.fit.onestate import in_one_state
    from wiretwin.understand.accounting import accounts

    if has_pairs(result):
        result = reference_launches(result)
    samples = in_one_state(result).samples
    if not samples.height:
        return []
    summary = summarise(samples)
    options = result.manifest.options
    pins = options.get("pin_cpu")
    counted = accounts(result.traffic(), options.get("place") or {})
    return [
        view_of(
            summary.filter(pl.col("layer") == layer.name),
            name=layer.name,
            layer=layer.layer,
            options=layer.options,
            effective=layer.effective,
            accounts=[one for one in counted if one.layer == layer.name],
            place=options.get("place") or {},
            pins=tuple(pins) if pins else None,
            foreign=options.get("foreign", {}).get("tool"),
        )
        for layer in result.manifest.layers
        if layer.name in summary["layer"]
    ]
