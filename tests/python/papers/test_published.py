"""Opened results: files are whole, blind values are as they stood, claims are held against now."""

from __future__ import annotations

import json
import shutil
import tomllib
from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest

from wiretwin.errors import InputError
from wiretwin.papers import PAPERS, published
from wiretwin.papers.claims import Claim, claims
from wiretwin.papers.findings import findings, findings_of_fit
from wiretwin.papers.page import with_opened
from wiretwin.papers.published import Opened, Stored, Valued, opened, read_published, score, stored
from wiretwin.papers.records import Record

PAGES = Path(__file__).resolve().parents[3] / "docs" / "papers"
VALUES = Stored(
    "values.csv",
    (
        Valued("e", "host=a size=4", "t0_us", 10.0, 9.0, 11.0),
        Valued("e", "host=b size=4", "t0_us", 20.0),
        Valued("e", "host=b size=4 load=0.3", "t0_us", 30.0),
        Valued("e", "host=b size=4", "r_max_MB_s", 1.0),
    ),
)


def opened_at(value: float, interval: tuple[float, float] | None, result: float, **more: object) -> Opened:
    found = Valued("e", "c", "t0_us", value, *(interval or (None, None)))
    return Opened("p", "e", "c", "t0_us", result, found, found, "", bool(more.get("counted", True)))


def test_every_opened_result_is_of_one_value_that_was_predicted() -> None:
    counts = {paper: sum(one.counted for one in opened(paper)) for paper in PAPERS}
    assert counts == {"lin1995": 40, "chen1996": 8, "ong2000": 18, "vila1998": 10}
    for paper in PAPERS:
        results = opened(paper)
        named = {(one.experiment, one.case, one.metric) for one in results}
        assert len(named) == len(results)
        assert all(one.counted or one.remark for one in results)


def test_blind_values_score_as_they_did_when_the_results_were_opened() -> None:
    found = {paper: score(opened(paper), "blind") for paper in PAPERS}
    assert {paper: round(100 * one.worst) for paper, one in found.items()} == {
        "lin1995": 625,
        "chen1996": 95,
        "ong2000": 50,
        "vila1998": 665,
    }
    assert sum(one.inside for one in found.values()) == 17


def test_a_blind_value_cannot_be_changed_unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(published.FOLDER, tmp_path / "papers")
    monkeypatch.setattr(published, "FOLDER", tmp_path / "papers")
    path = tmp_path / "papers" / "blind" / "chen1996.csv"
    assert opened("chen1996")
    path.write_text(path.read_text().replace("45.074", "43.1"))
    with pytest.raises(InputError, match=r"chen1996.csv: .* is not its digest"):
        opened("chen1996")


def test_a_value_is_named_by_what_tells_it_from_the_others() -> None:
    assert VALUES.find("e t0_us host=a").value == 10
    assert VALUES.find("e t0_us host=b").value == 20
    assert VALUES.find("e t0_us load=0.3").value == 30
    assert VALUES.find("e t0_us+r_max_MB_s host=b size=4") == Valued(
        "e", "host=b size=4", "t0_us+r_max_MB_s", 21.0
    )
    for of, count in (("e t0_us size=4", 2), ("e t0_us host=c", 0), ("f t0_us host=a", 0)):
        with pytest.raises(InputError, match=f"names {count} values"):
            VALUES.find(of)


