"""First touches are charged where pages are not there, and only there."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from wiretwin.mpi import touch

PAGES = 64


def test_pages_that_are_there_cost_nothing_and_others_are_touched() -> None:
    region: Any = mmap.mmap(-1, PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE)
    memory = np.frombuffer(region, np.uint8)
    assert not touch._present(memory)
    memory[: mmap.PAGESIZE] = 7
    assert touch._present(memory[: mmap.PAGESIZE])
    assert touch._present(memory[10:100]), "a part of a page"
    assert not touch._present(memory[100 : mmap.PAGESIZE + 1]), "the second page is not there"
    assert touch.first_touch_ns(memory) > 0
    assert touch._present(memory)
    assert touch.first_touch_ns(memory) == 0
    assert memory[0] == 7, "its content is unchanged"
