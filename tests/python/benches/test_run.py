from __future__ import annotations

import importlib.util
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benches_run", ROOT / "benches" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def line(**data: object) -> str:
    return json.dumps({"bench": "room/work", "ns": 10.0, "ratio": 0.5, **data})


def printing(runner: ModuleType, *texts: str, then: str = "") -> object:
    program = "".join(f"print({text!r}, flush=True)\n" for text in texts) + then
    return runner.Bench("fake", (sys.executable, "-c", program))


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        ({}, ""),
        ({"target_ratio": 0.5}, "ok"),
        ({"target_ratio": 0.49}, "miss"),
        ({"target_value": 10}, "ok"),
        ({"target_value": 9.9}, "miss"),
        ({"target_ratio": 0.6, "target_value": 9.9}, "miss"),
        ({"target_ns": 1.0}, ""),
    ],
)
def test_a_verdict_needs_every_target_met_but_not_that_in_ns(
    runner: ModuleType, data: dict[str, float], verdict: str
) -> None:
    assert runner.parse(line(**data)).verdict == verdict


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("warming up", "not a JSON line: 'warming up'"),
        ("[1]", "a line without `bench`"),
        ('{"ns": 1}', "without `bench`"),
        ('{"bench": "a"}', "a: needs a number as `ns` or as `value`"),
        ('{"bench": "a", "ns": "1"}', "a: needs a number as `ns` or as `value`"),
        ('{"bench": "a", "ns": 1, "value": 1}', "a: needs a number as `ns` or as `value`"),
        ('{"bench": "a", "ns": 1, "target_ratio": 1}', "a: has `target_ratio` but no `ratio`"),
    ],
)
def test_a_line_that_is_none_is_refused_with_the_reason(runner: ModuleType, text: str, reason: str) -> None:
    with pytest.raises(runner.BenchError, match=re.escape(reason)):
        runner.parse(text)


def test_the_table_shows_figures_reference_and_verdict(
    runner: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bench = printing(
        runner,
        line(unit="ns per event", reference="heap", reference_ns=20.0, target_ratio=0.4, more=1),
        line(bench="room/bytes", ratio=1.0),
    )
    saved = tmp_path / "lines.jsonl"
    assert runner.main(["--json", str(saved)], benches=(bench,)) == 0
    out = capsys.readouterr().out
    for part in ("room/work", "ns per event", "heap", "20.0", "0.500", "0.4", "miss", "1 of 1 targets"):
        assert part in out
    assert [json.loads(text)["bench"] for text in saved.read_text().splitlines()] == [
        "room/work",
        "room/bytes",
    ]
    assert runner.main(["--strict"], benches=(bench,)) == 1


def test_a_bench_that_fails_keeps_its_lines_and_fails_the_run(
    runner: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = printing(runner, line(), then="raise SystemExit(3)")
    assert runner.main([], benches=(bench,)) == 1
    captured = capsys.readouterr()
    assert "room/work" in captured.out
    assert "ended with status 3" in " ".join(captured.err.split())


def test_a_bench_that_never_ends_is_stopped_at_its_limit(runner: ModuleType) -> None:
    bench = printing(runner, line(), then="import threading; threading.Event().wait(600)")
    with pytest.raises(runner.BenchError, match=r"fake: stopped after 1\.5 s"):
        list(runner.run(bench, limit_s=1.5))


def test_a_bench_whose_program_is_missing_is_named(runner: ModuleType) -> None:
    bench = runner.Bench("gone", ("no-such-program-of-ours",))
    with pytest.raises(runner.BenchError, match="gone: no-such-program-of-ours does not start"):
        list(runner.run(bench))


def test_an_unknown_bench_is_refused_with_those_there_are(
    runner: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        runner.main(["nosuch"])
    assert ended.value.code == 2
    there = ", ".join(bench.name for bench in runner.BENCHES)
    assert f"no bench nosuch; there are {there}" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_bench_under_way(number: signal.Signals) -> None:
    body = (
        "import signal, sys; sys.path.insert(0, 'benches'); import run\n"
        "for one in (signal.SIGTERM, signal.SIGHUP): signal.signal(one, run.end_at)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "text = 'import os, time; print(os.getpid(), file=open(1, \"w\"), flush=True); time.sleep(60)'\n"
        "bench = run.Bench('fake', (sys.executable, '-c', text))\n"
        "run.parse = lambda text: print(text, end='', flush=True)\n"
        "list(run.run(bench))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", body], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        bench = int(process.stdout.readline())
        process.send_signal(number)
        process.wait(30)
    assert process.returncode != 0
    assert not psutil.pid_exists(bench)
