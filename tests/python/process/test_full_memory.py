"""A host whose shared memory is full: what can go elsewhere does, and the rest has a name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from leaving import possible
from verbs import BRIEF, SCENARIO

FULL = 'mount -t tmpfs -o size=64k tmpfs /dev/shm && { head -c 1M /dev/zero >/dev/shm/full; "$@"; }'
LIMIT_S = 240.0
BRIEFLY = (
    "--budget",
    "60s",
    "--sizes",
    "4",
    "--for",
    "curves",
    "--launches",
    "3",
    "--precision",
    "99%",
    "-o",
    "out",
)
"""It ends long before its budget, which a busy host needs for loading libraries alone."""

pytestmark = pytest.mark.needs_hosts


def wiretwin(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a verb in a mount namespace of its own whose ``/dev/shm`` has 64 KiB, all taken."""
    if not possible():
        pytest.skip("this user may not make namespaces")
    argv = ["unshare", "-m", "--propagation", "private", "sh", "-c", FULL, "sh"]
    argv += [str(Path(sys.executable).with_name("wiretwin")), *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def test_doctor_shows_what_there_is_and_what_is_needed(tmp_path: Path) -> None:
    done = wiretwin(tmp_path, "doctor", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    sizes = {key: value for key, value in found["host"].items() if key.startswith("shared_memory")}
    assert sizes == {
        "shared_memory_MiB": 0.1,
        "shared_memory_free_MiB": 0.0,
        "shared_memory_needed_MiB": 16.0,
    }
    assert any(
        one["what"] == "shared memory: /dev/shm has 0 KiB of 64 KiB free, needed are 16 MiB"
        for one in found["missing"]
    )
    layers = {one["layer"]: one for one in found["layers"]}
    assert layers["shm"]["runs"]
    assert layers["socket/tcp"]["runs"]
    assert layers["mpi4py/mpich"]["reason"] == (
        "a rank was ended by signal 7 (SIGBUS); "
        "/dev/shm has 0 KiB of 64 KiB free, and 2 ranks of MPI need up to 4096 KiB there"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("measure", "--layers", "shm,socket/unix", *BRIEFLY),
        ("measure", "--layers", "socket/tcp", "--hosts", "2", *BRIEFLY),
        ("run", "ring", "--layer", "shm", "--", "elements=64", "rounds=10"),
        ("sweep", "s.toml", "--over", "share=0.1,0.2", "-o", "out", "--replications", "1"),
    ],
    ids=" ".join,
)
def test_what_can_go_elsewhere_goes_elsewhere(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO.replace("2000", "20"))
    done = wiretwin(tmp_path, *words)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (
            ("run", "brief.py", "--launches", "1"),
            6,
            "wiretwin: /dev/shm: full: brief.py ended with status 7; "
            "/dev/shm has 0 KiB of 64 KiB free, and 2 ranks of MPI need up to 4096 KiB there",
        ),
        (
            ("sweep", "s.toml", "--over", "share=0.1,0.2", "-o", "out", "--dask", "local", "--workers", "2"),
            6,
            "wiretwin: /dev/shm: full: /dev/shm has 0 KiB of 64 KiB free, and a cluster of 2 workers needs "
            "512 KiB there; without --dask a sweep needs none",
        ),
    ],
    ids=["run", "sweep on a cluster"],
)
def test_what_cannot_is_a_condition_with_a_name(
    words: tuple[str, ...], status: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "brief.py").write_text(BRIEF)
    (tmp_path / "s.toml").write_text(SCENARIO)
    done = wiretwin(tmp_path, *words)
    assert (done.returncode, done.stderr.strip().splitlines()[-1]) == (status, said)
