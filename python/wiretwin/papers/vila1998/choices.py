"""Vila-Sallent and Solé-Pareta 1998: what table 3 says under other choices."""

from __future__ import annotations

from typing import Any

from wiretwin import scratch
from wiretwin.model.cases import case
from wiretwin.papers.choices import Draw
from wiretwin.papers.records import Key
from wiretwin.papers.vila1998.curves import CONFIDENCE, MECHANISMS, PAPER, scenario
from wiretwin.sweep.run import sweep

__all__ = ["under"]

RHO = "rho=0.7,1.0"
METRICS = {
    "abr-utilisation": ("abr_share",),
    "bandwidth": ("ubr_kbit_s", "abr_kbit_s", "vbr_kbit_s"),
}
WHOLE = {"buffer", "sources", "max_pd", "window"}
UNITS = {"leg": "ms", "burst": "ms", "keep_alive": "ms", "source": "Mbit/s"}


def under(draw: Draw) -> dict[Key, float]:
    """Return the rates and shares of PDE1 at the values of rho of table 3, over four runs of 10 s.

    As the model is, to which all draws are compared, they are of thirty-two.
    """
    changes: dict[str, dict[str, Any]] = {"task": {"time": "10 s", "warm_up": "100 ms"}}
    for key, value in draw.items():
        table, name = key.split(".")
        given = round(float(value)) if name in WHOLE else f"{value} {UNITS[name]}" if name in UNITS else value
        changes.setdefault(table, {})[name] = given
    found: dict[Key, float] = {}
    with scratch.folder(what=PAPER) as folder:
        of = [RHO, f"mechanism={','.join(MECHANISMS)}"]
        made = sweep(
            scenario("PDE1", None, **changes),
            of,
            folder / "PDE1",
            replications=4 if draw else 32,
            workers=1,
            confidence=CONFIDENCE,
        )
        for number, point in enumerate(made.points):
            name = case(program="PDE1", mechanism=point["mechanism"], rho=point["rho"])
            for experiment, metrics in METRICS.items():
                for metric in metrics:
                    found[experiment, name, metric] = made.at(number, metric).mean
            both = "ubr_kbit_s+abr_kbit_s"
            found["bandwidth", name, both] = sum(
                found["bandwidth", name, metric] for metric in both.split("+")
            )
    return found