def test_a_score_counts_what_is_counted() -> None:
    results = [
        opened_at(11, (9, 12), 10),
        opened_at(5, (4, 6), 10),
        opened_at(40, None, 10),
        opened_at(99, (0, 100), 1, counted=False),
    ]
    found = score(results, "now")
    assert (found.count, found.inside) == (3, 1)
    assert (found.median, found.worst) == pytest.approx((0.5, 3.0))
    assert found.ninth_decile == pytest.approx(0.5 + 0.8 * 2.5)
    nothing = opened_at(0, (0, 0), 0, counted=False)
    assert (nothing.error("now"), nothing.inside("now")) == (None, True)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("published = 1", r"results\[0\].of: is missing"),
        ("of = 'e m'", r"results\[0\].published: is missing"),
        ("of = 'e m'\npublished = 1\nsource = 's'", r"results\[0\].source: is unknown"),
        ("of = 'e m'\npublished = '1'", r"results\[0\].published: '1' has another type"),
        ("of = 'e m'\npublished = 1\ncounted = false", r"results\[0\].remark: is missing"),
    ],
)
def test_a_result_that_is_not_whole_is_rejected(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "paper.toml"
    path.write_text(f"[[results]]\n{row}\n")
    with pytest.raises(InputError, match=said):
        read_published(path)


@pytest.mark.parametrize("paper", PAPERS)
def test_a_claim_that_fails_now_has_a_reason_and_one_that_holds_has_none(paper: str) -> None:
    for one in claims(paper):
        assert one.holds == (not one.reason), f"{one.says} {one.found}"


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_published_meets_the_claims_that_are_of_it(paper: str) -> None:
    said = {(one.experiment, one.case, one.metric): one for one in opened(paper)}
    now = stored(paper, "now")
    # What was not opened is no number, and no claim of it is looked at.
    values = Stored(
        "published",
        tuple(
            replace(one, value=said[key].published if key in said else float("nan"))
            for one in now.values
            for key in [(one.experiment, one.case, one.metric)]
        ),
    )
    whole = [one for one in claims(paper, values) if one.found and not any(map(isnan, one.found))]
    assert len(whole) >= 3
    for one in whole:
        assert one.holds, f"{one.says} {one.found}"


def test_claims_are_held_against_the_values_that_are_given() -> None:
    now = stored("chen1996", "now")
    first = claims("chen1996")[0]
    assert (first.holds, first.found) == (True, (0.0, 0.0))
    lost = Stored(
        now.name,
        tuple(
            Valued(one.experiment, one.case, one.metric, 0.1)
            if (one.case, one.metric) == ("flow_control=credits", "cell_loss_ratio")
            else one
            for one in now.values
        ),
    )
    changed = claims("chen1996", lost)[0]
    assert (changed.holds, changed.found) == (False, (0.1, 0.0))


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("{ value = 'parking-lot efficiency link=L1' }", "has no bound"),
        ("{ product = ['a', 'b'], least = 1 }", "allowed: value, quotient or difference"),
        ("{ value = 'parking-lot efficiency link=L3', least = 1 }", "names 0 values"),
    ],
)
def test_a_check_that_checks_nothing_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: str, said: str
) -> None:
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "chen1996.toml").write_text(
        f"results = []\n[[claims]]\nsays = 's'\nchecks = [{check}]\nreason = 'r'\n"
    )
    monkeypatch.setattr("wiretwin.papers.claims.FOLDER", tmp_path)
    with pytest.raises(InputError, match=said):
        claims("chen1996")


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_shows_every_opened_result_and_claim(paper: str) -> None:
    text = (PAGES / f"{paper}.md").read_text()
    assert with_opened(text, paper) == text
    run = tomllib.loads((published.FOLDER / "published" / f"{paper}.toml").read_text())["blind"]["run"]
    assert f"`{run}`, in {{download}}" in " ".join(text.split())
    for one in opened(paper):
        assert f"| {one.experiment} | `{one.case}` | {one.metric} | {one.published:.5g} " in text
    assert text.count("| ✓ |") + text.count("| ✗ |") == len(claims(paper))


