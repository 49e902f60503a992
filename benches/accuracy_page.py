"""The headline and the tables of docs/accuracy.md, from all rounds and tours on record.

    python benches/accuracy_page.py            # writes them into the page
    python benches/accuracy_page.py --check    # ends with status 1 if the page says anything else

The records are data/accuracy/rounds.csv, one row for every round and tour that was made, and cases.csv, one
row for every program of those that were kept program by program. `benches/accuracy.py --docs` adds its
rounds to both and calls this; a row is never taken out, so that a headline cannot be picked.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wiretwin.predict.records import Comparison

ROOT = Path(__file__).resolve().parents[1]
DATA, PAGE = ROOT / "data" / "accuracy", ROOT / "docs" / "accuracy.md"
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"
STATED = 95
"""The share of actual values that the predicted intervals are to hold, percent."""


@dataclass(frozen=True)
class Round:
    """A round or a tour: its name, how many programs, median and worst absolute error in percent."""

    run: str
    programs: int
    median_percent: float
    worst_percent: float | None
    note: str


@dataclass(frozen=True)
class Case:
    """A program of a round; times in seconds, absent where only the error was kept."""

    run: str
    program: str
    state: str
    launches: str
    predicted: tuple[float, float, float] | None
    actual: tuple[float, float, float] | None
    error_percent: float

    @property
    def inside(self) -> bool | None:
        """Whether the actual value lies inside the predicted interval; nothing where that was not kept."""
        if self.predicted is None or self.actual is None:
            return None
        return self.predicted[1] <= self.actual[0] <= self.predicted[2]


def rounds(folder: Path = DATA) -> list[Round]:
    """Read every round and tour, in the order in which they were made."""
    with (folder / "rounds.csv").open(newline="", encoding="utf-8") as file:
        return [
            Round(
                row["run"],
                int(row["programs"]),
                float(row["median_percent"]),
                float(row["worst_percent"]) if row["worst_percent"] else None,
                row["note"],
            )
            for row in csv.DictReader(file)
        ]


def cases(folder: Path = DATA) -> list[Case]:
    """Read every program that was kept by itself."""

    def times(row: dict[str, str], what: str) -> tuple[float, float, float] | None:
        words = [row[f"{what}{end}_s"] for end in ("", "_low", "_high")]
        return (float(words[0]), float(words[1]), float(words[2])) if all(words) else None

    with (folder / "cases.csv").open(newline="", encoding="utf-8") as file:
        return [
            Case(
                row["run"],
                row["program"],
                row["state"],
                row["launches"],
                times(row, "predicted"),
                times(row, "actual"),
                float(row["error_percent"]),
            )
            for row in csv.DictReader(file)
        ]


def agrees(case: Case) -> bool | None:
    """Whether predicted and actual value differ by no more than both intervals explain; as `Case.inside`.

    The facing half widths are added as those of independent values are, root of the sum of the squares.
    """
    if case.predicted is None or case.actual is None:
        return None
    predicted, actual = case.predicted, case.actual
    more, less = (predicted, actual) if predicted[0] > actual[0] else (actual, predicted)
    return more[0] - less[0] <= math.hypot(more[0] - more[1], less[2] - less[0])


def ninth_decile(values: Iterable[float]) -> float:
    """Return the least value that nine of ten are at most."""
    ordered = sorted(values)
    return ordered[math.ceil(0.9 * len(ordered)) - 1]


def headline(made: Sequence[Round], kept: Sequence[Case]) -> str:
    """Say how good predictions are, over everything on record."""
    full = sum(one.run.startswith("round") for one in made)
    medians = [one.median_percent for one in made]
    worst = [one.worst_percent for one in made if one.worst_percent is not None]
    errors = [abs(one.error_percent) for one in kept]
    known = [one.inside for one in kept if one.inside is not None]
    short = sum(one.error_percent < 0 for one in kept)
    share = (
        f"**{sum(known)} of {len(known)} actual values lie inside the predicted interval, which is to hold "
        f"{STATED} %.**"
    )
    both = sum(agrees(one) or False for one in kept)
    wide = [one.predicted[2] / one.predicted[1] - 1 for one in kept if one.predicted is not None]
    own = [one.actual[2] / one.actual[1] - 1 for one in kept if one.actual is not None]
    why = (
        f"A predicted interval is {50 * statistics.median(wide):.1f} % wide to either side at the median, "
        f"that of an actual value {50 * statistics.median(own):.1f} %: a prediction does not know how much "
        f"launches will differ. Where both intervals are taken together, {both} of {len(known)} agree; the "
        "others are errors of the model, program by program below."
    )
    return (
        f"Over all {full} rounds and {len(made) - full} tours, {sum(one.programs for one in made)} "
        f"predictions: the median error of a round is {statistics.median(medians):.1f} % at the median and "
        f"{ninth_decile(medians):.1f} % at the ninth decile, its worst {statistics.median(worst):.1f} and "
        f"{ninth_decile(worst):.1f} %.\n\n"
        f"Of the {len(kept)} that were kept program by program the median error is "
        f"{statistics.median(errors):.1f} %, the ninth decile {ninth_decile(errors):.1f} %; {short} were too "
        f"short. {share} {why}"
    )


def by_program(kept: Sequence[Case]) -> str:
    """Return a table by program: median error with its sign, ninth decile, how many inside."""
    lines = ["| program | predictions | median | ninth decile | inside |", "|---|---|---|---|---|"]
    for program in dict.fromkeys(one.program for one in kept):
        own = [one for one in kept if one.program == program]
        known = [one.inside for one in own if one.inside is not None]
        lines.append(
            f"| `{program}` | {len(own)} | {statistics.median(one.error_percent for one in own):+.1f} % | "
            f"{ninth_decile(abs(one.error_percent) for one in own):.1f} % | {sum(known)} of {len(known)} |"
        )
    return "\n".join(lines)


def all_rounds(made: Sequence[Round]) -> str:
    """Return a table of every round and tour."""
    lines = ["| | programs | median | worst | |", "|---|---|---|---|---|"]
    for one in made:
        worst = "" if one.worst_percent is None else f"{one.worst_percent:.1f} %"
        lines.append(f"| {one.run} | {one.programs} | {one.median_percent:.1f} % | {worst} | {one.note} |")
    return "\n".join(lines)


def page(text: str, folder: Path = DATA) -> str:
    """Return the page with its headline and its tables as the records have them."""
    made, kept = rounds(folder), cases(folder)
    parts = {"headline": headline(made, kept), "programs": by_program(kept), "rounds": all_rounds(made)}
    for name, part in parts.items():
        head, rest = text.split(BEGIN.format(name))
        text = f"{head}{BEGIN.format(name)}\n\n{part}\n\n{END.format(name)}{rest.split(END.format(name))[1]}"
    return text


def add(done: Sequence[Comparison], kind: str, note: str, folder: Path = DATA) -> str:
    """Add a round or a tour to the records; return the name it got."""
    number = sum(one.run.split()[0] == kind for one in rounds(folder)) + 1
    errors = [100 * one.error for one in done]
    sizes = [abs(one) for one in errors]
    _append(
        folder / "rounds.csv",
        [[f"{kind} {number}", len(done), f"{statistics.median(sizes):.1f}", f"{max(sizes):.1f}", note]],
    )
    _append(
        folder / "cases.csv",
        [
            [
                f"{kind} {number}",
                " ".join([one.prediction.program, *one.prediction.args]),
                one.state or "",
                one.launches,
                *(f"{spread:.6f}" for spread in (one.predicted.value, one.predicted.low, one.predicted.high)),
                *(f"{spread:.6f}" for spread in (one.actual.value, one.actual.low, one.actual.high)),
                f"{error:+.1f}",
            ]
            for one, error in zip(done, errors, strict=True)
        ],
    )
    return f"{kind} {number}"


def _append(file: Path, rows: Sequence[Sequence[object]]) -> None:
    with file.open("a", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows(rows)


def main() -> int:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if the page differs")
    options = parser.parse_args()
    text = PAGE.read_text("utf-8")
    made = page(text)
    if options.check:
        return int(made != text)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
