"""The direct transport under unmodified MPIs: same results, no library but the provider, clear refusals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tests_stacks import LIMIT_S, configured, nothing_left, quick, run_program

from wiretwin import _core, direct, doctor
from wiretwin.errors import InputError, MeasureError
from wiretwin.leftovers import none_left
from wiretwin.measure.launch import launch
from wiretwin.place import HERE, HostPlace
from wiretwin.predict.live import Job, run_interleaved
from wiretwin.stacks.layers import parse_layers, refusal
from wiretwin.stacks.mpi import MpiSession
from wiretwin.stacks.scripts import of_script
from wiretwin.testbed import Testbed

LAYERS = ["mpi/openmpi+direct", "mpi/mpich+direct"]

# What each library says of an operation whose other rank is gone.
SAID = {"openmpi": "MPI_ERR", "mpich": "Connection reset by peer"}


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    try:
        made = Testbed.up(2, name=f"direct-{os.getpid()}")
    except (InputError, MeasureError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with made:
        yield made


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYTEST_OF", str(os.getpid()))
    with nothing_left():
        yield


@pytest.mark.parametrize("name", LAYERS)
def test_between_two_hosts_every_message_crosses_the_network(name: str, bed: Testbed) -> None:
    size, rounds = 20_000, 5
    step = quick("echo", size, warmup=0, min_samples=rounds, max_samples=rounds, batch=1)
    before = bed.counters()
    outcome = launch(configured(name, bed), [step], limit_s=LIMIT_S, pins=None, place=bed)
    assert (outcome.status, outcome.error) == ("ok", None)
    after = bed.counters()
    for host in ("h1", "h2"):
        assert after[host].bytes_out - before[host].bytes_out >= rounds * size, host


@pytest.mark.parametrize("name", LAYERS)
def test_a_program_gives_the_same_result_as_over_the_own_path_of_the_library(name: str) -> None:
    program = {"name": "jacobi", "rows": 32, "columns": 32, "iterations": 8}
    lines = run_program(name, program, 3)
    own = run_program("mpi/openmpi", program, 3)
    assert [line["digest"] for line in lines] == [line["digest"] for line in own]
    assert all(line["verified"] for line in lines)


@pytest.mark.parametrize("name", [*LAYERS, "mpi4py/openmpi+direct", "mpi4py/mpich+direct"])
def test_messages_short_and_long_are_measured(name: str) -> None:
    steps = [quick("echo", 8), quick("echo", 300_000), quick("stream", 1024), quick("call", 8)]
    outcome = launch(configured(name), steps, limit_s=LIMIT_S, pins=None)
    assert (outcome.status, outcome.error) == ("ok", None)
    assert len(outcome.steps) == len(steps)


@pytest.mark.parametrize("name", LAYERS)
def test_it_is_the_provider_that_carries_the_messages(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that it alone reads, and rejects, is why the library can open no endpoint."""
    steps = [quick("echo", 8)]
    monkeypatch.setenv("WIRETWIN_DIRECT_WAYS", "shm")
    assert launch(configured(name), steps, limit_s=LIMIT_S, pins=None).status == "ok"
    monkeypatch.setenv("WIRETWIN_DIRECT_WAYS", "by-pigeon")
    outcome = launch(configured(name), steps, limit_s=LIMIT_S, pins=None)
    assert outcome.status == "failed"
    assert "WIRETWIN_DIRECT_WAYS=by-pigeon: allowed is any, shm, packet or udp" in (outcome.error or "")


@pytest.mark.parametrize("name", LAYERS)
def test_datagrams_carry_what_shared_memory_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRETWIN_DIRECT_WAYS", "udp")
    steps = [quick("echo", 8), quick("echo", 20_000), quick("echo", 100_000)]
    outcome = launch(configured(name), steps, limit_s=LIMIT_S, pins=None)
    assert (outcome.status, outcome.error) == ("ok", None)


