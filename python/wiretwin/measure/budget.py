"""How the time of a measurement is spent: how long a launch may be, and whether there is time for one more.

All is decided from what launches have cost so far, by a clock that is handed in, so that every decision can
be tested without one. What a launch costs besides its steps (starting processes and libraries, ending them,
storing samples) is learnt, for each configuration by itself: on a busy host it grows, and the steps shrink.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["FREE_STEPS_S", "LEAST_STEPS_S", "Budget", "allowance"]

LEAST_STEPS_S = 0.05
"""The steps of a launch are planned to take at least so long together, seconds, however little there is."""
MOST_STEPS_S = 10.0
"""And at most so long: a launch more says more than a longer one."""
FREE_STEPS_S = 0.3
"""Where there is no limit on the time, the steps of a launch take so long together, seconds."""
FIRST_STEPS_S = 0.1
"""And at most so long before any launch has told what one costs besides, seconds: all layers come first."""
FIRST_S = 0.4
"""What a launch is taken to cost besides its steps before any has told, seconds."""
ROUND_TRIPS = 0.5
"""What a launch with the round trips alone is taken to cost before any has told, to one with all loops."""
SPARE = 0.1
"""Share of the time left that is not planned for: launches differ, and the last one has to fit, too."""
PATIENCE = 3.0
"""A launch that takes so many times as long as expected is ended, if others have need of the time."""
OVERRUN = 0.05
"""A launch under way is ended when the budget is exceeded by this share of it."""


def allowance(asked_s: float) -> float:
    """Return the wall time that a measurement of a budget may take at most, seconds."""
    return 1.2 * asked_s + 1.0


@dataclass
class Budget:
    """The time of one measurement.

    Attributes
    ----------
    asked_s
        The wall time asked for, seconds; nothing for no limit.
    begun
        When it began, on the clock `now`: the start of the process, for a command.
    after_s
        What is still to be done when the last launch has ended, seconds: tables, a report.
    now
        A monotonic clock, seconds.
    """

    asked_s: float | None
    begun: float
    now: Callable[[], float]
    after_s: float = 0.0
    _costs: dict[tuple[str, bool], list[tuple[float, float]]] = field(default_factory=dict)

    @property
    def ends(self) -> float:
        """When the last launch is to have ended, on the clock; infinite without a limit."""
        if self.asked_s is None:
            return math.inf
        # What comes after may take half of what is allowed beyond the time asked for.
        beyond_s = (allowance(self.asked_s) - self.asked_s) / 2
        return self.begun + self.asked_s - max(0.0, self.after_s - beyond_s)

    @property
    def cut(self) -> float:
        """When a launch that is under way is ended, on the clock; infinite without a limit."""
        return math.inf if self.asked_s is None else self.ends + OVERRUN * self.asked_s

    @property
    def left_s(self) -> float:
        """Seconds until `ends`, at least 0."""
        return max(0.0, self.ends - self.now())

    def learn(self, name: str, cost_s: float, steps_s: float, *, whole: bool = True) -> None:
        """Take in what a launch has cost in all, and what its steps were planned to take.

        A launch with all loops and one with the round trips alone are apart: where messages are long, a step
        takes what it must, and the first has three times as many.
        """
        self._costs.setdefault((name, whole), []).append((cost_s, steps_s))

    def besides_s(self, name: str, *, whole: bool = True) -> float:
        """Return what a launch costs besides its steps, seconds: the median so far.

        Before the first with the round trips alone, `ROUND_TRIPS` of what one with all loops costs; before
        any of the configuration, what the others cost; before any, `FIRST_S`.
        """
        own = self._costs.get((name, whole))
        if own is None and not whole and (name, True) in self._costs:
            return ROUND_TRIPS * self.besides_s(name)
        own = own or self._costs.get((name, not whole))
        own = own or [cost for costs in self._costs.values() for cost in costs]
        return _median([max(0.0, cost - steps) for cost, steps in own]) if own else FIRST_S

    def knows(self, name: str) -> bool:
        """Whether a launch of a configuration has told what one costs."""
        return (name, True) in self._costs or (name, False) in self._costs

    def shares(self, needs: Mapping[str, float]) -> dict[str, float]:
        """Return which share of its need each configuration has of the time left.

        What all cannot have is divided evenly, and what one does not need of its part is divided among the
        others.

        Parameters
        ----------
        needs
            What the launches of each still to be made cost at the least, seconds.
        """
        left = (1 - SPARE) * self.left_s
        if self.asked_s is None or left <= 0.0 or sum(needs.values()) <= left:
            return dict.fromkeys(needs, 1.0)
        found: dict[str, float] = {}
        for number, name in enumerate(sorted(needs, key=lambda one: needs[one])):
            part = min(needs[name], left / (len(needs) - number))
            left -= part
            found[name] = part / needs[name]
        return found

    def affords(self, needs: Mapping[str, float]) -> bool:
        """Whether the time left is enough for what all need."""
        return self.asked_s is None or sum(needs.values()) <= (1 - SPARE) * self.left_s

    def steps_s(self, launches: float, besides_s: float) -> float:
        """Return how long the steps of each launch may take together, seconds.

        Parameters
        ----------
        launches
            Launches that the time left is to be divided among.
        besides_s
            What all of them cost together besides their steps, seconds.
        """
        if self.asked_s is None:
            return FREE_STEPS_S
        each = ((1 - SPARE) * self.left_s - besides_s) / launches
        most = MOST_STEPS_S if self._costs else FIRST_STEPS_S
        return min(most, max(LEAST_STEPS_S, each))

    def fits(self, name: str, steps_s: float, *, whole: bool = True) -> bool:
        """Whether a launch with such steps is likely to end in time; one that none has told of, to begin."""
        besides_s = self.besides_s(name, whole=whole) if self.knows(name) else FIRST_S
        return self.now() + besides_s + steps_s <= self.ends

    def fair_end(self, name: str, steps_s: float, active: int, *, whole: bool = True) -> float:
        """Return when a launch is ended that takes the time of others, on the clock; at most `cut`.

        It may take what is left divided by the configurations that are still measured, itself included, and
        in any case `PATIENCE` times what is expected of it.
        """
        if self.asked_s is None:
            return math.inf
        besides_s = self.besides_s(name, whole=whole) if self.knows(name) else FIRST_S
        expected_s = PATIENCE * (besides_s + steps_s)
        return min(self.cut, self.now() + max(expected_s, self.left_s / active))


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
