"""Predictions of ranks on hosts that a network joins: exact times, contention, and bad input by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from predict_help import TWIN, wiretwin

import wiretwin as wt
from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.model import Network
from wiretwin.predict.hosts import free_model, less_network
from wiretwin.predict.model import Site, single_host
from wiretwin.predict.named import NAMED, run_simulated
from wiretwin.predict.predict import predict
from wiretwin.twin import Figure, Interrupt, Twin

MPI = "mpi4py/mpich"

#: One message of 1000 bytes, received by a rank that waits for it.
ONE_WAY = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
buffer = bytearray(1000)
if comm.rank == 0:
    comm.Send(buffer, dest=1)
else:
    comm.Recv(buffer, source=0)
"""

#: Every rank sends to rank 0 at once.
INCAST = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
buffer = bytearray(50_000)
if comm.rank:
    comm.Send(buffer, dest=0)
else:
    for source in range(1, comm.size):
        comm.Recv(buffer, source=source)
"""


def seconds(folder: Path, source: str, ranks: int, network: str | None) -> float:
    script = folder / "script.py"
    script.write_text(source)
    return predict(script, twin=Twin.parse(TWIN), ranks=ranks, network=network, compute_ps=0).seconds.value


def test_hosts_that_cost_nothing_show_the_network_alone(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ONE_WAY)
    network = "star:rate=1Gbit/s,delay=2us,switch_delay=1us,framing=0B,headers=0B"
    free = predict(script, twin="nothing", ranks=2, network=network, compute_ps=0)
    # 8000 bits on two lines, two delays and a switch.
    assert free.seconds.value == pytest.approx(2 * 8e-6 + 2 * 2e-6 + 1e-6)
    assert free.twin_sha256 is None
    assert "cost them nothing" in " ".join(free.warnings)
    assert free.seconds.value < seconds(tmp_path, ONE_WAY, 2, network)
    with pytest.raises(InputError) as refused:
        predict(script, twin="nothing", ranks=2)
    assert "with --network" in str(refused.value)


def test_a_site_without_a_network_is_the_twins_host() -> None:
    twin = Twin.parse(TWIN)
    assert Site.of(3).model(twin, MPI) == single_host(twin, MPI, 3)


def test_ranks_are_placed_host_by_host() -> None:
    model = Site.of(5, "star:rate=1Gbit/s", 2).model(Twin.parse(TWIN), MPI)
    assert model["placement"] == [0, 0, 1, 1, 2]
    assert len(model["nodes"]) == 3
    assert model["inter"] == model["intra"]
    assert model["network"] == {"topology": "star", "hosts": 3, "rate": "1 Gbit/s"}


def test_a_message_takes_its_ends_and_its_packet_on_each_line(tmp_path: Path) -> None:
    within = seconds(tmp_path, ONE_WAY, 2, None)
    between = seconds(tmp_path, ONE_WAY, 2, "star:rate=1Gbit/s,delay=2us,switch_delay=1us")
    # 1000 bytes and 90 of headers are 8.72 us on each of two lines.
    assert between - within == pytest.approx(2 * 8.72e-6 + 2 * 2e-6 + 1e-6, abs=1e-12)


def only_latency(base_ps: int, per_byte_fs: int) -> dict[str, Any]:
    """A layer whose ends do nothing."""
    lines = {
        part: [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}]
        for part in ("overhead_send", "overhead_recv", "gap")
    }
    return lines | {
        "call_ps": 0,
        "latency": [{"from_bytes": 0, "base_ps": base_ps, "per_byte_fs": per_byte_fs}],
    }


KEYS = "base_ps", "per_byte_fs"


def line(base_us: float, per_byte_ns: float, from_bytes: int = 0) -> dict[str, int]:
    return {
        "from_bytes": from_bytes, "base_ps": round(base_us * 1e6), "per_byte_fs": round(per_byte_ns * 1e6)
    }  # fmt: skip


def one_way_us(layer: dict[str, Any], network: str, size: int) -> float:
    """What a message takes from one host to another whose receiver waits for it."""
    model = free_model(1)
    model |= {
        "nodes": model["nodes"] * 2, "placement": [0, 1],
        "inter": layer, "network": Network.parse(network).plan,
    }  # fmt: skip
    world: Any = _core.World(2, json.dumps(model), seed=1)
    requests = world.post(0, ("send", 0, 1, 0, size, "standard")), world.post(1, ("recv", 0, 0, 0, size))
    for rank, request in enumerate(requests):
        world.post(rank, ("wait", [request], "all"))
    for _ in requests:
        for rank, _ in world.step():
            world.post(rank, ("finish",))
    return int(world.now_ps(1)) / 1e6


@pytest.mark.parametrize(
    ("then", "per_byte_ns", "sending_ns"),
    [
        ("star:hosts=4,rate=1Gbit/s,delay=5us", 9.4, 0.7),
        ("back-to-back:rate=1Gbit/s", 8.6, 0.7),
        ("star:hosts=2,rate=100Mbit/s", 86.0, 0.7),
        # The sender works for about as long as the network does.
        ("star:hosts=4,rate=1Gbit/s,delay=5us", 9.4, 8.7),
    ],
)
def test_on_the_network_that_it_was_measured_on_a_message_takes_what_it_took(
    then: str, per_byte_ns: float, sending_ns: float
) -> None:
    # Slower than each network at any size; longer ones go piece by piece.
    half = [line(32.0, 2 * per_byte_ns), line(51.0 + 2.0 * per_byte_ns, per_byte_ns, from_bytes=2000)]
    ends = [line(5.0, sending_ns)], [line(4.0, 0.5)]
    latency = [{**one, **{key: one[key] - ends[0][0][key] - ends[1][0][key] for key in KEYS}} for one in half]
    layer = {
        "call_ps": 0, "overhead_send": ends[0], "latency": latency, "overhead_recv": ends[1],
        "gap": [line(1.0, 0.1)],
    }  # fmt: skip
    left = less_network(layer, Network.parse(then))
    for size in (0, 1000, 1448, 1449, 1999, 2000, 3000, 20_000, 250_000):
        one = half[size >= 2000]
        took_us = (one["base_ps"] + one["per_byte_fs"] * size / 1000) / 1e6
        # Packets have headers, and lines go straight on between two breaks.
        headers_us = 1e-3 * per_byte_ns * 90 if size > 1448 else 1e-6
        assert one_way_us(left, then, size) == pytest.approx(took_us, abs=2 * headers_us), size
        assert one_way_us(left, "star:hosts=2,rate=10Gbit/s", size) < took_us


def test_what_was_between_the_measured_hosts_is_taken_out_of_a_prediction(tmp_path: Path) -> None:
    then = "back-to-back:rate=100Mbit/s,delay=5us"
    for size, lines in ((1000, 1), (100_000, 1)):
        packets = -(-size // 1448)
        # 90 bytes more for each packet, at 80 ns a byte.
        took_us = 0.08 * (size + 90 * packets) + 5.0
        left = less_network(only_latency(10**9, 90_000_000), Network.parse(then))["latency"]
        one = next(line for line in reversed(left) if line["from_bytes"] <= size)
        found_us = (one["base_ps"] + one["per_byte_fs"] * size // 1000) / 1e6
        assert found_us == pytest.approx(1000 + 0.09 * size - lines * took_us, abs=8)
    # A latency below what the network takes leaves nothing, and not less.
    left = less_network(only_latency(0, 0), Network.parse(then))
    lines = [line for part in ("latency", "last_packet", "gap") for line in left[part]]
    assert all(line["base_ps"] == line["per_byte_fs"] == 0 for line in lines)

    alone = Twin.parse(TWIN)
    apart = Twin.parse(TWIN.replace("[host]\n", f'[host]\nbetween = "a cable"\nnetwork = "{then}"\n'))
    script = tmp_path / "script.py"
    script.write_text(ONE_WAY)
    fast, slow = "back-to-back:rate=10Gbit/s", "back-to-back:rate=10Mbit/s"
    times = [
        predict(script, twin=twin, ranks=2, network=network, compute_ps=0)
        for twin in (alone, apart) for network in (fast, slow)
    ]  # fmt: skip
    # This twin's latency is less than that cable takes: its ends are what is left.
    latency_s = (
        float(
            alone.layer(MPI).latency[0].base_ns.value + 1000 * alone.layer(MPI).latency[0].per_byte_ns.value
        )
        / 1e9
    )
    for within, between in zip(times[:2], times[2:], strict=True):
        assert within.seconds.value - between.seconds.value == pytest.approx(latency_s, abs=2e-9)
    assert f"less what joined them then takes ({then})" in " ".join(times[2].warnings)
    broken = Twin.parse(TWIN.replace("[host]\n", '[host]\nnetwork = "star:rate=0"\n'))
    with pytest.raises(InputError) as refused:
        predict(script, twin=broken, ranks=2, network=fast, compute_ps=0)
    assert str(refused.value).startswith("host.network: 'star:rate=0'")


def test_hosts_of_a_testbed_share_the_cores_of_one_machine() -> None:
    network = Network.parse("testbed:rate=100Mbit/s,delay=5us", hosts=4)
    assert (network.plan["topology"], network.switches, network.shares_cores) == ("star", 1, True)
    assert Network("testbed", rate="1 Gbit/s").plan["topology"] == "back-to-back"
    assert str(network) == "testbed:hosts=4,rate=100Mbit/s,delay=5us"
    words = ["rows=64", "columns=64", "iterations=20", "stencil-point=1us"]
    took = {
        name: run_simulated(
            NAMED["jacobi"], words, twin=Twin.parse(TWIN), layer=MPI, ranks=8, network=f"{name}:rate=1Gbit/s"
        ).seconds
        for name in ("testbed", "star")
    }
    # Eight ranks on two cores compute in turns.
    assert took["testbed"] > 3 * took["star"]


#: One message of 1000 bytes for a rank that computes until long after it has come.
LATE = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
buffer = bytearray(1000)
if comm.rank == 0:
    comm.Send(buffer, dest=1)
else:
    for _ in range(3):
        MPI.Wtime()
    comm.Recv(buffer, source=0)
"""


