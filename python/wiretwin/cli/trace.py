"""``wiretwin trace``: what a program's ranks ask of MPI, recorded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wiretwin.cli.folders import ForceOption, fresh
from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.predict import ArgsArgument, RanksOption
from wiretwin.cli.run import WorldChoice
from wiretwin.cli.simulated import NETWORKS_HELP, Simulated, with_simulated

__all__ = ["register"]

HELP = f"""Record what the ranks of a program ask of MPI, in a run on this host or in the simulated world.

A program in C for MPICH or Debian's Open MPI runs, or a script of mpi4py, with a library before its MPI that
writes down each call: what it sends, what it has received and from whom, collectives, communicators, and the
time between calls. `wiretwin replay` does the same again over any network.

Recorded are messages between two ranks and blocking collectives; a program that uses more, such as windows,
is recorded, but not replayed.

With --world simulated its library runs in virtual time, as for `wiretwin predict`: one rank computes at a
time, so that more ranks than this host has cores do not disturb each other.

{NETWORKS_HELP}
\b
Examples:
  wiretwin trace ./a.out --ranks 4 -o recorded
  wiretwin trace prog.py --ranks 2 -o recorded -- --points 512
  wiretwin trace ./a.out --world simulated --twin twin.toml --ranks 16 -o recorded
  wiretwin replay recorded --twin twin.toml --network star:rate=10Gbit/s
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    @with_simulated()
    def trace(
        model: Simulated,
        program: Annotated[
            Path,
            typer.Argument(
                help="A program for MPICH or Open MPI, or a script of mpi4py.", show_default=False
            ),
        ],
        args: ArgsArgument = None,
        ranks: RanksOption = 2,
        world: Annotated[WorldChoice, typer.Option(help="Where it runs.")] = WorldChoice.live,
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", help="Folder for the recording.", show_default="results/trace-…"),
        ] = None,
        force: ForceOption = False,
        most: Annotated[
            int, typer.Option(help="Records of a rank that are kept at most, 48 bytes each.")
        ] = 20_000_000,
        limit: Annotated[str, typer.Option(help="Longest time for the run.")] = "60s",
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.quantity import parse_time
        from wiretwin.trace.record import record

        limit_s = parse_time(limit, "--limit", least_s=1.0)
        if world is WorldChoice.live:
            model.refuse("with --world simulated")
        with fresh(out, "trace", force=force) as folder:
            found = record(
                program,
                args or [],
                ranks=ranks,
                out=folder,
                world=world.value,
                **model.keywords,
                most=most,
                limit_s=limit_s,
            )
        print(found.manifest.printed, end="", file=sys.stdout if form is Format.table else sys.stderr)
        columns = [
            Column("rank", "rank"),
            Column("sends", "sends"),
            Column("sent_bytes", "sent [B]"),
            Column("receives", "receives"),
            Column("collectives", "collectives"),
            Column("compute_s", "compute [s]"),
            Column("inside_s", "inside MPI [s]"),
        ]
        emit(Table(f"{program.name} on {ranks} ranks, recorded", columns, found.summary()), form)
        if found.unknown:
            names = ", ".join(found.unknown)
            print(f"note: uses {names}, whose messages are not recorded", file=sys.stderr)
        print(f"trace: {folder}", file=sys.stderr)
