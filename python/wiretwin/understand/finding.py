"""What a detector says: a name, where, on what evidence, and the run that would remove the cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

__all__ = ["Confidence", "CounterRun", "Finding"]

Confidence = Literal["likely", "possible", "confirmed", "refuted"]
"""``likely``: the curve and the options or the counters agree; ``possible``: the curve alone says so;
``confirmed`` and ``refuted``: by a counter-run."""


@dataclass(frozen=True)
class CounterRun:
    """A measurement that differs in the supposed cause alone.

    Attributes
    ----------
    words
        What it changes, for people.
    layer
        The configuration to measure.
    pin
        CPUs of the ranks; ``None`` as before.
    link
        What changes of the link between the hosts: keys as in the manifest's place.
    """

    words: str
    layer: str
    pin: str | None = None
    link: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """An anomaly found in one configuration.

    Attributes
    ----------
    name
        What it is called, as in `wiretwin.understand.detect.DETECTORS`.
    layer
        The configuration.
    sizes
        Where: message sizes in bytes, rising; for a step the sizes before and after it.
    evidence
        What was seen, one sentence an entry, with figures.
    confidence
        How sure the name is.
    counter
        The run that would remove the cause; ``None`` if nothing here can.
    setting
        The limit that the finding is about, bytes, where it is about one.
    loop
        The loop it shows in.
    outcome
        What the counter-run showed; empty as long as there was none.
    """

    name: str
    layer: str
    sizes: tuple[int, ...]
    evidence: tuple[str, ...]
    confidence: Confidence
    counter: CounterRun | None = None
    setting: int | None = None
    loop: str = "echo"
    outcome: str = ""

    @property
    def confirmed(self) -> bool:
        """Whether a counter-run removed it."""
        return self.confidence == "confirmed"

    def with_outcome(self, confidence: Confidence, outcome: str) -> Finding:
        """Return it as a counter-run left it."""
        return replace(self, confidence=confidence, outcome=outcome)
