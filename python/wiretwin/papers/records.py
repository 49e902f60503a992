"""One record a value: what was predicted, and what is published where a model was fitted to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Literal

from wiretwin.model.cases import keys_of

__all__ = ["Key", "Record", "Role", "Tried", "digest"]

Role = Literal["calibration", "prediction"]
Key = tuple[str, str, str]
"""A value's experiment, case and metric."""


@dataclass(frozen=True)
class Record:
    """One value.

    Attributes
    ----------
    paper, experiment, case, metric
        What it is; `metric` ends in its unit.
    predicted, low, high
        The model's value, and the ends of its interval, where it has one.
    role
        Whether the model was fitted to the published value.
    published
        That value; only where it is a calibration value.
    """

    paper: str
    experiment: str
    case: str
    metric: str
    predicted: float
    low: float | None
    high: float | None
    role: Role
    published: float | None = None

    @property
    def keys(self) -> dict[str, str]:
        """The keys of its case, and their values."""
        return keys_of(self.case)


@dataclass(frozen=True)
class Tried:
    """What came of a trial.

    Attributes
    ----------
    able
        Whether the interface did it.
    evidence
        What it did, or said instead.
    """

    able: bool
    evidence: str


def digest(records: Iterable[Record], runs: Iterable[str]) -> str:
    """Digest records, and the digests of the runs that made them."""
    hasher = hashlib.sha256()
    for record in records:
        hasher.update(repr(astuple(record)).encode())
    for run in runs:
        hasher.update(run.encode())
    return hasher.hexdigest()[:32]
