"""The specification of the mpi4py probe: whatever is wrong in it is refused by key, value and range."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiretwin.measure.probe_mpi4py import LAYERS, LOOPS
from wiretwin.measure.probe_spec import read as read_spec
from wiretwin.measure.schedule import netpipe, steps


def read(path: str) -> dict[str, Any]:
    return read_spec(path, LAYERS, tuple(LOOPS))


def good() -> dict[str, Any]:
    return {
        "protocol": 1,
        "layer": "mpi4py/mpich",
        "rank": None,
        "size": None,
        "options": {},
        "directory": "/nowhere",
        "pin_cpu": None,
        "limit_s": 20.0,
        "interface": None,
        "schedule": [{"loop": "echo", "bytes": 4}],
    }


def write(path: Path, spec: object) -> str:
    path.write_text(json.dumps(spec))
    return str(path)


def test_defaults_are_those_of_the_protocol(tmp_path: Path) -> None:
    (step,) = read(write(tmp_path / "s", good()))["schedule"]
    assert step == {
        "loop": "echo", "bytes": 4, "messages": 1, "delay_ns": 0, "warmup": 16, "min_samples": 20,
        "max_samples": 2000, "budget_ms": 20.0, "batch": 0,
    }  # fmt: skip


def test_every_schedule_that_wiretwin_makes_is_accepted(tmp_path: Path) -> None:
    schedule = steps(netpipe(), "fit", seconds=1, delays_ns=dict.fromkeys(netpipe(), 900), loops=LOOPS)
    spec = good() | {"schedule": [step.spec() for step in schedule]}
    assert len(read(write(tmp_path / "s", spec))["schedule"]) == len(schedule)
    assert {step.loop for step in schedule} == set(LOOPS)


def step(**changes: object) -> Callable[[dict[str, Any]], object]:
    return lambda spec: spec["schedule"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda spec: spec.update(protocol=2), "protocol: 2 is not allowed: 1"),
        (lambda spec: spec.pop("protocol"), "protocol: null is not allowed: 1"),
        (lambda spec: spec.update(layer="shm"), 'layer: "shm" is not allowed: mpi4py/mpich, mpi4py/openmpi'),
        (lambda spec: spec.update(rank=0), "rank: 0 is not allowed: null"),
        (lambda spec: spec.update(size=2), "size: 2 is not allowed: null"),
        (lambda spec: spec.update(sise=2), "sise: 2 is not allowed: protocol, layer"),
        (lambda spec: spec.update(options={"spin": 1}), "options.spin: 1 is not allowed: no option here"),
        (lambda spec: spec.update(limit_s=0), "limit_s: 0 is not allowed: a number above 0, to 86400"),
        (lambda spec: spec.update(interface=0), "interface: 0 is not allowed: the name of an interface, or"),
        (lambda spec: spec.update(limit_s="5s"), 'limit_s: "5s" is not allowed'),
        (lambda spec: spec.pop("limit_s"), "limit_s: null is not allowed"),
        (lambda spec: spec.update(pin_cpu=0), "pin_cpu: 0 is not allowed: null, or two cores of"),
        (lambda spec: spec.update(pin_cpu=[0, 4096]), "pin_cpu: [0, 4096] is not allowed"),
        (lambda spec: spec.update(schedule={}), "schedule: {} is not allowed: a list of steps"),
        (lambda spec: spec.update(schedule=[4]), "schedule[0]: 4 is not allowed: a JSON object"),
        (step(loop="dance"), 'schedule[0].loop: "dance" is not allowed: echo, two_write, stream'),
        (step(bytes=-1), "schedule[0].bytes: -1 is not allowed: a whole number from 0 to 1.07374e+09"),
        (step(bytes=4.5), "schedule[0].bytes: 4.5 is not allowed"),
        (step(bytes=True), "schedule[0].bytes: true is not allowed"),
        (step(bytes=None), "schedule[0].bytes: null is not allowed"),
        (step(messages=0), "schedule[0].messages: 0 is not allowed: a whole number from 1"),
        (step(budget_ms=0), "schedule[0].budget_ms: 0 is not allowed: a number above 0"),
        (step(loop="two_write", bytes=1), "schedule[0].bytes: 1 is not allowed: at least 2 for two writes"),
        (
            step(min_samples=5, max_samples=4),
            "schedule[0].max_samples: 4 is not allowed: at least min_samples, 5",
        ),
        (step(sampels=5), "schedule[0].sampels: 5 is not allowed: loop, bytes"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    spec = good()
    change(spec)
    with pytest.raises(ValueError, match="is not allowed: ") as caught:
        read(write(tmp_path / "s", spec))
    assert str(caught.value).startswith(words)


def test_pins_are_cores_of_this_process(tmp_path: Path) -> None:
    core = min(os.sched_getaffinity(0))
    assert read(write(tmp_path / "s", good() | {"pin_cpu": [core, core]}))["pin_cpu"] == [core, core]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(key=st.sampled_from([*good()]), value=VALUES)
def test_any_value_is_accepted_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object
) -> None:
    path = tmp_path_factory.mktemp("any") / "s"
    file = write(path, good() | {key: value})
    refused = None
    try:
        assert set(read(file)) == {*good(), "together"}
    except ValueError as error:
        refused = str(error)
    assert refused is None or refused.startswith(key)


@given(text=st.text(max_size=40))
def test_any_text_is_accepted_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("text") / "s"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"is not allowed: a JSON object|line \d+ column \d+"):
        read(str(path))
