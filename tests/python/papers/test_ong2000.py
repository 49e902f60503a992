"""Ong & Farrell 2000: the model on file, what it was fitted to, and what it predicts."""

from __future__ import annotations

import csv
import itertools
import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from wiretwin.errors import InputError
from wiretwin.model.gigabit import (
    FOLDER,
    NICS,
    Setting,
    constants,
    of_stack,
    paper,
    setting,
    sheets,
)
from wiretwin.model.netpipe import Signature, bases, netpipe, sizes
from wiretwin.model.values import read_sheet
from wiretwin.papers import PAPERS, collectives, ong2000, shares
from wiretwin.papers.ong2000 import today
from wiretwin.papers.ong2000.today import MEASURED, switch_over
from wiretwin.papers.page import NOW
from wiretwin.papers.records import Record
from wiretwin.papers.report import render
from wiretwin.plot.words import size_text

PAGE = NOW / "ong2000.csv"


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
    assert {sheet for sheet, _ in free} == {"p3-450", "m-via", *NICS}
    for nic in (*NICS, "m-via"):
        assert sum(sheet == nic for sheet, _ in free) <= 2
    figures = sum(metric in row for row in paper()["calibration"] for metric in ong2000.METRICS)
    assert len(free) < figures == 20
    # The same network but for the two numbers: everything else in the configuration is the same.
    # But for when ACEnic's driver has it interrupt its host, which is no fit.
    for nic in ("sk-net", "acenic"):
        one, other = (json.loads(Setting(nic, *both).lan_json()) for both in ((1500, 64), (9000, 128)))
        for config in (one, other):
            del config["socket"]["mtu_bytes"], config["socket"]["buffer_bytes"]
        waits = [
            [config["gige"]["adapter"].pop(f"coalesce_{unit}") for unit in ("ps", "frames")]
            for config in (one, other)
        ]
        assert one == other
        assert waits == ([[120_000_000, 25], [30_000_000, 6]] if nic == "acenic" else [waits[0]] * 2)


def test_the_predictions_on_the_page_are_those_of_the_model() -> None:
    with PAGE.open() as file:
        rows = [row for row in csv.DictReader(file) if row["experiment"] == "tcp" and "size=" in row["case"]]
    listed = {(row["case"], row["metric"]): row for row in rows}
    for nic, size in (("gnic-ii", 1024), ("sk-net", 131072)):
        one = Setting(nic)
        # One connection carries all sizes: what one leaves of timers and windows the next one finds.
        every = {int(case.rpartition("=")[2]) for case, _ in listed if case.startswith(f"{one.case} size=")}
        curve = netpipe(one, sorted(other for other in every if other <= size))
        row = listed[f"{one.case} size={size}", "throughput_Mbit_s"]
        assert row["published"] == ""
        assert curve.throughput_Mbit_s[-1] == pytest.approx(float(row["predicted"]), rel=1e-4)


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
    sk_net, acenic = (
        {
            (mtu, kib): netpipe(Setting(nic, mtu, kib), [1 << 20]).throughput_Mbit_s[0]
            for mtu in (1500, 9000)
            for kib in (64, 128)
        }
        for nic in ("sk-net", "acenic")
    )
    # ACEnic's wait with its interrupt makes the loop that a window has to fill longer.
    assert acenic[9000, 128] > 1.05 * acenic[9000, 64], "seven segments are too few"
    for rates in (sk_net, acenic):
        assert rates[9000, 128] > rates[9000, 64]
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


def test_vis_beat_sockets_where_messages_are_small_and_carry_what_a_descriptor_takes() -> None:
    sockets, via, mvich = (
        netpipe(Setting("gnic-ii", library=library), [1, 1024, 32_768])
        for library in (None, "via", "mpi-mvich")
    )
    assert via.time_us[0] == pytest.approx(16, rel=0.02), "what it was fitted to"
    for at in range(2):
        assert via.time_us[at] < mvich.time_us[at] < sockets.time_us[at]
    # Long messages: sockets carry 448 / 1.53 = 293 Mbit/s by the paper's own quotient, MVICH 280.
    assert via.time_us[2] < sockets.time_us[2] < mvich.time_us[2]
    with pytest.raises(InputError, match="32768"):
        netpipe(Setting("gnic-ii", library="via"), [32_769])
    longer = netpipe(Setting("gnic-ii", library="via", transfer_kib=64), [65_536])
    assert longer.throughput_Mbit_s[0] > via.throughput_Mbit_s[2]


def test_experiments_over_vis_stand_beside_sockets_at_the_same_sizes() -> None:
    records, runs = PAPERS["ong2000"].experiment("via", quick=True)
    assert len(runs) == 2
    calibration = {one.metric: one for one in records if one.role == "calibration"}
    assert {metric: one.published for metric, one in calibration.items()} == {
        "latency_us": 16,
        "throughput_Mbit_s": 448,
    }
    sized = [
        {
            one.case.split("size=")[1]
            for one in records
            if one.case.startswith(f"stack={stack}") and "size" in one.case
        }
        for stack in ("via/gige", "socket/tcp/gige")
    ]
    assert sized[0] == sized[1]
    assert "32768" in sized[0]


