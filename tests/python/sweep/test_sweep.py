"""Sweeps: the same runs wherever and however often they are begun."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from wiretwin import interruption, plot
from wiretwin.errors import InputError, InterruptedRun
from wiretwin.scenario import Scenario
from wiretwin.sweep import run
from wiretwin.sweep.record import Folder
from wiretwin.sweep.run import Sweep, interval, sweep

SCENARIO = """
[network]
preset = "asx100"
load = [{ share = 0.4 }]
[echo]
stack = "fore/aal5"
size = "1 KiB"
rounds = 11
"""
OVER = ("share=0.2,0.6", "echo.size=4 B,4 KiB")
LIMIT_S = 120


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("scenario") / "s.toml"
    file.write_text(SCENARIO)
    return file


@pytest.fixture(scope="module")
def whole(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return sweep(file, OVER, tmp_path_factory.mktemp("whole") / "out", replications=3, workers=1)


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    assert not [child for child in psutil.Process().children(recursive=True) if child.name() == "wiretwin"]


def command(*words: str | Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", "from wiretwin.cli import main; main()", "sweep", *map(str, words)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lines(folder: Path) -> int:
    runs = folder / "runs.jsonl"
    return runs.read_bytes().count(b"\n") if runs.exists() else 0


def await_lines(folder: Path, count: int, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while lines(folder) < count:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline, "no runs ended"
        time.sleep(0.005)


def test_every_point_has_its_replications_and_an_interval(whole: Sweep) -> None:
    assert len(whole.folder.runs) == 12
    assert [run.replication for run in whole.folder.of(3)] == [0, 1, 2]
    small, large = whole.at(0, "latency_us"), whole.at(1, "latency_us")
    assert small.low is not None
    assert small.low <= small.mean < large.mean
    assert small.count == 3
    frame = whole.frame()
    assert frame.height == 4 * len(whole.metrics)
    assert (whole.folder.path / "runs.parquet").exists()
    first = whole.folder.of(0)
    assert [run.seed for run in first] == [run.seed for run in whole.folder.of(2)], (
        "points under equal chances"
    )


def test_more_workers_do_the_same_runs(file: Path, whole: Sweep, tmp_path: Path) -> None:
    again = sweep(file, OVER, tmp_path / "out", replications=3, workers=2)
    assert again.digest == whole.digest
    assert again.frame().equals(whole.frame())


def test_a_sweep_goes_on_where_it_was_cut_off(file: Path, whole: Sweep, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "sweep.json").write_bytes((whole.folder.path / "sweep.json").read_bytes())
    kept = (whole.folder.path / "runs.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "runs.jsonl").write_bytes(b"".join(kept[:9]) + kept[9][:40])
    told: list[int] = []
    again = sweep(
        file, OVER, folder, replications=3, workers=1, progress=lambda done, total, words: told.append(done)
    )
    assert told == [10, 11, 12], "only what was missing was run"
    assert again.digest == whole.digest
    assert sweep(file, OVER, folder, replications=3, workers=1).digest == whole.digest


def test_a_folder_of_something_else_is_left_alone(file: Path, whole: Sweep, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another over"):
        sweep(file, OVER[:1], whole.folder.path, replications=3)
    with pytest.raises(InputError, match="another replications"):
        sweep(file, OVER, whole.folder.path, replications=4)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds no sweep"):
        sweep(file, OVER, tmp_path)
    folder = tmp_path / "damaged"
    folder.mkdir()
    (folder / "sweep.json").write_bytes((whole.folder.path / "sweep.json").read_bytes())
    (folder / "runs.jsonl").write_bytes(b"{}\n" + (whole.folder.path / "runs.jsonl").read_bytes())
    with pytest.raises(InputError, match="line 1: is damaged"):
        sweep(file, OVER, folder, replications=3)


def test_a_folder_is_filled_by_one_sweep_at_a_time(file: Path, whole: Sweep, tmp_path: Path) -> None:
    # A kill may come before anything is in it.
    (tmp_path / "out").mkdir()
    plan = whole.folder.plan
    here = Folder.open(tmp_path / "out", plan)
    with pytest.raises(InputError, match="a sweep under way; allowed: to wait for its end"):
        sweep(file, OVER, here.path, replications=3)
    here.release()
    assert Folder.open(here.path, plan).plan == plan


def test_a_run_whose_workers_died_is_done_again(file: Path, whole: Sweep, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "sweep.json").write_bytes((whole.folder.path / "sweep.json").read_bytes())
    lines = (whole.folder.path / "runs.jsonl").read_text().splitlines()
    lost = json.loads(lines[4]) | {"metrics": {}, "digest": None, "error": "died", "lost": True}
    (folder / "runs.jsonl").write_text("\n".join([*lines[:4], json.dumps(lost), *lines[5:], ""]))
    told: list[int] = []
    again = sweep(
        file, OVER, folder, replications=3, workers=1, progress=lambda done, total, words: told.append(done)
    )
    assert told == [12], "it alone"
    assert not again.folder.failed
    assert again.digest == whole.digest


def test_a_point_that_is_too_wide_gets_more_replications(file: Path, tmp_path: Path) -> None:
    over = ["echo.size=4 KiB"]
    wide = sweep(file, over, tmp_path / "a", replications=2, until=("latency_us", 0.005), most=40, workers=1)
    runs = wide.folder.of(0)
    assert wide.at(0, "latency_us").half_share <= 0.005 or len(runs) == 40
    assert 2 < len(runs) <= 40
    # Half as many again, each time, until it was narrow and not before.
    counts = [2]
    while counts[-1] < len(runs):
        before = interval([run.metrics["latency_us"] for run in runs[: counts[-1]]], 0.95)
        assert before.half_share > 0.005
        counts.append(min(40, counts[-1] + math.ceil(counts[-1] / 2)))
    assert counts[-1] == len(runs)
    with pytest.raises(InputError, match="--until: 'speed'"):
        sweep(file, over, tmp_path / "b", replications=2, until=("speed", 0.05), workers=1)


def test_a_run_that_fails_is_kept_with_its_reason_and_the_others_go_on(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO.replace("fore/aal5", "rpc/udp/aal5"))
    over = "echo.size=1 KiB,16 KiB"
    running = command(file, "--over", over, "-o", tmp_path / "out", "--replications", "1")
    out, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 4
    assert "1 runs failed; the first, at echo.size=16 KiB" in err
    assert "this interface takes at most 8756" in err
    assert "1 KiB" in out
    assert lines(tmp_path / "out") == 2


def test_intervals_are_students() -> None:
    found = interval([1.0, 2.0, 3.0, 4.0], 0.95)
    assert found.mean == 2.5
    assert found.low == pytest.approx(2.5 - 3.182446 * math.sqrt(5 / 3) / 2, abs=1e-5)
    assert interval([7.0], 0.95).low is None
    assert interval([math.nan, 7.0, 7.0], 0.95).count == 2
    assert math.isnan(interval([math.nan], 0.95).mean)


@pytest.mark.parametrize("how", ["interrupt", "worker"])
def test_a_sweep_survives_an_interrupt_and_a_worker_that_dies(how: str, whole: Sweep, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    # Some time to be hit in.
    file.write_text(SCENARIO.replace("rounds = 11", "rounds = 2000"))
    folder = tmp_path / "out"
    words = (file, "--over", "echo.size=4 B,8 B", "-o", folder, "--replications", "3", "--workers", "2")
    running = command(*words)
    await_lines(folder, 2, running)
    if how == "interrupt":
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 130, err
        assert f"{lines(folder)} of 6 runs are kept" in err
        assert lines(folder) < 6
        running = command(*words)
    else:
        workers = [
            child
            for child in psutil.Process(running.pid).children(recursive=True)
            if "wiretwin.sweep.local" in child.cmdline()
        ]
        workers[0].send_signal(signal.SIGKILL)
    _, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, err
    assert lines(folder) == 6
    digest = err.split("digest ")[1].split()[0]
    found = {}
    for line in (folder / "runs.jsonl").read_text().splitlines():
        run = json.loads(line)
        found[run["point"], run["replication"]] = run["digest"]
    alone = sweep(file, ["echo.size=4 B,8 B"], tmp_path / "alone", replications=3, workers=1)
    assert alone.digest == digest
    assert {key: run.digest for key, run in alone.folder.runs.items()} == found


def test_an_interrupt_that_the_pool_has_caught_ends_a_sweep(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGHUP)

    def catches(dask: str | None, workers: int) -> object:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
        return pool(dask, workers)

    pool = run._pool
    monkeypatch.setattr(run, "_pool", catches)
    signal.signal(signal.SIGHUP, interruption._interrupt)
    try:
        with pytest.raises(InterruptedRun, match="0 of 12 runs are kept"):
            sweep(file, OVER, tmp_path / "swept", replications=3, workers=1)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_page_draws_each_metric_and_says_where_it_is_least_and_most(whole: Sweep, tmp_path: Path) -> None:
    folder = whole.folder.path
    argv = [sys.executable, "-c", "from wiretwin.cli import main; main()", "report", str(folder)]
    page = tmp_path / "swept.html"
    ended = subprocess.run([*argv, "-o", str(page)], capture_output=True, text=True, timeout=LIMIT_S)
    assert ended.returncode == 0, ended.stderr
    text = page.read_text()
    for metric in whole.metrics:
        assert f"{metric} against share" in text
    assert "latency_us goes from" in text
    found = Sweep.read(folder)
    assert (found.digest, found.points) == (whole.digest, whole.points)
    drawn = plot.sweep(found, "latency_us").data
    assert [one.meta["layer"] for one in drawn] == ["echo.size=4 B", "echo.size=4 KiB"]
    assert list(drawn[0].x) == [0.2, 0.6]
    assert (
        drawn[0].y[0] == found.at(found.points.index({"share": 0.2, "echo.size": "4 B"}), "latency_us").mean
    )
    with pytest.raises(InputError, match="metric: 'salt'"):
        plot.sweep(found, "salt")
    other = subprocess.run([*argv, "--salvage"], capture_output=True, text=True, timeout=LIMIT_S)
    assert other.returncode == 2
    assert "is a sweep" in other.stderr


FULL = """
import resource, signal, sys
from wiretwin.cli import main
# No file may grow further: a disk that fills up in the middle of a line.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
main(sys.argv[2:])
"""


def test_a_full_disk_keeps_what_was_written(file: Path, whole: Sweep, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    line = len((whole.folder.path / "runs.jsonl").read_bytes().splitlines(keepends=True)[0])
    words = ["sweep", str(file), "--over", OVER[1], "-o", str(folder), "--workers", "1"]
    argv = [sys.executable, "-c", FULL, str(int(2.5 * line)), *words]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ended.returncode == 6, ended.stderr
    assert "2 runs are kept; the same command goes on" in ended.stderr
    assert lines(folder) == 2
    assert (folder / "runs.jsonl").read_bytes().endswith(b"\n")
    assert len(sweep(file, OVER[1:], folder, workers=1).folder.runs) == 10


def test_what_is_wrong_is_refused_before_anything_runs(file: Path, tmp_path: Path) -> None:
    scenario = Scenario.read(file)
    for wrong, message in [
        ({"replications": 0}, "--replications: 0"),
        ({"workers": 0}, "--workers: 0"),
        ({"confidence": 1.0}, "--confidence"),
        ({"until": ("latency_us", 0.1), "replications": 1}, "2 or more with --until"),
        ({"most": 2, "replications": 3, "until": ("latency_us", 0.1)}, "--most: 2"),
    ]:
        with pytest.raises(InputError, match=message):
            sweep(scenario, OVER, tmp_path / "out", **wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
