"""Predicted against actual: five programs at two sizes, two ranks on this machine, one twin.

    python benches/accuracy.py [--rounds 2] [--only ring_allreduce.py] [--priority 5]
                               [--out results/accuracy-…] [--docs docs/accuracy.md]

Each round measures `mpi4py/mpich` alone, fits a twin, predicts all ten, records that, and runs them for
real in turns; nothing in the twin depends on a program. With --docs the table in that page, between
its two markers, is replaced by this run's, and the predictions join the record that intervals are learnt
from. A round may be made piece by piece: run again with the same --out, it goes on where it stands, and
--only says with which programs. With --priority all that is timed has a real-time priority, on a host that
has other things to do (see `wiretwin.priority`).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

import accuracy_page
import accuracy_past

from wiretwin import priority
from wiretwin.cli.compare import comparison_table
from wiretwin.cli.format import Format, emit
from wiretwin.fit.api import fit
from wiretwin.measure.api import measure
from wiretwin.predict.compare import compare, worst_and_median
from wiretwin.predict.records import Comparison, Prediction, Run, Spread, read
from wiretwin.predict.shipped import PROGRAMS, Shipped, Size
from wiretwin.tour import SIZES, place, predict_and_run
from wiretwin.twin import Twin

BEGIN = "<!-- accuracy: begin -->"
END = "<!-- accuracy: end -->"
SIZES_OF_PROGRAMS: tuple[Size, Size] = ("small", "large")
TARGET_MEDIAN, TARGET_WORST = 0.10, 0.25


def one_round(folder: Path, launches: int, budget_s: float, only: list[str]) -> list[Comparison]:
    """Measure, fit, predict, run and compare once; what the folder has already is not done again."""
    if not (folder / "twin.toml").exists():
        print(f"measuring mpi4py/mpich for {budget_s:g} s", file=sys.stderr)
        # Many short launches: the host changes its state between them rather than within one.
        budget, out = f"{budget_s:g}s", folder / "result"
        fit(measure(["mpi4py/mpich"], budget=budget, out=out, sizes=SIZES, launches=24)).write(
            folder / "twin.toml"
        )
    twin = Twin.read(folder / "twin.toml")
    everything: list[tuple[Shipped, Size]] = [(one, size) for one in PROGRAMS for size in SIZES_OF_PROGRAMS]
    programs = folder / "programs"
    have = [one for one in everything if (place(programs, *one) / "run" / Run.FILE).exists()]
    work = [one for one in everything if one not in have and (not only or one[0].file in only)]

    def tell(_: float, words: str) -> None:
        print(f"\r{words:<76}", end="", file=sys.stderr, flush=True)

    shown = tell if sys.stderr.isatty() else None
    if work:
        predict_and_run(
            programs, work, twin, launches=launches, passes_in_state=3, most_passes=12, tell=shown
        )
        print(file=sys.stderr)
    return [compare(*pair) for pair in made(folder)]


def made(folder: Path) -> list[tuple[Prediction, Run]]:
    """Return the predictions and runs that the folder of a round has, in the order of the programs."""
    places = [place(folder / "programs", one, size) for one in PROGRAMS for size in SIZES_OF_PROGRAMS]
    return [
        (read(Prediction, at / "prediction"), read(Run, at / "run"))
        for at in places
        if (at / "run" / Run.FILE).exists()
    ]


def markdown(comparisons: list[Comparison], launches: int) -> str:
    """Return the table of the page."""
    worst, middle = worst_and_median(comparisons)
    when = datetime.now(UTC).date().isoformat()
    lines = [
        f"The last round, {when} on {platform.machine()}, {launches} launches each: median error "
        f"{100 * middle:.1f} %, worst {100 * worst:.1f} %.",
        "",
        "| program | state | launches | predicted s | interval | actual s | interval | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in comparisons:
        name = " ".join([one.prediction.program, *one.prediction.args])
        miss = " (miss)" if abs(one.error) > TARGET_WORST else ""
        lines.append(
            f"| `{name}` | {one.state or 'unknown'} | {one.launches} | {_times(one.predicted)} | "
            f"{_times(one.actual)} | {100 * one.error:+.1f} %{miss} |"
        )
    others = [
        (one, beside)
        for one in comparisons
        for beside in one.by_state
        if beside.state != one.state and beside.error is not None
    ]
    if others:
        lines += ["", "In the other state of the host, with what launches there were:", ""]
        lines += ["| program | state | launches | error |", "|---|---|---|---|"]
        lines += [
            f"| `{' '.join([one.prediction.program, *one.prediction.args])}` | {beside.state} | "
            f"{beside.launches} | {100 * (beside.error or 0.0):+.1f} % |"
            for one, beside in others
        ]
    return "\n".join(lines)


def _times(spread: Spread) -> str:
    return f"{spread.value:.4f} | {spread.low:.4f}-{spread.high:.4f}"


def main() -> int:
    """Run the rounds; returns 0 whether the targets are met or not, for timing decides no test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--launches", type=int, default=7)
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of measuring a round")
    parser.add_argument("--only", action="append", default=[], choices=[one.file for one in PROGRAMS])
    parser.add_argument("--priority", type=int, help="1 to 97; needs root")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    if options.priority is not None:
        os.environ[priority.VARIABLE] = str(options.priority)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    folder: Path = options.out or Path("results", f"accuracy-{stamp}")
    everything: list[Comparison] = []
    for number in range(1, options.rounds + 1):
        done = one_round(folder / f"round-{number}", options.launches, options.budget, options.only)
        everything += done
        emit(comparison_table(done), Format.table)
        worst, middle = worst_and_median(done)
        print(
            json.dumps(
                {
                    "bench": f"accuracy/round-{number}",
                    "median_error_percent": round(100 * middle, 2),
                    "target_median_percent": 100 * TARGET_MEDIAN,
                    "worst_error_percent": round(100 * worst, 2),
                    "target_worst_percent": 100 * TARGET_WORST,
                    "met": middle <= TARGET_MEDIAN and worst <= TARGET_WORST,
                }
            )
        )
        if options.docs is not None:
            page = options.docs.read_text("utf-8")
            head, rest = page.split(BEGIN)
            tail = rest.split(END)[1]
            text = f"{head}{BEGIN}\n\n{markdown(done, options.launches)}\n\n{END}{tail}"
            if not options.only:
                accuracy_page.add(done, "round", "")
            accuracy_past.add(
                accuracy_past.past(compare(*pair))
                for pair in made(folder / f"round-{number}")
                if pair[0].noise
            )
            options.docs.write_text(accuracy_page.page(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
