"""Papers rebuilt: what is committed is what the model says, and data files say what they hold."""

from __future__ import annotations

import html
import json
import math
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wiretwin.errors import InputError
from wiretwin.model.cases import case
from wiretwin.model.echo import Curve, coarse, echo, fine, measure, summary
from wiretwin.model.profiles import Network
from wiretwin.model.values import DATA, read_sheet, write_fitted
from wiretwin.papers import lin1995, run_paper
from wiretwin.papers.fit import constants, fit
from wiretwin.papers.lin1995_interfaces import ABILITIES, interfaces
from wiretwin.papers.lin1995_pvm import is_pvm
from wiretwin.papers.lin1995_settings import socket_setting
from wiretwin.papers.page import NOW, changes, updated, values_csv
from wiretwin.papers.published import committed
from wiretwin.papers.records import Record, digest
from wiretwin.papers.report import fit_errors, render

PAGES = Path(__file__).resolve().parents[3] / "docs" / "papers"


@pytest.mark.parametrize("paper", ["lin1995", "ong2000"])
def test_the_predictions_on_the_page_are_those_of_the_model(paper: str) -> None:
    records: list[Record] = []
    runs: list[str] = []
    for _count, _name, made, digests in run_paper(paper):
        records += made
        runs += digests
    page = PAGES / f"{paper}.md"
    text = page.read_text()
    assert f"Digest of the run: `{digest(records, runs)}`" in text
    stored = (NOW / f"{paper}.csv").read_text()
    assert updated(text, records, digest(records, runs)) == text
    assert values_csv(records) == stored


def test_the_residuals_on_file_are_those_of_the_values_on_file() -> None:
    stored = tomllib.loads((DATA / "papers" / "lin1995-fit.toml").read_text())
    spreads: dict[str, list[float]] = {
        "spread": [],
        "spread_of_sockets": [],
        "spread_of_pvm": [],
        "spread_of_rpc": [],
    }
    for row in stored["residual"]:
        assert row["published"] == lin1995.calibration()[row["experiment"], row["case"], row["metric"]]
        which = "spread_of_sockets" if row["experiment"] == "table2" else "spread"
        which = "spread_of_pvm" if is_pvm(row["case"]) else which
        which = "spread_of_rpc" if lin1995.is_rpc(row["case"]) else which
        spreads[which].append(math.log(row["predicted"] / row["published"]))
    for which, logs in spreads.items():
        assert math.sqrt(sum(log * log for log in logs) / len(logs)) == pytest.approx(stored[which], abs=1e-3)
    t_0 = next(row for row in stored["residual"] if row["metric"] == "t0_us")
    network = lin1995._table1()[0].network
    assert measure(network, [4]).latency_us[0] == pytest.approx(t_0["predicted"], rel=2e-4)


def test_the_model_is_fitted_to_no_figure_that_is_not_a_calibration_figure() -> None:
    stored = tomllib.loads((DATA / "papers" / "lin1995-fit.toml").read_text())["residual"]
    fitted = {(row["experiment"], row["case"], row["metric"]) for row in stored}
    assert fitted <= set(lin1995.calibration())
    assert len(constants()) < len(fitted)


def test_a_record_has_a_published_value_only_where_it_is_calibration() -> None:
    records, _ = lin1995.experiment("table3", quick=True)
    roles = {record.role: record for record in records}
    assert set(roles) == {"calibration", "prediction"}
    for record in records:
        assert (record.role == "calibration") == (record.published is not None)
        assert (record.role == "prediction") == (record.low is not None)


def test_quick_is_the_same_model() -> None:
    [quick] = [record.predicted for record in lin1995.experiment("table1", quick=True)[0][:1]]
    [whole] = [record.predicted for record in lin1995.experiment("table1")[0][:1]]
    assert quick == whole


def test_a_case_is_written_in_one_order() -> None:
    assert case(size=4, host="sparc2", stack="fore/aal5") == "stack=fore/aal5 host=sparc2 size=4"
    with pytest.raises(ValueError, match="colour"):
        case(colour="red")


def test_sizes_are_those_of_the_paper() -> None:
    assert fine()[:3] == [4, 100, 196]
    assert max(fine()) <= 8192
    assert coarse() == [2**power for power in range(2, 21)]


def test_three_numbers_are_read_off_a_curve() -> None:
    sizes = (4, 100, 1000, 10_000)
    curve = Curve(sizes, tuple(100 + size / 10 for size in sizes), "")
    found = summary(curve)
    assert found["t0_us"] == 100.4
    assert found["r_max_MB_s"] == pytest.approx(10_000 / 1100)
    # Between 100 bytes (100/110) and 1000 bytes (5.0): half of 9.09 is 4.545.
    assert found["n_half_bytes"] == pytest.approx(100 + 900 * (10_000 / 2200 - 100 / 110) / (5 - 100 / 110))


