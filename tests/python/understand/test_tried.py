"""Real launches with chosen algorithms and without, in turn."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from wiretwin.errors import InputError, MeasureError
from wiretwin.measure.launch import SPENT, Outcome
from wiretwin.measure.schedule import Step
from wiretwin.predict.collectives import choose
from wiretwin.predict.mpich_rules import environment, mpich_rules, own_rules
from wiretwin.stacks.layers import Configuration
from wiretwin.stacks.simulated import mpich_of
from wiretwin.understand.changes import Change, Verdict
from wiretwin.understand.tried import Tried, try_rules

LAYER = "mpi/mpich+wheel"
WANTED = {"bcast": [4, 4096], "allreduce": [4]}


def test_both_kinds_of_launches_time_what_was_wanted() -> None:
    choices = choose(ranks=2, twin="nothing", network="star:rate=1Gbit/s", library="mpich", sizes=[4, 4096])
    told: list[tuple[int, int]] = []

    def write(folder: Path) -> dict[str, str]:
        file = folder / "coll.json"
        file.write_text(mpich_rules(choices, 2, own_rules(mpich_of(LAYER))))
        return environment(choices, file)

    found = try_rules(
        LAYER,
        write,
        WANTED,
        ranks=2,
        launches=3,
        budget_s=1.0,
        on_launch=lambda done, of: told.append((done, of)),
    )
    assert told == [(number, 6) for number in range(1, 7)]
    assert [(row.layer, row.bytes) for row in found.rows] == [("allreduce", 4), ("bcast", 4), ("bcast", 4096)]
    assert {(row.launches_before, row.launches_after) for row in found.rows} == {(3, 3)}
    assert found.sentence().endswith("; 3 launches with it and without")


def test_the_second_launch_of_each_two_has_the_rules_and_what_fails_is_said() -> None:
    def write(folder: Path) -> dict[str, str]:
        file = folder / "coll.json"
        file.write_text('{"collective=bcast":{"algorithm=MPIR_No_such":{}}}')
        return environment([], file)

    told: list[int] = []
    with pytest.raises(MeasureError, match="a launch with the rules failed"):
        try_rules(
            LAYER,
            write,
            WANTED,
            ranks=2,
            launches=3,
            budget_s=1.0,
            on_launch=lambda done, _: told.append(done),
        )
    assert told == [1]


def samples(step: Step, ns: float) -> dict[str, Any]:
    return {"loop": step.loop, "bytes": step.bytes, "delay_ns": 0, "batch": 1, "values_ns": [ns] * 3}


def test_what_a_launch_does_not_finish_in_time_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    schedules: list[list[tuple[str, int]]] = []

    def slow(_: Configuration, schedule: Sequence[Step], *, limit_s: float, **more: Any) -> Outcome:
        """The first launch is ended before its last step; with the rules a call takes half of the time."""
        schedules.append([(step.loop, step.bytes) for step in schedule])
        ns = 500.0 if "RULES" in more["session"].env else 1000.0
        if len(schedules) > 1:
            return Outcome("ok", None, None, [samples(step, ns) for step in schedule], 1.0)
        return Outcome("interrupted", SPENT, None, [samples(step, ns) for step in schedule[:-1]], limit_s)

    monkeypatch.setattr("wiretwin.understand.tried.launch", slow)
    found = try_rules(
        LAYER, lambda _: {"RULES": "1"}, WANTED, ranks=2, launches=3, budget_s=6.0, expected_s=10.0
    )
    whole = [("bcast", 4), ("allreduce", 4), ("bcast", 4096)]
    assert schedules == [whole, *[whole[:2]] * 5]
    assert [(row.layer, row.bytes, row.ratio) for row in found.rows] == [
        ("allreduce", 4, pytest.approx(0.5)),
        ("bcast", 4, pytest.approx(0.5)),
    ]
    assert {(row.launches_before, row.launches_after) for row in found.rows} == {(3, 3)}
    # Seven calls of each, which ten seconds are expected for, may take ten times as long.
    end = "; left out, as a launch did not finish them in 730 s: bcast of 4096 bytes"
    assert found.sentence().endswith(end)


def test_a_launch_that_finishes_nothing_ends_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "wiretwin.understand.tried.launch", lambda *_, **__: Outcome("interrupted", SPENT, None, [], 1.0)
    )
    with pytest.raises(
        MeasureError, match=r"without the rules finished nothing in 170 s, .* should take 14 s"
    ):
        try_rules(LAYER, lambda _: {}, WANTED, ranks=2, launches=3, budget_s=6.0, expected_s=2.0)


def test_calls_that_the_rules_are_not_for_are_not_tried() -> None:
    with pytest.raises(InputError, match=r"--layer: 'mpi/mpich\+wheel\+yield' makes calls that do not block"):
        try_rules(f"{LAYER}+yield", lambda _: {}, WANTED, ranks=2, launches=3)


def row(verdict: Verdict, ratio: float) -> Change:
    return Change("bcast", 4, 1.0, ratio, 5, 5, ratio, ratio, ratio, 0.1, verdict)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [row("faster", 0.5), row("no change", 1.0)],
            "the file helps: of 2 faster at 1, typically 0.5 times",
        ),
        (
            [row("faster", 0.5), row("slower", 2.0)],
            "the file helps at some lengths and harms at others: of 2",
        ),
        (
            [row("slower", 2.0)],
            "the file does not help, it harms: of 1 slower at 1, typically 2 times the time",
        ),
        ([row("inconclusive", 0.5)], "the file does not help: of 1 no difference shown at 1; 5 launches"),
    ],
)
def test_one_sentence_says_whether_it_helps(rows: list[Change], said: str) -> None:
    assert Tried(rows, 5).sentence().startswith(said)


def test_what_has_no_such_rules_is_rejected() -> None:
    with pytest.raises(InputError, match="a layer of MPICH or Open MPI"):
        try_rules("socket/tcp", lambda _: {}, WANTED, ranks=2)
    with pytest.raises(InputError, match="--launches: 2"):
        try_rules(LAYER, lambda _: {}, WANTED, ranks=2, launches=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--try", "--stack", "mpi-mvich/gige"], "--try: measures with a file"),
        (["--export", "mpich", "-o", "x", "--hosts", "2"], "--hosts: says where ranks live"),
        (["--export", "mpich"], "--out: is needed"),
        (["--export", "mpich", "-o", "x", "--twin", "nothing", "--layer", "shm"], "--layer: 'shm'"),
        (["--export", "mpich", "-o", "x", "--twin", "nothing", "--try", "--budget", "9"], "--budget: '9'"),
    ],
)
def test_wrong_words_are_rejected(tmp_path: Path, words: list[str], said: str) -> None:
    line = [sys.executable, "-c", "from wiretwin.cli import main; main()", "advise", *words]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "x").exists()
