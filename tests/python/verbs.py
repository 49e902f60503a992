"""Commands of every verb that starts a process: each goes on until a signal ends it."""

from __future__ import annotations

import sys

from leaving import Case

TWIN = """
format = "wiretwin-twin"
version = 1
created_utc = "2026-01-01T00:00:00Z"
[source]
digest = "abc"
samples = 1000
launches = 7
[host]
name = "box"
cores = 2
""" + "".join(
    f"""
[layers."{layer}"]
t_0_us = {{ value = 2.0, low = 1.8, high = 2.5, launches = 7, samples = 1234 }}
r_max_MB_s = {{ value = 9000, low = 8000, high = 9500.5, launches = 7, samples = 1234 }}
n_half_bytes = {{ value = 20000, low = 15000, high = 25000, launches = 7, samples = 1234 }}
call_ns = {{ value = 90, low = 80, high = 100, launches = 7, samples = 1234 }}
"""
    + "".join(
        f"""
[[layers."{layer}".{part}]]
from_bytes = 0
base_ns = {{ value = 600, low = 500, high = 700 }}
per_byte_ns = {{ value = 0.1, low = 0.09, high = 0.11 }}
samples = 400
"""
        for part in ("overhead_send", "latency", "overhead_recv", "gap", "half_round_trip")
    )
    for layer in ("mpi4py/mpich", "shm")
)
FOREVER = """
from mpi4py import MPI
c = MPI.COMM_WORLD
while True:
    c.barrier()
"""
DAEMON = """
import os, subprocess, sys
from mpi4py import MPI
if MPI.COMM_WORLD.rank == 0:
    # In a session of its own, and nobody's child any more.
    subprocess.run([sys.executable, "-c", "import os, signal\\n"
        "if os.fork() == 0:\\n    os.setsid()\\n    if os.fork() == 0:\\n"
        "        os.execlp('sleep', 'sleep', '1000')"])
while True:
    MPI.COMM_WORLD.barrier()
"""
"""A script that leaves a daemon behind, of which its launcher knows nothing."""
ALONE = """
from mpi4py import MPI
import time
print(MPI.COMM_WORLD.allreduce(1))
while True:
    time.sleep(0.01)
"""
SCENARIO = """
[network]
preset = "asx100"
load = [{ share = 0.4 }]
[echo]
stack = "fore/aal5"
size = "1 KiB"
rounds = 2000
"""
BRIEF = """
import time
from mpi4py import MPI
c = MPI.COMM_WORLD
for _ in range(1000):
    c.barrier()
time.sleep(1.0)
"""
_SCRIPT = {
    "forever.py": FOREVER,
    "daemon.py": DAEMON,
    "alone.py": ALONE,
    "brief.py": BRIEF,
    "twin.toml": TWIN,
}
_FEW = ("--launches", "1")


def _measure(layer: str, until: str = "wiretwin.probe", *more: str) -> Case:
    words = ("measure", "--layers", layer, *more, "--out", "result")
    return Case((*words, "--budget", "60s"), until, whole=(*words, "--budget", "8s"), layer=layer)


def _run(script: str, until: str = "wiretwin.mpi.live", *more: str) -> Case:
    brief = script.replace("forever", "brief")
    return Case(("run", script, *_FEW, *more), until, _SCRIPT, ("run", brief, *_FEW, *more))


def _ring(until: str, rounds: int, few: int, *more: str) -> Case:
    words = ("run", "ring", "--layer", "shm", *more, "--", "elements=64")
    cost = ("add=1ns",) if "simulated" in more else ()
    return Case((*words, f"rounds={rounds}", *cost), until, _SCRIPT, (*words, f"rounds={few}", *cost))


def _predict(script: str, until: str) -> Case:
    return Case(
        ("predict", script, "--twin", "twin.toml"),
        until,
        _SCRIPT,
        ("predict", "brief.py", "--twin", "twin.toml"),
    )


def _sweep(until: str, *more: str) -> Case:
    words = ("sweep", "s.toml", "--over", "echo.size=4 B,8 B", "-o", "out", "--workers", "2", *more)
    return Case(
        (*words, "--replications", "400"), until, {"s.toml": SCENARIO}, (*words, "--replications", "4")
    )


