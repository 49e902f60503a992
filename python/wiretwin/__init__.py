"""wiretwin: measure, fit, simulate, predict, run and compare how parallel programs talk.

The verbs of the command line are functions here. They are loaded at first use, so that
``import wiretwin`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wiretwin._core import __version__

if TYPE_CHECKING:
    from wiretwin import plot, report
    from wiretwin.doctor import doctor
    from wiretwin.fit import fit
    from wiretwin.measure import measure
    from wiretwin.model import Host, LocalNetwork, Network, read_network
    from wiretwin.predict import predict
    from wiretwin.predict.live import run
    from wiretwin.results import Result
    from wiretwin.scenario import Scenario, simulate
    from wiretwin.sweep import sweep
    from wiretwin.tour import tour
    from wiretwin.twin import Twin
    from wiretwin.understand import understand
    from wiretwin.understand.comparing import compare

__all__ = [
    "Host",
    "LocalNetwork",
    "Network",
    "Result",
    "Scenario",
    "Twin",
    "__version__",
    "compare",
    "doctor",
    "fit",
    "measure",
    "plot",
    "predict",
    "read_network",
    "report",
    "run",
    "simulate",
    "sweep",
    "tour",
    "understand",
]

# Where each public name lives: `module:name`, or the package itself for a verb that is a room.
_HOMES = {
    "Host": "wiretwin.model:Host",
    "LocalNetwork": "wiretwin.model:LocalNetwork",
    "Network": "wiretwin.model:Network",
    "Result": "wiretwin.results:Result",
    "Scenario": "wiretwin.scenario:Scenario",
    "Twin": "wiretwin.twin:Twin",
    "compare": "wiretwin.understand.comparing:compare",
    "doctor": "wiretwin.doctor",
    "fit": "wiretwin.fit",
    "measure": "wiretwin.measure",
    "plot": "wiretwin.plot",
    "predict": "wiretwin.predict",
    "read_network": "wiretwin.model:read_network",
    "report": "wiretwin.report",
    "run": "wiretwin.predict.live:run",
    "simulate": "wiretwin.scenario:simulate",
    "sweep": "wiretwin.sweep",
    "tour": "wiretwin.tour",
    "understand": "wiretwin.understand",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'wiretwin' has no attribute {name!r}")
    module_name, _, attribute = home.partition(":")
    module = importlib.import_module(module_name)
    value = getattr(module, attribute) if attribute else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
