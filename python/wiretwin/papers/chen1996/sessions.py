"""Sessions that share lines: six streams with and without credits, a parking lot, an echo under load."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wiretwin.model.cases import case
from wiretwin.papers.chen1996.pim import estimate, jain
from wiretwin.papers.chen1996.scenario import Json, Plan, Rules, an2, paper, run_all
from wiretwin.papers.records import Record

__all__ = ["echo_under_load", "parking_lot", "sensitivity", "six_sessions"]

Made = tuple[list[Record], list[str]]
PAPER = "chen1996"
SEEDS = range(1, 11)
QUICK_SEEDS = range(1, 4)


def _record(
    experiment: str,
    name: str,
    metric: str,
    values: Sequence[float],
    published: float | None = None,
) -> Record:
    """Return the mean of replications; a prediction has their 90 % interval."""
    mean, low, high = estimate(metric, values)
    if published is None:
        return Record(PAPER, experiment, name, metric, mean, low, high, "prediction")
    return Record(PAPER, experiment, name, metric, mean, None, None, "calibration", published)


def _starts(seed: int, count: int) -> list[int]:
    """Return when streams begin: any time in the first 100 ms, which the paper does not give."""
    draw = random.Random(f"chen1996 {seed}")
    return [draw.randrange(100_000_000) for _ in range(count)]


def _throughput(session: Json, seconds: float) -> float:
    return float(session["read_bytes"]) * 8 / seconds / 1e6


SIX_S = 10.0


def six_plan(rules: Rules, sessions: int, seed: int) -> Plan:
    """Return streams between two switches, each with a pair of hosts of its own."""
    plan = Plan(rules)
    plan.switches(2, an2()["host_line_m"])
    for number, start in enumerate(_starts(seed, sessions)):
        plan.ttcp(f"t{number}", plan.hosts(f"t{number}", 1, 2), start)
    return plan


def six_sessions(quick: bool) -> Made:
    """Cell loss and retransmission of six greedy streams, with queues that lose and with credits.

    From the first segment on, for ten seconds: it is how streams begin that overruns the queues.
    """
    inputs = paper()["six_sessions"]
    seeds = QUICK_SEEDS if quick else SEEDS
    records, runs = [], []
    base = Rules(mss_bytes=inputs["tcp_mss_bytes"])
    published = {(row["experiment"], row["case"]): row["throughput_Mbit_s"] for row in paper()["calibration"]}
    lossless = replace(base, credits="loop")
    reports, digest = run_all([six_plan(lossless, 1, seed).scenario(seed, 2.0, 4.0) for seed in seeds])
    runs.append(digest)
    name = "program=one-session"
    alone = [_throughput(report["sessions"][0], 4.0) for report in reports]
    figure = published["six-sessions", name]
    records.append(_record("six-sessions", name, "throughput_Mbit_s", alone, figure))
    variants = {
        "none": replace(base, credits=None),
        "credits": replace(base, credits=inputs["credit_cells"]),
    }
    for flow_control, rules in variants.items():
        reports, digest = run_all(
            [six_plan(rules, inputs["sessions"], seed).scenario(seed, 0.0, SIX_S) for seed in seeds]
        )
        runs.append(digest)
        name = case(flow_control=flow_control)
        for metric, values in _six(reports).items():
            records.append(_record("six-sessions", name, metric, values))
    return records, runs


def _six(reports: Sequence[Json]) -> dict[str, list[float]]:
    def total(report: Json, *keys: str) -> float:
        return float(sum(session[key] for session in report["sessions"] for key in keys))

    return {
        "cell_loss_ratio": [
            total(one, "cells_refused_there", "cells_refused_back") / total(one, "cells_there", "cells_back")
            for one in reports
        ],
        "tcp_retransmission_ratio": [
            total(one, "segments_again") / total(one, "segments") for one in reports
        ],
        "throughput_Mbit_s": [total(one, "read_bytes") * 8 / SIX_S / 1e6 for one in reports],
        "jain": [jain([session["read_bytes"] for session in one["sessions"]]) for one in reports],
    }


PARKING_LOT = {"A": (1, 2), "B": (1, 2), "C": (1, 3), "D": (2, 3)}
LINKS = {"L1": "ABC", "L2": "CD"}


def parking_plan(rules: Rules, seed: int) -> Plan:
    """Return three switches in a row: streams A, B and C over the first line, C and D over the second."""
    inputs = paper()["parking_lot"]
    plan = Plan(rules)
    plan.switches(inputs["switches"], 1000 * inputs["link_km"])
    for (name, (first, last)), start in zip(PARKING_LOT.items(), _starts(seed, 4), strict=True):
        plan.ttcp(name, plan.hosts(name, first, last), start)
    return plan


def parking_lot(quick: bool) -> Made:
    """Throughput of each session, how far it is from its fair share, and the efficiency of each line."""
    seconds = 1.0 if quick else 2.0
    inputs = paper()
    available = inputs["link"]["available_tcp_Mbit_s"]
    fair = inputs["parking_lot"]["fair_share_Mbit_s"]
    seeds = QUICK_SEEDS if quick else SEEDS
    reports, digest = run_all([parking_plan(Rules(), seed).scenario(seed, 1.0, seconds) for seed in seeds])
    got = [{one["name"]: _throughput(one, seconds) for one in report["sessions"]} for report in reports]
    used = {
        link: [sum(run[name] for name in names) / available for run in got] for link, names in LINKS.items()
    }
    records = []
    for name, (_, last) in PARKING_LOT.items():
        records.append(
            _record("parking-lot", case(session=name), "throughput_Mbit_s", [run[name] for run in got])
        )
        # What is computed from the lines of the network, in octets that TCP carries.
        shares = [_share(report, name) for report in reports]
        records.append(
            Record(
                PAPER,
                "parking-lot",
                case(session=name),
                "fair_share_Mbit_s",
                shares[0],
                None,
                None,
                "prediction",
            )
        )
        # Against its share of what its bottleneck carries, as the paper's formula has it.
        link = "L2" if last == 3 and name == "D" else "L1"
        deviation = [
            100 * (run[name] / (fair[name] * efficiency) - 1)
            for run, efficiency in zip(got, used[link], strict=True)
        ]
        records.append(_record("parking-lot", case(session=name), "deviation_percent", deviation))
    for link, values in used.items():
        records.append(_record("parking-lot", case(link=link), "efficiency", values))
    return records, [digest]


def _share(report: Json, name: str) -> float:
    """Return the max-min fair share of a session, of what TCP has of its cells."""
    [session] = [one for one in report["sessions"] if one["name"] == name]
    link = paper()["link"]
    return float(session["fair_bit_s"] / 1e6 * link["available_tcp_Mbit_s"] / (link["payload_bit_s"] / 1e6))


def echo_plan(rules: Rules, size: int, streams: int, seed: int) -> Plan:
    """Return an echo and streams between two switches, each with a pair of hosts of its own."""
    plan = Plan(rules)
    plan.switches(2, an2()["host_line_m"])
    plan.echo("echo", plan.hosts("echo", 1, 2), size)
    for number, start in enumerate(_starts(seed, streams)):
        plan.ttcp(f"t{number}", plan.hosts(f"t{number}", 1, 2), start)
    return plan


def cells_of(size: int) -> int:
    """Return the cells of a datagram of this size: UDP, IP, LLC/SNAP and AAL 5 besides."""
    return -(-(size + 8 + 20 + 8 + 8) // 48)


def echo_under_load(quick: bool) -> Made:
    """Round trip of a UDP echo beside so many streams, over what the paper's formula gives.

    The formula: end systems + switching + propagation + n m cell times, of n sessions and m cells a packet.
    What end systems take is what the others leave of the round trip without streams, so that this one is 1.
    """
    inputs = paper()["fan_in_fan_out"]
    sizes = inputs["echo_bytes"][::3] if quick else inputs["echo_bytes"]
    streams = range(inputs["most_ttcp_sessions"] + 1)
    seeds = QUICK_SEEDS if quick else SEEDS
    seconds = 1.5
    settings = [(size, count, seed) for size in sizes for count in streams for seed in seeds]
    reports, digest = run_all(
        [echo_plan(Rules(), size, count, seed).scenario(seed, 0.5, seconds) for size, count, seed in settings]
    )
    times: dict[tuple[int, int], list[float]] = {}
    for (size, count, _), report in zip(settings, reports, strict=True):
        [echo] = [one for one in report["sessions"] if one["name"] == "echo"]
        times.setdefault((size, count), []).append(float(np.mean(echo["round_trip_ps"])) / 1e6)
    records = []
    for size in sizes:
        alone = float(np.mean(times[size, 0]))
        for count in streams:
            expected = alone + count * cells_of(size) * _cell_us()
            name = case(size=size, load=count)
            records.append(_record("echo-under-load", name, "round_trip_us", times[size, count]))
            ratio = [time / expected for time in times[size, count]]
            records.append(_record("echo-under-load", name, "relative_rtt", ratio))
    return records, [digest]


def sensitivity() -> dict[str, dict[str, float]]:
    """Return what the choices are worth: figures under other rules, means of three seeds."""
    found: dict[str, dict[str, float]] = {}
    inputs = paper()["six_sessions"]
    base = Rules(mss_bytes=inputs["tcp_mss_bytes"], credits=None)
    for what, rules in {
        "as predicted": base,
        "Reno": replace(base, preset="bsd43_reno"),
        "acknowledgments wait": replace(base, delayed_ack=True),
        "100 us a packet": replace(base, packet_us=100),
    }.items():
        plans = [six_plan(rules, inputs["sessions"], seed).scenario(seed, 0.0, SIX_S) for seed in QUICK_SEEDS]
        six = _six(run_all(plans)[0])
        found[f"six-sessions none, {what}"] = {key: float(np.mean(values)) for key, values in six.items()}
    for what, rules in {
        "as predicted": Rules(),
        "one cell an input and slot": Rules(inside_cells=1),
        "100 us a packet": Rules(packet_us=100),
        "acknowledgments wait": Rules(delayed_ack=True),
    }.items():
        reports, _ = run_all([parking_plan(rules, seed).scenario(seed, 2.0, 2.0) for seed in QUICK_SEEDS])
        found[f"parking-lot, {what}"] = {
            name: float(np.mean([_throughput(run["sessions"][place], 2.0) for run in reports]))
            for place, name in enumerate(PARKING_LOT)
        }
    for what, rules in {
        "as predicted": Rules(),
        "100 us a packet": Rules(packet_us=100),
        "credits of 5 cells": Rules(credits=5),
        "queues that lose": Rules(credits=None),
        "one queue at each output, that loses": Rules(credits=None, one_queue=True),
    }.items():
        for size in (64, 2048):
            alone, beside = (_round_trip(rules, size, count) for count in (0, 3))
            ratio = beside / (alone + 3 * cells_of(size) * _cell_us())
            found[f"echo-under-load, {what}, {size} B beside 3"] = {"relative_rtt": ratio}
    return found


def _round_trip(rules: Rules, size: int, streams: int) -> float:
    reports, _ = run_all(
        [echo_plan(rules, size, streams, seed).scenario(seed, 1.0, 2.0) for seed in QUICK_SEEDS]
    )
    return float(np.mean([np.mean(run["sessions"][0]["round_trip_ps"]) for run in reports])) / 1e6


def _cell_us() -> float:
    return 424 / an2()["line_bit_s"] * 1e6
