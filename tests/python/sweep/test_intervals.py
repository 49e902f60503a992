"""Intervals of a sweep hold what they say, and its replications know nothing of each other."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from scipy.stats import binomtest

from wiretwin.scenario import Scenario, simulate
from wiretwin.sweep.plan import seed_of
from wiretwin.sweep.run import interval

TASK = {"program": "pde2", "pace": 36.1, "time": "100 ms", "warm_up": "0 ms", "mechanism": "ubr"}


@pytest.mark.parametrize("confidence", [0.9, 0.95])
@pytest.mark.parametrize("count", [3, 8])
def test_an_interval_covers_the_mean_as_often_as_it_says(confidence: float, count: int) -> None:
    draw = random.Random(f"coverage {confidence} {count}")
    trials = 1500
    covered = 0
    for _ in range(trials):
        found = interval([draw.gauss(7.0, 2.0) for _ in range(count)], confidence)
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 7.0 <= found.high
    assert binomtest(covered, trials, confidence).pvalue > 0.001, covered / trials


def test_replications_differ_and_are_not_correlated() -> None:
    scenario = Scenario.of({"port": {}, "background": {"rho": 0.8}, "task": TASK})
    seeds = [seed_of(scenario, replication) for replication in range(200)]
    assert len(set(seeds)) == len(seeds)
    queues = [simulate(scenario, seed=seed).metrics["queue_cells"] for seed in seeds]
    mean = sum(queues) / len(queues)
    spread = sum((one - mean) ** 2 for one in queues)
    lagged = sum((one - mean) * (other - mean) for one, other in pairwise(queues))
    # Of independent values the correlation with the one before is so small, but one time in a thousand.
    assert abs(lagged / spread) < 3.3 / len(queues) ** 0.5
