"""The page without a browser: what it says, what it leaves out, what it never lets through."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import report_data

from wiretwin.errors import InputError, StorageError
from wiretwin.report import render
from wiretwin.report.findings import (
    between,
    cautions,
    findings,
    headline,
    leaders_by_size,
    loop,
    rank,
    small,
)
from wiretwin.report.inputs import gather
from wiretwin.report.sections import curves, setting
from wiretwin.report.writer import compose

MOST_BYTES = 6_000_000


class Reader(HTMLParser):
    """Collects tags with their attributes, and the text outside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._skipping = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._skipping += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._skipping -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.text.append(data)


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def unpacked(path: Path, name: str) -> str:
    page = path.read_text(encoding="utf-8")
    packed = re.search(rf'id="{name}-packed">([^<]*)<', page)
    assert packed is not None
    return gzip.decompress(base64.b64decode(packed[1])).decode()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return render(**report_data.everything(), out=tmp_path_factory.mktemp("report") / "report.html")


def test_the_file_is_whole_by_itself_and_small(page: Path) -> None:
    size = page.stat().st_size
    print(f"report.html: {size} bytes")
    assert size < MOST_BYTES
    reader = read(page)
    for tag, attributes in reader.tags:
        assert not attributes.get("src"), (tag, attributes)
        if tag in ("a", "link"):
            assert str(attributes.get("href")).startswith(("#", "data:")), attributes
    css = re.search(r"<style>(.*?)</style>", page.read_text(encoding="utf-8"), re.S)
    assert css is not None
    assert "@import" not in css[1]
    assert "url(" not in css[1]


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    first = render(**report_data.everything(), out=tmp_path / "a.html").read_bytes()
    assert render(**report_data.everything(), out=tmp_path / "b.html").read_bytes() == first


def test_every_section_is_there_and_in_order(page: Path) -> None:
    sections = [a["id"] for tag, a in read(page).tags if tag == "section"]
    assert sections == [
        "top",
        "curves",
        "layers",
        "fit",
        "predicted-section",
        "where",
        "timeline",
        "setting",
    ]


def test_the_figures_of_the_page_are_the_ones_it_packs(page: Path) -> None:
    packed = json.loads(unpacked(page, "figures"))
    placed = [a["data-figure"] for _tag, a in read(page).tags if "data-figure" in a]
    assert set(placed) == set(packed["figures"])
    assert len(placed) == len(set(placed)) == 15
    assert "plotly" in unpacked(page, "plotly")[:200]


@pytest.mark.parametrize(
    ("given", "absent", "commands"),
    [
        (("result",), {"fit", "predicted-section", "where", "timeline"}, ["wiretwin fit"]),
        (("twin",), {"curves", "fit", "predicted-section", "where", "timeline"}, ["wiretwin measure"]),
        (("result", "twin"), {"predicted-section", "where", "timeline"}, ["wiretwin predict"]),
        (("comparisons",), {"curves", "layers", "fit", "timeline"}, ["wiretwin measure", "wiretwin fit"]),
    ],
)
def test_a_section_without_data_is_left_out_and_named(
    tmp_path: Path, given: tuple[str, ...], absent: set[str], commands: list[str]
) -> None:
    everything = report_data.everything()
    reader = read(render(**{key: everything[key] for key in given}, out=tmp_path / "r.html"))
    sections = {a["id"] for tag, a in reader.tags if tag == "section"}
    assert not sections & absent
    assert "missing" in sections
    text = " ".join(reader.text)
    for command in commands:
        assert command in text


