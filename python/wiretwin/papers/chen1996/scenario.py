"""Networks of AN2 switches with hosts and sessions, as scenarios of the simulated fabric."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from wiretwin._core import run_sessions
from wiretwin.errors import InputError
from wiretwin.model.switches import Credits, an2, crossbar, host, line, network, output_queued
from wiretwin.model.values import DATA, Sheet, read_sheet

__all__ = ["Plan", "Rules", "alpha", "an2", "paper", "run_all"]

SECOND_NS = 1_000_000_000

Json = dict[str, Any]


def paper() -> Json:
    """Return the data file of the paper."""
    return tomllib.loads((DATA / "papers" / "chen1996.toml").read_text(encoding="utf-8"))


def alpha() -> Sheet:
    """Return the values of a host with its adapter."""
    return read_sheet(DATA / "stations" / "alpha-170.toml")


@dataclass(frozen=True)
class Rules:
    """What an experiment holds fixed, and a sensitivity varies.

    Attributes
    ----------
    preset, delayed_ack, mss_bytes
        TCP: its rules, whether acknowledgments wait, the segment where it is not that of the MTU.
    tick_ms
        The grain of TCP's slow timer, of which two are the least time-out. The paper does not give it: from
        0.1 ms, which Romanow and Floyd (1995) take for TCP over local ATM networks, to the 500 ms of 4.3BSD;
        the middle of the two as a ratio.
    packet_us
        What a host takes for a packet out or in; the data file's where it is none.
    inside_cells
        Cells that an input of a switch may send in a slot; the data file's where it is none.
    credits
        Of a circuit and line: a number of cells, ``"loop"``, or none for queues that lose.
    one_queue
        Outputs send cells of all circuits in the order in which they came, in place of AN2's turns.
    run_s
        How long six sessions run.
    within_ms
        Streams begin at any time within this.
    warm_up_s
        What passes before the parking lot is counted.
    """

    preset: str = "bsd43_tahoe"
    delayed_ack: bool = False
    mss_bytes: int | None = None
    tick_ms: float = 7.0
    packet_us: float | None = None
    inside_cells: int | None = None
    credits: Credits = "loop"
    one_queue: bool = False
    run_s: float = 10.0
    within_ms: float = 100.0
    warm_up_s: float = 1.0


@dataclass
class Plan:
    """A network while it is put together: switches first, then lines, then sessions."""

    rules: Rules
    nodes: list[Json] = field(default_factory=list)
    lines: list[Json] = field(default_factory=list)
    sessions: list[Json] = field(default_factory=list)

    def switches(self, count: int, length_m: float) -> None:
        """Add a row of switches with lines of this length between them, ``s1``, ``s2``, …."""
        for number in range(1, count + 1):
            if self.rules.one_queue:
                switch = output_queued(f"s{number}", buffer_cells=8192, service="in-order")
            else:
                switch = crossbar(f"s{number}", inside_cells=self.rules.inside_cells)
            self.nodes.append(switch)
            if number > 1:
                self._line(f"s{number - 1}", f"s{number}", length_m)

    def _line(self, first: str, second: str, length_m: float) -> None:
        self.lines.append(line(first, second, length_m, self.rules.credits))

    def hosts(self, name: str, first: int, last: int) -> tuple[str, str]:
        """Add a pair of hosts at two switches; returns their names."""
        ends = (f"{name}-from", f"{name}-to")
        for end, switch in zip(ends, (first, last), strict=True):
            self.nodes.append(host(end, alpha()["sar_ns"]))
            self._line(end, f"s{switch}", an2()["host_line_m"])
        return ends

    def joined(self, name: str) -> tuple[str, str]:
        """Add a pair of hosts with a line between them and no switch; returns their names."""
        ends = (f"{name}-from", f"{name}-to")
        self.nodes += [host(end, alpha()["sar_ns"]) for end in ends]
        self._line(*ends, an2()["host_line_m"])
        return ends

    def ttcp(self, name: str, ends: tuple[str, str], start_ns: int) -> None:
        """Add a stream that begins at this time."""
        self._session(name, "ttcp", ends, start=f"{start_ns} ns")

    def echo(self, name: str, ends: tuple[str, str], size: int) -> None:
        """Add an echo of datagrams of this size, with random pauses of 5 ms on average."""
        self._session(name, "echo", ends, start="0 ns", bytes=f"{size} B", pause="5 ms", timeout="2 s")

    def _session(self, name: str, kind: str, ends: tuple[str, str], **more: str) -> None:
        self.sessions.append({"name": name, "kind": kind, "from": ends[0], "to": ends[1], **more})

    def scenario(self, seed: int, warm_up_s: float, run_s: float) -> str:
        """Return the whole as JSON."""
        sheet, rules = alpha(), self.rules
        packet_us = sheet["packet_us"] if rules.packet_us is None else rules.packet_us
        tcp = {
            "preset": rules.preset,
            "window": f"{int(sheet['window_bytes'])} B",
            "mss": None if rules.mss_bytes is None else f"{rules.mss_bytes} B",
            "delayed_ack": rules.delayed_ack,
            "tick": f"{round(rules.tick_ms * 1e6)} ns",
        }
        return json.dumps(
            {
                "seed": seed,
                "warm_up": f"{round(warm_up_s * SECOND_NS)} ns",
                "run": f"{round(run_s * SECOND_NS)} ns",
                "network": network(self.nodes, self.lines, mtu=f"{int(sheet['mtu_bytes'])} B"),
                "per_segment": f"{round(packet_us * 1000)} ns",
                "tcp": tcp,
                "sessions": self.sessions,
            }
        )


def run_all(scenarios: Sequence[str]) -> tuple[list[Json], str]:
    """Run scenarios, on all cores; returns the reports in their order and a digest of them.

    Raises
    ------
    InputError
        A scenario is rejected.
    """

    def one(scenario: str) -> str:
        try:
            return run_sessions(scenario)
        except ValueError as error:
            raise InputError(reason=str(error)) from None

    with ThreadPoolExecutor() as pool:
        texts = list(pool.map(one, scenarios))
    whole = hashlib.sha256("".join(texts).encode()).hexdigest()[:32]
    return [json.loads(text) for text in texts], whole
