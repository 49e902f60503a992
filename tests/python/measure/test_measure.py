"""Measuring with real processes: rounds, interruption, failures, a full disk."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

import wiretwin as wt
from wiretwin.errors import InputError, MeasureError
from wiretwin.marks import LAUNCH
from wiretwin.measure.orchestrate import Event
from wiretwin.results import Result
from wiretwin.stacks import Refusal
from wiretwin.stacks import layers as registry
from wiretwin.stacks.layers import parse_layers, refusal

LIMIT_S = 120.0
ENDLESS = ("--budget", "60s", "--launches", "1000", "--sizes", "4..64KiB")
"""Short launches, many of them: a measurement that is still going on when something is done to it."""


def until(condition: Callable[[], object], what: str) -> None:
    pause = threading.Event()
    for _ in range(int(LIMIT_S / 0.05)):
        if condition():
            return
        pause.wait(0.05)
    pytest.fail(f"never came: {what}")


def marked(token: str) -> list[str]:
    """Command lines of the launches' processes whose environment holds a token."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            if environment.get("TEST_TOKEN") == token and LAUNCH in environment:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def command(*arguments: str | Path, token: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", "from wiretwin.cli import main; main()", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TEST_TOKEN": token},
    )


def test_rounds_are_interleaved_and_every_sample_is_kept(tmp_path: Path) -> None:
    events: list[Event] = []
    result = wt.measure(
        ["shm", "socket/unix"],
        budget=None,
        out=tmp_path / "r",
        sizes=[4, 1024],
        launches=3,
        progress=events.append,
    )
    manifest = result.manifest
    assert manifest.state == "complete"
    assert set(manifest.stopped) == {"shm", "socket/unix"}
    assert set(manifest.stopped.values()) <= {"narrow", "launches"}
    assert all("± " in words for words in manifest.stopped_because.values())
    assert [launch.order for launch in manifest.launches] == list(range(len(manifest.launches)))
    names = [launch.name for launch in manifest.launches]
    for first, second in (names[0:2], names[2:4], names[4:6]):
        assert {first, second} == {"shm", "socket/unix"}
    assert len(events) == len(names)
    assert [event.launches for event in events] == list(range(1, len(names) + 1))
    assert events[-1].active == 0

    opened = Result.open(tmp_path / "r")
    samples = opened.samples()
    assert samples.height == sum(launch.rows for launch in manifest.launches)
    assert set(samples["loop"]) == {
        "echo", "two_write", "call", "send_busy", "recv_busy", "stream", "prtt",
    }  # fmt: skip
    assert set(samples["layer"]) == {"shm", "socket/unix"}
    for layer in manifest.layers:
        assert layer.clock is not None
        assert layer.effective
    assert manifest.host["cpus_usable"]
    assert manifest.options["sizes_bytes"] == [4, 1024]


def test_delays_exceed_the_round_trip_of_the_first_launch(tmp_path: Path) -> None:
    result = wt.measure(["shm"], budget=None, out=tmp_path / "r", sizes=[8], launches=3)
    samples = result.samples()
    echo = samples.filter((samples["launch"] == 1) & (samples["loop"] == "echo") & (samples["index"] > 0))
    median = (echo["value_ns"] / echo["batch"]).median()
    assert isinstance(median, float)
    prtt = samples.filter(samples["loop"] == "prtt")
    delays = {launch: set(part["delay_ns"]) for (launch,), part in prtt.group_by("launch")}
    assert delays.pop(1) == {0}
    assert all(found == {0, 1000 + round(2 * median)} for found in delays.values())


def test_the_seed_gives_the_order(tmp_path: Path) -> None:
    def order(folder: str, seed: int) -> list[str]:
        result = wt.measure(
            "shm,socket/unix,socket/tcp", budget=None, out=tmp_path / folder, sizes="4", launches=3,
            seed=seed, purpose="curves",
        )  # fmt: skip
        return [launch.name for launch in result.manifest.launches][:9]

    first = order("a", 1)
    assert order("b", 1) == first
    assert any(order(f"c{seed}", seed) != first for seed in (2, 3))


def test_a_layer_that_fails_twice_is_dropped_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable = {"wait": "block", "address": "203.0.113.1"}
    broken = registry.LayerKind("socket/tcp", "not an address of this host", "pair", options=unreachable)
    monkeypatch.setitem(registry.LAYERS, "socket/tcp", broken)
    result = wt.measure("socket/tcp,shm", budget=None, out=tmp_path / "r", sizes="4", launches=3)
    assert result.manifest.stopped["socket/tcp"] == "failed"
    assert "2 launches in a row failed: " in result.manifest.stopped_because["socket/tcp"]
    assert "203.0.113.1" in result.manifest.stopped_because["socket/tcp"]
    failed = [launch for launch in result.manifest.launches if launch.name == "socket/tcp"]
    assert [launch.status for launch in failed] == ["failed", "failed"]
    assert result.manifest.stopped["shm"] in ("narrow", "launches")
    assert set(result.samples()["layer"]) == {"shm"}

    with pytest.raises(MeasureError, match=r"no layer could be measured: socket/tcp: 2 launches"):
        wt.measure("socket/tcp", budget=None, out=tmp_path / "none", sizes="4", launches=3)
    assert Result.open(tmp_path / "none").manifest.state == "complete"


