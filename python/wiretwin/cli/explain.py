"""``wiretwin explain``: the anatomy of one message."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.numbers import whole

if TYPE_CHECKING:
    from wiretwin.model.anatomy import Anatomy, Pair

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
  wiretwin explain mpi-lam/tcp/gige 64KiB --nic acenic --mtu 9000
  wiretwin explain mpi-mvich/gige 32KiB
  wiretwin explain socket/tcp/gige 4KiB --duplex half-in-bursts
  wiretwin explain mpi/tcp/gige 32KiB --nic sk-net --switch-over 16KiB
"""

WIDTH = 40


def _table(found: Anatomy, bars: bool) -> Table:
    from wiretwin.model.anatomy import lines

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


OPTIONS = {
    "ethernet": ("--host",),
    "fddi": ("--host",),
    "gige": ("--nic", "--mtu", "--duplex", "--switch-over"),
}
"""Which options a network that is not ATM has."""
ATM_OPTIONS = ("--host", "--adapter", "--link", "--switch", "--back-to-back")


def _network(stack: str, given: dict[str, Any]) -> Pair:
    """Return two hosts with what is given of them; refuses what their network does not have."""
    from wiretwin.errors import InputError
    from wiretwin.model.profiles import Network

    lower = stack.split("/")[-1]
    allowed = OPTIONS.get(lower, ATM_OPTIONS)
    for option, value in given.items():
        if option not in allowed:
            shown = None if value is True else value
            reason = f"has no part in {stack}"
            raise InputError(key=option, value=shown, reason=reason, allowed=", ".join(allowed))
    if lower == "gige":
        from wiretwin.model.gigabit import of_stack

        nic, mtu = given.get("--nic", "gnic-ii"), given.get("--mtu", 1500)
        duplex, switch_over = given.get("--duplex", "full"), given.get("--switch-over")
        return of_stack(stack, nic, mtu, duplex, switch_over)
    host = given.get("--host", "4/690")
    if lower in OPTIONS:
        return Network(stack, host)
    if "--back-to-back" in given and "--switch" in given:
        reason = "is given with --back-to-back"
        raise InputError(key="--switch", value=given["--switch"], reason=reason, allowed="one of the two")
    switch = None if "--back-to-back" in given else given.get("--switch", "asx100")
    adapter, link = given.get("--adapter", "series-200"), given.get("--link", "taxi100")
    return Network(stack, host, adapter, switch=switch, link=link)


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
        host: Annotated[
            str | None, typer.Option(help="Both hosts, where not over gige.", show_default="4/690")
        ] = None,
        adapter: Annotated[
            str | None, typer.Option(help="Their ATM adapters.", show_default="series-200")
        ] = None,
        link: Annotated[str | None, typer.Option(help="Every ATM link.", show_default="taxi100")] = None,
        switch: Annotated[
            str | None, typer.Option(help="The ATM switch between them.", show_default="asx100")
        ] = None,
        back_to_back: Annotated[bool, typer.Option("--back-to-back", help="No switch.")] = False,
        nic: Annotated[
            str | None, typer.Option(help="Over gige: both adapters.", show_default="gnic-ii")
        ] = None,
        mtu: Annotated[
            int | None,
            typer.Option(
                parser=whole("--mtu", 576, 9000),
                metavar="<576 to 9000>",
                help="Over gige: the largest IP packet.",
                show_default="1500",
            ),
        ] = None,
        duplex: Annotated[
            str | None, typer.Option(help="Over gige: full, half or half-in-bursts.", show_default="full")
        ] = None,
        switch_over: Annotated[
            str | None,
            typer.Option(
                help="Over gige, of MPI: the first length that goes by rendezvous.",
                show_default="the library's",
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
        from wiretwin.model.anatomy import anatomy, capture, chrome_trace
        from wiretwin.quantity import parse_size
        from wiretwin.results import write_atomically

        given: dict[str, Any] = {
            "--host": host,
            "--adapter": adapter,
            "--link": link,
            "--switch": switch,
            "--back-to-back": back_to_back or None,
            "--nic": nic,
            "--mtu": mtu,
            "--duplex": duplex,
            "--switch-over": switch_over and parse_size(switch_over, "--switch-over"),
        }
        network = _network(stack, {key: value for key, value in given.items() if value is not None})
        refuse_unwritable(trace, pcap, out)
        found = anatomy(network, parse_size(size, "SIZE", least=0))
        emit(_table(found, bars=form is Format.table), form)
        if trace is not None:
            write_atomically(trace, chrome_trace(found).encode())
            print(f"trace: {trace}", file=sys.stderr)
        if pcap is not None:
            write_atomically(pcap, capture(network, found.bytes))
            print(f"capture: {pcap}", file=sys.stderr)
        if out is not None:
            from wiretwin.report.anatomy import render_anatomy

            print(f"report: {render_anatomy(found, out)}", file=sys.stderr)
