"""``wiretwin explain``: the anatomy of one message."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

if TYPE_CHECKING:
    from wiretwin.papers.anatomy import Anatomy

__all__ = ["register"]

HELP = """Show where the time of one message goes, by layer and resource.

The message crosses a simulated local network: two hosts with their adapters, back to back or through a
switch. Every picosecond of its latency stands on one line; waiting for something that is taken stands on
a line of its own.

\b
Examples:
  wiretwin explain fore/aal5 4
  wiretwin explain socket/tcp/ethernet 4KiB --host sparc2
  wiretwin explain fore/aal5 4096 --host sparc2 --adapter series-200 --back-to-back
  wiretwin explain fore/aal5 "16 KiB" --trace message.json
  wiretwin explain socket/tcp/fddi 10000 --pcap message.pcap
"""

WIDTH = 40


def _table(found: Anatomy, bars: bool) -> Table:
    from wiretwin.papers.anatomy import lines

    columns = [
        Column("place", "place"),
        Column("layer", "layer"),
        Column("resource", "resource"),
        Column("activity", "activity"),
        Column("times", "times"),
        Column("start_us", "start [us]", digits=5),
        Column("time_us", "time [us]", digits=5),
        Column("share_percent", "share [%]", digits=3),
    ]
    if bars:
        columns.append(Column("bar", ""))
    rows: list[list[object]] = []
    for line in lines(found):
        share = line.span_ps / found.latency_ps
        row: list[object] = [
            line.place,
            line.layer,
            line.resource,
            line.activity,
            line.times,
            line.start_ps / 1e6,
            line.span_ps / 1e6,
            100 * share,
        ]
        if bars:
            before = round(WIDTH * line.start_ps / found.latency_ps)
            row.append(
                " " * min(before, WIDTH - 1)
                + ("░" if line.activity == "waiting" else "█") * max(1, round(WIDTH * share))
            )
        rows.append(row)
    network = found.network
    title = f"{network.stack}, {found.bytes} bytes, {network.between}: {found.latency_ps / 1e6:.3f} us"
    return Table(title, columns, rows)


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def explain(
        stack: Annotated[str, typer.Argument(help="A stack, such as fore/aal5.")],
        size: Annotated[str, typer.Argument(help="The length of the message, such as 4096 or 4KiB.")],
        host: Annotated[str, typer.Option(help="Both hosts.")] = "4/690",
        adapter: Annotated[str, typer.Option(help="Their ATM adapters.")] = "series-200",
        link: Annotated[str, typer.Option(help="Every ATM link.")] = "taxi100",
        switch: Annotated[str, typer.Option(help="The ATM switch between them.")] = "asx100",
        back_to_back: Annotated[bool, typer.Option("--back-to-back", help="No switch.")] = False,
        trace: Annotated[
            Path | None,
            typer.Option(
                help="A timeline besides, for Perfetto (Chrome's trace format).", show_default="none"
            ),
        ] = None,
        pcap: Annotated[
            Path | None,
            typer.Option(
                help="What the first host sends and receives besides, as a capture.", show_default="none"
            ),
        ] = None,
        out: Annotated[
            Path | None, typer.Option("--out", "-o", help="A report page besides.", show_default="none")
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.measure.quantity import parse_size
        from wiretwin.papers.anatomy import anatomy, capture, chrome_trace
        from wiretwin.papers.profiles import Network
        from wiretwin.results import write_atomically

        if stack.split("/")[-1] in ("ethernet", "fddi"):
            network = Network(stack, host)
        else:
            network = Network(stack, host, adapter, switch=None if back_to_back else switch, link=link)
        found = anatomy(network, parse_size(size, "SIZE"))
        emit(_table(found, bars=form is Format.table), form)
        if trace is not None:
            write_atomically(trace, chrome_trace(found).encode())
            print(f"trace: {trace}", file=sys.stderr)
        if pcap is not None:
            write_atomically(pcap, capture(network, found.bytes))
            print(f"capture: {pcap}", file=sys.stderr)
        if out is not None:
            from wiretwin.papers.report import render_anatomy

            print(f"report: {render_anatomy(found, out)}", file=sys.stderr)
