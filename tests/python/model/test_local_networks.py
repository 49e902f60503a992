"""Networks that have hosts of their own: how they are named, what runs on them, and bad input by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.model import Host
from wiretwin.model.local import PRESETS, LocalNetwork
from wiretwin.predict.compiled import predict_compiled
from wiretwin.predict.named import NAMED, run_simulated
from wiretwin.predict.predict import predict

WIRETWIN = str(Path(sys.executable).with_name("wiretwin"))
#: A ring of messages whose answer says that all came.
RING = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
got = comm.sendrecv(comm.rank, dest=(comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
assert got == (comm.rank - 1) % comm.size
assert comm.allreduce(got) == sum(range(comm.size))
"""


@pytest.mark.parametrize("name", PRESETS)
def test_every_network_carries_a_script(name: str, tmp_path: Path) -> None:
    script = tmp_path / "ring.py"
    script.write_text(RING)
    ranks = 2 if name == "atm" else 4
    found = predict(script, ranks=ranks, network=name, compute_ps=1000, negligible_ps=10**9)
    assert found.twin_sha256 is None
    assert found.layer == LocalNetwork.parse(name, hosts=ranks).stack
    for rank in found.per_rank:
        parts = rank.compute_s + rank.endpoint_s + rank.wire_s + rank.waiting_s
        assert parts == pytest.approx(rank.total_s, rel=1e-9)
        assert rank.total_s > 0


def test_what_is_between_the_hosts_matters(tmp_path: Path) -> None:
    script = tmp_path / "ring.py"
    script.write_text(RING)

    def seconds(network: str, stack: str | None = None) -> float:
        return predict(script, ranks=4, layer=stack, network=network, compute_ps=0).seconds.value

    assert seconds("gige") < seconds("an2") < seconds("asx100")
    assert seconds("gige", "mpi-mvich/gige") < seconds("gige")
    assert seconds("asx100:host=sparc1+") > seconds("asx100:host=sparc2")
    assert seconds("asx100:first_use=10ms") > seconds("asx100") + 0.01


PROFILE = """
name = "mine"
base = "sparc1+"
[values]
cpu_factor = { value = 0.8, by = "choice", source = "half of it" }
"""


def test_a_host_of_ones_own_is_an_object_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(PROFILE)
    words = ["bytes=64", "rounds=2"]

    def seconds(host: Any) -> float:
        table = {"preset": "asx100", "host": host}
        return run_simulated(NAMED["echo"], words, ranks=2, network=table).seconds

    read = Host.read(file)
    assert (read.name, read["cpu_factor"]) == ("mine", 0.8)
    assert read["copy_ns_per_byte"] == Host.named("sparc1+")["copy_ns_per_byte"]
    assert seconds(str(file)) == seconds(read) == seconds(Host.named("sparc1+").but(cpu_factor=0.8))
    assert seconds(read) < seconds("sparc1+") == seconds(Host.named("sparc1+"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PROFILE.replace("sparc1+", "vax"), "base: 'vax'"),
        (PROFILE.replace('base = "sparc1+"', ""), "base: is needed"),
        (PROFILE.replace("cpu_factor", "cpu"), "values.cpu: is unknown; allowed: .*cpu_factor"),
        (PROFILE.replace("0.8", "-1"), "values.cpu_factor.value: -1"),
        ("name = [", "is no TOML"),
    ],
)
def test_a_profile_that_cannot_be_is_rejected_by_file_and_key(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=f"mine.toml: {said}"):
        LocalNetwork.parse(f"asx100:host={file}")
    with pytest.raises(InputError, match=r"host.speed: 1 is unknown; allowed: .*cpu_factor"):
        Host.named("sparc2").but(speed=1)


@pytest.mark.parametrize(
    ("network", "stack", "name", "words"),
    [
        ("asx100", "pvm-advise/tcp/aal5", "mm", ["n=32", "rounds=1", "multiply-add=1us"]),
        ("asx100", "fore+reliable/aal5", "pde", ["n=16", "sor-point=1us"]),
        ("ethernet10", "pvm-normal/udp/ethernet", "ring", ["elements=8", "rounds=1", "add=1us"]),
        ("an2", "pvm-mapped/aal5", "jacobi", ["rows=32", "columns=32", "iterations=3", "stencil-point=1us"]),
        ("asx100", "framed/tcp/aal5", "cast", ["bytes=20000", "rounds=2"]),
    ],
)
def test_compiled_programs_run_under_any_stack(network: str, stack: str, name: str, words: list[str]) -> None:
    run = run_simulated(NAMED[name], words, layer=stack, ranks=4, network=network)
    assert run.layer == stack
    assert all(rank.verified for rank in run.ranks)
    found = predict_compiled(NAMED[name], words, layer=stack, ranks=4, network=network)
    assert found.seconds.value == max(rank.elapsed_s for rank in run.ranks)


