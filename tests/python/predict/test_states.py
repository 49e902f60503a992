"""States of the host: found by the data, and like compared with like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from predict_help import TWIN, prediction, run_record

from wiretwin import states
from wiretwin.errors import InputError
from wiretwin.predict import live
from wiretwin.predict.compare import compare, split_table
from wiretwin.predict.library import Library
from wiretwin.predict.live import Job, run_interleaved
from wiretwin.predict.model import layer_model
from wiretwin.predict.predict import Forecast
from wiretwin.predict.records import InState, Launch, ModelledRank, Range, RealRank, Run, Spread
from wiretwin.twin import Costs, Crossing, Layer, State, Twin

NEAR, FAR = (80.0, 95.0), (410.0, 430.0)


def in_state(name: str, low: float, high: float, seconds: float, passes: int = 5) -> InState:
    part = ModelledRank(rank=0, compute_s=seconds, endpoint_s=0, wire_s=0, waiting_s=0, total_s=seconds)
    return InState(
        name=name,
        crossing_ns=Range(low=low, high=high),
        network={},
        passes=passes,
        seconds=Spread(value=seconds, low=seconds, high=seconds),
        per_rank=[part],
        trace_digest=name,
    )


TWO = [in_state("near", 70, 140, 1.0), in_state("far", 380, 440, 2.0)]


def launch(seconds: float, crossing: states.Ends | None, split: float | None = None) -> Launch:
    parts = None
    if split is not None:
        parts = [RealRank(rank=rank, compute_s=split, mpi_s=0, total_s=split) for rank in range(2)]
    return Launch(seconds=seconds, per_rank_s=[seconds], crossing_ns=crossing, split=parts)


def run_of(*launches: Launch) -> Run:
    return run_record(launches=[one.model_dump() for one in launches])


@pytest.mark.parametrize(
    ("crossings", "found"),
    [
        ([], []),
        ([None, None], []),
        ([NEAR, NEAR, (85.0, 120.0)], [[0, 1, 2]]),
        ([NEAR, FAR, NEAR, FAR], [[0, 2], [1, 3]]),
        # A launch that saw the host change is of no state, and bridges none.
        ([NEAR, (80.0, 410.0), FAR, FAR, NEAR], [[0, 4], [2, 3]]),
        # What was seen once has no interval.
        ([NEAR, NEAR, FAR], [[0, 1]]),
        # Small steps are one state, however far they reach together.
        ([(100.0, 150.0), (150.0, 225.0), (225.0, 340.0), (340.0, 100.0)], [[0, 1, 2, 3]]),
        ([(50.0, 50.0)] * 2 + [NEAR] * 2 + [FAR] * 2, [[0, 1, 2, 3], [4, 5]]),
        ([(30.0, 30.0)] * 2 + [NEAR] * 2 + [FAR] * 2, [[0, 1], [2, 3], [4, 5]]),
    ],
)
def test_states_are_where_nothing_lies_between(
    crossings: list[states.Ends | None], found: list[list[int]]
) -> None:
    assert states.groups(crossings) == found


def test_states_have_names_by_their_place() -> None:
    assert [states.name(0, 1)] == ["only"]
    assert [states.name(place, 2) for place in range(2)] == ["near", "far"]
    assert [states.name(place, 3) for place in range(3)] == ["near", "middle", "far"]
    assert [states.name(place, 4) for place in range(4)] == ["near", "middle-1", "middle-2", "far"]


@pytest.mark.parametrize(
    ("crossing", "name"),
    [
        (NEAR, "near"),
        (FAR, "far"),
        ((50.0, 200.0), "near"),
        ((300.0, 600.0), "far"),
        ((80.0, 410.0), None),  # it changed
        ((40.0, 40.0), None),  # nearer than any
        ((900.0, 900.0), None),  # farther than any
        (None, None),
    ],
)
def test_a_launch_is_of_the_state_it_was_in_before_and_after(
    crossing: states.Ends | None, name: str | None
) -> None:
    found = states.state_of(crossing, TWO)
    assert (found.name if found else None) == name


def test_like_is_compared_with_like() -> None:
    run = run_of(
        *[launch(1.1, NEAR)] * 3,
        *[launch(1.6, FAR)] * 7,
        launch(9.0, (80.0, 410.0)),
        launch(3.0, NEAR, split=0.25),
        launch(3.0, FAR, split=0.75),
    )
    joined = compare(prediction(state="near", states=TWO), run)
    assert (joined.state, joined.launches, joined.elsewhere) == ("far", 7, 1)
    assert (joined.predicted.value, joined.actual.value) == (2.0, 1.6)
    assert joined.error == pytest.approx(0.25)
    assert [(one.state, one.launches) for one in joined.by_state] == [("near", 3), ("far", 7)]
    assert joined.by_state[0].error == pytest.approx(1.0 / 1.1 - 1.0)
    assert joined.notes == [
        "states of the host in 11 launches: 3 near, 7 far, 1 in none of them or in more than one; "
        "compared is far"
    ]
    split = split_table(joined).row(0, named=True)
    assert (split["model_compute_s"], split["real_compute_s"]) == (2.0, 0.75)


def test_launches_apart_from_the_only_state_are_left_out_and_counted() -> None:
    one = [in_state("only", 70, 140, 1.0)]
    joined = compare(prediction(state="only", states=one), run_of(*[launch(1.1, NEAR)] * 7, launch(9.0, FAR)))
    assert joined.notes == [
        "1 launch was in no state that the twin was measured in, or in more than one, and left out; compared "
        "are the other 7"
    ]
    assert compare(prediction(state="only", states=one), run_of(*[launch(1.1, NEAR)] * 7)).notes == []


def test_a_host_that_was_busy_with_something_else_is_said() -> None:
    """By what the ranks had no core for, not by the load: that of another host says nothing here."""

    def notes(*queued_s: float | None) -> list[str]:
        launches = [Launch(seconds=2.0, per_rank_s=[2.0], queued_s=one) for one in queued_s]
        timed = Launch(seconds=2.0, per_rank_s=[2.0], queued_s=2.0, split=launch(2.0, NEAR, split=1.0).split)
        joined = compare(prediction(states=[]), run_of(*launches, *[timed] * 9))
        return [note for note in joined.notes if "core" in note]

    assert notes(*[None] * 7) == notes(*[0.02] * 7) == notes(*[0.02] * 4, *[1.5] * 3) == []
    assert notes(*[1.2] * 4, *[0.0] * 3) == [
        "a rank had no core for 60 % of the actual time: other processes had it, which the prediction knows "
        "nothing of"
    ]


def test_of_states_seen_alike_often_the_predictions_own_is_compared() -> None:
    run = run_of(*[launch(1.0, NEAR)] * 7, *[launch(2.0, FAR)] * 7)
    for own in ("near", "far"):
        assert compare(prediction(state=own, states=TWO), run).state == own


def test_the_choice_of_the_state_does_not_look_at_the_actual_time() -> None:
    for seconds in (1.0, 1e3):
        run = run_of(*[launch(seconds, FAR)] * 7, *[launch(1.0, NEAR)] * 6)
        assert compare(prediction(state="near", states=TWO), run).state == "far"


def test_launches_in_no_state_of_the_twin_are_said_to_be() -> None:
    joined = compare(prediction(state="near", states=TWO), run_of(*[launch(0.8, (1500.0, 2000.0))] * 7))
    assert (joined.state, joined.launches, joined.elsewhere) == (None, 7, 7)
    assert joined.actual.value == 0.8
    assert joined.notes == [
        "no launch was in a state that the twin was measured in: the ranks were from 1500 to 2000 ns apart "
        "(near: 70 to 140 ns, far: 380 to 440 ns); the prediction is compared with all 7 launches"
    ]
    old = compare(prediction(state="near", states=TWO), run_record())
    assert "the ranks were at distances not known" in old.notes[0]


def test_few_launches_and_passes_of_another_state_are_said() -> None:
    frozen = prediction(state="near", states=[TWO[0], in_state("far", 380, 440, 2.0, passes=0)])
    notes = compare(frozen, run_of(launch(2.0, FAR), launch(2.0, FAR))).notes
    assert notes[1:] == [
        "the actual time is the median of 2 launches; 7 would be sure enough",
        "the computation was never measured in state far, only in others",
    ]


def test_a_program_is_run_until_one_state_has_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "program.py"
    script.write_text("pass\n")

    def ran(pattern: list[states.Ends], known: list[InState]) -> tuple[int, int]:
        left = iter(pattern)

        def one(job: Job, _on: Library, *, split: bool, limit_s: float, **_: Any) -> Launch:
            return launch(1.0, next(left), 0.5 if split else None)

        monkeypatch.setattr(live, "launch", one)
        job = Job(script, (), 2, tmp_path / str(len(list(tmp_path.iterdir()))), states=known)
        run_interleaved([job], launches=3)
        return len(job.launches), len(job.splits)

    changing = [NEAR, FAR] * 10
    # Where no twin says which states there are, the launches do.
    assert ran(changing, []) == (5, 1)
    assert ran([NEAR] * 10, []) == (3, 1)
    assert ran(changing, TWO) == (5, 1)
    assert ran([NEAR] * 10, TWO) == (3, 1)
    # The host is somewhere else altogether: twice as many, and no more.
    assert ran([(2000.0, 2000.0)] * 10, TWO) == (6, 1)


def twin_with_states() -> Twin:
    """A twin whose second state has a longer latency than the first."""
    twin = Twin.parse(TWIN)
    layer = twin.layer("mpi4py/mpich")
    found = []
    for name, crossing, longer in (("near", NEAR, 0.0), ("far", FAR, 50.0)):
        values = layer.model_dump(exclude=set(Layer.model_fields) - set(Costs.model_fields) | {"crossing_ns"})
        for segment in values["latency"]:
            segment["base_ns"] = {"value": 700.0 + longer, "low": 600.0, "high": 800.0}
        found.append(State(**values, name=name, crossing_ns=Crossing(low=crossing[0], high=crossing[1])))
    with_states = layer.model_copy(update={"states": tuple(found)})
    return twin.model_copy(update={"layers": twin.layers | {"mpi4py/mpich": with_states}})


def test_a_twin_keeps_its_states() -> None:
    twin = twin_with_states()
    layer = twin.layer("mpi4py/mpich")
    assert [state.name for state in layer.states] == ["near", "far"]
    assert Twin.parse(twin.to_toml()) == twin
    assert layer.in_state(None) is layer
    assert layer_model(layer.in_state("far")) != layer_model(layer)
    with pytest.raises(InputError, match="state 'away' is not in the twin's layer; it has near, far"):
        layer.in_state("away")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("low = 410.0", "low = 90.0", "crossing_ns of 'near' ends at 95 and that of 'far' begins at 90"),
        ('name = "far"', 'name = "near"', "near, near; allowed are names that differ"),
        ("high = 430.0", "high = 300.0", "low = 410, high = 300; allowed is low <= high"),
        ('name = "far"', 'nom = "far"', "nom = 'far'; this key is not known; allowed are"),
    ],
)
def test_states_that_make_no_sense_are_refused(old: str, new: str, said: str) -> None:
    text = twin_with_states().to_toml()
    assert text.count(old) >= 1
    head, tail = text.rsplit(old, 1)
    with pytest.raises(InputError) as caught:
        Twin.parse(head + new + tail)
    assert said in str(caught.value)


SENDS = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
buffer = bytearray(1000)
for _ in range(10):
    if comm.rank == 0:
        comm.Send(buffer, 1)
    else:
        comm.Recv(buffer, 0)
"""


def test_every_state_is_predicted_with_the_passes_made_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "sends.py"
    script.write_text(SENDS)
    forecast = Forecast(script, twin=twin_with_states(), passes=1)
    forecast.record()
    for crossing in (NEAR, NEAR, FAR, (80.0, 410.0)):
        forecast.measure()
        last: Any = forecast.passes[-1]
        scale = 1000 if crossing is FAR else 1
        monkeypatch.setattr(
            forecast,
            "passes",
            [
                *forecast.passes[:-1],
                type(last)([[scale * 10**6] * len(one) for one in last.durations_ps], last.digests, crossing),
            ],
        )
    assert forecast.least_passes() == 1
    frozen = forecast.freeze()
    assert frozen.state == "near"
    assert [(one.name, one.passes) for one in frozen.states] == [("near", 2), ("far", 1)]
    near, far = frozen.states
    assert (frozen.seconds, frozen.network) == (near.seconds, near.network)
    assert near.network != far.network
    assert far.per_rank[0].compute_s == pytest.approx(1000 * near.per_rank[0].compute_s)
