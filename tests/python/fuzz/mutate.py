"""Small changes to valid inputs: of the octets, and of the document they spell."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# The same inputs on every run; a person who looks for more raises the number.
SETTINGS = settings(
    max_examples=300,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

TELLING = b"0123456789.-+eE{}[]\"':,=#\n nai\x00\xff"


@st.composite
def edited(draw: st.DrawFn, seed: bytes) -> bytes:
    """`seed` with up to six edits."""
    octets = bytearray(seed)
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(octets)))
        octet = draw(st.sampled_from(TELLING) | st.integers(0, 255))
        kind = draw(st.sampled_from(["replace", "insert", "cut", "repeat", "truncate"]))
        other = draw(st.integers(0, len(octets)))
        low, high = min(at, other), max(at, other)
        if kind == "replace" and at < len(octets):
            octets[at] = octet
        elif kind == "insert":
            octets[at:at] = bytes([octet])
        elif kind == "cut":
            del octets[low : min(high, low + 40)]
        elif kind == "repeat":
            octets[high:high] = octets[low : min(high, low + 40)]
        elif kind == "truncate":
            del octets[at:]
    return bytes(octets)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=8),
    st.sampled_from(["../../etc/passwd", "samples/launch-00001.parquet", "ok", "1e400", "\ud800"]),
    st.just([]),
    st.just({}),
    st.just([[]]),
    st.just({"value": 1.0, "low": 0.5, "high": 2.0}),
)


def like(value: Any) -> st.SearchStrategy[Any]:
    """Other values of the same type: what gets past a check of types."""
    if isinstance(value, bool) or value is None:
        return VALUES
    if isinstance(value, int):
        return st.sampled_from([0, 1, -1, 2, 2**31, 2**63, 10**30]) | st.integers()
    if isinstance(value, float):
        return st.sampled_from([0.0, -1.0, 1e-320, 1e308, math.nan, math.inf]) | st.floats()
    if isinstance(value, str):
        return st.sampled_from(["", "x", "../x", "9999-99-99", "2026-01-01", "\0"]) | st.text(max_size=8)
    if isinstance(value, list):
        return st.sampled_from([[], value * 2, value[:1]])
    return st.sampled_from([{}, {"x": 1}, value])


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with each of its keys."""
    if isinstance(document, dict):
        keys: list[Any] = list(document)
    elif isinstance(document, list):
        keys = list(range(len(document)))
    else:
        return
    for key in keys:
        yield document, key
        yield from places(document[key])


@st.composite
def changed(draw: st.DrawFn, document: Any) -> Any:
    """`document` with one to four values replaced, removed, renamed, doubled or added."""
    result = copy.deepcopy(document)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 4]))):
        found = list(places(result))
        if not found:
            return result
        container, key = draw(st.sampled_from(found))
        kind = draw(st.sampled_from(["like", "like", "like", "replace", "remove", "rename", "double", "add"]))
        if kind == "like":
            container[key] = copy.deepcopy(draw(like(container[key])))
        elif kind == "replace":
            container[key] = copy.deepcopy(draw(VALUES))
        elif kind == "remove":
            del container[key]
        elif isinstance(container, list):
            container.insert(
                key, copy.deepcopy(container[key]) if kind == "double" else copy.deepcopy(draw(VALUES))
            )
        elif kind == "rename":
            container[draw(st.text(max_size=6))] = container.pop(key)
        else:
            container[draw(st.text(max_size=6))] = copy.deepcopy(container[key])
    return result
