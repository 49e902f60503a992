"""Whatever a probe prints, its launch has an outcome and its samples are a table."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mutate import SETTINGS, changed, edited

from wiretwin.measure.launch import Outcome, _parse
from wiretwin.results import SAMPLE_COLUMNS

SAMPLES = {"event": "samples", "step": 0, "loop": "echo", "bytes": 4, "messages": 1, "delay_ns": 0}
SAMPLES |= {"batch": 8, "first_ns": 3000, "values_ns": [1600, 1610, 1590]}
SAMPLES["lost"] = 0
LINES: list[dict[str, Any]] = [
    {
        "event": "hello",
        "protocol": 1,
        "layer": "shm",
        "effective": {},
        "clock": {"name": "monotonic", "cost_ns": 20.5, "resolution_ns": 1},
        "pid": 7,
    },
    SAMPLES,
    SAMPLES | {"step": 1, "bytes": 8, "first_ns": None, "loop": "prtt", "messages": 4, "delay_ns": 100},
    {"event": "error", "place": "schedule[1]", "reason": "the peer has gone"},
    {"event": "done", "crossing_ns": [81.5, 412.0], "counted": {"sent_again": 3}},
]
OCTETS = b"".join(json.dumps(line).encode() + b"\n" for line in LINES)


def use(octets: bytes) -> Outcome:
    """What a launch makes of a probe's output, as in `wiretwin.measure.launch.launch`."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "stdout-0").write_bytes(octets)
        hello, steps, said, _, crossing_ns, counted = _parse(Path(folder))
    assert hello is None or isinstance(hello, dict)
    assert said is None or isinstance(said, str)
    outcome = Outcome("ok", said, hello, steps, 0.1, crossing_ns, counted)
    assert crossing_ns is None or all(0 < time < 1e9 for time in crossing_ns)
    assert all(type(count) is int and 0 <= count < 1 << 64 for count in counted.values())
    columns = outcome.columns()
    if columns is not None:
        assert set(columns) == set(SAMPLE_COLUMNS) - {"launch", "layer"}
        assert len({len(column) for column in columns.values()}) == 1
    assert outcome.lost >= 0
    for median in outcome.medians("echo").values():
        assert median >= 0
    return outcome


def test_the_seed_is_read_whole() -> None:
    outcome = use(OCTETS)
    assert len(outcome.steps) == 2
    assert outcome.medians("echo") == {4: 200.0}
    assert outcome.crossing_ns == (81.5, 412.0)
    assert outcome.counted == {"sent_again": 3}


@SETTINGS
@given(octets=edited(OCTETS) | st.binary(max_size=200))
def test_any_octets_have_an_outcome(octets: bytes) -> None:
    use(octets)


@SETTINGS
@given(lines=changed(LINES))
def test_any_change_of_a_line_has_an_outcome(lines: Any) -> None:
    use(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def test_deep_nesting_has_an_outcome() -> None:
    use(b"[" * 100_000 + b"\n" + OCTETS)


def test_a_samples_line_that_the_protocol_does_not_allow_is_told() -> None:
    outcome = use(json.dumps(SAMPLES | {"values_ns": [1600, -1]}).encode() + b"\n" + OCTETS)
    assert outcome.error is not None
    assert "does not allow" in outcome.error
    assert len(outcome.steps) == 2
    outcome = use(json.dumps(LINES[0] | {"clock": {"name": "monotonic"}}).encode() + b"\n")
    assert outcome.error is not None
    assert outcome.hello is None


def test_a_step_that_lost_everything_is_passed_over() -> None:
    lost = SAMPLES | {"first_ns": None, "values_ns": [], "lost": 3}
    outcome = use(json.dumps(lost).encode() + b"\n" + OCTETS)
    assert len(outcome.steps) == 2
    assert outcome.error == "schedule[1]: the peer has gone"
