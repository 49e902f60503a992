"""Comparing: the same thing on both sides, errors and splits, every format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from predict_help import prediction, rewrite, run_record, wiretwin

from wiretwin.errors import InputError
from wiretwin.predict.compare import compare, echo_ratio, split_table, table, worst_and_median
from wiretwin.predict.records import Launch, RealRank, typical
from wiretwin.report.inputs import gather


def test_the_error_is_that_of_the_prediction() -> None:
    joined = compare(prediction(), run_record())
    assert joined.error == pytest.approx(0.25)
    assert joined.notes == []
    row = table([joined]).row(0, named=True)
    assert row == {
        "program": "ring.py --points 8", "ranks": 2,
        "predicted_s": 1.0, "predicted_low_s": 0.9, "predicted_high_s": 1.25,
        "actual_s": 0.8, "actual_low_s": 0.8, "actual_high_s": 0.8, "error_percent": pytest.approx(25.0),
        "state": None, "launches": 1,
    }  # fmt: skip
    slow = compare(prediction(), run_record(seconds={"value": 2.0, "low": 1.9, "high": 2.1}))
    assert slow.error == pytest.approx(-0.5)
    assert worst_and_median([joined, slow]) == pytest.approx((0.5, 0.375))


def test_an_echo_far_from_the_twins_is_noted() -> None:
    line = [{"from_bytes": 0, "base_ps": 1_000_000, "per_byte_fs": 0}]
    steps = [*line, {"from_bytes": 65536, "base_ps": 434_464, "per_byte_fs": 1000}]
    network = {"intra": {"overhead_send": line, "latency": line, "overhead_recv": steps}}
    for echoes, ratio, noted in (([2.5, 99.0, 2.4], 1.0, False), ([5.0, 5.0, 5.0], 2.0, True)):
        launches = [{"seconds": 0.8, "per_rank_s": [0.8, 0.8], "echo_us": echo} for echo in echoes]
        joined = compare(prediction(network=network), run_record(launches=launches))
        assert echo_ratio(joined.prediction, joined.run) == pytest.approx(ratio)
        assert any("echo of 64 KiB" in note for note in joined.notes) == noted
    assert echo_ratio(prediction(network=network), run_record()) is None


def test_the_split_stands_rank_by_rank() -> None:
    frame = split_table(compare(prediction(), run_record()))
    assert frame.columns == [
        "rank", "model_compute_s", "model_endpoint_s", "model_wire_s", "model_waiting_s", "model_total_s",
        "real_launch", "real_compute_s", "real_mpi_s", "real_total_s",
    ]  # fmt: skip
    assert frame.rows() == [(rank, 0.5, 0.25, 0.125, 0.125, 1.0, None, 0.5, 0.25, 0.75) for rank in range(2)]
    without = split_table(compare(prediction(), run_record(split=[])))
    assert without["real_compute_s"].to_list() == [None, None]


def test_the_split_is_of_one_launch_and_sums_to_its_time() -> None:
    """Of three launches with timers the one in the middle by its time, whole."""
    parts = [(0.5, 0.1), (0.2, 0.7), (0.1, 0.6)]
    launches = [Launch(seconds=0.8, per_rank_s=[0.8, 0.8])]
    for compute, mpi in parts:
        split = [RealRank(rank=rank, compute_s=compute, mpi_s=mpi, total_s=compute + mpi) for rank in (0, 1)]
        launches.append(Launch(seconds=compute + mpi, per_rank_s=[compute + mpi] * 2, split=split))
    assert typical(launches[1:]) == 2
    shown = launches[3]
    joined = compare(prediction(), run_record(launches=launches, split=shown.split, split_launch=4))
    for row in split_table(joined).iter_rows(named=True):
        assert (row["real_launch"], row["real_compute_s"], row["real_mpi_s"]) == (4, 0.1, 0.6)
        assert row["real_total_s"] == pytest.approx(launches[row["real_launch"] - 1].per_rank_s[row["rank"]])
        sums = sum(row[f"model_{part}_s"] for part in ("compute", "endpoint", "wire", "waiting"))
        assert row["model_total_s"] == pytest.approx(sums)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("program", "other.py"),
        ("program_sha256", "99"),
        ("args", ["--points", "9"]),
        ("ranks", 3),
        ("layer", "mpi4py/other"),
    ],
)
def test_what_differs_is_named_with_both_values(key: str, value: Any) -> None:
    frozen = prediction()
    with pytest.raises(InputError) as caught:
        compare(frozen, run_record(**{key: value}))
    said = str(caught.value)
    assert said.startswith(f"{key}: {value!r} is not allowed here; allowed: {getattr(frozen, key)!r}")


def test_a_prediction_frozen_after_the_run_began_is_noted() -> None:
    late = prediction(frozen_utc="2026-01-01T00:01:00.000+00:00")
    assert compare(late, run_record()).notes == ["the prediction was recorded after the run had started"]
    # Another zone, the same instant or earlier.
    early = prediction(frozen_utc="2026-01-01T01:00:59.999+01:00")
    assert compare(early, run_record()).notes == []


def test_the_warnings_of_the_prediction_go_with_it() -> None:
    assert compare(prediction(warnings=["a message was lost"]), run_record()).notes == ["a message was lost"]


def test_a_run_that_took_no_time_is_refused() -> None:
    with pytest.raises(InputError, match=r"seconds\.value: 0\.0 .*allowed: a time above 0"):
        compare(prediction(), run_record(seconds={"value": 0.0, "low": 0.0, "high": 0.0}))


@pytest.fixture
def folders() -> list[str]:
    prediction(frozen_utc="2026-01-01T00:02:00+00:00").write(Path("p"))
    run_record().write(Path("r"))
    return ["p", "r"]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_every_format_has_keys_that_end_in_their_unit(folders: list[str], form: str, split: bool) -> None:
    ended = wiretwin("compare", *folders, "--format", form, *(["--split"] if split else []))
    assert ended.code == 0, ended.err
    assert ended.err == "note: the prediction was recorded after the run had started\n"
    if form == "json":
        frame = pl.DataFrame(json.loads(ended.out))
    elif form == "csv":
        frame = pl.read_csv(ended.raw)
    else:
        frame = pl.read_parquet(ended.raw)
    joined = compare(Path("p"), Path("r"))
    wanted = split_table(joined) if split else table([joined])
    assert frame.columns == wanted.columns
    assert frame.rows() == wanted.rows()
    plain = {"program", "ranks", "rank", "state", "launches", "real_launch"}
    assert all(name.endswith(("_s", "_percent")) for name in frame.columns if name not in plain)


def test_the_table_shows_totals_and_split(folders: list[str]) -> None:
    ended = wiretwin("compare", *folders)
    assert ended.code == 0, ended.err
    assert "predicted against actual" in ended.out
    assert "where the time went" in ended.out
    assert "where the time went" in wiretwin("compare", *folders, "--split").out


def test_a_comparison_is_kept_for_the_report(folders: list[str]) -> None:
    ended = wiretwin("compare", *folders, "-o", "c.json")
    assert (ended.code, ended.err.splitlines()[-1]) == (0, "comparison: c.json")
    kept = json.loads(Path("c.json").read_text())
    assert (kept["format"], kept["version"]) == ("wiretwin-comparison", 1)
    (shown,) = gather(comparisons=["c.json"]).comparisons
    assert shown["error"] == pytest.approx(compare(*folders).error)
    refused = wiretwin("compare", *folders, "--loop", "stream")
    assert (refused.code, "--loop: 'stream' is for results" in refused.err) == (2, True)


def test_folders_that_do_not_fit_end_with_status_2(folders: list[str]) -> None:
    ended = wiretwin("compare", "r", "p")
    assert (ended.code, "r/prediction.json: cannot be read: No such file" in ended.err) == (2, True)
    rewrite(Path("r/run.json"), ranks=3)
    ended = wiretwin("compare", *folders)
    assert (ended.code, "r/run.json: digest: " in ended.err) == (2, True)


def test_two_predictions_stand_side_by_side(tmp_path: Path) -> None:
    ring = ["ring", "--twin", "nothing", "--ranks", "4"]
    folders = []
    for network in ("star:rate=1Gbit/s", "star:rate=10Gbit/s"):
        folders.append(tmp_path / network.partition("=")[2].partition("G")[0])
        made = wiretwin("predict", *ring, "--network", network, "-o", folders[-1], "--", "add=1ns")
        assert made.code == 0, made.err
    ended = wiretwin("compare", *folders, "--format", "json")
    assert ended.code == 0, ended.err
    slow, fast = json.loads(ended.out)
    assert (slow["network"], fast["network"]) == ("star:hosts=4,rate=1Gbit/s", "star:hosts=4,rate=10Gbit/s")
    assert (slow["ratio"], fast["ratio"] < 0.2) == (1.0, True)
    assert fast["wire_s"] + fast["waiting_s"] < slow["wire_s"] + slow["waiting_s"]
    assert "is for a run" in wiretwin("compare", *folders, "--split").err
