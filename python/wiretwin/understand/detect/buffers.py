"""Socket buffers smaller than the message.

What does not fit waits until the other side has read: from about the size of the buffer on, both processes
take a turn for each buffer full. The kernel grows the buffers of TCP by itself unless a
size was asked for; those of Unix sockets it never grows.
"""

from __future__ import annotations

import re

import numpy as np

from wiretwin.fit.stats import interval
from wiretwin.stacks.layers import nature_of
from wiretwin.understand.compare import lower
from wiretwin.understand.finding import CounterRun, Finding
from wiretwin.understand.view import View

__all__ = ["NAME", "find", "gone"]

NAME = "socket-buffer"
FITS = 0.5
"""Share of a buffer that payload may take: the kernel counts its own overhead into it."""
BEYOND = (1.0, 16.0)
"""Sizes that are looked at, in buffers."""
LEAST_RATIO = 1.5
"""Choice: messages beyond the buffer take at least so many times what the line below it says."""


def find(view: View) -> list[Finding]:
    """Compare sizes beyond the smaller buffer with the line through those that fit, if it cannot grow."""
    buffers = nature_of(view.layer).buffers
    if buffers is None:
        return []
    keys = ("send_buffer_bytes", "receive_buffer_bytes")
    fixed = [key for key in keys if view.options.get(key) or buffers == "fixed"]
    known = [int(view.effective[key]) for key in fixed if view.effective.get(key)]
    if not known:
        return []
    limit = min(known)
    sizes, values = view.half_us()
    values = values[np.isfinite(values).all(axis=1)]
    fits = sizes <= FITS * limit
    beyond = (sizes >= BEYOND[0] * limit) & (sizes <= BEYOND[1] * limit)
    if values.shape[0] < 2 or fits.sum() < 2 or beyond.sum() < 2:
        return []
    x = sizes[fits] - sizes[fits].mean()
    base = values[:, fits].mean(axis=1)
    slope = np.maximum((values[:, fits] * x).sum(axis=1) / float((x**2).sum()), 0.0)
    expected = base[:, None] + slope[:, None] * (sizes[beyond] - sizes[fits].mean())[None, :]
    ratios = [interval(column) for column in (values[:, beyond] / expected).T]
    if (
        not all(ratio.value >= LEAST_RATIO for ratio in ratios)
        or max(one.low for one in ratios) < LEAST_RATIO
    ):
        return []
    before, after = int(sizes[fits][-1]), int(sizes[beyond][0])
    evidence = (
        f"the one-way latency of {after} to {int(sizes[beyond][-1])} B takes {ratios[0].value:.1f} to "
        f"{ratios[-1].value:.1f} times what the line through the sizes up to {before} B says",
        f"the smaller socket buffer has {limit} B and does not grow",
    )
    words = [word for word in view.words if not re.fullmatch(r"buf\d+k", word)]
    counter = None
    if len(words) < len(view.words):
        counter = CounterRun("buffers left to the kernel", "+".join([view.layer, *words]))
    elif buffers == "fixed":
        layer = "+".join([view.layer, *sorted([*words, "buf1024k"])])
        counter = CounterRun("buffers of 1 MiB, as far as the kernel allows", layer)
    return [
        Finding(
            NAME,
            view.name,
            tuple(int(size) for size in sizes[beyond]),
            evidence,
            "likely",
            counter,
            setting=limit,
        )
    ]


def gone(finding: Finding, before: View, after: View) -> bool | None:
    """Whether a message of a few buffers is faster."""
    return lower(before, after, finding.sizes[len(finding.sizes) // 2])
