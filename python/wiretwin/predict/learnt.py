"""What predictions on record were wrong by, and what follows for the next one.

`data/accuracy/past.csv` has a row for every prediction whose program was then run for real: by which edition
of the model (`EDITIONS`), in what set-up, how long, what share of it the busiest rank computed, how wide the
noise was that the prediction knew of, what its launches took. Two things are learnt from it, afresh for each
prediction.

*How launches scatter.* A few passes tell little of their own scatter: two of them, and Student's quantile is
12.7. That of other programs' launches on record tells more, and is taken for as many further passes as it
deserves: the variances of programs are as if drawn from an inverse gamma distribution, whose two parameters
are found by their first two moments, on logarithms (Smyth 2004, section 6.2).

*What the model is wrong by.* Computation, everything else, and what is there once a run (start, first
messages, the end) are each wrong by their own, beyond the noise. A number t is drawn from Student's
distribution, because a few programs may be far off: with any of `TAILS` degrees of freedom. The first two are
wrong by a factor of ``exp(t * hypot(compute * share, rest * (1 - share)))``, the third is a time, t times
``fixed`` more or less, and so a factor of ``1 + t * fixed / seconds``; the logarithms of both add as squares.
Neither tail nor scales are fitted to a point: every combination on a grid weighs as much as it makes the
record likely (each program counting once, however often it was run), and the interval is that of all of them
together. So few programs make a wide interval, and it holds for a program that is not among them, as leaving
each one out in turn shows (`left_out`).

*How sure the widths are.* Which program's interval is to be the wider one is known less well than how wide
they are on the whole: it hangs on the scatter of a few passes, and on scales that few programs have shown. So
an interval goes half of the way, on logarithms, to the width that programs on record get
(`Errors.with_noise`), but no further than the noise that the prediction knows of. Leaving each program out in
turn, half is about the share with the least interval score (Gneiting and Raftery 2007, equation 43, on
logarithms): 1.64 in the mean over six set-ups on record, 1.79 for none of the way, 1.83 for all of it.

What an edition of the model was wrong by is no error of the next one, which was made because of it. So of
each program the predictions by its newest edition alone count; a program that no newer edition has predicted
keeps its place.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from statistics import fmean, median, variance
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wiretwin.model.values import DATA

__all__ = [
    "COLUMNS",
    "EDITION",
    "EDITIONS",
    "FILE",
    "SETUPS",
    "Errors",
    "Launches",
    "Past",
    "errors",
    "launches",
    "left_out",
    "read",
]

FILE = DATA / "accuracy" / "past.csv"
COLUMNS = (
    "edition", "setup", "program", "ranks", "when", "predicted_s", "compute_share", "below", "above",
    "launches_s",
)  # fmt: skip
EDITIONS = {
    1: "what is loaded on first use is loaded within the program's time",
    2: "it is loaded before, as in a real run",
    3: "first calls take what they were measured to take",
    4: "what a rank prints is written, and a first receive of an object goes on behind its message",
    5: "ranks that wait take from those that compute on their core what the kernel gives them of it",
    6: "under the MPI library itself, what is computed has neighbours at work and no look at a clock in it",
    7: "under the MPI library itself a look at the clock is no work, and Open MPI takes turns as measured; "
    "a message of a rank to itself costs its two calls",
    8: "under the MPI library itself ranks leave Init at the same time, whatever they did before, and a "
    "script has imported what it uses",
    9: "first calls are fitted to four times as many launches; under the MPI library itself, what the "
    "library does within a call besides its messages is charged",
    10: "under Open MPI itself, windows of one host lie in memory, as in a real run; a long message just "
    "behind a short one waits for it less; ranks of a script that share a core find a message at their next "
    "look, not while the core is handed on, their slices end at the kernel's ticks, their time begins with "
    "their first turn, and all are loaded before the first of them is measured",
    11: "what a script computes has the collections of its garbage in it",
    12: "calls of scripts take what their loops were measured to take, and what small calls leave to be "
    "measured is no computation; under the MPI library itself, ranks that compute for a short time between "
    "turns have a core each",
    13: "under the MPI library itself, a rank that waits for a disk, for a process that it has started or "
    "for threads that never call has computed meanwhile",
    14: "where an exchange takes mpi4py what both ends alone do, they are busy in turn; a broadcast of "
    "nothing sends nothing",
    15: "what small calls leave to be measured is found as a script is measured, by pairs of calls; an array "
    "that is sent again as it was is fetched as an echo's are",
    16: "NumPy has not computed before a script begins, and reductions of numbers are compiled loops, as in "
    "a real run; passes that scatter are joined by more",
    17: "where ranks share cores, collective calls take what their loops on one core were measured to take",
    18: "under the MPI library itself, what the simulator leaves in the caches of a rank's core is no work "
    "of that rank's, and ranks that compute for up to 100 us between turns have a core each",
    19: "under the MPI library itself, messages cost what they do in the state that the host is in",
    20: "where ranks share cores and the library yields in every wait, a rank offers its core even for a "
    "message that has come; ranks of a real run begin at one moment of the clock",
    21: "between hosts, a message of several packets takes what its echo took over the network that was "
    "measured, and its last packet waits for those before it",
    22: "hosts that fill the cores of a testbed's machine have one each, what the wire does for a message "
    "never falls on the core of its sender, and a turn on a core has none of the network's time in it",
    23: "between hosts, messages that come take what they were measured to take of their receiver's core, "
    "and a long Allreduce of ranks on hosts of their own goes as MPICH's rules say",
    24: "where hosts share the cores of a testbed's machine, its kernel picks anew whose a core is whenever "
    "the wire has had it; what first exchanges among all have in common is fitted",
    25: "between hosts, a message takes less of its receiver's core while the kernel is at work on another; "
    "ranks of a script that share a core share it as they are measured, and hand it on where they wait",
    26: "a call takes more behind computation, which has left little of the library in its core's caches; "
    "where ranks share a core, so does a message that one takes in behind what another has computed; since "
    "its second day a short synchronous message goes with its envelope, and its receiver's word completes it",
    27: "what this package's own first calls leave to be measured is no computation of a script's; between "
    "hosts, the first message that comes before its receive takes what it was measured to take",
}
"""What of a prediction each edition of the model has changed; a change of what is priced makes a new one."""
EDITION = max(EDITIONS)
SETUPS = {
    "host": "one host, a core for each rank",
    "crowded": "one host, more ranks than cores",
    "hosts": "several hosts, a core for each rank",
    "testbed": "several hosts on the cores of one machine, which has one for each rank",
    "packed": "several hosts on the cores of one machine, which has fewer than ranks",
}
SETUPS |= {f"library-{name}": f"{what}, the MPI library itself" for name, what in SETUPS.items()}
_BY_CORE, _ON_TWO_CORES = 7, ("crowded", "testbed", "packed")
"""Before this edition the share of computation was that of the busiest rank, wherever others shared its
core: in these set-ups, all of which were on two cores."""
TAILS = (2, 4, 8, 16, 32)
"""Degrees of freedom of the errors: with 2, one in twenty is above 4.3 scales, with 32 above 2.04."""
CONFIDENCE = 0.95
_ALIKE = 30.0
"""Launches of programs that take longer or shorter by more than this factor tell nothing of each other."""
_NORMAL = 1.959963984540054
_SURE = 1000.0
"""As many degrees of freedom are taken for certainty."""
_SHARED = 0.5
"""How much of the way an interval goes to the width that programs on record get."""
_LIKELY = 0.999
"""Of the weight of all combinations; those that share the rest are left out."""
_WIDEST = 50.0
"""The logarithm of a factor that says no more by being larger."""
_HALVINGS = 24
_STEPS, _FEW_STEPS = 16, 6
"""Halvings of the logarithm of a width that is looked for: by itself, and one of many (to a twentieth)."""
_SHARES = np.geomspace(0.005, 1.0, 11)
_FIXED_S = np.geomspace(1e-6, 1e-2, 9)
#: The set-ups that serve for one that is not on record, the nearest first.
_INSTEAD = {
    "hosts": ("testbed", "host"),
    "testbed": ("hosts", "packed", "host"),
    "packed": ("testbed", "crowded", "hosts"),
    "crowded": ("packed", "host"),
    "host": (),
}


@dataclass(frozen=True)
class Past:
    """A prediction on record, and what came.

    Attributes
    ----------
    edition
        Of the model, one of `EDITIONS`.
    setup
        One of `SETUPS`.
    program
        The script and its arguments.
    ranks
        How many.
    when
        The day of the prediction (ISO 8601), or its round in ``data/accuracy/cases.csv``.
    predicted_s
        The prediction, in seconds.
    compute_share
        The share of the time that the busiest rank, or the cores that ranks share, computed.
    below, above
        Half widths of the noise that the prediction knew of (95 %), as logarithms.
    launches_s
        What each launch took, in seconds.
    """

    edition: int
    setup: str
    program: str
    ranks: int
    when: str
    predicted_s: float
    compute_share: float
    below: float
    above: float
    launches_s: tuple[float, ...]

    @property
    def actual_s(self) -> float:
        """The median of the launches, in seconds."""
        return median(self.launches_s)

    @property
    def error(self) -> float:
        """The logarithm of actual over predicted."""
        return math.log(self.actual_s / self.predicted_s)

    @property
    def noise(self) -> float:
        """The half width of the noise on the side where the actual time lies."""
        return self.above if self.error > 0 else self.below


@dataclass(frozen=True)
class Launches:
    """How much launches of a program scatter: a variance of logarithms that is worth so many launches.

    Attributes
    ----------
    variance
        Typical of the programs on record.
    worth
        Degrees of freedom.
    """

    variance: float
    worth: float

    def with_passes(self, logs: Sequence[float]) -> tuple[float, int]:
        """Return the variance, and its degrees of freedom, with a program's own passes, given as logarithms.

        Degrees of freedom are rounded down to a whole number, which makes an interval wider.
        """
        own = len(logs) - 1
        squares = variance(logs) * own if own > 0 else 0.0
        degrees = own + self.worth
        return (squares + self.variance * self.worth) / degrees, max(1, math.floor(degrees))


@dataclass(frozen=True, eq=False)
class Errors:
    """What the model is wrong by in one set-up: combinations of three scales and a tail, with their weights.

    Attributes
    ----------
    setup
        One of `SETUPS`: that of the record, which may be another than was asked for.
    programs
        How many programs of it are on record.
    typical
        The geometric mean of the half widths that they get, their noise in it, as logarithms; 0 without any.
    """

    setup: str
    programs: int
    typical: float
    _scales: NDArray[np.float64]
    _weights: NDArray[np.float64]

    def half_width(self, seconds: float, compute_share: float) -> float:
        """Return how far the logarithm of the actual time lies from the predicted in 95 of 100 programs.

        At least a thousandth.
        """
        return self._half_width(seconds, compute_share, _STEPS)

    def _half_width(self, seconds: float, compute_share: float, steps: int) -> float:
        factor = _factor(self._scales, compute_share)
        once = self._scales[2] / seconds

        def outside(width: float) -> float:
            drawn, _ = _drawn(width, factor, once)
            found = [_outside(drawn, tail) for tail in TAILS]
            return float(np.sum(self._weights * found))

        low, high = 1e-3, 1.0
        while outside(high) > 1.0 - CONFIDENCE:
            low, high = high, 2.0 * high
        for _ in range(steps):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if outside(middle) > 1.0 - CONFIDENCE else (low, middle)
        return math.sqrt(low * high)

    def with_noise(self, noise: float, seconds: float, compute_share: float) -> float:
        """Return the half width of an interval, as a logarithm.

        It is the program's own, moved towards those that programs on record get, and not less than its noise.

        Parameters
        ----------
        noise
            The half width of the noise that the prediction knows of.
        seconds, compute_share
            As for `half_width`.
        """
        own = math.hypot(noise, self.half_width(seconds, compute_share))
        if self.typical == 0.0:
            return own
        return max(noise, float(own ** (1.0 - _SHARED) * self.typical**_SHARED))


def read(file: Path = FILE) -> list[Past]:
    """Read the record."""
    with file.open(newline="", encoding="utf-8") as stream:
        return [parsed(row) for row in csv.DictReader(stream)]


def parsed(row: Mapping[str, Any]) -> Past:
    """Return a row of the file, by its columns."""
    edition, ranks, share = int(row["edition"]), int(row["ranks"]), float(row["compute_share"])
    if edition < _BY_CORE and row["setup"].endswith(_ON_TWO_CORES):
        share = min(1.0, share * max(1.0, ranks / 2))
    return Past(
        edition,
        row["setup"],
        row["program"],
        ranks,
        row["when"],
        float(row["predicted_s"]),
        share,
        float(row["below"]),
        float(row["above"]),
        tuple(map(float, row["launches_s"].split())),
    )


@lru_cache(maxsize=1)
def _record() -> tuple[Past, ...]:
    return tuple(read())


def launches(setup: str, seconds: float, past: Iterable[Past] | None = None) -> Launches | None:
    """Return how launches scatter that take about so long; none where fewer than two programs are on record.

    What is there once a run scatters too, so that launches of a millisecond scatter ten times as much as
    those of a second.
    """
    some = [row for row in _nearest(setup, _record() if past is None else past) if len(row.launches_s) > 2]
    near = [row for row in some if seconds / _ALIKE <= row.predicted_s <= seconds * _ALIKE]
    return _scatter([row.launches_s for row in near]) or _scatter([row.launches_s for row in some])


def _scatter(launches_s: Sequence[Sequence[float]]) -> Launches | None:
    """Fit an inverse gamma distribution of variances to samples of each, by moments of their logarithms."""
    found = [(variance(map(math.log, one)), len(one) - 1) for one in launches_s]
    found = [(value, degrees) for value, degrees in found if value > 0.0]
    if len(found) < 2:
        return None
    # Smyth 2004, section 6.2: e_g = z_g - digamma(d_g / 2) + log(d_g / 2).
    logs = [math.log(value) - _digamma(d / 2) + math.log(d / 2) for value, d in found]
    excess = variance(logs) - fmean(_trigamma(d / 2) for _, d in found)
    half = _inverse_trigamma(excess) if excess > 0 else math.inf
    if 2 * half > _SURE:
        return Launches(math.exp(fmean(logs)), _SURE)
    return Launches(math.exp(fmean(logs) + _digamma(half) - math.log(half)), 2 * half)


def _log_density(values: NDArray[np.float64], degrees: int) -> NDArray[np.float64]:
    """Return the logarithm of the density of Student's distribution."""
    factor = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(math.pi * degrees)
    return factor - (degrees + 1) / 2 * np.log1p(values**2 / degrees)


