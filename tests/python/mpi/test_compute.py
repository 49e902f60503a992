"""What the time between calls costs, and that a run can be had again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from mpi_help import PROGRAMS, Simulate, model

from wiretwin.errors import InputError
from wiretwin.mpi import Aggregated, Given, Measured, Pass, Replay, SimulatedRun

HEAD = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank = comm.rank
"""

TASKS = (PROGRAMS / "master_worker.py", 4, "--limit", "50000", "--tasks", "25")

US = 1_000_000
MS = 1_000_000_000


def same(one: SimulatedRun, other: SimulatedRun) -> bool:
    columns = one.timeline.keys() == other.timeline.keys() and all(
        np.array_equal(one.timeline[key], other.timeline[key]) for key in one.timeline
    )
    return columns and all(
        getattr(one, name) == getattr(other, name)
        for name in ("end_ps", "digest", "compute", "stdout", "sites", "names")
    )


@pytest.mark.parametrize(
    "program",
    [
        TASKS,
        (PROGRAMS / "heat2d.py", 4, "--points", "24", "--steps", "20"),
        (PROGRAMS / "sample_sort.py", 3, "--keys", "500", "--repeat", "2"),
    ],
    ids=lambda program: program[0].stem,
)
def test_a_replay_is_the_same_run_to_the_last_bit(run: Simulate, program: tuple[Any, ...]) -> None:
    first = run(*program)
    again = run(*program, compute=Replay(first.compute.durations_ps, first.compute.digests))
    assert same(first, again)
    assert again.compute.digests == first.compute.digests


def test_a_replay_refuses_another_path(run: Simulate) -> None:
    program = HEAD + "import sys\nfor _ in range(int(sys.argv[1])):\n    comm.Barrier()\n"
    first = run(program, 2, "3")
    with pytest.raises(InputError, match="takes another path"):
        run(program, 2, "4", compute=Replay(first.compute.durations_ps))
    with pytest.raises(InputError, match="on another path than the one that leads to"):
        run(
            program + "\ncomm.Barrier()\n",
            2,
            "2",
            compute=Replay(first.compute.durations_ps, first.compute.digests),
        )
    with pytest.raises(InputError, match="durations of 3 ranks"):
        run(program, 3, "3", compute=Replay(first.compute.durations_ps))


def test_times_add_up_to_the_end_of_each_rank(run: Simulate) -> None:
    done = run(*TASKS)
    total = sum(done.totals_ps[key] for key in done.totals_ps)
    assert total.tolist() == done.end_ps
    assert done.totals_ps["compute_ps"].tolist() == [sum(rank) for rank in done.compute.durations_ps]


def test_any_source_takes_messages_in_the_order_in_which_they_arrive(run: Simulate) -> None:
    program = HEAD + (
        "if rank:\n"
        "    comm.send(rank, 0, tag=rank)\n"
        "else:\n"
        "    print([comm.recv(source=MPI.ANY_SOURCE) for _ in range(comm.size - 1)])\n"
    )
    line = {rank: 20 * MS - rank * 5 * MS for rank in range(1, 4)}

    class ByRank(Given):
        def charge(self, rank: int, call: int, digest: int, site: Any, measured_ps: int) -> int:
            return line.get(rank, 0) if call == 0 else 0

    assert run(program, 4, compute=ByRank()).stdout[0] == "[3, 2, 1]\n"
    line = {1: 1 * MS, 2: 9 * MS, 3: 4 * MS}
    assert run(program, 4, compute=ByRank()).stdout[0] == "[1, 3, 2]\n"


def test_the_same_durations_give_the_same_order_every_time(run: Simulate) -> None:
    runs = [run(*TASKS, compute=Given(50 * US)) for _ in range(3)]
    assert same(runs[0], runs[1])
    assert same(runs[0], runs[2])


def test_given_computation_is_charged_by_line(run: Simulate) -> None:
    program = HEAD + "comm.Barrier()\ncomm.Barrier()\ncomm.Barrier()\n"
    done = run(program, 1, compute=Given(2 * MS, {7: 30 * MS}))
    assert done.compute.durations_ps == [[2 * MS, 30 * MS, 2 * MS, 2 * MS]]
    assert done.totals_ps["compute_ps"].tolist() == [36 * MS]
    with pytest.raises(InputError, match="-1"):
        run(program, 1, compute=Given(-1))


def test_measured_computation_is_that_of_the_program(run: Simulate) -> None:
    program = HEAD + ("comm.Barrier()\ntotal = sum(range(2_000_000))\ncomm.Barrier()\ncomm.Barrier()\n")
    done = run(program)
    for durations in done.compute.durations_ps:
        assert len(durations) == 4
        assert durations[1] > 100 * durations[2]
        assert durations[1] > 2 * MS
    # Not between two runs: the second may have a core that is slower.
    assert Measured(10.0).charge(0, 1, 0, ("program.py", 6), 1234) == 12_340
    with pytest.raises(InputError, match="above 0"):
        Measured(0.0)


def test_empty_stretches_cost_almost_nothing(run: Simulate) -> None:
    turn = "    send(None, MPI.PROC_NULL)\n    sum(range(2000))\n    send(None, MPI.PROC_NULL)\n"
    done = run(HEAD + "send = comm.Send\nfor _ in range(1000):\n" + turn, 1)
    empty, summing = done.compute.durations_ps[0][2::2], done.compute.durations_ps[0][1:-1:2]
    assert np.median(empty) < np.median(summing) / 20


