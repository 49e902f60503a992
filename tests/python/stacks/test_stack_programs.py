"""The compiled programs over messaging libraries: the same results as over sockets."""

from __future__ import annotations

from functools import cache

import pytest
from stacks_help import LIBRARIES, installed

from wiretwin.errors import InputError, ProgramError
from wiretwin.predict.named import NAMED, NamedRun, run_live

PROGRAMS = {
    "echo": (2, ("bytes=1000", "rounds=20")),
    "stream": (2, ("bytes=7000", "messages=20")),
    "ring": (4, ("elements=1001", "rounds=3")),
    "jacobi": (4, ("rows=20", "columns=24", "iterations=30")),
    "mm": (4, ("n=30", "rounds=2")),
    "pde": (4, ("n=16", "accuracy=3")),
}
LIMIT_S = 120.0


@cache
def over_sockets(program: str) -> NamedRun:
    ranks, words = PROGRAMS[program]
    return run_live(NAMED[program], words, layer="socket/tcp", ranks=ranks, limit_s=LIMIT_S)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("layer", LIBRARIES)
def test_a_program_gives_the_same_result_on_every_library(layer: str, program: str) -> None:
    installed(layer)
    ranks, words = PROGRAMS[program]
    run = run_live(NAMED[program], words, layer=layer, ranks=ranks, limit_s=LIMIT_S)
    assert run.layer == layer
    assert [rank.rank for rank in run.ranks] == list(range(ranks))
    assert all(rank.verified for rank in run.ranks)
    assert [rank.digest for rank in run.ranks] == [rank.digest for rank in over_sockets(program).ranks]
    for rank in run.ranks:
        assert sum(rank.parts_s.values()) == pytest.approx(rank.total_s)


def test_a_message_that_the_layer_cannot_carry_ends_the_program_with_the_reason() -> None:
    installed("mpi/lam+lamd")
    with pytest.raises(
        ProgramError, match="a message of 9000 bytes: the most is 8192, as LAM's daemons carry"
    ):
        run_live(NAMED["echo"], ["bytes=9000", "rounds=1"], layer="mpi/lam+lamd", limit_s=LIMIT_S)


def test_a_program_that_does_not_end_is_ended() -> None:
    installed("mpi/mpich")
    with pytest.raises(ProgramError, match="limit"):
        run_live(NAMED["echo"], ["bytes=8", "rounds=999999999"], layer="mpi/mpich", limit_s=3.0)


def test_a_layer_of_another_kind_is_refused_with_those_that_carry_programs() -> None:
    over_vis = "mpi-mvich/shm, mpi-mvich/udp, mpi-mvich/packet"
    allowed = f"allowed: socket/tcp, socket/unix, shm, pcaal/udp, {over_vis}, mpi/mpich"
    with pytest.raises(InputError, match=allowed):
        run_live(NAMED["echo"], [], layer="mpi4py/openmpi")
