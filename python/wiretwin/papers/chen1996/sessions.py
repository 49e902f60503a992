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

__all__ = [
    "echo_under_load",
    "parked",
    "parking_lot",
    "sensitivity",
    "six_sessions",
    "six_without_credits",
]

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


def _starts(rules: Rules, seed: int, count: int) -> list[int]:
    """Return when streams begin, in ns, which the paper does not give."""
    draw = random.Random(f"chen1996 {seed}")
    return [draw.randrange(round(rules.within_ms * 1e6)) for _ in range(count)]


def _throughput(session: Json, seconds: float) -> float:
    return float(session["read_bytes"]) * 8 / seconds / 1e6


def six_plan(rules: Rules, sessions: int, seed: int) -> Plan:
    """Return streams between two switches, each with a pair of hosts of its own."""
    plan = Plan(rules)
    plan.switches(2, an2()["host_line_m"])
    for number, start in enumerate(_starts(rules, seed, sessions)):
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
            [six_plan(rules, inputs["sessions"], seed).scenario(seed, 0.0, rules.run_s) for seed in seeds]
        )
        runs.append(digest)
        name = case(flow_control=flow_control)
        for metric, values in _six(reports, rules.run_s).items():
            records.append(_record("six-sessions", name, metric, values))
    return records, runs


def six_without_credits(rules: Rules, seeds: Sequence[int]) -> dict[str, list[float]]:
    """Return loss, retransmission, throughput and fairness of six streams without flow control, by seed."""
    inputs = paper()["six_sessions"]
    rules = replace(rules, mss_bytes=inputs["tcp_mss_bytes"], credits=None)
    plans = [six_plan(rules, inputs["sessions"], seed).scenario(seed, 0.0, rules.run_s) for seed in seeds]
    return _six(run_all(plans)[0], rules.run_s)


def _six(reports: Sequence[Json], seconds: float) -> dict[str, list[float]]:
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
        "throughput_Mbit_s": [total(one, "read_bytes") * 8 / seconds / 1e6 for one in reports],
        "jain": [jain([session["read_bytes"] for session in one["sessions"]]) for one in reports],
    }


PARKING_LOT = {"A": (1, 2), "B": (1, 2), "C": (1, 3), "D": (2, 3)}
LINKS = {"L1": "ABC", "L2": "CD"}


def parking_plan(rules: Rules, seed: int) -> Plan:
    """Return three switches in a row: streams A, B and C over the first line, C and D over the second."""
    inputs = paper()["parking_lot"]
    plan = Plan(rules)
    plan.switches(inputs["switches"], 1000 * inputs["link_km"])
    for (name, (first, last)), start in zip(PARKING_LOT.items(), _starts(rules, seed, 4), strict=True):
        plan.ttcp(name, plan.hosts(name, first, last), start)
    return plan


def parking_lot(quick: bool) -> Made:
    """Throughput of each session, how far it is from its fair share, and the efficiency of each line."""
    seconds = 1.0 if quick else 2.0
    inputs = paper()
    available = inputs["link"]["available_tcp_Mbit_s"]
    fair = inputs["parking_lot"]["fair_share_Mbit_s"]
    seeds = QUICK_SEEDS if quick else SEEDS
    rules = Rules()
    plans = [parking_plan(rules, seed).scenario(seed, rules.warm_up_s, seconds) for seed in seeds]
    reports, digest = run_all(plans)
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


def parked(rules: Rules, seeds: Sequence[int], seconds: float) -> dict[str, list[float]]:
    """Return what each session of the parking lot gets, in Mbit/s, by seed."""
    plans = [parking_plan(rules, seed).scenario(seed, rules.warm_up_s, seconds) for seed in seeds]
    reports, _ = run_all(plans)
    return {
        name: [_throughput(report["sessions"][place], seconds) for report in reports]
        for place, name in enumerate(PARKING_LOT)
    }


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
    for number, start in enumerate(_starts(rules, seed, streams)):
        plan.ttcp(f"t{number}", plan.hosts(f"t{number}", 1, 2), start)
    return plan


def joined_plan(rules: Rules, size: int, seed: int) -> Plan:
    """Return an echo between two hosts on one line."""
    plan = Plan(rules)
    plan.echo("echo", plan.joined("echo"), size)
    return plan


