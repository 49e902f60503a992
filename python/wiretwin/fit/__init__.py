"""From measured samples to a twin.

``wiretwin.fit(result)`` is the verb (`wiretwin.fit.api.fit`).

- `stats`: estimates and intervals between launches
- `curve`: t_0, r_max, n_half as read off the measured curve
- `segments`: straight lines by size, with breaks found by the data
- `loggp`: overheads, gap and latency; the rendezvous size
- `ranking`: intervals by size, and which layers they tell apart
- `api`: all of it, into a `wiretwin.twin.Twin`
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wiretwin._verbs import make_callable

if TYPE_CHECKING:
    from wiretwin.fit.api import fit, missing_for_endpoints
    from wiretwin.fit.ranking import rank_layers, size_table, sizes_within

__all__ = ["fit", "missing_for_endpoints", "rank_layers", "size_table", "sizes_within"]

_HOMES = {
    "fit": "wiretwin.fit.api",
    "missing_for_endpoints": "wiretwin.fit.api",
    "sizes_within": "wiretwin.fit.ranking",
    "rank_layers": "wiretwin.fit.ranking",
    "size_table": "wiretwin.fit.ranking",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


make_callable(__name__, "wiretwin.fit.api:fit")
