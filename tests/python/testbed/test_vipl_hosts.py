"""VIPL and MVICH between two hosts of a testbed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from beds import LIMIT_S, need_testbed

from wiretwin.direct import VIPL
from wiretwin.measure.launch import launch
from wiretwin.measure.schedule import Step
from wiretwin.predict.named import NAMED, run_live
from wiretwin.stacks.layers import parse_layers, refusal
from wiretwin.testbed import Link, Testbed

DEVICES = ("udp", "packet")


def test_vnettest_measures_between_hosts(tmp_path: Path) -> None:
    need_testbed()
    program = tmp_path / "vnettest"
    linked = (f"-I{VIPL}", f"-L{VIPL}", "-l:libvipl.so.1", f"-Wl,-rpath,{VIPL}")
    subprocess.run(["cc", f"{VIPL}/vnettest.c", *linked, "-o", str(program)], check=True, timeout=60)
    with Testbed.up(2, share=[tmp_path]) as bed:
        server, client = bed.hosts
        for device in DEVICES:
            words = [str(program), "100", device]
            with subprocess.Popen(server.command([*words, "-"])) as serving:
                try:
                    told = subprocess.run(
                        client.command([*words, server.address]),
                        capture_output=True,
                        text=True,
                        timeout=LIMIT_S,
                        check=True,
                    )
                    assert serving.wait(timeout=LIMIT_S) == 0
                finally:
                    serving.kill()
            rows = told.stdout.splitlines()
            assert len(rows) == 5, told
            assert all(float(row.split()[-2]) > 0 for row in rows), told


@pytest.mark.parametrize("device", DEVICES)
def test_mvich_is_right_over_a_wire_that_loses_and_repeats(device: str) -> None:
    need_testbed()
    # Longer than what goes at once, so that memory is written too.
    words = ["elements=20001", "rounds=2"]
    rules = {"loss": 0.05, "duplicate": 0.05, "reorder": 0.05}
    with Testbed.up(2, Link("wire", offload=False, rate_bit_s=100_000_000, rules=rules, only="udp")) as bed:
        found = run_live(
            NAMED["ring"], words, ranks=2, layer=f"mpi-mvich/{device}", limit_s=LIMIT_S, place=bed
        )
    here = run_live(NAMED["ring"], words, ranks=2, layer="shm", limit_s=LIMIT_S)
    assert [one.digest for one in found.ranks] == [one.digest for one in here.ranks]
    assert all(one.verified for one in found.ranks)


def test_mvich_is_measured_between_hosts() -> None:
    need_testbed()
    steps = [Step("echo", size, warmup=2, min_samples=10, max_samples=10) for size in (8, 1 << 16)]
    with Testbed.up(2) as bed:
        for layer in parse_layers("mpi-mvich/udp,mpi-mvich/packet"):
            assert refusal(layer, bed) is None
            outcome = launch(layer, steps, limit_s=LIMIT_S, pins=None, place=bed)
            assert outcome.status == "ok", outcome.error
            assert all(min(step["values_ns"]) > 0 for step in outcome.steps)


def test_packet_sockets_lead_to_another_host_only() -> None:
    (layer,) = parse_layers("mpi-mvich/packet")
    refused = refusal(layer)
    assert refused is not None
    assert "one host to another" in refused.reason
