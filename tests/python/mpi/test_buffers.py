"""Arrays of every kind arrive as they were sent, whether their memory can be used as it is or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi_help import Simulate

HEAD = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
peer = 1 - comm.rank
"""

KINDS = {
    "booleans": "np.arange(6) % 2 == 0",
    "complex numbers": "np.arange(5) * (1 + 2j)",
    "of no dimension": "np.array(2.5)",
    "of two dimensions": "np.arange(12.0).reshape(3, 4)",
    "by columns": "np.asfortranarray(np.arange(12.0).reshape(3, 4))",
    "bytes": "np.arange(7, dtype=np.uint8)",
    "not aligned": "np.frombuffer(bytearray(range(33)), np.uint8)[1:].view(np.float64)",
    "empty": "np.empty(0)",
    "large": "np.arange(5000.0)",
}


@pytest.mark.parametrize("made", KINDS.values(), ids=list(KINDS))
def test_an_array_arrives_as_it_was_sent(run: Simulate, made: str) -> None:
    run(
        HEAD + f"out = {made}\n"
        "got = [np.zeros_like(out) for _ in range(3)]\n"
        "comm.Sendrecv(out, peer, 0, got[0], peer, 0)\n"
        "request = comm.Irecv(got[1], peer, 1)\n"
        "comm.Send(out, peer, 1)\n"
        "request.Wait()\n"
        "sending = comm.Isend(out, peer, 2)\n"
        "comm.Recv(got[2], peer, 2)\n"
        "sending.Wait()\n"
        "assert all(one.tobytes('A') == out.tobytes('A') for one in got), got\n"
    )


def test_a_short_message_leaves_the_rest_of_the_array(run: Simulate) -> None:
    run(
        HEAD + "got, status = np.full(4, 9.0), MPI.Status()\n"
        "comm.Sendrecv(np.array([1.0, 2.0]), peer, 0, got, peer, 0, status)\n"
        "assert got.tolist() == [1.0, 2.0, 9.0, 9.0] and status.Get_count(MPI.DOUBLE) == 2\n"
    )


@pytest.mark.parametrize("call", ["comm.Recv(fixed, peer)", "comm.Sendrecv_replace(fixed, peer, 0, peer)"])
def test_an_array_that_is_read_only_is_not_received_into(run: Simulate, call: str) -> None:
    run(
        HEAD + "fixed = np.zeros(3)\n"
        "fixed.flags.writeable = False\n"
        "try:\n"
        f"    {call}\n"
        "except BufferError as error:\n"
        "    assert 'not writable' in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
    )


def test_a_call_in_a_function_of_the_program_is_at_its_line(tmp_path: Path, run: Simulate) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        HEAD + "def swap(got):\n"
        "    comm.Sendrecv(np.zeros(1), peer, 0, got, peer, 0)\n"
        "    request = comm.Isend(np.zeros(1), peer, 1)\n"
        "    comm.Recv(got, peer, 1)\n"
        "    request.Wait()\n"
        "swap(np.zeros(1))\n"
    )
    lines = [line for file, line in run(script, 2).sites if file == str(script)]
    assert lines == [7, 8, 9, 10]


def test_bytes_are_numbers_to_a_reduction(run: Simulate) -> None:
    """As to mpi4py, which takes NumPy's bytes and those of Python for MPI_UNSIGNED_CHAR."""
    program = (
        "import numpy as np\n"
        "from mpi4py import MPI\n"
        "mine, sums, held = np.full(3, 2, np.uint8), np.zeros(3, np.uint8), bytearray(2)\n"
        "MPI.COMM_WORLD.Allreduce(mine, sums)\n"
        "MPI.COMM_WORLD.Allreduce(b'ab', held, MPI.MAX)\n"
        "print(sums.tolist(), held)\n"
    )
    assert run(program, 2).stdout == ["[4, 4, 4] bytearray(b'ab')\n"] * 2
