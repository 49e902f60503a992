"""Machines over ssh that share nothing: measured, run on, lost, and left as they were."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from machines import LIMIT_S, PROGRAM, Machines

from wiretwin import __version__
from wiretwin.predict.records import Run, read
from wiretwin.results import Result
from wiretwin.stacks.layers import parse_layers, refusal
from wiretwin.understand.api import understand

LAYERS = (
    "socket/tcp",
    "socket/udp",
    "mpi/mpich",
    "mpi/openmpi",
    "mpi4py/mpich",
    "pvm/pvm3",
    "rpc/tirpc",
    "ucx",
)
SMALL = ("--budget", "none", "--launches", "3", "--sizes", "1,4KiB", "--for", "curves")


def installed(name: str) -> None:
    """Skip the test of a layer that is not installed, which in CI it must be."""
    refused = refusal(parse_layers(name)[0])
    if refused is not None:
        assert not os.environ.get("CI"), refused
        pytest.skip(f"{name}: {refused}")


def test_every_layer_is_measured_between_machines(between: Machines) -> None:
    """In one measurement: machines are entered, and what ranks need is brought there, once for all layers."""
    for layer in LAYERS:
        installed(layer)
    out = between.folder / "out"
    before = between.bed.counters()
    done = between.wiretwin("measure", "--layers", ",".join(LAYERS), *SMALL, "-o", str(out))
    assert done.returncode == 0, done.stderr
    after = between.bed.counters()
    result = Result.open(out)
    place = result.manifest.options["place"]
    assert place["kind"] == "ssh"
    assert [host["name"] for host in place["hosts"]] == ["h2", "h3"]
    ended = [(one.name, one.status) for one in result.manifest.launches]
    echoes = result.samples().filter(loop="echo", bytes=4096)
    crossed = {(one.layer, one.bytes): one.crossed for one in understand(result).accounts}
    for layer in LAYERS:
        assert ended.count((layer, "ok")) >= 3, layer
        assert crossed[layer, 4096], layer
    assert after["h3"].bytes_out - before["h3"].bytes_out > 4096 * echoes.height


@pytest.mark.parametrize("layer", ["socket/tcp", "mpi/mpich"])
def test_a_program_gives_there_what_it_gives_here(between: Machines, layer: str) -> None:
    installed(layer)
    words = ("--layer", layer, "--ranks", "2", "--format", "json", "ring", "elements=1001", "rounds=2")
    there = between.wiretwin("run", *words)
    assert there.returncode == 0, there.stderr
    program = "from wiretwin.cli import main; main()"
    here = subprocess.run(
        [sys.executable, "-c", program, "run", *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    digests = [[row["digest"] for row in json.loads(text)] for text in (there.stdout, here.stdout)]
    assert digests[0] == digests[1]


SCRIPT = """\
import os
from mpi4py import MPI
import beside
print(beside.WORD, *MPI.COMM_WORLD.allgather(os.uname().nodename))
"""


def test_a_script_that_only_the_desk_has_runs_between_machines(between: Machines) -> None:
    here = between.folder / "script"
    here.mkdir()
    (here / "prog.py").write_text(SCRIPT)
    (here / "beside.py").write_text("WORD = 'was beside'\n")
    # Each host of a testbed has a /tmp of its own.
    at_desk = "/tmp/only-at-the-desk"
    subprocess.run(between.desk.command(["cp", "-r", str(here), at_desk]), check=True, timeout=LIMIT_S)
    words = ("--layer", "mpi4py/mpich", "--ranks", "2", "--launches", "1", "--splits", "0")
    done = between.wiretwin("run", f"{at_desk}/prog.py", *words, "-o", str(here / "run"))
    assert done.returncode == 0, done.stderr
    (launch,) = read(Run, here / "run").launches
    assert launch.printed == ["was beside h2 h3\n"] * 2


def test_mpiexec_reaches_machines_as_its_own_way_to_them_does(between: Machines) -> None:
    """MPICH's, whose way to other machines is ssh."""
    installed("mpi/mpich")
    bin_ = between.folder / "bin"
    bin_.mkdir()
    options = " ".join(f"-o {option}" for option in between.options)
    for name, command in (("mpiexec", "mpiexec.mpich"), ("rsh", f"ssh {options}")):
        (bin_ / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (bin_ / name).chmod(0o755)
    out = between.folder / "by-mpiexec"
    words = [
        "measure",
        "--launcher",
        "mpiexec",
        "--between",
        *between.words,
        "--layers",
        "mpi/mpich",
    ]
    words += [*SMALL, "--remote-python", sys.executable, "-o", str(out)]
    env = {"PATH": f"{bin_}:{os.environ['PATH']}", "HYDRA_LAUNCHER_EXEC": str(bin_ / "rsh")}
    line = between.desk.command([*PROGRAM, *words], env=env)
    done = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    result = Result.open(out)
    assert result.manifest.options["place"]["kind"] == "mpiexec"
    assert [host["name"] for host in result.manifest.options["place"]["hosts"]] == ["h2", "h3"]
    assert [one.error for one in result.manifest.launches] == [None] * 3


@pytest.mark.parametrize(
    ("machines", "python", "said"),
    [
        (("h2", "nowhere.invalid"), sys.executable, "nowhere.invalid: is no host that ssh knows"),
        (("h2", "h1"), sys.executable, "h1: cannot be reached by ssh: .*Connection refused"),
        (("h2", "h3"), "/nowhere/python3", "h2: no /nowhere/python3 there; --remote-python says where"),
        (("h2", "h3"), "OTHER", f"h2: .*has wiretwin 0.0.0, and here it is {__version__}: both ends must"),
        (("h2", "h3"), "BARE", f"h2: .* has no wiretwin; install version {__version__} there"),
    ],
)
def test_a_machine_that_does_not_serve_is_named(
    between: Machines, machines: tuple[str, str], python: str, said: str
) -> None:
    scripts = {
        "OTHER": 'echo \'{"wiretwin": "0.0.0"}\'',
        "BARE": f'shift; exec {sys._base_executable} -I -S -c "$@"',  # type: ignore[attr-defined]
    }
    if python in scripts:
        path = between.folder / python
        path.write_text(f"#!/bin/sh\n{scripts[python]}\n")
        path.chmod(0o755)
        python = str(path)
    done = between.wiretwin("measure", "--layers", "socket/tcp", *SMALL, machines=machines, python=python)
    assert done.returncode == 3
    assert re.search(said, done.stderr), done.stderr


@contextlib.contextmanager
def authorized(machines: Machines, text: str) -> Iterator[None]:
    """Other keys that are let in, for the time of the block."""
    path = machines.folder / "authorized"
    before = path.read_text()
    path.write_text(text)
    try:
        yield
    finally:
        path.write_text(before)


def test_no_login_is_named(between: Machines) -> None:
    with authorized(between, ""):
        done = between.wiretwin("measure", "--layers", "socket/tcp", *SMALL)
    assert done.returncode == 3
    assert "h2: no login without a password: " in done.stderr
    assert "`ssh-copy-id h2` may cure it" in done.stderr


def test_a_launcher_that_is_not_let_in_from_machine_to_machine_is_named(between: Machines) -> None:
    installed("mpi/mpich")
    key = (between.folder / "key.pub").read_text()
    with authorized(between, f'from="{between.desk.address}" {key}'):
        refused = between.wiretwin("measure", "--layers", "mpi/mpich", *SMALL)
        works = between.wiretwin(
            "measure", "--layers", "socket/tcp", *SMALL, "-o", str(between.folder / "let")
        )
    assert refused.returncode == 3
    assert "h2 is not let in at h3 by ssh, by which launchers start ranks there: " in refused.stderr
    assert works.returncode == 0, works.stderr


def test_a_layer_that_a_machine_lacks_is_named(between: Machines) -> None:
    done = between.wiretwin("measure", "--layers", "shm", *SMALL)
    assert done.returncode == 3
    assert "shm cannot run here: h2: works within one host only" in done.stderr


@contextlib.contextmanager
def under_way(machines: Machines, layer: str, out: Path) -> Iterator[subprocess.Popen[str]]:
    """A long measurement, of which samples are stored already."""
    words = ("--layers", layer, "--budget", "300s", "--sizes", "1", "--launches", "1000", "-o", str(out))
    with subprocess.Popen(
        machines.words_of_line("measure", *words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            deadline = time.monotonic() + LIMIT_S
            while len(list(out.rglob("*"))) < 3 or not stored(out):
                assert running.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield running
        finally:
            if running.poll() is None:
                running.kill()


def stored(out: Path) -> bool:
    with contextlib.suppress(Exception):
        return bool(Result.open(out).manifest.launches)
    return False


@pytest.mark.parametrize("layer", ["socket/tcp", "mpi/mpich"])
def test_a_connection_lost_in_mid_run_keeps_the_samples(between: Machines, layer: str) -> None:
    installed(layer)
    out = between.folder / f"lost-{layer.replace('/', '-')}"
    with under_way(between, layer, out) as running:
        for pid in sessions(between, "h3"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _, said = running.communicate(timeout=LIMIT_S)
    assert f"no layer could be measured to the end: {layer}: h3: the connection by ssh was lost" in said
    kept = re.search(rf"(\d+) samples are kept in {re.escape(str(out))}", said)
    assert kept is not None, said
    # The launch that was under way has failed, and it may be the first.
    assert Result.open(out).samples(failed=True).height == int(kept[1]) > 0


def sessions(machines: Machines, name: str) -> set[int]:
    """The processes of sshd on a host that serve a connection each."""
    script = (
        "for d in /proc/[0-9]*; do echo $(readlink $d/ns/net) ${d#/proc/} $(cat $d/comm 2>/dev/null); done; "
        "readlink /proc/self/ns/net"
    )
    done = subprocess.run(
        machines.bed.host(name).command(["sh", "-c", script]),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    *lines, own = done.stdout.splitlines()
    found = {int(line.split()[1]) for line in lines if line.startswith(own) and "sshd" in line.split()[-1]}
    # The one that listens started the others; its number need not be the least, for numbers begin anew.
    return {pid for pid in found if parent(pid) in found}


def parent(pid: int) -> int | None:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).ppid()
    return None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_an_interrupt_leaves_nothing_on_either_machine(
    between: Machines, number: signal.Signals, code: int
) -> None:
    out = between.folder / f"interrupt-{number.name}"
    with under_way(between, "socket/tcp", out) as running:
        running.send_signal(number)
        running.communicate(timeout=LIMIT_S)
    assert running.returncode == code
    assert Result.open(out).samples().height > 0
    if number == signal.SIGKILL:  # what it left at the desk goes with the next run
        done = between.wiretwin("measure", "--layers", "socket/tcp", *SMALL, "-o", f"{out}-next")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ssh-option", "Port=1"], "--ssh-option: is for machines over ssh"),
        (["--between", "a", "b", "--hosts", "2"], "without --between"),
        (["--between", "a", "b", "--link", "wire"], "without --between"),
        (["--between", "-oProxyCommand=x", "b"], "names of machines as ssh knows them"),
        (["--between", "a", "b", "--ssh-option", "Port"], "NAME=VALUE"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from wiretwin.cli import main; main()", "measure", *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr
