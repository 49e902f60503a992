"""Running a port that service categories share, with background traffic and a task that plays a trace."""

from __future__ import annotations

import hashlib
import json
import math
from statistics import fmean
from typing import TYPE_CHECKING, Any

from wiretwin.errors import InputError
from wiretwin.scenario.percentile import late
from wiretwin.scenario.trace import Trace, record

if TYPE_CHECKING:
    from wiretwin.scenario.model import BackgroundTable, PortTable, TariffTable, TaskTable

__all__ = ["CELL_BITS", "document", "metrics", "run", "trace_of"]

CELL_BITS = 424
NRM = 32
"""Cells of a circuit of ABR among which one is of resource management."""


def trace_of(task: TaskTable) -> Trace:
    """Return what a task plays: of a file, or recorded of a shipped program."""
    return Trace.read(task.trace) if task.trace is not None else record(task.program or "")


def _ns(milliseconds: float) -> int:
    return round(milliseconds * 1e6)


def _bit_s(megabits: float) -> int:
    return round(megabits * 1e6)


def _background(port: PortTable, background: BackgroundTable) -> list[dict[str, Any]]:
    """Return the sources: all alike, those of ABR first, on for `burst` on average.

    A source of ABR has the resource management cells among its own, one in Nrm (af-tm-0056 §5.10.4).
    """
    if background.rho == 0:
        return []
    mean = background.rho * port.line / background.sources
    peak, on = _bit_s(mean * background.peak), _ns(background.burst)
    of_abr = round(background.sources * background.abr)
    circuits: list[dict[str, Any]] = []
    for number in range(background.sources):
        adaptive = number < of_abr
        bursts = [on, max(1, round(on * (background.peak - 1)))] if background.peak > 1 else None
        circuits.append(
            {
                "name": f"background {number}",
                "path": [0],
                "access_ns": _ns(port.leg),
                "pcr_bit_s": max(peak, _bit_s(background.abr_peak)) if adaptive else None,
                "bit_s": peak * (NRM - 1) // NRM if adaptive else peak,
                "on_off_ns": bursts,
            }
        )
    return circuits


def document(port: PortTable, background: BackgroundTable, task: TaskTable, seed: int) -> dict[str, Any]:
    """Return the network as the compiled world reads it."""
    clocks = task.ahead != 0 or task.drift_ppm != 0
    sync = None
    if task.clock_interval is not None:
        # What a cell takes by the control circuit when nobody is in its way.
        cell_ns = CELL_BITS / port.line * 1e3
        sync = {"interval_ns": _ns(task.clock_interval), "delay_ns": round(2 * port.leg * 1e6 + cell_ns)}
    layer = {
        "poll_ns": _ns(task.poll),
        "keep_alive_ns": None if task.keep_alive is None else _ns(task.keep_alive),
        "monitor_ns": _ns(task.monitor),
        "loss_ns": _ns(task.loss),
        "high_ns": _ns(task.high),
        "low_ns": _ns(task.low),
        "window": task.window,
        "max_pd": task.max_pd,
        "stamps": task.stamps,
        "watch": task.watch,
        "weight": task.weight,
        "clock_sync": sync,
    }
    trace = trace_of(task)
    # Of values, in a cell that is full.
    bits = 8 * trace.octets * trace.values_of_cell(task.stamps)
    return {
        "seed": seed,
        "warm_up_ns": _ns(task.warm_up),
        "run_ns": _ns(task.time),
        "ports": [
            {
                "bit_s": _bit_s(port.line),
                "buffer_cells": port.buffer,
                "push_out": port.push_out,
                "efci_cells": port.efci,
                "becn_cells": port.becn,
                "reserve": port.reserve,
                "delay_ns": _ns(port.leg),
                "erica": {
                    "utilization": port.utilization,
                    "interval_cells": port.interval,
                    "plus_ns": None if port.plus is None else _ns(port.plus),
                },
            }
        ],
        "circuits": _background(port, background),
        "tasks": [
            {
                "name": "task",
                "path": [0],
                "access_ns": _ns(port.leg),
                "line_bit_s": _bit_s(port.line),
                "mechanism": task.mechanism,
                "source_bit_s": None if task.source is None else _bit_s(task.source * CELL_BITS / bits),
                "layer": layer,
                "peer_clock": {"ahead_ns": _ns(task.ahead), "gains_ns_each_s": round(1000 * task.drift_ppm)}
                if clocks
                else None,
                "backup": {"pcr_bit_s": _bit_s(task.peak), "mcr_bit_s": _bit_s(task.minimum)},
                "control_bit_s": _bit_s(task.control),
                "trace": trace.paced(task.pace),
            }
        ],
    }


def run(
    port: PortTable, background: BackgroundTable, task: TaskTable, tariff: TariffTable, seed: int
) -> tuple[dict[str, float], str]:
    """Run it once; the numbers that came of it, and a digest of all that was seen.

    Raises
    ------
    InputError
        It cannot be: which key, its value, what is allowed.
    """
    from wiretwin._core import service_run

    wanted = json.dumps(document(port, background, task, seed))
    try:
        said = service_run(wanted)
    except ValueError as error:
        raise InputError(reason=str(error)) from None
    report = json.loads(said)
    seconds = task.time / 1e3
    return metrics(report, tariff, seconds), hashlib.sha256(said.encode()).hexdigest()[:32]


def metrics(report: dict[str, Any], tariff: TariffTable, seconds: float) -> dict[str, float]:
    """Return the numbers of a run by name.

    Rates count the cells of the adaptation layer, 424 bits each, on the ordinary circuit (UBR), the backup
    circuit (ABR, without its resource management cells) and the control circuit, both ways (VBR).
    """
    (task,) = report["tasks"]
    latency_us = sorted(ps / 1e6 for ps in task["latency_ps"])
    data = task["data_ordinary"] + task["data_backup"]
    kbit_s = {
        "ubr": task["ordinary"]["sent"],
        "abr": task["backup"]["sent"],
        "vbr": task["control"]["sent"] + task["back"],
    }
    kbit_s = {name: cells * CELL_BITS / 1e3 / seconds for name, cells in kbit_s.items()}
    prices = {"ubr": tariff.ubr, "abr": tariff.abr, "vbr": tariff.vbr}
    background = [one for one in report["circuits"] if one["name"].startswith("background")]
    sent = sum(one["sent"] for one in background)
    (port,) = report["ports"]
    return {
        "latency_us": fmean(latency_us) if latency_us else math.nan,
        "latency_p99_us": late(latency_us),
        "cell_loss_ratio": task["lost_data"] / data if data else 0.0,
        # A machine that has only the backup circuit takes it for its ordinary one.
        "abr_share": 1.0 if not task["ordinary"]["sent"] else task["data_backup"] / data if data else 0.0,
        "ubr_kbit_s": kbit_s["ubr"],
        "abr_kbit_s": kbit_s["abr"],
        "vbr_kbit_s": kbit_s["vbr"],
        "cost_per_s": sum(kbit_s[name] / 1e3 * price for name, price in prices.items()),
        "retransmission_ratio": task["retransmitted"] / data if data else 0.0,
        "messages": float(task["messages"]),
        "undelivered_messages": float(task["messages"] - len(latency_us)),
        "mode_changes": float(task["switches"]),
        "background_loss_ratio": sum(one["lost"] for one in background) / sent if sent else 0.0,
        "queue_cells": port["mean_waiting"],
        "efci_ratio": port["marked"] / port["sent"] if port["sent"] else 0.0,
    }
