"""What ibnetdiscover prints is a network: written here as its manual and its source describe it."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretwin as wt
from wiretwin.errors import InputError

HEAD = """\
#
# Topology file: generated on Sat Apr 25 22:00:55 2026
#
# Initiated from node 0008f10403960558 port 0008f10403960559
"""
TWO_SWITCHES = (
    HEAD
    + """
vendid=0x2c9
devid=0xcf09
sysimgguid=0xec0d9a0300c4a100
switchguid=0xec0d9a0300c4a100(ec0d9a0300c4a100)
Switch\t37 "S-ec0d9a0300c4a100"\t\t# "MF0;leaf1:MSB7800/U1" enhanced port 0 lid 2 lmc 0
[1]\t"H-ec0d9a0300000010"[1](ec0d9a0300000010) \t\t# "node1 mlx5_0" lid 4 4xEDR
[2]\t"H-ec0d9a0300000020"[1](ec0d9a0300000020) \t\t# "node2 HCA-1" lid 5 4xEDR
[35]\t"S-ec0d9a0300c4a200"[35]\t\t# "MF0;leaf2:MSB7800/U1" lid 3 4xHDR s=4 w=2 v=4
[36]\t"S-ec0d9a0300c4a200"[36]\t\t# "MF0;leaf2:MSB7800/U1" lid 3 4xHDR s=4 w=2 v=4
[37]\t"H-ec0d9a0300c4a108"[1](ec0d9a0300c4a108) \t\t# "Mellanox Technologies Aggregation Node" lid 9 4xEDR

vendid=0x2c9
devid=0xcf09
sysimgguid=0xec0d9a0300c4a200
switchguid=0xec0d9a0300c4a200(ec0d9a0300c4a200)
Switch\t37 "S-ec0d9a0300c4a200"\t\t# "MF0;leaf2:MSB7800/U1" enhanced port 0 lid 3 lmc 0
[1]\t"H-ec0d9a0300000030"[1](ec0d9a0300000030) \t\t# "node3 mlx5_0" lid 6 4xFDR
[2]\t"H-ec0d9a0300000031"[1](ec0d9a0300000031) \t\t# "node3 mlx5_1" lid 7 4xFDR
[3]\t"H-ec0d9a0300000040"[2](ec0d9a0300000041) \t\t# "MT23108 InfiniHost Mellanox Technologies" lid 8 1xSDR
[35]\t"S-ec0d9a0300c4a100"[35]\t\t# "MF0;leaf1:MSB7800/U1" lid 2 4xHDR
[36]\t"S-ec0d9a0300c4a100"[36]\t\t# "MF0;leaf1:MSB7800/U1" lid 2 4xHDR

vendid=0x2c9
devid=0xcf09
sysimgguid=0xec0d9a0300c4a100
caguid=0xec0d9a0300c4a108
Ca\t1 "H-ec0d9a0300c4a108"\t\t# "Mellanox Technologies Aggregation Node"
[1](ec0d9a0300c4a108) \t"S-ec0d9a0300c4a100"[37]\t\t# lid 9 lmc 0 "MF0;leaf1:MSB7800/U1" lid 2 4xEDR

vendid=0x2c9
devid=0x1017
sysimgguid=0xec0d9a0300000010
caguid=0xec0d9a0300000010
Ca\t1 "H-ec0d9a0300000010"\t\t# "node1 mlx5_0"
[1](ec0d9a0300000010) \t"S-ec0d9a0300c4a100"[1]\t\t# lid 4 lmc 0 "MF0;leaf1:MSB7800/U1" lid 2 4xEDR

caguid=0xec0d9a0300000020
Ca\t1 "H-ec0d9a0300000020"\t\t# "node2 HCA-1"
[1](ec0d9a0300000020) \t"S-ec0d9a0300c4a100"[2]\t\t# lid 5 lmc 0 "MF0;leaf1:MSB7800/U1" lid 2 4xEDR

caguid=0xec0d9a0300000030
Ca\t1 "H-ec0d9a0300000030"\t\t# "node3 mlx5_0"
[1](ec0d9a0300000030) \t"S-ec0d9a0300c4a200"[1]\t\t# lid 6 lmc 0 "MF0;leaf2:MSB7800/U1" lid 3 4xFDR

caguid=0xec0d9a0300000031
Ca\t1 "H-ec0d9a0300000031"\t\t# "node3 mlx5_1"
[1](ec0d9a0300000031) \t"S-ec0d9a0300c4a200"[2]\t\t# lid 7 lmc 0 "MF0;leaf2:MSB7800/U1" lid 3 4xFDR

caguid=0xec0d9a0300000040
Ca\t2 "H-ec0d9a0300000040"\t\t# "MT23108 InfiniHost Mellanox Technologies"
[2](ec0d9a0300000041) \t"S-ec0d9a0300c4a200"[3]\t\t# lid 8 lmc 0 "MF0;leaf2:MSB7800/U1" lid 3 1xSDR

