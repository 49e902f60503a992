"""Measuring and running between hosts of a testbed that is made for the occasion."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from beds import LIMIT_S, WITHOUT_INTERFACE, need_testbed, on, program, until, wiretwin

from wiretwin.results import Result
from wiretwin.stacks.layers import parse_layers, refusal
from wiretwin.testbed import Link, Testbed
from wiretwin.testbed.state import Folder, folders

QUICK = ("--sizes", "64,1000", "--for", "curves", "--budget", "none", "--launches", "3")


def need_wire() -> None:
    need_testbed()
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        assert not os.environ.get("CI"), "no /dev/net/tun"
        pytest.skip("no /dev/net/tun")


def test_two_ranks_on_two_hosts_are_measured_and_the_place_is_kept(tmp_path: Path) -> None:
    need_testbed()
    out = tmp_path / "result"
    done = wiretwin("measure", "--hosts", "2", "--layers", "socket/tcp,socket/udp", *QUICK, "-o", str(out))
    assert done.returncode == 0, done.stderr
    result = Result.open(out)
    assert set(result.samples()["layer"]) == {"socket/tcp", "socket/udp"}
    assert result.manifest.options["place"] == {
        "kind": "testbed",
        "hosts": [{"name": "h1", "address": "10.20.0.1"}, {"name": "h2", "address": "10.20.0.2"}],
        "link": {"kind": "veth", "mtu_bytes": 1500, "offload": True},
        "congestion": "reno",
        "rootless": os.geteuid() != 0,
    }


def test_what_crosses_the_network_is_told_step_by_step(tmp_path: Path) -> None:
    need_testbed()
    out = tmp_path / "result"
    options = ("--hosts", "2", "--no-offload", "--layers", "socket/udp", *QUICK, "-o", str(out))
    done = wiretwin("measure", *options, "--traffic", "--format", "json")
    assert done.returncode == 0, done.stderr
    headers = 8 + 20 + 14  # UDP, IP, Ethernet
    steps = Result.open(out).traffic()
    assert steps["bytes"].unique().sort().to_list() == [64, 1000]
    for step in steps.iter_rows(named=True):
        messages = step["payload_out"] // step["bytes"]
        assert step["payload_out"] == step["payload_in"] == messages * step["bytes"]
        assert step["packets_out"] >= messages
        assert step["bytes_out"] >= messages * (step["bytes"] + headers)
        # Besides: a few control messages of 56 bytes over TCP for each run of samples.
        assert step["packets_out"] - messages < 1000
    for row in json.loads(done.stdout):
        assert row["carried_per_payload"] >= (row["size_bytes"] + headers) / row["size_bytes"]
    here = wiretwin("measure", "--traffic")
    assert (here.returncode, "--traffic: needs a network" in here.stderr) == (2, True)


@pytest.mark.alone
def test_what_a_message_takes_of_who_computes_is_measured_between_hosts(tmp_path: Path) -> None:
    need_testbed()
    out = tmp_path / "result"
    quick = ("--sizes", "4,64,1024", "--for", "fit", "--budget", "5s")
    layers = ("--layers", "socket/tcp,mpi4py/mpich")
    done = wiretwin("measure", "--hosts", "2", *layers, *quick, "-o", str(out))
    assert done.returncode == 0, done.stderr
    samples = Result.open(out).samples()
    lost = samples.filter(samples["loop"] == "interrupt")
    assert set(lost["layer"]) == {"socket/tcp", "mpi4py/mpich"}
    assert set(lost["bytes"]) == {4, 1024}


def test_a_wire_takes_its_time_for_every_byte(tmp_path: Path) -> None:
    need_wire()
    out = tmp_path / "result"
    link = ("--link", "wire", "--rate", "10Mbit", "--delay", "1ms")
    done = wiretwin("measure", "--hosts", "2", *link, "--layers", "socket/tcp", *QUICK, "-o", str(out))
    assert done.returncode == 0, done.stderr
    samples = Result.open(out).samples()
    fastest = {
        size: float((part["value_ns"] / part["batch"]).min()) / 2
        for size in (64, 1000)
        for part in (samples.filter((samples["bytes"] == size) & (samples["loop"] == "echo")),)
    }
    # At least the delay and the time of the bits on the wire: payload, TCP, IP and Ethernet headers, frame
    # check, preamble. A busy machine adds to it, nothing takes away.
    for size, half in fastest.items():
        assert half > 1e6 + (size + 32 + 20 + 14 + 4 + 8) * 8 * 100
    assert json.loads((out / "manifest.json").read_text())["options"]["place"]["link"]["rate_bit_s"] == 10**7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--hosts", "2", "--layers", "shm"), "shm cannot run here: works within one host only"),
        (
            ("--hosts", "2", "--layers", "socket/unix"),
            "socket/unix cannot run here: works within one host only",
        ),
        (("--hosts", "2", "--link", "shared", "--rate", "10Mbit"), "is made of token buckets"),
        (("--hosts", "2", "--link", "tbf"), "a token bucket is no wire"),
        (("--hosts", "1"), "--hosts: 1 is not allowed here; allowed: 2 to 64"),
        (("--mtu", "9000"), "--mtu: says what joins hosts, and there is one; allowed: with --hosts 2"),
        (("--testbed", "none"), "'none' is not up"),
        (
            ("--hosts", "2", "--testbed", "none"),
            "--testbed: 'none' is not allowed here; allowed: without --hosts",
        ),
    ],
)
def test_what_cannot_be_measured_between_hosts_is_refused_by_name(
    arguments: tuple[str, ...], words: str
) -> None:
    need_testbed()
    done = wiretwin("measure", *arguments)
    assert done.returncode in (2, 3)
    assert words in done.stderr


def test_programs_run_on_the_hosts_of_a_testbed_that_stands(tmp_path: Path) -> None:
    need_testbed()
    script = tmp_path / "who.py"
    script.write_text(
        "import socket\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\n"
        "names = world.allgather(socket.gethostname())\n"
        "assert names == ['h1', 'h2'], names\n"
    )
    with Testbed.up(2, name="stands", share=[tmp_path]):
        ring = wiretwin(
            "run", "ring", "--testbed", "stands", "--ranks", "4", "--format", "json", "--", "elements=64"
        )
        assert ring.returncode == 0, ring.stderr
        assert [row["verified"] for row in json.loads(ring.stdout)] == [True] * 4
        options = ("--launches", "1", "--splits", "0", "-o", str(tmp_path / "run"))
        done = wiretwin("run", str(script), "--testbed", "stands", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        record = json.loads((tmp_path / "run" / "run.json").read_text())
        assert record["launcher"][-4:] == ["-hosts", "h1,h2", "-n", "2"]


def test_each_host_has_a_rank_unless_told_otherwise() -> None:
    need_testbed()
    done = wiretwin("run", "ring", "--hosts", "3", "--format", "json", "--", "elements=8", "rounds=1")
    assert done.returncode == 0, done.stderr
    assert [row["verified"] for row in json.loads(done.stdout)] == [True] * 3


def test_hosts_are_for_the_live_world() -> None:
    done = wiretwin("run", "ring", "--world", "simulated", "--hosts", "2")
    assert (done.returncode, "--hosts: says where ranks live; allowed: with --world live" in done.stderr) == (
        2,
        True,
    )


def need_layer(name: str) -> None:
    """Skip the test of a layer that is not installed, which in CI it must be."""
    refused = refusal(parse_layers(name)[0])
    if refused is not None:
        assert not os.environ.get("CI"), refused
        pytest.skip(f"{name}: {refused}")


@contextlib.contextmanager
def measuring(*arguments: str, layers: str = "socket/tcp"):  # type: ignore[no-untyped-def]
    """A measurement under way, past its first launch."""
    base = Path(os.environ["WIRETWIN_TESTBEDS"])
    argv = program("measure", "--hosts", "2", "--layers", layers, "--budget", "60s", *arguments)
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            out = Path(arguments[arguments.index("-o") + 1])
            until(running, lambda: any(out.glob("samples/launch-*.parquet")))
            yield running, next(iter(folders()))
        finally:
            running.kill()
    assert not base.exists() or [one.name for one in folders()] != []


FEW = ("--sizes", "64", "--for", "curves", "--launches", "100")


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path) -> None:
    need_testbed()
    out = tmp_path / "result"
    with measuring(*FEW, "-o", str(out)) as (running, _):
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=LIMIT_S)
        assert running.returncode == 130
        assert "samples are kept" in said
    assert folders() == []


@pytest.mark.parametrize("layer", ["socket/tcp", "mpi/mpich", "pvm/pvm3"])
def test_a_keeper_killed_in_mid_measurement_is_named_and_samples_are_kept(tmp_path: Path, layer: str) -> None:
    need_testbed()
    need_layer(layer)
    out = tmp_path / "result"
    with measuring(*FEW, "-o", str(out), layers=layer) as (running, folder):
        os.kill(folder.keeper.pid, signal.SIGKILL)
        _, said = running.communicate(timeout=LIMIT_S)
        assert f"testbed {folder.name!r} is gone: its keeper was ended" in said
    assert Result.open(out).samples().height > 0
    assert folders() == []


@pytest.mark.parametrize("layer", ["socket/tcp", "mpi/mpich"])
def test_a_host_that_is_gone_in_mid_measurement_is_named_and_samples_are_kept(
    tmp_path: Path, layer: str
) -> None:
    """A namespace is gone when nothing runs in it and no interface is left."""
    need_testbed()
    need_layer(layer)
    out = tmp_path / "result"
    with measuring(*FEW, "-o", str(out), layers=layer) as (running, folder):
        bed = Testbed.find(folder.name)
        assert on(bed, "h2", sys.executable, "-c", WITHOUT_INTERFACE).returncode == 0
        for pid in processes_on(bed, "h2"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _, said = running.communicate(timeout=LIMIT_S)
        assert f"testbed {folder.name!r}: h2 has lost its interface eth0" in said
        assert running.returncode != 0
    assert Result.open(out).samples().height > 0
    assert folders() == []


def processes_on(bed: Testbed, host: str) -> list[int]:
    """Return the processes in a host's network."""
    link = on(bed, host, "readlink", "/proc/self/ns/net").stdout.strip()
    found = []
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/ns/net") == link:
                found.append(pid)
    return found