def test_nothing_to_show_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to show"):
        render(out=tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no-such-folder"):
        render(twin=report_data.twin(), out=tmp_path / "no-such-folder" / "r.html")


def test_a_record_that_lacks_a_key_is_refused_by_name() -> None:
    broken = report_data.comparisons()[0]
    del broken["run"]["seconds"]
    with pytest.raises(InputError, match=r"run\.seconds"):
        gather(comparisons=[broken])


def test_a_foreign_record_is_refused() -> None:
    with pytest.raises(InputError, match="wiretwin-prediction"):
        gather(predictions=[{"format": "something-else"}])


def test_records_are_read_from_a_folder_with_the_timeline_beside_them(tmp_path: Path) -> None:
    item = report_data.comparisons()[0]["prediction"]
    (tmp_path / "prediction.json").write_text(json.dumps(item))
    report_data.timeline(iterations=3).write_parquet(tmp_path / "timeline.parquet")
    inputs = gather(predictions=[tmp_path])
    assert len(inputs.timelines) == 1
    (tmp_path / "timeline.parquet").write_bytes(b"PAR1 cut off")
    with pytest.raises(InputError, match=r"timeline\.parquet"):
        gather(predictions=[tmp_path])


def test_a_folder_with_a_prediction_and_a_run_is_a_comparison(tmp_path: Path) -> None:
    item = report_data.comparison("a.py", ["7"], 2.0, 0.1)
    (tmp_path / "prediction.json").write_text(json.dumps(item["prediction"]))
    (tmp_path / "run.json").write_text(json.dumps(item["run"]))
    report_data.timeline(iterations=3).write_parquet(tmp_path / "timeline.parquet")
    inputs = gather(comparisons=[tmp_path])
    assert inputs.comparisons[0]["error"] == pytest.approx(0.1)
    assert len(inputs.timelines) == 1
    assert inputs.run_of(inputs.predictions[0]) == inputs.comparisons[0]["run"]
    (tmp_path / "run.json").write_text(json.dumps(item["run"] | {"ranks": 4}))
    with pytest.raises(InputError, match=r"run\.json: program: .*on 4 ranks.*on 2 ranks"):
        gather(comparisons=[tmp_path])


def test_a_comparison_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "comparison.json"
    path.write_text(json.dumps(report_data.comparisons()[0]))
    assert gather(comparisons=[path]).comparisons == gather(comparisons=[tmp_path]).comparisons
    path.write_text("{")
    with pytest.raises(InputError, match=r"comparison\.json"):
        gather(comparisons=[path])


def test_a_thousand_ranks_make_a_page_of_bounded_size(tmp_path: Path) -> None:
    item = report_data.comparison("wide.py", [], 1.0, 0.02, ranks=1000)
    prediction = item["prediction"] | {"timeline": report_data.timeline(ranks=1000, iterations=20)}
    path = render(predictions=[prediction], comparisons=[item], out=tmp_path / "r.html")
    assert path.stat().st_size < MOST_BYTES
    text = " ".join(read(path).text)
    assert re.search(r"Bars for 1[4-6] of 1000 ranks", text)
    assert re.search(r"6[0-9] of 1000 ranks are shown", text)
    figures = json.loads(unpacked(path, "figures"))["figures"]
    assert len(figures["breakdown-1"]["data"][0]["y"]) <= 32


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}"


def hostile() -> dict[str, Any]:
    """Everything a page shows that comes from elsewhere, made hostile."""
    frame = report_data.samples(launches=3, layers=("shm", "socket/tcp")).with_columns(
        pl.col("layer").replace({"shm": HOSTILE})
    )
    result = report_data.FakeResult(report_data.manifest(frame), frame, Path(HOSTILE.replace("/", "|")))
    result.manifest["host"] = {"name": HOSTILE, "cpu_model": HOSTILE, HOSTILE: HOSTILE}
    result.manifest["options"] = {HOSTILE: [HOSTILE]}
    result.manifest["launches"][-1]["error"] = HOSTILE
    result.manifest["stopped"] = {HOSTILE: HOSTILE}
    result.damaged = [HOSTILE]
    twin = report_data.twin()
    twin["layers"][HOSTILE] = twin["layers"]["mpi4py/mpich"]
    item = report_data.comparison(HOSTILE, [HOSTILE], 1.0, 0.05)
    item["notes"] = [HOSTILE]
    item["prediction"]["layer"] = HOSTILE
    prediction = dict(item["prediction"])
    prediction["timeline"] = report_data.timeline(iterations=4).with_columns(
        pl.lit(HOSTILE).alias("name"), pl.lit(HOSTILE).alias("site")
    )
    return {"result": result, "twin": twin, "predictions": [prediction], "comparisons": [item]}


