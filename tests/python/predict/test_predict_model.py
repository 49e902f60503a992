"""From a twin to the network model: exact values, and what is absent is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from predict_help import TWIN

from wiretwin.errors import InputError
from wiretwin.mpi.compute import Given
from wiretwin.mpi.runtime import simulate
from wiretwin.predict.model import Deal, Site, deals, layer_model, single_host
from wiretwin.twin import Twin

MPI = "mpi4py/mpich"


def flat(ps: int) -> list[dict[str, int]]:
    return [{"from_bytes": 0, "base_ps": ps, "per_byte_fs": 0}]


def test_the_model_of_a_twin_is_exact_and_whole() -> None:
    assert single_host(Twin.parse(TWIN), MPI, 3) == {
        "nodes": [{"name": "box", "cores": 2, "idle": "yield", "quantum_ps": 4_000_000_000}],
        "placement": [0, 0, 0],
        "inter": None,
        "link": None,
        # A message to oneself: two calls.
        "own": {
            "call_ps": 90_000,
            "rendezvous_from_bytes": None,
            "unexpected_copy": None,
            **dict.fromkeys(("overhead_send", "overhead_recv"), flat(90_000)),
            **dict.fromkeys(("latency", "gap"), flat(0)),
        },
        "intra": {
            "call_ps": 90_000,
            "rendezvous_from_bytes": 65_537,
            "overhead_send": [
                {"from_bytes": 0, "base_ps": 500_000, "per_byte_fs": 50_000},
                {"from_bytes": 8192, "base_ps": 700_123, "per_byte_fs": 25_000},
            ],
            "latency": [{"from_bytes": 0, "base_ps": 700_000, "per_byte_fs": 200_000}],
            "overhead_recv": [{"from_bytes": 0, "base_ps": 600_000, "per_byte_fs": 50_000}],
            "gap": [{"from_bytes": 0, "base_ps": 800_000, "per_byte_fs": 100_000}],
        },
    }


def test_receivers_that_fetch_are_part_of_the_model() -> None:
    fetch = """[[layers."mpi4py/mpich".fetch]]
from_bytes = 0
base_ns = { value = 900, low = 800, high = 1000 }
per_byte_ns = { value = 0.08, low = 0.07, high = 0.09 }
samples = 40
"""
    layer = Twin.parse(TWIN.replace("[layers.shm]", fetch + "[layers.shm]")).layer(MPI)
    assert layer_model(layer)["fetch"] == [{"from_bytes": 0, "base_ps": 900_000, "per_byte_fs": 80_000}]
    plain = layer_model(Twin.parse(TWIN).layer(MPI))
    assert layer_model(layer).keys() - plain.keys() == {"fetch", "fetch_unchanged"}
    assert single_host(Twin.parse(TWIN), MPI, 2)["intra"].keys() == plain.keys()
    # An echo sends memory that it does not write: its 1800 ns and 0.3 ns a byte, less 1200 ns of an envelope
    # and with the call of 90 ns that the receive is charged before.
    assert layer_model(layer)["fetch_unchanged"] == [
        {"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0},
        {"from_bytes": 65_537, "base_ps": 690_000, "per_byte_fs": 300_000},
    ]


@pytest.mark.parametrize("ends", ["", "busy_send busy_recv"], ids=["one after the other", "at once"])
def test_an_echo_of_what_receivers_fetch_takes_what_was_measured(tmp_path: Path, ends: str) -> None:
    # Busy for longer, the two, than half of an echo takes: their latency is negative.
    busy = "".join(
        f"""[[layers."mpi4py/mpich".{end}]]
from_bytes = 0
base_ns = {{ value = 1200, low = 1200, high = 1200 }}
per_byte_ns = {{ value = 0.1, low = 0.1, high = 0.1 }}
samples = 40
"""
        for end in ends.split()
    )
    fetch = """[[layers."mpi4py/mpich".fetch]]
from_bytes = 0
base_ns = { value = 900, low = 800, high = 1000 }
per_byte_ns = { value = 0.9, low = 0.8, high = 1.0 }
samples = 40
"""
    twin = Twin.parse(TWIN.replace("[layers.shm]", fetch + busy + "[layers.shm]"))
    model = json.dumps(single_host(twin, MPI, 2))
    took: dict[str, float] = {}
    for what, line in (("unchanged", "pass"), ("written", "out += 1")):
        script = tmp_path / f"{what}.py"
        script.write_text(
            f"""import sys
import numpy as np
from mpi4py import MPI
comm, out, into = MPI.COMM_WORLD, np.ones(20000), np.zeros(20000)
for _ in range(int(sys.argv[1])):
    {line}
    if comm.rank == 0:
        comm.Send(out, 1)
        comm.Recv(into, 1)
    else:
        comm.Recv(into, 0)
        comm.Send(out, 0)
