"""Whether a result is slower than one before it by more than is allowed, as a test of a project asks.

A size fails where it is called slower (`wiretwin.understand.changes`) and the whole interval of its ratio
lies above what is allowed. A layer with such a size is measured again before the gate fails, and fails where
the same size is above it each time: what made one measurement slow is not likely to come back, what the
change did is.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wiretwin.errors import InputError
from wiretwin.understand.changes import Change, Changes

__all__ = ["Gate", "Outcome", "gate"]

Outcome = Literal["passed", "inconclusive", "failed"]
"""``inconclusive``: a slowdown above what is allowed is neither shown nor excluded."""
MOST_AGAIN = 9

Key = tuple[str, int]


@dataclass(frozen=True)
class Gate:
    """What the gate found.

    Attributes
    ----------
    allowed
        The slowdown that is allowed, as a share: 0.1 stands for 10 % more time.
    rounds
        The comparison of the two results, then one for each time that layers were measured again.
    """

    allowed: float
    rounds: Sequence[Changes]

    def layers(self) -> list[str]:
        """Return the layers of both results, in their order."""
        return list(dict.fromkeys(row.layer for row in self.rounds[0].rows))

    def failed(self, layer: str | None = None) -> list[Change]:
        """Return the sizes that were above what is allowed each time, as the last comparison has them."""
        keys = set.intersection(*(set(_above(found, self.allowed)) for found in self.rounds))
        return [
            row
            for row in self.rounds[-1].rows
            if (row.layer, row.bytes) in keys and layer in (None, row.layer)
        ]

    def unknown(self, layer: str | None = None) -> list[Change]:
        """Return the sizes that have not failed, and whose interval does not exclude it."""
        failed = {(row.layer, row.bytes) for row in self.failed()}
        return [
            row
            for row in self.rounds[0].rows
            if (row.layer, row.bytes) not in failed
            and row.verdict != "only after"
            and (row.high is None or row.high > 1 + self.allowed)
            and layer in (None, row.layer)
        ]

    def outcome(self, layer: str | None = None) -> Outcome:
        """Return what is said of a layer, or of all."""
        if self.failed(layer):
            return "failed"
        return "inconclusive" if self.unknown(layer) else "passed"

    def words(self, layer: str) -> str:
        """Say in a sentence what was found of a layer."""
        limit = f"{100 * self.allowed:g} %"
        if rows := self.failed(layer):
            worst = max(rows, key=lambda row: row.ratio or 0.0)
            times = f", {len(self.rounds)} times measured" if len(self.rounds) > 1 else ""
            return (
                f"slower by more than {limit} at {_sizes(rows)}, most at {worst.bytes} B: "
                f"{worst.ratio:.3g} times the time ({worst.low:.3g} to {worst.high:.3g}){times}"
            )
        if rows := self.unknown(layer):
            gone = sum(row.ratio is None for row in rows)
            missing = f", of which {gone} were not measured" if gone else ""
            return f"a slowdown of {limit} is neither shown nor excluded at {_sizes(rows)}{missing}"
        return f"not slower by {limit} at any size"

    def junit(self) -> bytes:
        """Return the outcome as JUnit's XML, a test case a layer; what is inconclusive is skipped."""
        layers = self.layers()
        counts = {
            kind: sum(self.outcome(one) == kind for one in layers) for kind in ("failed", "inconclusive")
        }
        suite = ElementTree.Element(
            "testsuite",
            name="wiretwin compare",
            tests=str(len(layers)),
            failures=str(counts["failed"]),
            skipped=str(counts["inconclusive"]),
            errors="0",
        )
        for layer in layers:
            case = ElementTree.SubElement(suite, "testcase", classname="wiretwin.compare", name=layer)
            kind = {"failed": "failure", "inconclusive": "skipped"}.get(self.outcome(layer))
            if kind is not None:
                ElementTree.SubElement(case, kind, message=self.words(layer))
        ElementTree.indent(suite)
        text: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
        return text + b"\n"

    def markdown(self) -> str:
        """Return the outcome as a table in Markdown."""
        rows = [f"| `{one}` | {self.outcome(one)} | {self.words(one)} |" for one in self.layers()]
        head = f"**{self.outcome()}**: `{self.rounds[0].after}` against `{self.rounds[0].before}`"
        return "\n".join([head, "", "| layer | outcome | |", "|---|---|---|", *rows, ""])


def gate(
    found: Changes, allowed: float, again: Callable[[Sequence[str], int], Changes | None], times: int
) -> Gate:
    """Compare, and measure again before failing.

    Parameters
    ----------
    found
        The two results compared.
    allowed
        The slowdown that is allowed, as a share above 0.
    again
        Measures layers once more, for the time of that number (from 1), and compares; none where it cannot.
    times
        How often at most, 0 to `MOST_AGAIN`.

    Raises
    ------
    InputError
        A value is out of range.
    """
    if not 0 < allowed < float("inf"):
        raise InputError(key="--fail-above", value=allowed, allowed="a share above 0")
    if not 0 <= times <= MOST_AGAIN:
        raise InputError(key="--again", value=times, allowed=f"0 to {MOST_AGAIN}")
    rounds = [found]
    for number in range(1, times + 1):
        if not (failed := Gate(allowed, rounds).failed()):
            break
        more = again(list(dict.fromkeys(row.layer for row in failed)), number)
        if more is None:
            break
        rounds.append(more)
    return Gate(allowed, rounds)


def repetition(folder: Path, number: int) -> Path:
    """Return where a result measured again is kept: beside the first, ``NAME-again-1`` and so on."""
    return folder.with_name(f"{re.sub(r'-again-[0-9]+$', '', folder.name)}-again-{number}")


def _above(found: Changes, allowed: float) -> list[Key]:
    return [
        (row.layer, row.bytes) for row in found.of("slower") if row.low is not None and row.low > 1 + allowed
    ]


def _sizes(rows: Sequence[Change]) -> str:
    first, last = rows[0].bytes, rows[-1].bytes
    return f"{first} B" if len(rows) == 1 else f"{len(rows)} sizes ({first} to {last} B)"
