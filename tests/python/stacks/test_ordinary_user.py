"""Without root: what needs no right still works, and what does says so."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from stacks_help import LIBRARIES, installed

from wiretwin.results import Result

LIMIT_S = 120.0
LAYERS = ("socket/tcp", "shm", "mpi/mpich", "mpi/lam", "pvm/pvm3", "rpc/tirpc", "ucx")
SCRIPT = "from wiretwin.cli import main; main()"
SHORT = ("--sizes", "4,1KiB", "--for", "curves", "--launches", "3", "--budget", "none")


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that belongs to nobody."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("gives up rights, which only root has, with setpriv")
    folder = Path(tempfile.mkdtemp(prefix="wt-nobody-", dir="/dev/shm"))
    os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
    yield folder
    shutil.rmtree(folder)


def as_nobody(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user with no right but to read the files of this environment."""
    rights = ("--inh-caps", "--ambient-caps", "--bounding-set")
    argv = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
    argv += [f"{right}={'' if right.startswith('--amb') else '-all,'}+dac_read_search" for right in rights]
    return subprocess.run(
        [*argv, "--", sys.executable, "-c", SCRIPT, *arguments],
        cwd=home,
        env={**os.environ, "HOME": str(home), "TMPDIR": str(home), "USER": "nobody", "LOGNAME": "nobody"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def test_an_ordinary_user_measures_what_needs_no_right(home: Path) -> None:
    for name in LIBRARIES:
        installed(name)
    done = as_nobody(home, "measure", "--layers", ",".join(LAYERS), *SHORT, "-o", "r")
    assert done.returncode == 0, done.stderr
    result = Result.open(home / "r")
    failed = [(one.name, one.error) for one in result.manifest.launches if one.status != "ok"]
    assert failed == []
    assert set(result.samples()["layer"]) == set(LAYERS)
    # The shims are this user's own.
    assert list((home / ".cache").rglob("*.so"))


def test_a_testbed_without_rights_works_or_says_what_would_help(home: Path) -> None:
    done = as_nobody(home, "measure", "--hosts", "2", "--layers", "socket/tcp", *SHORT, "-o", "r")
    if done.returncode != 0:
        assert (done.returncode, "Traceback" in done.stderr) == (3, False), done.stderr
        assert "the testbed cannot be made: " in done.stderr
        assert "without a word" not in done.stderr
    else:
        assert json.loads((home / "r" / "manifest.json").read_text())["options"]["place"]["rootless"]
    wire = as_nobody(home, "measure", "--hosts", "2", "--link", "wire", "--rate", "10Mbit", *SHORT, "-o", "w")
    if not os.access("/dev/net/tun", os.R_OK) or wire.returncode:
        assert wire.returncode == 3
        assert "needs the TAP devices of /dev/net/tun" in wire.stderr or "cannot be made: " in wire.stderr
