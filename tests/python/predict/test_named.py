"""The compiled programs by name, in both worlds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from predict_help import family, nothing_left, until, wiretwin

from wiretwin.errors import InputError, ProgramError
from wiretwin.predict import repeats
from wiretwin.predict.named import NAMED, Named, NamedRank, NamedRun
from wiretwin.predict.records import Run, median_spread, read

SMALL = {
    "echo": ["bytes=100", "rounds=5"],
    "stream": ["bytes=100", "messages=5"],
    "ring": ["elements=101", "rounds=2"],
    "jacobi": ["rows=9", "columns=11", "iterations=4"],
    "mm": ["n=10", "rounds=2"],
    "pde": ["n=9", "accuracy=2"],
    "pde1": ["n=6", "accuracy=2"],
    "pde2": ["n=7", "accuracy=3"],
    "md": ["x=6", "y=9", "z=5", "steps=2"],
}
COSTS = {
    "ring": ["add=1.5ns"],
    "jacobi": ["stencil-point=2ns"],
    "mm": ["multiply-add=1ns"],
    "pde": ["sor-point=2ns"],
    "pde1": ["relax-point=2ns"],
    "pde2": ["smooth-point=2ns", "transfer-point=1ns"],
    "md": ["atom-pair=2ns"],
}


def rows(*words: str | Path) -> list[dict[str, Any]]:
    with nothing_left(Path("spec-0.json")):
        ended = wiretwin("run", *words[:1], "--format", "json", *words[1:])
    assert ended.code == 0, ended.err
    found: list[dict[str, Any]] = json.loads(ended.out)
    return found


@pytest.mark.parametrize("name", SMALL)
def test_both_worlds_and_all_layers_give_the_same_result(name: str, twin: Path) -> None:
    simulated = rows(
        name, "--world", "simulated", "--twin", twin, "--ranks", "3", "--", *SMALL[name], *COSTS.get(name, [])
    )
    assert [row["rank"] for row in simulated] == [0, 1, 2]
    for row in simulated:
        parts = row["compute_s"] + row["endpoint_s"] + row["wire_s"] + row["waiting_s"]
        assert parts == pytest.approx(row["total_s"])
        assert (row["compute_s"] > 0) == (name in COSTS)
    for layer in ("socket/tcp", "socket/unix", "shm"):
        live = rows(name, "--layer", layer, "--ranks", "3", "--", *SMALL[name])
        assert [row["digest"] for row in live] == [row["digest"] for row in simulated]
        assert all(row["verified"] is True for row in [*live, *simulated])
        for row in live:
            assert row["compute_s"] + row["comm_s"] + row["other_s"] == pytest.approx(row["total_s"])
            assert row["other_s"] >= 0
    assert os.listdir() == []


def test_the_table_names_program_world_and_layer() -> None:
    ended = wiretwin("run", "ring", "--layer", "shm", "--", "rounds=1", "elements=10")
    assert ended.code == 0, ended.err
    said = " ".join(ended.out.split())
    assert said.startswith("ring elements=10 rounds=1 on 2 ranks, live, shm: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["ring", "--", "size=3"],
            "ring: 'size=3' is not allowed here; allowed: key=value with a key of elements",
        ),
        (["ring", "--", "elements"], "ring: 'elements' is not allowed here; allowed: key=value"),
        (["ring", "--", "elements=x"], "elements: 'x' is not allowed here; allowed: a whole number"),
        (["ring", "--", "elements=-1"], "elements: '-1' is not allowed here; allowed: a whole number"),
        (["ring", "--", "rounds=1", "rounds=2"], "rounds: '2' is given twice; allowed: once"),
        (["ring", "--", "add=1ns"], "add: is what it is in the live world; allowed: to be left out"),
        (
            ["ring", "--layer", "socket/udp"],
            "--layer: 'socket/udp' is not allowed here; allowed: socket/tcp, ",
        ),
        (["ring", "--layer", "pvm"], "--layer: 'pvm' is no layer"),
        (["ring", "--ranks", "0"], "--ranks: 0 is not allowed here; allowed: 1 to 1024"),
        (
            ["ring", "--world", "simulated", "--out", "x"],
            "--out: 'x' is not allowed here; allowed: with --world live",
        ),
        (["ring", "--world", "simulated"], "--twin: is needed"),
        (["sort"], "program: 'sort' is neither a file nor a program; allowed: "),
    ],
)
def test_wrong_words_are_refused(words: list[str], said: str) -> None:
    ended = wiretwin("run", *words)
    assert ended.code == 2, ended.err
    assert said in ended.err
    assert os.listdir() == []


def test_the_simulated_world_must_be_told_what_work_costs(twin: Path) -> None:
    words = ["--world", "simulated", "--twin", twin]
    ended = wiretwin("run", "jacobi", *words)
    assert ended.code == 2
    assert (
        "stencil-point: is needed in the simulated world; allowed: what one stencil-point costs" in ended.err
    )
    ended = wiretwin("run", "ring", *words, "--", "add=3")
    assert (ended.code, "add: '3' has no unit" in ended.err) == (2, True)
    ended = wiretwin("run", "echo", *words, "--", "rounds=0")
    assert (ended.code, "rounds is 0" in ended.err) == (2, True)


def test_what_a_rank_refuses_is_said_once_without_paths() -> None:
    ended = wiretwin("run", "jacobi", "--ranks", "3", "--", "rows=1", "columns=2", "iterations=1")
    assert ended.code == 5
    assert "rank 0 of jacobi: columns is 2; allowed: 3 or more" in ended.err
    assert "/tmp" not in ended.err


def test_a_killed_rank_ends_the_others_and_is_named() -> None:
    command = [
        str(Path(sys.executable).with_name("wiretwin")),
        "run",
        "ring",
        "--layer",
        "shm",
        "--ranks",
        "3",
    ]
    words = ["--limit", "60s", "--", "rounds=1000000000", "elements=1000"]
    process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: len(probes(process.pid)) == 3)
        killed = next(one for one in probes(process.pid) if one.cmdline()[-1].endswith("spec-2.json"))
        killed.kill()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert (process.returncode, out) == (5, "")
    assert err.startswith("wiretwin: ring: rank 2 ended with signal SIGKILL")


def probes(pid: int) -> list[psutil.Process]:
    return [one for one in family(pid) if "wiretwin.probe" in one.cmdline()]


@pytest.mark.parametrize("world", ["live", "simulated"])
def test_a_run_that_never_ends_is_ended_by_the_limit(world: str, twin: Path) -> None:
    words = ["--world", world, "--limit", "2s", *(["--twin", twin] if world == "simulated" else [])]
    with nothing_left(Path("spec-0.json")):
        ended = wiretwin("run", "echo", *words, "--", "rounds=1000000000")
    assert ended.code == 5, ended.err
    # Half of the limit is for meeting, which on a busy host may take longer than that.
    assert "2 s" in ended.err or (world == "live" and "within 1s" in ended.err)


def test_a_layer_that_scripts_do_not_run_on_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("")
    ended = wiretwin("run", program, "--layer", "shm")
    assert ended.code == 2
    assert "--layer: 'shm' carries no script live; allowed: mpi4py/mpich" in ended.err


def test_with_a_folder_every_launch_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    ended = wiretwin("run", "ring", "--layer", "shm", "--launches", 3, "-o", out, "--", *SMALL["ring"])
    assert ended.code == 0, ended.err
    record = read(Run, out)
    assert (record.program, record.layer, record.ranks) == ("ring", "shm", 2)
    assert record.args == ["elements=101", "rounds=2"]
    assert len(record.launches) == 3
    assert record.seconds == median_spread([one.seconds for one in record.launches])
    assert len((out / "launches.jsonl").read_text().splitlines()) == 3
    assert [part.rank for part in record.split] == [0, 1]
    assert record.split_launch is not None
    its = record.launches[record.split_launch - 1]
    assert its.seconds == sorted(one.seconds for one in record.launches)[1]
    assert [part.total_s for part in record.split] == pytest.approx(its.per_rank_s)
    assert all(part.compute_s + part.mpi_s == pytest.approx(part.total_s) for part in record.split)
    again = wiretwin("run", "ring", "--layer", "shm", "-o", out)
    assert again.code == InputError.exit_code
    assert "a new or an empty folder" in again.err


def test_a_launch_that_fails_leaves_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [0.5, 0.25]

    def one(program: Named, words: list[str], **_: Any) -> NamedRun:
        if not left:
            raise ProgramError("rank 1 has gone")
        parts = {"compute": 0.125, "comm": 0.0, "other": 0.0}
        return NamedRun(
            program, {"elements": 1}, "live", "shm", (NamedRank(0, left[-1], left.pop(), parts, "ab", True),)
        )

    monkeypatch.setattr(repeats, "run_live", one)
    with pytest.raises(ProgramError, match="rank 1 has gone"):
        repeats.run_repeatedly(NAMED["ring"], [], tmp_path / "r")
    assert [one.seconds for one in read(Run, tmp_path / "r").launches] == [0.25, 0.5]


def test_a_launch_with_another_result_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = iter(["ab", "ab", "cd"])

    def one(program: Named, words: list[str], **_: Any) -> NamedRun:
        return NamedRun(
            program, {}, "live", "shm", (NamedRank(0, 1.0, 1.0, {"compute": 0.5}, next(digests), True),)
        )

    monkeypatch.setattr(repeats, "run_live", one)
    with pytest.raises(ProgramError, match="ring: launch 3 had another result than the first"):
        repeats.run_repeatedly(NAMED["ring"], [], tmp_path / "r")


@pytest.mark.parametrize("launches", [0, 1001])
def test_launches_out_of_range_are_refused(tmp_path: Path, launches: int) -> None:
    with pytest.raises(InputError, match="--launches"):
        repeats.run_repeatedly(NAMED["ring"], [], tmp_path / "r", launches=launches)
