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

Searched are those that the stack has, of MTU, socket buffers, the length from which messages go by
rendezvous and the longest message of a descriptor, between two Pentium III hosts over Gigabit Ethernet. What
counts is the geometric mean of the times of messages of the sizes given. How sure that is: the best
settings and those on file are compared again with the constants of the model drawn from their intervals.

\b
Examples:
  wiretwin advise --stack mpi-mpich/tcp/gige --nic sk-net
  wiretwin advise --stack socket/tcp/gige --nic acenic --size 64KiB --size 1MiB
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
        stack: Annotated[str, typer.Option(help="A stack over gige, such as mpi-lam/tcp/gige.")],
        nic: Annotated[str, typer.Option(help="Both adapters.")] = "gnic-ii",
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
        from wiretwin.model.gigabit import of_stack
        from wiretwin.quantity import parse_size

        one = of_stack(stack, nic)
        most = one.most_bytes
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
