"""One set of machines for all tests over ssh; after each of them nothing is left on any."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from machines import LIMIT_S, Machines, machines


@pytest.fixture(scope="session")
def three() -> Iterator[Machines]:
    with machines() as brought_up:
        yield brought_up


@pytest.fixture
def between(three: Machines) -> Iterator[Machines]:
    """Two machines and a desk; the test fails if a process, a folder or shared memory is left."""
    yield three
    deadline = time.monotonic() + LIMIT_S
    # What was cut off is ended by its agents, which notice in their own time.
    while (three.ranks() or three.left()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert three.ranks() == {}
    assert three.left() == {}
