"""The wire process between real kernels. Time decides nothing but lower bounds, which always hold."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from namespaces import Hosts, run

LIMIT_S = 30.0
HEADERS = 14 + 20 + 8
"""Ethernet, IPv4 and UDP."""

SO_RCVBUFFORCE = 33
"""From `asm-generic/socket.h`: beyond the system's limit."""

needs_hosts = pytest.mark.needs_hosts


@contextmanager
def udp(hosts: Hosts, *numbers: int) -> Iterator[list[socket.socket]]:
    """A datagram socket on each of these hosts, at port 4000."""
    with ExitStack() as stack:
        sockets = []
        for number in numbers:
            with hosts.on(number):
                endpoint = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            endpoint.settimeout(LIMIT_S)
            # Room for all that a test sends before it reads.
            endpoint.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 20)
            endpoint.bind((hosts.address(number), 4000))
            sockets.append(endpoint)
        yield sockets


def settle(hosts: Hosts, taken: int) -> dict[str, Any]:
    """Wait until the wire has taken this many frames and none is under way; the counters."""
    end = time.monotonic() + LIMIT_S
    while True:
        counters = hosts.ask()
        if counters["held"] == 0 and sum(port["received"] for port in counters["ports"]) >= taken:
            return counters
        assert time.monotonic() < end, counters


def send_and_settle(hosts: Hosts, sender: socket.socket, payloads: list[bytes], to: int) -> dict[str, Any]:
    """Send datagrams, a few at a time, and wait until none is under way; the counters."""
    counters = {}
    for start in range(0, len(payloads), 50):
        part = payloads[start : start + 50]
        for payload in part:
            sender.sendto(payload, (hosts.address(to), 4000))
        counters = settle(hosts, start + len(part))
    return counters


def received(endpoint: socket.socket) -> list[bytes]:
    endpoint.setblocking(False)
    payloads = []
    while True:
        try:
            payloads.append(endpoint.recv(2048))
        except BlockingIOError:
            return payloads


def numbered(count: int, size: int = 100) -> list[bytes]:
    return [number.to_bytes(4, "big") + bytes(size - 4) for number in range(count)]


@needs_hosts
@pytest.mark.alone
@pytest.mark.parametrize("medium", ["duplex", "shared", "csma_cd"])
def test_a_round_trip_takes_at_least_its_time_on_the_line(medium: str) -> None:
    wire = {"medium": medium, "rate_bit_s": 10_000_000, "delay_ns": 20_000}
    with Hosts(wire) as hosts, udp(hosts, 0, 1) as (near, far):
        for payload in (1, 18, 500, 1472):
            for _ in range(5):
                start = time.perf_counter_ns()
                near.sendto(bytes(payload), (hosts.address(1), 4000))
                octets, sender = far.recvfrom(2048)
                far.sendto(octets, sender)
                assert near.recv(2048) == bytes(payload)
                took = time.perf_counter_ns() - start
                line_octets = 8 + max(HEADERS + payload, 60) + 4
                assert took >= 2 * (line_octets * 800 + 20_000)
        counters = hosts.stop()
    for port in counters["ports"]:
        assert (port["received"], port["delivered"]) == (20, 20)
        assert sum(port[key] for key in port if key.endswith("drops")) == 0
        assert (port["refused"], port["malformed"]) == (0, 0)
    assert counters["reason"] == "SIGTERM"
    assert counters["lateness_ns"]["count"] == 40


@needs_hosts
def test_a_switch_sends_where_it_has_learnt_and_a_shared_medium_everywhere() -> None:
    seen = {}
    for medium in ("duplex", "shared"):
        hosts = Hosts({"medium": medium, "rate_bit_s": 100_000_000}, count=3)
        with hosts, udp(hosts, 0, 1, 2) as (first, second, _third):
            first.sendto(b"a", (hosts.address(1), 4000))
            assert second.recv(16) == b"a"
            for _ in range(5):
                second.sendto(b"b", (hosts.address(0), 4000))
                assert first.recv(16) == b"b"
                first.sendto(b"c", (hosts.address(1), 4000))
                assert second.recv(16) == b"c"
            seen[medium] = [port["delivered"] for port in settle(hosts, 11)["ports"]]
    assert seen == {"duplex": [5, 6, 1], "shared": [5, 6, 11]}


