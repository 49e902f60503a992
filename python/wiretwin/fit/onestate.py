"""The launches of a result that were made in one state of the host: what a median may be taken over.

An average over two states is the time of no launch. All layers of a measurement are interleaved, so the state
is chosen for them together: the one in which most launches were.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import polars as pl

from wiretwin import states
from wiretwin.fit.stats import summarise

if TYPE_CHECKING:
    from wiretwin.results import Launch, Result

__all__ = ["LEAST", "OneState", "differ", "in_one_state"]

LEAST = 3
"""A layer with fewer launches than this in the state of most launches is read in the state it has most of."""
_DIFFER = 1.05
"""States whose round trips differ by less, in the mean over the sizes, are one."""


@dataclass(frozen=True)
class OneState:
    """Samples of one state a layer.

    Attributes
    ----------
    samples
        Those samples, in the columns of a result.
    states
        By layer the state's name, of layers whose times depend on it.
    left_out
        By layer the number of launches with samples that were made in another state, or in more than one.
    """

    samples: pl.DataFrame
    states: dict[str, str]
    left_out: dict[str, int]


_kept: WeakKeyDictionary[Result, tuple[list[Launch], OneState]] = WeakKeyDictionary()


def in_one_state(result: Result) -> OneState:
    """Return the samples of a result in the state that most launches were in.

    A layer whose round trips do not depend on the state, or whose ranks cannot tell it, keeps all launches.
    Tables, findings and a report of one result ask for the same: it is found anew only when the result has
    other launches.
    """
    made = [*result.manifest.launches]
    kept = _kept.get(result)
    if kept is None or kept[0] != made:
        kept = _kept[result] = made, _found(result)
    return kept[1]


def _found(result: Result) -> OneState:
    samples = result.samples()
    launches = [one for one in result.manifest.launches if one.rows]
    found = states.groups([one.crossing_ns for one in launches])
    if len(found) < 2:
        return OneState(samples, {}, {})
    members = [{launches[index].launch for index in group} for group in found]
    most = max(range(len(members)), key=lambda at: len(members[at]))
    summary = summarise(samples)
    named: dict[str, str] = {}
    dropped: dict[str, int] = {}
    out: set[int] = set()
    for name in dict.fromkeys(one.name for one in launches):
        own = {one.launch for one in launches if one.name == name}
        shares = [own & group for group in members]
        if not differ(summary.filter(pl.col("layer") == name), [sorted(part) for part in shares if part]):
            continue
        at = most if len(shares[most]) >= LEAST else max(range(len(shares)), key=lambda k: len(shares[k]))
        named[name] = states.name(at, len(members))
        dropped[name] = len(own - shares[at])
        out |= own - shares[at]
    return OneState(samples.filter(~pl.col("launch").is_in(sorted(out))), named, dropped)


def differ(rows: pl.DataFrame, members: Sequence[Sequence[int]]) -> bool:
    """Whether round trips differ between groups of launches by more than a fit would make of it.

    Parameters
    ----------
    rows
        A layer's rows, as `wiretwin.fit.stats.summarise` gives them.
    members
        Launches by group.
    """
    echo = rows.filter((pl.col("loop") == "echo") & (pl.col("value_ns") > 0))
    typical = [
        echo.filter(pl.col("launch").is_in(list(group)))
        .group_by("bytes")
        .agg(value=pl.col("value_ns").median().log())
        for group in members
    ]
    return any(
        abs(
            one.join(other, on="bytes").select((pl.col("value") - pl.col("value_right")).mean()).item() or 0.0
        )
        > math.log(_DIFFER)
        for one, other in combinations(typical, 2)
    )
