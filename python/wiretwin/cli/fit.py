"""``wiretwin fit``: from a result folder to a twin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

if TYPE_CHECKING:
    from wiretwin.results import Result
    from wiretwin.twin import Twin

__all__ = ["open_result", "register", "twin_table"]

HELP = """Fit a twin to a result folder.

The figures t_0, r_max and n_half are read off the measured curve. Where the loops for them were measured,
overheads, latency and gap are fitted in segments by message size. Each value has its interval.

\b
Examples:
  wiretwin fit results/measure-20240501-120000 -o twin.toml
  wiretwin fit result --layers mpi4py/mpich --format json
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def fit(
        result: Annotated[Path, typer.Argument(help="A result folder, as `wiretwin measure` leaves it.")],
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", help="Write the twin to this file.", show_default="no file"),
        ] = None,
        layers: Annotated[
            str | None, typer.Option(help="Layers to fit, joined by commas.", show_default="all")
        ] = None,
        salvage: Annotated[bool, typer.Option("--salvage", help="Leave out damaged launches.")] = False,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.fit.api import fit as fit_twin

        opened = open_result(result, salvage=salvage)
        twin = fit_twin(opened, layers=layers.split(",") if layers else None)
        if out is not None:
            twin.write(out)
        emit(twin_table(twin), form)
        if out is not None:
            print(f"twin: {out}", file=sys.stderr)


def open_result(path: Path, *, salvage: bool = False) -> Result:
    """Open a result folder, naming on standard error what had to be left out."""
    from wiretwin.results import Result

    result = Result.open(path, salvage=salvage)
    for damage in result.damaged:
        print(f"wiretwin: left out: {damage}", file=sys.stderr)
    return result


def twin_table(twin: Twin) -> Table:
    """Return one row per layer and figure, with its interval."""
    rows: list[tuple[object, ...]] = []
    for name, layer in twin.layers.items():
        for key, unit in (
            ("t_0_us", "us"),
            ("r_max_MB_s", "MB/s"),
            ("n_half_bytes", "B"),
            ("call_ns", "ns"),
        ):
            figure = getattr(layer, key)
            if figure is not None:
                found = (figure.value, figure.low, figure.high, figure.launches, figure.samples)
                rows.append((name, key.removesuffix(f"_{unit.replace('/', '_')}"), None, None, unit, *found))
        for key in ("half_round_trip", "overhead_send", "overhead_recv", "latency", "gap"):
            for segment in getattr(layer, key):
                place = (segment.from_bytes, segment.to_bytes)
                for part, unit in (("base_ns", "ns"), ("per_byte_ns", "ns/B")):
                    value = getattr(segment, part)
                    title = f"{key} {part.removesuffix('_ns').replace('_', ' ')}"
                    found = (value.value, value.low, value.high, None, segment.samples)
                    rows.append((name, title, *place, unit, *found))
    return Table(
        "the twin: figures, and segments by size (base + per byte x size)",
        (
            Column("layer", "layer"),
            Column("quantity", "quantity"),
            Column("from_bytes", "from [B]"),
            Column("to_bytes", "to [B]"),
            Column("unit", "unit"),
            Column("value", "value"),
            Column("low", "low"),
            Column("high", "high"),
            Column("launches", "launches"),
            Column("samples", "samples"),
        ),
        rows,
    )
