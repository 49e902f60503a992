"""The page on which predictions are committed before anything is compared with them.

``python -m wiretwin.papers.page lin1995 docs/papers/lin1995.md "why they changed"`` runs everything. All
values go into a CSV file beside the page, those that are not of one size of an echo into the page's table
too. A value that was there and is another now is listed on the page, old and new, with the reason; without a
reason nothing is written.
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

__all__ = ["committed", "main", "updated", "values_csv"]

BEGIN, END = "<!-- values -->", "<!-- end of values -->"
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


def updated(
    text: str, old: dict[Key, tuple[str, str, str]], records: list[Record], digest_now: str, reason: str
) -> str:
    """Return a page with these values, and with those that changed listed.

    Raises
    ------
    InputError
        Values would change, and there is no reason.
    """
    new = _rows(records)
    changed = [key for key in old if key in new and old[key][0] != new[key][0]]
    if changed and not reason:
        raise InputError(
            key="REASON",
            reason=f"is needed: {len(changed)} values would change",
            allowed="why, in a sentence",
        )
    lines = ["| experiment | case | metric | model | interval | published |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {key[0]} | `{key[1]}` | {key[2]} | {' | '.join(values)} |"
        for key, values in new.items()
        if _listed(key)
    ]
    if found := orders(records):
        lines += ["", "Programs, fastest first:", "", *(f"- {order}" for order in found)]
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    before = re.search(r"Digest of the run: `(\w+)`", text)
    head = re.sub(r"Digest of the run: `\w*`", f"Digest of the run: `{digest_now}`", head)
    page = head + "\n".join([BEGIN, *lines, END]) + tail
    if changed:
        was = before[1] if before else ""
        page = page.rstrip() + f"\n\n### {reason}\n\nFrom `{was}` to `{digest_now}`.\n\n"
        page += "| experiment | case | metric | old | new |\n|---|---|---|---|---|\n"
        whole = [key for key in changed if _listed(key)]
        page += "".join(
            f"| {key[0]} | `{key[1]}` | {key[2]} | {old[key][0]} | {new[key][0]} |\n" for key in whole
        )
        if len(whole) < len(changed):
            ratios = [abs(float(new[key][0]) / float(old[key][0]) - 1) for key in changed]
            page += (
                f"\nValues of one size that changed: {len(changed) - len(whole)}; of all, the furthest by "
            )
            page += f"{100 * max(ratios):.0f} %.\n"
    return page


def main(arguments: list[str]) -> None:
    """Write the page and its file."""
    paper, path, reason = arguments[0], Path(arguments[1]), " ".join(arguments[2:])
    records: list[Record] = []
    runs: list[str] = []
    for _count, _name, made, digests in run_paper(paper):
        records += made
        runs += digests
    beside = path.with_suffix(".csv")
    old = committed(beside.read_text(encoding="utf-8")) if beside.exists() else {}
    path.write_text(updated(path.read_text(encoding="utf-8"), old, records, digest(records, runs), reason))
    beside.write_text(values_csv(records))


if __name__ == "__main__":
    main(sys.argv[1:])
