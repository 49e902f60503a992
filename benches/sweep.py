"""What a sweep takes beside the runs themselves, at about 100 ms a run.

One worker, so that nothing but the sweep's own work stands between two runs: from the end of the first run
to that of the last, beside the sum of what the runs between took in the worker. Starting the worker is not
in it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from wiretwin.scenario import Scenario, simulate
from wiretwin.sweep.run import sweep

RUN_S = 0.1
NETWORK = {"preset": "asx100", "load": [{"share": 0.4}]}


def scenario(rounds: int) -> Scenario:
    """Return an echo of so many rounds."""
    document: dict[str, Any] = {
        "network": NETWORK,
        "echo": {"stack": "fore/aal5", "size": "1 KiB", "rounds": rounds},
    }
    return Scenario.of(document)


def calibrated() -> Scenario:
    """Return a scenario whose run takes about 100 ms here."""
    rounds = 200
    simulate(scenario(rounds))
    begun = time.perf_counter()
    simulate(scenario(rounds))
    return scenario(max(2, round(rounds * RUN_S / (time.perf_counter() - begun))))


def overhead(found: Scenario, runs: int, folder: Path) -> tuple[float, float]:
    """Return nanoseconds a run, in all and in the worker alone."""
    ends: list[float] = []
    swept = sweep(
        found, [], folder, replications=runs, workers=1,
        progress=lambda done, total, words: ends.append(time.perf_counter()),
    )  # fmt: skip
    seconds = [run.seconds for run in swept.folder.of(0)][1:]
    return 1e9 * (ends[-1] - ends[0]) / len(seconds), 1e9 * sum(seconds) / len(seconds)


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    quick = parser.parse_args().quick
    found = calibrated()
    with tempfile.TemporaryDirectory(prefix="wiretwin-bench-") as folder:
        turns = [overhead(found, 20 if quick else 60, Path(folder) / str(turn)) for turn in range(3)]
    whole, alone = (median(turn[side] for turn in turns) for side in (0, 1))
    ratios = sorted(one / other for one, other in turns)
    line = {
        "bench": "sweep/one run of many",
        "unit": "ns per run",
        "ns": whole,
        "reference": "the run alone",
        "reference_ns": alone,
        "ratio": ratios[1],
        "low": ratios[0],
        "high": ratios[2],
        "target_ratio": 1.02,
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
