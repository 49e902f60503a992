"""``wiretwin direct``: the direct transport under an MPI."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

if TYPE_CHECKING:
    from wiretwin.stacks.services import Exchange, Found
    from wiretwin.testbed.plan import Link

__all__ = ["register"]

LARGEST = 7 * 1024
"""The longest message that goes by frames alone, bytes."""

HELP = """User-level messages for unmodified MPIs and C programs.

\b
Examples:
  wiretwin direct env --mpi openmpi
  wiretwin direct vipl
  wiretwin direct services --loads 0.3,0.7,1.0
  wiretwin direct incast --senders 8
"""

ENV_HELP = """Print what to set so that an MPI uses the direct transport.

The lines are for a shell to evaluate. The programs need not be rebuilt. A launcher of several hosts hands on
the variables by itself (MPICH) or is told to (Open MPI: `-x FI_PROVIDER_PATH`).

\b
Examples:
  eval "$(wiretwin direct env --mpi openmpi)"; mpirun -n 2 ./program
  eval "$(wiretwin direct env --mpi mpich)"; mpiexec -n 2 python program.py
  wiretwin direct env --mpi mpich --format json
"""


VIPL_HELP = """Print what to set so that a C program is built against VIPL.

The lines are for a shell to evaluate. VIPL is the interface of the Virtual Interface Architecture, and the
folder of its header, its library and the example vnettest.c; pkg-config finds it there.

\b
Examples:
  eval "$(wiretwin direct vipl)"; cc "$VIPL/vnettest.c" $(pkg-config --cflags --libs vipl) -o vnettest
  wiretwin direct vipl --format json
"""


SERVICES_HELP = """Compare the two services of the direct transport beside background load on one.

Messages go to and fro between two hosts of a wire whose switch serves DSCP 46 first, by the ordinary service
alone, by the protected one alone, and by either as the measured latency says (adaptive): live on a testbed
that is made for it, and in the simulated world, which has the same machine and the same wire.

\b
Examples:
  wiretwin direct services --world simulated
  wiretwin direct services --loads 0.7 --rate 10Mbit --messages 5000 --format json
"""
INCAST_HELP = """Send from many hosts to one at once, through a port that drops its tail, by two windows.

The window of the direct transport falls as the delay grows; a fixed one stays as it is at first.

\b
Examples:
  wiretwin direct incast --world simulated
  wiretwin direct incast --senders 8 --rate 100Mbit --queue 256KiB --messages 1000
