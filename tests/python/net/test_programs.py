"""The shipped programs in the simulated world, from Python."""

from __future__ import annotations

import json
from pathlib import Path
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
    node = {"cores": cores, "idle": "sleep", "quantum_ps": 4000}
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
    run = run_program(name, json.dumps(PROGRAMS[name]), model(4, cores), 4, 1, timeline=True)
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


def test_what_is_not_asked_for_is_not_built() -> None:
    run = run_program("ring", json.dumps(PROGRAMS["ring"]), model(4, 4), 4, 1)
    assert not {"timeline", "timeline_coarse_ps", "chrome_trace"} & set(run)
    with pytest.raises(ValueError, match="traced: is given with a timeline; allowed: one of them"):
        run_program("ring", json.dumps(PROGRAMS["ring"]), model(4, 4), 4, 1, traced=0, timeline=True)


def test_the_trace_is_one_that_viewers_open(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    parameters = json.dumps(PROGRAMS["jacobi"])
    run = run_program("jacobi", parameters, model(4, 4), 4, 1, timeline=True, chrome_trace=file)
    trace = json.loads(file.read_text())
    assert trace["otherData"] == {"format": "wiretwin-timeline", "version": "1"}
    complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(complete) == run["timeline"]["rank"].size
    assert {event["cat"] for event in complete} >= {"compute", "endpoint", "wire"}
    assert {event["name"] for event in complete} >= {"compute", "exchange", "recv", "send"}
    names = [event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"]
    assert names == ["rank 0", "rank 1", "rank 2", "rank 3"]
    World(1, model(1, 1)).write_chrome_trace(file)
    assert json.loads(file.read_text())["traceEvents"][0]["tid"] == 0
    with pytest.raises(FileNotFoundError):
        World(1, model(1, 1)).write_chrome_trace(tmp_path / "none" / "trace.json")


def test_a_timeline_of_more_than_a_million_intervals_is_summed_and_each_kind_keeps_its_time() -> None:
    parameters = json.dumps({"elements": 1, "rounds": 16, "costs_ps": {"add": 300}})
    run = run_program("ring", parameters, model(128, 128), 128, 1, timeline=True)
    assert run["timeline_coarse_ps"] > 0
    timeline = run["timeline"]
    assert 100_000 < timeline["rank"].size <= 1_000_000
    spans = timeline["end_ps"] - timeline["start_ps"]
    for number, kind in enumerate(("compute", "endpoint", "wire", "waiting")):
        mine = timeline["kind"] == number
        sums = np.bincount(timeline["rank"][mine], spans[mine].astype(np.float64), 128)
        assert (sums == run["totals"][f"{kind}_ps"]).all()


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match="program is sort; allowed: echo, stream, cast, ring, jacobi"):
        run_program("sort", "{}", model(2, 2), 2, 1)
    with pytest.raises(ValueError, match=r"parameters\.costs_ps\.add is nothing"):
        run_program("ring", '{"elements": 4, "rounds": 1}', model(2, 2), 2, 1)
    with pytest.raises(ValueError, match=r"model.placement is a list of 2"):
        run_program("echo", json.dumps(PROGRAMS["echo"]), model(2, 2), 3, 1)
