"""The measuring loops through a shim against those without one, over the same sockets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from watching import marked_processes

from wiretwin.measure.launch import Outcome, launch
from wiretwin.measure.schedule import Step
from wiretwin.place import Place
from wiretwin.stacks import Command, Refusal, Session, Stack
from wiretwin.stacks.build import build
from wiretwin.stacks.layers import Configuration, LayerKind, parse_layers
from wiretwin.stacks.word import ALL_LOOPS


class ReferenceSession(Session):
    together = False

    def commands(self, probe: Sequence[str], specs: Sequence[Path], ranks: int) -> list[Command]:
        assert len(specs) == ranks
        return [Command([*probe, str(spec)]) for spec in specs]


class Reference(Stack):
    name = "shim/tcp"
    summary = "the reference shim"

    def refusal(self, options: Mapping[str, Any], place: Place) -> Refusal | None:
        return None

    @contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        yield ReferenceSession(place, shim=build("reference_tcp.c", ("cc",)), options=options)


def configuration() -> Configuration:
    stack = Reference()
    kind = LayerKind(stack.name, stack.summary, "stack", stack=stack)
    return Configuration(kind, (), {"nodelay": True})


SIZES = (1, 4096, 1 << 20)
STEPS = [
    Step(loop, size, messages=5 if loop in ("stream", "prtt") else 1, warmup=2, min_samples=4, max_samples=4)
    for loop in sorted(ALL_LOOPS - {"two_write", "call"})
    for size in SIZES
] + [Step("two_write", 512, min_samples=4, max_samples=4), Step("call", 0, min_samples=4, max_samples=4)]


def shape(outcome: Outcome) -> list[tuple[object, ...]]:
    return [
        (step["loop"], step["bytes"], step["messages"], step["delay_ns"], len(step["values_ns"]))
        for step in outcome.steps
    ]


def test_every_loop_runs_through_a_shim_as_it_does_without() -> None:
    through = launch(configuration(), STEPS, limit_s=60.0, pins=None)
    without = launch(parse_layers("socket/tcp")[0], STEPS, limit_s=60.0, pins=None)
    assert (through.status, through.error, without.error) == ("ok", None, None)
    assert shape(through) == shape(without)
    assert through.hello is not None
    assert through.hello["effective"]["nodelay"] is True
    # Within a host a message takes nothing of who computes.
    assert all(np.min(step["values_ns"]) > 0 for step in through.steps if step["loop"] != "interrupt")
    assert marked_processes() == {}


def test_an_option_that_the_shim_does_not_know_is_refused_by_name() -> None:
    wrong = Configuration(configuration().kind, (), {"speed": "high"})
    outcome = launch(wrong, STEPS[:1], limit_s=60.0, pins=None)
    assert outcome.status == "failed"
    assert "option speed=high is not allowed: address, nodelay" in str(outcome.error)
