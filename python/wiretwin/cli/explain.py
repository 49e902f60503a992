"""``wiretwin explain``: the anatomy of one message."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

if TYPE_CHECKING:
    from wiretwin.model.anatomy import Anatomy, Line, Pair

__all__ = ["register"]

HELP = """Show where the time of one message goes, by layer and resource.

The message crosses a network that has hosts of its own, in every detail; or, with --twin, it goes between
hosts as measured, over a network that is described. Every picosecond of its latency stands on one line;
waiting for something that is taken stands on a line of its own.

\b
Examples:
  wiretwin explain fore/aal5 4
  wiretwin explain socket/tcp/ethernet 4KiB --network ethernet10:host=sparc1+
  wiretwin explain fore/aal5 4096 --network atm:host=4/690,adapter=series-100
  wiretwin explain fore/aal5 "16 KiB" --trace message.json
  wiretwin explain socket/tcp/fddi 10000 --pcap message.pcap
  wiretwin explain mpi-lam/tcp/gige 64KiB --network gige:nic=acenic,mtu=9000
  wiretwin explain socket/tcp/gige 4KiB --network gige:duplex=half-in-bursts
  wiretwin explain mpi/tcp/gige 32KiB --network gige:nic=sk-net,switch_over=16KiB
  wiretwin explain mpi4py/mpich 4KiB --twin twin.toml --network star:rate=10Gbit/s,delay=1us
"""

WIDTH = 40


def _table(found: Anatomy, bars: bool) -> Table:
    from wiretwin.model.anatomy import lines

    network = found.network
    title = f"{network.stack}, {found.bytes} bytes, {network.between}: {found.latency_ps / 1e6:.3f} us"
    return _lines(title, lines(found), found.latency_ps, bars)


def _twin_table(layer: str, size: int, twin: Path, network: str | None, bars: bool) -> Table:
    from wiretwin.predict.model import Site
    from wiretwin.predict.one import message_lines

    site = Site.of(2, network)
    found = message_lines(site, twin, layer, size)
    latency = sum(line.span_ps for line in found)
    between = "two ranks of one host" if network is None else f"two hosts joined by {site.network}"
    return _lines(f"{layer}, {size} bytes, {between}: {latency / 1e6:.3f} us", found, latency, bars)


def _lines(title: str, lines: list[Line], latency_ps: int, bars: bool) -> Table:
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
    for line in lines:
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


def _pair(stack: str, network: str | None) -> Pair:
    """Return the hosts of a network that has hosts of its own, under a stack."""
    from wiretwin.errors import InputError
    from wiretwin.model.local import PRESETS, LocalNetwork, is_local, preset_for

    network = network or preset_for(stack)
    if not is_local(network):
        allowed = f"{', '.join(PRESETS)}; a topology such as star:rate=10Gbit/s with --twin"
        raise InputError(key="--network", value=network, allowed=allowed)
    return LocalNetwork.parse(network, stack=stack).settings


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def explain(
        stack: Annotated[str, typer.Argument(help="A stack, such as fore/aal5.")],
        size: Annotated[
            str,
            typer.Argument(
                help="The length of the message, such as 4096 or 4KiB, or 0 where the stack carries it."
            ),
        ],
        network: Annotated[
            str | None,
            typer.Option(
                help="What the message crosses: ethernet10, fddi, atm, asx100, an2 or gige, with keys such "
                "as gige:nic=acenic,mtu=9000; with --twin a topology such as star:rate=10Gbit/s.",
                show_default="what the stack ends in: asx100, ethernet10, fddi, gige",
            ),
        ] = None,
        twin: Annotated[
            Path | None,
            typer.Option(
                help="Hosts as this twin has them, STACK being one of its layers.", show_default="none"
            ),
        ] = None,
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
        from wiretwin.quantity import parse_size
        from wiretwin.results import write_atomically

        length = parse_size(size, "SIZE", least=0)
        if twin is not None:
            for key, value in (("--trace", trace), ("--pcap", pcap), ("--out", out)):
                if value is not None:
                    raise InputError(key=key, value=str(value), allowed="without --twin")
            emit(_twin_table(stack, length, twin, network, bars=form is Format.table), form)
            return
        pair = _pair(stack, network)
        refuse_unwritable(trace, pcap, out)
        found = anatomy(pair, length)
        emit(_table(found, bars=form is Format.table), form)
        if trace is not None:
            write_atomically(trace, chrome_trace(found).encode())
            print(f"trace: {trace}", file=sys.stderr)
        if pcap is not None:
            write_atomically(pcap, capture(pair, found.bytes))
            print(f"capture: {pcap}", file=sys.stderr)
        if out is not None:
            from wiretwin.report.anatomy import render_anatomy

            print(f"report: {render_anatomy(found, out)}", file=sys.stderr)
