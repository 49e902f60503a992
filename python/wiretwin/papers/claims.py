"""What the papers claim of who is faster, from which size on, and by how much, held against the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wiretwin.errors import InputError
from wiretwin.papers.published import FOLDER, Stored, read_published, stored

__all__ = ["ABOUT", "Claim", "claims"]

ABOUT = 0.2
"""How far a value may be from what a claim says it is about, relative to that."""

BOUNDS = ("about", "least", "most")


@dataclass(frozen=True)
class Claim:
    """A claim of a paper.

    Attributes
    ----------
    says
        The claim.
    holds
        Whether the model agrees; a claim that is not tested does not hold.
    reason
        Why it does not; nothing where it does.
    found
        The checked values, in the order of the checks.
    experiments
        Those whose values are checked.
    """

    says: str
    holds: bool
    reason: str
    found: tuple[float, ...]
    experiments: frozenset[str] = frozenset()


def claims(paper: str, values: Stored | None = None) -> Sequence[Claim]:
    """Return the claims of a paper, held against `values`, by default those that the model has now.

    Raises
    ------
    InputError
        A claim has no words, an unknown check, or one without a bound.
    """
    path = FOLDER / "published" / f"{paper}.toml"
    found: list[Claim] = []
    for at, row in enumerate(read_published(path)["claims"]):
        where = f"claims[{at}]"
        if set(row) - {"reason"} != {"says", "checks"}:
            raise InputError(
                file=str(path),
                key=where,
                value=", ".join(row),
                allowed="says, checks, and a reason where it fails",
            )
        measured = [
            _checked(f"{path}: {where}.checks[{number}]", check, values or stored(paper, "now"))
            for number, check in enumerate(row["checks"])
        ]
        holds = bool(measured) and all(ok for _, ok in measured)
        about = frozenset(of.split()[0] for check in row["checks"] for of in _named(check))
        checked = tuple(value for value, _ in measured)
        found.append(Claim(row["says"], holds, row.get("reason", ""), checked, about))
    return found


def _named(check: dict[str, Any]) -> list[str]:
    """Return the names of the values that a check is of."""
    return [
        name
        for key, of in check.items()
        if key not in BOUNDS
        for name in ([of] if isinstance(of, str) else of)
    ]


def _checked(where: str, check: dict[str, Any], values: Stored) -> tuple[float, bool]:
    """Return what a check is of, and whether it lies within the bounds."""
    bounds = {key: check[key] for key in BOUNDS if key in check}
    match {key: one for key, one in check.items() if key not in BOUNDS}:
        case {"value": str(of), **others} if not others:
            value = values.find(of).value
        case {"quotient": [above, below], **others} if not others:
            value = values.find(above).value / values.find(below).value
        case {"difference": [one, other], **others} if not others:
            value = values.find(one).value - values.find(other).value
        case other:
            raise InputError(key=where, value=", ".join(other), allowed="value, quotient or difference")
    if not bounds:
        raise InputError(key=where, reason="has no bound", allowed=", ".join(BOUNDS))
    about = bounds.get("about", value)
    within = abs(value - about) <= ABOUT * abs(about)
    return value, within and bounds.get("least", value) <= value <= bounds.get("most", value)
