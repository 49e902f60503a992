"""Do the fit's intervals cover the truth at their stated rate? Thousands of machines with known parameters.

Prints one JSON line for each quantity, noise and number of launches::

    {"bench": "coverage/t_0", "noise": "ordinary", "launches": 5, "covered": 0.95, "runs": 400, ...}

``covered`` is the share of 95 % intervals that hold the true value, ``p`` the chance of so few or fewer if
95 % were true, ``half_width`` the median half width as a share of the value. Lines with ``found`` say how
often the number of breaks was right, and for the straight curve how often there was a break too many.
``--markdown`` prints the tables of docs/explanation/fitting.md and measuring.md instead. Seeds are fixed: the
same figures on every host.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats as distributions

from wiretwin.fit.curve import curve_figures
from wiretwin.fit.segments import fit_segments
from wiretwin.fit.stats import Array, ByLaunch, Interval, ends
from wiretwin.fit.synthetic import HALF_OCTAVES, Lines, Noise, noisy

STRAIGHT = Lines(((0, 800.0, 0.1),))
STEPPED = Lines(((0, 1400.0, 0.1), (8192, 2800.0, 0.026), (400_000, -2800.0, 0.04)))
NOISES = {
    "ordinary": Noise(launch=0.02, step=0.01, spoilt=0.03),
    "busy": Noise(launch=0.05, step=0.03, spoilt=0.05),
    "wild": Noise(launch=0.05, step=0.1, spoilt=0.05),
}
LAUNCHES = (3, 5, 7, 10, 20)
STATED = 0.95


def true_figures(curve: Lines) -> tuple[float, float, float]:
    """t_0, r_max and n_half of the curve itself, on a fine grid between the measured sizes."""
    rate = HALF_OCTAVES / curve(HALF_OCTAVES)
    fine = np.exp(np.linspace(0, np.log(HALF_OCTAVES[-1]), 400_001))
    between = np.exp(np.interp(np.log(fine), np.log(HALF_OCTAVES), np.log(rate)))
    return float(curve(4)), float(rate.max()), float(fine[np.argmax(between >= rate.max() / 2)])


class Tally:
    """Hits and widths by quantity."""

    def __init__(self) -> None:
        self.hits: dict[str, list[bool]] = {}
        self.widths: dict[str, list[float]] = {}

    def add(self, name: str, found: Interval, truth: float) -> None:
        self.hits.setdefault(name, []).append(found.low <= truth <= found.high)
        self.widths.setdefault(name, []).append(found.relative_width)

    def rows(self, noise: str, launches: int) -> Iterator[dict[str, Any]]:
        for name, hits in self.hits.items():
            covered = sum(hits)
            yield {
                "bench": f"coverage/{name}",
                "noise": noise,
                "launches": launches,
                "covered": round(covered / len(hits), 4),
                "runs": len(hits),
                "p": round(distributions.binomtest(covered, len(hits), STATED, alternative="less").pvalue, 4),
                "half_width": round(float(np.median(self.widths[name])), 4),
            }


def of_curves(noise: str, launches: int, runs: int) -> Iterator[dict[str, Any]]:
    """Figures and segments of the stepped curve, breaks of the straight one."""
    tally, right, spurious = Tally(), 0, 0
    truth = true_figures(STEPPED)
    count = np.full(HALF_OCTAVES.size, 9)
    for seed in range(runs):
        times = noisy(2 * STEPPED(HALF_OCTAVES), launches, NOISES[noise], np.random.default_rng(seed))
        figures = curve_figures(ByLaunch(HALF_OCTAVES, times, count))
        read = (figures.t_0_ns, figures.r_max, figures.n_half_bytes)
        for name, found, true in zip(("t_0", "r_max", "n_half"), read, truth, strict=True):
            tally.add(name, found, true)
        pieces = fit_segments(HALF_OCTAVES, times / 2)
        if len(pieces) == len(STEPPED.lines):
            right += 1
            for k, (piece, (start, base, rate)) in enumerate(zip(pieces, STEPPED.lines, strict=True)):
                if k < 2:
                    tally.add("base", piece.base, base)
                tally.add("rate", piece.rate, rate)
                if k:
                    tally.add("break", Interval(piece.from_bytes, piece.from_low, piece.from_high), start)
        straight = noisy(STRAIGHT(HALF_OCTAVES), launches, NOISES[noise], np.random.default_rng(seed))
        spurious += len(fit_segments(HALF_OCTAVES, straight)) > 1
    yield from tally.rows(noise, launches)
    for name, number in (("both breaks found", right), ("break in a straight line", spurious)):
        yield {
            "bench": f"coverage/{name}",
            "noise": noise,
            "launches": launches,
            "found": round(number / runs, 4),
            "runs": runs,
        }


def _kinds() -> dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]]:
    """Return what launches are drawn from, as logarithms of times."""

    def normal(random: np.random.Generator, shape: tuple[int, int]) -> Array:
        return random.normal(0, 0.03, shape)

    return {
        "noise of 3 %": normal,
        "one in 20 spoilt by 30 %": lambda r, s: normal(r, s) + (r.random(s) < 0.05) * r.exponential(0.3, s),
        "heavy tails (Cauchy)": lambda r, s: 0.03 * r.standard_cauchy(s),
        "one-sided (exponential)": lambda r, s: r.exponential(0.3, s),
        "two states, 3 of 10 three times as long": lambda r, s: (
            normal(r, s) + (r.random(s) < 0.3) * np.log(3)
        ),
    }


def of_estimators(launches: int, runs: int) -> Iterator[dict[str, Any]]:
    """The interval for the median between launches, beside those it was chosen over."""
    for kind, draw in _kinds().items():
        random = np.random.default_rng(launches)
        truth = float(np.median(draw(np.random.default_rng(99), (1, 1_000_000))))
        x = draw(random, (launches, runs))
        half = distributions.t.ppf(0.5 + STATED / 2, launches - 1) * x.std(axis=0, ddof=1) / np.sqrt(launches)
        medians = np.median(x[random.integers(0, launches, (400, launches))], axis=1)
        ways = {
            "as used": ends(x, STATED),
            "mean, Student's $t$": (x.mean(axis=0) - half, x.mean(axis=0) + half),
            "median, percentile bootstrap": np.quantile(medians, (0.025, 0.975), axis=0),
        }
        for name, (low, high) in ways.items():
            yield {
                "bench": f"estimator/{name}",
                "kind": kind,
                "launches": launches,
                "covered": round(float(((low <= truth) & (truth <= high)).mean()), 4),
                "runs": runs,
                "half_width": round(float(np.median(high - low)) / 2, 4),
                "half_width_p90": round(float(np.quantile(high - low, 0.9)) / 2, 4),
            }


def main() -> None:
    """Run all of it and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400, help="machines for each case")
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    options = parser.parse_args()
    rows = [
        row for noise in NOISES for launches in LAUNCHES for row in of_curves(noise, launches, options.runs)
    ]
    estimators = [row for launches in LAUNCHES for row in of_estimators(launches, 50 * options.runs)]
    if not options.markdown:
        for row in rows + estimators:
            print(json.dumps(row))
        return
    names = list(dict.fromkeys(row["bench"].removeprefix("coverage/") for row in rows))
    print("| noise | launches |" + "".join(f" {name} |" for name in names))
    print("|---|---|" + "---|" * len(names))
    for noise in NOISES:
        for launches in LAUNCHES:
            cells = {
                row["bench"].removeprefix("coverage/"): 100 * row.get("covered", row.get("found", 0.0))
                for row in rows
                if (row["noise"], row["launches"]) == (noise, launches)
            }
            print(f"| {noise} | {launches} |" + "".join(f" {cells.get(name, 0.0):.1f} |" for name in names))
    ways = list(dict.fromkeys(row["bench"].removeprefix("estimator/") for row in estimators))
    print("\n| launches are drawn from | launches |" + "".join(f" {way} |" for way in ways))
    print("|---|---|" + "---|" * len(ways))
    for kind in _kinds():
        for launches in LAUNCHES:
            found = [row for row in estimators if (row["kind"], row["launches"]) == (kind, launches)]
            shares = (f"{100 * row['covered']:.1f} (± {100 * row['half_width']:.1f} %)" for row in found)
            print(f"| {kind} | {launches} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
