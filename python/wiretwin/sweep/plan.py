"""What a sweep runs: values for keys of a scenario, every combination of them, and seeds."""

from __future__ import annotations

import copy
import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from wiretwin.errors import InputError
from wiretwin.model.local import PRESETS
from wiretwin.scenario import Scenario
from wiretwin.scenario.model import TABLES

__all__ = ["MOST_POINTS", "Axis", "Value", "parse_axis", "place", "points", "seed_of"]

Value = str | int | float | bool
"""A value as a scenario file holds it."""

MOST_POINTS = 100_000
"""Of one sweep."""

_ALLOWED = "KEY=a,b,c or KEY=low:high:step, such as echo.size=4B,4KiB or network.load[0].share=0.1:0.9:0.2"


@dataclass(frozen=True)
class Axis:
    """A key of the scenario and the values that it takes.

    Attributes
    ----------
    key
        As the user wrote it: the whole path, or its end where that is clear.
    path
        From the top of the scenario: names of tables, numbers of tables in a list.
    values
        At least one, each once.
    """

    key: str
    path: tuple[str | int, ...]
    values: tuple[Value, ...]


def parse_axis(text: str, scenario: Scenario) -> Axis:
    """Read ``KEY=VALUES`` for a scenario.

    Raises
    ------
    InputError
        Not of that form, no such key, a range that is none.
    """
    key, equals, values = text.partition("=")
    if not equals or not key or not values:
        raise InputError(key="--over", value=text, allowed=_ALLOWED)
    return Axis(key, _resolve(key, scenario), _values(values, text))


def _values(text: str, whole: str) -> tuple[Value, ...]:
    parts = text.split(":")
    found = (
        _range(*parts, whole=whole) if len(parts) == 3 else [_value(one.strip()) for one in text.split(",")]
    )
    if len(parts) == 2 or "" in found:
        raise InputError(key="--over", value=whole, allowed=_ALLOWED)
    if len({str(value) for value in found}) < len(found):
        raise InputError(key="--over", value=whole, reason="names a value twice", allowed="each value once")
    return tuple(found)


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _range(low: str, high: str, step: str, *, whole: str) -> list[Value]:
    """Count in decimals: 0.1:0.3:0.1 are three values, and the last is 0.3."""
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([A-Za-z/]*)\s*", step)
    try:
        if match is None:
            raise InvalidOperation
        first, last, by = Decimal(low), Decimal(high), Decimal(match[1])
        count = int((last - first) / by) + 1
    except (ArithmeticError, ValueError):
        raise InputError(key="--over", value=whole, reason="is no range", allowed=_ALLOWED) from None
    if by <= 0 or last < first or count > MOST_POINTS:
        raise InputError(
            key="--over", value=whole, reason="is no range",
            allowed=f"low up to high by a step above 0, in at most {MOST_POINTS} values",
        )  # fmt: skip
    numbers = [first + index * by for index in range(count)]
    if match[2]:
        return [f"{number} {match[2]}" for number in numbers]
    whole_numbers = all(number == int(number) for number in numbers)
    return [int(number) if whole_numbers else float(number) for number in numbers]


def _leaves(table: Mapping[str, Any], path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found: list[tuple[str | int, ...]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            found += _leaves(value, (*path, key))
        elif isinstance(value, list):
            for index, one in enumerate(value):
                found += _leaves(one, (*path, key, index)) if isinstance(one, dict) else []
        else:
            found.append((*path, key))
    return found


def _shown(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def _resolve(key: str, scenario: Scenario) -> tuple[str | int, ...]:
    """Find a key by its whole path, or by its end where only one key of the scenario ends so."""
    parts = re.findall(r"[^.\[\]]+", key)
    wanted = tuple(int(part) if part.isdecimal() else part for part in parts)
    leaves = _leaves(_complete(scenario))
    fitting = [leaf for leaf in leaves if wanted in (leaf[-len(wanted) :], _named(leaf)[-len(wanted) :])]
    exact = [leaf for leaf in fitting if wanted in (leaf, _named(leaf))]
    if len(exact) == 1 or len(fitting) == 1:
        return (exact or fitting)[0]
    if fitting:
        allowed = " or ".join(map(_shown, fitting))
        raise InputError(key="--over", value=key, reason="is not one key", allowed=allowed)
    if wanted[:2] == ("program", "parameters") and len(wanted) == 3 and len(scenario.program) == 1:
        return ("program", 0, *wanted[1:])
    if wanted[0] == "network" and len(wanted) == 2 and scenario.network is not None:
        # What is no key of the network is refused when it is read.
        return wanted
    reason = "is what replications are for" if wanted[-1:] == ("seed",) else "is no key of the scenario"
    raise InputError(key="--over", value=key, reason=reason, allowed=", ".join(map(_shown, leaves)))


def _named(path: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return a path without the numbers in it."""
    return tuple(part for part in path if isinstance(part, str))


def _complete(scenario: Scenario) -> dict[str, Any]:
    """Return the tables of the scenario with the keys that may be given and are not."""
    found: dict[str, Any] = {}
    for name, table in scenario.document.items():
        if name not in TABLES:
            continue
        value = getattr(scenario, name)
        if name == "network":
            preset = PRESETS.get(str(table.get("preset")))
            found[name] = dict.fromkeys(() if preset is None else preset.defaults) | table
        elif name == "program":
            absent = dict.fromkeys(type(value[0]).model_fields)
            found[name] = [absent | one for one in table]
        else:
            found[name] = dict.fromkeys(type(value).model_fields) | table
    return found


def points(axes: Sequence[Axis]) -> list[dict[str, Value]]:
    """Return every combination of values, the last axis fastest.

    Raises
    ------
    InputError
        A key twice, or more combinations than `MOST_POINTS`.
    """
    paths = [axis.path for axis in axes]
    for axis in axes:
        if paths.count(axis.path) > 1:
            raise InputError(key="--over", value=axis.key, reason="is given twice", allowed="each key once")
    count = 1
    for axis in axes:
        count *= len(axis.values)
    if count > MOST_POINTS:
        raise InputError(
            key="--over", value=count, reason="points are too many", allowed=f"at most {MOST_POINTS}"
        )
    keys = [axis.key for axis in axes]
    return [
        dict(zip(keys, values, strict=True)) for values in itertools.product(*(axis.values for axis in axes))
    ]


def place(scenario: Scenario, axes: Sequence[Axis], point: Mapping[str, Value]) -> Scenario:
    """Return the scenario of a point.

    Raises
    ------
    InputError
        A value is not allowed at its key.
    """
    document: Any = copy.deepcopy(scenario.document)
    for axis in axes:
        *tables, last = axis.path
        table = document
        for part in tables:
            table = table[part]
        table[last] = point[axis.key]
    words = ", ".join(f"{key}={value}" for key, value in point.items())
    return Scenario.of(document, f"--over {words}")


def seed_of(scenario: Scenario, replication: int) -> int:
    """Return the seed of a replication, the same at every point: points are compared under equal chances."""
    said = f"wiretwin sweep {scenario.seed} {replication}".encode()
    return int.from_bytes(hashlib.sha256(said).digest()[:8]) >> 1
