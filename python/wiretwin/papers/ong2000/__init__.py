"""Ong & Farrell 2000: TCP, LAM and MPICH over Gigabit Ethernet, by adapter, MTU and socket buffer.

Fitted: two constants of the host, two of each adapter and one of LAM, to the calibration figures
alone. None depends on an MTU or a buffer, nor on a library and an adapter together: what those do comes out
of TCP, the bus, the host and the library's protocol.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping

from wiretwin.papers.fit import Fit, fit, spread_of
from wiretwin.papers.ong2000.netpipe import Signature, bases, netpipe, sizes
from wiretwin.papers.ong2000.settings import (
    FOLDER,
    NICS,
    PAPER,
    Constant,
    Setting,
    constants,
    paper,
    setting,
    sheets,
)
from wiretwin.papers.records import Record, Role, case
from wiretwin.papers.values import write_fitted

__all__ = ["EXPERIMENTS", "PAPER", "TITLE", "calibration", "experiment", "refit", "write_fit"]

TITLE = "Ong & Farrell 2000: LAM, MPICH and MVICH over Gigabit Ethernet"

METRICS = ("latency_us", "throughput_Mbit_s")
BUFFERS_KIB = (64, 128)
QUICK_MOST = 1 << 20


def calibration() -> dict[tuple[str, str], float]:
    """Return the published calibration figures by case and metric."""
    return {
        (setting(row).case, metric): float(row[metric])
        for row in paper()["calibration"]
        for metric in METRICS
        if metric in row
    }


def _spread() -> float:
    """Return how far the fit's residuals spread, as a share; of libraries there are too few for their own."""
    return float(tomllib.loads((FOLDER / "fit.toml").read_text(encoding="utf-8"))["spread"])


def _record(experiment: str, name: str, metric: str, value: float) -> Record:
    """Return a record; the interval of a prediction is the spread of the fit's residuals."""
    published = calibration().get((name, metric))
    if published is not None:
        role: Role = "calibration"
        return Record(PAPER, experiment, name, metric, value, None, None, role, published)
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
        name = case(**{**dict(part.split("=", 1) for part in one.case.split()), "size": size})
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
    """Vary MTU and socket buffer, by adapter: the largest throughput and the latency."""
    records, runs = [], []
    for nic in NICS:
        for mtu in paper()["mtu_bytes"][nic]:
            for buffer_kib in BUFFERS_KIB:
                one = Setting(nic, mtu, buffer_kib)
                most = QUICK_MOST if quick else paper()["netpipe"]["most_bytes"]
                curve = netpipe(one, [1, *(size for size in bases(most) if size >= 1 << 14)])
                runs.append(curve.digest)
                records += _summary("mtu", one, curve)
    return records, runs


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


EXPERIMENTS: dict[str, Callable[[bool], tuple[list[Record], list[str]]]] = {
    "tcp": _tcp,
    "mtu": _mtu,
    "mpi": _mpi("mpi", 1500),
    "mpi-mtu9000": _mpi("mpi-mtu9000", 9000),
}
"""What there is, by name: makes the records, and the digests of the runs."""


def experiment(name: str, *, quick: bool = False) -> tuple[list[Record], list[str]]:
    """Run one experiment."""
    return EXPERIMENTS[name](quick)


FIT_SIZES = (1, 96 << 10, 1 << 17, 1 << 20, 1 << 22)
"""What the fit looks at: the latency, and where throughput is largest."""


def predict(rows: list[tuple[str, str, str, float]], values: Mapping[Constant, float]) -> list[float]:
    """Return the model's figures of these rows under some values of the constants."""
    curves: dict[str, Signature] = {}
    by_case = {setting(row).case: setting(row) for row in paper()["calibration"]}
    figures = []
    for _, name, metric, _ in rows:
        if name not in curves:
            curves[name] = netpipe(by_case[name].under(values), FIT_SIZES)
        curve = curves[name]
        figures.append(curve.time_us[0] if metric == "latency_us" else curve.peak_Mbit_s)
    return figures


def refit(evaluations: int = 20) -> Fit:
    """Fit every constant that is marked as fitted to the calibration figures.

    In two steps: host and adapters to the figures of TCP, all at once; then, with these as they are, what
    LAM does for a byte to those of the libraries.
    """
    found: dict[Constant, float] = {}
    steps = []
    for libraries in (False, True):
        rows = [
            (row["experiment"], setting(row).case, metric, float(row[metric]))
            for row in paper()["calibration"]
            for metric in METRICS
            if metric in row and ("library" in row) == libraries
        ]
        free = {one: value for one, value in constants().items() if (one[1] in LIBRARY_KEYS) == libraries}
        steps.append(_step(rows, free, found, evaluations))
        found |= {(one.sheet, one.key): one.value for one in steps[-1].constants}
    first, second = steps
    return Fit(
        first.constants + second.constants,
        first.residuals + second.residuals,
        first.evaluations + second.evaluations,
    )


LIBRARY_KEYS = ("lam_ns_per_byte",)


def _step(
    rows: list[tuple[str, str, str, float]],
    free: Mapping[Constant, float],
    found: Mapping[Constant, float],
    evaluations: int,
) -> Fit:
    return fit(lambda values: predict(rows, {**found, **values}), rows, free, evaluations=evaluations)


def write_fit(fitted: Fit) -> None:
    """Write fitted values into the data files, and the spread and residuals beside the paper's."""
    import tomli_w

    from wiretwin.results import write_atomically

    for one in fitted.constants:
        write_fitted(sheets()[one.sheet].path, one.key, one.value, one.low, one.high)
    content = {
        "spread": round(spread_of(fitted.residuals), 4),
        "residual": [
            {
                "experiment": one.experiment,
                "case": one.case,
                "metric": one.metric,
                "published": one.published,
                "predicted": round(one.predicted, 2),
                "error_percent": round(100 * one.error, 1),
            }
            for one in fitted.residuals
        ],
    }
    head = (
        "# Written by `wiretwin papers ong2000 --fit --write`: what the fitted model says of the figures.\n"
    )
    write_atomically(FOLDER / "fit.toml", (head + tomli_w.dumps(content)).encode())
