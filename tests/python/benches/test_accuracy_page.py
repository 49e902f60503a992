"""The headline of the accuracy page is computed from every round on record, not chosen."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benches"))

import accuracy_page  # noqa: E402


def test_the_page_says_what_the_records_say() -> None:
    text = accuracy_page.PAGE.read_text("utf-8")
    assert accuracy_page.page(text) == text, "run benches/accuracy_page.py"


def test_another_record_makes_another_headline(tmp_path: Path) -> None:
    folder = tmp_path / "accuracy"
    shutil.copytree(accuracy_page.DATA, folder)
    text = accuracy_page.PAGE.read_text("utf-8")
    assert accuracy_page.page(text, folder) == text
    rows = (folder / "rounds.csv").read_text().splitlines()
    # A round whose median was far off is taken out.
    worst = max(rows[1:], key=lambda row: float(row.split(",")[2]))
    (folder / "rounds.csv").write_text("\n".join(row for row in rows if row != worst) + "\n")
    assert accuracy_page.page(text, folder) != text


def test_every_round_and_tour_is_on_record() -> None:
    made = accuracy_page.rounds()
    for kind in ("round", "tour"):
        numbers = [int(one.run.split()[1]) for one in made if one.run.startswith(kind)]
        assert numbers == list(range(1, len(numbers) + 1))
    assert {one.run for one in accuracy_page.cases()} <= {one.run for one in made}


def test_the_figures_of_a_round_are_those_of_its_programs() -> None:
    kept = accuracy_page.cases()
    for one in accuracy_page.rounds():
        errors = [abs(case.error_percent) for case in kept if case.run == one.run]
        if errors:
            assert len(errors) == one.programs
            # Rounded to a tenth before the median was taken, or after.
            assert np.median(errors) == pytest.approx(one.median_percent, abs=0.1)
            assert max(errors) == pytest.approx(one.worst_percent, abs=0.1)


def test_the_headline_is_over_everything() -> None:
    made, kept = accuracy_page.rounds(), accuracy_page.cases()
    said = accuracy_page.headline(made, kept)
    medians = np.array([one.median_percent for one in made])
    assert f"is {np.median(medians):.1f} % at the median" in said
    assert f"and {np.quantile(medians, 0.9, method='inverted_cdf'):.1f} % at the ninth decile" in said
    errors = np.abs([one.error_percent for one in kept])
    assert f"median error is {np.median(errors):.1f} %" in said
    assert f"the ninth decile {np.quantile(errors, 0.9, method='inverted_cdf'):.1f} %" in said
    known = [one for one in kept if one.predicted is not None and one.actual is not None]
    inside = sum(one.predicted[1] <= one.actual[0] <= one.predicted[2] for one in known)  # type: ignore[index]
    assert f"{inside} of {len(known)} actual values lie inside" in said


def test_errors_are_those_of_the_times() -> None:
    for one in accuracy_page.cases():
        if one.predicted is not None and one.actual is not None:
            # Times are kept to four digits: half a unit of the last one on each side.
            rounding = 100 * (5e-5 / one.actual[0]) * 2.5 + 0.05
            error = 100 * (one.predicted[0] / one.actual[0] - 1)
            assert error == pytest.approx(one.error_percent, abs=rounding), one


def test_two_values_agree_where_both_intervals_together_explain_the_difference() -> None:
    def case(predicted: tuple[float, float, float], actual: tuple[float, float, float]) -> bool | None:
        return accuracy_page.agrees(accuracy_page.Case("", "", "", "", predicted, actual, 0.0))

    assert case((10.0, 7.0, 11.0), (5.0, 4.0, 9.0))  # 3 and 4 to the facing sides: 5
    assert not case((10.0, 7.0, 99.0), (4.9, 0.0, 8.9))
    assert case((5.0, 4.0, 9.0), (10.0, 7.0, 11.0))
    assert case((5.0, 5.0, 5.0), (5.0, 5.0, 5.0))
    assert accuracy_page.agrees(accuracy_page.Case("", "", "", "", None, None, 1.0)) is None
