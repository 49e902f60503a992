"""Two results compared, before and after a change: the ratio of their times, size by size, with its interval.

The launch is the unit of repetition. Each side is the median over its launches with the interval of
`wiretwin.fit.stats`; the interval of their ratio follows from these two (Zou & Donner 2008: on logarithms,
the squared distances from a median to its ends add up). A size is called changed where its p-value passes
the step-up procedure of Benjamini & Hochberg (1995) over all sizes compared, so of what is called changed at
most a twentieth is expected to be noise, however many sizes there are. Where nothing is called changed, the
interval says which of two things it is: it excludes a change of the size that was asked about, or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from wiretwin.errors import InputError
from wiretwin.fit.stats import Array, ends, median, summarise

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from wiretwin.results import Result

__all__ = ["Change", "Changes", "Verdict", "changes", "compared"]

Verdict = Literal["slower", "faster", "no change", "inconclusive", "only before", "only after"]
FALSE_SHARE = 0.05
"""Expected share of noise in what is called changed."""
DEFAULT_CHANGE = 0.1
"""The change that "no change" excludes, as a share, unless another is asked about."""
EVERY = "all"
"""In place of a loop: all of what ranks did together."""
_CHANCES = np.geomspace(1e-9, 0.9, 181)
"""What a p-value is rounded up to."""


@dataclass(frozen=True)
class Change:
    """One configuration and size in both results.

    Attributes
    ----------
    layer, bytes
        The configuration and the size.
    before_us, after_us
        The typical launches: of ``echo`` the one-way latency, of other loops an iteration; nothing where it
        was not measured.
    launches_before, launches_after
        How many there were.
    ratio, low, high
        After over before, with its interval; infinite where either has one launch only.
    p
        How likely so large a ratio would be without a change, 0 to 1; ``None`` where nothing says.
    verdict
        ``slower`` and ``faster`` beyond noise; ``no change``: the interval excludes a change of the size
        asked about; ``inconclusive``: it does not, as with one launch never.
    """

    layer: str
    bytes: int
    before_us: float | None
    after_us: float | None
    launches_before: int
    launches_after: int
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    verdict: Verdict


@dataclass(frozen=True)
class Changes:
    """What changed between two results.

    Attributes
    ----------
    loop
        The loop compared, or `EVERY`, whose rows have the loop behind the name of the layer.
    rows
        By configuration in the order of the results, and size.
    before, after
        Where the results are.
    change
        What ``no change`` excludes, as a share: 0.1 stands for 10 % more or less time.
    """

    loop: str
    rows: list[Change]
    before: str
    after: str
    change: float = DEFAULT_CHANGE

    def of(self, *verdicts: Verdict) -> list[Change]:
        """Return the rows with one of these verdicts."""
        return [row for row in self.rows if row.verdict in verdicts]

    def summary(self) -> list[str]:
        """Say what changed, what did not and what is in one result only, a sentence a configuration."""
        lines = []
        for layer in dict.fromkeys(row.layer for row in self.rows):
            rows = [row for row in self.rows if row.layer == layer]
            both = [row for row in rows if row.ratio is not None]
            parts = []
            for verdict in ("faster", "slower"):
                found = [row for row in both if row.verdict == verdict]
                if found:
                    ratios = sorted(row.ratio or 1.0 for row in found)
                    where = (
                        f"{found[0].bytes} to {found[-1].bytes} B"
                        if len(found) > 1
                        else f"{found[0].bytes} B"
                    )
                    count = f"{len(found)} of {len(both)} sizes"
                    parts.append(f"{verdict} at {count} ({where}), {_ratio(ratios[len(ratios) // 2])}")
            same = sum(row.verdict == "no change" for row in both)
            if same:
                parts.append(f"no change of {100 * self.change:g} % at {same} of {len(both)} sizes")
            open_ = [row for row in both if row.verdict == "inconclusive"]
            if open_:
                least = min(_excluded(row) for row in open_)
                more = "" if math.isinf(least) else f" (it would take {100 * least:.0f} % to be excluded)"
                once = " with one launch" if all(math.isinf(_excluded(row)) for row in open_) else ""
                parts.append(f"inconclusive at {len(open_)} of {len(both)} sizes{once}{more}")
            for verdict in ("only before", "only after"):
                alone = sum(row.verdict == verdict for row in rows)
                if alone:
                    parts.append(f"{alone} sizes {verdict}")
            lines.append(f"{layer}: " + "; ".join(parts))
        return lines


def _ratio(value: float) -> str:
    return f"typically {value:.3g} times the time"


def _excluded(row: Change) -> float:
    """Return the least change, as a share, that the interval of a row excludes; infinite without an end."""
    if not row.low or row.high is None or not math.isfinite(row.high):
        return math.inf
    return max(row.high, 1 / row.low) - 1.0


def changes(
    before: Result,
    after: Result,
    *,
    loop: str | None = None,
    confidence: float = 0.95,
    change: float = DEFAULT_CHANGE,
) -> Changes:
    """Compare two results.

    Parameters
    ----------
    before, after
        Measured here or brought in from another program, in any mix.
    loop
        The loop to compare; by default ``echo``, or all of what ranks did together where there is none.
    confidence
        Of the intervals.
    change
        The change that is excluded where a size is said not to have changed, as a share above 0: 0.1 stands
        for a tenth more time, or less time by the same ratio.

    Raises
    ------
    InputError
        Neither result has the loop, they are of different numbers of ranks, or a value is out of range.
    """
    if not 0 < change < math.inf:
        raise InputError(key="change", value=change, allowed="a share above 0")
    ranks = [result.manifest.options.get("ranks", 2) for result in (before, after)]
    if ranks[0] != ranks[1]:
        allowed = f"a result of as many ranks as {before.path} has: {ranks[0]}"
        raise InputError(after.path, "ranks", ranks[1], allowed)
    order = list(dict.fromkeys(layer.name for result in (before, after) for layer in result.manifest.layers))
    if loop is None:
        loop = EVERY if any(result.manifest.options.get("loops") for result in (before, after)) else "echo"
    old, new = (logarithms(result, loop) for result in (before, after))
    if not old and not new:
        raise InputError(key="loop", value=loop, reason="is in neither result", allowed="a loop of one")

    def place(name: str) -> int:
        return order.index(name if name in order else layer_of(name))

    halved = 2.0 if loop == "echo" else 1.0
    rows = compared(old, new, halved=halved, confidence=confidence, change=change)
    rows.sort(key=lambda row: place(row.layer))
    return Changes(loop, rows, str(before.path), str(after.path), change)


def compared(
    before: Mapping[tuple[str, int], Array],
    after: Mapping[tuple[str, int], Array],
    *,
    halved: float = 1.0,
    confidence: float = 0.95,
    change: float = DEFAULT_CHANGE,
) -> list[Change]:
    """Compare logarithms of launches' times, ns, by what was measured and size; as `changes`, in that order.

    Parameters
    ----------
    before, after
        As `logarithms`.
    halved
        What times are divided by where they are told.
    confidence, change
        As for `changes`.
    """
    rows = [
        _change(name, size, before.get((name, size)), after.get((name, size)), halved, confidence)
        for name, size in sorted({*before, *after})
    ]
    return _judged(rows, change)


def layer_of(name: str) -> str:
    """Return the layer of a row's name, which has the loop behind it where several are compared."""
    return name.split(" ")[0]