def test_an_echo_beside_other_work_varies_and_repeats_with_its_seed() -> None:
    network = Network("fore/aal5", "4/690", "series-200", background=lin1995.BACKGROUND)
    [one] = echo(network, [4], 101)
    [again] = echo(network, [4], 101)
    [other] = echo(network, [4], 101, seed=2)
    assert len(one) == 100
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    quiet = measure(Network("fore/aal5", "4/690", "series-200"), [4]).latency_us[0]
    assert one.min() / 2 == pytest.approx(quiet)
    assert one.max() / 2 > quiet


def test_a_fit_finds_the_constants_that_made_the_figures() -> None:
    def model(values: object) -> list[float]:
        a, b = values["x", "a"], values["x", "b"]  # type: ignore[index]
        return [a + b * size for size in (1, 10, 100, 1000)]

    truth = model({("x", "a"): 7.0, ("x", "b"): 0.3})
    rows = [("e", "c", f"m{number}", value) for number, value in enumerate(truth)]
    found = fit(model, rows, {("x", "a"): 3.0, ("x", "b"): 1.0})
    assert [one.value for one in found.constants] == pytest.approx([7.0, 0.3], rel=1e-3)
    assert found.spread < 1e-3
    with pytest.raises(InputError, match="2 constants for 1 figures"):
        fit(model, rows[:1], {("x", "a"): 3.0, ("x", "b"): 1.0})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("values", "is no TOML"),
        ("title = 'x'", "values: is missing"),
        ("[values]\na_us = 3", "values.a_us: 3"),
        ("[values]\na_us = {value = -1, by = 'input', source = 'x'}", "values.a_us.value: -1"),
        ("[values]\na_us = {value = 1, by = 'guess', source = 'x'}", "allowed: input, choice, fit"),
        ("[values]\na_us = {value = 1, by = 'input'}", "values.a_us.source: is missing"),
        (
            "[values]\na_us = {value = 1, by = 'input', source = 'x', unit = 's'}",
            "values.a_us.unit: is unknown",
        ),
    ],
)
def test_a_data_file_without_number_source_or_origin_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "sheet.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_sheet(path)
    assert said in str(caught.value)


def test_every_data_file_is_whole() -> None:
    paths = [path for folder in ("hosts", "adapters", "networks") for path in (DATA / folder).glob("*.toml")]
    assert len(paths) >= 9
    for path in paths:
        sheet = read_sheet(path)
        for key, value in sheet.values.items():
            assert (value.low is not None) == (value.by == "fit"), f"{path}: {key}"


def test_a_fitted_value_is_written_on_its_line_and_another_is_not(tmp_path: Path) -> None:
    path = tmp_path / "sheet.toml"
    path.write_text(
        '[values]\na_us = { value = 1, by = "fit", source = "s" }\n'
        'b_us = { value = 2, by = "choice", source = "s" }\n'
    )
    write_fitted(path, "a_us", 3.25, 3, 4)
    write_fitted(path, "a_us", 3.5, 3, 4)
    sheet = read_sheet(path)
    assert (sheet.values["a_us"].value, sheet.values["a_us"].high, sheet["b_us"]) == (3.5, 4.0, 2.0)
    with pytest.raises(InputError, match="b_us"):
        write_fitted(path, "b_us", 1, 1, 1)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"PAPER.*lin1995"):
        list(run_paper("nobody1995"))
    with pytest.raises(InputError, match=r"EXPERIMENT.*table1"):
        list(run_paper("lin1995", ["table99"]))
    with pytest.raises(InputError, match=r"--host.*sparc2"):
        measure(Network("fore/aal5", "vax", "series-200"), [4])
    with pytest.raises(InputError, match="types 0, 1 and 2"):
        measure(Network("fore/aal1", "sparc2", "series-200"), [4])


def test_a_page_whose_values_change_wants_a_reason_and_lists_old_and_new() -> None:
    old = Record("chen1996", "e", "c", "t0_us", 10.0, 9.0, 11.0, "prediction")
    new = Record("chen1996", "e", "c", "t0_us", 12.0, 11.0, 13.0, "prediction")
    blank = "Digest of the run: `0`\n\n<!-- values -->\n<!-- end of values -->\n\nBehind.\n"
    stored = committed(values_csv([old]))
    assert stored == {("e", "c", "t0_us"): ("10", "9 to 11", "")}
    assert changes(stored, [old], "d1", "d1", "") == ""
    with pytest.raises(InputError, match="1 values would change, come or go"):
        changes(stored, [new], "d1", "d2", "")
    changed = changes(stored, [new], "d1", "d2", "The bus is slower.")
    assert "## `d1` to `d2`\n\nThe bus is slower.\n\nNew values: 0; gone: 0; changed: 1.\n" in changed
    assert "| e | `c` | t0_us | 10 | 12 |" in changed
    page = updated(blank, [new], "d2")
    assert page.startswith("Digest of the run: `d2`\n\n<!-- values -->\n| experiment |")
    assert page.endswith("<!-- end of values -->\n\nBehind.\n")
    # What is opened stands beside its result and not among the values.
    beside = replace(new, experiment="parking-lot", case="session=A", metric="throughput_Mbit_s")
    assert updated(blank, [new, beside], "d2") == page
    # Points of rho that the page leaves to the file, of which one was nothing.
    before = [Record("p", "e", f"rho={rho}", "loss", loss, None, None, "prediction")
              for rho, loss in ((0.35, 0.0), (0.4, 2.0))]  # fmt: skip
    after = [replace(one, predicted=3.0) for one in before]
    furthest = changes(committed(values_csv(before)), after, "d1", "d2", "More.")
    assert "in the file alone that changed: 2; of all, the furthest by\n50 %." in furthest


