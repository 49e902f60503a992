"""One run of a sweep, wherever it is done, and where runs are done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Pool", "Result", "Task", "do"]


@dataclass(frozen=True)
class Task:
    """A run to be done.

    Attributes
    ----------
    point, replication
        The numbers of the point and of the replication, from 0.
    scenario
        The document of its scenario.
    seed
        Of its random streams.
    """

    point: int
    replication: int
    scenario: dict[str, Any]
    seed: int


@dataclass(frozen=True)
class Result:
    """What came of a run; `error` where it failed, `lost` where only those that did it died."""

    metrics: dict[str, float]
    digest: str | None
    error: str | None
    seconds: float
    lost: bool = False

    @classmethod
    def of_lost(cls, error: str) -> Result:
        """Return that of a run that nobody lived to end."""
        return cls({}, None, error, 0.0, lost=True)


class Pool(Protocol):
    """Processes that do runs."""

    #: How many runs are worth having under way.
    room: int

    def submit(self, task: Task) -> None:
        """Hand over a run."""

    def ended(self) -> Iterator[tuple[Task, Result]]:
        """Wait until at least one run has ended, or died with its worker; yield those that have ended."""

    def close(self) -> None:
        """End all processes; runs under way are lost."""


def do(task: Task) -> Result:
    """Run a scenario; what goes wrong in it is its result."""
    from wiretwin.errors import WiretwinError
    from wiretwin.scenario import Scenario, simulate

    begun = time.perf_counter()
    try:
        outcome = simulate(Scenario.of(task.scenario), seed=task.seed)
    except WiretwinError as error:
        return Result({}, None, str(error), time.perf_counter() - begun)
    return Result(outcome.metrics, outcome.digest, None, time.perf_counter() - begun)
