"""The state of received memory is charged where a copy of the twin finds a better one, and only there."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest

from wiretwin.mpi import outside, touch

PAGES = 64


def test_pages_that_are_there_cost_nothing_and_others_are_touched() -> None:
    region: Any = mmap.mmap(-1, PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE)
    memory = np.frombuffer(region, np.uint8)
    assert not touch._present(memory)
    memory[: mmap.PAGESIZE] = 7
    assert touch._present(memory[: mmap.PAGESIZE])
    assert touch._present(memory[10:100]), "a part of a page"
    assert not touch._present(memory[100 : mmap.PAGESIZE + 1]), "the second page is not there"
    assert touch.before_copy_ns(memory) > 0
    assert touch._present(memory)
    assert touch.before_copy_ns(memory) == 0


def test_memory_that_another_core_has_read_is_asked_for_once_and_by_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Readable:
        def __init__(self) -> None:
            self.seen = 0

        def read(self, data: np.ndarray) -> None:
            self.seen += data.size

    reader = Readable()
    monkeypatch.setattr(outside._State, "active", True)
    monkeypatch.setattr(outside._State, "reader", reader)
    monkeypatch.setattr(outside._State, "read", {})
    memory = np.ones(4 * outside.LEAST, np.uint8)
    half = memory.size // 2
    outside.packed(memory[:half])
    outside.packed(memory[:half])
    assert reader.seen == memory.size
    assert not outside.was_read(memory[half:]), "not this half"
    assert outside.was_read(memory[half - 1 :]), "one byte is enough"
    assert not outside.was_read(memory), "and is forgotten"
    for _ in range(3):
        outside.packed(np.ones(outside.LEAST, np.uint8))
        outside.packed(memory[half:], sent=False)
    assert not outside.was_read(memory[half:]), "what a rank keeps nobody has read"
    outside.packed(memory)
    touch.before_copy_ns(memory)
    assert not outside.was_read(memory)
    blocks = [np.ones(outside.LEAST, np.uint8) for _ in range(outside._REMEMBERED + 1)]
    for block in blocks:
        outside.packed(block)
    assert len(outside._State.read) == outside._REMEMBERED
    assert not outside.was_read(blocks[0]), "the oldest is forgotten"
    assert outside.was_read(blocks[1])