@pytest.mark.parametrize("ways", ["packet", "udp"])
@pytest.mark.parametrize("name", LAYERS)
def test_each_device_carries_messages_between_two_hosts(
    name: str, ways: str, bed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A way that is asked for and cannot be had is an error, so ranks go past the kernel, or through it."""
    monkeypatch.setenv("WIRETWIN_DIRECT_WAYS", ways)
    steps = [quick("echo", 8), quick("echo", 20_000), quick("echo", 100_000)]
    outcome = launch(configured(name, bed), steps, limit_s=LIMIT_S, pins=None, place=bed)
    assert (outcome.status, outcome.error) == ("ok", None)


@pytest.mark.parametrize("mpi", direct.MPIS)
def test_a_script_runs_over_it_on_two_hosts(mpi: str, bed: Testbed, tmp_path: Path) -> None:
    configured(f"mpi4py/{mpi}+direct", bed)
    script = bed.directory / f"script-{mpi}.py"
    script.write_text(
        "import numpy as np\nfrom mpi4py import MPI\n"
        "all = np.zeros(10_000)\nMPI.COMM_WORLD.Allreduce(np.ones(10_000), all)\nprint(all.sum())\n"
    )
    before = bed.counters()
    job = Job(script, (), 2, tmp_path / "run")
    (run,) = run_interleaved([job], launches=1, splits=0, place=bed, layer=f"mpi/{mpi}+direct")
    after = bed.counters()
    assert (run.layer, run.ranks) == (f"mpi4py/{mpi}+direct", 2)
    assert run.launches[0].printed == ["20000.0\n"] * 2
    for host in ("h1", "h2"):
        assert after[host].bytes_out - before[host].bytes_out >= 40_000, host


@pytest.mark.parametrize("mpi", direct.MPIS)
def test_a_rank_that_waits_leaves_its_core_to_one_of_another_host_that_works(
    mpi: str, bed: Testbed, tmp_path: Path
) -> None:
    """Neither knows of the other's host that they share a core."""
    configured(f"mpi4py/{mpi}+direct", bed)
    script = bed.directory / f"waits-{mpi}.py"
    script.write_text(
        "import os, time\nfrom mpi4py import MPI\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "world = MPI.COMM_WORLD\nworld.Barrier()\nbegun = time.thread_time()\n"
        "if world.rank == 0:\n"
        "    while time.thread_time() < begun + 0.4:\n        pass\n"
        "    world.send(0, 1)\nelse:\n    world.recv(source=0)\n"
        "print(time.thread_time() - begun)\n"
    )
    job = Job(script, (), 2, tmp_path / "run")
    (run,) = run_interleaved([job], launches=1, splits=0, place=bed, layer=f"mpi/{mpi}+direct")
    worked, waited = (float(text or "nan") for text in run.launches[0].printed or ())
    assert worked >= 0.4
    assert waited < 0.25 * worked, "a rank that asks without end takes as much as the other"


def test_the_library_of_a_script_goes_by_its_name_as_a_layer_too() -> None:
    for name, meant in [
        ("mpi/openmpi+direct", "mpi4py/openmpi+direct"),
        ("mpi/mpich+direct", "mpi4py/mpich+direct"),
        ("mpi/mpich+wheel", "mpi4py/mpich"),
        ("mpi/mpich", "mpi4py/mpich+debian"),
        ("mpi4py/mpich", "mpi4py/mpich"),
    ]:
        assert of_script(name).name == meant
    for name, said in [("socket/tcp", "carries no script live"), ("mpi/openmpi+by-pigeon", "no variant")]:
        with pytest.raises(InputError, match=said):
            of_script(name)


@pytest.mark.parametrize("way", ["packet", "udp"])
def test_each_way_alone_is_a_layer_between_two_hosts(way: str, bed: Testbed) -> None:
    steps = [quick("echo", 8), quick("echo", 6000), quick("echo", 100_000), quick("stream", 6000)]
    outcome = launch(configured(f"direct/{way}", bed), steps, limit_s=LIMIT_S, pins=None, place=bed)
    assert (outcome.status, outcome.error) == ("ok", None)


def test_shared_memory_alone_is_a_layer_within_a_host_and_programs_run_on_it(bed: Testbed) -> None:
    steps = [quick("echo", 8), quick("echo", 100_000)]
    outcome = launch(configured("direct/shm"), steps, limit_s=LIMIT_S, pins=None)
    assert (outcome.status, outcome.error) == ("ok", None)
    program = {"name": "jacobi", "rows": 32, "columns": 32, "iterations": 8}
    assert all(line["verified"] for line in run_program("direct/shm", program, 3))
    for name, place, reason in [("direct/shm", bed, "another host"), ("direct/packet", None, "to another")]:
        (layer,) = parse_layers(name)
        refused = refusal(layer) if place is None else refusal(layer, place)
        assert refused is not None
        assert reason in refused.reason


def test_each_way_is_found_or_said_to_be_missing_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    found = direct.ways()
    assert [way.name for way in found] == ["shm", "packet", "udp"]
    assert all((way.reason is None) == (way.remedy is None) for way in found)
    for error, remedy in [
        (PermissionError("opening"), "with the capability"),
        (OSError("taken"), "interface"),
    ]:

        def refused(error: OSError = error) -> None:
            raise error

        monkeypatch.setattr(_core, "direct_past_kernel", refused)
        (way,) = [way for way in direct.ways() if way.reason is not None]
        assert way.name == "packet"
        assert way.reason == str(error)
        assert remedy in (way.remedy or "")
        (line,) = doctor._without([way])
        assert str(error) in line.matters


@pytest.mark.parametrize("mpi", direct.MPIS)
def test_the_command_prints_what_a_shell_evaluates(mpi: str) -> None:
    configured(f"mpi/{mpi}+direct")
    script = "from wiretwin.cli import main; main()"
    argv = [sys.executable, "-c", script, "direct", "env", "--mpi", mpi]
    shown = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    lines = dict(line.removeprefix("export ").split("=", 1) for line in shown.splitlines())
    assert lines == direct.environment(mpi)
    also = subprocess.run([*argv, "--format", "json"], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(also.stdout) == lines


def test_what_cannot_be_is_rejected_with_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="allowed: openmpi, mpich"):
        direct.environment("lam")
    for name, reason in [
        ("mpi4py/mpich+debian+direct", "does not stand on libfabric"),
        ("mpi/openmpi+direct+eager64k", "sets its own eager limit"),
    ]:
        refused = refusal(parse_layers(name)[0])
        assert refused is not None
        assert reason in refused.reason
    monkeypatch.setattr(direct, "LIBRARY", tmp_path / "libwiretwin-fi.so")
    refused = refusal(parse_layers("mpi/openmpi+direct")[0])
    assert refused is not None
    assert (refused.reason, refused.cure) == ("no libwiretwin-fi.so", "make build/core.stamp")
    with pytest.raises(InputError, match="has not been built"):
        direct.environment("openmpi")


def _started(argv: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        argv, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
    )


def _state(pid: int) -> str:
    """Return the state of a process, ``X`` if there is none any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "X"


def _packet_sockets(host: HostPlace) -> list[str]:
    """Return the packet sockets of a host, a line each."""
    command = host.command(["cat", "/proc/net/packet"])
    shown = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout
    return shown.splitlines()[1:]


def _until(condition: Callable[[], bool], limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    while not (met := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return met


@pytest.mark.parametrize(
    ("ways", "victim"), [("shm", 0), ("shm", 2), ("udp", 0), ("udp", 1), ("packet", 0), ("packet", 1)]
)
@pytest.mark.parametrize("mpi", direct.MPIS)
def test_the_kernel_tells_ranks_of_one_that_was_killed(
    mpi: str,
    ways: str,
    victim: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    bed: Testbed,
) -> None:
    """One that computes is waited for; of one that is gone the others hear, from no launcher."""
    place = bed if ways == "packet" else HERE
    configuration = configured(f"mpi4py/{mpi}+direct", place)
    monkeypatch.setenv("WIRETWIN_DIRECT_WAYS", ways)
    folder = tmp_path
    if ways == "packet":
        folder = place.directory / f"killed-{mpi}-{victim}"
        folder.mkdir()
    program = [sys.executable, str(Path(__file__).with_name("ended_rank.py")), str(folder), str(victim)]
    stack = configuration.kind.stack
    assert stack is not None
    # A proxy of MPICH's launcher that is killed leaves a file.
    with none_left(os.geteuid()), stack.up(place, configuration.options) as session:
        assert isinstance(session, MpiSession)
        command = place.hosts[0].command([*session.launcher, "-np", "3", *program], env=session.env)
        started = _started(command, dict(os.environ))
        ours, launchers, memory = {started.pid}, set[int](), set[Path]()
        try:
            ready = [folder / f"ready.{rank}" for rank in range(3)]
            assert _until(lambda: all(file.exists() for file in ready), LIMIT_S)
            ranks = [int(file.read_text()) for file in ready]
            assert ways != "packet" or all(_packet_sockets(host) for host in place.hosts)
            family = psutil.Process(started.pid).children(recursive=True)
            launchers = {started.pid} | {one.pid for one in family} - set(ranks)
            ours |= launchers | set(ranks)
            mapped = [word for rank in ranks for word in Path(f"/proc/{rank}/maps").read_text().split()]
            memory = {Path(word) for word in mapped if word.startswith("/dev/shm/")}
            for pid in launchers:
                os.kill(pid, signal.SIGSTOP)
            os.kill(ranks[victim], signal.SIGKILL)
            (folder / "go").touch()
            # A library may end its process by itself, whatever error handler it was given.
            assert _until(lambda: all(_state(rank) in "ZX" for rank in ranks), 3)
            for rank in {0, 1, 2} - {victim}:
                words = (folder / f"words.{rank}").read_text(errors="replace")
                assert SAID[mpi] in words, words
            # A process is dead before the kernel has closed all that its threads had open.
            assert _until(
                lambda: not any(_packet_sockets(host) for host in place.hosts if ways == "packet"), 3
            )
        finally:
            # The launcher, let go, removes what its ranks left.
            for pid in ours:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT if pid in launchers else signal.SIGKILL)
            try:
                started.wait(timeout=10)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait(timeout=LIMIT_S)
            for file in memory:
                file.unlink(missing_ok=True)
