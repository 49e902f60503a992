"""Two results compared, before and after a change: the ratio of their times, size by size, with its interval.

The launch is the unit of repetition. Ratios are differences of logarithms with Welch's (1947) standard error
and degrees of freedom. A size is called changed where its p-value passes the step-up procedure of Benjamini
& Hochberg (1995) over all sizes compared, so of what is called changed at most a twentieth is expected to be
noise, however many sizes there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import stats as distributions

from wiretwin.errors import InputError
from wiretwin.fit.stats import Array, locate, student, summarise

if TYPE_CHECKING:
    import polars as pl

    from wiretwin.results import Result

__all__ = ["Change", "Changes", "Verdict", "changes"]

Verdict = Literal["slower", "faster", "no change", "unknown", "only before", "only after"]
FALSE_SHARE = 0.05
"""Expected share of noise in what is called changed."""


@dataclass(frozen=True)
class Change:
    """One configuration and size in both results.

    Attributes
    ----------
    layer, bytes
        Which.
    before_us, after_us
        The typical launches: of ``echo`` half a round trip, of other loops an iteration; nothing where it
        was not measured.
    launches_before, launches_after
        How many there were.
    ratio, low, high
        After over before, with its interval; infinite where either has one launch only.
    p
        How likely so large a ratio would be without a change, 0 to 1; ``None`` where nothing says.
    verdict
        ``slower`` and ``faster`` beyond noise; ``no change`` that can be told; ``unknown`` with one launch.
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
        The loop compared.
    rows
        By configuration in the order of the results, and size.
    before, after
        Where the results are.
    """

    loop: str
    rows: list[Change]
    before: str
    after: str

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
            unknown = sum(row.verdict == "unknown" for row in both)
            if unknown:
                parts.append(f"nothing can be told at {unknown} sizes: one launch has no interval")
            if both and not parts:
                parts.append(f"no change beyond noise at {len(both)} sizes")
            for verdict in ("only before", "only after"):
                alone = sum(row.verdict == verdict for row in rows)
                if alone:
                    parts.append(f"{alone} sizes {verdict}")
            lines.append(f"{layer}: " + "; ".join(parts))
        return lines


def _ratio(value: float) -> str:
    return f"typically {value:.3g} times the time"


def changes(before: Result, after: Result, *, loop: str = "echo", confidence: float = 0.95) -> Changes:
    """Compare two results.

    Parameters
    ----------
    before, after
        Measured here or brought in from another program, in any mix.
    loop
        The loop to compare.
    confidence
        Of the intervals.

    Raises
    ------
    InputError
        Neither result has the loop.
    """
    order = list(dict.fromkeys(layer.name for result in (before, after) for layer in result.manifest.layers))
    sides = [_logarithms(result, loop) for result in (before, after)]
    keys = {key for side in sides for key in side}
    if not keys:
        raise InputError(key="loop", value=loop, reason="is in neither result", allowed="a loop of one")
    halved = 2.0 if loop == "echo" else 1.0
    rows = [
        _change(layer, size, sides[0].get((layer, size)), sides[1].get((layer, size)), halved, confidence)
        for layer, size in sorted(keys, key=lambda key: (order.index(key[0]), key[1]))
    ]
    return Changes(loop, _judged(rows), str(before.path), str(after.path))


def _logarithms(result: Result, loop: str) -> dict[tuple[str, int], Array]:
    """Return the logarithms of the launches' times, ns, by configuration and size."""
    import polars as pl

    samples = result.samples()
    if not samples.height:
        return {}
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
        return None if values is None else float(np.exp(locate(values).value)) / halved / 1000.0

    ratio = low = high = p = None
    verdict: Verdict = "unknown"
    if old is None or new is None:
        verdict = "only after" if old is None else "only before"
    else:
        first, second = locate(old), locate(new)
        difference = float(second.value - first.value)
        ratio = float(np.exp(difference))
        low, high = 0.0, float("inf")
        if first.freedom and second.freedom:
            parts = [float(one.error) ** 2 for one in (first, second)]
            error = float(np.sqrt(sum(parts)))
            freedom = _welch(parts, [first.freedom, second.freedom])
            half = student(freedom, confidence) * error
            low, high = float(np.exp(difference - half)), float(np.exp(difference + half))
            if error > 0:
                p = float(2 * distributions.t.sf(abs(difference) / error, freedom))
            else:
                p = 1.0 if difference == 0 else 0.0
            verdict = "no change"
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


def _welch(squares: list[float], freedoms: list[int]) -> int:
    """Return Welch's degrees of freedom, rounded down."""
    below = sum(square**2 / freedom for square, freedom in zip(squares, freedoms, strict=True))
    return max(1, int(sum(squares) ** 2 / below)) if below > 0 else sum(freedoms)


def _judged(rows: list[Change]) -> list[Change]:
    """Call changed what passes Benjamini & Hochberg's procedure."""
    from dataclasses import replace

    tested = sorted((row.p, number) for number, row in enumerate(rows) if row.p is not None)
    passed = 0
    for rank, (p, _) in enumerate(tested, 1):
        if p <= FALSE_SHARE * rank / len(tested):
            passed = rank
    out = list(rows)
    for _, number in tested[:passed]:
        row = rows[number]
        out[number] = replace(row, verdict="slower" if (row.ratio or 1.0) > 1 else "faster")
    return out