"""


WayOption = Annotated[str, typer.Option(help="Of live frames: packet, past the kernel, or udp.")]
WorldOption = Annotated[str, typer.Option(help="live, simulated or both.")]
SeedOption = Annotated[int, typer.Option(help="Of the background load.")]


class _Format(Enum):
    shell = "shell"
    json = "json"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    direct = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(direct, name="direct", help=HELP)

    @direct.callback()
    def group() -> None:
        pass

    @direct.command(help=ENV_HELP)
    def env(
        mpi: Annotated[str, typer.Option(help="openmpi or mpich.", show_default=False)],
        form: Annotated[_Format, typer.Option("--format", help="shell or json.")] = _Format.shell,
    ) -> None:
        from wiretwin.direct import environment

        _show(environment(mpi), form)

    @direct.command(help=VIPL_HELP)
    def vipl(
        form: Annotated[_Format, typer.Option("--format", help="shell or json.")] = _Format.shell,
    ) -> None:
        from wiretwin.direct import vipl_environment

        _show(vipl_environment(), form)

    @direct.command(help=SERVICES_HELP)
    def services(
        loads: Annotated[str, typer.Option(help="Shares of the rate that are background load.")] = (
            "0.3,0.5,0.7,0.9,1.0"
        ),
        rate: Annotated[str, typer.Option(help="Of the wire.")] = "10Mbit",
        both: Annotated[bool, typer.Option("--both", help="Load on the way back, too.")] = False,
        sources: Annotated[int, typer.Option(help="Sources of the load on a way.")] = 10,
        burst: Annotated[
            str, typer.Option(help="How long a source of the load is on, on average.")
        ] = "100ms",
        size: Annotated[str, typer.Option(help="Of a message, at most 7KiB.")] = "64",
        messages: Annotated[int, typer.Option(help="How many, one at a time.")] = 4000,
        pause: Annotated[str, typer.Option(help="From an answer to the next message.")] = "2ms",
        t_high: Annotated[str, typer.Option(help="T_M: a round trip above it is high.")] = "1ms",
        t_low: Annotated[str, typer.Option(help="T_m: one below it is low.")] = "600us",
        interval: Annotated[str, typer.Option(help="From one measurement to the next.")] = "1ms",
        t_lost: Annotated[str, typer.Option(help="T_L: one that takes longer is lost.")] = "50ms",
        by: Annotated[
            str, typer.Option(help="ordinary, protected, adaptive.")
        ] = "ordinary,protected,adaptive",
        way: WayOption = "packet",
        world: WorldOption = "live,simulated",
        seed: SeedOption = 1,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.stacks.services import PROTECTED, SERVICES, WORLDS, Exchange
        from wiretwin.testbed.plan import parse_link

        usual = Exchange(
            "echo",
            _size(size),
            messages,
            pause_ns=_time(pause, "--pause"),
            t_high_ns=_time(t_high, "--t-high"),
            t_low_ns=_time(t_low, "--t-low"),
            interval_ns=_time(interval, "--interval"),
            t_lost_ns=_time(t_lost, "--t-lost"),
        )
        rows = []
        for load in _words(loads):
            where = "" if both else "h2:"
            background = {"background": f"{where}0={load}", "sources": str(sources), "burst": burst}
            link = parse_link(
                "wire", rate=rate, seed=seed, outputs={"strict_priority": str(PROTECTED), **background}
            )
            for one in _chosen(world, WORLDS, "--world"):
                for service in _chosen(by, SERVICES, "--by"):
                    exchange = replace(usual, service=service)
                    found = _run(one, exchange, link, 2, way)
                    counted = found.counted
                    times_us = (found.mean_us, found.p99_us)
                    carried = (counted["bytes_ordinary"], counted["bytes_protected"])
                    again = (counted["resent"], found.lost)
                    rows.append(
                        (float(load), one, service, *times_us, found.protected_share, *carried, *again)
                    )
        columns = (
            Column("load", "load"),
            Column("world", "world"),
            Column("service", "service"),
            Column("mean_us", "mean [us]"),
            Column("p99_us", "p99 [us]"),
            Column("protected_share", "protected", digits=2),
            Column("ordinary_bytes", "ordinary [B]"),
            Column("protected_bytes", "protected [B]"),
            Column("resent_frames", "again"),
            Column("lost_frames", "lost"),
        )
        emit(Table("messages there and back beside background load", columns, rows), form)

    @direct.command(help=INCAST_HELP)
    def incast(
        senders: Annotated[int, typer.Option(help="Hosts that send, 1 to 63.")] = 8,
        rate: Annotated[str, typer.Option(help="Of the wire.")] = "100Mbit",
        queue: Annotated[str, typer.Option(help="Room at each output of the switch.")] = "256KiB",
        size: Annotated[str, typer.Option(help="Of a message, at most 7KiB.")] = "1400",
        messages: Annotated[int, typer.Option(help="How many from each host.")] = 3000,
        way: WayOption = "packet",
        world: WorldOption = "live,simulated",
        seed: SeedOption = 1,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.errors import InputError
        from wiretwin.stacks.services import WORLDS, Exchange
        from wiretwin.testbed.plan import MOST_HOSTS, parse_link

        if not 1 <= senders < MOST_HOSTS:
            raise InputError(key="--senders", value=senders, allowed=f"1 to {MOST_HOSTS - 1}")
        link = parse_link("wire", rate=rate, seed=seed, outputs={"queue": queue})
        rows = []
        for one in _chosen(world, WORLDS, "--world"):
            for window in ("fixed", "by delay"):
                exchange = Exchange("incast", _size(size), messages, fixed_window=window == "fixed")
                found = _run(one, exchange, link, senders + 1, way)
                counted = found.counted
                taken_s = found.took_ns[0] / 1e9
                rows.append((one, window, counted["sent"], counted["resent"], found.lost, taken_s))
        columns = (
            Column("world", "world"),
            Column("window", "window"),
            Column("sent_frames", "frames"),
            Column("resent_frames", "again"),
            Column("lost_frames", "lost"),
            Column("taken_s", "taken [s]"),
        )
        emit(Table(f"{senders} hosts send to one", columns, rows), form)


def _run(world: str, exchange: Exchange, link: Link, hosts: int, way: str) -> Found:
    from wiretwin.errors import InterruptedRun
    from wiretwin.stacks.services import live, simulated

    if world == "simulated":
        return simulated(exchange, link, hosts)
    try:
        return live(exchange, link, hosts, way=_chosen(way, ("packet", "udp"), "--way")[0])
    except KeyboardInterrupt:
        raise InterruptedRun("interrupted") from None


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _chosen(text: str, known: Sequence[str], key: str) -> list[str]:
    from wiretwin.errors import InputError

    words = _words(text)
    if not words or not set(words) <= set(known):
        raise InputError(key=key, value=text, allowed=", ".join(known))
    return words


def _time(text: str, key: str) -> int:
    from wiretwin.quantity import parse_time

    return round(1e9 * parse_time(text, key, most_s=60.0))


def _size(text: str) -> int:
    from wiretwin.errors import InputError
    from wiretwin.quantity import parse_size

    size = parse_size(text, "--size")
    if size > LARGEST:
        raise InputError(key="--size", value=text, allowed="1 to 7KiB: longer ones go another way")
    return size


def _show(variables: dict[str, str], form: _Format) -> None:
    if form is _Format.json:
        print(json.dumps(variables, indent=1))
        return
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
