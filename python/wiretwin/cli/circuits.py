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
  wiretwin circuits star --ranks 8 --hosts ws1,ws2,ws3:4 --backup 25Mbit --control 64kbit
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
        line: Annotated[str, typer.Option(help="Rate of each host's line.")] = "149.76Mbit",
        backup: Annotated[str, typer.Option(help="Peak rate of a backup circuit.")] = "50Mbit",
        control: Annotated[str, typer.Option(help="Rate of a control circuit.")] = "1Mbit",
        out: Annotated[
            Path | None, typer.Option("--out", "-o", help="All of it as JSON besides.", show_default="none")
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        import json

        from wiretwin.cli.folders import refuse_unwritable
        from wiretwin.quantity import parse_rate
        from wiretwin.results import write_atomically
        from wiretwin.scenario.circuits import lay_out, parse_hosts

        refuse_unwritable(out)
        found = lay_out(
            topology,
            ranks,
            parse_hosts(hosts),
            across=across,
            line_Mbit_s=parse_rate(line, "--line") / 1e6,
            backup_Mbit_s=parse_rate(backup, "--backup") / 1e6,
            control_Mbit_s=parse_rate(control, "--control") / 1e6,
        )
        rows = [[getattr(one, column.key) for column in COLUMNS] for one in found.circuits]
        emit(Table(f"{topology} of {ranks} ranks: {len(rows)} circuits", COLUMNS, rows), form)
        for host in found.hosts:
            here = [str(rank) for rank, name in enumerate(found.placement) if name == host.name]
            print(f"{host.name}: {'ranks ' + ' '.join(here) if here else 'no rank'}", file=sys.stderr)
        if out is not None:
            write_atomically(out, (json.dumps(found.document, indent=1) + "\n").encode())
