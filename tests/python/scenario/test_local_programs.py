"""Programs on a scenario's network: what they come to, under load and at once, and bad input by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wiretwin.errors import InputError
from wiretwin.scenario import Scenario, simulate

RING = {
    "name": "ring",
    "stack": "pvm-advise/tcp/ethernet",
    "ranks": 3,
    "parameters": {"elements": 4000, "rounds": 1, "add": "1ns"},
}
ECHO = {"name": "echo", "stack": "rpc/tcp/aal5", "hosts": [0, 1], "parameters": {"bytes": 64, "rounds": 20}}
SCENARIOS = Path(__file__).parents[3] / "examples" / "scenarios"


def scenario(network: str | dict[str, Any], *programs: dict[str, Any], **more: Any) -> Scenario:
    return Scenario.of({"network": network, "program": list(programs), **more})


def test_a_program_runs_on_a_network_and_load_makes_it_slower() -> None:
    alone = simulate(scenario("ethernet10", RING)).metrics
    assert alone["verified_ratio"] == 1.0
    parts = sum(alone[f"{part}_s"] for part in ("compute", "endpoint", "wire", "waiting"))
    assert parts == pytest.approx(alone["time_s"], rel=1e-9)
    loaded = simulate(scenario("ethernet10:load=0.5", RING)).metrics
    assert loaded["verified_ratio"] == 1.0
    assert loaded["time_s"] > 1.1 * alone["time_s"]
    listed = scenario({"preset": "ethernet10", "load": [{"share": 0.5}]}, RING)
    assert simulate(listed).metrics == loaded
    cells = simulate(scenario("asx100:load=0.9", {**RING, "stack": "pvm-advise/tcp/aal5"})).metrics
    atm = {**RING, "stack": "pvm-advise/tcp/aal5"}
    assert simulate(scenario("asx100", atm)).metrics["time_s"] != alone["time_s"]
    assert simulate(scenario("asx100", atm)).metrics["time_s"] < cells["time_s"]


def test_a_scenario_runs_elsewhere_when_it_is_told_to() -> None:
    found = scenario("ethernet10", RING).on(network="asx100", stack="pvm-advise/tcp/aal5")
    assert simulate(found) == simulate(scenario("asx100", {**RING, "stack": "pvm-advise/tcp/aal5"}))
    free = scenario("asx100", {**RING, "stack": None}).on(network="star:rate=1Gbit/s", twin="nothing")
    assert simulate(free).metrics["endpoint_s"] == 0
    with pytest.raises(InputError, match="asx100 has hosts of its own"):
        simulate(found.on(twin="twin.toml"))


def test_the_same_seed_gives_the_same_digest() -> None:
    wanted = scenario("ethernet10:load=0.3", RING)
    assert simulate(wanted, seed=7).digest == simulate(wanted, seed=7).digest
    assert simulate(wanted, seed=7).metrics != simulate(wanted, seed=8).metrics


def test_programs_share_hosts_and_lines() -> None:
    parameters = {**RING["parameters"], "rounds": 4}  # long enough for some calls
    ring = {**RING, "stack": "pvm-advise/tcp/aal5", "parameters": parameters}
    calls = {"name": "calls", "stack": "rpc/tcp/aal5", "hosts": [0, 2], "parameters": {"pause": "1ms"}}
    streams = {"name": "ttcp", "label": "copies", "stack": "framed/tcp/aal5", "hosts": [0, 1, 2]}
    alone = simulate(scenario("an2:hosts=3", ring)).metrics
    found = simulate(scenario("an2", ring, calls, streams))
    metrics = found.metrics
    assert metrics["ring.verified_ratio"] == 1.0
    assert metrics["ring.time_s"] > alone["time_s"]
    assert metrics["calls.calls"] > 2
    assert 100 < metrics["calls.response_us"] <= metrics["calls.response_p99_us"]
    assert metrics["copies.throughput_Mbit_s"] > 1
    assert 0.5 <= metrics["copies.jain_ratio"] <= 1
    assert metrics["lost_cells"] == 0
    assert simulate(scenario("an2", ring, calls, streams)) == found
    assert simulate(scenario("an2", ring, calls, streams), seed=2).digest != found.digest


def test_programs_that_end_run_at_once_on_any_network() -> None:
    ring = {**RING, "stack": None}
    other = {**ring, "label": "other", "ranks": 2}
    star = {"network": "star:hosts=3,rate=1Gbit/s", "twin": "nothing", "ranks_per_host": 2}
    found = simulate(scenario(star.pop("network"), ring, other, **star)).metrics
    assert found["ring.verified_ratio"] == found["other.verified_ratio"] == 1.0
    assert found["time_s"] == max(found["ring.time_s"], found["other.time_s"])
    pair = {**ring, "stack": STACK, "ranks": 2, "hosts": [0, 1]}
    together = simulate(scenario("gige", *({**pair, "label": name} for name in "ab"))).metrics
    alone = simulate(scenario("gige", {**ring, "stack": STACK, "ranks": 2})).metrics
    assert together["a.time_s"] > alone["time_s"], "they share two hosts"


def test_what_ports_mark_and_lose_is_told() -> None:
    stream = {"name": "stream", "parameters": {"bytes": 1 << 20, "messages": 1}}
    streams = [{**stream, "label": f"from {host}", "hosts": [host, 0]} for host in (1, 2, 3)]
    star = "star:hosts=4,rate=1Gbit/s,delay=1us"
    packets = f"{star},fidelity=packet,queue=64KiB"
    dropping = simulate(scenario(packets, *streams, twin="nothing")).metrics
    assert dropping["lost_packets"] > 0 == dropping["marked_packets"]
    marking = simulate(scenario(f"{packets},ecn=20packets", *streams, twin="nothing")).metrics
    assert marking["marked_packets"] > 0
    assert marking["lost_packets"] < dropping["lost_packets"]
    assert "lost_packets" not in simulate(scenario(star, *streams, twin="nothing")).metrics


STACK = "mpi-lam/tcp/gige"


def test_the_examples_of_several_programs_run() -> None:
    found = simulate(Scenario.read(SCENARIOS / "problem-domains.toml").on(network="an2:hosts=8")).metrics
    assert found["md.verified_ratio"] == 1.0


@pytest.mark.parametrize(
    ("network", "programs", "words"),
    [
        ("ethernet10:hosts=4", [RING], "program.ranks: 3 is not allowed here; allowed: 4"),
        ("ethernet10", [{**RING, "name": "sort"}], "program.name"),
        ("ethernet10", [{**RING, "parameters": {"elements": 64}}], "add: is needed"),
        ("ethernet10", [{**RING, "stack": "pigeon/ethernet"}], "program.stack"),
        ("ethernet10:host=pdp-11", [RING], "network.host"),
        (
            {"preset": "gige", "load": [{"share": 0.1}]},
            [RING],
            "network.load: [{'share': 0.1}] is no key of it",
        ),
        ("ethernet10:paint=red", [RING], "network.paint: 'red' is no key of it; allowed: host, first_use"),
        ("asx100", [{**ECHO, "hosts": [0, 0]}, {**ECHO, "label": "b"}], "each once"),
        ("asx100", [ECHO, {**ECHO, "label": "b", "hosts": [1, 2]}], "its ports are fixed"),
        ("asx100:hosts=2", [ECHO, {**ECHO, "label": "b", "hosts": [1, 2]}], "asx100 has that many hosts"),
        ("asx100", [{"name": "ttcp", "stack": "framed/tcp/aal5"}], "comes to an end"),
        ("asx100", [ECHO, {"name": "ttcp", "stack": "framed/tcp/aal5", "ranks": 1}], "two or more"),
        ("asx100", [ECHO, {"name": "ttcp", "parameters": {"paint": 1}}], "paint=1"),
        ("asx100", [{**ECHO, "ranks": 3}], "the host of each of 3 ranks"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    network: str | dict[str, Any], programs: list[dict[str, Any]], words: str
) -> None:
    with pytest.raises(InputError) as refused:
        simulate(scenario(network, *programs))
    assert words in str(refused.value)


def test_one_layer_is_for_all_on_a_twin() -> None:
    several = scenario("star:rate=1Gbit/s", RING, {**ECHO, "hosts": None}, twin="nothing")
    with pytest.raises(InputError, match="one layer for all on hosts of a twin"):
        simulate(several)


def wiretwin(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("wiretwin")), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_programs_run_at_once_by_command() -> None:
    words = [
        "run",
        "ring",
        "--world",
        "simulated",
        "--network",
        "an2",
        "--stack",
        "pvm-advise/tcp/aal5",
        "--ranks",
        "3",
        "--format",
        "json",
    ]
    others = ["ttcp:stack=framed/tcp/aal5,hosts=0+1+2", "echo:stack=rpc/tcp/aal5,hosts=0+1"]
    beside = [word for other in others for word in ("--beside", other)]
    work = ["--", "elements=4000", "rounds=1", "add=1ns"]
    ended = wiretwin(*words, *beside, *work)
    assert ended.returncode == 0, ended.stderr
    found = {row["metric"]: row["value"] for row in json.loads(ended.stdout)}
    assert found["ring.verified_ratio"] == found["echo.verified_ratio"] == 1
    assert found["ttcp.throughput_Mbit_s"] > 0
    assert "with --world simulated" in wiretwin("run", "ring", *beside).stderr
    wrong = wiretwin(*words, "--beside", "ttcp:hosts=0-1", *work)
    assert (wrong.returncode, "numbers, such as 0+2+3" in wrong.stderr) == (2, True)
