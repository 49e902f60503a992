"""``wiretwin explain``: the anatomy of one message."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.simulated import NETWORKS_HELP, Simulated, with_simulated

if TYPE_CHECKING:
    from wiretwin.model.anatomy import Anatomy

__all__ = ["register"]

HELP = f"""Show where the time of one message goes, by layer and resource.

The message crosses a network that has hosts of its own, in every detail, by default the one that the stack
ends in; or, with --twin, it goes between hosts as measured, STACK being a layer of the twin, over the network
that is described. Every picosecond of its latency stands on one line; waiting for something that is taken
stands on a line of its own.

{NETWORKS_HELP}
\b
Examples:
  wiretwin explain fore/aal5 4
  wiretwin explain socket/tcp/ethernet 4KiB --network ethernet10:host=sparc1+
  wiretwin explain fore/aal5 4096 --network atm:host=4/690,adapter=series-100
  wiretwin explain fore/aal5 "16 KiB" --trace message.json
  wiretwin explain socket/tcp/fddi 10000 --pcap message.pcap
  wiretwin explain mpi-lam/tcp/gige 64KiB --network gige:nic=acenic,mtu=9000
  wiretwin explain mpi/tcp/gige 32KiB --network gige:nic=sk-net,switch_over=16KiB
  wiretwin explain mpi4py/mpich 4KiB --twin twin.toml --network star:rate=10Gbit/s,delay=1us
  wiretwin explain mpi4py/mpich 4KiB --twin twin.toml --network star:rate=10Gbit/s --fidelity packet
"""

WIDTH = 40


def _table(found: Anatomy, bars: bool) -> Table:
    from wiretwin.model.anatomy import lines

    network, latency_ps = found.network, found.latency_ps
    title = f"{network.stack}, {found.bytes} bytes, {network.between}: {latency_ps / 1e6:.3f} us"
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
        share = line.span_ps / latency_ps
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
            before = round(WIDTH * line.start_ps / latency_ps)
            row.append(
                " " * min(before, WIDTH - 1)
                + ("░" if line.activity == "waiting" else "█") * max(1, round(WIDTH * share))
            )
        rows.append(row)
    return Table(title, columns, rows)


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    @with_simulated("layer", "ranks_per_host")
    def explain(
        model: Simulated,
        stack: Annotated[str, typer.Argument(help="A stack, such as fore/aal5.")],
        size: Annotated[
            str,
            typer.Argument(
                help="The length of the message, such as 4096 or 4KiB, or 0 where the stack carries it."
            ),
        ],
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
        from wiretwin.cli.folders import refuse_unwritable
        from wiretwin.errors import InputError
        from wiretwin.model.anatomy import anatomy, capture, chrome_trace
        from wiretwin.model.local import own_hosts
        from wiretwin.quantity import parse_size
        from wiretwin.results import write_atomically

        length = parse_size(size, "SIZE", least=0)
        refuse_unwritable(trace, pcap, out)
        if model.twin is None:
            pair = own_hosts(stack, model.network).settings
            found = anatomy(pair, length)
            if pcap is not None:
                write_atomically(pcap, capture(pair, found.bytes))
                print(f"capture: {pcap}", file=sys.stderr)
        else:
            from wiretwin.predict.model import Site
            from wiretwin.predict.one import message_anatomy

            if pcap is not None:
                raise InputError(key="--pcap", value=str(pcap), allowed="without --twin")
            found = message_anatomy(Site.of(2, model.network), model.twin, stack, length)
        emit(_table(found, bars=form is Format.table), form)
        if trace is not None:
            write_atomically(trace, chrome_trace(found).encode())
            print(f"trace: {trace}", file=sys.stderr)
        if out is not None:
            from wiretwin.report.anatomy import render_anatomy

            print(f"report: {render_anatomy(found, out)}", file=sys.stderr)
