"""What to choose: which layer wins at which sizes, and which settings are worth having.

A layer wins where its interval lies below that of every other layer measured at that size. A setting is
advised where its variant is certainly faster than the plain layer at some sizes and at none certainly
slower, or where a counter-run has confirmed that it removes an anomaly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wiretwin.understand.api import Understanding, understand
from wiretwin.understand.settings import Setting, of_finding, of_words
from wiretwin.understand.view import View, views

if TYPE_CHECKING:
    from wiretwin.fit.stats import Interval
    from wiretwin.results import Result

__all__ = ["Advice", "Win", "advise"]


@dataclass(frozen=True)
class Win:
    """Neighbouring measured sizes at which one configuration is certainly the fastest.

    Attributes
    ----------
    from_bytes, to_bytes
        The first and the last of them.
    layer
        The configuration.
    least_times
        The next takes at least so many times as long, at the size where it comes nearest: by the ends of the
        intervals that face each other, not by the values.
    """

    from_bytes: int
    to_bytes: int
    layer: str
    least_times: float


@dataclass(frozen=True)
class Advice:
    """What to choose, and what nothing can be said about.

    Attributes
    ----------
    wins
        By size.
    undecided
        Sizes that several layers were measured at and none wins, bytes.
    settings
        Settings worth having.
    """

    wins: list[Win]
    undecided: list[int]
    settings: list[Setting]


def advise(result: Result, understanding: Understanding | None = None) -> Advice:
    """Advise by a result.

    Parameters
    ----------
    result
        A result.
    understanding
        What was found in it, if that is known already.
    """
    seen = views(result)
    found = understanding if understanding is not None else understand(result)
    wins, undecided = _wins(seen)
    settings = [*_variants(seen), *(setting for one in found.findings for setting in of_finding(one))]
    return Advice(wins, undecided, list(dict.fromkeys(settings)))


def _curve(view: View) -> dict[int, Interval]:
    sizes, times = view.typical_us()
    return {int(size): time for size, time in zip(sizes, times, strict=True)}


def _wins(seen: list[View]) -> tuple[list[Win], list[int]]:
    curves = {view.name: _curve(view) for view in seen}
    wins: list[Win] = []
    undecided = []
    last: str | None = None
    for size in sorted({size for curve in curves.values() for size in curve}):
        at = sorted(
            ((curve[size].value, curve[size], name) for name, curve in curves.items() if size in curve),
            key=lambda one: (one[0], one[2]),
        )
        if len(at) < 2:
            last = None
            continue
        _, best, name = at[0]
        if not all(best.high < other.low for _, other, _ in at[1:]):
            undecided.append(size)
            last = None
            continue
        times = min(other.low for _, other, _ in at[1:]) / best.high
        if last == name:
            wins[-1] = Win(wins[-1].from_bytes, size, name, min(times, wins[-1].least_times))
        else:
            wins.append(Win(size, size, name, times))
        last = name
    return wins, undecided


def _variants(seen: list[View]) -> list[Setting]:
    """Compare each variant by one word with the same configuration without it."""
    by_name = {view.name: view for view in seen}
    settings = []
    for view in seen:
        for word in view.words:
            without = "+".join([view.layer, *(other for other in view.words if other != word)])
            if without not in by_name:
                continue
            plain, own = _curve(by_name[without]), _curve(view)
            shared = sorted(set(plain) & set(own))
            quicker = [size for size in shared if own[size].high < plain[size].low]
            slower = [size for size in shared if own[size].low > plain[size].high]
            if quicker and not slower:
                gain = max(plain[size].low / own[size].high for size in quicker)
                because = (
                    f"{view.name} is faster than {without} at {len(quicker)} of {len(shared)} sizes, "
                    f"{quicker[0]} to {quicker[-1]} B, at best at least {gain:.2f} times, and slower at none"
                )
                settings += of_words(view.layer, view.words, word, because)
    return settings