def wire_of(folder: Folder) -> int:
    """Return the process of a testbed's wire."""
    assert folder.keeper is not None
    children = Path(f"/proc/{folder.keeper.pid}/task/{folder.keeper.pid}/children").read_text().split()
    (wire,) = [int(pid) for pid in children if b"wiretwin.wire" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return wire


@pytest.mark.parametrize("layer", ["socket/tcp", "mpi/openmpi", "pvm/pvm3"])
def test_a_wire_killed_in_mid_measurement_is_named_and_samples_are_kept(tmp_path: Path, layer: str) -> None:
    need_wire()
    need_layer(layer)
    out = tmp_path / "result"
    link = ("--link", "wire", "--rate", "100Mbit")
    with measuring(*link, *FEW, "-o", str(out), layers=layer) as (running, folder):
        os.kill(wire_of(folder), signal.SIGKILL)
        _, said = running.communicate(timeout=LIMIT_S)
        assert f"testbed {folder.name!r}: its wire was ended by signal 9" in said
    assert Result.open(out).samples().height > 0
    assert folders() == []


@pytest.mark.parametrize("layer", ["socket/tcp", "mpi/openmpi"])
def test_a_wire_killed_under_a_program_is_named_long_before_its_limit(census: Path, layer: str) -> None:
    need_wire()
    need_layer(layer)
    link = ("--link", "wire", "--rate", "100kbit", "--layer", layer, "--limit", "10min")
    argv = program("run", "mm", "--hosts", "2", *link, "--", "n=400")
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            until(running, lambda: any(census.glob("b/*/shared/wiretwin-*/spec*.json")))
            (folder,) = folders()
            os.kill(wire_of(folder), signal.SIGKILL)
            _, said = running.communicate(timeout=LIMIT_S)
        finally:
            running.kill()
    assert running.returncode == 5
    assert f"testbed {folder.name!r}: its wire was ended by signal 9" in said
    assert folders() == []


def test_a_wire_killed_under_a_script_is_named_long_before_its_limit(census: Path) -> None:
    need_wire()
    (shared := census / "shared").mkdir()
    path, going = shared / "script.py", shared / "going"
    path.write_text(
        "from mpi4py import MPI\nfrom pathlib import Path\n"
        f"Path({str(going)!r}).touch()\nwhile True:\n    MPI.COMM_WORLD.allgather(bytes(10_000))\n"
    )
    with Testbed.up(2, Link("wire", rate_bit_s=1_000_000), name="slow", share=[shared]) as bed:
        options = ("--launches", "1", "--splits", "0", "--limit", "10min", "-o", str(shared / "run"))
        argv = program("run", str(path), "--testbed", "slow", *options)
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            try:
                until(running, going.exists)
                os.kill(wire_of(bed.folder), signal.SIGKILL)
                _, said = running.communicate(timeout=LIMIT_S)
            finally:
                running.kill()
    assert running.returncode == 5
    assert "testbed 'slow': its wire was ended by signal 9" in said
    shutil.rmtree(shared)


def test_a_probe_killed_in_mid_measurement_costs_its_launch_only(tmp_path: Path) -> None:
    need_testbed()
    out = tmp_path / "result"
    with measuring(*FEW, "-o", str(out)) as (running, _):
        until(running, lambda: residents(b"python", b"wiretwin.probe", b"spec-1") != set())
        for probe in residents(b"python", b"wiretwin.probe", b"spec-1"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(probe, signal.SIGKILL)
        before = len(list(out.glob("samples/*")))
        until(running, lambda: len(list(out.glob("samples/*"))) >= before + 3)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=LIMIT_S)
        assert running.returncode == 130
    assert folders() == []


def residents(words: bytes, *more: bytes) -> set[int]:
    """The processes of this test's testbeds with these words in the program's name, and more behind it."""
    base, found = os.environ["WIRETWIN_TESTBEDS"].encode(), set()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit() and base in Path(f"/proc/{entry}/environ").read_bytes():
                program, *arguments = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                if words in program and b"-c" not in arguments[:3] and has(arguments, more):
                    found.add(int(entry))
    return found


def has(arguments: list[bytes], words: tuple[bytes, ...]) -> bool:
    return all(any(word in one for one in arguments) for word in words)


@pytest.mark.parametrize(
    ("layer", "daemon"),
    [("mpi/mpich", b"hydra_pmi_proxy"), ("mpi/openmpi", b"orted")],
    ids=["hydra", "orted"],
)
def test_a_launchers_daemon_killed_on_a_host_costs_its_launch_only(
    tmp_path: Path, layer: str, daemon: bytes
) -> None:
    need_testbed()
    need_layer(layer)
    out = tmp_path / "result"
    with measuring(*FEW, "-o", str(out), layers=layer) as (running, _):
        struck = 0

        def failed_and_gone_on() -> bool:
            """Kill a daemon of a launch, and of a later one if that launch was past being hurt."""
            nonlocal struck
            statuses = ended(out)
            if "failed" in statuses:
                return "ok" in statuses[statuses.index("failed") :]
            # A launcher that has not started its ranks may wait for a daemon for ever.
            ranks = residents(b"python", b"wiretwin.probe")
            if len(statuses) > struck and len(ranks) == 2 and (found := residents(daemon)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(max(found), signal.SIGKILL)
                    struck = len(statuses) + 1
            return False

        until(running, failed_and_gone_on)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=LIMIT_S)
        assert running.returncode == 130
    (launch,) = [one for one in Result.open(out).manifest.launches if one.status == "failed"]
    assert launch.error
    assert folders() == []


def ended(out: Path) -> list[str]:
    """How the launches have ended that are stored already."""
    with contextlib.suppress(OSError, ValueError):
        return [one["status"] for one in json.loads((out / "manifest.json").read_text())["launches"]]
    return []


@pytest.mark.parametrize(
    ("sign", "count"),
    [
        ("b/*/plan.json", 1),
        ("b/*/state.json", 1),
        ("b/*/shared/wiretwin-*/spec*.json", 1),
        ("b/*/shared/wiretwin-stack-*/pvmd.log", 1),
        ("r/samples/launch-*.parquet", 1),
        ("r/samples/launch-*.parquet", 4),
    ],
    ids=["bed", "hosts", "ranks", "daemons", "samples", "rounds"],
)
def test_an_interrupt_at_any_stage_leaves_nothing_and_keeps_the_samples(
    census: Path, sign: str, count: int
) -> None:
    need_testbed()
    for layer in ("mpi/mpich", "pvm/pvm3"):
        need_layer(layer)
    out = census / "r"
    layers = ("--layers", "mpi/mpich,pvm/pvm3,socket/tcp", "--budget", "60s")
    argv = program("measure", "--hosts", "2", *layers, *FEW, "-o", str(out))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        until(running, lambda: len(list(census.glob(sign))) >= count)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 130, said
    assert "Traceback" not in said
    assert folders() == []
    if sign.startswith("r/"):
        assert "samples are kept" in said
        assert Result.open(out).samples()["launch"].n_unique() >= count
    shutil.rmtree(out, ignore_errors=True)