def _outside(widths: NDArray[np.float64], degrees: int) -> NDArray[np.float64]:
    """Return how likely a value of Student's distribution lies further from 0 than each of some widths.

    Abramowitz & Stegun (1964), equation 26.7.4: for an even number of degrees of freedom.
    """
    cosines = degrees / (degrees + widths**2)  # squared
    term = total = np.ones_like(widths)
    for step in range(2, degrees, 2):
        term = term * cosines * ((step - 1) / step)
        total = total + term
    return 1.0 - np.sqrt(1.0 - cosines) * total


def _digamma(x: float) -> float:
    """Return the logarithmic derivative of the gamma function, x > 0 (Abramowitz & Stegun 1964, 6.3.18)."""
    below = 0.0
    while x < 10.0:
        below += 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    return math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240))) - below


def _trigamma(x: float) -> float:
    """Return the derivative of `_digamma`, x > 0 (Abramowitz & Stegun 1964, 6.4.12)."""
    below = 0.0
    while x < 10.0:
        below += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    return (1.0 + 0.5 / x + y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))) / x + below


def _inverse_trigamma(value: float) -> float:
    """Return the number whose trigamma function is `value`."""
    low, high = 1e-3, _SURE
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _trigamma(middle) > value else (low, middle)
    return high


def errors(setup: str, past: Iterable[Past] | None = None) -> Errors:
    """Learn what the model is wrong by in a set-up, or in the nearest one that is on record."""
    if past is None:
        return _from_record(setup)
    return _learn(setup, list(past))


