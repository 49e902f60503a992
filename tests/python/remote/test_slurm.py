"""Machines of an allocation of Slurm, reached by srun: real daemons on hosts of a testbed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import LIMIT_S, PROGRAM, Cluster, cluster
from watching import becomes

from wiretwin.errors import InputError, MeasureError
from wiretwin.predict.records import Run, read
from wiretwin.remote.slurm import Node, allocated
from wiretwin.results import Result


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    with cluster() as made:
        yield made


def lived_on(folder: Path) -> list[str]:
    """The machines of a result."""
    place = Result.open(folder).manifest.options["place"]
    assert place["kind"] == "srun"
    return [host["name"] for host in place["hosts"]]


MEASURE = ("measure", "--launcher", "srun", "--budget", "none", "--launches", "3", "--sizes", "4")


def test_an_allocation_is_measured_by_sockets_and_by_the_launcher_of_an_mpi(slurm: Cluster) -> None:
    folder = slurm.folder / "curves"
    done = slurm.wiretwin(
        *MEASURE, "--for", "curves", "--layers", "socket/tcp,mpi/openmpi", "-o", str(folder)
    )
    assert done.returncode == 0, done.stderr
    assert lived_on(folder) == ["h1", "h2"]
    result = Result.open(folder)
    assert [launch.error for launch in result.manifest.launches] == [None] * 6
    assert set(result.samples()["layer"]) == {"socket/tcp", "mpi/openmpi"}
    # What was carried between the hosts was counted on the interface of the first.
    assert result.traffic()["packets_out"].min() > 0
    becomes([], slurm.steps)


def test_the_pairs_of_an_allocation_are_measured_each_host_with_itself_too(slurm: Cluster) -> None:
    folder = slurm.folder / "pairs"
    asked = ("measure", "--launcher", "srun", "--pairs", "all", "--for", "curves", "--sizes", "4,1KiB")
    layers = ("socket/tcp", "mpi/openmpi")
    done = slurm.wiretwin(
        *asked, "--layers", ",".join(layers), "--budget", "none", "--launches", "1", "-o", str(folder)
    )
    assert done.returncode == 0, done.stderr
    launches = Result.open(folder).manifest.launches
    for layer in layers:
        hosts = [launch.hosts for launch in launches if launch.name == layer]
        assert hosts == [("h1", "h1"), ("h2", "h2"), ("h1", "h2")]
    assert [launch.error for launch in launches] == [None] * 6
    becomes([], slurm.steps)


def test_a_compiled_program_runs_on_the_nodes(slurm: Cluster) -> None:
    run = ("run", "ring", "--launcher", "srun", "--layer", "mpi/mpich", "--ranks", "2", "--format", "json")
    done = slurm.wiretwin(*run)
    assert done.returncode == 0, done.stderr
    assert [row["verified"] for row in json.loads(done.stdout)] == [True, True]
    becomes([], slurm.steps)


SCRIPT = """\
import os, sys
from mpi4py import MPI
import beside
comm = MPI.COMM_WORLD
names = comm.gather(os.uname().nodename)
print("rank", comm.rank, beside.WORD, sys.argv[1])
if comm.rank == 0:
    print(*names)
if len(sys.argv) > 2:
    raise SystemExit(3)
"""


@pytest.mark.parametrize(("layer", "seen"), [("mpi4py/mpich", True), ("mpi4py/openmpi", False)])
def test_a_script_runs_on_the_nodes_and_what_it_prints_comes_back(
    slurm: Cluster, layer: str, seen: bool
) -> None:
    folder = slurm.folder / f"script-{seen}"
    folder.mkdir()
    (folder / "prog.py").write_text(SCRIPT)
    (folder / "beside.py").write_text("WORD = 'was beside'\n")
    program = folder / "prog.py"
    if not seen:
        # Each host of a testbed has a /tmp of its own: the second does not see what is in that of the first.
        subprocess.run(slurm.at_first(["cp", "-r", str(folder), "/tmp/only-here"]), check=True)
        program = Path("/tmp/only-here/prog.py")
    run = ("run", str(program), "--launcher", "srun", "--ranks", "3", "--layer", layer)
    done = slurm.wiretwin(*run, "--launches", "2", "-o", str(folder / "run"), "--", "x")
    assert done.returncode == 0, done.stderr
    kept = read(Run, folder / "run")
    assert [launch.split is not None for launch in kept.launches] == [False, False, True]
    first = kept.launches[0].printed
    assert first is not None
    assert [text.splitlines()[0] for text in first] == [f"rank {rank} was beside x" for rank in range(3)]
    # Rank r lives on node r modulo their number.
    assert first[0].splitlines()[1] == "h1 h2 h1"
    failed = slurm.wiretwin(*run, "--launches", "1", "-o", str(folder / "failed"), "--", "x", "fail")
    assert failed.returncode == 5
    assert "prog.py x fail on 3 ranks ended with" in " ".join(failed.stderr.split())
    becomes([], slurm.steps)


def test_what_is_interrupted_leaves_no_step_behind(slurm: Cluster) -> None:
    folder = slurm.folder / "interrupted"
    line = [*PROGRAM, *MEASURE[:3], "--layers", "socket/tcp", "--budget", "50s", "-o", str(folder)]
    line += ["--remote-python", sys.executable]
    process = subprocess.Popen(slurm.words(line), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + LIMIT_S
    while not list(folder.glob("samples/*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert slurm.steps()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT_S)
    becomes([], slurm.steps)


def test_what_is_no_allocation_is_said(slurm: Cluster) -> None:
    one = slurm.wiretwin(*MEASURE, "--layers", "socket/tcp", nodes=1)
    assert one.returncode == 2
    assert "SLURM_JOB_NODELIST: 'h1' is one node" in " ".join(one.stderr.split())
    other = slurm.wiretwin(*MEASURE, "--layers", "socket/tcp", "--between", "h1", "h9")
    assert other.returncode == 2
    assert "h9" in other.stderr
    assert "nodes of the allocation: h1, h2" in " ".join(other.stderr.split())


def test_outside_of_a_job_there_is_no_allocation(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--launcher: there is no allocation.*salloc --nodes=2"):
        allocated({"SLURM_JOB_ID": "7"})
    # Other launchers need no Slurm, but machines.
    for launcher in ("mpiexec", "ssh"):
        with pytest.raises(InputError, match=rf"^--launcher: '{launcher}' does not say which.*--between A B"):
            allocated({}, launcher=launcher)
    done = subprocess.run(
        [*PROGRAM, "measure", "--launcher", "mpiexec", "--layers", "socket/tcp"],
        cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("SLURM")},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("wiretwin: --launcher: 'mpiexec' does not say which machines")
    # A script that is not there is named first: nobody asks for nodes to learn of it.
    done = subprocess.run(
        [*PROGRAM, "run", "nothere.py", "--launcher", "srun"],
        cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("wiretwin: program: 'nothere.py' no such file")


def test_slurm_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MeasureError, match=r"scontrol: .*apt-get install slurm-client"):
        allocated({"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "h[1-2]"})


def test_a_step_hides_what_slurm_has_set_but_where_its_configuration_is() -> None:
    reach = Node("h1", "7", "10.0.0.1", "python3").reach
    shell = reach[reach.index("sh") :]
    env = {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_CONF": "/etc/x", "OTHER": "kept"}
    done = subprocess.run([*shell, "env"], env=env, capture_output=True, text=True, check=True)
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert {"SLURM_CONF", "OTHER"} <= names
    assert "SLURM_JOB_ID" not in names
