"""The network of a cluster, out of round trips that are exact."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from wiretwin.errors import InputError
from wiretwin.fit.cluster import network_of, network_text
from wiretwin.model.network import Network, network_table, resolved, table_in
from wiretwin.results import Launch, Layer, Result

HOSTS = ["a1", "a2", "a3", "b1", "b2", "b3"]
SIZES = (4, 1 << 18)
GBIT_S = {"near": 10.0, "further": 2.0, "b2": 0.5}


def measured(folder: Path) -> Result:
    """Round trips at the rates of `GBIT_S`, 5 us for the shortest message and 3 us more between switches."""
    options = {"pairs": "all", "between": HOSTS}
    result = Result.create(
        folder,
        seed=1,
        created_utc="2026-01-01T00:00:00Z",
        options=options,
        layers=[Layer(layer="socket/tcp", name="socket/tcp")],
    )
    for number, (a, b) in enumerate(combinations(HOSTS, 2), 1):
        across = a[0] != b[0]
        rate = GBIT_S["b2"] if "b2" in (a, b) else GBIT_S["further" if across else "near"]
        half_ns = [5000 + 3000 * across + 8 * (size - 4) / rate * 1538 / 1448 for size in SIZES]
        count = 3
        columns = {
            "loop": ["echo"] * count * len(SIZES),
            "bytes": np.repeat(SIZES, count),
            "messages": [1] * count * len(SIZES),
            "delay_ns": [0] * count * len(SIZES),
            "batch": [1] * count * len(SIZES),
            "index": list(range(count)) * len(SIZES),
            "value_ns": np.repeat([round(2 * half) for half in half_ns], count),
        }
        launch = Launch(
            launch=number,
            name="socket/tcp",
            order=number - 1,
            started_utc="2026-01-01T00:00:00Z",
            seconds=1.0,
            status="ok",
            hosts=(a, b),
        )
        result.append(launch, columns)
    result.finish("complete")
    return result


def gbit_s(rate: str) -> float:
    return float(rate.split()[0]) / 1e9


def test_lines_have_the_rates_and_delays_of_their_classes(tmp_path: Path) -> None:
    result = measured(tmp_path / "pairs")
    network, found = network_of(result)
    assert gbit_s(network["rate"]) == pytest.approx(GBIT_S["near"], rel=1e-3)
    own = {(line["from"], line["to"]): line for line in network["lines"] if "rate" in line}
    assert sorted(own) == [("switch1", "switch2"), ("switch2", "b2")]
    assert gbit_s(own["switch1", "switch2"]["rate"]) == pytest.approx(GBIT_S["further"], rel=1e-3)
    assert own["switch1", "switch2"]["delay"] == "3000 ns"
    assert gbit_s(own["switch2", "b2"]["rate"]) == pytest.approx(GBIT_S["b2"], rel=1e-3)
    file = tmp_path / "network.toml"
    file.write_text(network_text(network, found, result.digest()))
    assert "# slow: the adapter or cable of b2" in file.read_text()
    assert resolved(network_table(file)) == network
    assert (Network.parse(str(file)).hosts, Network.parse(str(file)).switches) == (6, 2)


def test_a_topology_of_slurm_gives_the_switches(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text("SwitchName=leaf1 Nodes=a[1-3]\nSwitchName=leaf2 Nodes=b[1-9]\n"
                    "SwitchName=top Switches=leaf[1-2]\n")  # fmt: skip
    result = measured(tmp_path / "pairs")
    network, _ = network_of(result, topology=table_in(file, {}))
    own = {(line["from"], line["to"]): line for line in network["lines"] if "rate" in line}
    assert sorted(own) == [("leaf2", "b2"), ("top", "leaf1"), ("top", "leaf2")]
    assert own["top", "leaf1"]["delay"] == "1500 ns"
    assert [node["name"] for node in network["nodes"] if node["kind"] == "host"][:6] == HOSTS
    file.write_text("SwitchName=leaf1 Nodes=a[1-3]\n")
    with pytest.raises(InputError, match="--topology: 'b1' is not in it"):
        network_of(result, topology=table_in(file, {}))
