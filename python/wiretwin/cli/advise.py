"""``wiretwin advise``: settings of a stack, placements of ranks, algorithms of collectives, by simulation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit
from wiretwin.cli.numbers import whole
from wiretwin.cli.rules import Library, trial
from wiretwin.cli.rules import export as export_rules
from wiretwin.cli.where import Where, with_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wiretwin.model.advise import Advice
    from wiretwin.predict.placement import Placement

__all__ = ["register"]

HELP = """Find the best settings of a stack, hosts for ranks, or algorithms of collectives, by simulation.

With a PROGRAM it finds which rank to place on which host: the program is recorded once, and its messages are
replayed on the twin's hosts and the network with other placements, beginning with the order of the network.
--hostfile and --rankfile write the best one for launchers of MPI. The order that files have is kept where
nothing is faster.

Searched are those that the stack has on the network: over Gigabit Ethernet of 1999 MTU, socket buffers,
the length from which messages go by rendezvous and the longest message of a descriptor; on the other
networks that have hosts of their own socket buffers and TCP_NODELAY. What counts is the geometric mean of
the times of messages of the sizes given. How sure that is: the best settings and those on file are
compared again with the constants of the model drawn from their intervals.

--export writes the algorithms of collectives that are predicted to be fastest for so many ranks, as a file of
rules that Open MPI or MPICH reads, and prints what to set. The arithmetic of reductions is not simulated.
Open MPI's file is for programs whose reductions are by commutative operations; MPICH's is for the version of
MPICH that the layer names. --try then measures the collectives with the file and without, in turn, on this
host or where --hosts, --testbed, --between or --launcher say, and says whether they are faster with it. What
does not end in time is left out and named.

A topology between hosts of a twin has no settings to search: what was measured has one way to send. Which
layer wins at which sizes, and which settings are worth having there, `wiretwin understand` says of a result.

