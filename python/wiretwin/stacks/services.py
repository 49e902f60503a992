"""What two services and the window of the direct transport are worth: live on a wire, and simulated.

The simulated world has the same machine on the same model of the wire, so the two can be laid side by side.
Live ranks are processes on the hosts of a testbed; simulated hosts need no time of their own.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wiretwin import _core, process
from wiretwin.errors import InputError, MeasureError
from wiretwin.testbed.bed import Testbed
from wiretwin.testbed.plan import Link

__all__ = ["SERVICES", "WORLDS", "Exchange", "Found", "live", "simulated"]

SERVICES = ("ordinary", "protected", "adaptive")
"""By which service messages go: one alone, or the ordinary one while its latency is low."""
WORLDS = ("live", "simulated")
PROTECTED = 46
"""The class (DSCP) of the protected service; the ordinary one has 0."""
_GRACE_S = 20.0


@dataclass(frozen=True)
class Exchange:
    """Messages to be exchanged.

    Attributes
    ----------
    task
        ``echo``: the first host sends to the second, which sends each back; ``incast``: all others send to
        the first at once.
    bytes, count
        How long messages are, and how many each sender sends.
    pause_ns
        Of an echo: from an answer to the next message.
    service
        One of `SERVICES`.
    t_high_ns, t_low_ns, interval_ns, t_lost_ns
        Of the adaptive service, T_M, T_m, the time from one measurement to the next, and T_L: a round trip by
        the ordinary service above T_M, or not over after T_L, moves messages to the protected one, and one
        below T_m moves them back.
    fixed_window
        Whether the window stays as it is at first, whatever the delay.
    """

    task: str
    bytes: int
    count: int
    pause_ns: int = 0
    service: str = "ordinary"
    t_high_ns: int = 1_000_000
    t_low_ns: int = 600_000
    interval_ns: int = 1_000_000
    t_lost_ns: int = 50_000_000
    fixed_window: bool = False


@dataclass(frozen=True)
class Found:
    """What became of it.

    Attributes
    ----------
    took_ns
        Of an echo each message there and back; of an incast the whole.
    counted
        What all ends have counted together, by name.
    lost
        Frames that found no room in a queue of the wire.
    """

    took_ns: Sequence[int]
    counted: dict[str, int]
    lost: int

    @property
    def mean_us(self) -> float:
        """The mean time."""
        return statistics.fmean(self.took_ns) / 1e3

    @property
    def p99_us(self) -> float:
        """The time that one of a hundred exceeds."""
        return sorted(self.took_ns)[len(self.took_ns) * 99 // 100] / 1e3

    @property
    def protected_share(self) -> float:
        """The share of frames with messages that went by the protected service."""
        counted = self.counted
        return counted["frames_protected"] / max(1, counted["frames_protected"] + counted["frames_ordinary"])


def simulated(exchange: Exchange, link: Link, hosts: int = 2) -> Found:
    """Exchange messages in the simulated world.

    Raises
    ------
    InputError
        Thresholds that cannot be.
    """
    try:
        found = _core.direct_simulated(asdict(exchange), hosts, json.dumps(link.wire()))
    except ValueError as error:
        raise InputError(key="direct", reason=str(error)) from None
    return _found([found], found.pop("lost"))


def live(
    exchange: Exchange, link: Link, hosts: int = 2, *, way: str = "packet", limit_s: float = 120.0
) -> Found:
    """Exchange messages between processes on the hosts of a testbed, which is made for it.

    Raises
    ------
    MeasureError
        The testbed cannot be made, or a rank failed.
    """
    with contextlib.ExitStack() as stack:
        bed = stack.enter_context(Testbed.up(hosts, link))
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=bed.directory)))
        ranks = []
        for rank, host in enumerate(bed.hosts):
            order = {
                "asked": asdict(exchange),
                "directory": str(directory),
                "seat": [rank, hosts],
                "address": host.address,
                "way": way,
                "limit_s": limit_s,
            }
            argv = host.command([sys.executable, "-P", "-m", __name__, json.dumps(order)])
            one = process.start(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            stack.callback(process.end_tree, one)
            ranks.append(one)
        found = []
        for host, one in zip(bed.hosts, ranks, strict=True):
            try:
                said, trouble = one.communicate(timeout=limit_s + _GRACE_S)
            except subprocess.TimeoutExpired:
                raise MeasureError(f"the rank on {host.name} did not end") from None
            if one.returncode:
                raise MeasureError(f"the rank on {host.name}: {trouble.decode('utf-8', 'replace').strip()}")
            found.append(json.loads(said))
        counters = bed.wire_counters()
    lost = sum(queue["drops"] for queues in counters.values() for queue in queues)
    return _found(found, lost)


def _found(ends: Sequence[dict[str, Any]], lost: int) -> Found:
    names = [name for name in ends[0] if name != "took_ns"]
    counted = {name: sum(end[name] for end in ends) for name in names}
    return Found(ends[0]["took_ns"], counted, lost)


def _main(order: str) -> int:
    """Be a rank."""
    asked = json.loads(order)
    try:
        found = _core.direct_exchange(
            asked["asked"],
            directory=asked["directory"],
            seat=tuple(asked["seat"]),
            address=asked["address"],
            way=asked["way"],
            limit_s=asked["limit_s"],
        )
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1]))
