"""The virtual network of a run: circuits by topology, placement by load."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wiretwin.cli import main
from wiretwin.errors import InputError
from wiretwin.scenario.circuits import FIRST_VCI, Host, lay_out, parse_hosts


def alone(ranks: int) -> tuple[Host, ...]:
    """A host for each rank."""
    return tuple(Host(f"h{number}") for number in range(ranks))


@pytest.mark.parametrize(
    ("topology", "ranks", "pairs"),
    [
        ("line", 5, 4),
        ("ring", 5, 5),
        ("ring", 2, 1),
        ("mesh", 6, 7),
        ("torus", 9, 18),
        ("torus", 4, 4),
        ("star", 5, 4),
        ("tree", 7, 6),
        ("all", 5, 10),
        ("all", 1, 0),
    ],
)
def test_neighbours_of_a_topology_have_three_circuits_each_way(topology: str, ranks: int, pairs: int) -> None:
    network = lay_out(topology, ranks, alone(ranks))
    assert len(network.circuits) == 6 * pairs
    ways = {(one.sender, one.receiver, one.role) for one in network.circuits}
    assert len(ways) == 6 * pairs
    assert all((other, one, role) in ways for one, other, role in ways)
    categories = {one.role: one.category for one in network.circuits}
    assert categories in ({"ordinary": "ubr", "backup": "abr", "control": "vbr"}, {})


def test_ranks_go_where_most_is_free_and_neighbours_stay_together() -> None:
    hosts = parse_hosts("busy:4=3.5, idle:4 ,half:4=2")
    network = lay_out("line", 6, hosts)
    assert network.placement == ("idle",) * 4 + ("half",) * 2
    assert {(one.from_host, one.to_host) for one in network.circuits} == {("idle", "half"), ("half", "idle")}
    crowded = lay_out("line", 12, hosts).placement
    assert [crowded.count(host.name) for host in hosts] == [2, 6, 4]


def test_every_circuit_of_a_link_has_a_number_of_its_own() -> None:
    network = lay_out("all", 5, alone(5))
    for host in network.hosts:
        used = [one.vci_out for one in network.circuits if one.from_host == host.name]
        used += [one.vci_in for one in network.circuits if one.to_host == host.name]
        assert sorted(used) == list(range(FIRST_VCI, FIRST_VCI + len(used)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lay_out("cube", 8, alone(8)), "TOPOLOGY"),
        (lambda: lay_out("ring", 0, alone(1)), "--ranks"),
        (lambda: lay_out("mesh", 8, alone(8), across=3), "a divisor of 8"),
        (lambda: lay_out("ring", 8, alone(8), across=2), "for a mesh or a torus"),
        (lambda: lay_out("star", 60, alone(60), control_Mbit_s=5.0), "guaranteed on the line of h0"),
        (
            lambda: lay_out("ring", 4, alone(4), backup_Mbit_s=200.0),
            "'200 Mbit/s' is not allowed here; allowed: above 0, to 149.76",
        ),
        (lambda: parse_hosts("a,a"), "twice"),
        (lambda: parse_hosts("a:0"), "NAME"),
        (lambda: parse_hosts("a=-1"), "NAME"),
        (lambda: parse_hosts("a:x"), "NAME"),
    ],
)
def test_what_cannot_be_is_refused_by_name(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=message):
        call()


def test_the_command_prints_circuits_and_keeps_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "circuits.json"
    with pytest.raises(SystemExit) as ended:
        main(["circuits", "ring", "--ranks", "4", "--hosts", "a:2,b:2", "-o", str(out), "--format", "json"])
    assert ended.value.code == 0
    said = capsys.readouterr()
    assert "a: ranks 0 1" in said.err
    assert said.out.count('"ordinary"') == 4
    kept = json.loads(out.read_text())
    assert kept["placement"] == ["a", "a", "b", "b"]
    assert len(kept["circuits"]) == 12


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--line", "fast"],
            "--line: 'fast' is not a rate; allowed: a number with a unit (kbit, Mbit, Gbit)",
        ),
        (["--backup", "50"], "--backup: '50' has no unit; allowed: a number with a unit (kbit, Mbit, Gbit)"),
        (["--control", "0kbit"], "--control: '0kbit' is out of range"),
        (["--backup", "1Gbit"], "--backup: '1000 Mbit/s' is not allowed here; allowed: above 0, to 149.76"),
        (
            ["--line", "64 kbit/s", "--backup", "64kbit"],
            "--control: '1 Mbit/s' is not allowed here; allowed: ",
        ),
        (["--control", "100Mbit"], "--control: '100 Mbit/s' makes 200 Mbit/s guaranteed on the line of "),
        (["-o", "/no/such/place.json"], "/no/such/place.json: not written"),
    ],
)
def test_the_command_refuses_before_it_prints(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["circuits", "ring", "--hosts", "a,b,c,d", *words])
    assert ended.value.code in (2, 6)
    said = capsys.readouterr()
    assert message in said.err
    assert not said.out
