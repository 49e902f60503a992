"""``wiretwin testbed``: hosts without hosts."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.where import LINKS_HELP, with_link

if TYPE_CHECKING:
    from wiretwin.testbed.plan import Link

__all__ = ["register"]

HELP = """Hosts without hosts: namespaces of this machine with names, addresses and folders of their own.

Each host has its own network, name, /tmp, /run and /dev/shm, and sees the rest of this machine's files as
they are; --share makes a folder below those visible everywhere. Ordinary users can make a testbed where
the system lets them have user namespaces.

\b
Examples:
  wiretwin testbed up --hosts 4
  wiretwin testbed up --link wire --rate 10Mbit --delay 5us
  wiretwin testbed up --link wire --rate 10Mbit --strict-priority 46 --background 0=0.7
  wiretwin testbed exec h1 -- ip -brief address
  wiretwin testbed counters
  wiretwin testbed broadcast --sizes 4,1KiB
  wiretwin testbed down
"""
BROADCAST_HELP = """Time a remote procedure call broadcast to every other host, to the last answer.

On each host there is an rpcbind and a program of Sun RPC for the occasion; the first host calls. A call
that not every host answers ends it with an error.
"""
UP_HELP = f"""Bring a testbed up; it stays until `wiretwin testbed down`.

{LINKS_HELP}"""
EXEC_HELP = """Run a command on a host, in this working directory.

Standard streams, signals and exit status pass through. Nothing is read by a shell.
"""
NameOption = Annotated[str, typer.Option(help="The testbed's name.")]


def register(app: typer.Typer) -> None:
    """Add the verb and what it can do."""
    testbed = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(testbed, name="testbed", help=HELP)

    @testbed.command(help=UP_HELP)
    @with_link
    def up(
        link: Link,
        hosts: Annotated[int, typer.Option(help="How many, 1 to 64: h1, h2, …")] = 2,
        share: Annotated[
            list[Path] | None,
            typer.Option(help="A folder below /tmp, /run or /dev/shm that all hosts see; repeatable."),
        ] = None,
        name: NameOption = "default",
    ) -> None:
        from wiretwin.testbed.bed import Testbed

        bed = Testbed.up(hosts, link, name=name, share=share or [], stay=True)
        for host in bed.hosts:
            print(f"{host.name}  {host.address}")
        cores = [f"{host.name} on core {host.core}" for host in bed.hosts if host.core is not None]
        print(f"testbed {name!r} is up: {', '.join([link.words, *cores])}", file=sys.stderr)

    @testbed.command(
        "exec",
        help=EXEC_HELP,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )
    def execute(
        host: Annotated[str, typer.Argument(help="Its name, such as h1.", show_default=False)],
        command: Annotated[
            list[str], typer.Argument(help="After --: a program and its arguments.", show_default=False)
        ],
        name: NameOption = "default",
        user: Annotated[
            str | None, typer.Option(help="Who it runs as (root's testbeds).", show_default="you")
        ] = None,
    ) -> None:
        from wiretwin.errors import InputError
        from wiretwin.testbed.bed import Testbed

        if host.startswith("-"):  # options that are not ours may be the command's, and are let through
            allowed = "--name and --user before the host, options of the command behind it"
            raise InputError(key="exec", value=host, reason="is no option", allowed=allowed)
        if command[:1] == ["--"]:
            command = command[1:]
        argv = Testbed.find(name).host(host).entering_strictly(command, user)
        os.execv(argv[0], argv)

    @testbed.command()
    def status(form: FormatOption = Format.table) -> None:
        """Show the testbeds of this user."""
        from wiretwin.testbed.bed import survey

        rows = [(one.name, one.hosts, one.link, one.created_utc, one.state) for one in survey()]
        if not rows and form is Format.table:
            print("no testbed is up", file=sys.stderr)
            return
        columns = (
            Column("name", "name"),
            Column("hosts", "hosts"),
            Column("link", "link"),
            Column("created_utc", "since"),
            Column("state", "state"),
        )
        emit(Table("testbeds", columns, rows), form)

    @testbed.command()
    def counters(name: NameOption = "default", form: FormatOption = Format.table) -> None:
        """Show what a wire has carried to each host, by the queue of each class."""
        from wiretwin.testbed.bed import Testbed

        keys = ("sent", "sent_bytes", "drops", "background", "background_drops")
        rows = [
            (host, queue["queue"], *(queue[key] for key in keys))
            for host, queues in Testbed.find(name).wire_counters().items()
            for queue in queues
        ]
        columns = (
            Column("host", "to"),
            Column("queue", "DSCP"),
            Column("sent_frames", "frames"),
            Column("sent_bytes", "bytes"),
            Column("dropped_frames", "dropped"),
            Column("background_frames", "background"),
            Column("background_dropped_frames", "of it dropped"),
        )
        emit(Table("frames of hosts and of background load", columns, rows), form)

    @testbed.command(help=BROADCAST_HELP)
    def broadcast(
        sizes: Annotated[str, typer.Option(help="Bytes of the argument, 0 to 1024.")] = "4,64,1KiB",
        samples: Annotated[int, typer.Option(help="Calls of each size, 1 to 10000.")] = 50,
        name: NameOption = "default",
        form: FormatOption = Format.table,
    ) -> None:
        import statistics

        from wiretwin.errors import InputError, MeasureError
        from wiretwin.measure.schedule import parse_sizes
        from wiretwin.stacks.broadcast import broadcast as call
        from wiretwin.stacks.layers import parse_layer, refusal
        from wiretwin.testbed.bed import Testbed

        if not 1 <= samples <= 10_000:
            raise InputError(key="--samples", value=samples, allowed="1 to 10000")
        bed = Testbed.find(name)
        refused = refusal(parse_layer("rpc/tirpc"), bed)
        if refused is not None:
            raise MeasureError(f"nothing can be broadcast here: {refused}")
        rows = []
        for size, values in call(bed, parse_sizes(sizes), samples=samples).items():
            middle = statistics.median(values) / 1e3
            rows.append((size, len(bed.hosts) - 1, len(values), middle, min(values) / 1e3, max(values) / 1e3))
        columns = (
            Column("size_bytes", "size [B]"),
            Column("answers", "answers"),
            Column("samples", "samples"),
            Column("median_us", "median [us]"),
            Column("least_us", "least"),
            Column("most_us", "most"),
        )
        emit(Table("one call to all other hosts, to the last answer", columns, rows), form)

    @testbed.command()
    def down(name: NameOption = "default") -> None:
        """Take a testbed down: end what runs in it, remove all that it made."""
        from wiretwin.testbed.bed import take_down

        take_down(name)

    @testbed.command()
    def clean() -> None:
        """Remove what is left of testbeds whose keeper was killed; those that stand are not touched."""
        from wiretwin.testbed import bed

        cleaned = bed.clean()
        print(f"removed: {', '.join(cleaned)}" if cleaned else "nothing was left", file=sys.stderr)
