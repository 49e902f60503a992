"""What opened results and claims of a paper say of its model, in sentences computed from the values on file.

The page of a paper and the report of a rebuilt one begin with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from wiretwin.papers.claims import Claim, claims
from wiretwin.papers.published import Opened, opened, score
from wiretwin.papers.records import Record

__all__ = ["findings", "findings_of_fit", "percent"]


def findings(paper: str, experiments: Set[str] | None = None) -> list[str]:
    """Return how right the model is now, where it is furthest off, which claims fail, and what moves it most.

    Parameters
    ----------
    paper
        Its name.
    experiments
        Results of these alone, and claims that are about nothing else; without them, all.
    """
    results = [one for one in opened(paper) if experiments is None or one.experiment in experiments]
    counted = [one for one in results if one.counted and one.published]
    held = [
        one
        for one in claims(paper)
        if experiments is None or (one.experiments and one.experiments <= experiments)
    ]
    return [*_errors(counted), *_claims(held), *_choices(counted)]


def findings_of_fit(records: Sequence[Record]) -> list[str]:
    """Return how far the values that a model was fitted to are from the published ones."""
    errors = {one: one.predicted / one.published - 1 for one in records if one.published}
    if not errors:
        return []
    worst = max(errors, key=lambda one: abs(errors[one]))
    of = f"{worst.metric} of {worst.experiment} (`{worst.case}`)"
    if len(errors) == 1:
        return [f"The one value that the model was fitted to, {of}, is {percent(errors[worst])} off."]
    count = f"{len(errors)} values that the model was fitted to"
    return [f"Of {count} the furthest off is {of}, by {percent(errors[worst])}."]


def percent(share: float, sign: str = "+") -> str:
    """Return a share in per cent, to two digits or to the whole one, without an exponent."""
    return f"{100 * share:{sign}.0f} %" if abs(share) >= 0.1 else f"{100 * share:{sign}.2g} %"


def _count(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"


def _errors(results: Sequence[Opened]) -> list[str]:
    if not results:
        return []
    now, blind = score(results, "now"), score(results, "blind")
    worst = max(results, key=lambda one: abs(one.error("now") or 0.0))
    error = percent(worst.error("now") or 0.0)
    return [
        f"The median error of {_count(len(results), 'published result')} is {percent(now.median, '')}, "
        f"and was {percent(blind.median, '')} when they were predicted blind; the 90 % intervals hold "
        f"{now.inside} of them now, and held {blind.inside} then.",
        f"Furthest off is {worst.metric} of {worst.experiment} (`{worst.case}`): the model has "
        f"{worst.now.value:.4g} where {worst.published:.4g} was published, an error of {error}.",
    ]


def _claims(held: Sequence[Claim]) -> list[str]:
    if not held:
        return []
    agrees = sum(one.holds for one in held)
    if agrees == len(held):
        all_of = "the one claim" if agrees == 1 else f"all {agrees} claims"
        return [f"The model agrees with {all_of} of the paper."]
    return [f"Of {_count(len(held), 'claim')} of the paper the model agrees with {agrees}."]


def _choices(results: Sequence[Opened]) -> list[str]:
    moved = Counter(one.hangs_on.rpartition(" (")[0] for one in results if one.hangs_on)
    if not moved:
        return []
    (choice, count), *_ = moved.most_common(1)
    return [
        f"Of all choices that the paper leaves open, `{choice}` is the one that most results hang on: "
        f"{count} of {len(results)}."
    ]
