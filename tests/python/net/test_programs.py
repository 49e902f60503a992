"""The shipped programs in the simulated world, from Python."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from wiretwin._core import World, run_program


def flat(ps: int) -> list[dict[str, int]]:
    return [{"from_bytes": 0, "base_ps": ps, "per_byte_fs": 0}]


def model(ranks: int, cores: int) -> str:
    layer = {
        "call_ps": 10,
        "overhead_send": flat(110),
        "overhead_recv": flat(60),
        "latency": flat(1000),
        "gap": flat(0),
        "rendezvous_from_bytes": 1000,
    }
    node = {"cores": cores, "idle": "yield", "quantum_ps": 4000}
    return json.dumps({"nodes": [node], "placement": [0] * ranks, "intra": layer})


PROGRAMS: dict[str, dict[str, Any]] = {
    "echo": {"bytes": 64, "rounds": 5},
    "stream": {"bytes": 64, "messages": 50},
    "ring": {"elements": 100, "rounds": 2, "costs_ps": {"add": 300}},
    "jacobi": {"rows": 12, "columns": 12, "iterations": 8, "costs_ps": {"stencil-point": 900}},
    "mm": {"n": 12, "rounds": 2, "costs_ps": {"multiply-add": 900}},
    "pde": {"n": 12, "accuracy": 3, "costs_ps": {"sor-point": 900}},
    "pde1": {"n": 6, "accuracy": 3, "costs_ps": {"relax-point": 900}},
    "pde2": {"n": 15, "accuracy": 3, "costs_ps": {"smooth-point": 900, "transfer-point": 400}},
    "md": {"x": 6, "y": 6, "z": 5, "steps": 2, "costs_ps": {"atom-pair": 900}},
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("cores", [1, 4])
def test_a_program_runs_and_its_time_adds_up(name: str, cores: int) -> None:
    run = run_program(name, json.dumps(PROGRAMS[name]), model(4, cores), 4, 1)
    assert all(outcome["verified"] for outcome in run["outcomes"])
    totals = run["totals"]
    whole = totals["compute_ps"] + totals["endpoint_ps"] + totals["wire_ps"] + totals["waiting_ps"]
    assert (whole == run["end_ps"]).all()
    timeline = run["timeline"]
    for rank in range(4):
        mine = timeline["rank"] == rank
        spans = timeline["end_ps"][mine] - timeline["start_ps"][mine]
        assert spans.sum(dtype=np.uint64) == run["end_ps"][rank]
    assert run["messages"] > 0
    again = run_program(name, json.dumps(PROGRAMS[name]), model(4, cores), 4, 1)
    assert again["digest"] == run["digest"]


def test_the_trace_is_one_that_viewers_open() -> None:
    run = run_program("jacobi", json.dumps(PROGRAMS["jacobi"]), model(4, 4), 4, 1)
    trace = json.loads(run["chrome_trace"])
    assert trace["otherData"] == {"format": "wiretwin-timeline", "version": "1"}
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(complete) == run["timeline"]["rank"].size
    assert {event["cat"] for event in complete} >= {"compute", "endpoint", "wire"}
    assert {event["name"] for event in complete} >= {"compute", "exchange", "recv", "send"}
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"]
    assert names == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert json.loads(World(1, model(1, 1)).chrome_trace())["traceEvents"][0]["tid"] == 0


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match='no program "sort"; allowed: echo, stream, cast, ring, jacobi'):
        run_program("sort", "{}", model(2, 2), 2, 1)
    with pytest.raises(ValueError, match=r"parameters: costs_ps\.add is nothing"):
        run_program("ring", '{"elements": 4, "rounds": 1}', model(2, 2), 2, 1)
    with pytest.raises(ValueError, match=r"model: placement is a list of 2"):
        run_program("echo", json.dumps(PROGRAMS["echo"]), model(2, 2), 3, 1)