""",
            encoding="utf-8",
        )
        few, many = (simulate(script, [n], 2, model, compute=Given()).seconds for n in ("10", "60"))
        took[what] = 1e9 * (many - few) / 100  # the first messages had not gone before
    layer = twin.layer(MPI)
    assert took["unchanged"] == pytest.approx(layer.at("half_round_trip", 160_000), rel=0.01)
    assert took["written"] > 2 * took["unchanged"]


def test_ends_that_copy_at_once_work_as_long_as_alone_and_a_half_round_trip_stays() -> None:
    line = """from_bytes = {start}{end}
base_ns = {{ value = {base}, low = {base}, high = {base} }}
per_byte_ns = {{ value = {rate}, low = {rate}, high = {rate} }}
samples = 40
"""
    busy = "".join(
        f'[[layers."mpi4py/mpich".busy_{end}]]\n' + line.format(start=start, end=to, base=base, rate=rate)
        for end, start, to, base, rate in (
            ("send", 0, "\nto_bytes = 4096", 500, 0.25),
            ("send", 4096, "", 600, 0.25),
            ("recv", 0, "", 600, 0.5),
        )
    )
    plain, layer = (
        Twin.parse(text).layer(MPI) for text in (TWIN, TWIN.replace("[layers.shm]", busy + "[layers.shm]"))
    )
    model = layer_model(layer)
    assert model["overhead_recv"] == [{"from_bytes": 0, "base_ps": 600_000, "per_byte_fs": 500_000}]
    assert [line["from_bytes"] for line in model["latency"]] == [0, 4096]
    for size in (0, 1000, 4096, 8191, 8192, 100_000):
        whole = 0
        for part in ("overhead_send", "latency", "overhead_recv"):
            held = [one for one in model[part] if one["from_bytes"] <= size][-1]
            whole += 1000 * held["base_ps"] + held["per_byte_fs"] * size
        assert whole == pytest.approx(1e6 * plain.at("half_round_trip", size), abs=2000)
    assert layer_model(layer, "low")["overhead_recv"][0]["base_ps"] == 500_000


def test_the_sides_move_times_by_the_interval_of_the_half_round_trip_at_their_size() -> None:
    layer = Twin.parse(TWIN).layer(MPI)
    low, high = layer_model(layer, "low"), layer_model(layer, "high")
    assert low["call_ps"] == 80_000
    assert low["latency"] == [{"from_bytes": 0, "base_ps": 583_333, "per_byte_fs": 193_333}]
    assert high["call_ps"] == 100_000
    assert high["latency"] == [{"from_bytes": 0, "base_ps": 816_667, "per_byte_fs": 206_667}]
    assert high["overhead_send"][1] == {"from_bytes": 8192, "base_ps": 816_811, "per_byte_fs": 25_833}
    # The half round trip has one line, and breaks no other.
    assert [one["from_bytes"] for one in high["overhead_send"]] == [0, 8192]
    assert low["rendezvous_from_bytes"] == high["rendezvous_from_bytes"] == 65_537


def test_a_layer_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(InputError, match=r"'pvm' is not in the twin; it has mpi4py/mpich, shm"):
        single_host(Twin.parse(TWIN), "pvm", 2)


def test_a_quantity_that_was_not_fitted_is_named() -> None:
    with pytest.raises(
        InputError, match=r"overhead_send was not fitted for this layer; it has half_round_trip"
    ):
        single_host(Twin.parse(TWIN), "shm", 2)


def test_no_ranks_are_refused() -> None:
    with pytest.raises(InputError, match=r"--ranks: 0 .*1 and above"):
        single_host(Twin.parse(TWIN), MPI, 0)


def test_a_line_is_broken_where_the_half_round_trip_is_less_well_known() -> None:
    known = """base_ns = { value = 1800, low = 1500, high = 2100 }
per_byte_ns = { value = 0.3, low = 0.29, high = 0.31 }
"""
    vague = """base_ns = { value = 2000, low = 1000, high = 3000 }
