"""What could move a value: what is committed is what the model says, and what is notable is listed."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from wiretwin.errors import InputError, SimulationError
from wiretwin.model.profiles import Network
from wiretwin.papers import lin1995, lin1995_sensitivity
from wiretwin.papers.fit import constants
from wiretwin.papers.lin1995_sensitivity import ENOUGH, Effect, _changes, notable, steady_summary
from wiretwin.papers.lin1995_settings import Setting, fore_setting, socket_setting

VALUES = Path(__file__).resolve().parents[3] / "docs" / "papers" / "lin1995-sensitivity.csv"
COMMITTED = list(csv.DictReader(VALUES.read_text().splitlines()))


def effect(change: float | None, metric: str = "t0_us") -> Effect:
    """Return an effect that moves a value of 100 by so much."""
    value = None if change is None else 100 * (1 + change)
    return Effect("table2", "network=fddi", metric, 100, None, "fit", "software socket_us", "2", value)


def test_notable_is_what_moves_a_value_by_a_quarter_and_what_moves_it_most() -> None:
    small, large, lost = effect(0.1), effect(-0.3), effect(None)
    assert lost.change == math.inf
    other = [effect(0.02, "r_max_MB_s"), effect(-0.05, "r_max_MB_s")]
    assert notable([small, large, *other, lost]) == [large, other[1], lost]


def test_the_committed_effects_are_those_of_the_model() -> None:
    setting = socket_setting("ethernet")
    rows = {
        (row["what"], row["made"]): row
        for row in COMMITTED
        if (row["experiment"], row["case"], row["metric"]) == ("table2", setting.case, "n_half_bytes")
    }
    base = steady_summary(setting.network)
    checked = 0
    for change in _changes(setting.network):
        row = rows.get((change.what, change.made))
        if row is None or change.what not in ("software socket_us", "TCP_NODELAY"):
            continue
        value = steady_summary(change.network, change.sizes)["n_half_bytes"]
        assert value == pytest.approx(float(row["value"]), rel=1e-3)
        assert base["n_half_bytes"] == pytest.approx(float(row["predicted"]), rel=1e-3)
        assert 100 * (value / base["n_half_bytes"] - 1) == pytest.approx(
            float(row["change_percent"]), rel=1e-3
        )
        checked += 1
    assert checked == 3


def test_every_value_of_a_whole_curve_has_what_moves_it_most() -> None:
    committed = {(row["experiment"], row["case"], row["metric"]) for row in COMMITTED}
    wanted = {
        (name, setting.case, metric)
        for name, settings in lin1995.SENSITIVITY.items()
        for setting in settings()
        for metric in lin1995.METRICS
    }
    assert committed == wanted
    far = [row for row in COMMITTED if abs(float(row["change_percent"] or "inf")) > 100 * ENOUGH]
    assert len(far) > len(COMMITTED) * 0.9
    names = {" ".join(key) for key in constants()}
    assert {row["what"] for row in COMMITTED if row["known"] == "fit"} <= names


def test_a_network_is_changed_in_what_it_is_made_of_and_in_nothing_else() -> None:
    network = fore_setting("sparc2", "series-200", switch=False).network
    whats = {change.what for change in _changes(network)}
    assert {"software fore_send_us", "series-200 aal5_cell_us", "taxi100 rate_Mbit_s"} <= whats
    assert not any("circuit_pace" in what or "sparc1+" in what or "ethernet10" in what for what in whats)


def test_a_change_that_loses_messages_says_so_and_one_that_cannot_be_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = fore_setting("sparc2", "series-200", switch=False).network
    asked = iter([{"t0_us": 100.0}, SimulationError("lost"), InputError(reason="none"), {"t0_us": 130.0}])

    def answer(_network: Network, _sizes: object = ()) -> dict[str, float]:
        found = next(asked)
        if isinstance(found, Exception):
            raise found
        return found

    changes = [lin1995_sensitivity._Change("fit", f"x {number}", "2", network) for number in range(3)]
    monkeypatch.setattr(lin1995_sensitivity, "steady_summary", answer)
    monkeypatch.setattr(lin1995_sensitivity, "_changes", lambda _network: changes)
    [found] = lin1995_sensitivity.effects("x", [Setting("c", network)], lambda _case, _metric: 90.0)
    assert [(one.what, one.value, one.published) for one in found] == [
        ("x 0", None, 90.0),
        ("x 2", 130.0, 90.0),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("lin1995 figure7 --sensitivity", "'figure7' has no t_0, r_max and n_half"),
        ("lin1995 table9 --sensitivity", "with --sensitivity: table1"),
        ("chen1996 --sensitivity", "with --sensitivity: lin1995"),
        ("lin1995 --sensitivity --quick", "--quick: is given with --sensitivity"),
        ("lin1995 --fit --quick", "--quick: is given with --fit"),
        ("--quick", "--quick: is given without a paper"),
        ("lin1995 --write", "--write: is given without --fit"),
        ("lin1995 table3 table3", "EXPERIMENT: 'table3' is named twice"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    words: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from wiretwin.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["papers", *words.split()])
    shown = capfd.readouterr()
    assert (ended.value.code, shown.out) == (2, "")
    assert said in shown.err


def test_a_page_that_cannot_be_written_is_refused_before_anything_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from wiretwin.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["papers", "lin1995", "--out", str(tmp_path / "nowhere" / "page.html")])
    shown = capfd.readouterr()
    assert (ended.value.code, shown.out) == (6, "")
    assert "not written: No such file or directory" in shown.err


def test_an_experiment_without_curves_has_no_sensitivity() -> None:
    with pytest.raises(InputError, match="table1"):
        next(lin1995.sensitivity("under-load"))
