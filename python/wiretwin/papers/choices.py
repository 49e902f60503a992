"""What papers leave open: each choice with its range and source, and Latin hypercubes over all of them.

`data/papers/choices/` has a file for each paper. A choice has a key (a sheet and its value, a field of the
rules of an experiment, or a table of a scenario and its key), either ends and a scale or a list of values,
and the source of its range. What the model has by default stands where the key says, and only there.
"""

from __future__ import annotations

import math
import random
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from wiretwin.errors import InputError
from wiretwin.papers.published import FOLDER

__all__ = ["Choice", "Draw", "choices", "hypercube"]

Draw = Mapping[str, float | str]
"""A value for each choice of a paper by its key; none for the model as it is."""


@dataclass(frozen=True)
class Choice:
    """Something that a paper leaves open.

    Attributes
    ----------
    key
        What it is.
    source
        Why its range is plausible.
    low, high
        Its ends, in the unit of the key, where it is a number.
    logarithmic
        Whether a factor is as likely as its inverse, and not a difference as its opposite.
    values
        What it may be, where it is one of a few.
    """

    key: str
    source: str
    low: float = 0.0
    high: float = 0.0
    logarithmic: bool = True
    values: tuple[float | str, ...] = ()

    def at(self, share: float) -> float | str:
        """Return the value below which `share` of the range lies; `share` is 0 or more and below 1."""
        if self.values:
            return self.values[int(share * len(self.values))]
        if self.logarithmic:
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)


@cache
def choices(paper: str) -> Sequence[Choice]:
    """Return the choices of a paper, in the order of its file.

    Raises
    ------
    InputError
        A choice has keys that do not make one.
    """
    path = FOLDER / "choices" / f"{paper}.toml"
    found = []
    for at, row in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["choice"]):
        row = {**row, "values": tuple(row.get("values", ()))}
        try:
            one = Choice(**row)
        except TypeError as error:
            raise InputError(file=str(path), key=f"choice[{at}]", reason=str(error)) from None
        if not one.values and not (0 < one.low < one.high or (not one.logarithmic and one.low < one.high)):
            raise InputError(file=str(path), key=f"choice[{at}]", value=one.key, allowed="low below high")
        found.append(one)
    return tuple(found)


def hypercube(paper: str, count: int) -> list[Draw]:
    """Return so many draws of all choices of a paper, the range of each cut into as many equal parts.

    Each part of each choice is drawn from once (McKay, Beckman and Conover 1979). The draws are the same
    whenever they are made.
    """
    columns = {}
    for one in choices(paper):
        stream = random.Random(f"{paper} {one.key}")
        order = stream.sample(range(count), count)
        columns[one.key] = [one.at((place + stream.random()) / count) for place in order]
    return [{key: column[number] for key, column in columns.items()} for number in range(count)]
