"""The page on which predictions are committed before anything is compared with them.

``python -m wiretwin.papers.page lin1995 docs/papers/lin1995.md "why they changed"`` runs everything. All
values go into a CSV file in `data/papers/now/`, those that are not of one size of an echo into the page's
table too. A value that was there and is another now is listed on the page of changes, old and new, with the
reason; without a reason nothing is written. Results that were opened stand beside what was predicted blind
and what the model says now, with findings above and claims below them; ``--opened`` in place of the reason
writes these alone.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from pathlib import Path

from wiretwin.errors import InputError
from wiretwin.papers.claims import claims
from wiretwin.papers.findings import findings
from wiretwin.papers.programs import orders
from wiretwin.papers.published import FOLDER, Valued, committed, opened, score, stored
from wiretwin.papers.records import Key, Record, digest
from wiretwin.papers.run import run_paper

__all__ = ["NOW", "changes", "main", "updated", "values_csv", "with_opened"]

SHOWN_SHARE = 0.02
"""A value that changed by less is counted and not listed."""
NOW = FOLDER / "now"
"""Where the values of each paper lie."""
BEGIN, END = "<!-- values -->", "<!-- end of values -->"
OPENED, SHUT = "<!-- opened results -->", "<!-- end of opened results -->"
DIGEST = re.compile(r"Digest of the run: `(\w*)`")
RHO = (0.3, 0.5, 0.7, 0.9, 1.1)
"""The values of rho that a page shows."""


COLUMNS = ("experiment", "case", "metric", "predicted", "interval", "published")


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def _interval(one: Record | Valued) -> str:
    return "" if one.low is None else f"{_shown(one.low)} to {_shown(one.high)}"


def _percent(error: float | None) -> str:
    """Return an error with its sign, to three digits, without an exponent."""
    if error is None:
        return ""
    return f"{100 * error:+.0f} %" if abs(error) >= 10 else f"{100 * error:+.3g} %"


def _rows(records: list[Record]) -> dict[Key, tuple[str, str, str]]:
    return {
        (one.experiment, one.case, one.metric): (
            _shown(one.predicted),
            _interval(one),
            "" if one.published is None else _shown(one.published),
        )
        for one in records
    }


def _listed(key: Key) -> bool:
    """Whether a value is in the page's table: sizes of an echo and most of rho are in the file only."""
    if "rho=" in key[1]:
        return key[1].endswith(tuple(f"rho={rho}" for rho in RHO))
    return "size=" not in key[1] or "program=" in key[1]


def values_csv(records: list[Record]) -> str:
    """Return the CSV file of these values."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([*key, *values] for key, values in _rows(records).items())
    return lines.getvalue()


def updated(text: str, records: list[Record], digest_now: str) -> str:
    """Return a page with these values, but for those whose results are opened: they stand beside them."""
    beside = {(one.experiment, one.case, one.metric) for one in opened(records[0].paper)}
    lines = ["| experiment | case | metric | model | interval | published |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {key[0]} | `{key[1]}` | {key[2]} | {' | '.join(values)} |"
        for key, values in _rows(records).items()
        if _listed(key) and key not in beside
    ]
    if found := orders(records):
        lines += ["", "Programs, fastest first:", "", *(f"- {order}" for order in found)]
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    return DIGEST.sub(f"Digest of the run: `{digest_now}`", head) + "\n".join([BEGIN, *lines, END]) + tail


def with_opened(text: str, paper: str) -> str:
    """Return a page with the opened results and the claims of its paper, held against the values on file."""
    results = opened(paper)
    count = sum(one.counted for one in results)
    lines = [
        *(f"- {finding}" for finding in findings(paper)),
        "",
        f"| {count} results | median error | ninth decile | worst | inside 90 % | median width "
        "| ninth decile | interval score |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for which in ("blind", "now"):
        found = score(results, which)
        errors = " | ".join(f"{100 * one:.3g} %" for one in (found.median, found.ninth_decile, found.worst))
        widths = " | ".join(f"{100 * one:.3g} %" for one in (found.width, found.ninth_width))
        lines.append(f"| {which} | {errors} | {found.inside} | {widths} | {found.interval_score:.3g} |")
    lines += [
        "",
        "| experiment | case | metric | published | blind | interval | error | now | interval | error "
        "| hangs on |",
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|---|---|")
    remarks: list[str] = []
    for one in results:
        if one.remark and one.remark not in remarks:
            remarks.append(one.remark)
        note = f" ({remarks.index(one.remark) + 1})" if one.remark else ""
        cells = [one.experiment, f"`{one.case}`", one.metric, _shown(one.published) + note]
        for value, error in ((one.blind, one.error("blind")), (one.now, one.error("now"))):
            cells += [_shown(value.value), _interval(value), _percent(error)]
        cells.append(one.hangs_on)
        lines.append(f"| {' | '.join(cells)} |")
    for number, remark in enumerate(remarks, 1):
        uncounted = any(one.remark == remark and not one.counted for one in results)
        lines += ["", f"({number}) {remark}{'; not counted' if uncounted else ''}."]
    held = claims(paper)
    lines += ["", f"Claims, of which {sum(one.holds for one in held)} of {len(held)} hold now:", ""]
    lines += ["| | claim | why not |", "|---|---|---|"]
    lines += [f"| {'✓' if one.holds else '✗'} | {one.says} | {one.reason} |" for one in held]
    head, tail = text.split(OPENED)[0], text.split(SHUT)[1]
    return head + "\n".join([OPENED, *lines, SHUT]) + tail


def _share(now: str, before: str) -> float:
    """By which share a value has changed; what was nothing has changed by more than any."""
    return abs(float(now) / float(before) - 1) if float(before) else float("inf")


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
    shown = [key for key in whole if _share(new[key][0], old[key][0]) >= SHOWN_SHARE]
    lines = ["", f"## `{was[:8]}` to `{now[:8]}`", "", reason]
    lines += ["", f"New values: {came}; gone: {went}; changed: {len(changed)}."]
    if shown:
        lines += ["", "| experiment | case | metric | old | new |", "|---|---|---|---|---|"]
    lines += [f"| {key[0]} | `{key[1]}` | {key[2]} | {old[key][0]} | {new[key][0]} |" for key in shown]
    if len(shown) < len(whole):
        lines += ["", f"Values of the page that changed by less than 2 %: {len(whole) - len(shown)}."]
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
    if reason == "--opened":
        path.write_text(with_opened(path.read_text(encoding="utf-8"), paper), encoding="utf-8")
        return
    records: list[Record] = []
    runs: list[str] = []
    for _count, _name, made, digests in run_paper(paper):
        records += made
        runs += digests
    text, now = path.read_text(encoding="utf-8"), digest(records, runs)
    values, history = NOW / f"{paper}.csv", path.with_name(f"{path.stem}-changes.md")
    old = committed(values.read_text(encoding="utf-8")) if values.exists() else {}
    before = DIGEST.search(text)
    found = changes(old, records, before[1] if before else "", now, reason) if old else ""
    if found:
        listed = history.read_text(encoding="utf-8") if history.exists() else f"# Changes: {paper}\n"
        history.write_text(listed + found, encoding="utf-8")
    values.write_text(values_csv(records), encoding="utf-8")
    stored.cache_clear()
    path.write_text(with_opened(updated(text, records, now), paper), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
