"""What ranks do on a core that they share, from two ranks that were put on one.

Two ranks of one core that wait for each other exchange a message in one of two ways. Where a rank that waits
keeps the core, the other comes to run when the kernel takes it away, and a message takes a time slice. Where
it hands the core on after each look for messages (``sched_yield``, as MPI libraries do that let several
threads call them), a message takes both overheads, one vain look of its sender, and the switch; between
hosts, whose network is no core's work, it takes its latency besides, during which both look in vain by
turns. The slice is measured besides: both ranks compute, and see for how long at a time each has the core.

A rank that hands the core on is still ready to run, and what a kernel makes of that differs: some let the
rank that computes have the core, others give both as much of it. So it is measured what a rank that computes
gets beside one that waits for it.

A library may hand the core on in some calls and keep it in others. So two ranks on one core also exchange
messages by calls of other kinds (`KEEPING`), and of these those are told that take a time slice.

And it may hand the core on in each wait, even for a message that has come. A rank that has computed before it
loses the core then for as long as the one that waits is owed: a receive of such a message tells (``offers``).

A kernel that is fair has a rank look more than once before the other one has its turn, which the fastest
exchange is spared. Whatever else runs on that core gets its slices, too: a message that waits for one takes a
thousand times as long, and a slice is cut short by it. So the median exchange of a launch counts, its fastest
computation, and its longest slice.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from wiretwin.fit.stats import Interval, held, interval
from wiretwin.twin import Figure, Layer, Sharing

__all__ = ["sharing"]

MIN_LAUNCHES = 2
KEEPING = {
    "one_core_recv": ("recv", "sendrecv"),
    "one_core_probe": ("Probe", "Mprobe"),
    "one_core_any": ("Waitany", "Waitsome", "waitany", "waitsome"),
}
"""Loops of ranks on one core, and the calls that each of them is taken to tell of."""
_SPINS = 0.25
"""Of a slice: a message that takes so much has waited for one to end; one that was handed on takes a
thousandth."""


def sharing(
    samples: pl.DataFrame, layer: Layer, confidence: float, *, between: bool = False
) -> Sharing | None:
    """Fit what ranks do on one core; none where that was not measured in two launches, or no overheads were.

    Parameters
    ----------
    samples
        Of the layer.
    layer
        What was fitted to the other loops.
    confidence
        Of the intervals.
    between
        Whether the ranks were on two hosts, if on one core of one machine.
    """
    each = pl.col("value_ns") / pl.col("batch")
    timed = samples.filter(pl.col("index") > 0).with_columns(each.alias("each_ns"))
    found = {loop: timed.filter(pl.col("loop") == loop) for loop in ("one_core", "slice")}
    launches = {loop: rows["launch"].n_unique() for loop, rows in found.items()}
    if min(launches.values()) < MIN_LAUNCHES or not (layer.overhead_send and layer.overhead_recv):
        return None

    def figure(loop: str, of_launch: pl.Expr, scale: float, less: float = 0.0, least: float = 0.0) -> Figure:
        rows = found[loop]
        by_launch = rows.group_by("launch").agg(of_launch).sort("launch")["each_ns"].to_numpy()
        fitted: Interval = interval(scale * by_launch, confidence)
        value, low, high = (max(least, one - less) for one in (fitted.value, fitted.low, fitted.high))
        known = held(Interval(value, low, high), Figure.RANGE)
        return Figure(**known, launches=launches[loop], samples=rows.height)

    beside = timed.filter(pl.col("loop") == "beside")
    share = None
    if beside["launch"].n_unique() >= MIN_LAUNCHES:
        by_launch = (
            beside.group_by("launch").agg((pl.col("delay_ns") / pl.col("each_ns")).max()).sort("launch")
        )
        fitted = interval(by_launch["delay_ns"].to_numpy(), confidence)
        value, low, high = (min(1.0, max(0.0, one)) for one in (fitted.value, fitted.low, fitted.high))
        share = Figure(value=value, low=low, high=high, launches=by_launch.height, samples=beside.height)

    def waits_a_slice(loop: str, slice_us: float) -> bool:
        """Tell whether a message takes so much of a slice, in most of the exchanges of most launches."""
        by_launch = timed.filter(pl.col("loop") == loop).group_by("launch").agg(pl.col("each_ns").median())
        return (
            by_launch.height >= MIN_LAUNCHES
            and 0.5e-3 * float(np.median(by_launch["each_ns"].to_numpy())) > _SPINS * slice_us
        )

    size = int(found["one_core"]["bytes"][0])
    less_us = (layer.at("overhead_send", size) + layer.at("overhead_recv", size)) / 1e3
    if between:
        less_us += layer.at("latency", size) / 1e3
    # A look in vain is a call at least.
    look_us = layer.call_ns.value / 1e3 if between and layer.call_ns is not None else 0.0
    typical, longest = pl.col("each_ns").median(), pl.col("each_ns").max()
    one_core, kept = figure("one_core", typical, 0.5e-3), figure("slice", longest, 1e-6)
    return Sharing(
        idle="spin" if one_core.value > _SPINS * 1e3 * kept.value else "yield",
        one_core_us=one_core,
        turn_us=figure("one_core", typical, 0.5e-3, less_us, look_us),
        slice_ms=kept,
        kept_share=share,
        keeping=tuple(
            call for loop, calls in KEEPING.items() if waits_a_slice(loop, 1e3 * kept.value) for call in calls
        ),
        offers=_offers(timed.filter(pl.col("loop") == "one_core_there")),
    )


def _offers(there: pl.DataFrame) -> bool:
    """Tell whether messages that had come took much of what was computed before, in most launches."""
    by_launch = there.group_by("launch").agg((pl.col("each_ns") / pl.col("delay_ns")).median().alias("share"))
    return by_launch.height >= MIN_LAUNCHES and float(np.median(by_launch["share"].to_numpy())) > _SPINS
