"""Fit the free constants of the profiles to published calibration figures.

The residual of a figure is the logarithm of predicted over published. What is minimised is the sum of
their squares, over all constants at once, by a trust region around the values on file; every evaluation
simulates every row. Intervals are those of the linearised model: 90 %, Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wiretwin.errors import InputError
from wiretwin.model.values import DATA, Sheet, read_sheet, write_fitted
from wiretwin.student import quantile

__all__ = [
    "Constant",
    "Fit",
    "Fitted",
    "Residual",
    "constants",
    "fit",
    "joined",
    "spread_of",
    "write",
    "write_residuals",
]

Constant = tuple[str, str]
"""A free constant: the name of its sheet and its key."""

LEAST, MOST = 1 / 20, 20.0
STEP = 0.02
"""Relative step of the differences: over the steps that whole cells make."""


@dataclass(frozen=True)
class Fitted:
    """A constant as fitted; `low` and `high` are the ends of its 90 % interval."""

    sheet: str
    key: str
    before: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Residual:
    """A calibration figure and what the fitted model says."""

    experiment: str
    case: str
    metric: str
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over published, less one."""
        return self.predicted / self.published - 1


@dataclass(frozen=True)
class Fit:
    """What a fit came to."""

    constants: list[Fitted]
    residuals: list[Residual]
    evaluations: int

    @property
    def spread(self) -> float:
        """Root mean square of the residuals, as a share."""
        return spread_of(self.residuals)


def joined(stages: Iterable[Fit]) -> Fit:
    """Return what several fits came to, one after the other, as one."""
    listed = list(stages)
    return Fit(
        [one for stage in listed for one in stage.constants],
        [one for stage in listed for one in stage.residuals],
        sum(stage.evaluations for stage in listed),
    )


def spread_of(residuals: Iterable[Residual]) -> float:
    """Return the root mean square of residuals, as a share."""
    logs = [math.log1p(residual.error) for residual in residuals]
    return math.sqrt(sum(log * log for log in logs) / len(logs))


def sheets() -> list[Sheet]:
    """Return every data file that may hold fitted values."""
    folders = ("hosts", "adapters", "networks")
    return [read_sheet(path) for folder in folders for path in sorted((DATA / folder).glob("*.toml"))]


def constants() -> dict[Constant, float]:
    """Return every value on file that was fitted."""
    return {
        (sheet.name, key): value.value
        for sheet in sheets()
        for key, value in sheet.values.items()
        if value.by == "fit"
    }


def fit(
    predict: Callable[[Mapping[Constant, float]], Sequence[float]],
    rows: Sequence[tuple[str, str, str, float]],
    free: Mapping[Constant, float],
    *,
    evaluations: int = 30,
    weight: Callable[[str], float] = lambda metric: 1.0,
) -> Fit:
    """Fit constants to figures.

    Parameters
    ----------
    predict
        The model: figures, in the order of `rows`, under some values of the constants.
    rows
        Experiment, case, metric and published value of each figure.
    free
        The constants, with where to begin.
    evaluations
        Steps at most; each costs an evaluation, and one more for each constant.
    weight
        What a residual counts, by metric.

    Raises
    ------
    InputError
        There are more constants than figures.
    """
    from scipy.optimize import least_squares

    if len(free) > len(rows):
        raise InputError(
            key="--fit",
            reason=f"{len(free)} constants for {len(rows)} figures",
            allowed="at most one a figure",
        )
    names = list(free)
    begin = np.log([free[name] for name in names])
    published = np.array([row[3] for row in rows])
    weights = np.array([weight(row[2]) for row in rows])
    count = 0

    def residuals(point: Any) -> Any:
        nonlocal count
        count += 1
        values = dict(zip(names, np.exp(point).tolist(), strict=True))
        return weights * np.log(np.array(predict(values)) / published)

    bounds = (begin + math.log(LEAST), begin + math.log(MOST))
    found = least_squares(residuals, begin, bounds=bounds, diff_step=STEP, max_nfev=evaluations)
    degrees = max(1, len(rows) - len(names))
    variance = 2 * found.cost / degrees
    covariance = variance * np.linalg.pinv(found.jac.T @ found.jac)
    half = quantile(degrees, 0.95) * np.sqrt(np.diag(covariance))
    # An interval beyond the bounds says no more than that the figures do not determine the constant.
    half = np.minimum(half, math.log(MOST))
    values = np.exp(found.x)
    fitted = [
        Fitted(
            sheet,
            key,
            free[sheet, key],
            float(value),
            float(value * math.exp(-h)),
            float(value * math.exp(h)),
        )
        for (sheet, key), value, h in zip(names, values, half, strict=True)
    ]
    predicted = np.exp(found.fun / weights) * published
    listed = [
        Residual(experiment, case, metric, figure, float(value))
        for (experiment, case, metric, figure), value in zip(rows, predicted, strict=True)
    ]
    return Fit(fitted, listed, count)


def write(result: Fit) -> None:
    """Write fitted values into their data files."""
    paths = {sheet.name: sheet.path for sheet in sheets()}
    for one in result.constants:
        write_fitted(paths[one.sheet], one.key, one.value, one.low, one.high)


def write_residuals(
    path: Path, paper: str, spreads: Mapping[str, float], residuals: Iterable[Residual]
) -> None:
    """Write spreads and residuals of a paper's fit into a file of their own."""
    import tomli_w

    from wiretwin.results import write_atomically

    content = {
        **{key: round(spread, 4) for key, spread in spreads.items()},
        "residual": [
            {
                "experiment": one.experiment,
                "case": one.case,
                "metric": one.metric,
                "published": one.published,
                "predicted": round(one.predicted, 2),
                "error_percent": round(100 * one.error, 1),
            }
            for one in residuals
        ],
    }
    head = (
        f"# Written by `wiretwin papers {paper} --fit --write`: what the fitted model says of the figures.\n"
    )
    write_atomically(path, (head + tomli_w.dumps(content)).encode())
