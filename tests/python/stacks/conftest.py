"""After each test of a stack as many processes, segments and semaphores as before it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import psutil
import pytest
from watching import becomes, marked_processes

from wiretwin import keeper
from wiretwin.leftovers import Leftovers
from wiretwin.stacks import unprivileged


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Processes, folders, shared memory and semaphores are as many after a test as before."""
    monkeypatch.setenv("PYTEST_OF", str(os.getpid()))
    keeper.name()  # this process's own, which stays
    family = {child.pid for child in psutil.Process().children(recursive=True)}
    before = Leftovers.now()
    yield
    assert {child.pid for child in psutil.Process().children(recursive=True)} - family == set()
    # Where a test kills us, a keeper ends them, and is not waited for.
    becomes({}, marked_processes)
    # Other jobs may be at work on this host: only what nobody uses any more counts.
    for uid in {os.geteuid(), unprivileged.identity().pw_uid}:
        nothing = Leftovers(frozenset(), frozenset(), frozenset())
        becomes(nothing, functools.partial(before.lost_since, uid))