CASES = {
    "doctor": Case(("doctor",), "wiretwin.probe"),
    "tour": Case(
        ("tour", "--out", "toured"),
        "probe",
        whole=("tour", "--out", "toured", "--budget", "5s", "--launches", "1"),
    ),
    "measure": _measure("shm"),
    "measure by a launcher": _measure("mpi4py/mpich", "probe_mpi4py"),
    "measure on a stack": _measure("mpi/openmpi"),
    "measure beside daemons": _measure("pvm/pvm3"),
    "measure beside another user's daemons": _measure("mpi/lam"),
    "measure between hosts": _measure("socket/tcp", "wiretwin.probe", "--hosts", "2"),
    "run": _run("forever.py"),
    "run a script that leaves a daemon": _run("daemon.py", "sleep 1000"),
    "run between hosts": _run("forever.py", "wiretwin.mpi.live", "--hosts", "2"),
    "trace": Case(
        ("trace", "forever.py", "-o", "out"),
        "hydra_pmi_proxy",
        _SCRIPT,
        ("trace", "brief.py", "-o", "out"),
    ),
    "run a compiled program": _ring("wiretwin.probe", 1_000_000_000, 100_000),
    "run a compiled program in the simulated world": _ring(
        "wiretwin.predict.named_process",
        1_000_000,
        200,
        "--world",
        "simulated",
        "--twin",
        "twin.toml",
        "--ranks",
        "64",
    ),
    "predict": _predict("forever.py", "wiretwin.predict.stage"),
    "predict, measuring": _predict("alone.py", "wiretwin.predict.stage"),
    "sweep": _sweep("wiretwin.sweep.local"),
    "sweep on a cluster": _sweep("spawn_main", "--dask", "local"),
}

_MACHINE = """
# A machine for ssh's ProxyCommand: an sshd that serves one connection and says the address it was reached at.
cd "$(dirname "$0")"
mkdir -p /run/sshd
exec /usr/sbin/sshd -i -e -f /dev/null -h "$PWD/host" -o AuthorizedKeysFile="$PWD/key.pub" -o StrictModes=no \
  -o UsePAM=no -o PermitRootLogin=prohibit-password -o LogLevel=ERROR \
  -o SetEnv="LEAVING_OF=$LEAVING_OF TMPDIR=$TMPDIR" \
  -o ForceCommand="export SSH_CONNECTION='127.0.0.1 1 $1 22'; eval \\"\\$SSH_ORIGINAL_COMMAND\\""
"""
_SSH = (
    "ProxyCommand=sh machine %h",
    "IdentityFile=key",
    "IdentitiesOnly=yes",
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "GlobalKnownHostsFile=/dev/null",
)
_BETWEEN = (
    *("measure", "--between", "127.0.0.1", "127.0.0.2", "--remote-python", sys.executable),
    *("--layers", "socket/tcp", "--out", "result"),
    *(word for option in _SSH for word in ("--ssh-option", option)),
)


def _keys(*names: str) -> tuple[tuple[str, ...], ...]:
    return tuple(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name) for name in names)


_NAGLE = ("measure", "--layers", "socket/tcp+nagle", "--sizes", "4,64,1KiB", "--for", "curves")
MORE = {
    "testbed up": Case(("testbed", "up"), "", after=(("testbed", "down"),), stays=True),
    "understand, confirming": Case(
        ("understand", "result", "--confirm"),
        "wiretwin.probe",
        before=((*_NAGLE, "--budget", "4s", "--out", "result"),),
    ),
    "measure between machines": Case(
        (*_BETWEEN, "--budget", "60s"),
        "wiretwin.probe",
        {"machine": _MACHINE},
        (*_BETWEEN, "--budget", "8s"),
        prepare=_keys("host", "key"),
    ),
    "testbed exec": Case(
        ("testbed", "exec", "h1", "--", "sleep", "1000"),
        "",
        whole=("testbed", "exec", "h1", "--", "sleep", "2"),
        before=(("testbed", "up"),),
        after=(("testbed", "down"),),
    ),
    "papers, live": Case(("papers", "ong2000", "--live"), "wiretwin.probe"),
}
"""Verbs that end by themselves, or take long to begin: ended at points spread over their run."""
