"""What MPI says of point to point: one script for our machines (in Rust) and for real libraries (here)."""

from __future__ import annotations

import sys
from pathlib import Path

from mpi_help import ROOT, launcher

from wiretwin import process

SCRIPT = ROOT / "tests" / "conformance" / "mpi.txt"
PROGRAM = Path(__file__).with_name("semantics_program.py")


def test_a_real_mpi_has_the_semantics_that_ours_is_held_to() -> None:
    cases = sum(line.startswith("case ") for line in SCRIPT.read_text().splitlines())
    command = [*launcher(3), sys.executable, str(PROGRAM), str(SCRIPT)]
    done = process.run(command, limit_s=60.0, env=process.single_threaded())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{cases} cases"
