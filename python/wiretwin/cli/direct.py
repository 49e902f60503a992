"""``wiretwin direct``: the direct transport under an MPI."""

from __future__ import annotations

import json
import shlex
from enum import Enum
from typing import Annotated

import typer

__all__ = ["register"]

HELP = """User-level messages under an unmodified MPI.

\b
Examples:
  wiretwin direct env --mpi openmpi
"""

ENV_HELP = """Print what to set so that an MPI uses the direct transport.

The lines are for a shell to evaluate. The programs need not be rebuilt. A launcher of several hosts hands on
the variables by itself (MPICH) or is told to (Open MPI: `-x FI_PROVIDER_PATH`).

\b
Examples:
  eval "$(wiretwin direct env --mpi openmpi)"; mpirun -n 2 ./program
  eval "$(wiretwin direct env --mpi mpich)"; mpiexec -n 2 python program.py
  wiretwin direct env --mpi mpich --format json
"""


class _Format(Enum):
    shell = "shell"
    json = "json"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    direct = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(direct, name="direct", help=HELP)

    @direct.callback()
    def group() -> None:
        pass

    @direct.command(help=ENV_HELP)
    def env(
        mpi: Annotated[str, typer.Option(help="openmpi or mpich.", show_default=False)],
        form: Annotated[_Format, typer.Option("--format", help="shell or json.")] = _Format.shell,
    ) -> None:
        from wiretwin.direct import environment

        found = environment(mpi)
        if form is _Format.json:
            print(json.dumps(found, indent=1))
        else:
            for name, value in found.items():
                print(f"export {name}={shlex.quote(value)}")
