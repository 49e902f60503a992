"""A cluster of Slurm for tests: its controller, and a daemon for each host of a testbed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from wiretwin.errors import MeasureError
from wiretwin.testbed import Testbed

LIMIT_S = 60.0
PROGRAM = (sys.executable, "-c", "from wiretwin.cli import main; main()")
NEEDED = ("munged", "slurmctld", "slurmd", "salloc", "srun")

CONFIG = """
ClusterName=wiretwin
SlurmctldHost={first.name}({first.address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=1
"""
"""No control groups: they would be those of this machine."""


@dataclass(frozen=True)
class Cluster:
    """Nodes of Slurm that are hosts of a testbed; nothing of this machine's own Slurm is used or changed."""

    bed: Testbed
    folder: Path

    def words(self, argv: Sequence[str], nodes: int = 2) -> list[str]:
        """The command that runs something in an allocation of so many nodes, started on the first host."""
        allocate = ["salloc", "--quiet", f"--nodes={nodes}"]
        return self.at_first([*allocate, *argv])

    def at_first(self, argv: Sequence[str]) -> list[str]:
        """The command that runs something on the first host, where Slurm is known."""
        return self.bed.hosts[0].command(argv, env={"SLURM_CONF": str(self.folder / "slurm.conf")})

    def wiretwin(self, *words: str, nodes: int = 2) -> subprocess.CompletedProcess[str]:
        """Run wiretwin in an allocation."""
        own, dashes, others = list(words), [], []
        if "--" in own:
            at = own.index("--")
            own, dashes, others = own[:at], ["--"], own[at + 1 :]
        line = [*PROGRAM, *own, "--remote-python", sys.executable, *dashes, *others]
        return subprocess.run(
            self.words(line, nodes), capture_output=True, text=True, timeout=LIMIT_S, check=False
        )

    def steps(self) -> list[str]:
        """The steps that Slurm has, of all jobs."""
        done = subprocess.run(
            self.at_first(["squeue", "--steps", "--noheader"]), capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()


@contextlib.contextmanager
def cluster() -> Iterator[Cluster]:
    """Bring up two nodes; skip where Slurm or a testbed cannot be had, which in CI it must be."""
    missing = [name for name in NEEDED if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing or os.geteuid() != 0:
        reason = f"no {', '.join(missing)}" if missing else "daemons of Slurm on hosts of a testbed need root"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with contextlib.ExitStack() as stack:
        try:
            bed = stack.enter_context(Testbed.up(2))
        except MeasureError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(error))
        folder = bed.directory / "slurm"
        folder.mkdir()
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        made = Cluster(bed, folder)
        _daemons(made, stack)
        yield made


def _daemons(made: Cluster, stack: contextlib.ExitStack) -> None:
    folder, hosts = made.folder, made.bed.hosts
    (folder / "key").write_bytes(os.urandom(64))
    (folder / "key").chmod(0o400)
    (folder / "state").mkdir()
    nodes = [f"NodeName={one.name} NodeAddr={one.address} NodeHostname={one.name} CPUs=2" for one in hosts]
    partition = "PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE"
    text = CONFIG.format(first=hosts[0], folder=folder)
    (folder / "slurm.conf").write_text("\n".join([text, *nodes, partition, ""]))
    files = {"socket": "munge.sock", "key-file": "key", "log-file": "munge.log", "pid-file": "munge.pid"}
    paths = [f"--{key}={folder / name}" for key, name in (files | {"seed-file": "seed"}).items()]
    _start(["/usr/sbin/munged", "--foreground", "--force", "--num-threads=10", *paths], folder, stack)
    _await((folder / "munge.sock").exists, "munged")
    _start(made.at_first(["/usr/sbin/slurmctld", "-D", "-i"]), folder, stack)
    for host in hosts:
        env = {"SLURM_CONF": str(folder / "slurm.conf")}
        _start(host.command(["/usr/sbin/slurmd", "-D", "-N", host.name], env=env), folder, stack)

    def idle() -> bool:
        asked = ["sinfo", "--noheader", "--Node", "--format=%t"]
        done = subprocess.run(made.at_first(asked), capture_output=True, text=True, check=False)
        return done.stdout.split() == ["idle"] * len(hosts)

    _await(idle, "both nodes of Slurm")


def _start(argv: Sequence[str], folder: Path, stack: contextlib.ExitStack) -> None:
    with (folder / "said").open("ab") as said:
        process = subprocess.Popen(argv, stdout=said, stderr=said, stdin=subprocess.DEVNULL)
    stack.callback(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _await(there: object, what: str) -> None:
    assert callable(there)
    deadline = time.monotonic() + LIMIT_S
    while not there():
        assert time.monotonic() < deadline, f"{what} did not come up"
        time.sleep(0.05)
