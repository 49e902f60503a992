"""Classes on the wire: a queue each, background load on one, and what came through, as a command shows it."""

from __future__ import annotations

import json
import sys
import time

from beds import LIMIT_S, need_testbed, on, wiretwin

from wiretwin.testbed import Testbed, parse_link

SEND = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
    for dscp, count in ((46, 20), (0, 10), (8, 5)):
        out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        for _ in range(count):
            out.sendto(bytes(1000), (sys.argv[1], 9))
"""


def counted(name: str) -> list[dict[str, int]]:
    """What came to the second host, queue by queue."""
    found = json.loads(wiretwin("testbed", "counters", "--name", name, "--format", "json").stdout)
    return [row for row in found if row["host"] == "h2"]


def test_a_class_has_a_queue_of_its_own_and_background_load_stays_in_that_of_its_class() -> None:
    need_testbed()
    outputs = {"strict_priority": "46,34", "background": "0=0.5", "burst": "1ms"}
    with Testbed.up(2, parse_link("wire", rate="10Mbit", outputs=outputs), name="classes") as bed:
        done = on(bed, "h1", sys.executable, "-c", SEND, bed.host("h2").address)
        assert (done.returncode, done.stderr) == (0, "")
        deadline = time.monotonic() + LIMIT_S
        rows = counted("classes")
        while sum(row["sent_frames"] for row in rows) < 35:
            assert time.monotonic() < deadline, rows
            rows = counted("classes")
        assert [row["queue"] for row in rows] == ["46", "34", "others"]
        assert [row["sent_frames"] for row in rows[:2]] == [20, 0]
        assert [row["sent_bytes"] for row in rows[:2]] == [20 * 1042, 0]
        # Kernels have something to say, too.
        assert rows[2]["sent_bytes"] >= 15 * 1042
        assert [row["dropped_frames"] for row in rows] == [0, 0, 0]
        while (rows := counted("classes"))[2]["background_frames"] < 10:
            assert time.monotonic() < deadline, rows
        assert [row["background_frames"] for row in rows[:2]] == [0, 0]


def test_counters_of_a_link_that_is_no_wire_are_refused_and_a_wire_without_classes_has_one_queue() -> None:
    need_testbed()
    with Testbed.up(2, name="cables"):
        refused = wiretwin("testbed", "counters", "--name", "cables")
        assert refused.returncode == 3
        assert "has no wire: only --link wire counts by queue" in refused.stderr
    with Testbed.up(2, parse_link("wire", rate="10Mbit"), name="cables"):
        (row,) = counted("cables")
        assert (row["queue"], row["background_frames"]) == ("all", 0)
