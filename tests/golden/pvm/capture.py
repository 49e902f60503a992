"""Capture what PVM puts on a wire: ``python tests/golden/pvm/capture.py``, as root.

A testbed of two hosts, frames of up to 9000 octets so that a datagram of pvmd is one frame; a virtual
machine of our own on them; one round trip of one size in each capture. See README.md.
"""

from __future__ import annotations

import select
import subprocess
import sys
import time
from pathlib import Path

from wiretwin.measure.running import Running, rendezvous
from wiretwin.stacks import STACKS
from wiretwin.stacks.layers import parse_layer
from wiretwin.testbed import Link, Testbed

HERE = Path(__file__).resolve().parent
CASES = [("pvm/pvm3", "normal", (4, 4064, 10000)), ("pvm/pvm3+advise", "advise", (4, 4064, 10000))]
LIMIT_S = 30.0


def settled(file: Path) -> None:
    """Wait until nothing more comes: the same length, with a packet in it, ten looks in a row."""
    deadline, length, same = time.monotonic() + LIMIT_S, 0, 0
    while same < 10:
        assert time.monotonic() < deadline, f"{file} does not settle"
        time.sleep(0.05)
        now = file.stat().st_size
        same = same + 1 if now == length and now > 24 else 0
        length = now


def capture(bed: Testbed, layer: str, route: str, size: int) -> Path:
    """Run one round trip of `size` octets and keep what h1 sees of it."""
    made = HERE / f"{route}-{size}.pcap"
    configuration = parse_layer(layer)
    there = bed.directory / made.name
    with STACKS["pvm/pvm3"].up(bed, configuration.options) as session, rendezvous(bed) as directory:
        words = [
            "tcpdump",
            "-i",
            "eth0",
            "-U",
            "-n",
            "--immediate-mode",
            "-w",
            str(there),
            "not arp and not ip6",
        ]
        dump = subprocess.Popen(bed.hosts[0].command(words), stderr=subprocess.PIPE, text=True)
        assert dump.stderr is not None
        assert select.select([dump.stderr], [], [], LIMIT_S)[0]
        assert "listening on" in dump.stderr.readline()
        running = Running(directory, time.monotonic() + LIMIT_S)
        task = {"program": {"name": "echo", "bytes": size, "rounds": 1}}
        running.start(configuration, task, 2, LIMIT_S, place=bed, session=session)
        status, error = running.wait(None)
        assert status == "ok", error
        settled(there)
        dump.terminate()
        dump.wait(LIMIT_S)
    made.write_bytes(there.read_bytes())
    there.unlink()
    return made


def main() -> int:
    """Make all captures."""
    with Testbed.up(2, Link(mtu=9000)) as bed:
        for layer, route, sizes in CASES:
            for size in sizes:
                made = capture(bed, layer, route, size)
                print(f"{made.name}: {made.stat().st_size} octets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