def test_what_was_left_open_has_values_of_each_layer() -> None:
    records, _ = PAPERS["ong2000"].experiment("open-cpu", quick=True)
    shares: dict[str, float] = {}
    for one in records:
        stack_and_size = one.case.split(" layer=")[0]
        shares[stack_and_size] = shares.get(stack_and_size, 0) + one.predicted
    assert len(shares) == 10
    assert all(0 < share <= 1 for share in shares.values())
    assert any("via/gige" in case and "layer=driver" in case for case in (one.case for one in records))


def test_what_is_no_stack_adapter_or_mtu_of_the_paper_is_refused() -> None:
    for arguments, allowed in (
        (("pvm-normal/udp/gige",), "mpi-mvich/gige"),
        (("via/gige", "pigeon"), "sk-net"),
        (("via/gige", "sk-net", 9001), "576 to 9000"),
        (("socket/tcp/gige", "gnic-ii", 9000), "576 to 1500 with gnic-ii"),
    ):
        with pytest.raises(InputError, match=allowed):
            of_stack(*arguments)


def test_a_row_of_calibration_is_a_setting() -> None:
    row = paper()["calibration"][0]
    assert setting(row) == Setting("gnic-ii", 1500, 128)
    with pytest.raises(InputError, match="mtu_bytes"):
        netpipe(Setting("acenic", 9001), [1])