\b
Examples:
  wiretwin advise prog.py --ranks 8 --twin twin.toml --network network.toml --hostfile hosts.txt
  wiretwin advise --export openmpi -o coll.rules --ranks 8 --twin twin.toml --network network.toml
  wiretwin advise --export mpich -o coll.json --ranks 8 --twin twin.toml --network star --try --hosts 8
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
    @with_place
    def advise(
        where: Where,
        program: Annotated[
            Path | None,
            typer.Argument(help="An mpi4py script whose ranks are to be placed.", show_default=False),
        ] = None,
        args: Annotated[
            list[str] | None, typer.Argument(help="Its arguments, after --.", show_default=False)
        ] = None,
        stack: Annotated[
            str | None, typer.Option(help="A stack, such as mpi-lam/tcp/gige.", show_default=False)
        ] = None,
        network: Annotated[
            str | None,
            typer.Option(
                help="Of a stack one that has hosts of its own: ethernet10, fddi, atm, asx100, an2, gige, "
                "and keys; of a program a topology, or a file such as `wiretwin fit --network` makes.",
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
        ranks: Annotated[int, typer.Option(help="Of a program or --export, how many.")] = 2,
        ranks_per_host: Annotated[int, typer.Option(help="Of a program or --export, at most on a host.")] = 1,
        twin: Annotated[
            Path | None, typer.Option(help="Of a program or --export, the twin of hosts.", show_default=False)
        ] = None,
        layer: Annotated[
            str | None,
            typer.Option(
                help="Of a program or --export, its layer.",
                show_default="mpi4py/mpich; with --export mpi/openmpi or mpi/mpich",
            ),
        ] = None,
        tries: Annotated[int, typer.Option(help="Of a program, placements that are tried at most.")] = 500,
        hostfile: Annotated[
            Path | None, typer.Option(help="Write the hosts in the order of ranks.", show_default="no file")
        ] = None,
        rankfile: Annotated[
            Path | None, typer.Option(help="Write a rankfile of Open MPI.", show_default="no file")
        ] = None,
        export: Annotated[
            Library | None,
            typer.Option(help="Choose algorithms of collectives for this library.", show_default=False),
        ] = None,
        out: Annotated[
            Path | None, typer.Option("--out", "-o", help="Of --export, the file.", show_default=False)
        ] = None,
        tried: Annotated[
            bool, typer.Option("--try", help="Of --export, measure with the file and without.")
        ] = False,
        launches: Annotated[
            int,
            typer.Option(
                parser=whole("--launches", 3, 1000),
                metavar="<3 to 1000>",
                help="Of --try, so many with the file and so many without.",
            ),
        ] = 7,
        budget: Annotated[str, typer.Option(help="Of --try, the time of all calls together.")] = "60s",
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.errors import InputError

        if not tried:
            where.refuse("with --export and --try")
        elif export is None:
            raise InputError(key="--try", reason="measures with a file", allowed="with --export and --out")
        if (export is None) != (out is None):
            missing = "--export" if export is None else "--out"
            raise InputError(
                key=missing, reason="is needed", allowed="--export openmpi or mpich, with --out FILE"
            )
        if export is not None and out is not None:
            unused = {"PROGRAM": program, "--stack": stack, "--hostfile": hostfile, "--rankfile": rankfile}
            for option, given in unused.items():
                if given is not None:
                    raise InputError(key=option, value=str(given), allowed="without --export")
            if twin is None:
                raise InputError(key="--twin", reason="is needed", allowed="with --export, --twin")
            export_rules(
                export,
                trial(where, launches, budget) if tried else None,
                twin=twin,
                network=network,
                ranks=ranks,
                ranks_per_host=ranks_per_host,
                layer=layer,
                sizes=size,
                out=out,
                form=form,
            )
            return
        if (program is None) == (stack is None):
            raise InputError(
                key="--stack", reason="is needed", allowed="a PROGRAM, or --stack STACK, not both"
            )
        if program is not None:
            if twin is None or network is None:
                missing = "--twin" if twin is None else "--network"
                raise InputError(
                    key=missing, reason="is needed", allowed="with a PROGRAM, --twin and --network"
                )
            found = _placed(program, args or (), twin, network, ranks, ranks_per_host, layer, tries)
            emit(_placement_table(found), form)
            _write_placement(found, hostfile, rankfile)
            return
        assert stack is not None, "checked above"
        for option, given in {"--twin": twin, "--hostfile": hostfile, "--rankfile": rankfile}.items():
            if given is not None:
                raise InputError(key=option, value=str(given), allowed="with a PROGRAM")
        _settings(stack, network, size, draws, seed, form)


def _settings(
    stack: str, network: str | None, size: list[str] | None, draws: int, seed: int, form: Format
) -> None:
    """Search the settings of a stack, and print them."""
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


def _placed(
    program: Path,
    args: Sequence[str],
    twin: Path,
    network: str,
    ranks: int,
    ranks_per_host: int,
    layer: str | None,
    tries: int,
) -> Placement:
    from wiretwin.cli.progress import Bar
    from wiretwin.predict.placement import place

    with Bar(f"advise {program.name}") as bar:
        bar.stage(0, 1, "recording, and trying placements")
        return place(
            program,
            args,
            twin=twin,
            network=network,
            ranks=ranks,
            ranks_per_host=ranks_per_host,
            layer=layer,
            most=tries,
        )


def _placement_table(found: Placement) -> Table:
    columns = (Column("rank", "rank"), Column("host", "host"))
    return Table("where to place ranks", columns, list(enumerate(found.hosts)))


def _write_placement(found: Placement, hosts: Path | None, ranks: Path | None) -> None:
    """Say what a placement gains, and write the files that were asked for."""
    from wiretwin.predict.placement import hostfile, rankfile
    from wiretwin.results import write_atomically

    for path, write in ((hosts, hostfile), (ranks, rankfile)):
        if path is not None:
            write_atomically(path, write(found).encode())
            print(f"written: {path}", file=sys.stderr)
    if found.after_s == found.before_s:
        words = f"none of {found.tried} placements tried is faster than the order of the network"
        print(f"{words}: {1e3 * found.before_s:.4g} ms", file=sys.stderr)
        return
    print(
        f"predicted: {1e3 * found.after_s:.4g} ms, and {1e3 * found.before_s:.4g} ms in the order of the "
        f"network; {found.tried} placements tried",
        file=sys.stderr,
    )