def test_a_message_interrupts_who_computes_on_another_host_alone(tmp_path: Path) -> None:
    twin = Twin.parse(TWIN)

    def figure(value: float) -> Figure:
        return Figure(value=value, low=0.9 * value, high=1.1 * value, launches=3, samples=9)

    line = Interrupt(takes_us=figure(2.0), per_byte_ns=figure(1.0))
    layer = twin.layer(MPI).model_copy(update={"interrupt": line})
    interrupts = twin.model_copy(update={"layers": {**twin.layers, MPI: layer}})
    assert Site.of(2).model(interrupts, MPI) == Site.of(2).model(twin, MPI)
    assert "interrupt" not in Site.of(2, "star:rate=1Gbit/s").model(twin, MPI)["inter"]
    (segment,) = Site.of(2, "star:rate=1Gbit/s").model(interrupts, MPI, "high")["inter"]["interrupt"]
    assert segment == {"from_bytes": 0, "base_ps": 2_200_000, "per_byte_fs": 1_100_000}
    script = tmp_path / "script.py"
    script.write_text(LATE)
    taken = [
        predict(script, twin=one, ranks=2, network="star:rate=1Gbit/s", compute_ps=10**9).seconds.value
        for one in (twin, interrupts)
    ]
    assert taken[1] - taken[0] == pytest.approx(3e-6, abs=1e-9)


