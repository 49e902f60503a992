"""Ranks of a real run begin at one moment of their machine's clock, or after a barrier."""

from __future__ import annotations

import queue
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from wiretwin.mpi import live

RANKS, LIMIT_S = 3, 10.0


class World:
    """What ranks share that are threads."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(RANKS)
        self.met = 0
        self.ways: dict[tuple[int, int], queue.Queue[bytes]] = {
            (source, to): queue.Queue() for source in range(RANKS) for to in range(RANKS)
        }


class Rank:
    """A rank's communicator, of the calls that a program is not the first to make."""

    def __init__(self, world: World, rank: int) -> None:
        self.world, self.rank = world, rank

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return RANKS

    def Barrier(self) -> None:
        if self.world.barrier.wait(LIMIT_S) == 0:
            self.world.met += 1

    def Send(self, buffer: bytearray, to: int) -> None:
        self.world.ways[self.rank, to].put(bytes(buffer))

    def Recv(self, buffer: bytearray, source: int) -> None:
        buffer[:] = self.world.ways[source, self.rank].get(timeout=LIMIT_S)


def begun(monkeypatch: pytest.MonkeyPatch, machines: list[Path]) -> tuple[list[float], list[float], World]:
    """Let ranks of these machines begin; return when each did, what rank 0 told, and their world."""
    world, told = World(), []
    send = Rank.Send

    def noted(self: Rank, buffer: bytearray, to: int) -> None:
        if self.rank == 0:
            told.append(struct.unpack("=40sd", buffer)[1])
        send(self, buffer, to)

    here = threading.local()

    class Machine:
        def read_bytes(self) -> bytes:
            return machines[here.rank].read_bytes()

    monkeypatch.setattr(Rank, "Send", noted)
    monkeypatch.setattr(live, "_MACHINE", Machine())

    def run(rank: int) -> float:
        here.rank = rank
        own: Any = Rank(world, rank)
        live._begin_together(own)
        return perf_counter()

    with ThreadPoolExecutor(RANKS) as ranks:
        return list(ranks.map(run, range(RANKS))), told, world


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine's own file."""
    (tmp_path / "one").write_text("7ec7d8a8-8e0a-4b0c-b0de-3a1d2f1a1c2b\n")
    return tmp_path / "one"


def test_ranks_of_one_machine_begin_at_a_moment_that_lies_ahead(
    monkeypatch: pytest.MonkeyPatch, machine: Path
) -> None:
    before = perf_counter()
    begins, told, world = begun(monkeypatch, [machine] * RANKS)
    assert len(told) == RANKS - 1
    assert len(set(told)) == 1
    assert min(begins) >= told[0] > before
    assert world.met > 0


def test_ranks_of_several_machines_or_of_unknown_ones_begin_after_a_barrier(
    monkeypatch: pytest.MonkeyPatch, machine: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text("0c9d2f4e-6f65-4a34-8d1d-1f5e0a9b7c11\n")
    for machines in ([machine, machine, tmp_path / "other"], [tmp_path / "none"] * RANKS):
        _, told, world = begun(monkeypatch, machines)
        assert told == [0.0] * (RANKS - 1)
        assert world.met > 0