@pytest.mark.parametrize(
    ("network", "bands"),
    [
        ("fddi", [(4072, 12800)]),
        ("ethernet", [(4064, 6976), (8416, 9872), (11328, 12768)]),
    ],
)
def test_sizes_stall_without_nodelay_where_the_paper_says(network: str, bands: list[tuple[int, int]]) -> None:
    setting = socket_setting(network, nodelay=False)
    edges = [edge for band in bands for edge in band]
    inside = [low + 200 for low, _ in bands] + [high - 200 for _, high in bands]
    outside = [low - 200 for low, _ in bands] + [high + 200 for _, high in bands]
    curve = measure(setting.network, [*inside, *outside], rounds=11)
    stalled = {size for size, time in zip(curve.sizes_bytes, curve.latency_us, strict=True) if time > 50_000}
    assert edges == sorted(edges)
    assert stalled == set(inside)


def test_a_report_shows_every_value(tmp_path: Path) -> None:
    records, _ = lin1995.experiment("table3", quick=True)
    more, _ = lin1995.experiment("figure7", quick=True)
    text = render("lin1995", records + more, tmp_path / "page.html").read_text()
    assert text.count(">calibration</td>") == 15
    assert "The fit against what is published" in text
    (found,) = re.findall(r'aria-label="Main findings">(.*?)</ul>', text, re.S)
    assert "Of 15 values that the model was fitted to the furthest off is" in found
    assert "Latency by size, in small steps" in text
    assert "http://" not in text.split("<script")[0]


def test_a_report_shows_what_was_tried_as_the_table_does(tmp_path: Path) -> None:
    made = Record("lin1995", "table7", "stack=fore/aal5", "spawn", 0.0, None, None, "prediction")
    page = render("lin1995", [made], tmp_path / "page.html").read_text()
    trials = lin1995.EVIDENCE["table7"]()
    assert len({case for case, _, _ in trials}) == len(interfaces())
    assert {ability for _, ability, _ in trials} == set(ABILITIES)
    shown = re.findall(r'data-label="What came of it">([^<]*)</td>', page)
    assert shown == [html.escape(trial.evidence) for _, _, trial in trials]
    able = re.findall(r'data-label="Able">([^<]*)</td>', page)
    assert able == ["yes" if trial.able else "no" for _, _, trial in trials]


def test_the_size_of_a_matrix_is_no_number_of_bytes() -> None:
    def value(program: str, size: int) -> Record:
        return Record(
            "lin1995", "x", f"program={program} size={size}", "time_s", 1, None, None, "calibration", 1
        )

    lines = fit_errors("x", [value("mm", 32), value("pde", 16), value("cast", 4)]).figure.data[0].y
    assert list(lines) == ["mm n = 32 time", "pde n = 16 time", "cast 4 B time"]


def test_the_figure_of_errors_shows_the_furthest_of_them() -> None:
    def value(network: str, predicted: float) -> Record:
        metric, role = "n_half_bytes", "calibration"
        where = f"network={network}"
        return Record("lin1995", "table2", where, metric, predicted, None, None, role, published=100.0)

    near, far = value("atm", 110.0), value("fddi", 175.0)
    low, high = fit_errors("table2", [near, far]).figure.layout.xaxis.range
    assert low < -75
    assert high > 75
    low, high = fit_errors("table2", [near]).figure.layout.xaxis.range
    assert (low, high) == (-30, 30)
    # Each value has a line of its own, named by what tells it from the others.
    one, two = (replace(near, case=f"stack=fore/aal5 host=sparc2 adapter={which}") for which in ("a", "b"))
    other = replace(one, case="stack=fore/aal34 host=sparc2 adapter=a", metric="r_max_MB_s")
    assert list(fit_errors("table2", [one, two]).figure.data[0].y) == ["a n_half", "b n_half"]
    lines = list(fit_errors("table2", [one, two, other]).figure.data[0].y)
    assert lines == ["fore/aal5 a n_half", "fore/aal5 b n_half", "fore/aal34 a r_max"]


def test_records_go_to_json(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    from wiretwin.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["papers", "lin1995", "table1", "--quick", "--format", "json"])
    assert ended.value.code == 0
    [first, *_] = json.loads(capsysbinary.readouterr().out)
    assert list(first) == [
        "paper", "experiment", "case", "metric", "predicted", "low", "high", "role", "published",
    ]  # fmt: skip
    assert first["metric"] == "t0_us"
