"""Networks as objects: read, checked, counted, and wrong ones rejected by key, value and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretwin as wt
from wiretwin.errors import InputError
from wiretwin.predict.model import Site


def test_a_network_is_made_from_a_name_and_parameters() -> None:
    network = wt.Network("fat-tree", hosts=64, rate="100 Gbit/s")
    assert (network.hosts, network.switches, network.lines) == (64, 16, 256)
    assert network.parameters == {"hosts": 64, "rate": "100 Gbit/s"}
    assert str(network) == "fat-tree:hosts=64,rate=100Gbit/s"


def test_a_text_an_object_and_a_file_are_the_same_network(tmp_path: Path) -> None:
    text = "dumbbell:hosts=6,rate=1Gbit/s,trunk_rate=100Mbit/s"
    made = wt.Network("dumbbell", hosts=6, rate="1 Gbit/s", trunk_rate="100 Mbit/s")
    file = tmp_path / "network.toml"
    file.write_text(
        '[network]\ntopology = "dumbbell"\nhosts = 6\nrate = "1 Gbit/s"\ntrunk_rate = "100 Mbit/s"\n'
    )
    assert wt.Network.parse(text) == made == wt.Network.parse(str(file)) == wt.read_network(made)
    assert wt.Network.parse(str(made)) == made


def test_a_topology_that_was_given_no_hosts_has_as_many_as_are_needed() -> None:
    assert wt.Network.parse("star:rate=1Gbit/s", hosts=5).hosts == 5
    assert wt.Network.parse("star:hosts=9,rate=1Gbit/s", hosts=5).hosts == 9


def test_nodes_and_lines_can_be_listed(tmp_path: Path) -> None:
    file = tmp_path / "office.toml"
    file.write_text(
        """
[network]
topology = "listed"
rate = "1 Gbit/s"
nodes = [{ name = "a", kind = "host" }, { name = "b", kind = "host" }, { name = "s", kind = "switch" }]
lines = [{ from = "a", to = "s" }, { from = "s", to = "b", rate = "100 Mbit/s", delay = "5 us" }]
"""
    )
    network = wt.Network.parse(str(file), hosts=5)
    assert (network.topology, network.hosts, network.switches, network.lines) == ("listed", 2, 1, 4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "cube:hosts=8,rate=1Gbit/s",
            "--network topology: 'cube' is not allowed here; allowed: back-to-back, star",
        ),
        ("star:hosts=8,rate=0Gbit/s", "--network rate"),
        ("star:hosts=8,rate=1", "--network rate"),
        (
            "star:hosts=10000000,rate=1Gbit/s",
            "--network hosts: 10000000 is not allowed here; allowed: 2 to 131072",
        ),
        ("star:hosts=8,rate=1Gbit/s,levels=2", "--network levels"),
        ("star:hosts=8,rate=1Gbit/s,paint=red", "--network paint"),
        ("nowhere.toml", "nowhere.toml: cannot be read: No such file"),
    ],
)
def test_a_network_that_cannot_be_is_rejected_by_name(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        wt.Network.parse(text)
    assert said in str(error.value)


def test_a_file_that_is_no_network_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    for content, said in (
        ("[network", "not TOML"),
        ("a = 1", "network.topology: is needed"),
        ('[network]\ntopology = "star"', "--network rate: is needed"),
    ):
        file.write_text(content)
        with pytest.raises(InputError, match=said):
            wt.Network.parse(str(file))
    with pytest.raises(InputError, match=r"lines\[0\].to"):
        wt.Network(
            "listed",
            rate="1 Gbit/s",
            nodes=[{"name": "a", "kind": "host"}, {"name": "b", "kind": "host"}],
            lines=[{"from": "a", "to": "c"}],
        )


SLURM = """
# leaves
SwitchName=s0 Nodes=tux[00-03],mole   # five
switchname=s1 Nodes=tux[04-05,9]
SwitchName=core Switches=s[0-1] LinkSpeed=900
"""


def test_a_name_that_is_no_network_is_told_of_both_kinds() -> None:
    with pytest.raises(InputError, match=r"'cube' .* a preset, ethernet10, .*; or a topology, back-to-back"):
        wt.read_network("cube:hosts=8")


def test_a_topology_of_slurm_is_a_network(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(SLURM)
    network = wt.Network.parse(f"{file}:rate=10Gbit/s,delay=1us")
    assert (network.hosts, network.switches, network.lines) == (8, 3, 20)
    names = [node["name"] for node in network.plan["nodes"] if node["kind"] == "host"]
    assert names == ["tux00", "tux01", "tux02", "tux03", "mole", "tux04", "tux05", "tux9"]


SLURM_YAML = """
- topology: other
  flat: true
