"""Published results that were opened after their prediction: published, blind and now, and how far apart.

`data/papers/published/` has the results, `data/papers/blind/` every value as it was predicted before they
were opened, kept for good, and `data/papers/now/` every value as the model has it now. A change of the model
after opening moves *now* alone, and is no prediction.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from wiretwin.errors import InputError
from wiretwin.model.cases import keys_of
from wiretwin.model.values import DATA

__all__ = [
    "FOLDER",
    "Opened",
    "Score",
    "Stored",
    "Valued",
    "committed",
    "opened",
    "read_published",
    "score",
    "stored",
]

FOLDER = DATA / "papers"
"""Where what papers publish lies."""

RESULT: dict[str, Any] = {"of": str, "published": (int, float), "remark": str, "counted": bool}
"""The keys of a result; the first two are needed."""


MISSED = 0.1
"""The share of results that may lie outside their interval."""


@dataclass(frozen=True)
class Valued:
    """A value of the model, and the ends of its 90 % interval where it has one."""

    experiment: str
    case: str
    metric: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Stored:
    """All values of a paper on file, `name` saying which file that is."""

    name: str
    values: tuple[Valued, ...]

    def find(self, of: str) -> Valued:
        """Return the value that `of` names: experiment, metric, and keys that tell its case from the others.

        Of several cases that have these keys it is the one with the fewest others. Metrics joined by ``+``
        are added up; a sum has no interval.

        Raises
        ------
        InputError
            No value is named so, or several are.
        """
        experiment, metrics, *keys = of.split()
        found = [self._find(of, experiment, metric, set(keys)) for metric in metrics.split("+")]
        if len(found) == 1:
            return found[0]
        return Valued(experiment, found[0].case, metrics, sum(one.value for one in found))

    def _find(self, of: str, experiment: str, metric: str, keys: set[str]) -> Valued:
        able = [
            (len(one.case.split()), one)
            for one in self.values
            if (one.experiment, one.metric) == (experiment, metric) and keys <= set(one.case.split())
        ]
        fewest = min((count for count, _ in able), default=0)
        found = [one for count, one in able if count == fewest]
        if len(found) != 1:
            raise InputError(
                file=self.name, value=of, reason=f"names {len(found)} values", allowed="what names one"
            )
        return found[0]


@dataclass(frozen=True)
class Opened:
    """A published result beside what the model says of it.

    Attributes
    ----------
    paper, experiment, case, metric
        What it is; `metric` ends in its unit.
    published
        The result.
    blind, now
        What was predicted before it was opened, and what the model says now.
    remark
        What is to be known of the result; of one that is not counted, why.
    counted
        Whether the score counts it.
    hangs_on
        The choice that `now` hangs on most, with the share of the variance that it explains alone; nothing
        where no choice moves it.
    """

    paper: str
    experiment: str
    case: str
    metric: str
    published: float
    blind: Valued
    now: Valued
    remark: str
    counted: bool
    hangs_on: str = ""

    def error(self, which: str) -> float | None:
        """Return how far `blind` or `now` is from the result, relative to it; None of a result of 0."""
        value: Valued = getattr(self, which)
        return value.value / self.published - 1 if self.published else None

    def width(self, which: str) -> float | None:
        """Return the width of the interval of `blind` or `now`, relative to its value; None without one."""
        value: Valued = getattr(self, which)
        if value.low is None or value.high is None or not value.value:
            return None
        return (value.high - value.low) / value.value

    def interval_score(self, which: str) -> float | None:
        """Return the interval score of Gneiting and Raftery (2007, equation 43) relative to the result.

        It is the width of the interval and 20 times how far the result lies outside: the less the better.
        A value without an interval has one of no width.
        """
        value: Valued = getattr(self, which)
        if not self.published:
            return None
        low, high = (value.value if end is None else end for end in (value.low, value.high))
        outside = max(low - self.published, self.published - high, 0.0)
        return (high - low + 2 / MISSED * outside) / self.published

    def inside(self, which: str) -> bool | None:
        """Say whether the result lies in the 90 % interval of `blind` or `now`; None where there is none."""
        value: Valued = getattr(self, which)
        if value.low is None or value.high is None:
            return None
        return value.low <= self.published <= value.high


@dataclass(frozen=True)
class Score:
    """How far predictions are from the results that count, as absolute relative errors.

    Attributes
    ----------
    count
        How many results count.
    median, ninth_decile, worst
        Of the errors.
    inside
        How many results lie in the 90 % interval of their prediction; one without an interval is outside.
    width, ninth_width
        The median and the ninth decile of the widths of these intervals, relative to the values.
    interval_score
        The mean of the interval scores.
    """

    count: int
    median: float
    ninth_decile: float
    worst: float
    inside: int
    width: float
    ninth_width: float
    interval_score: float


def score(results: Iterable[Opened], which: str) -> Score:
    """Score what was predicted `blind`, or what the model says `now`, over the results that count."""
    counted = [one for one in results if one.counted]
    errors = [abs(error) for one in counted if (error := one.error(which)) is not None]
    median, ninth = (float(value) for value in np.quantile(errors, [0.5, 0.9]))
    widths = [one.width(which) or 0.0 for one in counted]
    width, ninth_width = (float(value) for value in np.quantile(widths, [0.5, 0.9]))
    scores = [found for one in counted if (found := one.interval_score(which)) is not None]
    inside = sum(one.inside(which) is True for one in counted)
    mean = sum(scores) / len(scores)
    return Score(len(errors), median, ninth, max(errors), inside, width, ninth_width, mean)


def committed(text: str) -> dict[tuple[str, str, str], tuple[str, str, str]]:
    """Return the values of a CSV file: by experiment, case and metric, what stands in the other columns."""
    rows = list(csv.reader(io.StringIO(text)))[1:]
    return {(row[0], row[1], row[2]): (row[3], row[4], row[5]) for row in rows}


@cache
def stored(paper: str, which: str) -> Stored:
    """Return the values of a paper on file: `which` is ``blind`` or ``now``."""
    path = FOLDER / which / f"{paper}.csv"
    rows = committed(path.read_text(encoding="utf-8")).items()
    return Stored(
        f"papers/{which}/{paper}.csv",
        tuple(Valued(*key, float(value), *_ends(interval)) for key, (value, interval, _) in rows),
    )


def _ends(interval: str) -> tuple[float | None, float | None]:
    if not interval:
        return None, None
    low, _, high = interval.partition(" to ")
    return float(low), float(high)


def read_published(path: Path) -> dict[str, Any]:
    """Read a file of results and claims.

    Raises
    ------
    InputError
        A result lacks a key, has another one, or is left out of the score without a remark.
    """
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    for at, row in enumerate(found["results"]):
        where = f"results[{at}]"
        for key in ("of", "published"):
            if key not in row:
                raise InputError(file=str(path), key=f"{where}.{key}", reason="is missing")
        for key, value in row.items():
            if key not in RESULT:
                raise InputError(
                    file=str(path), key=f"{where}.{key}", reason="is unknown", allowed=", ".join(RESULT)
                )
            if not isinstance(value, RESULT[key]):
                raise InputError(file=str(path), key=f"{where}.{key}", value=value, reason="has another type")
        if not row.get("counted", True) and not row.get("remark"):
            raise InputError(
                file=str(path), key=f"{where}.remark", reason="is missing", allowed="why it is not counted"
            )
    return found


def opened(paper: str) -> Sequence[Opened]:
    """Return the opened results of a paper, in the order of the file.

    Raises
    ------
    InputError
        The file is not what it is to be, or the blind predictions are not those whose digest it has.
    """
    found = read_published(FOLDER / "published" / f"{paper}.toml")
    blind = FOLDER / "blind" / f"{paper}.csv"
    digest = hashlib.sha256(blind.read_bytes()).hexdigest()
    if digest != found["blind"]["sha256"]:
        raise InputError(
            file=str(blind), value=digest, reason="is not its digest", allowed=found["blind"]["sha256"]
        )
    return [_result(paper, row) for row in found["results"]]


def _result(paper: str, row: dict[str, Any]) -> Opened:
    blind, now = (stored(paper, which).find(row["of"]) for which in ("blind", "now"))
    if keys_of(blind.case) != keys_of(now.case):
        raise InputError(value=row["of"], reason="names one case that was blind, and another now")
    moved = _moved(paper).get((now.experiment, now.case, now.metric))
    return Opened(
        paper,
        blind.experiment,
        blind.case,
        blind.metric,
        float(row["published"]),
        blind,
        now if moved is None else _widened(now, moved),
        row.get("remark", ""),
        row.get("counted", True),
        "" if moved is None or not moved.share else f"{moved.choice} ({moved.share:.0%})",
    )


@dataclass(frozen=True)
class _Moved:
    """What the choices of a paper do to a value: the 5th and the 95th percentile, relative to it."""

    low: float
    high: float
    choice: str
    share: float


@cache
def _moved(paper: str) -> dict[tuple[str, str, str], _Moved]:
    path = FOLDER / "intervals" / f"{paper}.csv"
    if not path.exists():
        return {}
    known = tomllib.loads(path.with_name("digests.toml").read_text(encoding="utf-8"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != known.get(paper):
        raise InputError(
            file=str(path),
            value=digest,
            reason="is not its digest",
            allowed=known.get(paper, "make intervals"),
        )
    return {
        (row["experiment"], row["case"], row["metric"]): _Moved(
            float(row["low_ratio"]), float(row["high_ratio"]), row["choice"], float(row["share"])
        )
        for row in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    }


def _widened(one: Valued, moved: _Moved) -> Valued:
    """Return a value with the interval of its noise, its fit and its choices.

    The first two are what its interval was. They and the choices are independent, so that distances add
    as squares, as logarithms where nothing is 0, for a factor is as likely as its inverse.
    """
    ends = []
    for end, ratio, sign in ((one.low, moved.low, -1), (one.high, moved.high, 1)):
        ratio = max(sign * (ratio - 1), 0) * sign + 1
        own = one.value if end is None else end
        if min(own, one.value, ratio) > 0:
            distance = math.hypot(math.log(own / one.value), math.log(ratio))
            ends.append(one.value * math.exp(sign * distance))
        else:
            ends.append(one.value + sign * math.hypot(own - one.value, (ratio - 1) * one.value))
    return replace(one, low=ends[0], high=ends[1])