def cells_of(size: int) -> int:
    """Return the cells of a datagram of this size: UDP, IP, LLC/SNAP and AAL 5 besides."""
    return -(-(size + 8 + 20 + 8 + 8) // 48)


def echo_under_load(quick: bool) -> Made:
    """Round trip of a UDP echo beside so many streams, over what the paper's formula gives.

    The formula: end systems + switching + propagation + n m cell times, of n sessions and m cells a packet.
    What end systems take is measured without a switch: of a round trip between two hosts on one line, what
    its cells on the way there and its propagation leave.
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
        times.setdefault((size, count), []).append(_mean_us(report))
    joined, bare = run_all(
        [joined_plan(Rules(), size, seed).scenario(seed, 0.5, seconds) for size in sizes for seed in seeds]
    )
    without = np.reshape([_mean_us(report) for report in joined], (len(sizes), len(seeds)))
    records = []
    for size, end_systems in zip(sizes, without.mean(axis=1), strict=True):
        for count in streams:
            expected = formula_us(end_systems, size, count)
            name = case(size=size, load=count)
            records.append(_record("echo-under-load", name, "round_trip_us", times[size, count]))
            ratio = [time / expected for time in times[size, count]]
            records.append(_record("echo-under-load", name, "relative_rtt", ratio))
    return records, [digest, bare]


def _mean_us(report: Json) -> float:
    [echo] = [one for one in report["sessions"] if one["name"] == "echo"]
    return float(np.mean(echo["round_trip_ps"])) / 1e6


def formula_us(without_switches_us: float, size: int, streams: int) -> float:
    """Return the paper's round trip of an echo beside streams, by that between two hosts on one line."""
    sheet, cells = an2(), cells_of(size) * _cell_us()
    line_us = sheet["host_line_m"] * sheet["propagation_ns_m"] / 1e3
    end_systems = without_switches_us - 2 * line_us - cells
    # Two switches and three lines, each way.
    return end_systems + 4 * sheet["latency_us"] + 6 * line_us + (1 + streams) * cells


def sensitivity() -> dict[str, dict[str, float]]:
    """Return what the choices are worth: figures under other rules, means of three seeds."""
    found: dict[str, dict[str, float]] = {}
    base = Rules(credits=None)
    for what, rules in {
        "as predicted": base,
        "Reno": replace(base, preset="bsd43_reno"),
        "acknowledgments wait": replace(base, delayed_ack=True),
        "100 us a packet": replace(base, packet_us=100),
        "of one second": replace(base, run_s=1),
        **{f"timers of {tick:g} ms": replace(base, tick_ms=tick) for tick in (0.1, 1, 10, 100, 500)},
    }.items():
        six = six_without_credits(rules, QUICK_SEEDS)
        found[f"six-sessions none, {what}"] = {key: float(np.mean(values)) for key, values in six.items()}
    for what, rules in {
        "as predicted": Rules(),
        "one cell an input and slot": Rules(inside_cells=1),
        "100 us a packet": Rules(packet_us=100),
        "acknowledgments wait": Rules(delayed_ack=True),
    }.items():
        got = parked(replace(rules, warm_up_s=2), QUICK_SEEDS, 2.0)
        found[f"parking-lot, {what}"] = {name: float(np.mean(rates)) for name, rates in got.items()}
    for what, rules in {
        "as predicted": Rules(),
        "100 us a packet": Rules(packet_us=100),
        "credits of 5 cells": Rules(credits=5),
        "queues that lose": Rules(credits=None),
        "one queue at each output, that loses": Rules(credits=None, one_queue=True),
    }.items():
        for size in (64, 2048):
            plans = [
                plan.scenario(seed, 1.0, 2.0)
                for seed in QUICK_SEEDS
                for plan in (joined_plan(rules, size, seed), echo_plan(rules, size, 3, seed))
            ]
            found_us = [_mean_us(report) for report in run_all(plans)[0]]
            ratio = np.mean(found_us[1::2]) / formula_us(float(np.mean(found_us[::2])), size, 3)
            found[f"echo-under-load, {what}, {size} B beside 3"] = {"relative_rtt": float(ratio)}
    return found


def _cell_us() -> float:
    return 424 / an2()["line_bit_s"] * 1e6