def test_hostile_names_are_shown_and_never_obeyed(tmp_path: Path) -> None:
    path = render(**hostile(), out=tmp_path / "r.html")
    reader = read(path)
    assert not [tag for tag, _a in reader.tags if tag == "img"]
    assert sum(tag == "script" for tag, _a in reader.tags) == 4
    assert not [a for _tag, a in reader.tags if any(key.startswith("on") for key in a)]
    text = "".join(reader.text)
    assert text.count(HOSTILE) > 10
    figures = unpacked(path, "figures")
    shown = re.sub(r'"layer":"(\\.|[^"\\])*"', "", figures)
    assert "<script" not in shown
    assert "<img" not in shown


def test_overlapping_intervals_are_not_ranked() -> None:
    rows = [
        {"layer": "a", "v": 1.0, "lo": 0.9, "hi": 1.2},
        {"layer": "b", "v": 1.1, "lo": 1.0, "hi": 1.3},
        {"layer": "c", "v": 3.0, "lo": 2.8, "hi": 3.1},
    ]
    ranking = rank(rows, "v", "lo", "hi")
    assert [row["layer"] for row in ranking.leaders] == ["a", "b"]
    assert not ranking.clear
    assert rank(rows[::2], "v", "lo", "hi").clear
    largest = rank(rows, "v", "lo", "hi", least=False)
    assert (largest.best["layer"], largest.clear) == ("c", True)


def best_by_size(inputs: Any) -> Any:
    """The table of the fastest layers."""
    (section,) = curves.build(inputs)
    return next(block for group in section.groups for block in group.blocks if block.id == "best")


def test_without_intervals_nothing_is_ranked() -> None:
    inputs = gather(result=report_data.result(launches=1))
    found = small(inputs)
    assert found is not None
    assert not found[1].clear
    text = " ".join(map(str, findings(inputs)))
    assert "faster" not in text
    assert "spin" not in text
    assert "fastest here" not in headline(inputs)
    assert "At 4\u00a0B none is called fastest: every layer was launched only once" in text
    assert "For large messages none is called the fastest: every layer was launched" in text
    assert "overlap" not in text
    best = best_by_size(inputs)
    assert [row[1:3] for row in best.table.rows] == [["not known", "one launch only"]]
    assert "launched only once has no interval" in best.summary


def test_a_layer_launched_once_is_named_as_why_nothing_is_ranked() -> None:
    frame = report_data.samples(launches=4, layers=("socket/unix", "socket/tcp"))
    number = frame.filter(pl.col("layer") == "socket/tcp")["launch"].min()
    frame = frame.filter((pl.col("layer") != "socket/tcp") | (pl.col("launch") == number))
    inputs = gather(result=report_data.FakeResult(report_data.manifest(frame), frame))
    text = "\n".join(map(str, findings(inputs))).replace("\u00a0", " ")
    assert (
        "At 4 B none is called fastest: <strong>socket/tcp</strong> was launched only once, which does not "
        "allow a ranking." in text
    )
    best = best_by_size(inputs)
    assert {row[2] for row in best.table.rows} == {"one launch only"}


def test_hosts_of_a_testbed_and_what_joins_them_are_named_at_the_top() -> None:
    inputs = gather(result=report_data.result(launches=1))
    assert between(inputs) == []
    hosts = [{"name": "h1", "address": "10.20.0.1"}, {"name": "h2", "address": "10.20.0.2"}]
    place = {"kind": "testbed", "hosts": hosts, "link": {"kind": "wire", "rate_bit_s": 10_000_000}}
    options = {**inputs.manifest.get("options", {}), "place": place}
    apart = dataclasses.replace(inputs, manifest={**inputs.manifest, "options": options})
    assert "2 hosts on" in headline(apart)
    assert between(apart) == ["a testbed of 2 hosts, link wire of 10.0 Mbit/s"]
    assert "h1 (10.20.0.1), h2 (10.20.0.2)" in str(setting.build(apart))


