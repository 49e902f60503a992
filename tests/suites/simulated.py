"""One program of a suite in the simulated world.

    python simulated.py LIBRARY RANKS LIMIT_S PROGRAM [ARGUMENT...]

It runs under MPICH or Open MPI itself, over hosts that a star joins, with its computation as it is. What its
ranks write comes out here, and the status is 0 where theirs was.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from pathlib import Path

from wiretwin.errors import WiretwinError
from wiretwin.predict.executable import predict_executable
from wiretwin.stacks.simulated import is_executable

NETWORK = "star:rate=10Gbit/s,delay=1us"
_INTO = "SUITE_INTO"


def main(library: str, ranks: int, limit_s: float, argv: list[str]) -> int:
    """Run a program; return the status to end with."""
    with tempfile.TemporaryDirectory() as into:
        os.environ[_INTO] = into
        python = not is_executable(Path(argv[0]))
        program, args = (Path(__file__), argv) if python else (Path(argv[0]), argv[1:])
        status, words = 0, ""
        try:
            found = predict_executable(
                program,
                args,
                twin="nothing",
                ranks=ranks,
                layer=f"mpi/{library}",
                network=NETWORK,
                passes=1,
                ends=False,
                limit_s=limit_s,
            )
            words = "".join(found.printed or [])
        except WiretwinError as error:
            status, words = 1, f"{error}\n"
        for text in sorted(Path(into).iterdir()):
            sys.stdout.write(text.read_text("utf-8", "replace"))
        sys.stdout.write(words)
    return status


def rank(argv: list[str]) -> None:
    """Run a script as a rank of this one, its output in a file."""
    number = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]
    number += "-spawned" if {"PMI_SPAWNED", "OMPI_PARENT_PORT"} & set(os.environ) else ""
    file = os.open(Path(os.environ[_INTO], number), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv = argv
    sys.path[0] = str(Path(argv[0]).parent)
    runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    if "WIRETWIN_SIM" in os.environ:
        rank(sys.argv[1:])
    else:
        sys.exit(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]))
