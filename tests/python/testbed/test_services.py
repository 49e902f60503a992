"""Two services beside background load, and many hosts that send to one: simulated and between processes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from beds import need_testbed, wiretwin


def rows(*argv: str) -> list[dict[str, Any]]:
    """Run a verb of the direct transport; the rows of its table."""
    done = wiretwin("direct", *argv, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_simulated_messages_go_by_the_service_that_was_asked_for_and_the_same_each_time() -> None:
    asked = ("services", "--world", "simulated", "--loads", "0.7", "--messages", "500")
    found = rows(*asked)
    assert [row["service"] for row in found] == ["ordinary", "protected", "adaptive"]
    ordinary, protected, adaptive = found
    assert (ordinary["protected_bytes"], protected["ordinary_bytes"]) == (0, 0)
    assert adaptive["ordinary_bytes"] > 0
    assert adaptive["protected_bytes"] > 0
    assert protected["mean_us"] < ordinary["mean_us"]
    assert rows(*asked) == found
    assert rows(*asked, "--seed", "2") != found


def test_processes_on_a_wire_count_what_they_send_by_each_service() -> None:
    need_testbed()
    asked = ("--world", "live", "--loads", "0.5", "--messages", "40", "--by", "ordinary,protected")
    ordinary, protected = rows("services", *asked)
    assert ordinary["protected_bytes"] == protected["ordinary_bytes"] == 0
    assert ordinary["ordinary_bytes"] >= 2 * 40 * 64
    assert protected["protected_bytes"] >= 2 * 40 * 64
    assert (ordinary["protected_share"], protected["protected_share"]) == (0.0, 1.0)


def test_many_hosts_send_to_one_and_all_comes_live_and_simulated() -> None:
    need_testbed()
    found = rows("incast", "--senders", "3", "--messages", "100", "--rate", "100Mbit", "--queue", "64KiB")
    worlds = [(row["world"], row["window"]) for row in found]
    assert worlds == [(world, window) for world in ("live", "simulated") for window in ("fixed", "by delay")]
    # Live, the three say first that they are there, and are told to begin.
    assert [row["sent_frames"] for row in found] == [306, 306, 300, 300]
    assert all(row["lost_frames"] >= 0 and row["taken_s"] > 0 for row in found)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("services", "--world", "moon"), "--world: 'moon' is not allowed here; allowed: live, simulated"),
        (
            ("services", "--by", "abr"),
            "--by: 'abr' is not allowed here; allowed: ordinary, protected, adaptive",
        ),
        (("services", "--size", "8KiB"), "1 to 7KiB: longer ones go another way"),
        (("services", "--loads", "3"), "a share of the rate from 0 to 2"),
        (("services", "--t-low", "3ms", "--world", "simulated"), "less than T_M"),
        (("incast", "--senders", "64"), "--senders: 64 is not allowed here; allowed: 1 to 63"),
    ],
)
def test_what_cannot_be_is_said(argv: tuple[str, ...], words: str) -> None:
    done = wiretwin("direct", *argv)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