- topology: main
  cluster_default: true
  tree:
    switches:
      - switch: s0
        nodes: tux[00-03],mole
      - switch: s1
        nodes: tux[04-05,9]
      - switch: core
        children: s[0-1]
- topology: spare
  tree:
    switches: [{switch: s, nodes: a}]
"""


def test_both_files_of_slurm_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "topology.conf").write_text(SLURM)
    (tmp_path / "topology.yaml").write_text(SLURM_YAML)
    conf, yaml = (wt.Network.parse(f"{tmp_path}/topology.{end}:rate=10Gbit/s") for end in ("conf", "yaml"))
    assert yaml == conf


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- [", "not YAML"),
        ("a: 1", "tree: 'none' is not allowed here; allowed: one topology of the type tree"),
        (SLURM_YAML.replace("cluster_default: true", ""), "tree: 'main, spare'"),
        (
            SLURM_YAML.replace("switch: s1", "switch: s0"),
            r"main.tree.switches\[1\]: 's0' .* each switch once",
        ),
        (SLURM_YAML.replace("nodes: tux[04-05,9]", "nodes: 5"), r"main.tree.switches\[1\]: .*nodes: NAMES"),
        (SLURM_YAML.replace("s[0-1]", "s[1-0]"), r"main.tree.switches\[2\]: '\[1-0\]'"),
    ],
)
def test_a_wrong_yaml_of_slurm_is_rejected(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "topology.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=f"topology.yaml: {said}"):
        wt.Network.parse(f"{file}:rate=1Gbit/s")


def test_a_scenario_of_version_1_is_rejected_as_a_network_too(tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    file.write_text('format = "wiretwin-scenario"\nversion = 1\n[network]\nswitch = "asx100"\n')
    for read in (wt.Network.parse, wt.read_network, wt.Scenario.read):
        with pytest.raises(InputError, match=r"old.toml: version: 1 .* From 1 to 2: \[network\] has preset"):
            read(str(file))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            {"network": "gige:fidelity=cell"},
            "--network fidelity: 'cell' is not allowed here; allowed: packet, for gige",
        ),
        ({"network": "shared-cable:rate=1Gbit/s,fidelity=cell"}, "--network"),
        ({"network": "star:hosts=2,rate=1Gbit/s"}, "--ranks: 3 is not allowed here; allowed: 2 at most"),
        ({"network": "an2", "stack": "tcp/aal5"}, "--stack: 'tcp/aal5'"),
    ],
)
def test_ranks_that_have_no_place_are_rejected(words: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as error:
        Site.of(3, **words)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (SLURM, "", "rate: is needed"),
        (SLURM, "rate", "'rate' is not allowed here; allowed: key=value"),
        ("Nodes=a", "rate=1Gbit/s", "line 1"),
        ("SwitchName=s", "rate=1Gbit/s", "Nodes=… or Switches=…"),
        ("SwitchName=s Nodes=a[3-1]", "rate=1Gbit/s", "'[3-1]' is not allowed here"),
        ("SwitchName=s Nodes=a[", "rate=1Gbit/s", "names and ranges"),
        ("SwitchName=s Nodes=a[0-999999]", "rate=1Gbit/s", "131072 names at most"),
        ("SwitchName=s Nodes=a\nSwitchName=s Nodes=b", "rate=1Gbit/s", "each switch once"),
        ("SwitchName=s Nodes=a Colour=red", "rate=1Gbit/s", "Colour=red"),
        ("SwitchName=s Nodes=a,b\nSwitchName=t Nodes=c", "rate=1Gbit/s", "no way from a to c"),
    ],
)
def test_a_wrong_topology_of_slurm_is_rejected(tmp_path: Path, text: str, words: str, said: str) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        wt.Network.parse(f"{file}:{words}")
    assert said in str(error.value)