@needs_hosts
def test_stations_that_collide_lose_nothing_uncounted() -> None:
    hosts = Hosts({"medium": "csma_cd", "rate_bit_s": 10_000_000}, count=3)
    with hosts, udp(hosts, 0, 1, 2) as (first, second, third):
        for payload in numbered(40, 500):
            first.sendto(payload, (hosts.address(2), 4000))
            second.sendto(payload, (hosts.address(2), 4000))
        ports = settle(hosts, 80)["ports"]
        arrived = len(received(third))
    given_up = sum(port["collision_drops"] for port in ports)
    assert arrived == 80 - given_up
    assert [port["received"] for port in ports] == [40, 40, 0]
    assert ports[2]["delivered"] == arrived


@needs_hosts
def test_a_rule_drops_the_frames_that_its_seed_says() -> None:
    def crossing(rule: dict[str, Any], seed: int) -> list[int]:
        wire = {"medium": "duplex", "rate_bit_s": 1_000_000_000, "rules": [rule], "seed": seed}
        with Hosts(wire) as hosts, udp(hosts, 0, 1) as (near, far):
            counters = send_and_settle(hosts, near, numbered(200), 1)
            crossed = [int.from_bytes(octets[:4], "big") for octets in received(far)]
        port = counters["ports"][1]
        assert port["rule_drops"] == 200 - len(crossed)
        assert port["delivered"] == len(crossed)
        return crossed

    chance = {"drop": 0.2, "to": "h2", "protocol": "udp"}
    first = crossing(chance, 7)
    assert 120 < len(first) < 195
    assert crossing(chance, 7) == first
    assert crossing(chance, 8) != first
    assert crossing({"drop": 1.0, "protocol": "tcp"}, 7) == list(range(200))
    every = crossing({"drop": {"every": 4}, "from": "h1"}, 7)
    assert every == [number for number in range(200) if number % 4 != 3]


@needs_hosts
def test_frames_are_duplicated_overtaken_and_damaged() -> None:
    rules = [
        {"duplicate": {"nth": [3]}, "to": "h2"},
        {"reorder": {"nth": [6]}, "frames": 2, "hold_ns": 1_000_000_000, "to": "h2"},
    ]
    with (
        Hosts({"medium": "duplex", "rate_bit_s": 1_000_000, "rules": rules}) as hosts,
        udp(hosts, 0, 1) as (near, far),
    ):
        counters = send_and_settle(hosts, near, numbered(10), 1)
        order = [int.from_bytes(octets[:4], "big") for octets in received(far)]
    assert order.count(2) == 2
    assert list(dict.fromkeys(order)) == [0, 1, 2, 3, 4, 6, 7, 5, 8, 9]
    assert (counters["ports"][1]["duplicated"], counters["ports"][1]["reordered"]) == (1, 1)

    rules = [{"corrupt": {"every": 2}, "to": "h2"}]
    with (
        Hosts({"medium": "duplex", "rate_bit_s": 1_000_000_000, "rules": rules}) as hosts,
        udp(hosts, 0, 1) as (near, far),
    ):
        sent = numbered(200, 1000)
        counters = send_and_settle(hosts, near, sent, 1)
        whole = received(far)
    assert counters["ports"][1]["corrupted"] == 100
    assert counters["ports"][1]["delivered"] == 200
    # The kernel's checksums catch what the wire let pass; a flipped source address harms nothing.
    assert set(whole) <= set(sent)
    assert set(sent[::2]) <= set(whole)
    assert 100 <= len(whole) < 110


@needs_hosts
def test_tcp_brings_everything_across_a_bad_wire() -> None:
    rules = [
        {"drop": 0.01},
        {"corrupt": 0.01},
        {"duplicate": 0.01},
        {"reorder": 0.01, "frames": 3},
    ]
    content = random.Random(1).randbytes(1_000_000)
    with Hosts({"medium": "duplex", "rate_bit_s": 1_000_000_000, "rules": rules}) as hosts:
        with ExitStack() as stack:
            with hosts.on(1):
                server = stack.enter_context(socket.create_server((hosts.address(1), 5000)))
            with hosts.on(0):
                client = stack.enter_context(socket.socket())
            server.settimeout(LIMIT_S)
            client.settimeout(LIMIT_S)

            def send() -> None:
                client.connect((hosts.address(1), 5000))
                client.sendall(content)
                client.shutdown(socket.SHUT_WR)

            thread = threading.Thread(target=send)
            thread.start()
            connection, _ = server.accept()
            connection.settimeout(LIMIT_S)
            digest = hashlib.sha256()
            with connection:
                while octets := connection.recv(1 << 16):
                    digest.update(octets)
            thread.join(LIMIT_S)
        counters = hosts.stop()
    assert digest.digest() == hashlib.sha256(content).digest()
    assert sum(port["rule_drops"] for port in counters["ports"]) > 0
    totals = {
        key: sum(port[key] for port in counters["ports"]) for key in counters["ports"][0] if key != "name"
    }
    lost = totals["queue_drops"] + totals["switch_drops"] + totals["rule_drops"] + totals["filtered"]
    lost += totals["collision_drops"] + totals["damaged"]
    entered = totals["received"] + totals["copied"] + totals["duplicated"]
    assert entered == totals["delivered"] + lost + counters["held"]


