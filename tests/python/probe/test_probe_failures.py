"""What goes wrong with a probe is said clearly, at once, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from probes import finish, run_pair, spec, start, step

LAYERS = ["socket/tcp", "socket/udp", "socket/unix", "shm", "pcaal/udp", "mpi-mvich/shm", "mpi-mvich/udp"]
ENDLESS = [step(), step(min_samples=1 << 24, max_samples=1 << 24)]

Pair = list[subprocess.Popen[str]]


@pytest.fixture
def running() -> Iterator[Pair]:
    """Processes that are killed at the end, whatever the test does."""
    processes: Pair = []
    yield processes
    for process in processes:
        process.kill()
        process.wait(timeout=30)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def start_endless(directory: Path, running: Pair, **changes: Any) -> Pair:
    """Start both ranks and return once a step has been measured and the endless one is on."""
    running.extend(start(directory, spec(directory, rank, ENDLESS, **changes)) for rank in (0, 1))
    out = running[0].stdout
    assert out is not None
    for event in ("hello", "samples"):
        assert json.loads(out.readline())["event"] == event
    return running


def wait_pid(process: subprocess.Popen[str]) -> None:
    process.wait(timeout=30)


@pytest.mark.parametrize("wait", ["default", "yield"])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_peer_killed_in_mid_measurement_is_named_and_no_sample_is_lost(
    tmp_path: Path, running: Pair, layer: str, wait: str
) -> None:
    options = {} if wait == "default" else {"wait": wait}
    leader, follower = start_endless(tmp_path, running, layer=layer, options=options)
    follower.kill()
    status, lines, err = finish(leader)
    assert (status, err) == (1, "")
    # The first step's samples were read by start_endless: they came before the peer was killed.
    assert lines == [{"event": "error", "place": "schedule[1]", "reason": "rank 1 has gone"}]


@pytest.mark.parametrize("layer", LAYERS)
def test_a_killed_leader_ends_its_follower(tmp_path: Path, running: Pair, layer: str) -> None:
    leader, follower = start_endless(tmp_path, running, layer=layer)
    leader.kill()
    status, lines, err = finish(follower)
    assert (status, err) == (1, "")
    assert lines == [{"event": "error", "place": "serving rank 0", "reason": "rank 0 has gone"}]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupts_end_a_probe_and_its_peer(tmp_path: Path, running: Pair, number: signal.Signals) -> None:
    leader, follower = start_endless(tmp_path, running, options={"wait": "yield"})
    leader.send_signal(number)
    assert finish(leader)[0] == -number
    assert finish(follower)[0] == 1


def in_own_folder(directory: Path, layer: str) -> Path:
    folder = directory / layer.replace("/", "-")
    folder.mkdir()
    return folder


def test_the_time_limit_ends_both_and_says_so(tmp_path: Path, running: Pair) -> None:
    for layer in LAYERS:
        # Each is measuring before the next is started, so that the limit is not spent on starting.
        pair: Pair = []
        folder = in_own_folder(tmp_path, layer)
        running.extend(start_endless(folder, pair, layer=layer, limit_s=6.0, options={"wait": "yield"}))
    over = {"event": "error", "place": "limit_s", "reason": "not done after 6 s"}
    for leader, follower in zip(running[::2], running[1::2], strict=True):
        status, lines, err = finish(leader)
        assert (status, err) == (1, "")
        assert [line["event"] for line in lines] == ["error"]
        other, words, err = finish(follower)
        assert (other, len(words), err) == (1, 1, "")
        # Which of the two limits passes first is open; the other then finds its peer gone.
        assert over in (lines[-1], words[0])
        assert lines[-1] == over or lines[-1]["reason"] == "rank 1 has gone"
        assert words[0] == over or words[0]["reason"] == "rank 0 has gone"


def test_a_stopped_peer_is_a_time_limit_not_a_hang(tmp_path: Path, running: Pair) -> None:
    pairs = []
    for layer in LAYERS:
        folder = in_own_folder(tmp_path, layer)
        pair: Pair = []
        running.extend(start_endless(folder, pair, layer=layer, limit_s=6.0, options={"wait": "yield"}))
        pairs.append(pair)
        pair[1].send_signal(signal.SIGSTOP)
    for leader, _ in pairs:
        status, lines, _ = finish(leader)
        assert status == 1
        assert lines == [{"event": "error", "place": "limit_s", "reason": "not done after 6 s"}]


def test_a_peer_that_never_comes_is_named(tmp_path: Path, running: Pair) -> None:
    for layer in LAYERS:
        folder = in_own_folder(tmp_path, layer)
        (folder / "0").mkdir()
        (folder / "1").mkdir()
        for rank in (0, 1):
            alone = folder / str(rank)
            running.append(start(alone, spec(alone, rank, [], layer=layer, limit_s=5.0)))
    for number, layer in enumerate(LAYERS):
        folder = tmp_path / layer.replace("/", "-")
        reasons = ["it did not connect within 2.5s", f"{folder}/1/rank-0 has not appeared within 2.5s"]
        for rank in (0, 1):
            status, lines, _ = finish(running[2 * number + rank])
            assert status == 1
            place = f"waiting for rank {1 - rank}"
            assert lines == [{"event": "error", "place": place, "reason": reasons[rank]}]


def test_a_folder_may_lie_deep(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    (status, lines, _), other = run_pair(deep, [step()], layer="socket/unix")
    assert (status, lines[-1]["event"], other[0]) == (0, "done", 0)


def test_a_file_left_by_an_earlier_run_does_no_harm(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    (tmp_path / "rank-0").write_text(f"127.0.0.1:{port} 1\n")
    (status, lines, _), other = run_pair(tmp_path, [step()])
    assert (status, lines[-1]["event"], other[0]) == (0, "done", 0)


def test_a_stranger_on_the_port_is_turned_away(tmp_path: Path, running: Pair) -> None:
    running.append(start(tmp_path, spec(tmp_path, 0, [step()])))
    while not (tmp_path / "rank-0").exists():
        assert running[0].poll() is None
    address, _ = (tmp_path / "rank-0").read_text().split()
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as stranger:
        stranger.sendall(bytes(12))
        assert stranger.recv(1) == b"", "the connection is closed"
    running.append(start(tmp_path, spec(tmp_path, 1, [step()])))
    status, lines, _ = finish(running[0])
    assert (status, lines[-1]["event"]) == (0, "done")


@pytest.mark.parametrize("layer", ["socket/tcp", "socket/udp"])
def test_a_port_in_use_is_named(tmp_path: Path, layer: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        content = spec(tmp_path, 0, [], layer=layer, options={"port": port})
        status, lines, _ = finish(start(tmp_path, content))
    assert status == 1
    assert lines[0]["place"] == f"listening on 127.0.0.1:{port}"
    assert lines[0]["reason"].startswith("Address already in use")


def test_an_address_of_another_host_is_named(tmp_path: Path) -> None:
    content = spec(tmp_path, 0, [], options={"address": "192.0.2.1"})  # RFC 5737: never assigned
    status, lines, _ = finish(start(tmp_path, content))
    assert status == 1
    assert lines[0]["place"] == "listening on 192.0.2.1:0"
    assert lines[0]["reason"].startswith("Cannot assign requested address")


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    status, lines, _ = finish(start(tmp_path, spec(tmp_path / "none", 0, [])))
    assert status == 1
    assert lines[0]["place"] == f"writing {tmp_path}/none/rank-0"
    assert lines[0]["reason"].startswith("No such file or directory")


@pytest.mark.parametrize(
    ("changes", "place", "reason"),
    [
        ({"layer": "socket/sctp"}, "layer", '"socket/sctp" is not allowed: socket/tcp, socket/udp'),
        ({"protocol": 2}, "protocol", "version 2 is not spoken here: only 1 is"),
        ({"options": {"nagle": True}}, "options.nagle", "unknown key: allowed are nodelay, wait"),
        ({"schedule": [step(bytes=-1)]}, "schedule[0].bytes", "-1 is not allowed: a whole number from 0"),
        ({"schedule": [step(), step(loop="pong")]}, "schedule[1].loop", '"pong" is not allowed: echo, two_'),
        ({"pin_cpu": 4_000_000}, "pin_cpu", "cannot run on core 4000000: this process may use ["),
    ],
)
def test_a_wrong_specification_is_refused_by_file_key_and_value(
    tmp_path: Path, changes: dict[str, Any], place: str, reason: str
) -> None:
    status, lines, err = finish(start(tmp_path, spec(tmp_path, 0, []) | changes))
    assert (status, err, len(lines)) == (1, "", 1)
    assert lines[0]["place"] == f"{tmp_path}/spec-0.json: {place}"
    assert lines[0]["reason"].startswith(reason)


def test_a_truncated_specification_is_refused(tmp_path: Path) -> None:
    status, lines, _ = finish(start(tmp_path, {"rank": 0}, text='{"protocol": 1, "lay'))
    assert status == 1
    assert lines[0]["place"] == f"{tmp_path}/spec-0.json"
    assert lines[0]["reason"].startswith("not JSON: EOF while parsing")


def test_a_specification_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    done = subprocess.run(
        [sys.executable, "-m", "wiretwin.probe", str(path)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "event": "error",
        "place": str(path),
        "reason": "No such file or directory (os error 2)",
    }
    usage = subprocess.run(
        [sys.executable, "-m", "wiretwin.probe"], capture_output=True, text=True, timeout=60
    )
    assert (usage.returncode, usage.stdout) == (1, "")
    assert usage.stderr.startswith("usage: ")


def test_a_full_disk_under_standard_output_is_said_by_the_status(tmp_path: Path, running: Pair) -> None:
    with open("/dev/full", "w") as full:
        path = tmp_path / "spec-0.json"
        path.write_text(json.dumps(spec(tmp_path, 0, [step()])))
        running.append(subprocess.Popen([sys.executable, "-m", "wiretwin.probe", str(path)], stdout=full))
        running.append(start(tmp_path, spec(tmp_path, 1, [step()])))
        wait_pid(running[0])
    assert running[0].returncode == 1
    assert finish(running[1])[1][0]["reason"] == "rank 0 has gone"


def test_a_probe_dies_with_its_harness(tmp_path: Path) -> None:
    specs = []
    for rank in (0, 1):
        path = tmp_path / f"spec-{rank}.json"
        path.write_text(json.dumps(spec(tmp_path, rank, ENDLESS)))
        specs.append(str(path))
    harness = (
        "import subprocess, sys\n"
        "probes = [subprocess.Popen([sys.executable, '-m', 'wiretwin.probe', path],"
        " stdout=subprocess.PIPE) for path in sys.argv[1:]]\n"
        "probes[0].stdout.readline(); probes[0].stdout.readline()\n"
        "print(*(probe.pid for probe in probes), flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", harness, *specs], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        watches = [os.pidfd_open(pid) for pid in pids]
        process.kill()
        for watch in watches:
            assert select.select([watch], [], [], 30)[0], "the probe outlives its harness"
            os.close(watch)
