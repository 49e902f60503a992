"""Vila-Sallent & Solé-Pareta 1998: a task that moves between cheap and protected service as latency says.

Every value is made by the sweep verb from one scenario, `data/papers/vila1998/scenario.toml`. Fitted: how
slow each recorded program is, to the rate at which it sends; nothing else is free.
"""

from __future__ import annotations

from wiretwin.papers.vila1998.choices import under
from wiretwin.papers.vila1998.curves import EXPERIMENTS, PAPER, experiment, refit, write_fit

__all__ = ["EXPERIMENTS", "PAPER", "TITLE", "experiment", "refit", "under", "write_fit"]

TITLE = "Vila-Sallent & Solé-Pareta 1998: integrating parallel computing applications in an ATM scenario"
