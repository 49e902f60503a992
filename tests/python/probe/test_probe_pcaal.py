"""The reliable adaptation layer between processes: nothing lost, the other class where one is congested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from probes import run_pair, spec, start, step
from test_probe_run import PROGRAMS, run

COUNTS = {
    *("data_ordinary", "data_backup", "retransmitted", "control", "monitoring", "received", "discarded"),
    *("corrupted", "ignored", "switches", "clock_steps"),
}


def outcome(directory: Path, ranks: int, name: str, **options: Any) -> tuple[list[str], list[dict[str, int]]]:
    """What each rank of a program found, and what its layer counted."""
    layer = {"layer": "pcaal/udp", "options": options} if options else {}
    digests, counts = [], []
    for status, lines, err in run(directory, ranks, PROGRAMS[name], **layer):
        assert (status, err) == (0, ""), lines
        assert lines[0]["verified"] is True
        digests.append(lines[0]["digest"])
        if options:
            assert set(lines[1]["counted"]) == COUNTS
            counts.append(lines[1]["counted"])
    return digests, counts


@pytest.mark.parametrize("loss", [0, 5, 20])
def test_a_program_is_right_whatever_is_lost_repeated_and_reordered(tmp_path: Path, loss: int) -> None:
    faults = {
        "fault_loss_percent": loss,
        "fault_repeat_percent": 10,
        "fault_jitter_us": 500,
        "fault_seed": loss,
    }
    digests, counts = outcome(tmp_path / "cells", 3, "ring", **faults)
    assert digests == outcome(tmp_path / "tcp", 3, "ring")[0]
    assert all(count["discarded"] > 0 for count in counts), "what is repeated is not handed up"
    assert loss == 0 or all(count["retransmitted"] > 0 for count in counts)


def test_the_backup_circuit_is_taken_while_the_ordinary_one_is_congested(tmp_path: Path) -> None:
    # The first message that is held longer than T_M turns the mode: until then nothing can go on.
    faults = {"fault_congestion_us": 60_000, "fault_congested_from": 4}
    for count in outcome(tmp_path, 2, "ring", **faults)[1]:
        assert count["switches"] >= 1
        assert count["data_ordinary"] > 0, "until it is congested"
        assert count["data_backup"] > 0


def test_a_measurement_says_the_classes_as_the_kernel_has_them(tmp_path: Path) -> None:
    options = {"dscp_ordinary": 10, "high_ms": 40.0}
    (status, lines, err), other = run_pair(tmp_path, [step()], layer="pcaal/udp", options=options)
    assert (status, err, other) == (0, "", (0, [], "")), lines
    effective = lines[0]["effective"]
    assert effective["dscp"] == [10, 34, 46]
    assert (effective["clocks"], effective["high_ms"], effective["low_ms"]) == ("one", 40.0, 10.0)
    assert set(lines[-1]["counted"]) == COUNTS


@pytest.mark.parametrize(
    ("options", "key", "allowed"),
    [
        ({"high_ms": 10, "low_ms": 10}, "low_ms", "10.0 is not allowed: below high_ms, which is 10"),
        ({"dscp_backup": 64}, "dscp_backup", "64 is not allowed: a whole number from 0 to 63"),
        ({"watch": "network"}, "watch", '"network" is not allowed: each-cell, average'),
        (
            {"fault_loss_percent": 101},
            "fault_loss_percent",
            "101 is not allowed: a whole number from 0 to 100",
        ),
    ],
)
def test_a_wrong_option_is_refused_by_name(
    tmp_path: Path, options: dict[str, Any], key: str, allowed: str
) -> None:
    process = start(tmp_path, spec(tmp_path, 0, [], layer="pcaal/udp", options=options))
    out, _ = process.communicate(timeout=60)
    assert f"options.{key}" in out
    assert allowed in out.replace('\\"', '"')
