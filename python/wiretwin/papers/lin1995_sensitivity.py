"""Lin et al. 1995: what could move a value of the model, and how far.

One thing at a time is made another, and the value is read again. A constant that was fitted goes to either
end of its 90 % interval, one that is an input or a choice to half and to twice what it is; which constants a
network is made of is found by making it. Rules that could have been others are made the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wiretwin.errors import InputError, SimulationError
from wiretwin.model.echo import Curve, coarse, echo, summary
from wiretwin.model.profiles import Network, lan_json
from wiretwin.model.values import Value
from wiretwin.papers.fit import Constant, sheets
from wiretwin.papers.lin1995_settings import BACKGROUND, Setting

__all__ = ["ENOUGH", "FIT_SIZES", "Effect", "effects", "notable", "steady_summary"]

FIT_SIZES = (4, *range(388, 8193, 384), 4096, 16384, 32768)
STEADY = (65_536, 131_072)
"""From here on a message is a steady stream of full PDUs: a mebibyte follows from the difference."""

ENOUGH = 0.25
"""By which share a change must move a value to be notable."""


@dataclass(frozen=True)
class Effect:
    """What one change makes of one value.

    Attributes
    ----------
    experiment, case, metric
        The value; `metric` ends in its unit.
    predicted, published
        What the model says of it, and what is published, where that is a calibration value.
    known
        How what was changed is known: ``input``, ``choice``, ``fit``, or ``rule``.
    what, made
        What was changed, and what it was made.
    value
        What the model says then; none where a message is lost.
    """

    experiment: str
    case: str
    metric: str
    predicted: float
    published: float | None
    known: str
    what: str
    made: str
    value: float | None

    @property
    def change(self) -> float:
        """By which share the value is larger; infinite where a message is lost."""
        return math.inf if self.value is None else self.value / self.predicted - 1


@dataclass(frozen=True)
class _Change:
    known: str
    what: str
    made: str
    network: Network
    sizes: Sequence[int] = FIT_SIZES


class _Reads(dict[Constant, float]):
    """Overrides that take note of what is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[Constant, None] = {}

    def get(self, key: Constant, default: float) -> float:  # type: ignore[override]
        """Take note, and override nothing."""
        self.asked[key] = None
        return default


def steady_summary(network: Network, sizes: Iterable[int] = FIT_SIZES) -> dict[str, float]:
    """Return t_0, r_max and n_half as read off these sizes and a mebibyte, without running the mebibyte.

    Raises
    ------
    SimulationError
        A message was lost.
    InputError
        The network is rejected.
    """
    wanted = sorted({*sizes, *STEADY})
    repeats = network.stack.startswith("fore") and network.background is None
    runs = echo(network, wanted, 3 if repeats else 11)
    latency_us = [float(np.mean(run)) / 2 for run in runs]
    short, long = (latency_us[wanted.index(size)] for size in STEADY)
    mebibyte = long + (long - short) * ((1 << 20) - STEADY[1]) / (STEADY[1] - STEADY[0])
    return summary(Curve((*wanted, 1 << 20), (*latency_us, mebibyte), ""))


def effects(
    experiment: str, settings: Iterable[Setting], published: Callable[[str, str], float | None]
) -> Iterator[list[Effect]]:
    """Change one thing at a time in each setting; yields what that makes of its three values.

    `published` says what is published of a case and a metric.
    """
    for setting in settings:
        base = steady_summary(setting.network)
        found = []
        for change in _changes(setting.network):
            try:
                values = steady_summary(change.network, change.sizes)
            except SimulationError:
                values = {}
            except InputError:
                # Half or twice of it cannot be, or may not be.
                continue
            for metric, predicted in base.items():
                figure = published(setting.case, metric)
                of = (experiment, setting.case, metric, predicted, figure)
                found.append(Effect(*of, change.known, change.what, change.made, values.get(metric)))
        yield found


def notable(found: Iterable[Effect]) -> list[Effect]:
    """Return what moves a value by more than a quarter, and of each value what moves it most, in order."""
    largest: dict[tuple[str, str, str], Effect] = {}
    listed = list(found)
    for one in listed:
        key = (one.experiment, one.case, one.metric)
        if key not in largest or abs(one.change) > abs(largest[key].change):
            largest[key] = one
    most = {id(one) for one in largest.values()}
    return [one for one in listed if abs(one.change) > ENOUGH or id(one) in most]


def _changes(network: Network) -> Iterator[_Change]:
    values = {(sheet.name, key): value for sheet in sheets() for key, value in sheet.values.items()}
    reads = _Reads()
    plain = lan_json(replace(network, overrides=reads))
    for constant in reads.asked:
        for number in _others(values[constant]):
            try:
                other = replace(network, overrides={**network.overrides, constant: number})
                if lan_json(other) == plain:
                    continue
            except InputError:
                continue
            made = f"{number:.4g} instead of {values[constant].value:.4g}"
            yield _Change(values[constant].by, " ".join(constant), made, other)
    yield from _rules(network)


def _others(value: Value) -> tuple[float, ...]:
    if value.low is not None and value.high is not None:
        return (value.low, value.high)
    return (value.value / 2, 2 * value.value)


def _rules(network: Network) -> Iterator[_Change]:
    doublings = coarse(FIT_SIZES[-1])
    busy = replace(network, background=BACKGROUND)
    if not network.stack.startswith("fore"):
        nagle = replace(network, nodelay=False)
        yield _Change("rule", "TCP_NODELAY", "not set", nagle)
        yield _Change(
            "rule", "TCP_NODELAY and sizes", "not set, doublings of 4 bytes alone", nagle, doublings
        )
        for kib in (16, 51):
            if kib != network.buffer_kib:
                made = f"{kib} KiB instead of {network.buffer_kib}"
                yield _Change("rule", "socket buffers", made, replace(network, buffer_kib=kib))
    yield _Change("rule", "sizes", "doublings of 4 bytes alone", network, doublings)
    yield _Change("rule", "hosts", "do other things too, as in figure 7", busy)
    if network.switch is not None:
        paced = {**network.overrides, (network.switch, "circuit_pace_us"): 0.0}
        yield _Change("rule", "circuits", "not paced", replace(network, overrides=paced))