@needs_hosts
def test_a_queue_that_is_full_drops_and_says_so() -> None:
    wire = {"medium": "duplex", "rate_bit_s": 100_000, "queue_frames": 5}
    with Hosts(wire) as hosts, udp(hosts, 0, 1) as (near, far):
        counters = send_and_settle(hosts, near, numbered(40), 1)
        assert len(received(far)) == counters["ports"][1]["delivered"]
    port = counters["ports"][0]
    assert port["queue_drops"] > 0
    assert port["queue_drops"] + counters["ports"][1]["delivered"] == 40


@needs_hosts
def test_a_device_that_is_deleted_ends_the_wire_by_name() -> None:
    with Hosts({"medium": "duplex", "rate_bit_s": 10_000_000}) as hosts:
        run("ip", "-n", hosts.names[1], "link", "delete", "eth0")
        counters, error = hosts.next_line(), hosts.next_line()
        assert counters["event"] == "counters"
        assert (error["event"], error["place"]) == ("error", "port h2")
        assert error["reason"].endswith("(the device has been deleted)")
        assert hosts.process is not None
        assert hosts.process.wait(timeout=LIMIT_S) == 1


@needs_hosts
def test_the_limit_ends_the_wire_and_takes_its_devices_away() -> None:
    with Hosts({"medium": "duplex", "rate_bit_s": 10_000_000, "limit_s": 1.0}) as hosts:
        assert "eth0" in run("ip", "-n", hosts.names[0], "-br", "link")
        counters = hosts.next_line()
        assert (counters["event"], counters["reason"]) == ("counters", "limit_s")
        assert counters["elapsed_s"] >= 1.0
        assert hosts.process is not None
        assert hosts.process.wait(timeout=LIMIT_S) == 0
        assert "eth0" not in run("ip", "-n", hosts.names[0], "-br", "link")


@needs_hosts
def test_a_device_that_is_down_loses_frames_and_nothing_else() -> None:
    with Hosts({"medium": "duplex", "rate_bit_s": 100_000_000}) as hosts, udp(hosts, 0, 1) as (near, far):
        run("ip", "-n", hosts.names[1], "link", "set", "eth0", "down")
        counters = send_and_settle(hosts, near, numbered(3), 1)
        assert counters["ports"][1]["refused"] == 3
        run("ip", "-n", hosts.names[1], "link", "set", "eth0", "up")
        near.sendto(b"again", (hosts.address(1), 4000))
        assert far.recv(16) == b"again"


def refusal(tmp_path: Path, text: str) -> dict[str, Any]:
    path = tmp_path / "wire.json"
    path.write_text(text)
    command = [sys.executable, "-m", "wiretwin.wire", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 1, done
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["event"] for line in lines] == ["error"]
    return dict(lines[0])


RIGHT: dict[str, Any] = {
    "format": "wiretwin-wire",
    "version": 1,
    "medium": "duplex",
    "rate_bit_s": 10_000_000,
    "limit_s": 1,
    "ports": [{"tap": "wt-none0"}, {"tap": "wt-none1"}],
}


