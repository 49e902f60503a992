"""``wiretwin direct``: the direct transport under an MPI."""

from __future__ import annotations

import json
import shlex
from enum import Enum
from typing import Annotated

import typer

__all__ = ["register"]

HELP = """User-level messages for unmodified MPIs and C programs.

\b
Examples:
  wiretwin direct env --mpi openmpi
  wiretwin direct vipl
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


VIPL_HELP = """Print what to set so that a C program is built against VIPL.

The lines are for a shell to evaluate. VIPL is the interface of the Virtual Interface Architecture, and the
folder of its header, its library and the example vnettest.c; pkg-config finds it there.

\b
Examples:
  eval "$(wiretwin direct vipl)"; cc "$VIPL/vnettest.c" $(pkg-config --cflags --libs vipl) -o vnettest
  wiretwin direct vipl --format json
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

        _show(environment(mpi), form)

    @direct.command(help=VIPL_HELP)
    def vipl(
        form: Annotated[_Format, typer.Option("--format", help="shell or json.")] = _Format.shell,
    ) -> None:
        from wiretwin.direct import vipl_environment

        _show(vipl_environment(), form)


def _show(variables: dict[str, str], form: _Format) -> None:
    if form is _Format.json:
        print(json.dumps(variables, indent=1))
        return
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