def test_layers_that_overlap_are_named_with_their_figures() -> None:
    frame = report_data.samples(launches=4, layers=("socket/unix", "socket/tcp"))
    spread = pl.col("launch").cast(pl.Float64).mod(3).add(1)
    frame = frame.with_columns((pl.col("value_ns") * spread).cast(pl.UInt64))
    inputs = gather(result=report_data.FakeResult(report_data.manifest(frame), frame))
    text = "\n".join(map(str, findings(inputs))).replace("\u00a0", " ")
    assert re.search(
        r"At 4 B the intervals of <strong>socket/\w+</strong> \([\d.]+\W+[\d.]+ µs\) and "
        r"<strong>socket/\w+</strong> \([\d.]+\W+[\d.]+ µs\) overlap, so neither is called fastest",
        text,
    )
    assert "For large messages the intervals of" in text


def test_findings_follow_the_data() -> None:
    everything = report_data.everything()
    text = "\n".join(map(str, findings(gather(**everything)))).replace("\u00a0", " ")
    assert re.search(
        r"<strong>shm</strong> carries 4 B one way in [\d.]+ ns \([\d.]+\W+[\d.]+\); the next, ", text
    )
    assert re.search(r" takes at least [\d.]+ times as long: ", text)
    assert "<strong>shm</strong> has the largest throughput" in text
    assert re.search(
        r"On <strong>socket/tcp</strong>, the setting <code>spin</code> takes at least \d\d % off", text
    )
    assert "waits for its receiver (rendezvous) from 64 KiB" in text
    assert "5 programs were predicted before they ran: the median error is 4.4 %, the worst 11.2 %" in text
    held = "\n".join(map(str, cautions(gather(**everything))))
    assert "1 of 10 fitted segments bends" in held
    assert "1 of 36 launches did not end well" in held
    assert "busy" not in held
    assert "budget" not in held


def test_launches_in_two_states_name_no_value() -> None:
    """As a host gave them: two launches at 64 and 68 ns, one at 202; another layer far above."""
    frame = report_data.samples(launches=3, layers=("shm", "socket/tcp"))
    first = frame.filter(pl.col("layer") == "shm")["launch"].min()
    times = pl.when(pl.col("launch") == first).then(3).otherwise(1) * pl.col("value_ns")
    frame = frame.with_columns(
        value_ns=pl.when(pl.col("layer") == "shm").then(times).otherwise(1000 * pl.col("value_ns"))
    )
    inputs = gather(result=report_data.FakeResult(report_data.manifest(frame), frame))
    said = headline(inputs).replace("\u00a0", " ")
    assert re.fullmatch(
        r"shm is fastest here: 4 B in a time that is not settled \(\d+\W+[\d\u202f]+ ns\)", said
    )


def test_programs_that_had_no_core_are_told() -> None:
    items = [report_data.comparison(f"{name}.py", [], 2.0, -0.6) for name in ("a", "b", "c")]
    for launch in items[0]["run"]["launches"] + items[1]["run"]["launches"]:
        launch["queued_s"] = 1.25
    for launch in items[2]["run"]["launches"]:
        launch["queued_s"] = 0.01
    (said,) = cautions(gather(comparisons=items))
    assert said.replace("\u00a0", " ").startswith(
        "The host was busy while 2 programs ran: for up to 62.5 % of the actual time a rank was ready to "
        "compute and had no core."
    )
    assert cautions(gather(comparisons=items[2:])) == []


