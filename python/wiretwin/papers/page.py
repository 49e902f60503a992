"""The page on which predictions are committed before anything is compared with them.

``python -m wiretwin.papers.page lin1995 docs/papers/lin1995.md "why they changed"`` runs everything. All
values go into a CSV file beside the page, those that are not of one size of an echo into the page's table
too. A value that was there and is another now is listed on the page of changes, old and new, with the reason;
without a reason nothing is written.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from pathlib import Path

from wiretwin.errors import InputError
from wiretwin.papers.programs import orders
from wiretwin.papers.records import Record, digest
from wiretwin.papers.run import run_paper

__all__ = ["changes", "committed", "main", "updated", "values_csv"]

BEGIN, END = "<!-- values -->", "<!-- end of values -->"
DIGEST = re.compile(r"Digest of the run: `(\w*)`")
RHO = (0.3, 0.5, 0.7, 0.9, 1.1)
"""The values of rho that a page shows."""
Key = tuple[str, str, str]


COLUMNS = ("experiment", "case", "metric", "predicted", "interval", "published")


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def _rows(records: list[Record]) -> dict[Key, tuple[str, str, str]]:
    return {
        (one.experiment, one.case, one.metric): (
            _shown(one.predicted),
            "" if one.low is None else f"{_shown(one.low)} to {_shown(one.high)}",
            "" if one.published is None else _shown(one.published),
        )
        for one in records
    }


def _listed(key: Key) -> bool:
    """Whether a value is in the page's table: sizes of an echo and most of rho are in the file only."""
    if "rho=" in key[1]:
        return key[1].endswith(tuple(f"rho={rho}" for rho in RHO))
    return "size=" not in key[1] or "program=" in key[1]


def committed(text: str) -> dict[Key, tuple[str, str, str]]:
    """Return the values of a CSV file."""
    rows = list(csv.reader(io.StringIO(text)))[1:]
    return {(row[0], row[1], row[2]): (row[3], row[4], row[5]) for row in rows}


def values_csv(records: list[Record]) -> str:
    """Return the CSV file of these values."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([*key, *values] for key, values in _rows(records).items())
    return lines.getvalue()


def updated(text: str, records: list[Record], digest_now: str) -> str:
    """Return a page with these values."""
    lines = ["| experiment | case | metric | model | interval | published |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {key[0]} | `{key[1]}` | {key[2]} | {' | '.join(values)} |"
        for key, values in _rows(records).items()
        if _listed(key)
    ]
    if found := orders(records):
        lines += ["", "Programs, fastest first:", "", *(f"- {order}" for order in found)]
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    return DIGEST.sub(f"Digest of the run: `{digest_now}`", head) + "\n".join([BEGIN, *lines, END]) + tail


def changes(
    old: dict[Key, tuple[str, str, str]], records: list[Record], was: str, now: str, reason: str
) -> str:
    """Return what lists the values that changed, came or went between two digests; nothing where none has.

    Raises
    ------
    InputError
        Values would change, and there is no reason.
    """
    new = _rows(records)
    changed = [key for key in old if key in new and old[key][0] != new[key][0]]
    came, went = len(new.keys() - old.keys()), len(old.keys() - new.keys())
    if not (changed or came or went):
        return ""
    if not reason:
        raise InputError(
            key="REASON",
            reason=f"is needed: {len(changed) + came + went} values would change, come or go",
            allowed="why, in a sentence",
        )
    whole = [key for key in changed if _listed(key)]
    lines = ["", f"## `{was[:8]}` to `{now[:8]}`", "", reason]
    lines += ["", f"New values: {came}; gone: {went}; changed: {len(changed)}."]
    if whole:
        lines += ["", "| experiment | case | metric | old | new |", "|---|---|---|---|---|"]
    lines += [f"| {key[0]} | `{key[1]}` | {key[2]} | {old[key][0]} | {new[key][0]} |" for key in whole]
    if len(whole) < len(changed):
        # What was nothing has no share to change by.
        shares = [(float(new[key][0]), float(old[key][0])) for key in changed if float(old[key][0])]
        furthest = 100 * max((abs(now / before - 1) for now, before in shares), default=0.0)
        lines += [
            "",
            f"Values in the file alone that changed: {len(changed) - len(whole)}; of all, the furthest by",
        ]
        lines += [f"{furthest:.0f} %."]
    return "\n".join([*lines, ""])


def main(arguments: list[str]) -> None:
    """Write the page, the file of its values, and what has changed since."""
    paper, path, reason = arguments[0], Path(arguments[1]), " ".join(arguments[2:])
    records: list[Record] = []
    runs: list[str] = []
    for _count, _name, made, digests in run_paper(paper):
        records += made
        runs += digests
    text, now = path.read_text(encoding="utf-8"), digest(records, runs)
    values, history = path.with_suffix(".csv"), path.with_name(f"{path.stem}-changes.md")
    old = committed(values.read_text(encoding="utf-8")) if values.exists() else {}
    before = DIGEST.search(text)
    found = changes(old, records, before[1] if before else "", now, reason) if old else ""
    if found:
        listed = history.read_text(encoding="utf-8") if history.exists() else f"# Changes: {paper}\n"
        history.write_text(listed + found, encoding="utf-8")
    path.write_text(updated(text, records, now), encoding="utf-8")
    values.write_text(values_csv(records), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
