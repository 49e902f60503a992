"""Vila-Sallent and Solé-Pareta 1998 rebuilt: what is committed is what the model says."""

from __future__ import annotations

import csv
import io
import tomllib
from pathlib import Path

import pytest

from wiretwin.cli import main
from wiretwin.model.values import DATA
from wiretwin.papers import vila1998
from wiretwin.papers.page import NOW
from wiretwin.papers.published import committed
from wiretwin.papers.report import render
from wiretwin.papers.vila1998.curves import (
    CONFIDENCE,
    FOLDER,
    MECHANISMS,
    MOST,
    NARROW,
    PROGRAMS,
    REPLICATIONS,
    paper,
    rate_kbit_s,
    scenario,
)
from wiretwin.scenario import simulate
from wiretwin.sweep.plan import seed_of
from wiretwin.sweep.run import interval

PAGE = Path(__file__).resolve().parents[3] / "docs" / "papers" / "vila1998.md"
Rows = dict[tuple[str, str, str], tuple[str, str, str]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    return committed((NOW / "vila1998.csv").read_text())


def test_every_experiment_has_every_point_of_rho(rows: Rows) -> None:
    read = list(csv.DictReader(io.StringIO((NOW / "vila1998.csv").read_text())))
    assert {row["experiment"] for row in read} == set(vila1998.EXPERIMENTS)
    for name in ("latency", "cell-loss", "abr-utilisation"):
        found = [row for row in read if row["experiment"] == name]
        assert len(found) == 17 * len(PROGRAMS) * len(MECHANISMS)
        assert all(row["interval"] for row in found)
    published = {row["case"]: row["published"] for row in read if row["published"]}
    assert published == {"program=PDE1 mechanism=abr": "275", "program=PDE2 mechanism=abr": "289"}
    text = PAGE.read_text()
    assert text.count("| latency |") == 5 * len(PROGRAMS) * len(MECHANISMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_point_of_the_page_is_that_of_the_model_to_the_digit(rows: Rows, program: str) -> None:
    found = scenario(program, None, task={"mechanism": "abr"}, background={"rho": 0.3})
    runs = [simulate(found, seed=seed_of(found, at)).metrics for at in range(REPLICATIONS)]
    for name, metric in (("latency", "latency_us"), ("bandwidth", "abr_kbit_s"), ("bandwidth", "vbr_kbit_s")):
        value = interval([run[metric] for run in runs], CONFIDENCE)
        case = f"program={program} mechanism=abr rho=0.3"
        assert rows[name, case, metric][:2] == (
            f"{value.mean:.5g}",
            f"{value.low:.5g} to {value.high:.5g}",
        )


def test_intervals_of_latency_are_as_narrow_as_the_papers(rows: Rows) -> None:
    metric, share = NARROW
    for (name, case, _), (value, ends, _) in rows.items():
        if name == "latency":
            low, high = map(float, ends.split(" to "))
            assert (high - low) / 2 <= share * float(value) * 1.001, case
    assert metric == "latency_us"


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_the_command_of_the_page_makes_the_curves(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text().replace("\\\n", "")
    command = [line.split() for line in text.splitlines() if line.startswith("    wiretwin sweep ")][number]
    assert command[1:3] == ["sweep", "data/papers/vila1998/scenario.toml"]
    given = list(zip(command[3::2], command[4::2], strict=True))
    rho = paper()["inputs"]["rho"]
    axis = f"rho={rho['low']}:{rho['high']}:{rho['step']}"
    assert given[2:-1] == [
        ("--over", axis),
        ("--over", f"mechanism={','.join(MECHANISMS)}"),
        ("--replications", str(REPLICATIONS)),
        ("--until", f"{NARROW[0]}={NARROW[1]:.0%}"),
        ("--most", str(MOST)),
        ("--confidence", str(CONFIDENCE)),
    ]
    # The same at the points, and for the time, of a quick run.
    quick = [option for option in given if option[0] not in ("--until", "--most", "-o")]
    quick[quick.index(("--over", axis))] = ("--over", "rho=0.5,1.1")
    quick[quick.index(("--replications", str(REPLICATIONS)))] = ("--replications", "2")
    quick += [("--over", "time=2000 ms"), ("--over", "warm_up=100 ms"), ("-o", str(tmp_path / "out"))]
    with pytest.raises(SystemExit) as ended:
        main(["sweep", str(FOLDER / "scenario.toml"), *(word for option in quick for word in option)])
    assert ended.value.code == 0
    digest = capsys.readouterr().err.split("digest ")[1].split()[0]
    assert digest == vila1998.experiment("latency", quick=True)[1][number]


def test_the_constants_are_those_of_the_calibration_figures(rows: Rows) -> None:
    paces = tomllib.loads((FOLDER / "paper.toml").read_text())["pace"]
    for program, figure in (("PDE1", 275.0), ("PDE2", 289.0)):
        assert rate_kbit_s(program, paces[program]) == pytest.approx(figure, rel=0.01)
        predicted = float(rows["bandwidth", f"program={program} mechanism=abr", "abr_kbit_s"][0])
        assert predicted == pytest.approx(figure, rel=0.02)


def test_the_set_up_is_the_papers_where_it_says_something() -> None:
    given = tomllib.loads((FOLDER / "paper.toml").read_text())["inputs"]
    for program in PROGRAMS:
        found = scenario(program)
        assert found.port is not None
        assert found.task is not None
        assert found.port.utilization == given["abr"]["target_utilisation"]
        assert found.port.interval == given["abr"]["measurement_interval_cells"]
        assert found.task.peak == given["abr"]["peak_rate_Mbit_s"]
        mechanism = given["mechanism"]
        assert found.task.poll == 1e3 * mechanism["sscop_poll_interval_s"]
        assert found.task.monitor == 1e3 * mechanism["lme_monitoring_interval_s"]
        assert found.task.loss == 1e3 * mechanism["lme_loss_threshold_TL_s"]
        assert found.task.high == pytest.approx(1e3 * mechanism["ece_latency_threshold_TM_s"])
        assert found.task.low == pytest.approx(1e3 * mechanism["ece_latency_threshold_Tm_s"])
    assert FOLDER.is_relative_to(DATA)


def test_the_page_of_a_quick_run_has_every_experiment(tmp_path: Path) -> None:
    records, digests = [], []
    for name in vila1998.EXPERIMENTS:
        made, runs = vila1998.experiment(name, quick=True)
        records += made
        digests += runs
    # One sweep of each program, whatever is looked at.
    assert len(set(digests)) == len(PROGRAMS)
    text = render("vila1998", records, tmp_path / "page.html").read_text()
    assert all(name in text for name in vila1998.EXPERIMENTS)
    high = {one.case: one.predicted for one in records if one.metric == "cell_loss_ratio"}
    assert high["program=PDE2 mechanism=ubr rho=1.1"] > 0.05 > high["program=PDE2 mechanism=abr rho=1.1"]


def test_choices_and_ways_of_watching_are_keys_of_the_scenario() -> None:
    document = scenario("PDE2").document
    varied = "port.buffer background.abr background.burst background.peak background.sources port.reserve"
    for name in f"{varied} port.push_out task.stamps task.keep_alive task.source port.leg".split():
        table, key = name.split(".")
        assert key in document[table]
    share = {}
    for watch in ("each-cell", "average", "on-demand", "round-trip", "network"):
        one = scenario(
            "PDE2", task={"time": "500 ms", "watch": watch}, port={"efci": 30}, background={"rho": 0.9}
        )
        share[watch] = simulate(one).metrics["abr_share"]
    # Half of a way there and of a free way back is half as late as the way there.
    assert 0 < share["round-trip"] < share["each-cell"]