def logarithms(result: Result, loop: str) -> dict[tuple[str, int], Array]:
    """Return the logarithms of the launches' times, ns, by configuration and size.

    With `EVERY`, those of all that ranks did together, by configuration with the loop behind it.
    """
    import polars as pl

    samples = result.samples()
    if not samples.height:
        return {}
    if loop == EVERY:
        named = pl.col("layer") + " " + pl.col("loop")
        # A load is not the same in two results: it is a share of what the layer carried there.
        wanted = pl.col("loop").is_in(result.manifest.options.get("loops", []))
        samples = samples.filter(wanted).with_columns(layer=named, loop=pl.lit(EVERY))
    found: dict[tuple[str, int], Array] = {}
    summary: pl.DataFrame = summarise(samples).filter(
        (pl.col("loop") == loop) & (pl.col("delay_ns") == 0) & (pl.col("value_ns") > 0)
    )
    for (layer, size), part in summary.group_by("layer", "bytes", maintain_order=True):
        most = part["messages"].max()
        same = part.filter(pl.col("messages") == most)
        found[str(layer), int(str(size))] = np.log(same["value_ns"].to_numpy())
    return found


def _change(
    layer: str, size: int, old: Array | None, new: Array | None, halved: float, confidence: float
) -> Change:
    def typical(values: Array | None) -> float | None:
        return None if values is None else float(np.exp(median(values))) / halved / 1000.0

    ratio = low = high = p = None
    verdict: Verdict = "inconclusive"
    if old is None or new is None:
        verdict = "only after" if old is None else "only before"
    else:
        ratio = float(np.exp(median(new) - median(old)))
        low, high = 0.0, float("inf")
        if min(old.size, new.size) > 1:
            with np.errstate(over="ignore"):
                low, high = (float(np.exp(end)) for end in _difference(old, new, confidence))
            low, high = min(low, ratio), max(high, ratio)
            p = _chance(old, new)
    return Change(
        layer=layer,
        bytes=size,
        before_us=typical(old),
        after_us=typical(new),
        launches_before=0 if old is None else int(old.size),
        launches_after=0 if new is None else int(new.size),
        ratio=ratio,
        low=low,
        high=high,
        p=p,
        verdict=verdict,
    )


def _difference(old: Array, new: Array, confidence: float) -> tuple[float, float]:
    """Return the interval of the difference of two medians (Zou & Donner 2008, equations 2 and 3)."""
    first, second = float(median(old)), float(median(new))
    (low_1, high_1), (low_2, high_2) = (ends(values, confidence) for values in (old, new))
    difference = second - first
    below = math.hypot(second - float(low_2), float(high_1) - first)
    above = math.hypot(float(high_2) - second, first - float(low_1))
    return difference - below, difference + above


def _chance(old: Array, new: Array) -> float:
    """Return one less the largest confidence at which the interval of the difference has no 0 in it."""
    if float(median(new)) == float(median(old)):
        return 1.0
    least, most = 0, len(_CHANCES)
    while least < most:
        middle = (least + most) // 2
        low, high = _difference(old, new, 1.0 - float(_CHANCES[middle]))
        least, most = (least, middle) if low > 0 or high < 0 else (middle + 1, most)
    return float(_CHANCES[least]) if least < len(_CHANCES) else 1.0


def _judged(rows: list[Change], change: float) -> list[Change]:
    """Call changed what passes Benjamini & Hochberg's procedure, and of the rest unchanged what has to be."""
    from dataclasses import replace

    tested = sorted((row.p, number) for number, row in enumerate(rows) if row.p is not None)
    passed = 0
    for rank, (p, _) in enumerate(tested, 1):
        if p <= FALSE_SHARE * rank / len(tested):
            passed = rank
    out = [
        replace(row, verdict="no change") if row.ratio is not None and _excluded(row) <= change else row
        for row in rows
    ]
    for _, number in tested[:passed]:
        row = rows[number]
        out[number] = replace(row, verdict="slower" if (row.ratio or 1.0) > 1 else "faster")
    return out
