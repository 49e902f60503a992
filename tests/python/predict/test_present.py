"""The state that a host is in now is told by how far apart two of its cores are."""

import os

import pytest
from predict_help import TWIN

from wiretwin.predict import present
from wiretwin.twin import Crossing, Layer, State, Twin

LAYER = Twin.parse(TWIN).layer("mpi4py/mpich")


def layer(*crossings: tuple[str, float, float]) -> Layer:
    own = {key: getattr(LAYER, key) for key in State.model_fields if key not in ("name", "crossing_ns")}
    found = tuple(
        State(**own, name=name, crossing_ns=Crossing(low=low, high=high)) for name, low, high in crossings
    )
    return LAYER.model_copy(update={"states": found})


def test_how_far_two_cores_are_apart_is_told() -> None:
    cores = os.sched_getaffinity(0)
    found = present.crossing_now_ns()
    assert (found is not None and 1.0 < found < 1e6) if len(cores) > 1 else found is None
    assert os.sched_getaffinity(0) == cores


def test_with_one_core_there_is_no_distance() -> None:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        assert present.crossing_now_ns() is None
    finally:
        os.sched_setaffinity(0, cores)


@pytest.mark.parametrize(("now", "name"), [(75.0, "near"), (280.0, "far"), (2000.0, "near"), (None, "near")])
def test_the_state_is_the_one_at_that_distance_or_the_first(
    monkeypatch: pytest.MonkeyPatch, now: float | None, name: str
) -> None:
    monkeypatch.setattr(present, "crossing_now_ns", lambda: now)
    found = present.state_now(layer(("near", 60.0, 80.0), ("far", 250.0, 300.0)))
    assert found is not None
    assert found.name == name


def test_a_layer_without_states_has_none() -> None:
    assert present.state_now(layer()) is None
