"""Ong & Farrell 2000: TCP, LAM, MPICH, M-VIA and MVICH over Gigabit Ethernet, by adapter, MTU and buffers.

Fitted: two constants of the host, two of each adapter, one of LAM and two of M-VIA, to the calibration
figures alone. None depends on an MTU or a buffer, nor on a library and an adapter together: what those do
comes out of TCP, the bus, the host and the library's protocol.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretwin.model.cases import case, keys_of
from wiretwin.model.gigabit import (
    FOLDER,
    MOST_MTU,
    NICS,
    PAPER,
    Constant,
    Setting,
    constants,
    paper,
    setting,
    sheets,
)
from wiretwin.model.netpipe import Signature, bases, netpipe, sizes
from wiretwin.model.values import write_fitted, write_measured
from wiretwin.papers.fit import Fit, fit, joined, spread_of, write_residuals
from wiretwin.papers.ong2000 import beyond, today
from wiretwin.papers.ong2000.choices import under
from wiretwin.papers.records import Record, Role

if TYPE_CHECKING:
    from wiretwin.fit.stats import Interval

__all__ = [
    "EXPERIMENTS",
    "INPUTS",
    "PAPER",
    "TITLE",
    "calibration",
    "experiment",
    "measured",
    "refit",
    "under",
    "write_fit",
    "write_live",
]

TITLE = "Ong & Farrell 2000: LAM, MPICH and MVICH over Gigabit Ethernet"

METRICS = ("latency_us", "throughput_Mbit_s")
BUFFERS_KIB = (64, 128)
QUICK_MOST = 1 << 20


def calibration() -> dict[tuple[str, str], float]:
    """Return the published calibration figures by case and metric."""
    return {
        (_case(row), metric): float(row[metric])
        for row in paper()["calibration"]
        for metric in METRICS
        if metric in row
    }


def _sized(one: Setting, size: int) -> str:
    return case(**{**keys_of(one.case), "size": size})


def _case(row: Mapping[str, Any]) -> str:
    one = setting(row)
    return _sized(one, row["size"]) if "size" in row else one.case


def _spread() -> float:
    """Return how far the fit's residuals spread, as a share; of libraries there are too few for their own."""
    return float(tomllib.loads((FOLDER / "fit.toml").read_text(encoding="utf-8"))["spread"])


def _record(experiment: str, name: str, metric: str, value: float) -> Record:
    """Return a record; the interval of a prediction is the spread of the fit's residuals."""
    published = calibration().get((name, metric))
    if published is not None:
        role: Role = "calibration"
        return Record(PAPER, experiment, name, metric, value, None, None, role, published)
    if "host=today" in name:
        # The residuals of other hosts say nothing of these.
        return Record(PAPER, experiment, name, metric, value, None, None, "prediction")
    half = 1.645 * _spread()
    low, high = value * math.exp(-half), value * math.exp(half)
    return Record(PAPER, experiment, name, metric, value, low, high, "prediction")


def _summary(experiment: str, one: Setting, curve: Signature) -> list[Record]:
    return [
        _record(experiment, one.case, "latency_us", curve.time_us[0]),
        _record(experiment, one.case, "throughput_Mbit_s", curve.peak_Mbit_s),
    ]


def _curve(experiment: str, one: Setting, wanted: list[int]) -> tuple[list[Record], str]:
    """Return the summary of a setting, and the values of each size."""
    curve = netpipe(one, wanted)
    records = _summary(experiment, one, curve)
    for size, time, rate in zip(curve.sizes_bytes, curve.time_us, curve.throughput_Mbit_s, strict=True):
        name = _sized(one, size)
        records.append(_record(experiment, name, "latency_us", time))
        records.append(_record(experiment, name, "throughput_Mbit_s", rate))
    return records, curve.digest


def _tcp(quick: bool) -> tuple[list[Record], list[str]]:
    """Throughput and signature by adapter at an MTU of 1500, with windows of 128 KB."""
    records, runs = [], []
    for nic in NICS:
        found, digest = _curve("tcp", Setting(nic), bases(QUICK_MOST) if quick else sizes())
        records += found
        runs.append(digest)
    return records, runs


