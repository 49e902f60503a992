"""What a measured rank's own first calls leave beyond later ones is taken off the first of each name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wiretwin.mpi.firsts import _beyond_later, own_work_with_firsts, recorded_firsts
from wiretwin.mpi.rank import OwnWork
from wiretwin.mpi.recording import Recorder
from wiretwin.mpi.runtime import simulate
from wiretwin.predict.hosts import free_model

CALLS = ("isend", "wait", "Barrier", "reduce", "recv", "Scatterv", "Win")


def ran(folder: Path, own: OwnWork) -> tuple[list[list[int]], Recorder]:
    """Run a script on messages that cost nothing; returns what it computed, and what recorded it."""
    script = folder / "script.py"
    lines = ["from mpi4py import MPI", "comm = MPI.COMM_WORLD"]
    lines += [
        "for _ in range(2):",
        "    sum(range(100000))",
        "    comm.Barrier()",
        "    comm.reduce(comm.rank)",
    ]
    script.write_text("\n".join(lines), encoding="utf-8")
    model = free_model(2) | {"placement": [0, 0], "inter": None}
    recorder = Recorder(2)
    run = simulate(script, [], 2, json.dumps(model), own=own, recorder=recorder)
    return run.compute.durations_ps, recorder


def test_only_the_first_call_of_a_name_is_shorter(tmp_path: Path) -> None:
    hour = {"Barrier": 10**12}
    durations, recorder = ran(tmp_path, OwnWork(first_into_ns=hour))
    for of_rank in durations:
        each = (len(of_rank) - 1) // 2
        assert of_rank[0] < 10**8 < of_rank[each], "the first Barrier alone"
    for trace in recorder.recording.traces:
        assert trace.calls() == ["Barrier", "reduce"]
    within, _ = ran(tmp_path, OwnWork(first_within_ns={"reduce": 10**12}))
    assert all(of_rank[2] < 10**6 for of_rank in within)


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_the_calls_of_a_program_are_made_in_their_order(rank: int) -> None:
    recording = recorded_firsts(CALLS, rank)
    made = recording.traces[min(rank, 1)].calls()
    assert made == ["Barrier", "isend", "wait", "reduce", "recv", "Scatter"]
    assert len(recording.traces) == 2


def test_what_the_first_leaves_more_belongs_to_the_call_that_it_leads_into_or_out_of() -> None:
    first = [("Barrier", "reduce", 90.0), ("reduce", "reduce", 30.0), ("reduce", "Barrier", 20.0)]
    later = [[(before, name, 10.0 + more) for before, name, _ in first] for more in (-2.0, 2.0)]
    lost = [("Barrier", "wait", 10.0), ("wait", "Barrier", 5.0)]
    less = [[("Barrier", "wait", 15.0), ("wait", "Barrier", 3.0)]] * 2
    out, into, within = _beyond_later([[first, *later], [lost, *less]])
    assert (out, into, within) == ({"reduce": 10, "wait": 2}, {"reduce": 80}, {"reduce": 20})
    # Another path than the later ones: nothing is known.
    assert _beyond_later([[first, later[0][:2], later[1]]]) == [{}, {}, {}]


def test_it_is_found_beside_what_every_call_leaves() -> None:
    found = own_work_with_firsts(CALLS, 1)
    assert found.into_ns["reduce"] > 0
    names = {*found.first_out_ns, *found.first_into_ns, *found.first_within_ns}
    assert names <= {"isend", "wait", "reduce", "recv", "Scatter"}
    values = (*found.first_out_ns.values(), *found.first_into_ns.values(), *found.first_within_ns.values())
    assert all(0 < ns < 10**9 for ns in values)
