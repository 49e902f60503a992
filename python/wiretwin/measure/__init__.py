"""Measuring the messaging layers of this host: layers, schedules, launches, when to stop.

``wiretwin.measure(layers=…, budget=…, out=…)`` is the verb (`wiretwin.measure.api.measure`).

- `schedule`: which loops at which sizes
- `launch`: one launch, fresh processes under a hard limit
- `adaptive`: when a layer has been measured enough
- `orchestrate`: rounds of interleaved launches, every sample stored at once
- `probe_mpi4py`: the probe for mpi4py; the other probes are compiled (``python -m wiretwin.probe``)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wiretwin._verbs import make_callable

if TYPE_CHECKING:
    from wiretwin.measure.api import measure

__all__ = ["measure"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("wiretwin.measure.api"), name)


make_callable(__name__, "wiretwin.measure.api:measure")
