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

__all__ = ["figure_table", "open_result", "register", "say_doubts", "say_left_out", "segment_table"]

HELP = """Fit a twin to a result folder.

The figures t_0, r_max and n_half are read off the measured curve. Where the loops for them were measured,
overheads, latency and gap are fitted in segments by message size. Each value has its interval.

Of pairs of hosts (`wiretwin measure --pairs all`) the twin is that of the typical pair of the fastest class,
and --network writes what joins the hosts: `wiretwin predict prog.py --twin twin.toml --network network.toml`.

\b
Examples:
  wiretwin fit results/measure-20240501-120000 -o twin.toml
  wiretwin fit result --layers mpi4py/mpich --segments --format json
  wiretwin fit cluster -o twin.toml --network network.toml --topology /etc/slurm/topology.conf
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
        network: Annotated[
            Path | None,
            typer.Option(
                help="Of pairs of hosts, write the network that joins them to this file, for --network.",
                show_default="no file",
            ),
        ] = None,
        topology: Annotated[
            Path | None,
            typer.Option(
                help="Slurm's topology.conf or topology.yaml, or what ibnetdiscover printed, for --network.",
                show_default="found in the times",
            ),
        ] = None,
        salvage: Annotated[bool, typer.Option("--salvage", help="Leave out damaged launches.")] = False,
        segments: Annotated[
            bool, typer.Option("--segments", help="Print the fitted lines by size in place of the figures.")
        ] = False,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.errors import InputError
        from wiretwin.fit.api import fit as fit_twin

        opened = open_result(result, salvage=salvage)
        if network is not None:
            write_network(opened, network, topology, layers)
        elif topology is not None:
            raise InputError(key="--topology", value=str(topology), allowed="with --network FILE")
        twin = fit_twin(opened, layers=layers.split(",") if layers else None)
        if out is not None:
            twin.write(out)
        emit(segment_table(twin) if segments else figure_table(twin), form)
        say_left_out(twin)
        from wiretwin.fit.cluster import has_pairs, reference_launches

        say_doubts(twin, reference_launches(opened) if has_pairs(opened) else opened)
        if out is not None:
            print(f"twin: {out}", file=sys.stderr)


def write_network(result: Result, out: Path, topology: Path | None, layers: str | None) -> None:
    """Write the network that joins the hosts of a result of pairs.

    Raises
    ------
    InputError
        There are no pairs in it, or the topology does not fit.
    StorageError
        The file cannot be written.
    """
    from wiretwin.fit.cluster import network_of, network_text
    from wiretwin.model.network import Network, table_in
    from wiretwin.results import write_atomically

    listed = None if topology is None else table_in(topology, {})
    made, found = network_of(result, layers.split(",")[0] if layers else None, listed)
    known = Network.of_table(made)
    write_atomically(out, network_text(made, found, result.digest()).encode())
    print(f"network: {out}: {known.hosts} hosts, {known.switches} switches", file=sys.stderr)


def say_left_out(twin: Twin) -> None:
    """Name on standard error the layers that were measured too little to be fitted."""
    for name, lacks in (twin.source.left_out or {}).items():
        print(f"{name}: not fitted: {lacks}", file=sys.stderr)


def say_doubts(twin: Twin, result: Result) -> None:
    """Name on standard error where the fitted lines do not say what was measured."""
    import numpy as np

    from wiretwin.fit import size_table
    from wiretwin.fit.residuals import doubts

    table = size_table(result.samples())
    for name, layer in twin.layers.items():
        part = table.filter(table["layer"] == name)
        sizes = part["bytes"].to_numpy().astype(np.float64)
        inside = sizes >= layer.half_round_trip[0].from_bytes
        fitted = np.array([layer.at("half_round_trip", int(size)) for size in sizes[inside]])
        measured = part["value_us"].to_numpy()[inside] * 1000.0
        starts = [one.from_bytes for one in layer.half_round_trip]
        for doubt in doubts(name, sizes[inside], measured, fitted, starts):
            print(f"doubtful: {doubt}", file=sys.stderr)


def open_result(path: Path, *, salvage: bool = False) -> Result:
    """Open a result folder, naming on standard error what had to be left out."""
    from wiretwin.results import Result

    result = Result.open(path, salvage=salvage)
    for damage in result.damaged:
        print(f"wiretwin: left out: {damage}", file=sys.stderr)
    return result


FIGURES = (
    ("t_0_us", "t_0 [us]"),
    ("r_max_MB_s", "r_max [MB/s]"),
    ("n_half_bytes", "n_half [B]"),
    ("call_ns", "call [ns]"),
)
QUANTITIES = (
    "half_round_trip",
    "overhead_send",
    "overhead_recv",
    "latency",
    "busy_send",
    "busy_recv",
    "fetch",
    "gap",
)


def figure_table(twin: Twin) -> Table:
    """Return one row per layer: the figures with their intervals, and how many segments were found."""
    columns = [
        Column("layer", "layer"),
        Column("launches", "launches"),
        Column("samples", "samples", people=False),
    ]
    for key, title in FIGURES:
        name, _, unit = key.partition("_MB_s") if key.endswith("MB_s") else key.rpartition("_")
        unit = "MB_s" if key.endswith("MB_s") else unit
        columns.append(Column(key, title))
        columns += [Column(f"{name}_{end}_{unit}", end, people=key == "t_0_us") for end in ("low", "high")]
    columns += [
        Column("rendezvous_from_bytes", "rendezvous from [B]"),
        Column("segments", "segments"),
        Column("endpoints", "endpoints"),
    ]
    rows = []
    for name, layer in twin.layers.items():
        row: list[object] = [name, layer.t_0_us.launches, layer.t_0_us.samples]
        for key, _ in FIGURES:
            figure = getattr(layer, key)
            row += [figure.value, figure.low, figure.high] if figure else [None] * 3
        rows.append(
            [*row, layer.rendezvous_from_bytes, len(layer.half_round_trip), bool(layer.overhead_send)]
        )
    return Table("the twin: what was read off the curves (`--segments` for the fitted lines)", columns, rows)


def segment_table(twin: Twin) -> Table:
    """Return one row per layer, quantity and range of sizes: base + per byte x size, with intervals."""
    columns = [
        Column("layer", "layer"),
        Column("quantity", "quantity"),
        Column("from_bytes", "from [B]"),
        Column("to_bytes", "to [B]"),
    ]
    for key, title in (("base", "base [ns]"), ("per_byte", "per byte [ns]")):
        columns.append(Column(f"{key}_ns", title))
        columns += [Column(f"{key}_{end}_ns", end) for end in ("low", "high")]
    columns += [Column("samples", "samples", people=False), Column("lack_of_fit_p", "lack of fit p")]
    rows: list[list[object]] = []
    for name, layer in twin.layers.items():
        for quantity in QUANTITIES:
            for segment in getattr(layer, quantity):
                lines = (segment.base_ns, segment.per_byte_ns)
                values = [value for line in lines for value in (line.value, line.low, line.high)]
                place = [name, quantity, segment.from_bytes, segment.to_bytes]
                rows.append([*place, *values, segment.samples, segment.lack_of_fit_p])
    return Table("the twin: fitted lines by message size", columns, rows)
