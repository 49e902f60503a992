"""Compiled programs are predicted, run and compared as scripts are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from predict_help import TWIN, nothing_left, wiretwin

from wiretwin.cli.predict import COMPILED_PROGRAMS
from wiretwin.errors import InputError
from wiretwin.predict import compiled
from wiretwin.predict.compiled import predict_compiled
from wiretwin.predict.named import NAMED, Named, NamedRank, NamedRun, parse_parameters, run_simulated
from wiretwin.predict.records import Prediction, Run, read
from wiretwin.twin import Costs, Twin

LAYER = "socket/unix"


@pytest.fixture
def fitted(tmp_path: Path) -> Path:
    path = tmp_path / "fitted.toml"
    path.write_text(TWIN.replace("mpi4py/mpich", LAYER))
    return path


def test_a_prediction_is_frozen_then_the_program_runs_and_both_are_compared(fitted: Path) -> None:
    with nothing_left(Path("spec-0.json")):
        words = ["--twin", fitted, "--layer", LAYER, "--passes", "2", "-o", "p"]
        ended = wiretwin("predict", "ring", *words, "--", "elements=501", "rounds=3")
        assert ended.code == 0, ended.err
        ended = wiretwin(
            "run", "ring", "--layer", LAYER, "--launches", "2", "-o", "a", "--", "rounds=3", "elements=501"
        )
        assert ended.code == 0, ended.err
    prediction, run = read(Prediction, Path("p")), read(Run, Path("a"))
    assert prediction.args == run.args == ["elements=501", "rounds=3"]
    assert (prediction.compute.source, prediction.compute.passes) == ("measured", 2)
    assert prediction.messages == 3 * 2 * 2, "rounds, steps, ranks"
    assert prediction.seconds.low <= prediction.seconds.value <= prediction.seconds.high
    for rank in prediction.per_rank:
        parts = rank.compute_s + rank.endpoint_s + rank.wire_s + rank.waiting_s
        assert rank.compute_s > 0
        assert parts == pytest.approx(rank.total_s)
    intervals = pl.read_parquet("p/timeline.parquet").filter(pl.col("rank") == 0)
    spent_ps = (intervals["end_ps"] - intervals["start_ps"]).sum()
    assert spent_ps == pytest.approx(1e12 * prediction.per_rank[0].total_s)

    compared = wiretwin("compare", "p", "a", "--format", "json")
    assert compared.code == 0, compared.err
    (row,) = json.loads(compared.out)
    assert (row["program"], row["launches"]) == ("ring elements=501 rounds=3", 2)
    assert row["error_percent"] == pytest.approx(100 * (row["predicted_s"] / row["actual_s"] - 1))
    split = json.loads(wiretwin("compare", "p", "a", "--split", "--format", "json").out)
    assert [part["rank"] for part in split] == [0, 1]
    assert all(part["real_launch"] is not None for part in split)
    assert all(part["model_compute_s"] > 0 and part["real_mpi_s"] > 0 for part in split)

    wiretwin("run", "ring", "--layer", LAYER, "--launches", "1", "-o", "other", "--", "rounds=4")
    other = wiretwin("compare", "p", "other")
    assert (other.code, "args: " in other.err) == (2, True)


def test_a_price_that_is_given_is_charged_and_nothing_is_run(fitted: Path) -> None:
    small = ["bytes=1000", "rounds=7"]
    run = run_simulated(NAMED["echo"], small, twin=fitted, layer=LAYER)
    free = max(rank.elapsed_s for rank in run.ranks)
    given = [
        predict_compiled(
            NAMED["echo"],
            [*small, "made-byte=1ns", "answered-byte=2ns", "checked-byte=4ns"],
            twin=fitted,
            layer=LAYER,
        )
        for _ in range(2)
    ]
    # Each byte is made and checked by one rank, and answered by the other.
    assert given[0].seconds.value == pytest.approx(free + 7 * 1000 * 7e-9, abs=1e-12)
    assert given[0].trace_digest == given[1].trace_digest
    assert given[0].compute.source == "given"


def test_each_kind_of_work_has_a_price_of_its_own(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    took = {"made-byte": 6e-6, "checked-byte": 2e-6}

    def ran(program: Named, words: Sequence[str], **_: object) -> NamedRun:
        ranks = tuple(
            NamedRank(rank, 1.0, 1.0, {"compute": took[kind]}, "", True, {kind: took[kind]})
            for rank, kind in enumerate(took)
        )
        return NamedRun(program, parse_parameters(program, words)[0], "live", "shm", ranks)

    monkeypatch.setattr(compiled, "run_live", ran)
    words = ["bytes=100", "messages=10"]
    prediction = predict_compiled(NAMED["stream"], words, twin=fitted, layer=LAYER, passes=1)
    assert [rank.compute_s for rank in prediction.per_rank] == pytest.approx(list(took.values()))


def test_the_interval_spans_the_states_of_the_host(fitted: Path) -> None:
    twin = Twin.read(fitted)
    layer = twin.layer(LAYER).model_dump(include=set(Costs.model_fields) - {"checks"}, exclude_none=True)
    far = json.loads(json.dumps(layer))
    for segment in far["latency"]:
        for key in ("value", "low", "high"):
            segment["base_ns"][key] += 5000
    crossing = {"near": {"low": 50.0, "high": 90.0}, "far": {"low": 200.0, "high": 300.0}}
    states = [
        {**costs, "name": name, "crossing_ns": crossing[name]}
        for name, costs in (("near", layer), ("far", far))
    ]
    data = twin.model_dump(exclude_none=True)
    data["layers"][LAYER] = {**layer, "states": states}
    two = Twin.model_validate(data)
    words = ["bytes=0", "rounds=100", "made-byte=0ns", "answered-byte=0ns", "checked-byte=0ns"]
    one = predict_compiled(NAMED["echo"], words, twin=twin, layer=LAYER).seconds
    both = predict_compiled(NAMED["echo"], words, twin=two, layer=LAYER).seconds
    assert (both.value, both.low) == (one.value, one.low)
    assert both.high >= one.value + 100 * 2 * 5e-6
    assert "the states of the host" in both.meaning


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ring", "--compute", "0us"], "--compute: '0us' is for scripts; allowed: the price"),
        (
            ["ring", "--", "size=3"],
            "ring: 'size=3' is not allowed here; allowed: key=value with a key of elements",
        ),
        (["ring", "--layer", "mpi4py/mpich"], "mpi4py/mpich"),
        (["ring", "--passes", "0"], "--passes: 0 is not allowed here; allowed: 1 to 1000"),
        (["pde2", "--", "smooth-point=1ns"], "transfer-point: is needed where other work is given"),
        (["jacobi", "--", "rows=0"], "rows is 0"),
        (
            ["sort"],
            "program: 'sort' is neither a file nor a program; allowed: a Python script that uses mpi4py",
        ),
    ],
)
def test_what_is_wrong_is_refused_before_anything_runs(words: list[str], said: str, fitted: Path) -> None:
    name, *rest = words
    layer = [] if "--layer" in rest else ["--layer", LAYER]
    ended = wiretwin("predict", name, "--twin", fitted, *layer, *rest)
    assert ended.code == 2, ended.err
    assert said in ended.err
    assert not list(Path().iterdir())


def test_work_that_few_cores_do_not_do_has_to_be_given(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    with pytest.raises(InputError, match="add: cannot be measured: 1 rank, as many as there are cores"):
        predict_compiled(NAMED["ring"], twin=fitted, layer=LAYER, ranks=4)


def test_the_names_of_compiled_programs_are_those_that_there_are() -> None:
    source = (Path(__file__).parents[3] / "crates/prog/src/program.rs").read_text()
    listed = re.search(r"pub const NAMES: \[&str; (\d+)\] = \[(.*?)\];", source, re.DOTALL)
    assert listed is not None
    names = tuple(re.findall(r'"([^"]+)"', listed[2]))
    assert len(names) == int(listed[1])
    assert names == COMPILED_PROGRAMS


def test_what_each_rank_did_goes_to_a_file_for_viewers_where_it_is_asked_for(fitted: Path) -> None:
    words = ["run", "ring", "--world", "simulated", "--twin", fitted, "--layer", LAYER, "--ranks", "3"]
    last = ["--format", "json", "--", "elements=9", "rounds=2", "add=1ns"]
    with nothing_left(Path("spec.json")):
        ended = wiretwin(*words, "--trace", "ring.json", *last)
    assert ended.code == 0, ended.err
    events = json.loads(Path("ring.json").read_text())["traceEvents"]
    for row in json.loads(ended.out):
        mine = [event for event in events if event["ph"] == "X" and event["tid"] == row["rank"]]
        assert sum(event["dur"] for event in mine) / 1e6 == pytest.approx(row["total_s"])
    assert wiretwin(*words, *last).out == ended.out
    assert [entry.name for entry in Path.cwd().iterdir()] == ["ring.json"], "and nothing else is left"


def test_a_trace_that_cannot_be_written_or_is_of_something_else_is_named(fitted: Path) -> None:
    ring = ["run", "ring", "--layer", LAYER, "--trace", "none/ring.json"]
    words = ["--", "elements=9", "rounds=1"]
    ended = wiretwin(*ring, "--world", "simulated", "--twin", fitted, *words, "add=1ns")
    assert ended.code == 6
    assert "none/ring.json: not written: No such file or directory" in ended.err
    ended = wiretwin(*ring, *words)
    assert ended.code == 2
    assert "--trace: 'none/ring.json' is not allowed here; allowed: with --world simulated and" in ended.err