def _mtu(quick: bool) -> tuple[list[Record], list[str]]:
    """Vary MTU and socket buffer, by adapter: the largest throughput and the latency.

    With jumbo frames and the larger buffers, also the throughput near 30 KB, which the paper sets beside that
    of M-VIA.
    """
    records, runs = [], []
    most = QUICK_MOST if quick else paper()["netpipe"]["most_bytes"]
    for nic in NICS:
        for mtu in paper()["mtu_bytes"][nic]:
            for buffer_kib in BUFFERS_KIB:
                one = Setting(nic, mtu, buffer_kib)
                near = (NEAR_30_KB,) if (mtu, buffer_kib) == (MOST_MTU, BUFFERS_KIB[-1]) else ()
                curve = netpipe(one, sorted([1, *near, *(size for size in bases(most) if size >= 1 << 14)]))
                runs.append(curve.digest)
                records += _summary("mtu", one, curve)
                records += [_record("mtu", *_throughput(one, curve, size)) for size in near]
    return records, runs


def _throughput(one: Setting, curve: Signature, size: int) -> tuple[str, str, float]:
    """Return the case, the metric and the value of a curve's throughput at a size."""
    rate = curve.throughput_Mbit_s[curve.sizes_bytes.index(size)]
    return _sized(one, size), "throughput_Mbit_s", rate


OTHER_DRIVERS = (("acenic-0.32", 1500), ("acenic-0.32", 6500), ("acenic-0.28", 9000))
"""Drivers of other versions with the MTUs that the paper names of them."""


def _drivers(quick: bool) -> tuple[list[Record], list[str]]:
    """Other drivers of ACEnic, told apart by when they have it interrupt its host."""
    records, runs = [], []
    most = QUICK_MOST if quick else paper()["netpipe"]["most_bytes"]
    for nic, mtu in OTHER_DRIVERS:
        one = Setting(nic, mtu)
        curve = netpipe(one, [1, *(size for size in bases(most) if size >= 1 << 14)])
        runs.append(curve.digest)
        records += _summary("drivers", one, curve)
    return records, runs


NEAR_30_KB = 30720


def _wanted(one: Setting, quick: bool, more: tuple[int, ...] = ()) -> list[int]:
    """Return NetPIPE's sizes, as far as the setting carries them, and a few more."""
    most = min(one.most_bytes or MOST_DESCRIPTOR, MOST_DESCRIPTOR)
    return sorted({size for size in (*(bases(most) if quick else sizes()), *more) if size <= most})


MOST_DESCRIPTOR = 32 << 10
"""What the paper measured over VIs: the longest message of M-VIA's descriptors."""


def _over_vis(name: str, library: str) -> Callable[[bool], tuple[list[Record], list[str]]]:
    """Return the experiment of a library over M-VIA on GNIC-II, beside TCP on it at the same sizes."""

    def made(quick: bool) -> tuple[list[Record], list[str]]:
        records, runs = [], []
        for one in (Setting("gnic-ii", library=library), Setting("gnic-ii")):
            found, digest = _curve(name, one, _wanted(one, quick, (NEAR_30_KB,)))
            # The largest throughput of TCP is that of longer messages.
            records += [record for record in found if one.library or "size=" in record.case]
            runs.append(digest)
        return records, runs

    return made


LIBRARIES = ("mpi-lam", "mpi-mpich")


def _mpi(name: str, mtu: int) -> Callable[[bool], tuple[list[Record], list[str]]]:
    """Return the experiment of both libraries by adapter at an MTU."""

    def made(quick: bool) -> tuple[list[Record], list[str]]:
        records, runs = [], []
        for library in LIBRARIES:
            for nic in NICS:
                if mtu in paper()["mtu_bytes"][nic]:
                    one = Setting(nic, mtu, library=library)
                    found, digest = _curve(name, one, bases(QUICK_MOST) if quick else sizes())
                    records += found
                    runs.append(digest)
        return records, runs

    return made


def _beyond(name: str) -> Callable[[bool], tuple[list[Record], list[str]]]:
    """Return an experiment that the authors left open."""

    def made(quick: bool) -> tuple[list[Record], list[str]]:
        found, runs = beyond.EXPERIMENTS[name](quick)
        return [_record(name, *one) for one in found], runs

    return made


