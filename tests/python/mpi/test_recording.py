"""A recorded run can be had again: rank by rank alone, or as a trace without the program."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_help import HERE, PROGRAMS, model

from wiretwin import _core
from wiretwin.mpi import simulate
from wiretwin.mpi.recording import DepartureError, Recorder, Solo, replay
from wiretwin.mpi.runtime import Runtime, run_alone

HEAD = """
import sys
import time
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank = comm.rank
"""

STEADY = [
    ("heat2d.py", ["--points", "40", "--steps", "30"]),
    ("matmul.py", ["--size", "37", "--repeat", "2"]),
    ("ring_allreduce.py", ["--elements", "1001", "--repeat", "3"]),
    ("sample_sort.py", ["--keys", "700", "--repeat", "2"]),
]


def record(script: Path, argv: list[str], ranks: int) -> Any:
    recorder = Recorder(ranks)
    return simulate(script, argv, ranks, model(ranks), recorder=recorder), recorder.recording


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_every_rank_of_every_call_can_run_alone(ranks: int) -> None:
    script = HERE / "equality" / "main.py"
    run, recording = record(script, [], ranks)
    assert recording.timed
    for rank in range(ranks):
        alone = Solo(recording.for_rank(rank), rank)
        durations, digests, *_ = run_alone(script, [], ranks, model(ranks), alone)
        assert digests == run.compute.digests[rank]
        assert len(durations) == len(run.compute.durations_ps[rank])


def test_clocks_and_polls_are_answered_from_the_recording(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        HEAD + "while time.perf_counter() < 0.001 * (rank + 1):\n    pass\n"
        "request = comm.irecv(source=MPI.ANY_SOURCE)\n"
        "comm.send(MPI.Wtime(), 1 - rank)\n"
        "while not request.Test():\n    pass\n"
        "time.sleep(0.002)\n"
    )
    run, recording = record(script, [], 2)
    assert recording.timed
    for rank in range(2):
        alone = Solo(recording.for_rank(rank), rank)
        assert run_alone(script, [], 2, model(2), alone)[1] == run.compute.digests[rank]


def test_a_rank_that_leaves_the_recorded_path_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD + "comm.Barrier()\nMPI.Wtime() if len(sys.argv) > 1 else comm.Iprobe()\n")
    _, recording = record(script, [], 2)
    with pytest.raises(DepartureError, match="rank 1 takes another path when it runs alone"):
        run_alone(script, ["far"], 2, model(2), Solo(recording.for_rank(1), 1))


def test_a_rank_alone_prints_where_its_process_does(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD + "print(f'rank {rank}', flush=True)\ncomm.Barrier()\n")
    run, recording = record(script, [], 2)
    assert run.stdout == ["rank 0\n", "rank 1\n"]
    assert capfd.readouterr().out == ""
    run_alone(script, [], 2, model(2), Solo(recording.for_rank(1), 1))
    assert capfd.readouterr().out == "rank 1\n"


def test_what_is_done_at_exit_is_no_time_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD + "import atexit\natexit.register(sys.late)\ncomm.Barrier()\n")
    now = [0]

    def tick() -> int:
        now[0] += 10_000
        return now[0]

    def late() -> None:
        now[0] += 10**9

    monkeypatch.setattr(sys, "late", late, raising=False)
    monkeypatch.setattr("wiretwin.mpi.rank.thread_time_ns", tick)
    monkeypatch.setattr("time.thread_time_ns", tick)
    run, _ = record(script, [], 2)
    assert now[0] > 2 * 10**9
    assert max(map(sum, run.compute.durations_ps)) < 10**9


def test_a_rank_alone_neither_keeps_what_it_sends_nor_frees_what_it_receives(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        HEAD + "out, got = np.full(500, 1.0 + comm.rank), np.empty(500)\n"
        "for _ in range(3):\n"
        "    comm.Sendrecv(out, 1 - comm.rank, 0, got, 1 - comm.rank, 0)\n"
        "    assert got[0] == 2.0 - comm.rank\n"
    )
    _, recording = record(script, [], 2)
    kept = recording.for_rank(0)
    alone = Solo(kept, 0)
    held: list[dict[int, object]] = []
    furnish = alone.furnish

    def watched(runtime: Runtime) -> None:
        furnish(runtime)
        held.append(runtime.mail)  # type: ignore[arg-type]

    alone.furnish = watched  # type: ignore[method-assign]
    run_alone(script, [], 2, model(2), alone)
    assert held[0].keys() == kept.mail.keys()
    assert all(letter is kept.mail[number] for number, letter in held[0].items())


def test_sleeping_is_part_of_the_trace(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD + "time.sleep(0.003)\ntime.sleep(0)\ncomm.Barrier()\ntime.sleep(0.001)\n")
    run, recording = record(script, [], 2)
    assert not recording.timed
    world = _core.World(2, model(2), seed=1)
    replay(recording, world, run.compute.durations_ps)
    assert world.digest() == run.digest
    assert run.seconds > 0.004


def test_a_trace_is_what_was_posted_and_answered() -> None:
    world = _core.World(2, model(2), seed=1)
    world.record()
    world.enter(0, 7, "Send", 3)
    sent = world.post(0, ("send", 0, 1, 5, 16, "standard"))
    world.post(0, ("wait", [sent], "all"))
    received = world.post(1, ("recv", 0, 0, 5, 16))
    world.post(1, ("wait", (received,), "all"))
    answered = dict(world.step() + world.step())
    assert not world.timed
    world.post(1, ("exit",))
    world.post(1, ("recv", 0, -1, 5, 16))
    assert world.timed
    traces = world.recorded()
    assert traces[0].operations() == [
        (("compute", 7), 0),
        (("enter", "Send", 3), 0),
        (("send", 0, 1, 5, 16, "standard"), sent),
        (("wait", (sent,), "all"), 0),
    ]
    assert traces[0].outcomes() == [answered[0]]
    assert traces[1].operations()[:3] == [
        (("recv", 0, 0, 5, 16), received),
        (("wait", (received,), "all"), 0),
        (("exit",), 0),
    ]
    assert traces[1].outcomes() == [answered[1]]
    assert traces[1].messages() == [sent]
    assert [trace.sends() for trace in traces] == [1, 0]
    copy = pickle.loads(pickle.dumps(traces[1]))
    assert (copy.operations(), copy.outcomes()) == (traces[1].operations(), traces[1].outcomes())
    assert world.recorded() == []


def test_a_trace_that_names_what_it_never_made_is_rejected() -> None:
    trace = _core.RankTrace()
    trace.append(("recv", 0, 0, 5, 16), 7)
    trace.append(("wait", [8], "all"))
    with pytest.raises(ValueError, match="request 8 of a recording was never made"):
        _core.World(1, model(1), seed=1).replay([trace])
    with pytest.raises(ValueError, match="not those of a trace"):
        _core.RankTrace.from_bytes(b"nothing")


@pytest.mark.parametrize(("mode", "timed"), [("all", False), ("any", True), ("some", True), ("test", True)])
def test_a_wait_tells_the_time_unless_it_is_for_all(mode: Any, timed: bool) -> None:
    world = _core.World(1, model(1), seed=1)
    request = world.post(0, ("send", 0, 0, 5, 16, "buffered"))
    world.post(0, ("wait", [request], mode))
    assert world.timed == timed


@pytest.mark.parametrize(("name", "argv"), STEADY, ids=[name for name, _ in STEADY])
def test_a_trace_runs_again_without_the_program(name: str, argv: list[str]) -> None:
    run, recording = record(PROGRAMS / name, argv, 4)
    assert not recording.timed
    world = _core.World(4, model(4), seed=1)
    replay(recording, world, run.compute.durations_ps)
    assert world.digest() == run.digest
    assert [world.now_ps(rank) for rank in range(4)] == run.end_ps
    # With other durations it is the run that the program would have with them.
    slower = [[3 * value for value in rank] for rank in run.compute.durations_ps]
    world = _core.World(4, model(4), seed=1)
    replay(recording, world, slower)
    compute = [int(value) for value in world.totals()["compute_ps"]]
    assert compute == [sum(rank) for rank in slower]
    assert np.all(np.array([world.now_ps(rank) for rank in range(4)]) > np.array(run.end_ps))
