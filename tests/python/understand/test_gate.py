"""The gate: what fails it, what does not, and what is said of what cannot be told."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import pytest
from test_changes import made
from typer.testing import CliRunner

import wiretwin as wt
from wiretwin.cli.app import _build
from wiretwin.errors import InputError
from wiretwin.results import Result
from wiretwin.understand.changes import Changes, changes
from wiretwin.understand.gate import gate, repetition

SIZES = [2**k for k in range(6)]


def never(layers: Sequence[str], number: int) -> Changes | None:
    raise AssertionError(f"{layers} measured again, number {number}")


def compared(folder: Path, factor: float, *, seed: int = 2, launches: int = 7) -> Changes:
    before = folder / "before"
    base = made(before, seed=1, sizes=SIZES, launches=7) if not before.exists() else None
    after = made(folder / f"after-{seed}", seed=seed, sizes=SIZES, factor=factor, launches=launches)
    return changes(base or Result.open(before), after, change=0.1)


def test_what_is_not_slower_passes_and_is_not_measured_again(tmp_path: Path) -> None:
    done = gate(compared(tmp_path, 1.0), 0.1, never, 3)
    assert done.outcome() == "passed"
    assert done.words("shm") == "not slower by 10 % at any size"


def test_a_slowdown_fails_when_it_comes_back(tmp_path: Path) -> None:
    asked: list[tuple[Sequence[str], int]] = []

    def again(layers: Sequence[str], number: int) -> Changes:
        asked.append((layers, number))
        return compared(tmp_path, 1.5, seed=2 + number)

    done = gate(compared(tmp_path, 1.5), 0.1, again, 2)
    assert asked == [(["shm"], 1), (["shm"], 2)]
    assert done.outcome() == "failed"
    assert done.words("shm").startswith("slower by more than 10 % at 6 sizes (1 to 32 B), most at ")
    assert done.words("shm").endswith(", 3 times measured")


def test_a_slowdown_that_does_not_come_back_is_inconclusive(tmp_path: Path) -> None:
    done = gate(compared(tmp_path, 1.5), 0.1, lambda *_: compared(tmp_path, 1.0, seed=3), 2)
    assert len(done.rounds) == 2, "nothing was left to be measured a third time"
    assert done.outcome() == "inconclusive"


def test_a_slowdown_below_what_is_allowed_passes(tmp_path: Path) -> None:
    found = compared(tmp_path, 1.1)
    assert found.of("slower"), "it is seen"
    assert gate(found, 0.3, never, 1).outcome() == "passed"


def test_one_launch_shows_nothing(tmp_path: Path) -> None:
    done = gate(compared(tmp_path, 3.0, launches=1), 0.1, never, 1)
    assert done.outcome() == "inconclusive"
    assert "neither shown nor excluded at 6 sizes" in done.words("shm")


def test_where_it_cannot_be_measured_again_the_first_time_counts(tmp_path: Path) -> None:
    done = gate(compared(tmp_path, 1.5), 0.1, lambda *_: None, 2)
    assert done.outcome() == "failed"
    assert "times measured" not in done.words("shm")


@pytest.mark.parametrize(("allowed", "times"), [(0.0, 1), (-0.1, 1), (0.1, -1), (0.1, 10)])
def test_out_of_range(allowed: float, times: int, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        gate(compared(tmp_path, 1.0), allowed, never, times)


def test_repetitions_are_kept_beside_the_result() -> None:
    assert repetition(Path("results/new"), 1) == Path("results/new-again-1")
    assert repetition(Path("results/new-again-1"), 2) == Path("results/new-again-2")


@pytest.mark.parametrize(
    ("factor", "status", "tag"), [(1.0, 0, None), (1.5, 1, "failure"), (1.1, 0, "skipped")]
)
def test_the_command_ends_with_its_status(
    factor: float, status: int, tag: str | None, tmp_path: Path
) -> None:
    compared(tmp_path, factor)
    words = ["compare", str(tmp_path / "before"), str(tmp_path / "after-2"), "--fail-above", "10%"]
    files = ["--junit", str(tmp_path / "gate.xml"), "--markdown", str(tmp_path / "gate.md")]
    ended = CliRunner().invoke(_build(), [*words, *files])
    assert ended.exit_code == status, ended.output
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    (case,) = suite
    assert [one.tag for one in case] == ([] if tag is None else [tag])
    outcome = {None: "passed", "failure": "failed", "skipped": "inconclusive"}[tag]
    assert f"gate: {outcome}\n" in ended.output
    assert (tmp_path / "gate.md").read_text().startswith(f"**{outcome}**")
    if status:
        assert "not measured again" in ended.output, "what was made up cannot be"


def test_what_was_measured_here_is_measured_again(tmp_path: Path) -> None:
    new = tmp_path / "new"
    wt.measure(["shm"], budget=None, launches=3, sizes=[64, 1024], purpose="curves", out=new)
    # A base of two nanoseconds, which no state of a host comes near.
    base = made(tmp_path / "base", seed=1, sizes=[64, 1024], factor=2e-5)
    ended = CliRunner().invoke(_build(), ["compare", str(base.path), str(new), "--fail-above", "50%"])
    assert ended.exit_code == 1, ended.output
    again = Result.open(tmp_path / "new-again-1")
    assert again.manifest.options == Result.open(new).manifest.options
    assert "2 times measured" in ended.output
