"""Reductions in compiled loops give what NumPy gives, bit by bit, and leave the rest to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wiretwin._core import combined

BY_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "SUM": np.add,
    "PROD": np.multiply,
    "MAX": lambda a, b: np.where(a > b, a, b),
    "MIN": lambda a, b: np.where(a < b, a, b),
}


@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"])
@pytest.mark.parametrize("operation", BY_NUMPY)
def test_numbers_of_every_type(operation: str, kind: str) -> None:
    drawn = np.random.default_rng(1)
    if kind[0] == "f":
        a, b = (drawn.normal(size=1001).astype(kind) for _ in range(2))
        a[3] = b[4] = a[5] = b[5] = np.nan
        a[6], b[6], a[7] = np.inf, -np.inf, -0.0
    else:  # all there are of small ones: sums and products wrap around
        limits = np.iinfo(kind)
        a, b = (drawn.integers(limits.min, limits.max, 1001, kind, endpoint=True) for _ in range(2))
    found = combined(operation, a, b)
    with np.errstate(all="ignore"):
        expected = BY_NUMPY[operation](a, b)
    assert found is not None
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", ["c16", "f2", ">f8", "?"])
def test_other_types_are_left_to_numpy(kind: str) -> None:
    assert combined("SUM", np.ones(3, kind), np.ones(3, kind)) is None


def test_what_does_not_lie_as_the_processor_reads_it_is_left_to_numpy() -> None:
    aside = np.frombuffer(bytes(25), "u1")[1:].view("f8")
    assert combined("SUM", aside, np.ones(3)) is None
    assert combined("SUM", np.ones(6)[::2], np.ones(3)) is None
    assert combined("SUM", np.ones(3), np.ones(4)) is None
    assert combined("SUM", np.ones(3), np.ones(3, "f4")) is None
    assert combined("BAND", np.ones(3, int), np.ones(3, int)) is None


def test_nothing_combines_to_nothing() -> None:
    found = combined("SUM", np.ones(0), np.ones(0))
    assert found is not None
    assert found.size == 0
