"""One launch with real processes: good ends, bad ends, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import watching
from watching import Watch, becomes, marked_processes

from wiretwin import keeper, scratch
from wiretwin.loops import COLLECTIVES, LOOPED
from wiretwin.marks import LAUNCH, await_gone
from wiretwin.measure import running
from wiretwin.measure.first_mpi4py import EARLY_BYTES
from wiretwin.measure.launch import Interruption, launch
from wiretwin.measure.running import Running, rendezvous
from wiretwin.measure.schedule import Step
from wiretwin.results import SAMPLE_COLUMNS
from wiretwin.stacks.layers import ALL_LOOPS, LAYERS, Configuration, parse_layers
from wiretwin.stacks.word import FIRST, SHARING, TOGETHER

LIMIT_S = 60.0
LONG = Step("echo", 4, min_samples=1_000_000, max_samples=1_000_000, batch=100)
"""Ten minutes of echo: a launch that is still running when something is done to it."""


def quick(loop: str, size: int = 64, **changes: object) -> Step:
    fields = {"warmup": 2, "min_samples": 5, "max_samples": 5, "budget_ms": 5.0} | changes
    return Step(loop, size, **fields)  # type: ignore[arg-type]


def family() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTEST_OF", str(os.getpid()))
    keeper.name()  # this process's own, which stays
    before = family()
    yield
    assert family() - before == set()
    assert marked_processes() == {}
    assert [path for path in OWN if path.exists()] == []


OWN: set[Path] = set()
"""The directories of the launches made by this test."""


@pytest.fixture(autouse=True)
def _remember_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    make = scratch._make

    def remember(parent: Path, prefix: str, token: str) -> Path:
        made = make(parent, prefix, token)
        OWN.add(made)
        return made

    monkeypatch.setattr(scratch, "_make", remember)


@pytest.mark.parametrize(
    "name", [name for name, kind in LAYERS.items() if kind.loops >= ALL_LOOPS and not kind.opt_in]
)
def test_every_layer_runs_every_loop(name: str) -> None:
    loops = [
        "echo",
        "two_write",
        "send_busy",
        "recv_busy",
        "interrupt",
        *sorted(LAYERS[name].loops - ALL_LOOPS - TOGETHER - FIRST),
    ]
    schedule = [quick(loop) for loop in loops]
    schedule += [quick("stream", messages=7), quick("prtt", messages=3, delay_ns=2000), quick("call", 0)]
    outcome = launch(parse_layers(name)[0], schedule, limit_s=LIMIT_S, pins=None)
    assert (outcome.status, outcome.error) == ("ok", None)
    assert outcome.hello is not None
    assert outcome.hello["layer"] == name
    assert outcome.hello["clock"]["cost_ns"] > 0
    assert [step["loop"] for step in outcome.steps] == [*loops, "stream", "prtt", "call"]
    assert outcome.steps[-3]["messages"] == 7
    assert outcome.steps[-2]["delay_ns"] == 2000
    assert all(len(step["values_ns"]) == 5 for step in outcome.steps)
    columns = outcome.columns()
    assert columns is not None
    assert set(columns) == set(SAMPLE_COLUMNS) - {"launch", "layer"}
    assert {len(column) for column in columns.values()} == {len(schedule) * 6}
    first = np.asarray(columns["index"]) == 0
    assert set(np.asarray(columns["batch"])[first]) == {1}
    # A delay is spent between messages: two of them lie within each sample.
    delayed = np.asarray(columns["value_ns"])[columns["loop"] == "prtt"]
    assert delayed.min() >= 2 * 2000


def test_first_calls_come_before_all_others() -> None:
    layer = parse_layers("mpi4py/mpich")[0]
    outcome = launch(layer, [quick("first", 0), quick("echo")], limit_s=LIMIT_S, pins=None)
    assert (outcome.status, outcome.error) == ("ok", None)
    loops = [step["loop"] for step in outcome.steps]
    echo = loops.index("echo")
    first = [loop for loop in loops if loop.startswith("first_")]
    # Of both ranks, each kind of call once; whoever receives says so. Then early messages, and loops.
    assert len(set(first)) == len(first) == 2 * 20
    early = [f"early_{size}" for size in EARLY_BYTES]
    assert loops[:echo] == [*first, *early, *(f"later_{kind}" for kind in LOOPED)]
    # Last, both on one core; a loop is left out where another process took a slice of its first iteration.
    shared = loops[echo + 1 :]
    assert shared
    assert shared == [one for one in (f"shared_{kind}" for kind in COLLECTIVES) if one in shared]
    assert {"first_Bcast", "first_Bcast_peer"} < set(loops)
    assert {"first_recv", "first_send_peer"} < set(loops) or {"first_send", "first_recv_peer"} < set(loops)
    late = launch(layer, [quick("echo"), quick("first", 0)], limit_s=LIMIT_S, pins=None)
    assert late.status == "failed"
    assert late.error is not None
    assert "schedule[1].loop" in late.error


@pytest.mark.parametrize("name", ["socket/tcp+spin", "shm", "mpi4py/mpich"])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_ends_the_launch_and_finished_steps_are_kept(name: str, rank: int) -> None:
    watch = Watch(b'"samples"', lambda ranks: ranks[rank].kill(), LIMIT_S)
    outcome = launch(parse_layers(name)[0], [quick("echo"), LONG], limit_s=LIMIT_S, pins=None)
    watch.join()
    assert outcome.status == "failed"
    assert outcome.seconds < LIMIT_S
    assert outcome.error is not None
    if name == "mpi4py/mpich":
        assert outcome.error == "a rank was ended by signal 9 (SIGKILL)"
    else:
        assert outcome.error == f"rank {rank} was ended by signal 9 (SIGKILL)"
    assert [step["bytes"] for step in outcome.steps] == [64]


def test_ranks_share_a_core_for_the_loops_that_are_about_it_and_for_no_other() -> None:
    steps = [quick(loop, delay_ns=2_000_000, warmup=0, batch=1) for loop in sorted(SHARING)]
    around = [quick("echo"), *steps, quick("echo")]
    outcome = launch(parse_layers("mpi4py/mpich")[0], around, limit_s=LIMIT_S, pins=None)
    assert outcome.error is None
    assert [step["loop"] for step in outcome.steps] == [step.loop for step in around]
    took = {step["loop"]: step["values_ns"] for step in outcome.steps}
    assert {len(values) for values in took.values()} == {5}
    assert min(took["beside"]) >= 2_000_000, "a rank takes its own time at least"


@pytest.mark.parametrize("name", ["socket/tcp", "mpi4py/mpich"])
def test_a_rank_that_hangs_is_ended_at_the_limit(name: str) -> None:
    watch = Watch(b'"hello"', lambda ranks: ranks[1].suspend(), LIMIT_S)
    outcome = launch(parse_layers(name)[0], [LONG], limit_s=5.0, pins=None)
    watch.join()
    assert outcome.status == "failed"
    assert "limit" in str(outcome.error)
    assert outcome.seconds < LIMIT_S


def test_a_library_that_does_not_close_takes_nothing_from_a_launch_that_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As MPICH over UCX's TCP does at times: its ranks wait for each other in MPI_Finalize."""
    said, silent = tmp_path / "said", tmp_path / "silent"
    (layer,) = parse_layers("shm")
    whole = launch(layer, [quick("echo")], limit_s=LIMIT_S, pins=None, kept=said)
    assert whole.status == "ok"
    monkeypatch.setattr(running, "CLOSING_S", 0.3)
    monkeypatch.setattr(running, "LOOK_S", 0.2)

    def waiting(words: Path) -> Configuration:
        script = f'case "$0" in *spec-0*) cat {words};; esac; exec sleep 600'
        return replace(layer, kind=replace(layer.kind, probe=("sh", "-c", script)))

    found = launch(waiting(said), [quick("echo")], limit_s=LIMIT_S, pins=None)
    assert (found.status, found.error) == ("ok", None)
    assert found.steps == whole.steps
    assert found.seconds < LIMIT_S / 2
    # One that has not said that it was done is waited for.
    silent.write_text("".join(said.read_text().splitlines(keepends=True)[:-1]))
    other = launch(waiting(silent), [quick("echo")], limit_s=1.0, pins=None)
    assert (other.status, other.error) == ("failed", "did not end within its limit and was ended")


