"""PVM, Sun RPC, UCX and libfabric between hosts: measured, broadcast, and their faults."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from tests_stacks import LIMIT_S, configured, nothing_left, quick, run_program

from wiretwin.errors import InputError, MeasureError
from wiretwin.marks import LAUNCH
from wiretwin.measure.launch import launch
from wiretwin.place import HERE
from wiretwin.stacks import STACKS, StackError
from wiretwin.stacks.broadcast import LARGEST, broadcast
from wiretwin.testbed import Testbed

LAYERS = ["pvm/pvm3", "pvm/pvm3+advise", "rpc/tirpc", "rpc/tirpc+udp", "libfabric+udp"]
SIZE = 20_000
ROUNDS = 5


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTEST_OF", str(os.getpid()))
    with nothing_left():
        yield


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    try:
        made = Testbed.up(4, name=f"apart-{os.getpid()}")
    except (InputError, MeasureError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with made:
        yield made


def carried(bed: Testbed) -> dict[str, int]:
    return {name: counters.bytes_out for name, counters in bed.counters().items()}


@pytest.mark.parametrize("name", LAYERS)
def test_every_message_crosses_the_network(name: str, bed: Testbed) -> None:
    configuration = configured(name, bed)
    step = quick("echo", SIZE, warmup=0, min_samples=ROUNDS, max_samples=ROUNDS, batch=1)
    before = carried(bed)
    outcome = launch(configuration, [step], limit_s=LIMIT_S, pins=None, place=bed)
    assert (outcome.status, outcome.error) == ("ok", None)
    assert outcome.hello is not None
    effective: dict[str, Any] = outcome.hello["effective"]
    after = carried(bed)
    for host in ("h1", "h2"):
        assert after[host] - before[host] >= ROUNDS * SIZE, host
    assert after["h3"] - before["h3"] < SIZE
    if name == "pvm/pvm3+advise":
        assert (effective["route_taken"], effective["direct_over"]) == ("direct", "tcp")
    if name == "pvm/pvm3":
        assert (effective["route_taken"], effective["daemons"]) == ("normal", 4)
    if name.startswith("rpc"):
        assert effective["rpcbind"] is True


@pytest.mark.parametrize("name", ["pvm/pvm3", "pvm/pvm3+advise", "ucx+yield", "libfabric+yield"])
def test_four_hosts_run_one_program(name: str, bed: Testbed) -> None:
    program = {"name": "jacobi", "rows": 32, "columns": 32, "iterations": 8}
    here = run_program("ucx+yield", program, 4)
    there = run_program(name, program, 4, bed)
    assert [line["digest"] for line in there] == [line["digest"] for line in here]
    assert all(line["verified"] for line in there)


def test_a_broadcast_ends_with_the_answer_of_every_other_host(bed: Testbed) -> None:
    configured("rpc/tirpc", bed)
    found = broadcast(bed, [4, 1000], samples=10, limit_s=LIMIT_S)
    assert set(found) == {4, 1000}
    assert all(len(values) == 10 and min(values) > 0 for values in found.values())
    before = carried(bed)
    broadcast(bed, [LARGEST], samples=3, warmup=0, limit_s=LIMIT_S)
    after = carried(bed)
    for host in ("h2", "h3", "h4"):
        assert after[host] - before[host] >= 3 * LARGEST, host
    assert statistics.median(found[4]) < 10**9


def test_a_broadcast_is_refused_where_it_cannot_be(bed: Testbed) -> None:
    with pytest.raises(InputError, match=r"sizes: '1025' cannot be broadcast; allowed: 0 to 1024"):
        broadcast(bed, [LARGEST + 1])
    with pytest.raises(InputError, match=r"allowed: a testbed of 2 hosts or more"):
        broadcast(HERE, [4])


def test_a_taken_port_of_rpcbind_is_explained(bed: Testbed) -> None:
    configuration = configured("rpc/tirpc", bed)
    hold = "import socket,sys;s=socket.create_server(('0.0.0.0',111));print(1,flush=True);sys.stdin.read()"
    holder = subprocess.Popen(
        bed.host("h2").command([sys.executable, "-c", hold]), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"1\n"
        outcome = launch(configuration, [quick("echo", 4)], limit_s=LIMIT_S, pins=None, place=bed)
    finally:
        holder.communicate(timeout=LIMIT_S)
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert "rpcbind on h2 does not answer" in outcome.error


@pytest.mark.parametrize(
    ("layer", "daemon", "words"),
    [
        ("rpc/tirpc", "rpcbind", "rpcbind does not take the registration"),
        ("pvm/pvm3", "pvmd", "no PVM daemon answers on this host"),
    ],
)
def test_a_killed_daemon_is_named_by_the_next_launch(
    layer: str, daemon: str, words: str, bed: Testbed
) -> None:
    configuration = configured(layer, bed)
    with STACKS[layer].up(bed, configuration.options) as session:
        started = [
            process
            for process in psutil.process_iter(["name", "environ"])
            if process.info["name"] == daemon
            and LAUNCH in (process.info["environ"] or {})
            and process.info["environ"].get("PYTEST_OF", str(os.getpid())) == str(os.getpid())
            and str(bed.directory) in process.info["environ"][LAUNCH]
        ]
        assert len(started) >= 4
        for process in started:
            process.send_signal(signal.SIGKILL)
        psutil.wait_procs(started, timeout=LIMIT_S)
        outcome = launch(
            configuration, [quick("echo", 4)], limit_s=LIMIT_S, pins=None, place=bed, session=session
        )
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert words in outcome.error
    again = launch(configuration, [quick("echo", 4)], limit_s=LIMIT_S, pins=None, place=bed)
    assert (again.status, again.error) == ("ok", None)


def test_pvm_says_which_hosts_did_not_join(bed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = configured("pvm/pvm3", bed)
    monkeypatch.setattr(
        "wiretwin.stacks.pvm._AGENT", "#!/bin/sh\necho no way to $1 >&2\nexit 1\n#{agent}{common}{folder}"
    )
    with (
        pytest.raises(StackError, match=r"1 of 4 hosts joined the virtual machine"),
        STACKS["pvm/pvm3"].up(bed, configuration.options),
    ):
        pass
