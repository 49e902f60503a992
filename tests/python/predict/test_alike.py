"""Ranks that do the same are measured on some of them, unless those that are measured differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from predict_help import HEAD, TWIN

from wiretwin.mpi.away import KINDS
from wiretwin.predict import alike, solo
from wiretwin.predict.predict import Forecast, predict
from wiretwin.twin import Twin

#: All but the first do the same; what they send differs, and whom they send it to.
RING = (
    HEAD
    + """
comm.Sendrecv(np.full(9, float(rank)), (rank + 1) % size, 0, np.empty(9), (rank - 1) % size, 0)
if rank == 0:
    comm.Isend(np.ones(3), 1).Free()
"""
)


def test_every_rank_has_one_of_its_group_in_its_place_and_others_in_the_next_pass() -> None:
    groups = [[0, 4], [1, 2, 3, 5, 6, 7, 8, 9]]
    first, second = (alike.sample(groups, turn, seed=1) for turn in (0, 1))
    for found in (first, second):
        assert sorted(found) == list(range(10))
        assert all(measured in group for group in groups for rank in group for measured in [found[rank]])
        assert all(found[measured] == measured for measured in found.values())
        assert {found[rank] for rank in groups[0]} == {0, 4}
        assert len({found[rank] for rank in groups[1]}) == 4
    assert set(first.values()) != set(second.values())
    assert first == alike.sample(groups, 0, seed=1)


def test_the_more_kinds_there_are_the_fewer_of_each_are_measured() -> None:
    assert [alike.each([[0, 1]] * kinds) for kinds in (1, 2, 3, 4, 5, 64)] == [4, 4, 2, 2, 2, 2]


def test_ranks_that_compute_for_other_times_are_not_alike() -> None:
    ms = 1_000_000_000
    groups = [[0, 1], [2, 3, 4]]
    assert not alike.differ(groups, {0: [100 * ms], 2: [300 * ms], 3: [330 * ms]})
    assert alike.differ(groups, {0: [100 * ms], 2: [300 * ms], 4: [500 * ms]})
    assert alike.differ(groups, {2: [300 * ms, 280 * ms], 4: [500 * ms, 460 * ms]})
    assert not alike.differ(groups, {2: [300 * ms, 310 * ms], 4: [500 * ms, 310 * ms]}), "not each time"
    assert not alike.differ(groups, {0: [100 * ms], 2: [ms], 4: [5 * ms]}), "too short to tell"


def test_a_prediction_says_on_how_many_ranks_it_was_measured(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RING, "utf-8")
    found = predict(program, twin=Twin.parse(TWIN), ranks=12, passes=1, out=None)
    (said,) = (text for text in found.warnings if "alike" in text)
    assert said.startswith("12 ranks of 2 kinds: ")
    assert " 5 of them" in said
    assert len(found.per_rank) == 12


#: Every rank makes the same calls.
ALL_ALIKE = HEAD + "comm.Barrier()\n"


@pytest.mark.parametrize(
    ("seconds", "measured", "passes"),
    [
        ([{1: 0.4, 3: 0.4, 5: 0.4}, {}], 4, 2),
        ([{1: 0.4, 3: 0.4, 5: 0.4}, {0: 0.2, 2: 0.2, 4: 0.2}], 4, 2),
        ([{1: 0.4, 3: 0.4, 5: 0.4}] * 4, 6, 1),
    ],
    ids=["once more is noise", "others the next time are noise", "always is a kind of its own"],
)
def test_all_ranks_are_measured_where_those_that_do_the_same_differ_each_time(
    seconds: list[dict[int, float]],
    measured: int,
    passes: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(ALL_ALIKE, "utf-8")
    forecast = Forecast(program, twin=Twin.parse(TWIN), ranks=6, passes=1)
    forecast.record()
    asked: list[list[int]] = []

    def took(*_: object, chosen: list[int], **__: object) -> list[solo.Part]:
        """Return what ranks are said to have taken this time: 0.1 s unless told."""
        found = []
        for rank in chosen:
            ps = round(seconds[len(asked)].get(rank, 0.1) * 1e12) + rank
            digests = forecast.run.compute.digests[rank]
            stretches = len(forecast.run.compute.durations_ps[rank])
            blocked = dict.fromkeys(KINDS, 0)
            found.append(solo.Part([ps, *[0] * (stretches - 1)], digests, blocked, {}, None))
        asked.append(chosen)
        return found

    monkeypatch.setattr(solo, "measure", took)
    while forecast.wants_another():
        forecast.measure()
    assert len(forecast.passes) == passes
    assert len({tuple(one) for one in forecast.passes[0].durations_ps}) == measured
    assert asked[0] == asked[1], "those that differ are measured again"
    assert len(asked[-1]) == measured