def test_the_command_knows_the_paper(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    from wiretwin.cli import main
    from wiretwin.cli.experiments import ABOUT
    from wiretwin.papers import PAPERS

    with pytest.raises(SystemExit) as ended:
        main(["papers"])
    assert ended.value.code == 0
    lines = [line.split() for line in capsysbinary.readouterr().out.decode().splitlines()]
    told = {tuple(line[:2]): " ".join(line[2:]) for line in lines}
    assert told["ong2000", "tcp"] == "TCP at an MTU of 1500, by adapter"
    assert {name: set(about) for name, about in ABOUT.items()} == {
        name: set(paper.EXPERIMENTS) for name, paper in PAPERS.items()
    }


def test_trials_that_stop_say_what_whole_ones_do() -> None:
    for one in (
        Setting("sk-net"),
        Setting("gnic-ii", library="mpi-lam"),
        Setting("sk-net", 8500, library="mpi-mpich", asked_kib=16),
    ):
        # The last one's first round trip waits for a delayed acknowledgment, the others do not.
        for wanted in ([1024, 16_384], [65_536]):
            short, whole = (netpipe(one, wanted, full=full) for full in (False, True))
            assert short.time_us == pytest.approx(whole.time_us, rel=1e-6), one.case


def test_collectives_are_quicker_where_the_library_has_a_tree() -> None:
    records, runs = PAPERS["ong2000"].experiment("open-collectives", quick=True)
    found = {one.case: one.predicted for one in records}
    assert len(found) == len(runs)

    def time(library: str, ports: int, program: str, size: int) -> float:
        keys = {f"stack={library}/tcp/gige", f"ports={ports}", f"program={program}", f"size={size}"}
        (case,) = [case for case in found if keys <= set(case.split())]
        return found[case]

    assert time("mpi-lam", 4, "bcast", 65_536) > 1.2 * time("mpi-mpich", 4, "bcast", 65_536)
    assert time("mpi-lam", 8, "bcast", 65_536) < 2 * time("mpi-lam", 4, "bcast", 65_536)


def test_then_and_now_says_where_what_is_read_off_has_moved() -> None:
    records, _ = PAPERS["ong2000"].experiment("now", quick=True)
    found = {(one.case, one.metric): one.predicted for one in records}

    def value(metric: str, *parts: str) -> float:
        (case,) = [
            case for case, one in found if one == metric and set(parts) <= set(f"{case} link=1G".split())
        ]
        return found[case, metric]

    tcp, fabric = "stack=mpi/tcp/gige", "stack=mpi-mvich/gige"
    then = value("latency_us", tcp, "host=p3-450", "mtu=9000")
    assert value("latency_us", fabric, "link=400G") < value("latency_us", tcp, "link=400G") < then
    assert value("throughput_Mbit_s", fabric, "link=400G") > 10 * value(
        "throughput_Mbit_s", fabric, "link=10G"
    )


def test_a_curve_crosses_another_once_it_stays_below() -> None:
    def curve(*times: float) -> Signature:
        return Signature((1, 2, 4, 8), times, "")

    assert switch_over(curve(1, 2, 3, 4), curve(2, 1, 4, 3)) == 8
    assert switch_over(curve(1, 2, 3, 4), curve(2, 1, 2, 3)) == 2
    assert switch_over(curve(1, 2, 3, 4), curve(2, 3, 4, 5)) is None


def test_the_generic_layer_takes_a_switch_over_and_others_refuse_one() -> None:
    early = of_stack("mpi/tcp/gige", "sk-net", switch_over=1024)
    assert netpipe(early, [1024]).time_us > netpipe(of_stack("mpi/tcp/gige", "sk-net"), [1024]).time_us
    with pytest.raises(InputError, match="only MPI has rendezvous"):
        of_stack("socket/tcp/gige", switch_over=1024)
    longest = of_stack("mpi-mvich/gige", switch_over=36_001)
    assert netpipe(longest, [32_768]).time_us[0] > 0
    with pytest.raises(InputError, match="--switch-over: 36002 is not allowed here; allowed: 1 to 36001"):
        of_stack("mpi-mvich/gige", switch_over=36_002)


def test_what_is_measured_of_this_machine_is_what_is_on_file_of_one_of_today() -> None:
    measured = {key for key, value in sheets()["today"].values.items() if value.by == "measured"}
    assert measured == set(MEASURED)


def test_an_interrupt_of_what_is_measured_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = SimpleNamespace(manifest=SimpleNamespace(state="interrupted"))
    monkeypatch.setattr("wiretwin.measure", lambda *_, **__: cut)
    for name in ("_quickest_us", "_through_us"):
        monkeypatch.setattr(today, name, lambda *_: 1.0)
    with pytest.raises(KeyboardInterrupt):
        today.measured(tmp_path)


def test_a_machine_is_measured_in_rounds_and_what_lies_between_them_is_the_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = itertools.count(10)
    monkeypatch.setattr(today, "_round", lambda folder: dict.fromkeys(MEASURED, float(next(made))))
    found = today.measured(tmp_path)
    assert next(made) == 10 + today.ROUNDS
    assert all(10 < one.low < one.value < one.high < 9 + today.ROUNDS for one in found.values())
    sheet = tmp_path / "today.toml"
    sheet.write_bytes(sheets()["today"].path.read_bytes())
    monkeypatch.setattr(ong2000, "sheets", lambda: {"today": read_sheet(sheet)})
    for _ in range(2):
        ong2000.write_live(found)
    written = read_sheet(sheet).values
    assert {key for key, one in written.items() if one.low is not None} == set(MEASURED)
    assert written["trap_us"].high == pytest.approx(found["trap_us"].high, rel=1e-3)


def test_the_page_draws_what_layers_take_and_collectives_and_lists_the_host_of_today(tmp_path: Path) -> None:
    with PAGE.open() as file:
        kept = [
            row
            for row in csv.DictReader(file)
            if row["experiment"] in ("open-cpu", "open-collectives", "now")
        ]
    records = []
    for row in kept:
        low, high = map(float, row["interval"].split(" to ")) if row["interval"] else (None, None)
        name, metric, value = row["case"], row["metric"], float(row["predicted"])
        records.append(Record("ong2000", row["experiment"], name, metric, value, low, high, "prediction"))

    [bars], chips = shares.figures("open-cpu", records)
    assert [chip.layer for chip in chips] == ["message", "system", "transport", "driver"]
    drawn = {trace.name: dict(zip(trace.y, trace.x, strict=True)) for trace in bars.figure.data}
    listed = [one for one in records if one.metric == "cpu_share"]
    assert sum(value > 0 for parts in drawn.values() for value in parts.values()) == len(listed)
    whole = sum(one.predicted for one in listed if "stack=mpi-lam/" in one.case and "size=32768 " in one.case)
    bar = f"mpi-lam/tcp/gige, {size_text(32768)}"
    assert sum(parts[bar] for parts in drawn.values()) == pytest.approx(100 * whole)
    assert bars.table.rows[5][0] == bar
    assert float(bars.table.rows[5][-1]) == pytest.approx(100 * whole, rel=0.01)

    calls, chips = collectives.figures("open-collectives", records)
    assert [chip.layer for chip in chips] == ["mpi-lam", "mpi-mpich", "mpi"]
    assert len(calls) == 7, "a barrier, and three operations of two sizes"
    assert all(len(call.table.rows) == 9 for call in calls), "three libraries with 4, 8 and 16 hosts"
    points = sum(
        len(trace.x) for call in calls for trace in call.figure.data if trace.meta["part"] == "curve"
    )
    assert points == sum(map(collectives.is_call, records))
    assert not any(collectives.is_call(replace(one, metric="time_s")) for one in records)
    # Which is the fastest is said only where intervals part.
    wide = [replace(one, low=0.0, high=1e9) for one in records if collectives.is_call(one)]
    none = [replace(one, low=None, high=None) for one in wide]
    assert all(" cannot be told from " in call.summary for call in collectives.figures("wide", wide)[0])
    assert all(" is the fastest: " in call.summary for call in collectives.figures("none", none)[0])

    text = render("ong2000", records, tmp_path / "page.html").read_text()
    assert all(f'id="{block.id}"' in text for block in (bars, *calls))
    assert 'id="now-inputs"' in text
    assert all(key in text for key in MEASURED)