@pytest.mark.parametrize("name", ["socket/unix", "mpi4py/mpich"])
def test_an_interrupt_keeps_the_steps_that_were_finished(name: str) -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        watch = Watch(b'"samples"', lambda _: os.kill(os.getpid(), signal.SIGINT), LIMIT_S)
        outcome = launch(
            parse_layers(name)[0],
            [quick("echo"), LONG],
            limit_s=LIMIT_S,
            pins=None,
            interruption=interruption,
        )
        watch.join()
    assert outcome.status == "interrupted"
    assert [step["bytes"] for step in outcome.steps] == [64]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_is_not_held_back() -> None:
    with Interruption() as interruption:
        interruption.request()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_a_step_the_layer_refuses_fails_with_the_probes_own_words() -> None:
    outcome = launch(parse_layers("socket/udp")[0], [quick("echo", 65508)], limit_s=LIMIT_S, pins=None)
    assert outcome.status == "failed"
    assert "schedule[0]" in str(outcome.error)
    assert "65507" in str(outcome.error)


def test_the_mpi_probe_refuses_what_it_does_not_know() -> None:
    outcome = launch(parse_layers("mpi4py/mpich")[0], [quick("dance")], limit_s=LIMIT_S, pins=None)
    assert outcome.status == "failed"
    assert 'schedule[0].loop: "dance" is not allowed: echo, two_write' in str(outcome.error)


