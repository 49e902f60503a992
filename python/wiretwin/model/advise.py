"""The best settings of a stack between two hosts, by search over the simulator, and how sure that is.

Searched are the settings that the stack has: the MTU, the socket buffers, the length from which messages go
by rendezvous, the longest message of a descriptor. One setting at a time is moved to its best value, the
others as they are, until none gets better. What counts is the geometric mean of the times of messages of the
sizes given.

The constants of the model are known with intervals only. So the best settings and those on file are compared
again under constants drawn from their intervals: how often the best is the better one, and by how much, is
how sure the advice is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wiretwin.model.gigabit import Constant, Setting, asked_by, paper, sheets
from wiretwin.model.netpipe import netpipe

__all__ = ["Advice", "Choice", "advise"]

KIB = 1024
BUFFERS_KIB = (4, 8, 16, 32, 64, 128)
SWITCH_OVERS = tuple(KIB << power for power in range(2, 11, 2))
TRANSFERS_KIB = (32, 128, 512)
LOG_90 = 1.645
MOST_SPREAD = math.log(2)
"""Constants that the figures do not determine are drawn within a factor of two."""


@dataclass(frozen=True)
class Choice:
    """A setting that was searched.

    Attributes
    ----------
    name, before, best
        Its name with its unit, its value on file, the best one.
    slower_percent
        How much slower messages are with the value on file and all else at its best.
    """

    name: str
    before: int
    best: int
    slower_percent: float


@dataclass(frozen=True)
class Advice:
    """What to set.

    Attributes
    ----------
    setting
        The stack with the best values.
    choices
        Each setting.
    faster, low, high
        How many times faster messages are than with the values on file, and the ends of its 90 % interval.
    sure
        The share of draws under which the best settings are the better ones, by any amount.
    draws, tried
        How many draws, and how many settings were simulated.
    """

    setting: Setting
    choices: tuple[Choice, ...]
    faster: float
    low: float
    high: float
    sure: float
    draws: int
    tried: int


def _values(one: Setting) -> dict[str, tuple[str, int, Sequence[int]]]:
    """Return what can be set: by field, its name, its value on file, and the values to try."""
    found: dict[str, tuple[str, int, Sequence[int]]] = {
        "mtu": ("mtu_bytes", one.mtu, paper()["mtu_bytes"][one.nic])
    }
    asked = asked_by(one.library)
    if one.library is None:
        found["buffer_kib"] = ("buffer_kib", one.buffer_kib, BUFFERS_KIB)
    elif asked:
        found["asked_kib"] = ("buffer_kib", asked["buffer_bytes"] // KIB, BUFFERS_KIB)
        found["switch_over"] = ("switch_over_bytes", asked["rendezvous_from_bytes"], SWITCH_OVERS)
    if one.is_over_vis:
        found["transfer_kib"] = ("transfer_kib", 32, TRANSFERS_KIB)
    if one.library == "mpi-mvich":
        sheet = sheets()["m-via"]
        most = (round(sheet["buffers"]) - 14) * (round(sheet["buffer_bytes"]) - 48)
        known = round(sheet["rendezvous_from_bytes"])
        # An eager message must find buffers.
        tried = [size for size in (1, KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB) if size <= most]
        found["switch_over"] = ("switch_over_bytes", known, tried)
    return found


def _with(one: Setting, values: Mapping[str, int]) -> Setting:
    changes: dict[str, Any] = dict(values)
    return replace(one, **changes)


def _cost(one: Setting, sizes: Sequence[int]) -> float:
    """Return the logarithm of the geometric mean of the times of messages of these sizes."""
    return float(np.mean(np.log(netpipe(one, sizes).time_us)))


def advise(
    one: Setting,
    sizes: Sequence[int],
    *,
    draws: int = 20,
    seed: int = 1,
    tell: Callable[[int], None] | None = None,
) -> Advice:
    """Search for the best settings of a stack for messages of these sizes.

    Parameters
    ----------
    one
        The stack with its values on file.
    sizes
        Lengths of messages in bytes, each as important as any other.
    draws
        How often the constants are drawn from their intervals.
    tell
        Is told of each setting that was simulated.

    Raises
    ------
    InputError
        The stack does not carry messages of such a size.
    """
    values = _values(one)
    begin = _with(one, {field: before for field, (_, before, _) in values.items()})
    seen: dict[str, float] = {}

    def cost(setting: Setting) -> float:
        # Its case names every setting.
        if setting.case not in seen:
            seen[setting.case] = _cost(setting, sizes)
            if tell is not None:
                tell(len(seen))
        return seen[setting.case]

    best, moved = begin, True
    while moved:
        moved = False
        for field, (_, before, tried) in values.items():
            options = [_with(best, {field: value}) for value in sorted({*tried, before})]
            found = min(options, key=cost)
            if cost(found) < cost(best) - 1e-6:
                best, moved = found, True
    choices = tuple(
        Choice(
            name,
            before,
            getattr(best, field),
            100 * math.expm1(cost(_with(best, {field: before})) - cost(best)),
        )
        for field, (name, before, _) in values.items()
    )
    gains = _gains(begin, best, sizes, draws, seed)
    low, high = np.quantile(gains, (0.05, 0.95))
    faster = math.exp(cost(begin) - cost(best))
    sure = float(np.mean(np.array(gains) > 1)) if best != begin else 1.0
    return Advice(best, choices, faster, float(low), float(high), sure, draws, len(seen))


def _gains(begin: Setting, best: Setting, sizes: Sequence[int], draws: int, seed: int) -> list[float]:
    """Return how many times faster the best settings are, under constants drawn from their intervals."""
    if best == begin:
        return [1.0]
    random = np.random.default_rng(seed)
    gains = []
    for _ in range(draws):
        drawn = _drawn(random, begin.nic)
        gains.append(math.exp(_cost(begin.under(drawn), sizes) - _cost(best.under(drawn), sizes)))
    return gains


def _drawn(random: np.random.Generator, nic: str) -> Mapping[Constant, float]:
    """Return fitted constants, each drawn by itself from its interval."""
    drawn: dict[Constant, float] = {}
    for name in ("p3-450", nic, "m-via"):
        for key, value in sheets()[name].values.items():
            if value.by == "fit" and value.low is not None and value.high is not None:
                spread = min(math.log(value.high / value.low) / (2 * LOG_90), MOST_SPREAD)
                drawn[name, key] = value.value * math.exp(spread * float(random.standard_normal()))
    return drawn
