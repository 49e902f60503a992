"""One point of a latency figure: 60 simulated seconds of a shared port, under each of three mechanisms.

Cells of ten background sources, of a task of short messages, and everything that they cause, at a load of the
line of 0.7 and of 1.1. Processor time of one core, medians over turns; beside it the cells that crossed
the port, in nanoseconds each.
"""

from __future__ import annotations

import argparse
import json
import time
from statistics import median

from wiretwin._core import service_run
from wiretwin.papers.vila1998.curves import MECHANISMS, scenario
from wiretwin.scenario.service import document

SECONDS = 60.0
TARGET_S = 5.0
RHO = (0.7, 1.1)


def point(rho: float, seconds: float) -> tuple[float, int]:
    """Return what a point takes, in seconds, and the cells that left the port."""
    texts = []
    for mechanism in MECHANISMS:
        task = {"mechanism": mechanism, "time": f"{seconds} s"}
        found = scenario("PDE2", None, task=task, background={"rho": rho})
        assert found.port is not None
        assert found.background is not None
        assert found.task is not None
        texts.append(json.dumps(document(found.port, found.background, found.task, 1)))
    begun = time.process_time()
    reports = [json.loads(service_run(text)) for text in texts]
    took = time.process_time() - begun
    return took, sum(report["ports"][0]["sent"] for report in reports)


def main() -> None:
    """Print a line for each load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time, once")
    quick = parser.parse_args().quick
    seconds = SECONDS / 10 if quick else SECONDS
    point(0.5, 1.0)
    for rho in RHO:
        turns = [point(rho, seconds) for _ in range(1 if quick else 3)]
        # A second goes by before the first message counts, however long the run.
        took = median(turn[0] for turn in turns) * (SECONDS + 1) / (seconds + 1)
        cells = turns[0][1] * (SECONDS + 1) / (seconds + 1)
        line = {
            "bench": f"service/a point of the latency figure, rho {rho}",
            "unit": "s",
            "value": took,
            "target_value": TARGET_S,
            "ns_per_cell": 1e9 * took / cells,
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