per_byte_ns = { value = 0.2, low = 0.1, high = 0.4 }
"""
    first = f"from_bytes = 0\n{known}samples = 400\n[layers.shm]"
    broken = (
        f"from_bytes = 0\nto_bytes = 65536\n{known}samples = 400\n"
        f'[[layers."{MPI}".half_round_trip]]\nfrom_bytes = 65536\n{vague}samples = 400\n[layers.shm]'
    )
    assert first in TWIN
    layer = Twin.parse(TWIN.replace(first, broken)).layer(MPI)
    assert layer_model(layer)["latency"] == layer_model(Twin.parse(TWIN).layer(MPI))["latency"]
    assert layer_model(layer, "low")["latency"] == [
        {"from_bytes": 0, "base_ps": 583_333, "per_byte_fs": 193_333},
        {"from_bytes": 65536, "base_ps": 350_000, "per_byte_fs": 100_000},
    ]


def test_no_side_of_a_line_with_a_value_below_nothing_leaves_negative_time() -> None:
    steep = TWIN.replace(
        "base_ns = { value = 700.1234, low = 600, high = 800 }\n"
        "per_byte_ns = { value = 0.025, low = 0.02, high = 0.03 }",
        "base_ns = { value = -400.0, low = -500, high = -300 }\n"
        "per_byte_ns = { value = 0.05, low = 0.04, high = 0.06 }",
    )
    assert steep != TWIN
    # A byte is known less well than a message, so that its end lies lower.
    known = "per_byte_ns = { value = 0.3, low = 0.29, high = 0.31 }"
    layer = Twin.parse(steep.replace(known, known.replace("0.29", "0.01"), 1)).layer(MPI)
    for side in ("value", "low", "high"):
        for line in layer_model(layer, side)["overhead_send"]:
            assert 1000 * line["base_ps"] + line["per_byte_fs"] * line["from_bytes"] >= -1000, (side, line)


def test_ranks_that_were_measured_on_one_core_do_what_they_did_there() -> None:
    figure = "launches = 3, samples = 30 }"
    sharing = f"""[layers."mpi4py/mpich".sharing]