@lru_cache(maxsize=len(SETUPS))
def _from_record(setup: str) -> Errors:
    return _learn(setup, _record())


def _nearby(setup: str) -> tuple[str, ...]:
    """Return a set-up and those that serve for it, the nearest first."""
    library, _, kind = setup.rpartition("-")
    found = (kind, *_INSTEAD[kind])
    return (*(f"{library}-{one}" for one in found), *found) if library else found


def _nearest(setup: str, past: Iterable[Past]) -> list[Past]:
    rows = list(past)
    for one in _nearby(setup):
        if some := [row for row in rows if row.setup == one]:
            return some
    return []


def _newest(rows: Sequence[Past]) -> list[Past]:
    """Return of each program the predictions by the newest edition that has predicted it."""
    newest: dict[str, int] = {}
    for row in rows:
        newest[row.program] = max(row.edition, newest.get(row.program, 0))
    return [row for row in rows if row.edition == newest[row.program]]


def _learn(setup: str, past: Iterable[Past]) -> Errors:
    rows = _newest(_nearest(setup, past))
    grid = np.array(np.meshgrid(_SHARES, _SHARES, _FIXED_S, indexing="ij")).reshape(3, -1)
    likely = np.zeros((len(TAILS), grid.shape[1]))
    runs: dict[str, int] = {}
    for row in rows:
        runs[row.program] = runs.get(row.program, 0) + 1
    for row in rows:
        factor = np.hypot(_factor(grid, row.compute_share), row.noise / _NORMAL)
        drawn, slope = _drawn(abs(row.error), factor, grid[2] / row.predicted_s)
        dense = np.array([_log_density(drawn, tail) - np.log(slope) for tail in TAILS])
        likely += dense / runs[row.program]
    weights = np.exp(likely - likely.max())
    weights /= weights.sum()
    by_scales = weights.sum(axis=0)
    order = np.argsort(-by_scales, kind="stable")
    kept = np.sort(order[: int(np.searchsorted(by_scales[order].cumsum(), _LIKELY)) + 1])
    weights = weights[:, kept] / weights[:, kept].sum()
    used = rows[0].setup if rows else setup
    found = Errors(used, len(runs), 0.0, grid[:, kept], weights)
    last = {row.program: row for row in rows}.values()
    return replace(found, typical=_typical(found, last)) if rows else found