def test_findings_are_computed_from_results_claims_and_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [
        replace(opened_at(11.0, (9.0, 12.0), 10.0), hangs_on="window (40%)"),
        replace(opened_at(12.0, None, 10.0), hangs_on="window (90%)", case="host=a"),
        replace(opened_at(25.0, None, 10.0), hangs_on="grain (50%)", experiment="other"),
        opened_at(100.0, None, 10.0, counted=False),
    ]
    held = [
        Claim("a", True, "", (1.0,), frozenset({"e"})),
        Claim("b", False, "r", (1.0,), frozenset({"e", "other"})),
    ]
    monkeypatch.setattr("wiretwin.papers.findings.opened", lambda _: results)
    monkeypatch.setattr("wiretwin.papers.findings.claims", lambda _: held)
    assert findings("p") == [
        "The median error of 3 published results is 20 %, and was 20 % when they were predicted blind; "
        "the 90 % intervals hold 1 of them now, and held 1 then.",
        "Furthest off is t0_us of other (`c`): the model has 25 where 10 was published, an error of +150 %.",
        "Of 2 claims of the paper the model agrees with 1.",
        "Of all choices that the paper leaves open, `window` is the one that most results hang on: 2 of 3.",
    ]
    rebuilt = findings("p", {"e"})
    assert rebuilt[1].startswith("Furthest off is t0_us of e (`host=a`): the model has 12")
    assert rebuilt[2:] == [
        "The model agrees with the one claim of the paper.",
        "Of all choices that the paper leaves open, `window` is the one that most results hang on: 2 of 2.",
    ]


def test_a_fit_has_its_furthest_value_in_a_finding() -> None:
    records = [
        Record("p", "e", f"size={at}", "t0_us", value, None, None, "calibration", 10.0)
        for at, value in ((1, 10.2), (2, 9.0))
    ]
    free = Record("p", "e", "size=3", "t0_us", 99.0, None, None, "prediction")
    assert findings_of_fit([*records, free]) == [
        "Of 2 values that the model was fitted to the furthest off is t0_us of e (`size=2`), by -10 %."
    ]
    assert findings_of_fit([records[0], free]) == [
        "The one value that the model was fitted to, t0_us of e (`size=1`), is +2 % off."
    ]
    assert findings_of_fit([free]) == []


def said(capsysbinary: pytest.CaptureFixture[bytes], *words: str) -> list[dict[str, object]]:
    from wiretwin.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["papers", *words, "--format", "json"])
    assert ended.value.code == 0
    found: list[dict[str, object]] = json.loads(capsysbinary.readouterr().out)
    return found


def test_the_command_scores_all_papers_in_one_table(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    rows = said(capsysbinary)
    assert [row["paper"] for row in rows] == [*PAPERS, "all"]
    assert [row["results"] for row in rows] == [40, 8, 18, 10, 76]
    assert rows[-1]["blind_inside"] == 17
    for paper, row in zip(PAPERS, rows, strict=False):
        assert row["now_worst_percent"] == pytest.approx(100 * score(opened(paper), "now").worst)
        assert row["claims_that_hold"] == sum(one.holds for one in claims(paper))


def test_the_command_prints_every_opened_result_and_claim(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    rows = said(capsysbinary, "--opened")
    assert [row["published"] for row in rows] == [one.published for paper in PAPERS for one in opened(paper)]
    [worst] = [row for row in rows if str(row["metric"]) == "vbr_kbit_s" and "rho=1.0" in str(row["case"])]
    assert (worst["published"], worst["blind"], worst["counted"]) == (5.1, 39.005, True)
    assert worst["blind_error_percent"] == pytest.approx(664.8, abs=0.1)
    shown = said(capsysbinary, "lin1995", "--claims")
    assert [row["claim"] for row in shown] == [one.says for one in claims("lin1995")]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--opened --claims", "--claims: is given with --opened"),
        ("lin1995 --opened --quick", "--quick: is given with --opened"),
        ("lin1995 table4 --claims", "EXPERIMENT: 'table4'"),
        ("lin1996 --opened", "PAPER: 'lin1996'"),
    ],
)
def test_words_that_opened_results_do_not_go_with_are_rejected(
    capsys: pytest.CaptureFixture[str], words: str, text: str
) -> None:
    from wiretwin.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["papers", *words.split()])
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(("experiment", "shown"), [("table4", True), ("properties", False)])
def test_a_rebuilt_experiment_shows_its_opened_results_below(
    capsysbinary: pytest.CaptureFixture[bytes], experiment: str, shown: bool
) -> None:
    from wiretwin.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["papers", "lin1995", experiment, "--quick"])
    assert ended.value.code == 0
    assert (b"Opened results" in capsysbinary.readouterr().out) == shown