def test_ranks_are_pinned_to_the_cpus_given() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    pins = (cpus[-1], cpus[0])
    outcome = launch(parse_layers("mpi4py/mpich")[0], [quick("echo")], limit_s=LIMIT_S, pins=pins)
    assert outcome.hello is not None
    assert outcome.hello["effective"]["cores"] == [cpus[-1]]


def test_a_launch_that_cannot_be_started_says_why_where_its_samples_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Running, "start", no_room)
    [configuration] = parse_layers("socket/tcp")
    outcome = launch(configuration, [], limit_s=LIMIT_S, pins=None, kept=tmp_path / "kept.jsonl")
    assert (outcome.status, outcome.error) == ("failed", "cannot be started: No space left on device")


def test_options_take_effect_in_the_kernel() -> None:
    (on,) = parse_layers("socket/tcp+nagle+buf64k+spin")
    outcome = launch(on, [quick("echo")], limit_s=LIMIT_S, pins=None)
    assert outcome.hello is not None
    effective = outcome.hello["effective"]
    assert effective["nodelay"] is False
    assert effective["wait"] == "spin"


@pytest.mark.parametrize("leaves", [True, False])
def test_what_a_launcher_leaves_behind_is_gone_at_the_end(
    leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open MPI's launcher ends before its agents do."""
    with rendezvous() as directory:
        task = Running(directory, time.monotonic() + LIMIT_S)
        began, leave, left = directory / "began", directory / "leave", directory / "left"
        os.mkfifo(leave)
        agent = f"setsid sh -c 'echo >{began}; read word <{leave} && echo >{left}' &"
        marked = dict(os.environ) | {LAUNCH: str(directory)}
        task.processes.append(subprocess.Popen(["sh", "-c", agent], env=marked))
        assert task.wait(None) == ("ok", None)
        becomes(True, began.exists, LIMIT_S)

        def let_it_go(pids: set[int], limit_s: float) -> None:
            """Let the agent leave now that it is waited for, however long a busy host takes for it."""
            leave.write_text("go\n")
            await_gone(pids, LIMIT_S)

        if leaves:
            monkeypatch.setattr(running, "await_gone", let_it_go)
        task.end(clean=True)
        assert marked_processes() == {}
        assert left.exists() == leaves, "one that leaves by itself is let go, another is ended"


@pytest.mark.parametrize("told_by", ["spec", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "LAMRANK"])
def test_a_watch_has_the_processes_in_the_order_of_their_ranks(
    told_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever numbers they were given: those begin anew when they have reached their end."""
    numbers = [32_766, 32_767, 301, 302]
    found = []
    for rank, pid in enumerate(numbers):
        spec = f"spec-{rank}.json" if told_by == "spec" else "spec.json"
        words = ["python", "-m", "wiretwin.probe", f"/dev/shm/wiretwin-abc/{spec}"]
        found.append((SimpleNamespace(pid=pid), words, {} if told_by == "spec" else {told_by: str(rank)}))
    with monkeypatch.context() as patch:
        patch.setattr(watching, "_marked", lambda: [found[at] for at in (2, 0, 3, 1)])
        ((folder, ranks),) = watching.launches().items()
    assert folder == Path("/dev/shm/wiretwin-abc")
    assert [one.pid for one in ranks] == numbers


def test_a_process_of_a_launcher_that_is_killed_is_noticed_though_the_launcher_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As MPICH's, before that process has called back."""
    monkeypatch.setattr(running, "LOOK_S", 0.05)
    with rendezvous() as directory:
        task = Running(directory, time.monotonic() + LIMIT_S)
        launcher = "sh -c 'kill -KILL $$' & sh -c 'exit 1' & exec sleep 600"
        task.processes.append(subprocess.Popen(["sh", "-c", launcher]))
        try:
            status, error = task.wait(None)
        finally:
            task.end(clean=False)
    assert status == "failed"
    assert error == "sh of the launcher was ended by signal 9 (SIGKILL), which the launcher does not notice"
