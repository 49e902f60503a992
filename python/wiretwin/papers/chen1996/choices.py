"""Chen et al. 1996: what its sessions say under other choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from wiretwin.papers.chen1996.scenario import Rules, paper
from wiretwin.papers.chen1996.sessions import parked, six_without_credits
from wiretwin.papers.choices import Draw
from wiretwin.papers.records import Key

__all__ = ["under"]

SEEDS = range(1, 4)


def under(draw: Draw) -> dict[Key, float]:
    """Return the values of sessions whose results are opened, at the lengths of ``--quick``."""
    given: dict[str, Any] = dict(draw)
    if given:
        given["delayed_ack"] = given["delayed_ack"] == "yes"
    rules = Rules(**given)
    found: dict[Key, float] = {}
    six = six_without_credits(rules, SEEDS)
    for metric in ("cell_loss_ratio", "tcp_retransmission_ratio"):
        found["six-sessions", "flow_control=none", metric] = float(np.mean(six[metric]))
    got = parked(rules, SEEDS, 1.0)
    for name, rates in got.items():
        found["parking-lot", f"session={name}", "throughput_Mbit_s"] = float(np.mean(rates))
    available = paper()["link"]["available_tcp_Mbit_s"]
    for link, names in (("L1", "ABC"), ("L2", "CD")):
        used = sum(found["parking-lot", f"session={name}", "throughput_Mbit_s"] for name in names)
        found["parking-lot", f"link={link}", "efficiency"] = used / available
    return found
