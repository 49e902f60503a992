"""Scenario files: what they may hold, what is refused, and that a run is the same again."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from wiretwin.errors import InputError
from wiretwin.model.local import preset_for
from wiretwin.scenario import Scenario, simulate

ROOT = Path(__file__).parents[3]
ECHO: dict[str, Any] = {
    "network": {"preset": "asx100", "host": "sparc2", "adapter": "series-200", "load": [{"share": 0.4}]},
    "echo": {"stack": "fore/aal5", "size": "1 KiB", "rounds": 21},
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
    assert scenario.document["echo"]["size"] == "1024 B"


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


@pytest.mark.parametrize("stack", [f"socket/tcp/{lower}" for lower in ("ethernet", "fddi", "aal5", "gige")])
def test_networks_of_frames_and_of_cells_run(stack: str) -> None:
    network = preset_for(stack)
    outcome = simulate(
        Scenario.of({"network": network, "echo": {"stack": stack, "size": "4 B", "rounds": 3}})
    )
    assert outcome.metrics["latency_us"] > 100


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "has no world"),
        ({"network": ECHO["network"]}, r"has \[network\]"),
        ({"version": 1}, r"version: 1 is not known here; allowed: 2. From 1 to 2: \[network\] has preset"),
        (changed("echo.size", 4), "echo.size"),
        (changed("echo.size", "4"), "one of B, KiB"),
        (changed("echo.size", "4 furlongs"), "one of B, KiB"),
        (changed("echo.rounds", 1), "echo.rounds = 1; allowed is at least 2"),
        ({"echo": ECHO["echo"]}, r"has neither \[network\] nor a twin"),
        ({**ECHO, "port": {}}, r"has \[network\] and \[echo\] and \[port\]"),
        (ECHO | {"echo": None, "program": [{"name": "ring"}] * 2}, "two programs of the label 'ring'"),
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
        ("network.adapter", "series-9", r"network\.adapter: 'series-9' .* allowed: series-100, series-200"),
        ("network.hosts", 1, "network.hosts: '1' .* allowed: 2 to 64"),
        ("network.speed", 1, "network.speed: 1 is no key of it; allowed: host, first_use"),
        ("network.load.0.share", -0.5, r"network.load\[0\].share: '-0.5' .*0 to 1"),
        ("network.load.0.law", "fractal", "constant, poisson or on-off"),
        ("network.load.0.colour", "red", r"network.load\[0\]: .* allowed: share, and of the others burst"),
        ("network.cell_loss", 7.0, "network.cell_loss"),
        ("network.buffer", "-3 KiB", "network.buffer"),
        ("network.buffer", "1500 B", "network.buffer: '1500 B' .* allowed: a whole number of KiB"),
        ("echo.stack", "fore/aal9", r"echo\.stack: 'fore/aal9' .* /aal5 or /aal34, on asx100"),
        (
            "echo.stack",
            "rpc/aal5",
            r"echo\.stack: 'rpc/aal5' .* rpc/tcp, .* over aal5 .* \(a socket needs a transport, TCP ",
        ),
        (
            "echo.stack",
            "pvm-normal/tcp/aal5",
            r"echo\.stack: 'pvm-normal/tcp/aal5' .* pvm-normal/udp, .* over aal5",
        ),
        ("echo.stack", "fore/ethernet", r"echo\.stack: 'fore/ethernet'"),
        ("network.preset", "asx9", r"network: 'asx9' is not allowed here; allowed: ethernet10, fddi"),
        ("network.link", "taxi", r"network\.link: 'taxi' is not allowed here; allowed: oc3c, taxi100$"),
        (
            "network.reserve",
            "1 Gbit/s",
            r"network\.reserve: '1 Gbit/s' .* what is left .* carries 98\.148148",
        ),
        ("network.nodelay", False, r"network\.nodelay: 'false' .* nothing, on circuits without sockets"),
        ("network.buffer", "16 KiB", r"network\.buffer: '16 KiB' .* nothing, on circuits without sockets"),
    ],
)
def test_a_name_that_no_file_has_is_refused(path: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(Scenario.of(changed(path, value)))


def test_a_message_that_no_datagram_takes_is_refused_by_its_key() -> None:
    document = ECHO | {"echo": {"stack": "rpc/udp/aal5", "size": "16 KiB"}}
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


def test_a_scenario_has_its_ranks_carried_by_the_transport_of_their_stack() -> None:
    scenario = Scenario.read(ROOT / "examples" / "scenarios" / "ring-on-a-lossy-fabric.toml")
    direct = simulate(scenario)
    assert direct.metrics["verified_ratio"] == 1
    assert direct.metrics["lost_packets"] > 0
    assert simulate(scenario).digest == direct.digest
    # What TCP finds by its timer of 200 ms the direct transport finds by its own of 200 us.
    over_tcp = simulate(scenario.on(stack="mpi/openmpi")).metrics
    assert over_tcp["time_s"] > 5 * direct.metrics["time_s"]


def test_the_twin_lies_beside_its_scenario(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "scenarios" / "ring-on-a-twin.toml").read_text()
    (tmp_path / "s.toml").write_text(text)
    scenario = Scenario.read(tmp_path / "s.toml")
    assert scenario.twin == str((tmp_path / "twin.toml").resolve())
    with pytest.raises(InputError, match=r"twin\.toml: cannot be read"):
        simulate(scenario)
