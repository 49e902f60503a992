"""Predictions beside what came, as the record has them that intervals are learnt from.

`data/accuracy/past.csv` grows by what the accuracy benches make (`wiretwin.predict.learnt` reads it); a row
is never taken out. A program that is in the record helps to make its own interval, so what the benches print
is judged by the record without it: each row by what all other programs would have made of it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from typing import Any

from wiretwin.predict import learnt
from wiretwin.predict.learnt import Past
from wiretwin.predict.records import Comparison, Launch
from wiretwin.states import state_of

#: An interval as wide as half its middle says too little to count as holding anything.
WIDEST = 0.5


def past(agreed: Comparison, name: str | None = None) -> dict[str, Any]:
    """Return a prediction and its run as a row of the record, in the state of the host that was compared.

    `name` tells scripts of one name apart.
    """
    frozen = agreed.prediction
    state = next((one for one in frozen.states if one.name == agreed.state), None)
    of = frozen if state is None else state
    assert of.noise is not None
    assert frozen.setup is not None
    value = of.seconds.value
    return {
        "edition": str(learnt.EDITION),
        "setup": frozen.setup,
        "program": name or " ".join([frozen.program, *frozen.args]),
        "ranks": frozen.ranks,
        "when": frozen.frozen_utc[:10],
        "predicted_s": f"{value:.6g}",
        "compute_share": f"{of.compute_share:.3f}",
        "below": f"{math.log(value / of.noise.low):.4f}",
        "above": f"{math.log(of.noise.high / value):.4f}",
        "launches_s": " ".join(f"{one.seconds:.6g}" for one in compared(agreed)),
    }


def compared(agreed: Comparison) -> list[Launch]:
    """Return the launches that the actual time is the median of."""
    states = agreed.prediction.states
    return [
        one
        for one in agreed.run.launches
        if one.split is None
        and (agreed.state is None or getattr(state_of(one.crossing_ns, states), "name", None) == agreed.state)
    ]


def add(rows: Iterable[dict[str, Any]]) -> None:
    """Add rows to the record, but those that are there already."""
    with learnt.FILE.open(newline="", encoding="utf-8") as stream:
        have = list(csv.DictReader(stream))
    new = [row for row in ({key: str(one[key]) for key in learnt.COLUMNS} for one in rows) if row not in have]
    with learnt.FILE.open("a", newline="", encoding="utf-8") as stream:
        csv.DictWriter(stream, learnt.COLUMNS, lineterminator="\n").writerows(new)


def with_rows(rows: Iterable[dict[str, Any]]) -> list[Past]:
    """Return the record with these rows, which may be in it already."""
    return list(dict.fromkeys([*learnt.read(), *map(learnt.parsed, rows)]))


def interval(row: dict[str, Any], others: Sequence[Past]) -> tuple[float, float]:
    """Return the interval that a row would have got from a record without its program, in seconds."""
    seconds, share = float(row["predicted_s"]), float(row["compute_share"])
    without = [one for one in others if one.program != row["program"]]
    errors = learnt.errors(row["setup"], without)
    below, above = (errors.with_noise(float(row[side]), seconds, share) for side in ("below", "above"))
    return seconds * math.exp(-below), seconds * math.exp(above)


def covers(value: float, low: float, high: float) -> bool:
    """Return whether a value lies inside an interval that is narrow enough to say something."""
    return low <= value <= high and high - low <= WIDEST * (low + high) / 2
