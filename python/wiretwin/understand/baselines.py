"""Baselines: results kept under a name, for later results to be compared with.

A baseline is a folder. Each result kept in it is a folder of its own, named by the time at which it was
measured, UTC; the newest is what is compared with, and all of them are its history. Nothing that was kept is
overwritten.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from wiretwin.errors import InputError, StorageError
from wiretwin.fit.stats import ends, median
from wiretwin.results import Result
from wiretwin.understand.changes import DEFAULT_CHANGE, EVERY, Changes, changes, logarithms

__all__ = ["DEFAULT_FOLDER", "History", "Kept", "baselines", "history", "keep", "newest", "of_name"]

DEFAULT_FOLDER = Path("baselines")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_STAMP = "%Y%m%d-%H%M%S"
_KEPT = re.compile(r"\d{8}-\d{6}")


@dataclass(frozen=True)
class Kept:
    """A configuration and size of one result of a baseline.

    Attributes
    ----------
    number
        Of the result in the baseline, from 0, the oldest first.
    layer, bytes
        The configuration and the size.
    us, low, high
        The typical launch in microseconds (of ``echo`` the one-way latency), with its 95 % interval; infinite
        where there was one launch.
    launches
        How many there were.
    """

    number: int
    layer: str
    bytes: int
    us: float
    low: float
    high: float
    launches: int


@dataclass(frozen=True)
class History:
    """The results of a baseline, the oldest first.

    Attributes
    ----------
    name, loop
        Of the baseline, and the loop shown.
    results
        The results.
    values
        What each of them has measured.
    steps
        Each result but the first compared with the one before it.
    """

    name: str
    loop: str
    results: Sequence[Result]
    values: Sequence[Kept]
    steps: Sequence[Changes]


def of_name(name: str, folder: Path = DEFAULT_FOLDER) -> Path:
    """Return the folder of a baseline.

    Raises
    ------
    InputError
        The name is none that a folder may have.
    """
    if not _NAME.fullmatch(name):
        allowed = "1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first"
        raise InputError(key="NAME", value=name, allowed=allowed)
    return folder / name


def _kept(folder: Path) -> list[Path]:
    """Return the results of a baseline, the oldest first; none where the folder is no baseline."""
    if not folder.is_dir():
        return []
    found = (one for one in folder.iterdir() if _KEPT.fullmatch(one.name))
    return sorted(one for one in found if (one / "manifest.json").is_file())


def baselines(folder: Path = DEFAULT_FOLDER) -> dict[str, list[Path]]:
    """Return the baselines of a folder by name, each with its results, the oldest first."""
    if not folder.is_dir():
        return {}
    found = {one.name: _kept(one) for one in sorted(folder.iterdir())}
    return {name: results for name, results in found.items() if results}


def newest(path: Path) -> Path:
    """Return the newest result of a baseline; what is none is returned as it is."""
    return next(iter(reversed(_kept(path))), path)


def keep(result: Result, baseline: Path) -> Path:
    """Copy a result into a baseline, as its newest.

    Returns
    -------
    Path
        Where it is kept.

    Raises
    ------
    InputError
        The result is not complete, is kept there already, or is older than the newest one there.
    StorageError
        It cannot be copied; nothing of it is then left.
    """
    if result.manifest.state != "complete":
        allowed = "a result whose measurement was not interrupted"
        raise InputError(result.path, reason=f"is {result.manifest.state}", allowed=allowed)
    text = result.manifest.created_utc
    try:
        measured = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as error:
        raise InputError(
            result.path / "manifest.json", key="created_utc", value=text, allowed="a time as ISO 8601"
        ) from error
    target = baseline / measured.strftime(_STAMP)
    last = newest(baseline)
    if last != baseline and last.name >= target.name:
        allowed = f"a result that was measured after {last.name}"
        raise InputError(result.path, reason=f"was measured at {target.name}", allowed=allowed)
    copy = baseline / f".{target.name}"
    try:
        shutil.copytree(result.path, copy)
        copy.rename(target)
    except OSError as error:
        shutil.rmtree(copy, ignore_errors=True)
        raise StorageError(target, error.strerror or str(error)) from error
    return target


def history(baseline: Path, *, loop: str | None = None, change: float = DEFAULT_CHANGE) -> History:
    """Read all results of a baseline, and compare each with the one before it.

    Parameters
    ----------
    baseline
        Its folder.
    loop
        The loop shown; by default as in `wiretwin.understand.changes.changes`.
    change
        As in `wiretwin.understand.changes.changes`.

    Raises
    ------
    InputError
        There is no such baseline, or a result does not have the loop.
    """
    folders = _kept(baseline)
    if not folders:
        known = ", ".join(baselines(baseline.parent)) or "none: `wiretwin baseline keep` makes them"
        raise InputError(baseline, reason="is no baseline", allowed=known)
    results = [Result.open(one) for one in folders]
    if loop is None:
        loop = EVERY if any(result.manifest.options.get("loops") for result in results) else "echo"
    halved = 2.0 if loop == "echo" else 1.0
    values = []
    for number, result in enumerate(results):
        for (layer, size), launches in logarithms(result, loop).items():
            logs = (float(median(launches)), *(float(end) for end in ends(launches)))
            with np.errstate(over="ignore"):
                us, low, high = (float(np.exp(log)) / halved / 1000.0 for log in logs)
            values.append(Kept(number, layer, size, us, low, high, int(launches.size)))
    if not values:
        raise InputError(key="--loop", value=loop, reason="is in no result of it", allowed="a loop of one")
    pairs = pairwise(results)
    steps = [changes(before, after, loop=loop, change=change) for before, after in pairs]
    return History(baseline.name, loop, results, values, steps)
