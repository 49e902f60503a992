"""A program in a folder that every host has for itself is found there, or rejected with the reason."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from wiretwin.testbed import Testbed

pytestmark = pytest.mark.needs_hosts
LIMIT_S = 120.0
PROGRAM = "from mpi4py import MPI\nimport beside\nassert MPI.COMM_WORLD.allreduce(1) == beside.RANKS\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wt-program-", dir="/tmp") as name:
        (Path(name) / "beside.py").write_text("RANKS = 2\n")
        (Path(name) / "program.py").write_text(PROGRAM)
        yield Path(name)


def run(program: Path, *words: str, cwd: Path = Path("/")) -> subprocess.CompletedProcess[str]:
    argv = [str(Path(sys.executable).with_name("wiretwin")), "run", str(program), "--launches", "1", *words]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S, check=False)


@pytest.mark.parametrize("cwd", ["/", "/tmp"])
def test_a_program_below_tmp_is_found_with_what_lies_beside_it(
    cwd: str, folder: Path, tmp_path: Path
) -> None:
    program = (folder / "program.py").relative_to(cwd)
    done = run(program, "--hosts", "2", "--out", str(tmp_path / "out"), cwd=Path(cwd))
    assert done.returncode == 0, done.stderr


def test_a_program_in_tmp_itself_is_rejected(tmp_path: Path) -> None:
    with tempfile.NamedTemporaryFile(prefix="wt-", suffix=".py", dir="/tmp") as program:
        done = run(Path(program.name), "--hosts", "2", "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stderr) == (
        2,
        f"wiretwin: {program.name!r} is not seen by the hosts: each has a /tmp of its own; "
        "allowed: a program in a folder inside /tmp\n",
    )


def test_a_testbed_that_stands_has_to_have_been_made_with_the_folder(folder: Path, tmp_path: Path) -> None:
    words = ("--testbed", "programs", "--out", str(tmp_path / "out"))
    with Testbed.up(2, name="programs"):
        done = run(folder / "program.py", *words)
        assert (done.returncode, done.stderr) == (
            2,
            f"wiretwin: testbed 'programs': '{folder}/program.py' is not seen by the hosts: each has a /tmp "
            f"of its own; allowed: a testbed that was brought up with --share {folder}\n",
        )
    with Testbed.up(2, name="programs", share=[folder]):
        done = run(folder / "program.py", *words)
        assert done.returncode == 0, done.stderr