def test_a_busy_host_is_told_and_its_own_ranks_are_not() -> None:
    result = report_data.result(launches=3)
    for launch in result.manifest["launches"]:
        launch["load_before"] = 6.3
    assert "busy" in "\n".join(map(str, cautions(gather(result=result))))
    for launch in result.manifest["launches"]:
        launch["load_before"] = 2.4  # what two spinning ranks leave behind
    assert "busy" not in "\n".join(map(str, cautions(gather(result=result))))


def test_a_spent_budget_is_told() -> None:
    result = report_data.result(launches=3)
    result.manifest["stopped"] = {"shm": "budget", "socket/tcp": "narrow"}
    held = "\n".join(map(str, cautions(gather(result=result))))
    assert held.count("shm was stopped by the time budget of 40\u00a0s before the intervals were narrow") == 1
    assert "interrupt" not in held
    result.manifest["stopped"] = {"shm": "interrupt", "socket/tcp": "interrupt"}
    held = "\n".join(map(str, cautions(gather(result=result))))
    assert held.count("Every layer was stopped by an interrupt before the intervals were narrow enough.") == 1
    assert "budget" not in held


def test_the_fastest_layers_are_joined_over_sizes() -> None:
    inputs = gather(result=report_data.result())
    found = leaders_by_size(inputs)
    assert (found[0][0], found[-1][1]) == (4, 1 << 22)
    assert [row["layer"] for row in found[0][2]] == ["shm"]
    for (_f, last, names, _r), (first, _l, following, _s) in pairwise(found):
        assert last < first
        assert {row["layer"] for row in names} != {row["layer"] for row in following}


def test_a_late_prediction_is_not_called_frozen() -> None:
    items = report_data.comparisons()
    items[2]["prediction"]["frozen_utc"] = "2031-05-04T11:00:00.000+00:00"
    text = "\n".join(map(str, findings(gather(comparisons=items))))
    assert "were predicted:" in text
    assert "before they ran" not in text


def test_a_bad_prediction_is_called_one() -> None:
    within = headline(gather(comparisons=[report_data.comparison("a.py", [], 1.0, -0.25)]))
    assert within.replace("\u00a0", " ") == "The program was predicted within 25 %"
    beyond = headline(gather(comparisons=[report_data.comparison("a.py", [], 1.0, -0.66)]))
    assert beyond.replace("\u00a0", " ") == "The program was mispredicted by up to 66 %"


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ((0.1, -0.66, 0.02), "1 of 3 programs was mispredicted by up to 66 %"),
        ((0.3, -0.66, 0.02), "2 of 3 programs were mispredicted by up to 66 %"),
        ((0.3, -0.66, 0.42), "3 programs were mispredicted by up to 66 %"),
        ((0.1, -0.2), "2 programs were predicted within 20 %"),
    ],
)
def test_as_many_predictions_are_called_bad_as_are(errors: tuple[float, ...], said: str) -> None:
    some = [report_data.comparison(f"{place}.py", [], 1.0, error) for place, error in enumerate(errors)]
    assert headline(gather(comparisons=some)).replace("\u00a0", " ") == said


def test_the_loop_shows_what_was_not_done() -> None:
    steps = {step.verb: step.figure for step in loop(gather(twin=report_data.twin()))}
    assert steps["fit"].startswith("10")
    assert not any(steps[verb] for verb in ("measure", "simulate", "predict", "run", "compare"))


def test_failed_launches_are_told_with_their_reason() -> None:
    page = compose(gather(result=report_data.result()))
    setting = next(section for section in page.sections if section.id == "setting")
    failed = next(block for block in setting.blocks if block.id == "failed")
    assert failed.table.rows == [["36", "socket/udp", "failed", "rank 1: no reply within 20 s (recvfrom)"]]  # type: ignore[union-attr]


def test_each_figure_has_words_and_a_table() -> None:
    page = compose(gather(**report_data.everything()))
    for block in page.figures():
        assert block.summary.endswith(".")
        assert block.table.rows
        for row in block.table.rows:
            assert len(row) == len(block.table.columns)
