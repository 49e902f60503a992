"""What the paper leaves open, varied one at a time; and the ways of watching that its authors rejected."""

from __future__ import annotations

from pathlib import Path

from wiretwin.papers.vila1998.curves import CONFIDENCE, MECHANISMS, scenario
from wiretwin.sweep.run import sweep

__all__ = ["METRICS", "VARIED", "WATCHES", "sensitivity", "watches"]

VARIED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "buffer [cells]": ("port", "buffer", ("100", "300", "1000", "3000")),
    "share of ABR among sources": ("background", "abr", ("0.0", "0.2", "0.5", "0.8")),
    "mean time on": ("background", "burst", ("1 ms", "10 ms", "100 ms")),
    "peak over mean": ("background", "peak", ("1.5", "2.0", "4.0")),
    "sources": ("background", "sources", ("4", "10", "30")),
    "what is not told to ABR": ("port", "reserve", ("guaranteed", "everything")),
    "which UBR cell gives way": ("port", "push_out", ("last", "first", "none")),
    "data are watched": ("task", "stamps", ("true", "false")),
    "way to the switch and on": ("port", "leg", ("0.001 ms", "0.005 ms", "0.02 ms")),
}
"""Each choice: its table and key in the scenario, and its values."""

WATCHES = ("each-cell", "average", "on-demand", "round-trip", "network")
METRICS = ("latency_us", "cell_loss_ratio", "abr_share")
RHO = (0.7, 0.9)

Values = dict[str, float]


def sensitivity(
    folder: Path, *, program: str = "PDE2", replications: int = 3, time: str = "10 s"
) -> dict[tuple[str, str, float, str], Values]:
    """Sweep each choice: by what was varied, its value, rho and mechanism, means of the metrics."""
    found: dict[tuple[str, str, float, str], Values] = {}
    for what, (table, key, values) in VARIED.items():
        done = sweep(
            scenario(program, None, task={"time": time}),
            [
                f"{table}.{key}={','.join(values)}",
                f"rho={','.join(map(str, RHO))}",
                f"mechanism={','.join(MECHANISMS)}",
            ],
            folder / f"{table}-{key}",
            replications=replications,
            confidence=CONFIDENCE,
        )
        for number, point in enumerate(done.points):
            place = (what, str(point[f"{table}.{key}"]), float(point["rho"]), str(point["mechanism"]))
            found[place] = {metric: done.at(number, metric).mean for metric in METRICS}
    return found


def watches(
    folder: Path,
    *,
    program: str = "PDE2",
    rho: str = "0.5,0.7,0.9",
    replications: int = 4,
    time: str = "10 s",
    workers: int | None = None,
) -> dict[tuple[str, float], Values]:
    """Sweep the ways of watching, with a port that marks cells that find more than 30 waiting."""
    done = sweep(
        scenario(program, None, task={"time": time}, port={"efci": 30}),
        [f"watch={','.join(WATCHES)}", f"rho={rho}"],
        folder,
        replications=replications,
        confidence=CONFIDENCE,
        workers=workers,
    )
    wanted = (*METRICS, "mode_changes", "vbr_kbit_s", "cost_per_s")
    return {
        (str(point["watch"]), float(point["rho"])): {
            metric: done.at(number, metric).mean for metric in wanted
        }
        for number, point in enumerate(done.points)
    }
