"""One message between hosts as a twin has them: where its time goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.model.anatomy import Line
from wiretwin.predict.model import Site
from wiretwin.twin import Twin

__all__ = ["message_lines"]

_KINDS = ("compute", "endpoint", "wire", "waiting")


def message_lines(site: Site, twin: str | Path | Twin, layer: str, size: int) -> list[Line]:
    """Return the parts of a message from rank 0 to rank 1, which has posted its receive.

    Their sum is its time. What its receiver waits before the message is on the wire is what its sender takes;
    of a message that goes by rendezvous the envelope and the leave to send come first.

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
    parts: list[Line] = []
    rows = zip(
        table["rank"].tolist(),
        table["kind"].tolist(),
        table["start_ps"].tolist(),
        table["end_ps"].tolist(),
        strict=True,
    )
    for rank, kind, start, end in rows:
        if rank != 1 or end == start:
            continue
        name = _KINDS[kind]
        if name == "endpoint":
            line = Line("message", "cpu", "receive", "host 1", start, end - start, 1)
        elif name == "wire":
            line = Line("link", "wire", "wire", "network", start, end - start, 1)
        else:
            line = Line("message", "cpu", "send", "host 0", start, end - start, 1)
        parts.append(line)
    return parts
