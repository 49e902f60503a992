"""After each test of a stack as many processes, segments and semaphores as before it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psutil
import pytest
from watching import becomes, made_here, marked_processes, own_group

from wiretwin import keeper
from wiretwin.leftovers import Leftovers
from wiretwin.stacks import unprivileged

NOTHING = Leftovers(frozenset(), frozenset(), frozenset())


@pytest.fixture(scope="module", autouse=True)
def _own_group() -> Iterator[None]:
    with own_group():
        yield


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
    own, ordinary = os.geteuid(), unprivileged.identity().pw_uid

    # Other jobs may be at work on this host: only what ours made, and nobody uses any more, counts. What runs
    # as an ordinary user has the group of that one.
    def lost() -> list[Leftovers]:
        mine = before.lost_since(own)
        files = frozenset(filter(made_here, mine.files))
        theirs = before.lost_since(ordinary) if ordinary != own else NOTHING
        return [Leftovers(files, mine.segments, mine.semaphores), theirs]

    becomes([NOTHING, NOTHING], lost)
