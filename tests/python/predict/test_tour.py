"""The tour, once round with one tiny program; and what an interrupt leaves."""

from __future__ import annotations

import importlib
import math
import re
from pathlib import Path
from typing import Any

import pytest
from predict_help import RING, mentioning, wiretwin

from wiretwin import tour as package_tour
from wiretwin.errors import InterruptedRun
from wiretwin.measure.budget import Budget
from wiretwin.predict import shipped
from wiretwin.predict.records import Prediction, Run, read
from wiretwin.results import Result
from wiretwin.tour import MEASURE_S, Step
from wiretwin.twin import Twin

MPI = ("mpi4py/mpich",)
FEW_SIZES = "4,64,1KiB,4KiB,64KiB"
"""Enough for a twin, in a launch of which starting is the most."""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put one tiny program in place of the examples."""
    home = tmp_path / "programs"
    home.mkdir()
    program = home / "ring.py"
    program.write_text(RING + "import sys\nassert sys.argv[1:] == ['4']\n")
    monkeypatch.setattr(shipped, "folder", lambda: home)
    monkeypatch.setattr("wiretwin.tour.SIZES", FEW_SIZES)
    monkeypatch.setattr("wiretwin.tour.PROGRAMS", (shipped.Shipped("ring.py", ("4",), ("8",)),))
    return program


def test_once_round_leaves_everything_in_one_folder(tiny: Path, tmp_path: Path) -> None:
    steps: list[Step] = []
    folder = tmp_path / "tour"
    done = package_tour(folder, layers=MPI, measure_s=2.0, launches=1, tell=steps.append)
    assert Result.open(folder / "result").samples().height > 0
    assert Twin.read(folder / "twin.toml").layer("mpi4py/mpich").overhead_send
    frozen = read(Prediction, folder / "programs" / "ring-small" / "prediction")
    run = read(Run, folder / "programs" / "ring-small" / "run")
    assert frozen.frozen_utc < run.started_utc
    assert [one.prediction for one in done.comparisons] == [frozen]
    # The host may be busy or in another state at any time, and one launch is few; nothing else is to be said.
    about = ("state", "the median of 1 launch", "had no core")
    assert [note for note in done.comparisons[0].notes if not any(word in note for word in about)] == []
    assert done.report == folder / "report.html"
    assert "ring.py" in done.report.read_text("utf-8")
    words = [step.words for step in steps]
    order = [next(i for i, text in enumerate(words) if said in text) for said in STAGES]
    assert order == sorted(order)
    assert all(step.remaining_s >= 0 for step in steps)
    assert mentioning(tiny) == []


def test_a_layer_that_the_budget_had_one_launch_for_is_named_and_ends_no_tour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a busy host: what the programs run on is measured, and the report has what there is."""
    monkeypatch.setattr("wiretwin.tour.PROGRAMS", ())
    monkeypatch.setattr("wiretwin.tour.SIZES", FEW_SIZES)
    asked: list[str] = []

    def fits(_: Budget, name: str, steps_s: float, **__: bool) -> bool:
        asked.append(name)
        return asked.count(name) == 1

    monkeypatch.setattr(Budget, "fits", fits)
    monkeypatch.setattr(Budget, "fair_end", lambda *_, **__: math.inf)
    done = package_tour(tmp_path / "tour", layers=(*MPI, "shm"), measure_s=2.0, launches=1)
    assert done.result is not None
    assert done.result.manifest.stopped["shm"] == "budget"
    assert done.twin is not None
    assert list(done.twin.layers) == list(MPI)
    lacks = "has 1 launch with loop echo; an interval between launches needs more"
    assert done.twin.source.left_out == {"shm": lacks}
    assert done.report is not None
    assert "shm" in done.report.read_text("utf-8")


STAGES = ("measuring", "fitting the twin", "predicting ring.py", "ring.py 4: ", "writing the report")


@pytest.mark.parametrize("stage", [STAGES[0], STAGES[2]])
def test_an_interrupt_says_where_what_was_reached_is(
    stage: str, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.import_module("wiretwin.tour").tour

    def interrupted(folder: Path, *, tell: Any, **options: Any) -> Any:
        def tell_and_stop(step: Step) -> None:
            tell(step)
            if stage in step.words:
                raise KeyboardInterrupt

        return real(folder, layers=MPI, tell=tell_and_stop, **options | {"measure_s": 2.0})

    monkeypatch.setattr("wiretwin.tour.tour", interrupted)
    ended = wiretwin("tour", "-o", "round", "--launches", 1)
    assert ended.code == InterruptedRun.exit_code
    begun, told = ended.err.splitlines()
    assert re.fullmatch(r"the loop takes about \d+ s on a host with nothing else to do", begun)
    assert told == "wiretwin: interrupted; what was measured and predicted is kept in round"
    assert Path("round/result").exists() == (stage != "measuring")
    assert mentioning(tiny) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--launches", "0"], "--launches: 0 is not allowed here; allowed: 1 to 1000"),
        (["--budget", "26"], "--budget: '26' has no unit"),
        (["--budget", "1s"], "--budget: '1s' is out of range"),
    ],
)
def test_wrong_options_are_refused(words: list[str], said: str) -> None:
    ended = wiretwin("tour", *words)
    assert ended.code == 2
    assert said in ended.err
    assert not Path("results").exists()


def test_the_verb_and_the_function_measure_as_long() -> None:
    assert f"[default: {MEASURE_S:g}s]" in " ".join(wiretwin("tour", "--help").out.split())


def test_shipped_programs_are_there_at_two_sizes() -> None:
    for program in shipped.PROGRAMS:
        assert program.path().is_file()
        assert program.args("small") == program.small
        assert program.args("large") == program.large