def test_a_layer_that_cannot_run_is_left_out_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Refusal("no MPI", "pip install mpich")
    absent = registry.LayerKind("mpi4py/mpich", "", "mpiexec", need=lambda: refused)
    monkeypatch.setattr(registry, "LAYERS", {"shm": registry.LAYERS["shm"], "mpi4py/mpich": absent})
    result = wt.measure(budget=None, out=tmp_path / "r", sizes="4", launches=3, purpose="curves")
    assert result.manifest.options["skipped"] == {"mpi4py/mpich": "no MPI; `pip install mpich`"}
    assert set(result.samples()["layer"]) == {"shm"}
    with pytest.raises(MeasureError, match="mpi4py/mpich cannot run here: no MPI; `pip install mpich`"):
        wt.measure("mpi4py/mpich", budget=None, out=tmp_path / "no")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"budget": "5"}, "budget: '5' has no unit"),
        ({"budget": 5}, "budget: 5 has no unit"),
        ({"precision": 0.05}, "precision: 0.05 has no percent sign"),
        ({"precision": "5"}, "precision: '5' has no percent sign"),
        ({"sizes": "-4"}, "sizes: '-4' is not a size list"),
        ({"sizes": [0]}, "sizes: '0' is out of range"),
        ({"layers": "nosuch"}, "layers: 'nosuch' is no layer"),
        ({"launches": 2}, "launches: 2 is not allowed here; allowed: 3 to 1000"),
        ({"pin": "0,4096"}, "pin: 4096 is not allowed here; allowed: CPUs this process may use: 0"),
        ({"pin": "left"}, "pin: 'left' is not allowed here; allowed: auto, none, or two CPU numbers"),
        ({"purpose": "fun"}, "purpose: 'fun' is not allowed here; allowed: curves, fit"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_runs(
    tmp_path: Path, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError) as caught:
        wt.measure(out=tmp_path / "r", **arguments)  # type: ignore[arg-type]
    assert str(caught.value).startswith(words)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_what_was_measured(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "r"
    layers = "shm,socket/tcp,mpi4py/mpich"
    token = f"{tmp_path}-{number}"
    run = command(
        "measure",
        "--layers",
        layers,
        *ENDLESS,
        "-o",
        folder,
        token=token,
    )
    until(lambda: len(list(folder.glob("samples/*.parquet"))) >= 2 and marked(token), "a third launch")
    run.send_signal(number)
    out, err = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 128 + number, err
    assert f"samples are kept in {folder}" in err
    assert "t_0 [us]" in out
    assert "shm" in out
    result = Result.open(folder)
    assert result.manifest.state == "interrupted"
    assert set(result.manifest.stopped.values()) == {"interrupt"}
    assert result.manifest.launches[-1].status in ("interrupted", "ok")
    assert result.samples()["launch"].n_unique() >= 2
    assert marked(token) == []


def test_a_killed_measurement_leaves_a_readable_folder_and_no_process(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    token = str(tmp_path)
    run = command(
        "measure", "--layers", "shm,mpi4py/mpich", *ENDLESS, "-o", folder,
        token=token,
    )  # fmt: skip
    until(lambda: len(list(folder.glob("samples/*.parquet"))) >= 2 and marked(token), "a third launch")
    run.kill()
    run.communicate(timeout=LIMIT_S)
    until(lambda: not marked(token), "the end of every rank")
    result = Result.open(folder)
    assert result.manifest.state == "running"
    assert result.samples()["launch"].n_unique() >= 2


def test_the_samples_of_a_launch_under_way_survive_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    token = str(tmp_path)
    # One launch that goes on for a minute, most of it with the last of its sizes.
    run = command(
        "measure", "--layers", "shm", "--budget", "600s", "--launches", "3", "--sizes", "4,64,1MiB",
        "--for", "curves", "-o", folder, token=token,
    )  # fmt: skip
    lines = folder / "under-way.jsonl"
    until(lambda: lines.exists() and lines.read_bytes().count(b'"samples"') >= 1, "a step that has ended")
    run.kill()
    run.communicate(timeout=LIMIT_S)
    until(lambda: not marked(token), "the end of every rank")
    result = Result.open(folder)
    assert result.manifest.state == "running"
    assert not list(folder.glob("samples/*.parquet"))
    (launch,) = result.manifest.launches
    assert (launch.status, launch.error) == ("interrupted", "the measuring process was killed")
    samples = result.samples()
    assert launch.rows == samples.height > 0
    assert set(samples["layer"]) == {"shm"}
    assert 4 in samples["bytes"]
    assert result.digest() == Result.open(folder).digest()


def test_a_killed_peer_costs_its_launch_only(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    token = str(tmp_path)
    run = command(
        "measure", "--layers", "shm", "--budget", "none", "--launches", "5", "--sizes", "4..64KiB",
        "-o", folder, token=token,
    )  # fmt: skip

    def kill_one() -> bool:
        for child in psutil.Process(run.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):  # its launch is over: one of the next
                if "wiretwin.probe" in child.cmdline():
                    child.kill()
                    return True
        return False

    until(kill_one, "a probe")
    _, err = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 0, err
    launches = Result.open(folder).manifest.launches
    statuses = [launch.status for launch in launches]
    assert statuses.count("failed") == 1
    assert statuses.count("ok") >= 3
    assert "signal 9 (SIGKILL)" in str(launches[statuses.index("failed")].error)
    assert marked(token) == []


@pytest.mark.parametrize("layer", ["shm", "mpi/mpich", "pvm/pvm3"])
def test_a_full_disk_ends_the_measurement_and_keeps_earlier_launches(tmp_path: Path, layer: str) -> None:
    """On a small tmpfs in a mount namespace of its own."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("unshare -m is not permitted here")
    refused = refusal(parse_layers(layer)[0])
    if refused is not None:
        assert not os.environ.get("CI"), refused
        pytest.skip(str(refused))
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    token = str(tmp_path)
    shell = 'mount -t tmpfs -o size=60k none "$1"; '
    shell += '"$3" -c "$4" measure --layers "$5" --sizes 4..1KiB --for curves --launches 300 -o "$1/r"; '
    shell += 'echo $? >"$2.code"; cp -r "$1/r" "$2"'
    script = "from wiretwin.cli import main; main()"
    run = subprocess.run(
        ["unshare", "-m", "sh", "-c", shell, "sh", disk, copy, sys.executable, script, layer],
        capture_output=True, text=True, timeout=LIMIT_S, check=False, env=os.environ | {"TEST_TOKEN": token},
    )  # fmt: skip
    assert (tmp_path / "copy.code").read_text().strip() == "6", run.stderr
    assert "not written: No space left on device" in run.stderr
    assert "earlier launches in" in run.stderr
    manifest = json.loads((copy / "manifest.json").read_text())
    assert manifest["state"] in ("interrupted", "running")  # as far as the disk still took it
    stored = len(manifest["launches"])
    assert stored >= 2
    assert Result.open(copy).samples()["launch"].n_unique() >= stored
    assert marked(token) == []


NO_PORT = """
import socket, sys
from pathlib import Path
Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40000")
taken = socket.socket()
taken.bind(("127.0.0.1", 40000))
taken.listen()
from wiretwin.cli import main
short = ["--budget", "none", "--launches", "3", "--sizes", "4"]
main(["measure", "--layers", sys.argv[1], *short, "-o", sys.argv[2]])
"""


def in_a_network_of_its_own(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the script above where there is one port, and that one is taken."""
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("unshare -n is not permitted here")
    up = "import fcntl, socket, struct; s = socket.socket(); "
    up += "fcntl.ioctl(s, 0x8914, struct.pack('16sh22x', b'lo', 1))"  # SIOCSIFFLAGS, IFF_UP
    shell = '"$0" -c "$1" && exec "$0" -c "$2" "$3" "$4"'
    return subprocess.run(
        ["unshare", "-n", "sh", "-c", shell, sys.executable, up, NO_PORT, *map(str, arguments)],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip


def test_without_a_free_port_tcp_fails_in_words_and_other_layers_go_on(tmp_path: Path) -> None:
    run = in_a_network_of_its_own("socket/tcp,socket/unix", tmp_path / "r")
    assert run.returncode == 0, run.stderr
    manifest = Result.open(tmp_path / "r").manifest
    assert manifest.stopped["socket/tcp"] == "failed"
    assert "Address already in use" in manifest.stopped_because["socket/tcp"]
    assert manifest.stopped["socket/unix"] in ("narrow", "launches")

    alone = in_a_network_of_its_own("socket/tcp", tmp_path / "alone")
    assert alone.returncode == 3, alone.stderr
    assert "no layer could be measured: socket/tcp: 2 launches in a row failed" in alone.stderr
    assert "Address already in use" in alone.stderr