def test_what_is_wrong_with_a_specification_is_said_by_key(tmp_path: Path) -> None:
    error = refusal(tmp_path, json.dumps(RIGHT | {"rate_bit_s": 0}))
    assert error["place"].endswith("wire.json: rate_bit_s")
    assert error["reason"] == "0 is not allowed: an integer from 1000 to 1000000000000"
    ports = [{"tap": "wt-none0"}, {"tap": "wt-none1", "cpu": 65_000}]
    error = refusal(tmp_path, json.dumps(RIGHT | {"ports": ports}))
    assert error["place"].endswith("wire.json: ports[1].cpu")
    assert error["reason"].startswith("cannot run on core 65000: this process may use [")
    error = refusal(tmp_path, "{")
    assert error["place"].endswith("wire.json: the whole")
    done = subprocess.run(
        [sys.executable, "-m", "wiretwin.wire"], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 1
    assert "usage:" in done.stderr


def test_a_device_or_a_namespace_that_is_not_there_is_named(tmp_path: Path) -> None:
    error = refusal(tmp_path, json.dumps(RIGHT))
    assert error["place"] == "port wt-none0"
    assert error["reason"] == "TAP device `wt-none0`: finding: there is no interface of that name"
    ports = [{"tap": "eth0", "netns": "/run/netns/wt-none", "name": "a"}, {"tap": "wt-none1"}]
    error = refusal(tmp_path, json.dumps(RIGHT | {"ports": ports}))
    assert error["place"] == "port a"
    assert "`eth0` in /run/netns/wt-none: opening the namespace: No such file" in error["reason"]


@needs_hosts
def test_nothing_is_left_behind_when_the_wire_is_killed() -> None:
    with Hosts({"medium": "shared", "rate_bit_s": 10_000_000}) as hosts:
        assert hosts.process is not None
        hosts.process.kill()
        hosts.process.wait(timeout=LIMIT_S)
        assert "eth0" not in run("ip", "-n", hosts.names[0], "-br", "link")
    assert not set(hosts.names) & set(os.listdir("/run/netns"))


@needs_hosts
def test_what_crosses_is_captured_as_another_program_reads_it(tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        if os.environ.get("CI"):
            pytest.fail("CI reads captures with tshark: it is missing")
        pytest.skip("needs tshark (Debian: tshark)")
    path = tmp_path / "wire.pcapng"
    rules = [{"drop": {"nth": [2]}, "to": "h2"}]
    wire = {"medium": "duplex", "rate_bit_s": 1_000_000, "rules": rules, "capture": str(path)}
    started = time.time()
    with Hosts(wire) as hosts, udp(hosts, 0, 1) as (near, far):
        send_and_settle(hosts, near, numbered(3), 1)
        assert len(received(far)) == 2
        counters = hosts.stop()
    assert counters["uncaptured"] == 0
    fields = ["frame.interface_name", "frame.packet_flags_direction", "udp.payload", "frame.time_epoch"]
    command = ["tshark", "-r", str(path), "-Y", "udp", "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    rows = [row.split("\t") for row in run(*command).splitlines()]
    seen = [(name, int(direction, 0), int(payload[:8], 16)) for name, direction, payload, _ in rows]
    assert [row for row in seen if row[0] == "h1"] == [("h1", 2, number) for number in range(3)]
    assert [row for row in seen if row[0] == "h2"] == [("h2", 1, 0), ("h2", 1, 2)]
    times = {(name, number): float(row[3]) for (name, _, number), row in zip(seen, rows, strict=True)}
    # 154 octets of 8 us each, from the instant the wire found the frame.
    assert times["h2", 0] - times["h1", 0] == pytest.approx(154 * 8e-6, abs=1e-6)
    assert started - 1 < times["h1", 0] < time.time() + 1


@needs_hosts
def test_a_capture_that_cannot_be_written_is_said_at_the_end() -> None:
    wire = {"medium": "duplex", "rate_bit_s": 1_000_000, "capture": "/dev/full"}
    with Hosts(wire) as hosts:
        assert hosts.process is not None
        hosts.process.terminate()
        assert hosts.next_line()["event"] == "counters"
        error = hosts.next_line()
        assert (error["event"], error["place"]) == ("error", "capture")
        assert "/dev/full" in error["reason"]
        assert "No space left" in error["reason"]
        assert hosts.process.wait(timeout=LIMIT_S) == 1


@needs_hosts
def test_a_thread_for_each_core_that_ports_name_takes_their_frames() -> None:
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    hosts = Hosts({"medium": "duplex", "rate_bit_s": 100_000_000}, count=3, cpus=[first, first, last])
    with hosts, udp(hosts, 0, 1, 2) as (near, other, far):
        assert hosts.process is not None
        assert hosts.ready["cores"] == sorted({first, last})
        for number in range(100):
            near.sendto(number.to_bytes(4, "big"), (hosts.address(2), 4000))
            assert far.recv(16) == number.to_bytes(4, "big")
            far.sendto(number.to_bytes(4, "big"), (hosts.address(1), 4000))
            assert other.recv(16) == number.to_bytes(4, "big")
        there = [
            next(line.split()[1] for line in status.read_text().splitlines() if "Cpus_allowed_list" in line)
            for status in Path(f"/proc/{hosts.process.pid}/task").glob("*/status")
        ]
        assert {str(first), str(last)} <= set(there)
        counters = hosts.stop()
    assert [port["received"] for port in counters["ports"]] == [100, 0, 100]