@pytest.mark.parametrize(
    ("text", "stack", "words"),
    [
        ("asx101", None, "--network: 'asx101' is not allowed here; allowed: ethernet10, fddi, atm, asx100"),
        ("asx100:hots=4", None, "hots: 4 is no key of it; allowed: host, first_use, adapter"),
        ("asx100:host=pdp-11", None, "sparc2"),
        ("asx100:host=sparc2,host=sparc2", None, "is given twice"),
        ("asx100:hosts=1", None, "2 to 64, for asx100"),
        ("atm:hosts=3", None, "2 to 2, for atm"),
        ("asx100:fidelity=packet", None, "cell, for asx100"),
        ("asx100:cell_loss=2", None, "a share from 0 to 1"),
        ("asx100:buffer=1000B", None, "1000B"),
        ("asx100:adapter=otto", None, "series-100, series-200"),
        ("asx100", "mpi-mpich/tcp/ethernet", "one that ends in /aal5 or /aal34, on asx100"),
        ("asx100", "pigeon/aal5", "mpi-mpich/tcp, mpi/tcp, "),
        ("an2:credits=0", None, "loop (what a line's round trip needs), none"),
        ("gige:nic=gnic-ii,mtu=9000", None, "576 to 1500 with gnic-ii"),
        ("gige:mtu=many", None, "576 to 9000"),
        ("gige", "framed/tcp/gige", "mpi-mvich/gige"),
        ("ethernet10:load=-1", None, "a share from 0 to 1"),
        ("ethernet10:first_use=5", None, "has no unit"),
    ],
)
def test_a_network_that_cannot_be_is_refused_by_name(text: str, stack: str | None, words: str) -> None:
    with pytest.raises(InputError) as refused:
        LocalNetwork.parse(text, stack=stack)
    assert words in str(refused.value)


def test_stacks_are_listed_by_what_they_end_in() -> None:
    with pytest.raises(InputError) as rejected:
        LocalNetwork.parse("asx100", stack="foo/aal5").check()
    said = str(rejected.value)
    assert "fore, fore+reliable, pvm-fore over aal5 or aal34; socket/tcp, " in said
    assert said.endswith("; pvm-mapped over aal5 (there is no such stack)")
    assert len(said) < 400


def test_what_does_not_go_with_hosts_of_their_own_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "ring.py"
    script.write_text(RING)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"twin": "twin.toml"}, "no twin: asx100 has hosts of its own"),
        ({"ranks_per_host": 2}, "--ranks-per-host"),
        ({"layer": "pvm-advise/tcp/aal5"}, "one of MPI"),
        ({"network": "asx100:hosts=3"}, "a rank on each"),
    ]
    for given, words in cases:
        with pytest.raises(InputError) as refused:
            predict(script, **{"network": "asx100", "ranks": 4, **given})
        assert words in str(refused.value)
    with pytest.raises(InputError) as refused:
        predict_compiled(NAMED["ring"], [], network="asx100")
    assert "a network that has hosts of its own" in str(refused.value)
    with pytest.raises(InputError) as refused:
        predict(script, ranks=2)
    assert "none with a --network that has hosts of its own" in str(refused.value)


def test_a_model_that_cannot_be_is_refused_by_the_core() -> None:
    plan = LocalNetwork.parse("asx100", hosts=2).plan
    with pytest.raises(ValueError, match=r"model\.local\.hosts is 2; allowed: one for each of 3 ranks"):
        _core.World(3, json.dumps({"local": plan}))
    with pytest.raises(ValueError, match="local"):
        _core.World(2, json.dumps({"local": plan, "nodes": []}))


def test_the_command_line_runs_a_program_on_one(tmp_path: Path) -> None:
    line = "run mm --world simulated --network asx100 --stack pvm-advise/tcp/aal5 --ranks 4 --format json"
    words = [WIRETWIN, *line.split(), "--", "n=32", "rounds=1", "multiply-add=1us"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    rows = json.loads(done.stdout)
    assert len(rows) == 4
    assert all(row["verified"] for row in rows)
