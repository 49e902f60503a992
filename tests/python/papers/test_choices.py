"""Choices of the papers: declared with range and source, drawn evenly, and what they do to the values."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from wiretwin.errors import InputError
from wiretwin.papers import PAPERS, published
from wiretwin.papers.choices import choices, hypercube
from wiretwin.papers.intervals import COLUMNS, sampled, summary
from wiretwin.papers.published import Opened, Valued, opened


@pytest.mark.parametrize("paper", PAPERS)
def test_every_choice_has_a_range_and_a_source(paper: str) -> None:
    found = choices(paper)
    assert len({one.key for one in found}) == len(found) >= 5
    for one in found:
        assert one.source, one.key
        assert one.at(0.0) != one.at(0.999999), one.key


@pytest.mark.parametrize("paper", PAPERS)
def test_each_part_of_each_range_is_drawn_once(paper: str) -> None:
    draws = hypercube(paper, 8)
    assert draws == hypercube(paper, 8)
    for one in choices(paper):
        drawn = [draw[one.key] for draw in draws]
        if one.values:
            assert {str(value) for value in drawn} == {str(value) for value in one.values}
            continue
        edges = [float(one.at(part / 8)) for part in range(8)]
        parts = sorted(sum(float(value) >= edge for edge in edges) for value in drawn)
        assert parts == list(range(1, 9)), one.key


def test_a_choice_that_is_not_whole_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "choices").mkdir()
    monkeypatch.setattr("wiretwin.papers.choices.FOLDER", tmp_path)
    for name, row, said in (
        ("a", 'key = "k"\nlow = 1\nhigh = 2', "source"),
        ("b", 'key = "k"\nsource = "s"\nlow = 2\nhigh = 1', "low below high"),
        ("c", 'key = "k"\nsource = "s"\nlow = 0\nhigh = 1', "low below high"),
    ):
        (tmp_path / "choices" / f"{name}.toml").write_text(f"[[choice]]\n{row}\n")
        with pytest.raises(InputError, match=said):
            choices(name)


def test_intervals_are_the_percentiles_of_the_draws_and_name_what_moves_a_value() -> None:
    draws = hypercube("vila1998", 32)
    key = ("e", "c", "m")
    runs = [({}, {key: 100.0, ("e", "c", "zero"): 0.0})]
    runs += [(draw, {key: float(draw["port.buffer"])}) for draw in draws]
    [row] = csv.DictReader(summary("vila1998", runs).splitlines())
    assert list(row) == list(COLUMNS)
    assert (row["choice"], row["share"]) == ("port.buffer", "1.00")
    assert 3.0 < float(row["low_ratio"]) < 4.0 < 25 < float(row["high_ratio"]) < 30


def test_draws_that_were_run_are_not_run_again(tmp_path: Path) -> None:
    first = sampled("ong2000", tmp_path, draws=1, workers=1)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert len(files) == 2
    assert sampled("ong2000", tmp_path, draws=1, workers=1) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == files


FILES = sorted((published.FOLDER / "intervals").glob("*.csv"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_intervals_on_file_are_of_opened_results(path: Path) -> None:
    paper = path.stem
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    of = {(one.experiment, one.case, one.metric) for one in opened(paper)}
    assert {(row["experiment"], row["case"], row["metric"]) for row in rows} <= of
    assert {row["choice"] for row in rows} <= {one.key for one in choices(paper)}
    for one in opened(paper):
        low, high = one.now.low, one.now.high
        assert low is None or high is None or low <= one.now.value <= high


def test_a_wide_interval_and_a_missed_result_both_cost() -> None:
    def of(low: float, high: float) -> Opened:
        found = Valued("e", "c", "m", 10.0, low, high)
        return Opened("p", "e", "c", "m", 12.0, found, found, "", True)

    # Gneiting and Raftery 2007, equation 43: 90 %.
    assert of(9, 13).interval_score("now") == pytest.approx(4 / 12)
    assert of(9, 11).interval_score("now") == pytest.approx((2 + 20 * 1) / 12)
    assert of(13, 14).interval_score("now") == pytest.approx((1 + 20 * 1) / 12)
    assert of(9, 13).width("now") == pytest.approx(0.4)


def test_intervals_that_are_not_those_of_their_digest_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(published.FOLDER / "intervals", tmp_path / "intervals")
    monkeypatch.setattr(published, "FOLDER", tmp_path)
    published._moved.cache_clear()
    assert published._moved("chen1996")
    with (tmp_path / "intervals" / "chen1996.csv").open("a") as file:
        file.write("six-sessions,a,b,0.1,9,tick_ms,1.00\n")
    published._moved.cache_clear()
    try:
        with pytest.raises(InputError, match="is not its digest"):
            published._moved("chen1996")
    finally:
        published._moved.cache_clear()
