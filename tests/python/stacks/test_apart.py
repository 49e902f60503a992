"""PVM, Sun RPC, UCX and libfabric on one host: measured, run by programs, refused, and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests_stacks import LIMIT_S, LONG, configured, lines_of, nothing_left, quick, run_program
from watching import Watch

from wiretwin.errors import InputError
from wiretwin.measure import running as running_module
from wiretwin.measure.launch import Outcome, launch
from wiretwin.measure.running import rendezvous
from wiretwin.place import HERE
from wiretwin.stacks import STACKS, StackError, rpc
from wiretwin.stacks import pvm as pvm_module
from wiretwin.stacks.layers import parse_layers
from wiretwin.stacks.word import TOGETHER

PVM = ["pvm/pvm3", "pvm/pvm3+advise", "pvm/pvm3+raw", "pvm/pvm3+advise+inplace"]
RPC = ["rpc/tirpc", "rpc/tirpc+array", "rpc/tirpc+udp", "rpc/tirpc+udp8k", "rpc/tirpc+array+udp"]
FABRIC = ["ucx", "ucx+shm", "ucx+yield", "libfabric", "libfabric+shm", "libfabric+udp"]


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTEST_OF", str(os.getpid()))
    with nothing_left():
        yield


def measured(name: str, sizes: tuple[int, ...] = (4, 4097, 1 << 17)) -> Outcome:
    configuration = configured(name)
    steps = [
        quick(loop, size, messages=5 if loop in ("stream", "prtt") else 1)
        for loop in sorted(configuration.loops - TOGETHER)
        for size in sizes
        if size <= configuration.max_bytes
    ]
    outcome = launch(configuration, steps, limit_s=LIMIT_S, pins=None)
    assert (outcome.status, outcome.error) == ("ok", None)
    assert len(outcome.steps) == len(steps)
    assert all(len(step["values_ns"]) == 5 for step in outcome.steps)
    return outcome


def effective(outcome: Outcome) -> dict[str, Any]:
    assert outcome.hello is not None
    found: dict[str, Any] = outcome.hello["effective"]
    return found


@pytest.mark.parametrize("name", [*PVM, *RPC, *FABRIC])
def test_every_loop_runs_on_every_layer(name: str) -> None:
    assert effective(measured(name))


@pytest.mark.parametrize("name", PVM)
def test_pvm_says_which_route_and_encoding_it_took(name: str) -> None:
    found = effective(measured(name, (4,)))
    route = "direct" if "advise" in name else "normal"
    assert (found["route"], found["route_taken"]) == (route, route)
    assert found["direct_connections"] == (1 if route == "direct" else 0)
    encoding = next((word for word in ("raw", "inplace") if word in name), "default")
    assert found["encoding"] == encoding
    assert found["pvm"].startswith("3.")
    assert found["fragment_bytes"] == 4080


def test_a_direct_route_that_the_other_task_refuses_is_seen_to_be_normal() -> None:
    options = configured("pvm/pvm3+advise").options
    with STACKS["pvm/pvm3"].up(HERE, options) as session, rendezvous() as directory:
        specs = []
        for rank, route in enumerate(("direct", "normal")):
            spec = {
                "protocol": 1,
                "layer": "pvm/pvm3",
                "shim": str(session.shim),
                "rank": rank,
                "size": 2,
                "options": {"route": route, "encoding": "default"},
                "directory": str(directory),
                "limit_s": LIMIT_S,
                "schedule": [quick("echo", 64).spec()],
            }
            specs.append(directory / f"spec-{rank}.json")
            specs[-1].write_text(json.dumps(spec))
        probe = [sys.executable, "-m", "wiretwin.probe"]
        started = []
        for rank, command in enumerate(session.commands(probe, specs, 2)):
            with (directory / f"stdout-{rank}").open("wb") as out:
                started.append(subprocess.Popen(command.argv, stdout=out, stdin=subprocess.DEVNULL))
        assert [one.wait(LIMIT_S) for one in started] == [0, 0]
        (hello,) = [line for line in lines_of(directory) if line["event"] == "hello"]
    assert hello["effective"]["route"] == "direct"
    assert hello["effective"]["route_taken"] == "normal"


def test_rpc_over_udp_has_the_room_that_its_buffers_have() -> None:
    assert effective(measured("rpc/tirpc+udp8k"))["rpc_buffer_bytes"] == 8800
    largest = {name: parse_layers(name)[0].max_bytes for name in RPC}
    assert largest["rpc/tirpc+udp8k"] == 8800 - 48 - 3
    assert largest["rpc/tirpc+udp"] == 65507 - 48 - 3
    assert largest["rpc/tirpc+array+udp"] == (65507 - 48) // 4
    for name in ("rpc/tirpc+udp8k", "rpc/tirpc+udp", "rpc/tirpc+array+udp"):
        configuration = configured(name)
        fits = launch(configuration, [quick("echo", largest[name])], limit_s=LIMIT_S, pins=None)
        assert (fits.status, fits.error) == ("ok", None)
        over = launch(configuration, [quick("echo", largest[name] + 4)], limit_s=LIMIT_S, pins=None)
        assert over.status == "failed"
        assert over.error is not None
        assert "UDP's buffers hold" in over.error


def test_rpc_over_udp_does_not_batch() -> None:
    configuration = configured("rpc/tirpc+udp")
    outcome = launch(configuration, [quick("stream", 4, messages=3)], limit_s=10.0, pins=None)
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert "two sends in a row need batching, which TCP has" in outcome.error
    with pytest.raises(InputError, match="sets transport twice"):
        parse_layers("rpc/tirpc+udp+udp8k")


def test_rpc_is_of_two_ranks_only() -> None:
    configuration = configured("rpc/tirpc")
    stack = configuration.kind.stack
    assert stack is not None
    with stack.up(HERE, configuration.options) as session, rendezvous() as directory:
        running = running_module.Running(directory, time.monotonic() + LIMIT_S)
        task = {"program": {"name": "ring", "elements": 8, "rounds": 1}}
        running.start(configuration, task, 3, LIMIT_S, session=session)
        status, _ = running.wait(None)
        running.end(clean=False)
        said = lines_of(directory)
    assert status == "failed"
    assert "size=3 is not allowed: RPC has one client and one server, 2" in said[0]["reason"]


PROGRAMS = [
    {"name": "ring", "elements": 1000, "rounds": 3},
    {"name": "jacobi", "rows": 24, "columns": 24, "iterations": 10},
]


@pytest.mark.parametrize("program", PROGRAMS, ids=["ring", "jacobi"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_programs_give_the_same_on_every_library(program: dict[str, Any], ranks: int) -> None:
    names = ["pvm/pvm3", "pvm/pvm3+advise+inplace", "ucx+yield", "libfabric+yield"]
    if ranks == 2:
        names += ["rpc/tirpc", "rpc/tirpc+udp"]
    digests = {}
    for name in names:
        lines = run_program(name, program, ranks)
        assert len(lines) == ranks
        assert all(line["verified"] for line in lines)
        digests[name] = [line["digest"] for line in lines]
    assert len({tuple(found) for found in digests.values()}) == 1, digests


@pytest.mark.parametrize(
    "program",
    [{"name": "echo", "bytes": 70000, "rounds": 4}, {"name": "stream", "bytes": 3000, "messages": 20}],
    ids=["echo", "stream"],
)
@pytest.mark.parametrize("name", ["pvm/pvm3", "rpc/tirpc", "rpc/tirpc+array", "ucx", "libfabric"])
def test_programs_of_two_ranks_run(name: str, program: dict[str, Any]) -> None:
    assert all(line["verified"] for line in run_program(name, program, 2))


@pytest.mark.parametrize("name", ["pvm/pvm3", "pvm/pvm3+advise", "rpc/tirpc", "ucx", "libfabric+shm"])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_is_named_and_leaves_nothing(name: str, rank: int) -> None:
    configuration = configured(name)
    watch = Watch(b'"samples"', lambda ranks: ranks[rank].kill(), LIMIT_S)
    outcome = launch(configuration, [quick("echo", 64), LONG], limit_s=LIMIT_S, pins=None)
    watch.join()
    assert (outcome.status, outcome.error) == ("failed", f"rank {rank} was ended by signal 9 (SIGKILL)")
    assert len(outcome.steps) == 1
    assert outcome.seconds < LIMIT_S / 2


def daemons_of(mark: str) -> list[psutil.Process]:
    return [
        one
        for one in psutil.process_iter(["name", "environ"])
        if one.info["name"] == "pvmd" and mark in (one.info["environ"] or {}).get("PVM_TMP", "")
    ]


def test_a_killed_pvmd_is_named_and_the_next_session_has_another() -> None:
    configuration = configured("pvm/pvm3")

    def kill(ranks: list[psutil.Process]) -> None:
        (daemon,) = daemons_of(Path(ranks[0].environ()["PVM_TMP"]).parent.name)
        daemon.send_signal(signal.SIGKILL)

    watch = Watch(b'"samples"', kill, LIMIT_S)
    outcome = launch(configuration, [quick("echo", 64), LONG], limit_s=LIMIT_S, pins=None)
    watch.join()
    assert outcome.status == "failed"
    assert outcome.error is not None
    assert "the daemon (pvmd) does not answer" in outcome.error
    assert outcome.seconds < LIMIT_S / 2
    measured("pvm/pvm3", (4,))


def test_a_pvmd_that_runs_already_is_neither_used_nor_disturbed() -> None:
    configured("pvm/pvm3")
    own = Path(f"/tmp/pvmd.{os.getuid()}")
    environment = {name: value for name, value in os.environ.items() if name != "PVM_TMP"}
    environment |= {"PVM_ROOT": "/usr/lib/pvm3", "PVM_ALLOW_ROOT": "1"}
    theirs = None
    if not own.exists():
        theirs = subprocess.Popen(
            ["/usr/lib/pvm3/lib/pvmd", "-n127.0.0.1"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    try:
        deadline = time.monotonic() + LIMIT_S
        while not (own.exists() and own.read_bytes()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        before = own.read_bytes()
        assert effective(measured("pvm/pvm3", (4,)))["task"] in ("t40001", "t40002"), (
            "the first tasks of a new machine"
        )
        assert own.read_bytes() == before
        if theirs is not None:
            assert theirs.poll() is None
            subprocess.run(
                ["/usr/lib/pvm3/lib/pvm"],
                input=b"halt\n",
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=LIMIT_S,
                check=False,
            )
            theirs.wait(LIMIT_S)
    finally:
        if theirs is not None:
            theirs.kill()
            theirs.wait()
            for path in (own, own.with_name(f"pvml.{os.getuid()}")):
                path.unlink(missing_ok=True)


def test_a_pvmd_that_cannot_start_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    configured("pvm/pvm3")
    root = tmp_path / "pvm3"
    (root / "lib").mkdir(parents=True)
    for name, words in (("pvmd", "echo no memory today; exit 3"), ("pvm", "exit 1")):
        (root / "lib" / name).write_text(f"#!/bin/sh\n{words}\n")
        (root / "lib" / name).chmod(0o755)
    monkeypatch.setenv("PVM_ROOT", str(root))
    with (
        pytest.raises(StackError, match=r"ended with status 3:\nno memory today"),
        STACKS["pvm/pvm3"].up(HERE, {"route": "normal", "encoding": "default"}),
    ):
        pass
    monkeypatch.setattr(pvm_module, "UP_LIMIT_S", 0.2)
    monkeypatch.setattr(pvm_module, "DOWN_LIMIT_S", 0.2)
    (root / "lib" / "pvmd").write_text("#!/bin/sh\nexec sleep 600\n")
    with (
        pytest.raises(StackError, match=r"did not listen within 0.2 s"),
        STACKS["pvm/pvm3"].up(HERE, {"route": "normal", "encoding": "default"}),
    ):
        pass


def test_a_daemon_that_is_missing_is_named_with_its_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PVM_ROOT", str(tmp_path))
    refused = STACKS["pvm/pvm3"].refusal(parse_layers("pvm/pvm3")[0].options, HERE)
    assert refused is not None
    assert str(refused) == f"no `{tmp_path}/lib/pvmd`; `apt-get install --no-install-recommends pvm pvm-dev`"


def test_shared_memory_is_refused_between_hosts() -> None:
    class Two:
        hosts = (*HERE.hosts, *HERE.hosts)

        def describe(self) -> dict[str, Any]:
            return {"kind": "remote"}

    for name in ("ucx+shm", "libfabric+shm"):
        configuration = configured(name)
        assert configuration.kind.stack is not None
        refused = configuration.kind.stack.refusal(configuration.options, Two())  # type: ignore[arg-type]
        assert refused is not None
        assert refused.reason == "shared memory does not reach another host"


def test_a_provider_that_is_not_there_is_refused_by_the_library() -> None:
    configuration = configured("libfabric")
    stack = configuration.kind.stack
    assert stack is not None
    for layer, option, value, words in (
        (
            "libfabric",
            "provider",
            "carrier-pigeon",
            "provider carrier-pigeon at 127.0.0.1: No data available",
        ),
        ("ucx", "tls", "pigeon", "ucp_init: No such device; UCX_TLS was pigeon"),
    ):
        (wrong,) = parse_layers(layer)
        wrong = type(wrong)(wrong.kind, wrong.words, {**wrong.options, option: value}, wrong.loops)
        outcome = launch(wrong, [quick("echo", 4)], limit_s=LIMIT_S, pins=None)
        assert outcome.status == "failed"
        assert outcome.error is not None
        assert words in outcome.error


def test_rpcbind_is_needed_between_hosts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bed:
        hosts = HERE.hosts

        def describe(self) -> dict[str, Any]:
            return {"kind": "testbed"}

    configured("rpc/tirpc")
    monkeypatch.setattr(rpc, "_rpcbind", lambda: None)
    options = parse_layers("rpc/tirpc")[0].options
    assert STACKS["rpc/tirpc"].refusal(options, HERE) is None
    refused = STACKS["rpc/tirpc"].refusal(options, Bed())  # type: ignore[arg-type]
    assert refused is not None
    assert str(refused) == "no `rpcbind`; `apt-get install --no-install-recommends rpcbind`"
