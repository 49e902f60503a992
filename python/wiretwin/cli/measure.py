"""``wiretwin measure``: live curves of the messaging layers of this host."""

from __future__ import annotations

import importlib
import math
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.folders import ForceOption, replaced
from wiretwin.cli.format import Column, CurveFormatOption, Format, Table, emit
from wiretwin.cli.where import LINKS_HELP, Where, with_place

if TYPE_CHECKING:
    from wiretwin.results import Result

__all__ = ["curve_table", "register", "summary_table", "traffic_table", "write_report"]


AFTER, REPORT = 0.3, 2.0
"""Tables after the last launch, and a report, take about such a share of the time until the first one."""
MOST_OF_REPORT = 0.2
"""Time for a report is kept where that is at most this share of the budget; else it gets what is left."""
LOADED = {
    "wiretwin.measure.api": 0.42,
    "polars": 0.78,
    "pyarrow.parquet": 0.98,
    "wiretwin.fit.curve": 0.99,
    "wiretwin.understand.api": 1.0,
}
"""What is loaded before a measurement, with the share of the time of starting that has gone by then."""


class PurposeChoice(StrEnum):
    """What the samples are for."""

    fit = "fit"
    curves = "curves"
    collectives = "collectives"
    nonblocking = "nonblocking"
    one_sided = "one-sided"
    pairs = "pairs"
    load = "load"