idle = "yield"
one_core_us = {{ value = 5.0, low = 4.0, high = 6.0, {figure}
turn_us = {{ value = 3.5, low = 2.5, high = 4.5, {figure}
slice_ms = {{ value = 3.95, low = 3.0, high = 4.0, {figure}
"""
    twin = Twin.parse(TWIN.replace("[layers.shm]", sharing + "[layers.shm]"))
    node = {"name": "box", "cores": 2, "idle": "yield", "quantum_ps": 3_950_000_000, "fair": False}
    assert single_host(twin, MPI, 4)["nodes"] == [node | {"turn_ps": 3_500_000}]
    # The slice is the kernel's, on either side of the layer's intervals.
    assert single_host(twin, MPI, 4, "low")["nodes"] == [node | {"turn_ps": 2_500_000}]
    for share, fair in ((0.55, True), (0.96, False)):
        kept = f"kept_share = {{ value = {share}, low = 0.5, high = 1.0, {figure}\n"
        twin = Twin.parse(TWIN.replace("[layers.shm]", sharing + kept + "[layers.shm]"))
        model = single_host(twin, MPI, 4)
        assert model["nodes"] == [node | {"turn_ps": 3_500_000, "fair": fair}]
        assert "keeping" not in model
    twin = Twin.parse(TWIN.replace("[layers.shm]", sharing + 'keeping = ["recv"]\n[layers.shm]'))
    assert single_host(twin, MPI, 4)["keeping"] == ["recv"]
    for offers, said in ((True, {"offers": True}), (False, {})):
        twin = Twin.parse(
            TWIN.replace("[layers.shm]", f"{sharing}offers = {str(offers).lower()}\n[layers.shm]")
        )
        assert single_host(twin, MPI, 4)["nodes"] == [node | {"turn_ps": 3_500_000} | said]


def test_open_mpi_gives_way_where_its_launcher_finds_more_ranks_than_cores() -> None:
    text = TWIN.replace('"mpi4py/mpich"', '"mpi/openmpi"').replace('idle = "yield"', 'idle = "spin"')
    twin = Twin.parse(text)

    def idle(ranks: int, **site: Any) -> set[str]:
        model = Site.of(ranks, **site).model(twin, "mpi/openmpi")
        return {node["idle"] for node in model["nodes"]}

    assert idle(2) == {"spin"}
    assert idle(4) == {"yield"}
    # Each host of a testbed has as many ranks as its own launcher counts, whoever else is on the machine.
    testbed = "testbed:hosts=4,rate=100Mbit/s,delay=5us"
    assert idle(4, network=testbed) == {"spin"}
    assert idle(8, network=testbed.replace("4,", "2,"), ranks_per_host=4) == {"yield"}
    # What its ranks were measured to do on one core is what they do then, and no others.
    sharing = '[layers."mpi/openmpi".sharing]\nidle = "yield"\n' + "".join(
        f"{name} = {{ value = {value}, low = {value}, high = {value}, launches = 3, samples = 12 }}\n"
        for name, value in (("one_core_us", 1.5), ("turn_us", 1.4), ("slice_ms", 4.0), ("kept_share", 1.0))
    )
    twin = Twin.parse(text.replace("[layers.shm]", sharing + "[layers.shm]"))
    assert idle(2) == {"spin"}
    node = Site.of(4).model(twin, "mpi/openmpi")["nodes"][0]
    assert (node["idle"], node["turn_ps"], node["fair"]) == ("yield", 1_400_000, False)
    assert idle(4, network=testbed) == {"spin"}
    other = Twin.parse(TWIN.replace('idle = "yield"', 'idle = "spin"'))
    assert single_host(other, MPI, 4)["nodes"][0]["idle"] == "spin"


def test_ranks_are_dealt_to_cores_in_every_way_but_as_many_on_each() -> None:
    twin = Twin.parse(TWIN)
    assert deals(single_host(twin, MPI, 2), 7, seed=1) == []
    assert deals(single_host(twin, MPI, 4), 1, seed=1) == [Deal([0, 1, 0, 1], [0, 1, 2, 3])]
    four = deals(single_host(twin, MPI, 4), 20, seed=1)
    ways = [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]]
    assert sorted(one.cores for one in four) == [cores for cores in ways for _ in range(4)]
    for cores in ways:
        # Each rank of each core has it first as often as the other.
        pairs = [[rank for rank in range(4) if cores[rank] == core] for core in (0, 1)]
        first = [
            [one.order.index(a) < one.order.index(b) for a, b in pairs] for one in four if one.cores == cores
        ]
        assert sorted(first) == [[False, False], [False, True], [True, False], [True, True]]
    eight = deals(single_host(twin, MPI, 8), 7, seed=1)
    assert len(eight) == 7
    assert all(sum(one.cores) == 4 and one.cores[0] == 0 for one in eight)
    assert eight == deals(single_host(twin, MPI, 8), 7, seed=1)
    one_core = Twin.parse(TWIN.replace("cores = 2", "cores = 1"))
    assert [one.order for one in deals(single_host(one_core, MPI, 2), 7, seed=1)] == [[0, 1], [1, 0]]
    # On a host with a core for each, who is first makes no difference.
    model = single_host(one_core, MPI, 2)
    roomy = {
        **model,
        "nodes": [*model["nodes"], {**model["nodes"][0], "cores": 4}],
        "placement": [0, 0, 1, 1],
    }
    assert len(deals(roomy, 7, seed=1)) == 2


def test_ranks_on_one_host_are_told_its_name_and_on_several_their_numbers(tmp_path: Path) -> None:
    script = tmp_path / "name.py"
    script.write_text("from mpi4py import MPI\nprint(MPI.Get_processor_name())\n")
    twin = Twin.parse(TWIN)
    for network, names in ((None, ["box", "box"]), ("star:rate=1Gbit/s", ["node0", "node1"])):
        model = Site.of(2, network).model(twin, MPI)
        assert simulate(script, [], 2, json.dumps(model)).stdout == [f"{name}\n" for name in names]


def test_hosts_of_a_testbed_have_a_core_each_if_they_fill_the_machine() -> None:
    def nodes(ranks: int, hosts: int) -> list[tuple[int, int | None]]:
        model = Site.of(ranks, network=f"testbed:hosts={hosts},rate=1Gbit/s").model(Twin.parse(TWIN), MPI)
        return [(node["cores"], node.get("cores_of")) for node in model["nodes"]]

    assert Twin.parse(TWIN).host.cores == 2
    assert nodes(4, 4) == [(1, None), (1, None), (1, 0), (1, 1)]
    assert nodes(2, 4) == [(1, None), (1, None)]
    more = Twin.parse(TWIN.replace("cores = 2", "cores = 4"))
    model = Site.of(2, network="testbed:hosts=2,rate=1Gbit/s").model(more, MPI)
    assert [(node["cores"], node.get("cores_of")) for node in model["nodes"]] == [(4, None), (4, 0)]
    assert all(node["picks_anew"] for node in model["nodes"]), "its wire is a process"


def test_each_part_of_a_twin_is_moved_to_its_ends_by_itself_or_all_are_at_once() -> None:
    text = TWIN + "".join(
        f"""
[[layers."{MPI}".{part}]]
{of}
takes_us = {{ value = {value}, low = {value - 5.0}, high = {value + 5.0}, launches = 7, samples = 7 }}
"""
        for part, of, value in (("first", 'calls = ["Send"]', 20.0), ("cold", "after_us = 50.0", 10.0))
    )
    site, twin = Site.of(2, None, None, MPI), Twin.parse(text)
    middle = site.model(twin, MPI, fresh=True)
    apart, together = (site.ends(twin, MPI, apart=apart) for apart in (True, False))

    def moved(models: tuple[dict[str, Any], dict[str, Any]]) -> set[str]:
        return {key for model in models for key, value in model.items() if value != middle[key]}

    assert [moved(both) for both in apart] == [{"intra", "own"}, {"first"}, {"cold"}]
    assert [moved(both) for both in together] == [{"intra", "own", "first", "cold"}]
