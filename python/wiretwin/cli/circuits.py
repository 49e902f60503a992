"""``wiretwin circuits``: the virtual network of a parallel run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

__all__ = ["register"]

HELP = """Set up the virtual network of a parallel run: ranks on hosts, circuits between neighbours.

Ranks are placed by load: each where most is free, cores less load, neighbours together. Neighbours in the
topology that live on different hosts get three circuits each way: ordinary (UBR), backup (ABR) and
control (VBR), with a number of its own on the link of each host. What is guaranteed must fit each line.

\b
Examples:
  wiretwin circuits ring --ranks 4 --hosts ws1,ws2
  wiretwin circuits mesh --ranks 16 --across 4 --hosts ws1:4=0.5,ws2:4,ws3:8=6 -o circuits.json
"""

COLUMNS = (
    Column("sender", "from"),
    Column("receiver", "to"),
    Column("from_host", "from host"),
    Column("to_host", "to host"),
    Column("role", "circuit"),
    Column("category", "category"),
    Column("peak_Mbit_s", "peak [Mbit/s]"),
    Column("guaranteed_Mbit_s", "guaranteed [Mbit/s]"),
    Column("vci_out", "VCI out"),
    Column("vci_in", "VCI in"),
)


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def circuits(
        topology: Annotated[str, typer.Argument(help="line, ring, mesh, torus, star, tree or all.")],
        hosts: Annotated[str, typer.Option(help="NAME[:CORES][=LOAD], several with commas.")],
        ranks: Annotated[int, typer.Option(help="How many ranks.")] = 4,
        across: Annotated[
            int | None,
            typer.Option(help="Ranks across a mesh or torus.", show_default="as square as it goes"),
        ] = None,
        line: Annotated[float, typer.Option(help="Of each host's line, in Mbit/s.")] = 149.76,
        backup: Annotated[float, typer.Option(help="Peak rate of a backup circuit, in Mbit/s.")] = 50.0,
        control: Annotated[float, typer.Option(help="Rate of a control circuit, in Mbit/s.")] = 1.0,
        out: Annotated[
            Path | None, typer.Option("--out", "-o", help="All of it as JSON besides.", show_default="none")
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        import json

        from wiretwin.results import write_atomically
        from wiretwin.scenario.circuits import lay_out, parse_hosts

        found = lay_out(
            topology,
            ranks,
            parse_hosts(hosts),
            across=across,
            line_Mbit_s=line,
            backup_Mbit_s=backup,
            control_Mbit_s=control,
        )
        rows = [[getattr(one, column.key) for column in COLUMNS] for one in found.circuits]
        emit(Table(f"{topology} of {ranks} ranks: {len(rows)} circuits", COLUMNS, rows), form)
        for host in found.hosts:
            here = [str(rank) for rank, name in enumerate(found.placement) if name == host.name]
            print(f"{host.name}: {'ranks ' + ' '.join(here) if here else 'no rank'}", file=sys.stderr)
        if out is not None:
            write_atomically(out, (json.dumps(found.document, indent=1) + "\n").encode())