def test_pickling_is_computation_and_waiting_is_not(run: Simulate) -> None:
    program = HEAD + (
        "class Slow:\n"
        "    def __reduce__(self):\n"
        "        sum(range(1_000_000))\n"
        "        return (int, (3,))\n"
        "if rank:\n"
        "    comm.send(Slow(), 0)\n"
        "else:\n"
        "    comm.recv(source=1)\n"
    )
    done = run(program)
    compute = done.totals_ps["compute_ps"]
    assert compute[1] > 5 * compute[0]
    assert done.totals_ps["waiting_ps"][0] + done.totals_ps["wire_ps"][0] > 5 * compute[0]


def test_passes_are_brought_together_stretch_by_stretch(run: Simulate) -> None:
    program = HEAD + "for _ in range(3):\n    comm.Barrier()\n"
    base = run(program, compute=Given(1 * MS))
    shape = base.compute
    passes = [
        Pass([[value * MS for _ in rank] for rank in shape.durations_ps], shape.digests)
        for value in (7, 3, 5)
    ]
    least = run(program, compute=Aggregated(passes, "minimum"))
    middle = run(program, compute=Aggregated(passes, "median"))
    assert {value for rank in least.compute.durations_ps for value in rank} == {3 * MS}
    assert {value for rank in middle.compute.durations_ps for value in rank} == {5 * MS}
    assert least.warnings == middle.warnings == []


def test_a_repeat_that_takes_another_path_is_reported_and_costs_what_it_took(run: Simulate) -> None:
    program = (
        HEAD
        + "import sys\ncomm.Barrier()\nif sys.argv[1] == 'far' and rank:\n    comm.Iprobe()\ncomm.Barrier()\n"
    )
    near = run(program, 2, "near").compute
    passes = [Pass([[4 * MS for _ in rank] for rank in near.durations_ps], near.digests)]
    done = run(program, 2, "far", compute=Aggregated(passes))
    assert done.compute.durations_ps[0] == [4 * MS] * 3
    assert done.compute.durations_ps[1][0] == 4 * MS
    assert all(value < 4 * MS for value in done.compute.durations_ps[1][1:])
    assert len(done.warnings) == 1
    assert "rank 1 took another path than the 1 passes from its stretch 1" in done.warnings[0]
    assert "program.py:9: 3 stretches cost what they took" in done.warnings[0]


def test_another_content_of_a_message_is_another_path(run: Simulate) -> None:
    program = HEAD + "import sys\ncomm.send(int(sys.argv[1]), rank)\ncomm.recv()\ncomm.Barrier()\n"
    one, other = run(program, 1, "1"), run(program, 1, "2")
    assert one.compute.digests[0][:2] == other.compute.digests[0][:2]
    assert one.compute.digests[0][2] != other.compute.digests[0][2]


def test_wtime_is_virtual(run: Simulate) -> None:
    program = HEAD + ("begin = MPI.Wtime()\ncomm.Barrier()\nend = MPI.Wtime()\nprint(begin, end)\n")
    done = run(program, 2, compute=Given(3 * MS))
    begin, end = map(float, done.stdout[0].split())
    assert begin == pytest.approx(0.003)
    # A stretch on each side of the barrier, and two messages' time inside it.
    assert 0.009 < end < 0.00901


def test_a_program_that_polls_the_clock_or_for_messages_gets_ahead(run: Simulate) -> None:
    program = HEAD + (
        "while MPI.Wtime() < 0.01:\n"
        "    pass\n"
        "if rank == 0:\n"
        "    comm.send('at last', 1)\n"
        "else:\n"
        "    while not comm.Iprobe(0):\n"
        "        pass\n"
        "    print(comm.recv(source=0))\n"
    )
    assert run(program, compute=Given(1 * MS)).stdout[1] == "at last\n"
    free = HEAD + (
        "if rank == 0:\n"
        "    room = np.zeros(10_000)\n"
        "    request = comm.Irecv(room, 1)\n"
        "    while not request.Test():\n"
        "        pass\n"
        "    print(room[0])\n"
        "else:\n"
        "    comm.Ssend(np.ones(10_000), 0)\n"
    )
    network = model(2, call_ps=0)
    assert run(free, compute=Given(0), model_json=network).stdout[0] == "1.0\n"


def test_a_host_with_fewer_cores_than_ranks_shares_them(run: Simulate) -> None:
    program = HEAD + "comm.Barrier()\n"
    alone = run(program, 4, compute=Given(10 * MS), model_json=model(4, cores=4))
    shared = run(program, 4, compute=Given(10 * MS), model_json=model(4, cores=1))
    assert max(alone.end_ps) < 21 * MS
    assert max(shared.end_ps) > 79 * MS


def test_threads_that_were_not_limited_are_a_warning(run: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    done = run(HEAD, 1)
    assert [text for text in done.warnings if "OMP_NUM_THREADS=1" in text]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert run(HEAD, 1).warnings == []
    assert json.loads(json.dumps(run(HEAD, 1).environment))["threads"]["OMP_NUM_THREADS"] == "1"
