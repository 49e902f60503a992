"""One message between hosts as a twin has them, taken apart as on any other network."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.model.anatomy import Anatomy, Line
from wiretwin.predict.model import Site
from wiretwin.twin import Twin

__all__ = ["TwinPair", "message_anatomy"]

_KINDS = ("compute", "endpoint", "wire", "waiting")
_WHOSE = ("sends", "receives")


@dataclass(frozen=True)
class TwinPair:
    """Two ranks of a site, whose layer is what a twin calls it."""

    site: Site
    stack: str

    @property
    def between(self) -> str:
        """The hosts and what is between them, in words."""
        return "two ranks of one host" if self.site.network is None else f"two hosts, {self.site.network}"


def message_anatomy(site: Site, twin: str | Path | Twin, layer: str, size: int) -> Anatomy:
    """Return the anatomy of a message from rank 0 to rank 1, which has posted its receive.

    What its receiver waits before the message is on the wire is what its sender takes; of a message that goes
    by rendezvous the envelope and the leave to send come first.

    Raises
    ------
    InputError
        The twin has no such layer, or the network has hosts of its own.
    """
    if site.local is not None:
        raise InputError(
            key="--network",
            value=str(site.network),
            allowed="a topology, with --twin, such as star:rate=10Gbit/s",
        )
    fitted = site.twin_for(twin)
    world: Any = _core.World(2, json.dumps(site.model(fitted, layer)), seed=1, timeline=True)
    send = world.post(0, ("send", 0, 1, 0, size, "standard"))
    receive = world.post(1, ("recv", 0, 0, 0, size))
    world.post(0, ("wait", [send], "all"))
    world.post(1, ("wait", [receive], "all"))
    open_ranks = {0, 1}
    while open_ranks:
        for rank, _ in world.step():
            world.post(rank, ("finish",))
            open_ranks.discard(rank)
    table = world.timeline()
    path: list[Line] = []
    busy: dict[str, list[Any]] = {
        key: [] for key in ("activity", "layer", "resource", "place", "start_ps", "end_ps", "waited_ps")
    }
    columns = (table[key].tolist() for key in ("rank", "kind", "start_ps", "end_ps"))
    for rank, kind, start, end in zip(*columns, strict=True):
        if end == start:
            continue
        name = _KINDS[kind]
        if name == "endpoint":
            row = (_WHOSE[rank], "message", "cpu", rank, start, end, 0)
            for column, value in zip(busy.values(), row, strict=True):
                column.append(value)
        if rank != 1:
            continue
        if name == "wire":
            line = Line("link", "wire", "carries", "link 0", start, end - start, 1)
        else:
            host = 1 if name == "endpoint" else 0
            line = Line("message", "cpu", _WHOSE[host], f"host {host}", start, end - start, 1)
        path.append(line)
    latency = sum(line.span_ps for line in path)
    arrays: Any = {key: np.array(column) if key[-3:] == "_ps" or key == "place" else column
                   for key, column in busy.items()}  # fmt: skip
    return Anatomy(TwinPair(site, layer), size, latency, path, arrays, 0, str(world.digest()))
