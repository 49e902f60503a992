"""Each detector finds what was provoked, here and now, and is silent on everything else."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from provoke import CASES, Case, need, provoke
from recorded import FOLDER, load, save

from wiretwin.stacks.layers import LAYERS, parse_layer
from wiretwin.understand.confirm import confirm
from wiretwin.understand.detect import DETECTORS, detect
from wiretwin.understand.view import View, views

confirming: Any = importlib.import_module("wiretwin.understand.confirm")
PROVOKED = [case for case in CASES.values() if case.finding is not None]


@pytest.fixture(scope="module", autouse=True)
def regenerated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    if not request.config.getoption("--regenerate", default=False):
        return
    for case in CASES.values():
        save(provoke(case, tmp_path_factory.mktemp("case") / "result"), FOLDER / f"{case.name}.parquet")


def recorded(case: Case) -> View:
    return load(FOLDER / f"{case.name}.parquet")


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_speaks_of_its_own_anomaly_alone(name: str, case: Case) -> None:
    found = DETECTORS[name].find(recorded(case))
    assert [one.name for one in found] == ([name] if case.finding == name else [])


def test_every_detector_is_provoked_and_every_recording_has_a_case() -> None:
    assert {case.finding for case in PROVOKED} == set(DETECTORS)
    assert {path.stem for path in FOLDER.glob("*.parquet")} == set(CASES)
    assert all(path.stat().st_size < 16384 for path in FOLDER.glob("*.parquet"))


@pytest.mark.parametrize("case", PROVOKED, ids=lambda case: case.name)
def test_a_finding_has_evidence_with_figures_sizes_and_a_counter_run(case: Case) -> None:
    (found,) = detect(recorded(case))
    assert found.confidence == case.confidence
    assert any(any(letter.isdigit() for letter in sentence) for sentence in found.evidence)
    assert set(found.sizes) <= set(recorded(case).loops[found.loop].sizes.tolist())
    assert found.counter is not None


def test_a_message_in_two_writes_stalls_once_and_twice_if_both_sides_do_so() -> None:
    view = recorded(CASES["nagle"])
    (found,) = detect(view)
    assert found.evidence[1].endswith("in one direction")
    one = view.loops["two_write"]
    both = dataclasses.replace(one, values=2 * one.values)
    (found,) = detect(dataclasses.replace(view, loops={**view.loops, "two_write": both}))
    assert found.name == "delayed-acknowledgement"
    assert found.evidence[1].endswith("for each direction")


def test_a_curve_that_climbs_into_the_band_is_no_stall_and_one_that_jumps_into_it_is() -> None:
    view = recorded(CASES["nagle"])
    one = view.loops["echo"]
    # Half round trips of PVM's daemons where other work kept both cores, in microseconds.
    climbs = {16384: 93.3, 65536: 1296.6, 262144: 9887.8, 524288: 16162.2, 786432: 24170.8, 1048576: 34546.2}
    jumps = climbs | {262144: 1500.0, 524288: 2200.0}

    def with_curve(curve: dict[int, float]) -> View:
        sizes = np.array(list(curve))
        values = np.tile(2000.0 * np.array(list(curve.values())), (3, 1))
        return dataclasses.replace(view, loops={"echo": dataclasses.replace(one, sizes=sizes, values=values)})

    find = DETECTORS["delayed-acknowledgement"].find
    assert find(with_curve(climbs)) == []
    (found,) = find(with_curve(jumps))
    assert found.sizes == (786432,)
    assert (
        found.evidence[0] == "the one-way latency of 786432 B takes 24.2 ms; the layer can do it in 2.200 ms"
    )


def test_each_library_whose_eager_limit_a_word_sets_has_a_counter_run() -> None:
    worded = [kind for kind in LAYERS.values() if any(word.written == "eagerNk" for word in kind.words)]
    assert len(worded) >= 7
    view = recorded(CASES["rendezvous"])
    for name in (kind.name for kind in worded):
        (found,) = detect(dataclasses.replace(view, name=name, layer=name))
        assert found.counter is not None
        assert found.counter.layer == parse_layer(f"{name}+eager68k").name
    without = [f"{kind.name}+{word}" for kind in worded for word in kind.nature.without_limit]
    assert len(without) == 3
    for name in without:
        (found,) = detect(dataclasses.replace(view, name=name, layer=name.split("+")[0]))
        assert found.counter is None, name
        assert found.confidence != "confirmed"


@pytest.mark.parametrize("case", PROVOKED, ids=lambda case: case.name)
def test_without_the_cause_its_counter_run_would_tell(case: Case) -> None:
    """The anomaly itself never passes for a run without it."""
    view = recorded(case)
    (found,) = detect(view)
    assert DETECTORS[found.name].gone(found, view, view) is False


@pytest.mark.alone
@pytest.mark.parametrize("case", PROVOKED, ids=lambda case: case.name)
def test_an_anomaly_provoked_now_is_found_and_its_counter_run_decides(case: Case, tmp_path: Path) -> None:
    need(case)
    result = provoke(case, tmp_path / "result")
    (view,) = views(result)
    found = [one for one in detect(view) if one.name == case.finding]
    if not found and case.noisy:
        pytest.skip("the host was too busy for intervals that separate")
    assert len(found) == 1
    after = [one for one in confirm(result, budget="1.5s") if one.name == case.finding]
    assert len(after) == 1
    assert after[0].outcome
    assert after[0].confidence == "confirmed" or case.noisy
    # Once made, a counter-run is not made again.
    again = [one for one in confirm(result) if one.name == case.finding]
    assert again == after
    assert len(list((tmp_path / "result" / "confirm").iterdir())) == len(
        [one for one in detect(view) if one.counter is not None]
    )


def test_a_counter_run_that_is_interrupted_refutes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = load(FOLDER / f"{CASES['nagle'].name}.parquet")
    (finding,) = detect(view)
    cut = SimpleNamespace(manifest=SimpleNamespace(state="interrupted"))
    monkeypatch.setattr("wiretwin.measure.api.measure", lambda *_, **__: cut)
    monkeypatch.setattr(confirming, "_place", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(confirming, "views", lambda _: [view])
    result: Any = SimpleNamespace(path=tmp_path, manifest=SimpleNamespace(options={}, seed=1))
    with pytest.raises(KeyboardInterrupt):
        confirming._counter_run(result, finding, view, tmp_path / "confirm" / "1", "1s")
