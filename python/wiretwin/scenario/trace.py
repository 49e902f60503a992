"""Traces: what one rank of a program sends and when, recorded once and played as a source."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from wiretwin.errors import InputError
from wiretwin.given import MOST_BYTES, read_text

__all__ = ["FORMAT", "SETTINGS", "Setting", "Trace", "record"]

FORMAT: Final = "wiretwin-trace"
VERSION: Final = 1
_MOST_MESSAGES: Final = 1_000_000
_KEYS: Final = ("format", "version", "name", "octets", "period_ns", "at_ns", "values")


@dataclass(frozen=True)
class Trace:
    """The messages of one rank.

    Attributes
    ----------
    name
        What it is of.
    at_ns
        When each is sent, rising, from the beginning of the program.
    values
        How many values each has, 1 or more.
    octets
        Of a value: 1, 2, 4, 8 or 16.
    period_ns
        What the program took: after that the trace begins again.
    """

    name: str
    at_ns: tuple[int, ...]
    values: tuple[int, ...]
    octets: int
    period_ns: int

    def paced(self, pace: float) -> dict[str, Any]:
        """Return what the simulated task reads, every time stretched by `pace`."""
        return {
            "period_ns": max(1, round(self.period_ns * pace)),
            "at_ns": [round(at * pace) for at in self.at_ns],
            "values": list(self.values),
            "octets": self.octets,
        }

    def values_of_cell(self, stamps: bool) -> int:
        """Return how many of its values fill a data cell of the adaptation layer, which holds whole ones."""
        return (23 if stamps else 27) // self.octets

    def cells(self, stamps: bool) -> int:
        """Return the data cells of one round of it."""
        most = self.values_of_cell(stamps)
        return sum(-(-values // most) for values in self.values)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON."""
        from wiretwin.results import write_atomically

        document = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "octets": self.octets,
            "period_ns": self.period_ns,
            "at_ns": list(self.at_ns),
            "values": list(self.values),
        }
        write_atomically(Path(path), (json.dumps(document) + "\n").encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Trace:
        """Read what `write` has written.

        Raises
        ------
        InputError
            It cannot be read, or what is wrong in it.
        """
        source = Path(path)
        try:
            found = json.loads(read_text(source, most=16 * MOST_BYTES, keys=_KEYS))
        except ValueError as error:
            raise InputError(source, reason=f"is not JSON: {error}") from error
        if not isinstance(found, dict) or found.get("format") != FORMAT or found.get("version") != VERSION:
            raise InputError(source, "format", allowed=f"{FORMAT}, version {VERSION}", reason="is another")
        numbers = (found.get("at_ns"), found.get("values"))
        for key, value, least in zip(("at_ns", "values"), numbers, (0, 1), strict=True):
            whole = isinstance(value, list) and all(type(one) is int and one >= least for one in value)
            if not whole or not value or len(value) > _MOST_MESSAGES:
                allowed = f"a list of 1 to {_MOST_MESSAGES} whole numbers, each {least} or more"
                raise InputError(source, key, reason="is not one of messages", allowed=allowed)
        at, values = found["at_ns"], found["values"]
        if len(at) != len(values):
            raise InputError(source, "values", len(values), f"{len(at)} of them, as of at_ns")
        if any(later < earlier for earlier, later in pairwise(at)):
            raise InputError(source, "at_ns", reason="does not rise", allowed="times in order")
        period = found.get("period_ns")
        if type(period) is not int or period < max(1, at[-1]):
            raise InputError(source, "period_ns", period, f"{max(1, at[-1])} or more: the last message")
        if found.get("octets") not in (1, 2, 4, 8, 16):
            raise InputError(source, "octets", found.get("octets"), "1, 2, 4, 8 or 16")
        return cls(str(found.get("name", "")), tuple(at), tuple(values), found["octets"], period)


@dataclass(frozen=True)
class Setting:
    """How a shipped program is run to be recorded."""

    parameters: Mapping[str, int]
    costs_ps: Mapping[str, int]
    ranks: int
    rank: int


SETTINGS: Final = {
    "pde1": Setting({"n": 45, "accuracy": 4, "down": 4, "across": 1}, {"relax-point": 1_000_000}, 4, 0),
    "pde2": Setting(
        {"n": 63, "accuracy": 8, "down": 4, "across": 1},
        {"smooth-point": 1_000_000, "transfer-point": 1_000_000},
        4,
        0,
    ),
}
"""Of each program the end slab of four, which has one neighbour: half a face of 8 KB at a time, or a line or
half a line of 24 to 264 bytes. A point takes a microsecond."""

_LATENCY_PS: Final = 100_000_000
_BYTE_FS: Final = 51_600_000
"""Of the network it is recorded on: 100 us, 155 Mbit/s."""


@functools.cache
def record(program: str) -> Trace:
    """Run a shipped program in a simulated world and record one of its ranks.

    Raises
    ------
    InputError
        There is no setting for a program of this name.
    """
    from wiretwin import _core

    if program not in SETTINGS:
        raise InputError(key="task.program", value=program, allowed=", ".join(SETTINGS))
    setting = SETTINGS[program]
    ranks = setting.ranks

    def flat(base_ps: int, byte_fs: int = 0) -> list[dict[str, int]]:
        return [{"from_bytes": 0, "base_ps": base_ps, "per_byte_fs": byte_fs}]

    model = {
        "nodes": [{"cores": ranks, "idle": "sleep", "quantum_ps": 4_000_000}],
        "placement": [0] * ranks,
        "intra": {
            "call_ps": 1000,
            "overhead_send": flat(1000),
            "overhead_recv": flat(1000),
            "latency": flat(_LATENCY_PS, _BYTE_FS),
            "gap": flat(0),
            "rendezvous_from_bytes": 1 << 30,
        },
    }
    parameters = {**setting.parameters, "costs_ps": dict(setting.costs_ps)}
    run = _core.run_program(program, json.dumps(parameters), json.dumps(model), ranks, 1, traced=setting.rank)
    octets = 8  # both programs send doubles, and nothing else of other lengths
    sent = [
        (int(at) // 1000, int(size) // octets)
        for at, size in zip(run["sent_ps"], run["sent_bytes"], strict=True)
        if size >= octets
    ]
    # What follows the last boundary is the result on its way to rank 0: no message of the iteration.
    period = max(int(run["outcomes"][setting.rank]["elapsed_ps"]) // 1000, 1)
    kept = [(at, values) for at, values in sent if at < period]
    return Trace(program, tuple(at for at, _ in kept), tuple(v for _, v in kept), octets, period)
