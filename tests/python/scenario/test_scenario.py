"""Scenario files: what they may hold, what is refused, and that a run is the same again."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from wiretwin.errors import InputError
from wiretwin.scenario import Scenario, simulate

ROOT = Path(__file__).parents[3]
ECHO: dict[str, Any] = {
    "network": {
        "stack": "fore/aal5",
        "host": "sparc2",
        "adapter": "series-200",
        "switch": "asx100",
        "load": [{"share": 0.4}],
    },
    "echo": {"size": "1 KiB", "rounds": 21},
}


def changed(path: str, value: object) -> dict[str, Any]:
    document: Any = copy.deepcopy(ECHO)
    *tables, last = path.split(".")
    table = document
    for part in tables:
        table = table[int(part)] if part.isdecimal() else table[part]
    table[last] = value
    return document  # type: ignore[no-any-return]


def test_a_scenario_is_its_document() -> None:
    scenario = Scenario.of(ECHO)
    assert Scenario.of(scenario.document) == scenario
    assert scenario.document["network"]["buffer"] == "32768 B"


def test_the_example_is_read_and_runs() -> None:
    outcome = simulate(Scenario.read(ROOT / "examples" / "scenarios" / "echo-under-load.toml"))
    assert 400 < outcome.metrics["latency_min_us"] <= outcome.metrics["latency_us"]
    assert outcome.metrics["lost_rounds_ratio"] == 0


def test_the_seed_makes_the_run() -> None:
    scenario = Scenario.of(ECHO)
    first, again, other = simulate(scenario), simulate(scenario), simulate(scenario, seed=2)
    assert first == again
    assert first.digest != other.digest
    assert first.metrics["latency_us"] != other.metrics["latency_us"]


@pytest.mark.parametrize("stack", ["socket/tcp/ethernet", "socket/tcp/fddi", "socket/tcp/aal5"])
def test_networks_of_frames_and_of_cells_run(stack: str) -> None:
    network = {"stack": stack, "host": "sparc2"}
    outcome = simulate(Scenario.of({"network": network, "echo": {"size": "4 B", "rounds": 3}}))
    assert outcome.metrics["latency_us"] > 100


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "has no world"),
        ({"network": ECHO["network"]}, r"has \[network\]"),
        ({"version": 2}, "version: 2"),
        (changed("echo.size", 4), "echo.size"),
        (changed("echo.size", "4"), "one of B, KiB"),
        (changed("echo.size", "4 furlongs"), "one of B, KiB"),
        (changed("echo.rounds", 1), "echo.rounds = 1; allowed is at least 2"),
        (changed("network.hosts", 1), "network.hosts = 1"),
        (changed("network.speed", 1), "network.speed = 1; this key is not known; allowed are stack, host"),
        (changed("network.load.0.share", -0.5), r"network.load\[0\].share = -0.5; allowed is above 0"),
        (changed("network.load.0.law", "fractal"), "constant"),
        (changed("network.cell_loss", float("nan")), "network.cell_loss"),
        (changed("network.buffer", "-3 KiB"), "from 0 to"),
        (changed("network.buffer", "1500 B"), "network.buffer: '1500 B'; allowed is a whole number of KiB"),
        (
            changed("network.buffer", "0 B"),
            "network.buffer: '0 B'; allowed is a whole number of KiB, at least one",
        ),
        (changed("echo.size", "1.5 B"), "echo.size: '1.5 B'; allowed is a whole number of B, not 1.5"),
        (changed("seed", -1), "seed = -1"),
    ],
)
def test_what_is_wrong_is_named_before_anything_runs(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Scenario.of(document, "s.toml")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("network.host", "cray", r"network\.host: 'cray' is not allowed here; allowed: 4/690, alpha-170"),
        ("network.host", "software", r"network\.host: 'software' is not allowed here; allowed: 4/690"),
        ("network.adapter", "series-9", r"network\.adapter: 'series-9' .* allowed: otto, series-100"),
        ("network.stack", "fore/aal9", r"network\.stack: 'fore/aal9' .* allowed: fore/aal5.*no such stack"),
        ("network.stack", "fore/aal1", r"network\.stack: 'fore/aal1' .*refuses AAL types 0, 1 and 2"),
        ("network.stack", "rpc/aal5", r"network\.stack: 'rpc/aal5' .* rpc/tcp/aal5"),
        (
            "network.stack",
            "pvm-normal/tcp/aal5",
            r"network\.stack: 'pvm-normal/tcp/aal5' .* pvm-normal/udp/aal5",
        ),
        ("network.stack", "fore/ethernet", r"network\.stack: 'fore/ethernet'"),
        ("network.stack", "mpi/tcp/gige", r"network\.stack: 'mpi/tcp/gige' .* one on aal5, aal34"),
        ("network.switch", "asx9", r"network\.switch: 'asx9' is not allowed here; allowed: an2, asx100$"),
        ("network.switch", "fddi", r"network\.switch: 'fddi' is not allowed here; allowed: an2, asx100$"),
        ("network.link", "taxi", r"network\.link: 'taxi' is not allowed here; allowed: oc3c, taxi100$"),
        ("network.stack", "socket/tcp/ethernet", "network.adapter"),
        (
            "network.reserve",
            "1 Gbit/s",
            r"network\.reserve: '1000 Mbit/s' .* what is left .* carries 98\.148148",
        ),
        ("network.nodelay", False, r"network\.nodelay: False .* nothing, on circuits without sockets"),
        ("network.buffer", "16 KiB", r"network\.buffer: '16384 B' .* nothing, on circuits without sockets"),
    ],
)
def test_a_name_that_no_file_has_is_refused(path: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(Scenario.of(changed(path, value)))


def test_a_message_that_no_datagram_takes_is_refused_by_its_key() -> None:
    document = changed("network.stack", "rpc/udp/aal5") | {"echo": {"size": "16 KiB"}}
    with pytest.raises(InputError, match=r"echo\.size: '16384 B' .* this interface takes at most 8756"):
        simulate(Scenario.of(document))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        Scenario.read(tmp_path / "none.toml")
    file = tmp_path / "s.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a text file"):
        Scenario.read(file)
    file.write_text("[network")
    with pytest.raises(InputError, match="is not TOML"):
        Scenario.read(file)


def test_the_twin_lies_beside_its_scenario(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "scenarios" / "ring-on-a-twin.toml").read_text()
    (tmp_path / "s.toml").write_text(text)
    scenario = Scenario.read(tmp_path / "s.toml")
    assert scenario.twin is not None
    assert scenario.twin.file == str((tmp_path / "twin.toml").resolve())
    with pytest.raises(InputError, match=r"twin\.toml: cannot be read"):
        simulate(scenario)