EXPERIMENTS: dict[str, Callable[[bool], tuple[list[Record], list[str]]]] = {
    "tcp": _tcp,
    "mtu": _mtu,
    "drivers": _drivers,
    "mpi": _mpi("mpi", 1500),
    "mpi-mtu9000": _mpi("mpi-mtu9000", 9000),
    "via": _over_vis("via", "via"),
    "mvich": _over_vis("mvich", "mpi-mvich"),
    **{name: _beyond(name) for name in beyond.EXPERIMENTS},
}
"""What there is, by name: makes the records, and the digests of the runs."""


def experiment(name: str, *, quick: bool = False) -> tuple[list[Record], list[str]]:
    """Run one experiment."""
    return EXPERIMENTS[name](quick)


FIT_SIZES = (1, NEAR_30_KB, 96 << 10, 1 << 17, 1 << 20, 1 << 22)
"""What the fit looks at: the latency, one figure of M-VIA, and where throughput is largest."""


def predict(rows: list[tuple[str, str, str, float]], values: Mapping[Constant, float]) -> list[float]:
    """Return the model's figures of these rows under some values of the constants."""
    curves: dict[str, Signature] = {}
    by_case = {_case(row): setting(row) for row in paper()["calibration"]}
    figures = []
    for _, name, metric, _ in rows:
        one = by_case[name]
        if one.case not in curves:
            sizes_bytes = [size for size in FIT_SIZES if size <= (one.most_bytes or FIT_SIZES[-1])]
            curves[one.case] = netpipe(one.under(values), sizes_bytes)
        curve = curves[one.case]
        if metric == "latency_us":
            figures.append(curve.time_us[0])
        elif name == one.case:
            figures.append(curve.peak_Mbit_s)
        else:
            figures.append(curve.throughput_Mbit_s[curve.sizes_bytes.index(NEAR_30_KB)])
    return figures


def refit(evaluations: int = 20) -> Fit:
    """Fit every constant that is marked as fitted to the calibration figures.

    In three steps: host and adapters to the figures of TCP, all at once; then, with these as they are, what
    LAM does for a byte to those of the libraries, and what M-VIA does for a packet and a byte to its own.
    """
    found: dict[Constant, float] = {}
    stages = []
    for step in ("tcp", "mpi", "via"):
        rows = [
            (row["experiment"], _case(row), metric, float(row[metric]))
            for row in paper()["calibration"]
            for metric in METRICS
            if metric in row and _step(setting(row).library) == step
        ]
        free = {one: value for one, value in constants().items() if _step_of(one) == step}
        stages.append(_stage(rows, free, found, evaluations))
        found |= {(one.sheet, one.key): one.value for one in stages[-1].constants}
    return joined(stages)


def _step(library: str | None) -> str:
    """Return the step of the fit that the figures of a library are for."""
    return "tcp" if library is None else library.split("-")[0]


def _step_of(one: Constant) -> str:
    """Return the step in which a constant is fitted."""
    sheet, key = one
    return "via" if sheet == "m-via" else "mpi" if key == "lam_ns_per_byte" else "tcp"


def _stage(
    rows: list[tuple[str, str, str, float]],
    free: Mapping[Constant, float],
    found: Mapping[Constant, float],
    evaluations: int,
) -> Fit:
    return fit(lambda values: predict(rows, {**found, **values}), rows, free, evaluations=evaluations)


def write_fit(fitted: Fit) -> None:
    """Write fitted values into the data files, and the spread and residuals beside the paper's."""
    for one in fitted.constants:
        write_fitted(sheets()[one.sheet].path, one.key, one.value, one.low, one.high)
    spreads = {"spread": spread_of(fitted.residuals)}
    write_residuals(FOLDER / "fit.toml", PAPER, spreads, fitted.residuals)


def measured(folder: Path) -> dict[str, tuple[float, Interval]]:
    """Measure this machine: by key, what is on file of a machine of today, and what was found."""
    sheet = sheets()["today"]
    return {key: (sheet[key], value) for key, value in today.measured(folder).items()}


def write_live(values: Mapping[str, Interval]) -> None:
    """Write what was measured into the profile of a machine of today."""
    for key, found in values.items():
        write_measured(sheets()["today"].path, key, found.value, found.low, found.high)


INPUTS = {"now": lambda: sheets()["today"]}
"""By experiment, the host whose values a reader wants beside what comes of them."""