caguid=0xec0d9a0300000050
Ca\t1 "H-ec0d9a0300000050"\t\t# "node5 mlx5_0"
"""
)
ALIKE = (
    HEAD
    + """
Switch\t8 "S-0000000000000001"\t\t# "ISR9024 Voltaire" base port 0 lid 6 lmc 0
[1]\t"H-000000000000000a"[1](b) \t\t# "a" lid 4 4x???
[8]\t"S-0000000000000002"[8]\t\t# "ISR9024 Voltaire" lid 3 4xSDR
[7]\t"R-0000000000000009"[1](c) \t\t# "router" lid 7 4xSDR

Switch\t8 "S-0000000000000002"\t\t# "ISR9024 Voltaire" base port 0 lid 3 lmc 0
[1]\t"H-000000000000000d"[1](e) \t\t# "d" lid 5 12xQDR
[8]\t"S-0000000000000001"[8]\t\t# "ISR9024 Voltaire" lid 6 4xSDR

Rt\t1 "R-0000000000000009"\t\t# "router"
[1](c) \t"S-0000000000000001"[7]\t\t# lid 7 lmc 0 "ISR9024 Voltaire" lid 6 4xSDR

Ca\t1 "H-000000000000000a"\t\t# "a"
[1](b) \t"S-0000000000000001"[1]\t\t# lid 4 lmc 0 "ISR9024 Voltaire" lid 6 4x???

Ca\t1 "H-000000000000000d"\t\t# "d"
[1](e) \t"S-0000000000000002"[1]\t\t# lid 5 lmc 0 "ISR9024 Voltaire" lid 3 12xQDR
"""
)


def read(folder: Path, text: str, name: str = "subnet.topo", words: str = "") -> wt.Network:
    file = folder / name
    file.write_text(text)
    return wt.Network.parse(f"{file}{words}")


@pytest.mark.parametrize("name", ["subnet.topo", "subnet.txt"])
def test_a_subnet_is_a_network_with_the_rates_of_its_links(tmp_path: Path, name: str) -> None:
    network = read(tmp_path, TWO_SWITCHES, name)
    assert (network.hosts, network.switches) == (4, 2)
    leaves = "MF0;leaf1:MSB7800/U1", "MF0;leaf2:MSB7800/U1"
    product = "H-ec0d9a0300000040"
    kinds = {node["name"]: node["kind"] for node in network.plan["nodes"]}
    assert kinds == dict.fromkeys(leaves, "switch") | dict.fromkeys(
        ("node1", "node2", "node3", product), "host"
    )
    gbit_s = sorted(
        (line["from"], line["to"], float(line["rate"].split()[0])) for line in network.plan["lines"]
    )
    assert gbit_s == [
        (leaves[0], leaves[1], 200),
        (leaves[0], leaves[1], 200),
        (leaves[0], "node1", 100),
        (leaves[0], "node2", 100),
        (leaves[1], product, 2),
        (leaves[1], "node3", pytest.approx(54.545, abs=0.001)),
        (leaves[1], "node3", pytest.approx(54.545, abs=0.001)),
    ]


def test_switches_described_alike_and_links_of_unknown_rate(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"lines\[0\]\.rate: is needed"):
        read(tmp_path, ALIKE)
    network = read(tmp_path, ALIKE, words=":rate=10Gbit/s")
    assert [node["name"] for node in network.plan["nodes"]] == [
        "ISR9024 Voltaire S-0000000000000001",
        "ISR9024 Voltaire S-0000000000000002",
        "a",
        "d",
    ]
    assert [line.get("rate") for line in network.plan["lines"]] == [None, "8 Gbit/s", "96 Gbit/s"]


def test_ranks_live_on_the_hosts_of_a_subnet(tmp_path: Path) -> None:
    from wiretwin.predict.collectives import choose

    file = tmp_path / "subnet.topo"
    file.write_text(TWO_SWITCHES)
    (found,) = (
        one
        for one in choose(ranks=4, twin="nothing", network=str(file), sizes=[1 << 20])
        if one.collective == "bcast"
    )
    # 1 MiB, or a quarter of it at least, has to cross the link of 2 Gbit/s.
    assert min(found.seconds.values()) > 8 * (1 << 20) / 4 / 2e9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "line 1: 'hello' is not allowed here; allowed: a Switch, a Ca, or a port of one"),
        (TWO_SWITCHES.replace("4xEDR", "4xEDX"), "a width of 1x, 2x, 4x, 8x, 12x, and a speed of SDR"),
        (TWO_SWITCHES.replace("4xEDR", "5xEDR"), "a width of 1x, 2x, 4x, 8x, 12x, and a speed of SDR"),
        (
            TWO_SWITCHES.partition("\ncaguid=0xec0d9a0300000020")[0],
            "'H-ec0d9a0300000020' is not allowed here",
        ),
        (
            ALIKE + ALIKE[len(HEAD) :],
            "line 24: 'S-0000000000000001' is not allowed here; allowed: each node once",
        ),
        (HEAD, "--network"),
    ],
)
def test_what_ibnetdiscover_does_not_print_is_rejected(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert said in str(error.value)
