"""Ong & Farrell 2000: the model on file, what it was fitted to, and what it predicts."""

from __future__ import annotations

import csv
import json
import math
import tomllib

import pytest

from wiretwin.errors import InputError
from wiretwin.papers import PAPERS, ong2000
from wiretwin.papers.ong2000.netpipe import bases, netpipe, sizes
from wiretwin.papers.ong2000.settings import FOLDER, NICS, Setting, constants, paper, setting
from wiretwin.papers.values import DATA

PAGE = DATA.resolve().parent / "docs" / "papers" / "ong2000.csv"


def test_sizes_are_those_of_netpipe() -> None:
    printed = "1 2 3 4 6 8 12 13 16 19 21 24 27 29 32 35 45 48 51 61 64 67 93 96 99 125 128 131"
    assert sizes(128) == [int(size) for size in printed.split()]
    assert bases(24) == [1, 2, 3, 4, 6, 8, 12, 16, 24]
    assert max(sizes()) == (4 << 20) + 3


def test_the_residuals_on_file_are_those_of_the_values_on_file() -> None:
    stored = tomllib.loads((FOLDER / "fit.toml").read_text())
    published = ong2000.calibration()
    assert {(row["case"], row["metric"]) for row in stored["residual"]} == set(published)
    logs = [math.log(row["predicted"] / row["published"]) for row in stored["residual"]]
    assert math.sqrt(sum(log * log for log in logs) / len(logs)) == pytest.approx(stored["spread"], abs=1e-3)
    rows = [(row["experiment"], row["case"], row["metric"], row["published"]) for row in stored["residual"]]
    for row, value in zip(stored["residual"], ong2000.predict(rows, {}), strict=True):
        assert row["published"] == published[row["case"], row["metric"]]
        assert value == pytest.approx(row["predicted"], rel=1e-3), row["case"]


def test_no_constant_belongs_to_an_mtu_or_a_buffer() -> None:
    free = constants()
    assert {sheet for sheet, _ in free} == {"p3-450", *NICS}
    for nic in NICS:
        assert sum(sheet == nic for sheet, _ in free) <= 2
    figures = sum(metric in row for row in paper()["calibration"] for metric in ong2000.METRICS)
    assert len(free) < figures == 18
    # The same network but for the two numbers: everything else in the configuration is the same.
    one, other = (json.loads(Setting("acenic", *both).lan_json()) for both in ((1500, 64), (9000, 128)))
    for config in (one, other):
        del config["socket"]["mtu_bytes"], config["socket"]["buffer_bytes"]
    assert one == other


def test_the_predictions_on_the_page_are_those_of_the_model() -> None:
    with PAGE.open() as file:
        listed = {(row["case"], row["metric"]): row for row in csv.DictReader(file) if "size=" in row["case"]}
    for nic, size in (("gnic-ii", 1024), ("sk-net", 131072)):
        one = Setting(nic)
        curve = netpipe(one, [size])
        row = listed[f"{one.case} size={size}", "throughput_Mbit_s"]
        assert row["published"] == ""
        assert curve.throughput_Mbit_s[0] == pytest.approx(float(row["predicted"]), rel=0.05)


def test_what_is_predicted_has_an_interval_and_what_was_fitted_its_figure() -> None:
    records, runs = PAPERS["ong2000"].experiment("tcp", quick=True)
    published = ong2000.calibration()
    assert len(runs) == len(NICS)
    for one in records:
        assert (one.published is not None) == (one.role == "calibration")
        assert (one.low is None) == (one.role == "calibration")
        assert one.published == published.get((one.case, one.metric))
    assert sum(one.role == "calibration" for one in records) == 6


def test_larger_packets_and_windows_come_out_of_the_model() -> None:
    rates = {
        (mtu, kib): netpipe(Setting("sk-net", mtu, kib), [1 << 20]).throughput_Mbit_s[0]
        for mtu in (1500, 9000)
        for kib in (64, 128)
    }
    assert rates[9000, 128] > 1.3 * rates[9000, 64], "seven segments are too few"
    assert rates[9000, 128] > 1.3 * rates[1500, 128]
    assert rates[1500, 128] == pytest.approx(rates[1500, 64], rel=0.1)


def test_a_library_costs_and_its_buffers_bound_it() -> None:
    size = 1 << 17
    sockets, lam, mpich = (
        netpipe(Setting("sk-net", 9000, library=library), [1, size])
        for library in (None, "mpi-lam", "mpi-mpich")
    )
    assert sockets.time_us[0] < min(lam.time_us[0], mpich.time_us[0])
    assert sockets.throughput_Mbit_s[1] > lam.throughput_Mbit_s[1] > mpich.throughput_Mbit_s[1]


def test_a_row_of_calibration_is_a_setting() -> None:
    row = paper()["calibration"][0]
    assert setting(row) == Setting("gnic-ii", 1500, 128)
    with pytest.raises(InputError, match="mtu_bytes"):
        netpipe(Setting("acenic", 9001), [1])


def test_the_command_knows_the_paper(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    from wiretwin.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["papers", "--format", "csv"])
    assert ended.value.code == 0
    assert {"ong2000,tcp", "ong2000,mtu"} <= set(capsysbinary.readouterr().out.decode().split())