#: A sum of so many numbers.
SUM = """
import sys
from mpi4py import MPI
import numpy as np
mine, total = np.ones(int(sys.argv[1])), np.zeros(int(sys.argv[1]))
MPI.COMM_WORLD.Allreduce(mine, total)
assert (total == MPI.COMM_WORLD.size).all()
"""


@pytest.mark.parametrize(("numbers", "messages"), [(1, 1), (2, 2), (100, 2)])
def test_a_sum_between_hosts_goes_as_mpichs_rules_say(tmp_path: Path, numbers: int, messages: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(SUM)
    network = "back-to-back:rate=1Gbit/s,delay=1ms"
    found = predict(script, [str(numbers)], twin="nothing", ranks=2, network=network, compute_ps=0)
    assert found.seconds.value == pytest.approx(messages * 1e-3, rel=0.02)
    within = predict(script, [str(numbers)], twin=Twin.parse(TWIN), ranks=2, compute_ps=0)
    assert within.seconds.value < 1e-4


def test_senders_to_one_rank_share_its_line(tmp_path: Path) -> None:
    times = {ranks: seconds(tmp_path, INCAST, ranks, "star:rate=1Gbit/s") for ranks in (2, 5)}
    # 50,000 bytes are 35 packets with 90 bytes more each: 425 us of the line of rank 0 for each sender.
    alone = (50_000 + 35 * 90) * 8e-9
    assert times[2] > alone
    assert times[5] > 4 * alone
    assert times[5] < 4 * alone + times[2]


def test_packet_by_packet_a_message_takes_as_long_and_where_packets_are_lost_longer(tmp_path: Path) -> None:
    star = "star:rate=1Gbit/s,delay=2us,switch_delay=1us"
    short = [seconds(tmp_path, ONE_WAY, 2, f"{star},fidelity={name}") for name in ("message", "packet")]
    assert short[1] == pytest.approx(short[0], abs=1e-11)
    queued = [
        seconds(tmp_path, INCAST, 9, f"{star},fidelity=packet{queue}") for queue in ("", ",queue=16KiB")
    ]
    assert queued[0] == pytest.approx(seconds(tmp_path, INCAST, 9, star), rel=0.01)
    assert queued[1] > queued[0]


def test_a_compiled_program_has_the_same_result_on_every_network() -> None:
    words = ["elements=64", "rounds=2", "add=1ns"]
    twin = Twin.parse(TWIN)
    runs = [
        run_simulated(NAMED["ring"], words, twin=twin, layer=MPI, ranks=8, network=network)
        for network in (
            None,
            "star:rate=1Gbit/s",
            "ring:rate=1Gbit/s,fidelity=packet",
            "fat-tree:rate=100Gbit/s",
        )
    ]
    assert len({tuple(rank.digest for rank in run.ranks) for run in runs}) == 1
    assert all(rank.verified for run in runs for rank in run.ranks)
    assert runs[1].seconds > runs[3].seconds


def test_the_command_line_takes_a_network_and_says_what_it_stands_on(tmp_path: Path) -> None:
    script, twin = tmp_path / "script.py", tmp_path / "twin.toml"
    script.write_text(INCAST)
    twin.write_text(TWIN)
    words = ["predict", str(script), "--twin", str(twin), "--compute", "0us", "-o", str(tmp_path / "out")]
    ended = wiretwin(*words, "--network", "fat-tree:hosts=64,rate=100Gbit/s", "--ranks", "4")
    assert ended.code == 0, ended.err
    assert "hosts are joined by fat-tree:hosts=64,rate=100Gbit/s" in ended.err


def test_the_command_line_takes_a_fidelity(tmp_path: Path) -> None:
    twin = tmp_path / "twin.toml"
    twin.write_text(TWIN)
    words = ["run", "ring", "--world", "simulated", "--twin", str(twin), "--ranks", "4"]
    work = ["--", "elements=1000", "rounds=1", "add=1ns"]

    def run(*network: str) -> str:
        ended = wiretwin(*words, *network, *work)
        assert ended.code == 0, ended.err
        return ended.out

    file = tmp_path / "star.toml"
    file.write_text('[network]\ntopology = "star"\nrate = "1 Gbit/s"\n')
    packets = run("--network", "star:rate=1Gbit/s", "--fidelity", "packet")
    assert packets == run("--network", "star:rate=1Gbit/s,fidelity=packet")
    assert packets == run("--network", str(file), "--fidelity", "packet")
    assert packets != run("--network", "star:rate=1Gbit/s", "--fidelity", "message")
    cells = run("--network", "star:rate=1Gbit/s", "--fidelity", "cell")
    assert cells == run("--network", "star:rate=1Gbit/s,fidelity=cell,credits=loop,switch=output-queued")
    assert cells != packets
    for network, said in (
        (("--fidelity", "packet"), "--fidelity: 'packet' is not allowed here; allowed: with --network"),
        (
            ("--network", "star:rate=1Gbit/s", "--fidelity", "bit"),
            "--network fidelity: 'bit' is not allowed here; allowed: message, packet, cell",
        ),
        (
            ("--network", "star:rate=1Gbit/s,framing=38B", "--fidelity", "cell"),
            "--network framing: '38 B' is not allowed here; allowed: with fidelity cell, nothing: a cell is",
        ),
        (
            ("--network", "shared-cable:rate=10Mbit/s", "--fidelity", "packet"),
            "--network topology: 'shared-cable' is not allowed here; allowed: with fidelity packet, a "
            "topology of switches",
        ),
    ):
        ended = wiretwin(*words, *network, *work)
        assert ended.code != 0
        assert said in ended.err


def test_the_page_of_networks_has_the_differences_that_are_found() -> None:
    import runpy

    root = Path(__file__).parents[3]
    tables = runpy.run_path(str(root / "benches" / "fidelity.py"))
    page = (root / "docs" / "reference" / "network.md").read_text()
    for name in ("table", "cells"):
        assert "\n".join(tables[name]()) in page
    page = (root / "docs" / "how-to" / "direct.md").read_text()
    quick = [case for case in tables["TRANSPORT_CASES"] if sum(size for *_, size in case.messages) < 1 << 20]
    lines = list(tables["transports"](quick))
    assert len(lines) > 5
    assert all(f"{line}\n" in page for line in lines), lines


def test_a_scenario_names_a_network_for_its_twin(tmp_path: Path) -> None:
    (tmp_path / "twin.toml").write_text(TWIN)
    (tmp_path / "topology.conf").write_text("SwitchName=s Nodes=a[0-7]\n")
    times = {}
    for network in ("", 'network = "star:rate=100Mbit/s"', 'network = "topology.conf:rate=100Mbit/s"'):
        (tmp_path / "scenario.toml").write_text(
            f"""
format = "wiretwin-scenario"
version = 2
twin = "twin.toml"
{network}
[[program]]
name = "ring"
stack = "{MPI}"
ranks = 8
parameters = {{ elements = 1000, rounds = 1, add = "1ns" }}
"""
        )
        outcome = wt.simulate(wt.Scenario.read(tmp_path / "scenario.toml"))
        assert outcome.metrics["verified_ratio"] == 1
        times[network] = outcome.metrics["time_s"]
    within, star, slurm = times.values()
    assert star == slurm > within


@pytest.mark.parametrize(
    ("network", "each", "said"),
    [
        (
            "star:hosts=2,rate=1Gbit/s",
            None,
            "--ranks: 5 is not allowed here; allowed: 2 at most: 2 hosts with 1 each",
        ),
        ("star:hosts=2,rate=1Gbit/s", 0, "--ranks-per-host: 0 is not allowed here; allowed: 1 and above"),
        (None, 2, "--ranks-per-host: 2 is not allowed here; allowed: with --network"),
    ],
)
def test_ranks_that_have_no_host_are_rejected(network: str | None, each: int | None, said: str) -> None:
    with pytest.raises(InputError) as error:
        Site.of(5, network, each)
    assert said in str(error.value)


def test_the_same_network_as_text_and_object_is_the_same_prediction(tmp_path: Path) -> None:
    text = "star:hosts=2,rate=1Gbit/s"
    script = tmp_path / "script.py"
    script.write_text(ONE_WAY)
    found = [
        predict(script, twin=Twin.parse(TWIN), network=network, compute_ps=0).trace_digest
        for network in (text, wt.Network("star", hosts=2, rate="1 Gbit/s"))
    ]
    assert found[0] == found[1]


def test_a_twin_that_was_measured_between_hosts_says_so() -> None:
    between = TWIN.replace("[host]\n", '[host]\nbetween = "testbed wire 100 Mbit/s"\n', 1)
    site = Site.of(4, "star:rate=1Gbit/s")
    assert "measured within one host" in site.notes(Twin.parse(TWIN))[0]
    assert "between two hosts (testbed wire 100 Mbit/s)" in site.notes(Twin.parse(between))[0]
    assert Twin.parse(Twin.parse(between).to_toml()).host.between == "testbed wire 100 Mbit/s"


#: Every rank sends to every other, short messages and long ones, and checks what it has.
EXCHANGE = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
for count in (8, 3000, 100_000):
    wanted = [bytes([source]) * count for source in range(comm.size)]
    for _ in range(10):
        assert comm.alltoall([bytes([comm.rank]) * count] * comm.size) == wanted
"""

FABRIC = "fat-tree:rate=100Gbit/s,delay=500ns,switch_delay=300ns"


def test_a_direct_stack_is_carried_by_the_direct_transport_and_loss_costs_time_alone(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(EXCHANGE)

    def take(stack: str, network: str) -> tuple[float, str]:
        found = predict(
            script, twin="nothing", layer=stack, ranks=8, network=f"{FABRIC},{network}", compute_ps=0
        )
        return found.seconds.value, str(found.network["network"].get("transport"))

    direct = "mpi/openmpi+direct"
    quiet, carried = take(direct, "fidelity=packet")
    assert carried == "direct"
    assert take(direct, "fidelity=packet") == (quiet, "direct")
    assert take("mpi/openmpi", "fidelity=packet,transport=direct")[0] == quiet
    lossy, _ = take(direct, "fidelity=packet,packet_loss=0.001")
    assert quiet < lossy
    over_tcp, carried = take(direct, "fidelity=packet,transport=tcp,packet_loss=0.001")
    assert carried == "tcp"
    # TCP finds a lost tail after 200 ms, the direct transport after 200 us.
    assert over_tcp > 10 * lossy
    assert take(direct, "fidelity=message")[1] == "None"


def test_a_short_message_over_the_direct_transport_takes_its_ends_and_its_frame(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ONE_WAY)
    twin = Twin.parse(TWIN.replace(MPI, "mpi/mpich+direct"))
    network = "star:rate=1Gbit/s,delay=2us,switch_delay=1us,fidelity=packet"
    took = predict(
        script, twin=twin, layer="mpi/mpich+direct", ranks=2, network=network, compute_ps=0
    ).seconds.value
    within = seconds(tmp_path, ONE_WAY, 2, None)
    # Ethernet, IP, UDP, the header, a tag and remote data.
    frame = 38 + 28 + 32 + 16 + 1000
    assert took == pytest.approx(within + 2 * frame * 8e-9 + 2 * 2e-6 + 1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("words", "key", "allowed"),
    [
        ("fidelity=cell", "transport", "except with fidelity packet"),
        ("fidelity=packet,transport=sctp", "transport", "tcp, direct"),
        ("transport=direct", "transport", "except with fidelity packet"),
        ("packet_loss=0.1", "packet_loss", "except with fidelity packet"),
        ("fidelity=packet,packet_loss=0.6", "packet_loss", "0 to 0.5"),
        ("fidelity=packet,packet_loss=much", "packet_loss", "a number from 0 to 1"),
        ("fidelity=packet,ecn=64KiB", "ecn", "whose window follows the delay"),
        ("fidelity=packet,mtu=256B", "mtu", "284 B to 65535 B"),
        ("fidelity=packet,headers=52B", "headers", "the 76 B of IP and the direct transport"),
    ],
)
def test_what_the_direct_transport_cannot_have_is_rejected_by_name(
    words: str, key: str, allowed: str
) -> None:
    with pytest.raises(InputError) as refused:
        Network.parse(f"star:hosts=2,rate=1Gbit/s,{words}").under("mpi/openmpi+direct")
    assert f"network {key}" in str(refused.value)
    assert allowed in str(refused.value)
