"""The best settings of a stack between two hosts, by search over the simulator, and how sure that is.

Searched are the settings that the stack has: the MTU, the socket buffers, the length from which messages go
by rendezvous, the longest message of a descriptor. One setting at a time is moved to its best value, the
others as they are, until none gets better; then two at a time, as large packets need large buffers. What
counts is the geometric mean of the times of messages of the sizes given.

On networks whose hosts have sockets of the mid-1990s the settings are the socket buffers and `TCP_NODELAY`.

The constants of the model are known with intervals only. So the best settings and those on file are compared
again under constants drawn from their intervals: how often the best is the better one, and by how much, is
how sure the advice is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wiretwin._core import check_lan
from wiretwin.errors import InputError
from wiretwin.model.echo import echo
from wiretwin.model.gigabit import Constant, Setting, asked_by, paper, sheets
from wiretwin.model.netpipe import netpipe
from wiretwin.model.profiles import CIRCUITS, Network
from wiretwin.model.values import Sheet, find_sheet

__all__ = ["Advice", "Choice", "advise"]


KIB = 1024
BUFFERS_KIB = (4, 8, 16, 32, 64, 128)
ROUNDS = 6
"""Of an echo; the first is left out."""
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

    setting: Setting | Network
    choices: tuple[Choice, ...]
    faster: float
    low: float
    high: float
    sure: float
    draws: int
    tried: int


def _values(one: Setting | Network) -> dict[str, tuple[str, int, Sequence[int]]]:
    """Return what can be set: by field, its name, its value on file, and the values to try."""
    if isinstance(one, Network):
        if one.stack.split("/")[0] in CIRCUITS or one.stack.startswith("pvm-mapped"):
            raise InputError(
                key="--stack", value=one.stack, allowed="one with sockets: others have no settings"
            )
        return {
            "buffer_kib": ("buffer_kib", one.buffer_kib, [size for size in BUFFERS_KIB if _has(one, size)]),
            "nodelay": ("nodelay", int(one.nodelay), (0, 1)),
        }
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


def _has(one: Network, buffer_kib: int) -> bool:
    """Return whether sockets of these hosts have such buffers."""
    try:
        check_lan(replace(one, buffer_kib=buffer_kib).lan_json())
    except ValueError:
        return False
    return True


def _with(one: Setting | Network, values: Mapping[str, int]) -> Setting | Network:
    changes: dict[str, Any] = dict(values)
    if "nodelay" in changes:
        changes["nodelay"] = bool(changes["nodelay"])
    return replace(one, **changes)


def _cost(one: Setting | Network, sizes: Sequence[int]) -> float:
    """Return the logarithm of the geometric mean of the times of messages of these sizes."""
    if isinstance(one, Network):
        return float(np.mean([np.log(times.mean() / 2) for times in echo(one, sizes, ROUNDS)]))
    return float(np.mean(np.log(netpipe(one, sizes).time_us)))


def advise(
    one: Setting | Network,
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

    def cost(setting: Setting | Network) -> float:
        key = repr(setting)
        if key not in seen:
            seen[key] = _cost(setting, sizes)
            if tell is not None:
                tell(len(seen))
        return seen[key]

    options = {field: sorted({*tried, before}) for field, (_, before, tried) in values.items()}
    alone = [(field,) for field in options]
    best, moved = begin, True
    while moved:
        moved = False
        for fields in (*alone, *itertools.combinations(options, 2)):
            if moved and len(fields) > 1:
                break
            ways = itertools.product(*(options[field] for field in fields))
            found = min((_with(best, dict(zip(fields, way, strict=True))) for way in ways), key=cost)
            if cost(found) < cost(best) - 1e-6:
                best, moved = found, True
    choices = tuple(
        Choice(
            name,
            before,
            int(getattr(best, field)),
            100 * math.expm1(cost(_with(best, {field: before})) - cost(best)),
        )
        for field, (name, before, _) in values.items()
    )
    gains = _gains(begin, best, sizes, draws, seed)
    low, high = np.quantile(gains, (0.05, 0.95))
    faster = math.exp(cost(begin) - cost(best))
    sure = float(np.mean(np.array(gains) > 1)) if best != begin else 1.0
    return Advice(best, choices, faster, float(low), float(high), sure, draws, len(seen))


def _gains(
    begin: Setting | Network, best: Setting | Network, sizes: Sequence[int], draws: int, seed: int
) -> list[float]:
    """Return how many times faster the best settings are, under constants drawn from their intervals."""
    if best == begin:
        return [1.0]
    random = np.random.default_rng(seed)
    gains = []
    for _ in range(draws):
        drawn = _drawn(random, _sheets_of(begin))
        before, after = (_cost(replace(one, overrides=drawn), sizes) for one in (begin, best))
        gains.append(math.exp(before - after))
    return gains


def _sheets_of(one: Setting | Network) -> list[Sheet]:
    """Return the data files whose fitted constants a setting rests on."""
    if isinstance(one, Setting):
        return [sheets()[name] for name in ("p3-450", one.nic, "m-via")]
    found = [find_sheet("hosts", "software", "host"), find_sheet("hosts", one.host, "host")]
    if one.adapter != "frames":
        found.append(find_sheet("adapters", one.adapter, "adapter"))
    return found


def _drawn(random: np.random.Generator, of: Sequence[Sheet]) -> Mapping[Constant, float]:
    """Return fitted constants, each drawn by itself from its interval."""
    drawn: dict[Constant, float] = {}
    for sheet in of:
        for key, value in sheet.values.items():
            if value.by == "fit" and value.low is not None and value.high is not None:
                spread = min(math.log(value.high / value.low) / (2 * LOG_90), MOST_SPREAD)
                drawn[sheet.name, key] = value.value * math.exp(spread * float(random.standard_normal()))
    return drawn
