"""``wiretwin advise``: the best settings of a stack, by search over the simulator."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.numbers import whole

if TYPE_CHECKING:
    from wiretwin.model.advise import Advice

__all__ = ["register"]

HELP = """Find the best settings of a stack between two hosts, by search over the simulator.

Searched are those that the stack has on the network: over Gigabit Ethernet of 1999 MTU, socket buffers,
the length from which messages go by rendezvous and the longest message of a descriptor; on the other
networks that have hosts of their own socket buffers and TCP_NODELAY. What counts is the geometric mean of
the times of messages of the sizes given. How sure that is: the best settings and those on file are
compared again with the constants of the model drawn from their intervals.

A topology between hosts of a twin has no settings to search: what was measured has one way to send. Which
layer wins at which sizes, and which settings are worth having there, `wiretwin understand` says of a result.

\b
Examples:
  wiretwin advise --stack mpi-mpich/tcp/gige --network gige:nic=sk-net
  wiretwin advise --stack socket/tcp/gige --network gige:nic=acenic --size 64KiB --size 1MiB
  wiretwin advise --stack socket/tcp/aal5 --network asx100 --size 8KiB
  wiretwin advise --stack mpi-mvich/gige --size 8KiB
"""

SIZES = ("1KiB", "16KiB", "128KiB", "1MiB")


def _table(found: Advice) -> Table:
    columns = (
        Column("setting", "setting"),
        Column("before", "on file"),
        Column("best", "best"),
        Column("slower_percent", "slower with that on file [%]", digits=3),
    )
    rows = [[one.name, one.before, one.best, one.slower_percent] for one in found.choices]
    title = f"{found.setting.stack}, {found.setting.between}"
    return Table(title, columns, rows)


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def advise(
        stack: Annotated[str, typer.Option(help="A stack, such as mpi-lam/tcp/gige.")],
        network: Annotated[
            str | None,
            typer.Option(
                help="One that has hosts of its own: ethernet10, fddi, atm, asx100, an2, gige, and keys.",
                show_default="what the stack ends in",
            ),
        ] = None,
        size: Annotated[
            list[str] | None,
            typer.Option(help="The length of messages; again for more.", show_default=", ".join(SIZES)),
        ] = None,
        draws: Annotated[
            int,
            typer.Option(
                parser=whole("--draws", 2, 1000),
                metavar="<2 to 1000>",
                help="How often the constants are drawn.",
            ),
        ] = 20,
        seed: Annotated[
            int, typer.Option(parser=whole("--seed"), metavar="<0 or more>", help="Of the draws.")
        ] = 1,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.cli.progress import Bar
        from wiretwin.model.advise import advise as search
        from wiretwin.model.gigabit import Setting
        from wiretwin.model.local import own_hosts
        from wiretwin.quantity import parse_size

        one = own_hosts(stack, network).settings
        most = one.most_bytes if isinstance(one, Setting) else None
        named = size or [text for text in SIZES if most is None or parse_size(text, "--size") <= most]
        sizes = sorted({parse_size(text, "--size") for text in named})
        with Bar(f"advise {stack}") as bar:
            found = search(
                one, sizes, draws=draws, seed=seed, tell=lambda tried: bar.stage(tried, tried, "settings")
            )
        emit(_table(found), form)
        if all(one.best == one.before for one in found.choices):
            print(f"none of {found.tried} settings tried is faster than those on file", file=sys.stderr)
            return
        sure = (
            f"{found.faster:.2f} times as fast as with those on file ({found.low:.2f} to {found.high:.2f}); "
            f"better under {100 * found.sure:.0f} % of {found.draws} draws of the constants; "
            f"{found.tried} settings tried"
        )
        print(sure, file=sys.stderr)