HELP = f"""Measure messaging layers; every sample is kept in a result folder.

Layers are interleaved, each launch is a set of fresh processes, and a layer is done when the interval
between its launches is narrow enough or the budget is spent. Ctrl-C keeps what was measured. With every
layer, the default, it ends in one report over all of them.

\b
Layers:   socket/tcp, socket/udp, socket/unix, shm, pcaal/udp, mpi-mvich/shm,
          mpi-mvich/udp, mpi-mvich/packet, mpi4py/mpich
Variants: +spin, +nagle (tcp), +buf64k (sockets), +yield (shm), as in socket/tcp+spin+buf64k
Sizes:    names (lin, lin-fine, netpipe, netpipe-base, powers), sizes (4, 64KiB),
          doublings (1KiB..1MiB) and steps (4..8KiB+96), joined by commas

Any number of --ranks can be measured together: the time of the slowest rank, and the mean over the ranks,
which is what the OSU benchmarks print (--format osu).

\b
--for collectives  the collective calls of an MPI
      nonblocking  those that do not wait, and what of them is hidden behind computation
      one-sided    put, get, accumulate and others of an MPI
      pairs        streams of several pairs at once, one way and both ways: rates of all together
      load         latency of messages that are sent when they are due, at shares of what a layer carries

With --hosts the two ranks live on hosts of a testbed made for the occasion; see `wiretwin testbed`.
With --pairs all each pair of the hosts is measured by itself, as many at the same time as do not share a
host: the classes that pairs fall into are found, and what is slow is named. --resume goes on with a folder.
With --between they live on two machines, reached over ssh, that have the same wiretwin; with --launcher srun
on the nodes of this job of Slurm.

{LINKS_HELP}
\b
Examples:
  wiretwin measure
  wiretwin measure --layers socket/tcp,socket/tcp+spin,shm --budget 30s -o result
  wiretwin measure --layers mpi4py/mpich --sizes 1,4,1KiB..1MiB --for curves --format osu
  wiretwin measure --between node7 node8 --layers socket/tcp,mpi/openmpi
  wiretwin measure --for collectives --ranks 4 --layers mpi/mpich,mpi/openmpi
  wiretwin measure --for nonblocking --loops iallreduce_busy --sizes 1KiB..1MiB
  wiretwin measure --for load --layers socket/tcp,shm --ranks 2
  wiretwin measure --hosts 2 --link wire --rate 100Mbit --layers socket/tcp,socket/udp
  wiretwin measure --launcher srun --pairs all --layers mpi/openmpi -o cluster
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    @with_place
    def measure(
        where: Where,
        layers: Annotated[
            str,
            typer.Option(help="Configurations to measure, joined by commas; all: every layer that can run."),
        ] = "all",
        budget: Annotated[
            str,
            typer.Option(
                help="Wall time for everything, with its unit; none: no limit, each layer is launched "
                "--launches times."
            ),
        ] = "60s",
        out: Annotated[
            Path | None,
            typer.Option(
                "--out", "-o", help="The result folder, new or empty.", show_default="results/measure-…"
            ),
        ] = None,
        force: ForceOption = False,
        sizes: Annotated[
            str | None,
            typer.Option(
                help="Message sizes in bytes; of a collective call the block of one rank.",
                show_default="netpipe-base; 4 B to 1 MiB, four times each",
            ),
        ] = None,
        purpose: Annotated[
            PurposeChoice,
            typer.Option(
                "--for",
                help="fit: what a twin needs; curves: round trips only, more of them; the others: what any "
                "number of ranks do together.",
            ),
        ] = PurposeChoice.fit,
        ranks: Annotated[
            int | None,
            typer.Option(
                help="Ranks that do something together, 2 to 1024.",
                show_default="one for each core or host",
            ),
        ] = None,
        loops: Annotated[
            str | None,
            typer.Option(
                help="What they do, joined by commas: barrier, bcast, allreduce, alltoallv, iallreduce_busy.",
                show_default="most of the purpose",
            ),
        ] = None,
        pairs: Annotated[
            str | None,
            typer.Option(
                help="Each pair of the hosts by itself: all, or sample:N.", show_default="the first two hosts"
            ),
        ] = None,
        resume: Annotated[
            bool, typer.Option("--resume", help="With --pairs, go on with what the folder of --out holds.")
        ] = False,
        precision: Annotated[
            str,
            typer.Option(
                help="A layer is done when its 95 % intervals are at most this much to either side."
            ),
        ] = "5%",
        launches: Annotated[
            int,
            typer.Option(
                help="Launches of each layer before it may be done, 3 to 1000; with --pairs of each pair, "
                "1 to 1000."
            ),
        ] = 7,
        seed: Annotated[int, typer.Option(help="Of the order of launches.")] = 1,
        pin: Annotated[
            str, typer.Option(help="CPUs of the ranks: auto, none, or numbers such as 0,1.")
        ] = "auto",
        sizes_table: Annotated[
            bool, typer.Option("--by-size", help="Print the curve, size by size, in place of the summary.")
        ] = False,
        traffic: Annotated[
            bool, typer.Option("--traffic", help="Print what crossed the network, size by size (--hosts).")
        ] = False,
        confirm: Annotated[
            bool,
            typer.Option(
                "--confirm",
                help="Confirm what is found by counter-runs without its cause, a few seconds each.",
            ),
        ] = False,
        report: Annotated[
            bool | None,
            typer.Option(
                "--report/--no-report",
                help="Write report.html into the result folder.",
                show_default="with every layer",
            ),
        ] = None,
        form: CurveFormatOption = Format.table,
    ) -> None:
        from wiretwin.cli.progress import Bar
        from wiretwin.errors import InputError, InterruptedRun
        from wiretwin.measure import api
        from wiretwin.measure.budget import allowance
        from wiretwin.measure.orchestrate import Event
        from wiretwin.process import begun

        if traffic and where.here:
            raise InputError(key="--traffic", reason="needs a network", allowed="with --hosts or --testbed")
        if traffic and form is Format.osu:
            raise InputError(key="--format", value="osu", reason="suits curves", allowed="without --traffic")
        if pairs is not None and where.here:
            raise InputError(
                key="--pairs",
                value=pairs,
                reason="needs hosts",
                allowed="with --hosts, --testbed or --launcher srun",
            )
        with (
            replaced(out, force=force),
            where.place(round_trips=True) as place,
            Bar("measuring") as bar,
        ):

            def tell(event: Event) -> None:
                bar.show(event.elapsed_s, event.remaining_s, f"{event.name}: {event.words}")

            started = begun()
            with_report = layers == "all" and pairs is None if report is None else report
            loading_s = _load(started, budget, with_report)
            report_s = REPORT * loading_s if with_report else 0.0
            planned_s = report_s if report_s <= MOST_OF_REPORT * _seconds(budget) else 0.0
            result = api.measure(
                None if pairs is not None and layers == "all" else layers,
                budget=None if budget == "none" else budget,
                begun=started,
                after_s=AFTER * loading_s + planned_s,
                out=out,
                sizes=sizes,
                purpose=purpose.value,
                precision=precision,
                launches=launches,
                seed=seed,
                pin=pin,
                ranks=ranks,
                loops=loops,
                progress=tell,
                place=place,
                pairs=pairs,
                resume=resume,
            )
        interrupted = result.manifest.state == "interrupted"
        if confirm and not interrupted:
            from wiretwin.cli.understand import confirm_findings

            confirm_findings(result)
        by_size = sizes_table or form is Format.osu
        if pairs is not None:
            from wiretwin.cli.pairs import class_table, pair_rows, say_slow

            emit(pair_rows(result) if by_size else class_table(result), form)
            say_slow(result)
        elif traffic:
            emit(traffic_table(result), form)
        elif result.samples().height and result.manifest.options.get("loops"):
            from wiretwin.cli import together

            osu = form is Format.osu
            emit(together.by_size(result, osu=osu) if by_size else together.summary(result), form)
            if (words := together.crowded(result)) is not None:
                print(words, file=sys.stderr)
        elif result.samples().height:
            emit(curve_table(result) if by_size else summary_table(result), form)
        _epilogue(result)
        if with_report and result.samples().height:
            ends = started + allowance(_seconds(budget))
            write_report(result, within_s=ends - time.monotonic(), takes_s=report_s)
        if interrupted:
            kept = sum(launch.rows for launch in result.manifest.launches)
            raise InterruptedRun(f"interrupted; {kept} samples are kept in {result.path}")


def _seconds(budget: str) -> float:
    from wiretwin.quantity import parse_time

    return math.inf if budget == "none" else parse_time(budget, "--budget", least_s=1.0)


def write_report(result: Result, *, within_s: float, takes_s: float) -> None:
    """Write the report, unless it is likely to end after the time that the budget allows."""
    if takes_s > within_s:
        print(
            "report: not written: the budget is spent, and a host as busy as this one is now would take "
            f"{takes_s:.0f} s for it; `wiretwin report {result.path}` writes it",
            file=sys.stderr,
        )
        return
    from wiretwin.report import render

    print(f"report: {render(result=result, out=result.path / 'report.html')}", file=sys.stderr)


def _load(started: float, budget: str, with_report: bool) -> float:
    """Load what will be needed, so that what it takes is known before time is planned.

    Returns
    -------
    float
        How long it took since the start of the process, seconds.

    Raises
    ------
    MeasureError
        Loading alone takes the budget, on a host as busy as this one is now.
    """
    from wiretwin.errors import MeasureError
    from wiretwin.measure.budget import allowance

    asked_s = _seconds(budget)
    for module, share in LOADED.items():
        importlib.import_module(module)
        whole_s = (time.monotonic() - started) / share
        if whole_s * (1 + AFTER) > allowance(asked_s):
            raise MeasureError(
                f"nothing was measured: of the {budget} asked for, a host as busy as this one is now takes "
                f"{whole_s * (1 + AFTER):.0f} s to load the libraries and to print; give it a larger --budget"
            )
    if with_report:
        importlib.import_module("wiretwin.report.writer")
    return time.monotonic() - started


def summary_table(result: Result) -> Table:
    """Return one row per configuration: t_0, r_max, n_half, why it was measured no longer, what is odd."""
    import polars as pl

    from wiretwin.cli.understand import named
    from wiretwin.fit.curve import curve_figures
    from wiretwin.fit.onestate import in_one_state
    from wiretwin.fit.ranking import sizes_within
    from wiretwin.fit.settled import settled
    from wiretwin.fit.stats import by_launch, summarise
    from wiretwin.understand.api import understand

    odd = understand(result).findings
    known = in_one_state(result)
    summary = summarise(known.samples).filter(pl.col("loop") == "echo")
    near = {name: (sizes, within) for name, sizes, within in sizes_within(known.samples).iter_rows()}
    rows: list[tuple[object, ...]] = []
    lacking = {name: " ".join(map(str, sizes)) for name, sizes in result.manifest.not_measured.items()}
    for layer in result.manifest.layers:
        part = summary.filter(pl.col("layer") == layer.name)
        launches = part["launch"].n_unique()
        stopped = result.manifest.stopped.get(layer.name)
        if launches < 2:
            rows.append(
                (
                    layer.name,
                    launches,
                    int(part["samples"].sum()),
                    *[None] * 8,
                    known.states.get(layer.name),
                    stopped,
                    named(odd, layer.name),
                    lacking.get(layer.name),
                    *near.get(layer.name, (0, 0)),
                )
            )
            continue
        found = curve_figures(by_launch(part))
        rate = 1000.0  # MB/s in one byte per nanosecond
        rows.append(
            (
                layer.name,
                launches,
                found.samples,
                found.t_0_ns.value / 1000,
                found.t_0_ns.low / 1000,
                found.t_0_ns.high / 1000,
                settled(found.t_0_ns.low, found.t_0_ns.high),
                found.r_max.value * rate,
                found.r_max.low * rate,
                found.r_max.high * rate,
                found.n_half_bytes.value,
                known.states.get(layer.name),
                stopped,
                named(odd, layer.name),
                lacking.get(layer.name),
                *near.get(layer.name, (0, 0)),
            )
        )
    return Table(
        "one-way latency of the smallest message, peak throughput, size at half of it",
        (
            Column("layer", "layer"),
            Column("launches", "launches"),
            Column("samples", "samples", people=False),
            Column("t_0_us", "t_0 [us]", ends=("t_0_low_us", "t_0_high_us")),
            Column("t_0_low_us", "low"),
            Column("t_0_high_us", "high"),
            Column("t_0_settled", "settled", people=False),
            Column("r_max_MB_s", "r_max [MB/s]", ends=("r_max_low_MB_s", "r_max_high_MB_s")),
            Column("r_max_low_MB_s", "low", people=False),
            Column("r_max_high_MB_s", "high", people=False),
            Column("n_half_bytes", "n_half [B]"),
            Column("state", "state"),
            Column("stopped", "stopped"),
            Column("findings", "found"),
            Column("not_measured_bytes", "not measured [B]", people=False),
            Column("sizes", "sizes", people=False),
            Column("sizes_within_15_percent", "within 15 %", people=False),
        ),
        rows,
    )


def curve_table(result: Result) -> Table:
    """Return one row per configuration and size: the one-way latency with its interval, throughput."""
    from wiretwin.fit.onestate import in_one_state
    from wiretwin.fit.ranking import size_table
    from wiretwin.fit.settled import settled

    rows = [
        (
            row["layer"],
            row["bytes"],
            row["launches"],
            row["samples"],
            row["value_us"],
            row["low_us"],
            row["high_us"],
            settled(row["low_us"], row["high_us"]),
            row["bytes"] / row["value_us"],
        )
        for row in size_table(in_one_state(result).samples).iter_rows(named=True)
    ]
    return Table(
        "one-way latency by size",
        (
            Column("layer", "layer"),
            Column("size_bytes", "size [B]"),
            Column("launches", "launches"),
            Column("samples", "samples"),
            Column("half_round_trip_us", "Latency [us]", ends=("low_us", "high_us")),
            Column("low_us", "low"),
            Column("high_us", "high"),
            Column("settled", "settled", people=False),
            Column("throughput_MB_s", "throughput [MB/s]"),
        ),
        rows,
        osu=("layer", "size_bytes", "half_round_trip_us"),
    )


def traffic_table(result: Result) -> Table:
    """Return one row per configuration and size of echoes: what crossed the interface for each message.

    A message is one way, so an echo has two. The control messages and the acknowledgements are in it.
    """
    import polars as pl

    frame = result.traffic().filter(pl.col("loop") == "echo")
    totals = frame.group_by("layer", "bytes", maintain_order=True).agg(
        pl.col("launch").n_unique().alias("launches"),
        (pl.col("payload_out") + pl.col("payload_in")).sum().alias("payload"),
        (pl.col("bytes_out") + pl.col("bytes_in")).sum().alias("carried"),
        (pl.col("packets_out") + pl.col("packets_in")).sum().alias("packets"),
    )
    rows = [
        (
            row["layer"],
            row["bytes"],
            row["launches"],
            row["carried"] / row["payload"],
            row["packets"] / (row["payload"] / row["bytes"]),
        )
        for row in totals.sort("layer", "bytes").iter_rows(named=True)
        if row["payload"]
    ]
    return Table(
        "what crossed the network for each message",
        (
            Column("layer", "layer"),
            Column("size_bytes", "size [B]"),
            Column("launches", "launches"),
            Column("carried_per_payload", "bytes carried / payload"),
            Column("packets_per_message", "packets / message"),
        ),
        rows,
    )


def _epilogue(result: Result) -> None:
    """Say on standard error where the result is and why each layer was measured no longer."""
    for name, words in result.manifest.stopped_because.items():
        print(f"{name}: {result.manifest.stopped[name]}: {words}", file=sys.stderr)
    for name, sizes in result.manifest.not_measured.items():
        which = f"{len(sizes)} sizes, {sizes[0]} to {sizes[-1]} B" if len(sizes) > 1 else f"{sizes[0]} B"
        print(f"{name}: not measured: {which}", file=sys.stderr)
    if "pairs" in result.manifest.options:
        print(f"result: {result.path}", file=sys.stderr)
        return
    from wiretwin.understand.api import understand

    for finding in understand(result).findings:
        if finding.confidence != "refuted":
            state = finding.outcome or "unconfirmed"
            print(f"{finding.layer}: {finding.name}: {finding.evidence[0]} ({state})", file=sys.stderr)
    from wiretwin.fit.onestate import in_one_state
    from wiretwin.fit.ranking import sizes_within

    known = in_one_state(result)
    if len(near := sizes_within(known.samples)):
        all_, within = near["sizes"].sum(), near["within"].sum()
        print(f"intervals: at most ± 15 % at {within} of {all_} sizes of all layers", file=sys.stderr)
    for name, count in known.left_out.items():
        if count:
            print(
                f"{name}: figures are of the launches in state {known.states[name]} of the host; {count} in "
                "another, or in more than one, are kept and left out of them",
                file=sys.stderr,
            )
    for name, reason in result.manifest.options.get("skipped", {}).items():
        print(f"{name}: left out: {reason}", file=sys.stderr)
    print(f"result: {result.path}", file=sys.stderr)
