"""``wiretwin rpc``: stubs for remote procedure calls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["register"]

HELP = """Stubs for remote procedure calls (ONC RPC).

A file in the RPC language says which types and procedures there are; `generate` makes a Python module of it:
types, their XDR, a client and a server. They speak to programs made with rpcgen.

\b
Examples:
  wiretwin rpc generate counter.x
"""

GENERATE_HELP = """Make a Python module of a file in the RPC language.

The module has a class for each type, a client NAME_1 and a service NAME_1_Service for version 1 of program
NAME. A service is a class to derive from, one method for each procedure; `wiretwin.rpc.runtime.Server` serves
it over TCP and UDP. The language is that of RFC 4506 and RFC 5531 with what rpcgen takes besides.

\b
Examples:
  wiretwin rpc generate counter.x
  wiretwin rpc generate counter.x --out counter.py
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    rpc = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(rpc, name="rpc", help=HELP)

    @rpc.callback()
    def rpc_verbs() -> None:
        pass

    @rpc.command(help=GENERATE_HELP)
    def generate(
        file: Annotated[Path, typer.Argument(help="A file in the RPC language.", show_default=False)],
        out: Annotated[
            Path | None, typer.Option("--out", "-o", help="The module to write.", show_default="print it")
        ] = None,
    ) -> None:
        from wiretwin.results import write_atomically
        from wiretwin.rpc import stubs

        module = stubs(file)
        if out is None:
            print(module, end="")
            return
        write_atomically(out, module.encode())
        print(f"stubs: {out}", file=sys.stderr)