def _typical(found: Errors, rows: Iterable[Past]) -> float:
    """Return the geometric mean of the half widths of programs on record."""
    widths = []
    for row in rows:
        own = found._half_width(row.predicted_s, row.compute_share, _FEW_STEPS)
        widths.append(math.hypot(own, math.sqrt(row.below * row.above)))
    return math.exp(fmean(map(math.log, widths)))


def _factor(grid: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return the scale of the logarithm of what a time is wrong by as a factor."""
    found: NDArray[np.float64] = np.hypot(grid[0] * share, grid[1] * (1.0 - share))
    return found


def _drawn(
    width: float, factor: NDArray[np.float64], once: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return which t makes a logarithm of `width`, 0 or above, and what that grows by with t.

    `factor` is the scale of what is wrong as a factor, above 0; `once` that of a time, by the whole time.
    """
    low = np.zeros_like(factor)
    high = np.minimum(width / factor, np.expm1(min(width, _WIDEST)) / once)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = np.hypot(middle * factor, np.log1p(middle * once)) < width
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    if width == 0.0:
        return high, np.hypot(factor, once)
    slope = (high * factor**2 + np.log1p(high * once) * once / (1.0 + high * once)) / width
    return high, slope


def left_out(past: Sequence[Past], setup: str) -> list[tuple[Past, float]]:
    """Return each row of a set-up with the half width that the record without its program gives it.

    Its noise is in it, that of the side on which the actual time lies.
    """
    rows = [row for row in past if row.setup == setup]
    found = []
    for program in dict.fromkeys(row.program for row in rows):
        learnt = _learn(setup, [row for row in rows if row.program != program])
        found += [
            (row, learnt.with_noise(row.noise, row.predicted_s, row.compute_share))
            for row in rows
            if row.program == program
        ]
    return found
