"""The page on which predictions are committed before anything is compared with them.

``python -m wiretwin.papers.page lin1995 docs/papers/lin1995.md "why they changed"`` runs every experiment and
writes the page's table. A value that was on the page and is another now is listed below it, old and new,
with the reason; without a reason a page whose values would change is left alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from wiretwin.errors import InputError
from wiretwin.papers.records import Record, digest
from wiretwin.papers.run import run_paper

__all__ = ["committed", "main", "updated"]

BEGIN, END = "<!-- values -->", "<!-- end of values -->"
Key = tuple[str, str, str]


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


def committed(text: str) -> dict[Key, tuple[str, str, str]]:
    """Return the values on a page."""
    found: dict[Key, tuple[str, str, str]] = {}
    for line in text.split(BEGIN)[1].split(END)[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 6 and cells[0] not in ("experiment", "") and not cells[0].startswith("-"):
            found[cells[0], cells[1].strip("`"), cells[2]] = (cells[3], cells[4], cells[5])
    return found


def updated(text: str, records: list[Record], digest_now: str, reason: str) -> str:
    """Return a page with these values, and with those that changed listed.

    Raises
    ------
    InputError
        Values would change, and there is no reason.
    """
    old, new = committed(text), _rows(records)
    changed = [key for key in old if key in new and old[key][0] != new[key][0]]
    if changed and not reason:
        raise InputError(
            key="REASON",
            reason=f"is needed: {len(changed)} values would change",
            allowed="why, in a sentence",
        )
    lines = ["| experiment | case | metric | model | interval | published |", "|---|---|---|---|---|---|"]
    lines += [f"| {key[0]} | `{key[1]}` | {key[2]} | {' | '.join(values)} |" for key, values in new.items()]
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    before = re.search(r"Digest of the run: `(\w+)`", text)
    head = re.sub(r"Digest of the run: `\w*`", f"Digest of the run: `{digest_now}`", head)
    page = head + "\n".join([BEGIN, *lines, END]) + tail
    if changed:
        was = before[1] if before else ""
        page = page.rstrip() + f"\n\n### {reason}\n\nFrom `{was}` to `{digest_now}`.\n\n"
        page += "| experiment | case | metric | old | new |\n|---|---|---|---|---|\n"
        page += "".join(
            f"| {key[0]} | `{key[1]}` | {key[2]} | {old[key][0]} | {new[key][0]} |\n" for key in changed
        )
    return page


def main(arguments: list[str]) -> None:
    """Write the page."""
    paper, path, reason = arguments[0], Path(arguments[1]), " ".join(arguments[2:])
    records: list[Record] = []
    runs: list[str] = []
    for _count, _name, made, digests in run_paper(paper):
        records += made
        runs += digests
    path.write_text(updated(path.read_text(encoding="utf-8"), records, digest(records, runs), reason))


if __name__ == "__main__":
    main(sys.argv[1:])
