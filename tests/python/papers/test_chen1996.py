"""Chen, Brandt and Armstrong 1996 rebuilt: what is committed is what the model says."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from pathlib import Path

import pytest

from wiretwin._core import pim_pairs, run_sessions, switch_carries
from wiretwin.errors import InputError
from wiretwin.model.values import DATA, read_sheet
from wiretwin.papers import chen1996, matchings
from wiretwin.papers.chen1996.mixed import NETWORKS
from wiretwin.papers.chen1996.pim import SHARES, estimate, interval
from wiretwin.papers.chen1996.scenario import Plan, Rules, an2
from wiretwin.papers.chen1996.sessions import cells_of, six_plan
from wiretwin.papers.page import NOW, values_csv
from wiretwin.papers.published import committed
from wiretwin.papers.records import Record, Role
from wiretwin.papers.report import render

PAPER = tomllib.loads((DATA / "papers" / "chen1996.toml").read_text())


def stored() -> dict[tuple[str, str, str], tuple[str, str, str]]:
    return committed((NOW / "chen1996.csv").read_text())


def test_every_experiment_is_on_the_page_and_none_besides() -> None:
    rows = list(csv.DictReader(io.StringIO((NOW / "chen1996.csv").read_text())))
    assert {row["experiment"] for row in rows} == set(chen1996.EXPERIMENTS)
    for row in rows:
        # What is published is shown only where it is a calibration figure.
        known = [one for one in PAPER["calibration"] if one["case"] == row["case"]]
        assert (row["published"] != "") == bool(known)


def test_rounds_of_the_page_are_those_of_the_model() -> None:
    values = stored()
    for rounds in (1, 2, 3, 4):
        predicted, ends, _ = values["pim", f"load=1.0 ports=16 iterations={rounds}", "matched_share"]
        low, high = (float(end) for end in ends.split(" to "))
        found = pim_pairs(16, 1.0, 2000, 99)
        share = found[min(rounds, len(found)) - 1] / found[-1]
        # Another seed: within a few of the narrow intervals of ten.
        assert abs(share - float(predicted)) < max(0.01, 4 * (high - low)), rounds
    # What the paper says of four rounds, 16 x 16.
    whole = float(values["pim", "load=1.0 ports=16 iterations=4", "matched_share"][0])
    assert whole == pytest.approx(PAPER["pim"]["efficiency"], abs=0.001)


def test_quick_is_the_same_model_with_fewer_trials() -> None:
    records, _ = chen1996.experiment("pim", quick=True)
    values = stored()
    for record in records:
        predicted = float(values[record.experiment, record.case, record.metric][0])
        assert record.low is not None
        assert record.high is not None
        assert abs(record.predicted - predicted) < max(0.03, 3 * (record.high - record.low)), record.case


def test_a_switch_that_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="ports is 0; allowed: 2 to 64"):
        pim_pairs(0, 0.5, 1, 1)
    with pytest.raises(ValueError, match="allowed: pim, islip"):
        switch_carries("guess", 1, 16, 0.5, 10, 1)
    with pytest.raises(ValueError, match=r"load is 1\.5; allowed: 0 to 1"):
        switch_carries("pim", 1, 16, 1.5, 10, 1)
    with pytest.raises(InputError, match="no constant that is free"):
        chen1996.refit()


def test_an_interval_is_that_of_student_and_ends_where_the_metric_does() -> None:
    mean, half = interval([1.0, 2.0, 3.0, 4.0])
    # t(0.95, 3) = 2.3534, standard deviation 1.2910.
    assert (mean, round(half, 4)) == (2.5, 1.5191)
    values = [0.1, 0.9, 0.95]
    assert interval(values)[0] + interval(values)[1] > 1
    assert estimate("jain", values)[1:] == (0.0, 1.0)
    assert estimate("deviation_percent", values)[1] < 0
    assert estimate("time_s", values)[2] > 1
    for (_, _, metric), (_, ends, _) in stored().items():
        if ends and metric != "deviation_percent":
            low, high = (float(end) for end in ends.split(" to "))
            assert low >= 0
            assert metric not in SHARES or high <= 1


def test_the_page_draws_matchings_by_load_and_ports_and_round_trips_by_size(tmp_path: Path) -> None:
    records = []
    for (experiment, name, metric), (value, ends, published) in stored().items():
        low, high = (float(end) for end in ends.split(" to ")) if ends else (None, None)
        known = float(published) if published else None
        role: Role = "calibration" if published else "prediction"
        records.append(Record("chen1996", experiment, name, metric, float(value), low, high, role, known))
    blocks, chips = matchings.figures("pim", records)
    assert [block.id for block in blocks] == [
        "pim-matched_share-load",
        "pim-matched_share-ports",
        "pim-efficiency-load",
        "pim-efficiency-ports",
    ]
    assert [chip.layer for chip in chips] == matchings.LABELS
    # Share by ports at full load: four curves of five sizes, the first round's the lowest.
    rows = blocks[1].table.rows
    assert len(rows) == 20
    assert rows[4][:3] == ["PIM, 1 round", "64", "63.51"]
    curves = {name for trace in blocks[3].figure.data if (name := trace.name) is not None}
    assert curves == set(matchings.LABELS)
    text = render("chen1996", records, tmp_path / "page.html").read_text()
    assert all(f'id="{name}-round-trip"' in text for name in ("echo-under-load", "pvm"))
    assert "1 value that the model was fitted to" in text


def test_one_session_alone_is_the_calibration_figure() -> None:
    rules = Rules(mss_bytes=PAPER["six_sessions"]["tcp_mss_bytes"])
    report = json.loads(run_sessions(six_plan(rules, 1, 1).scenario(1, 0.5, 1.0)))
    found = report["sessions"][0]["read_bytes"] * 8 / 1e6
    predicted, _, published = stored()["six-sessions", "program=one-session", "throughput_Mbit_s"]
    assert float(published) == PAPER["calibration"][0]["throughput_Mbit_s"]
    assert found == pytest.approx(float(predicted), rel=0.01)
    assert found == pytest.approx(float(published), rel=0.01)


def test_credits_lose_nothing_and_queues_do() -> None:
    values = stored()
    for metric in ("cell_loss_ratio", "tcp_retransmission_ratio"):
        assert float(values["six-sessions", "flow_control=credits", metric][0]) == 0
        assert float(values["six-sessions", "flow_control=none", metric][0]) > 0.002
    rules = Rules(mss_bytes=8192, credits=5)
    report = json.loads(run_sessions(six_plan(rules, 6, 1).scenario(1, 0.0, 1.0)))
    assert sum(one["cells_refused_there"] + one["segments_again"] for one in report["sessions"]) == 0


def test_the_parking_lot_of_the_page_is_that_of_the_model_to_the_digit() -> None:
    records, _ = chen1996.experiment("parking-lot")
    lines = values_csv(records).splitlines()[1:]
    assert len(lines) == 14
    assert set(lines) <= set((NOW / "chen1996.csv").read_text().splitlines())
    found = {record.case: record.predicted for record in records if record.metric == "throughput_Mbit_s"}
    fair = {record.case: record.predicted for record in records if record.metric == "fair_share_Mbit_s"}
    for name, share in PAPER["parking_lot"]["fair_share_Mbit_s"].items():
        assert found[f"session={name}"] == pytest.approx(share, rel=0.02)
        assert fair[f"session={name}"] == pytest.approx(share, rel=1e-3)


def test_an_echo_beside_streams_follows_the_formula() -> None:
    assert [cells_of(size) for size in PAPER["fan_in_fan_out"]["echo_bytes"]] == [3, 4, 7, 12, 23, 44]
    for (experiment, case, metric), (predicted, _, _) in stored().items():
        if experiment == "echo-under-load" and metric == "relative_rtt":
            assert 0.97 < float(predicted) < 1.03, case


def test_a_network_that_cannot_be_is_refused_by_name() -> None:
    plan = Plan(Rules(credits=0))
    plan.switches(2, 100)
    plan.ttcp("t", plan.hosts("t", 1, 2), 0)
    with pytest.raises(ValueError, match=r"network\.lines\[0\]\.credits\.cells is 0; allowed: 1"):
        run_sessions(plan.scenario(1, 0.0, 1.0))
    plan = Plan(Rules())
    plan.switches(2, 100)
    plan.ttcp("t", (plan.hosts("t", 1, 2)[0], "s1"), 0)
    with pytest.raises(ValueError, match=r"sessions\[0\]\.to is s1; allowed: the name of a host"):
        run_sessions(plan.scenario(1, 0.0, 1.0))


def test_round_trips_of_the_page_are_those_of_the_model() -> None:
    records, _ = chen1996.experiment("pvm", quick=True)
    lines = set((NOW / "chen1996.csv").read_text().splitlines())
    assert set(values_csv(records).splitlines()[1:]) <= lines
    times = {record.case: record.predicted for record in records}
    for case, time in times.items():
        assert record_of(case, "pvm-mapped/aal5", "mapped", times) <= time
    # Where nothing but the library and the adapter is left, less than two thirds of TCP's time.
    short = {case.split("transport=")[1]: time for case, time in times.items() if "size=64 " in case}
    assert short["mapped"] < 2 / 3 * short["tcp"] < short["udp"]


def record_of(case: str, stack: str, transport: str, times: dict[str, float]) -> float:
    """Return the time of the same size over another stack."""
    size = case.split("size=")[1].split()[0]
    return times[f"stack={stack} host=alpha-170 adapter=otto size={size} transport={transport}"]


def test_dynamics_is_quicker_without_tcp_and_never_quicker_than_without_messages() -> None:
    values = stored()
    found = {key: float(value[0]) for key, value in values.items() if key[0] == "md"}
    for ports in (4, 8):
        of = {
            (transport, metric): value
            for (_, case, metric), value in found.items()
            for transport in ("tcp", "mapped")
            if f"transport={transport} ports={ports}" in case
        }
        assert of["mapped", "time_s"] < of["tcp", "time_s"]
        assert of["tcp", "efficiency"] < of["mapped", "efficiency"] < 1
        assert of["tcp", "speed_up"] < of["mapped", "speed_up"] < ports


def test_programs_and_clients_on_one_network() -> None:
    lossless = {key[1:]: float(value[0]) for key, value in stored().items() if key[0] == "mixed"}
    for transport, flow_control in NETWORKS:
        end = f"transport={transport} flow_control={flow_control}"
        assert lossless[f"program=md load=0 {end}", "time_s"] < lossless[f"program=md {end}", "time_s"]
        assert (lossless[f"program=all {end}", "lost_cells"] == 0) == (flow_control == "credits")
        assert 0.5 <= lossless[f"program=ttcp {end}", "jain"] <= 1
        # Who computes keeps no call waiting: a turn of another process, and what streams take.
        assert lossless[f"program=rpc {end}", "response_us"] < 20_000
    ttcp = {
        flow_control: lossless[f"program=ttcp transport=tcp flow_control={flow_control}", "throughput_Mbit_s"]
        for flow_control in ("credits", "none")
    }
    assert ttcp["credits"] > 1.2 * ttcp["none"]
    assert lossless["program=ttcp transport=tcp flow_control=credits", "jain"] > 0.98


def test_every_value_of_the_switch_and_the_host_has_its_source() -> None:
    assert an2()["inside_cells"] == an2()["inside_Mbit_s"] * 1e6 // an2()["line_bit_s"]
    folders = ("networks/an2.toml", "stations/alpha-170.toml")
    for sheet in (read_sheet(DATA / path) for path in folders):
        assert {value.by for value in sheet.values.values()} <= {"input", "choice"}
