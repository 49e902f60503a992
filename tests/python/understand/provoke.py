"""Anomalies provoked on purpose, clean runs beside them: how each is measured, small enough for a test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import wiretwin as wt
from wiretwin.errors import MeasureError
from wiretwin.place import HERE
from wiretwin.results import Result
from wiretwin.stacks.layers import parse_layers, refusal
from wiretwin.testbed import Testbed
from wiretwin.testbed.plan import parse_link


@dataclass(frozen=True)
class Case:
    """One configuration at the sizes that show one thing."""

    name: str
    layers: str
    sizes: str
    finding: str | None
    """The name of what a detector must find here; nothing for a clean run."""
    link: Mapping[str, Any] | None = None
    """Of a testbed of two hosts; none for this host."""
    pin: Any = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)

    confidence: str = "likely"
    """Of the finding before its counter-run."""
    noisy: bool = False
    """Whether it shows in times that a busy host can hide; the others differ by a factor of ten, or are
    counted."""

    @property
    def wire(self) -> bool:
        return self.link is not None and self.link.get("kind") == "wire"


WIRE = {"kind": "wire", "rate": "10Mbit", "delay": "50us"}

CASES = {
    case.name: case
    for case in (
        Case("nagle", "socket/tcp+nagle", "64,256,1024,4096", "delayed-acknowledgement"),
        Case("shared-core", "shm", "4,16,64,256,1024,4096", "shared-core", pin=(0, 0)),
        Case(
            "rendezvous",
            "mpi/mpich+eager16k+tcp",
            "2KiB,4KiB,8KiB,12KiB,15KiB,17KiB,20KiB,24KiB,32KiB,48KiB",
            "protocol-switch",
            noisy=True,
        ),
        Case("mtu", "socket/udp", "1000..1900+100", "packet-boundary", link=WIRE, noisy=True),
        Case("loss", "socket/tcp", "1000,4000,16000", "retransmission", link={**WIRE, "loss": "5%"}),
        Case("daemons", "pvm/pvm3", "4,4000", "retransmission", link=WIRE, confidence="possible"),
        Case(
            "buffers",
            "socket/tcp+buf4k",
            "1KiB,2KiB,4KiB,8KiB,16KiB,32KiB,64KiB,128KiB,256KiB",
            "socket-buffer",
            noisy=True,
        ),
        Case("clean-tcp", "socket/tcp", "4,64,256,1KiB..256KiB", None),
        Case("clean-shm", "shm", "4,64,256,1KiB..64KiB", None),
        Case("clean-wire", "socket/tcp", "64,256,512,768,1024,1280,1400", None, link=WIRE),
        # Half round trips of 40 to 52 ms that are nothing but bytes at 10 Mbit/s.
        Case("clean-slow", "mpi/lam", "1KiB,4KiB,16KiB,24KiB,50000,64KiB", None, link=WIRE),
        Case("clean-delay", "socket/udp", "4,64,256,512,1024,1400", None, link={**WIRE, "delay": "4ms"}),
    )
}


@contextlib.contextmanager
def place_of(case: Case) -> Any:
    if case.link is None:
        yield HERE
        return
    link = dict(case.link)
    with Testbed.up(2, parse_link(link.pop("kind"), rules={"loss": link.pop("loss", None)}, **link)) as bed:
        yield bed


def provoke(case: Case, out: Path) -> Result:
    """Measure a case."""
    with place_of(case) as place:
        return wt.measure(
            case.layers,
            sizes=case.sizes,
            purpose="curves",
            budget=None,
            launches=3,
            precision="20%",
            pin=case.pin,
            place=place,
            out=out,
            **case.options,
        )


def need(case: Case) -> None:
    """Skip by name what this machine lacks; CI must have it."""
    reason = None
    (configuration,) = parse_layers(case.layers)
    refused = refusal(configuration, HERE)
    if refused is not None:
        reason = str(refused)
    elif case.pin == "auto" and len(os.sched_getaffinity(0)) < 2:
        reason = "one core"
    elif case.link is not None:
        if case.wire and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            reason = "no /dev/net/tun"
        else:
            try:
                with place_of(case):
                    pass
            except MeasureError as error:
                reason = str(error)
    if reason is not None:
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)
