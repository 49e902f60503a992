"""``wiretwin twin``: what was measured, for other simulators."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

__all__ = ["register"]

HELP = """A twin's values for other simulators.

\b
Examples:
  wiretwin twin export twin.toml --to loggopsim --layer mpi/mpich
  wiretwin twin export twin.toml --to simgrid --layer mpi/mpich --hosts 16 -o platform.xml
"""

EXPORT_HELP = """Print what was measured of a layer as parameters of another simulator.

\b
  loggopsim  L, o, g, G, O and S, in picoseconds and bytes: lines that agree with the twin at 1 byte and at
             --fit-size; the table says by how much one message misses the twin in between. Schedules with
             times in picoseconds come from `wiretwin replay TRACE --goal FILE --unit ps`.
  simgrid    a platform file for SMPI with -o, and its options in a table: overheads by message size,
             and factors of the links' latency and bandwidth.

\b
Examples:
  LogGOPSim -f ring.bin $(wiretwin twin export twin.toml --to loggopsim --words)
  wiretwin twin export twin.toml --to simgrid --hosts 16 -o platform.xml
  wiretwin twin export twin.toml --to simgrid --format json
"""


class To(StrEnum):
    """Which simulator."""

    loggopsim = "loggopsim"
    simgrid = "simgrid"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(group, name="twin", help=HELP)

    @group.callback()
    def twin() -> None:
        pass

    @group.command(help=EXPORT_HELP)
    def export(
        twin: Annotated[
            Path, typer.Argument(help="A twin, as `wiretwin fit` writes it.", show_default=False)
        ],
        to: Annotated[To, typer.Option(help="The simulator.", show_default=False)],
        layer: Annotated[str | None, typer.Option(help="Of the twin.", show_default="the only one")] = None,
        state: Annotated[
            str | None, typer.Option(help="Of the host, where it has several.", show_default="all together")
        ] = None,
        fit_size: Annotated[
            str | None,
            typer.Option(help="At which loggopsim's lines agree with the twin.", show_default="64KiB"),
        ] = None,
        hosts: Annotated[
            int | None, typer.Option(help="Of the platform for simgrid.", show_default="2")
        ] = None,
        out: Annotated[
            Path | None, typer.Option("--out", "-o", help="A platform file for simgrid.", show_default="none")
        ] = None,
        words: Annotated[
            bool, typer.Option("--words", help="Print words for loggopsim's command line alone.")
        ] = False,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.errors import InputError, StorageError
        from wiretwin.quantity import parse_size
        from wiretwin.simulators import loggopsim, simgrid
        from wiretwin.twin import Twin

        read = Twin.read(twin)
        if layer is None and len(read.layers) > 1:
            raise InputError(key="--layer", reason="is needed", allowed=f"one of {', '.join(read.layers)}")
        name = layer or next(iter(read.layers))
        costs = read.layer(name).in_state(state)
        for key, value, only in (
            ("--fit-size", fit_size, To.loggopsim), ("--words", words or None, To.loggopsim),
            ("--hosts", hosts, To.simgrid), ("--out", out, To.simgrid),
        ):  # fmt: skip
            if value is not None and to is not only:
                raise InputError(key=key, value=str(value), allowed=f"with --to {only}")
        if to is To.loggopsim:
            made = loggopsim(costs, parse_size(fit_size, "--fit-size") if fit_size else 65536)
            if words:
                print(" ".join(made.options))
                return
            columns = [Column(one, one) for one in made.__slots__]
            emit(
                Table(f"{name} for LogGOPSim", columns, [[getattr(made, one) for one in made.__slots__]]),
                form,
            )
            return
        platform = simgrid(costs)
        rows = [["latency_s", f"{platform.latency_s:.9g}"]]
        rows += [
            ["bandwidth_bytes_s", f"{platform.bandwidth_bytes_s:.9g}"],
            *map(list, platform.config.items()),
        ]
        if out is not None:
            try:
                out.write_text(platform.platform(2 if hosts is None else hosts, read.host.cores), "utf-8")
            except OSError as error:
                raise StorageError(out, f"not written: {error.strerror or error}") from error
        emit(Table(f"{name} for SimGrid", [Column("option", "option"), Column("value", "value")], rows), form)
        if out is not None:
            print(f"platform: {out}", file=sys.stderr)
