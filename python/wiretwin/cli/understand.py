"""``wiretwin understand``: why a curve has that anomaly, what crossed the wire, what to choose."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

if TYPE_CHECKING:
    from wiretwin.results import Result
    from wiretwin.understand.accounting import Account
    from wiretwin.understand.advice import Advice
    from wiretwin.understand.finding import Finding

__all__ = ["accounts_table", "advice_table", "confirm_findings", "findings_table", "named", "register"]

HELP = """Name what is odd in a result, with evidence: why does the curve have that anomaly?

\b
Found:  delayed-acknowledgement  Nagle's algorithm against delayed acknowledgements
        shared-core              two spinning ranks on one core
        protocol-switch          eager to rendezvous
        packet-boundary          one more fragment or segment
        retransmission           data sent again
        socket-buffer            socket buffers smaller than the message

A name is likely or possible until a counter-run that removes the cause (--confirm) has confirmed or refuted
it. Counter-runs measure: they need the host of the result.

\b
Examples:
  wiretwin understand results/measure-1
  wiretwin understand results/measure-1 --confirm --format json
  wiretwin understand results/measure-1 --wire
  wiretwin understand results/measure-1 --advice --export-settings settings.sh
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def understand(
        result: Annotated[Path, typer.Argument(help="A result folder.", show_default=False)],
        confirm: Annotated[
            bool, typer.Option("--confirm", help="Make the counter-runs, a few seconds each.")
        ] = False,
        wire: Annotated[
            bool, typer.Option("--wire", help="Print what crossed the wire, size by size.")
        ] = False,
        advice: Annotated[
            bool, typer.Option("--advice", help="Print which layer wins at which sizes, where one does.")
        ] = False,
        export_settings: Annotated[
            str | None,
            typer.Option(
                "--export-settings",
                help="Write settings worth having to a file, as their readers read them; - prints them.",
                show_default="none",
            ),
        ] = None,
        form: FormatOption = Format.table,
        salvage: Annotated[bool, typer.Option("--salvage", help="Leave out damaged launches.")] = False,
    ) -> None:
        from wiretwin.cli.fit import open_result
        from wiretwin.understand.api import understand as look

        opened = open_result(result, salvage=salvage)
        if confirm:
            confirm_findings(opened)
        found = look(opened)
        if export_settings is not None or advice:
            from wiretwin.understand.advice import advise
            from wiretwin.understand.settings import script

            advised = advise(opened, found)
            if advice:
                emit(advice_table(advised), form)
            if export_settings == "-":
                print(script(advised.settings), end="")
            elif export_settings is not None:
                from wiretwin.results import write_atomically

                write_atomically(Path(export_settings), script(advised.settings).encode())
                print(f"settings: {export_settings}", file=sys.stderr)
        elif wire:
            if not found.accounts:
                print("nothing was counted: within one host there is no wire", file=sys.stderr)
            emit(accounts_table(found.accounts), form)
        elif found.findings or form is not Format.table:
            emit(findings_table(found.findings), form)
        else:
            print("nothing odd was found")


def confirm_findings(result: Result) -> list[Finding]:
    """Make the counter-runs, saying on standard error which."""
    from wiretwin.understand.confirm import confirm

    def tell(finding: Finding, number: int, count: int) -> None:
        assert finding.counter is not None
        print(
            f"counter-run {number} of {count}: {finding.layer}: {finding.name}: {finding.counter.words}",
            file=sys.stderr,
        )

    return confirm(result, tell=tell)


def findings_table(findings: list[Finding]) -> Table:
    """Return one row a finding."""
    return Table(
        "what is odd, and why",
        (
            Column("layer", "layer"),
            Column("finding", "finding"),
            Column("confidence", "confidence"),
            Column("first_bytes", "from [B]"),
            Column("last_bytes", "to [B]"),
            Column("evidence", "evidence"),
            Column("outcome", "counter-run"),
            Column("loop", "loop", people=False),
        ),
        [
            (
                one.layer,
                one.name,
                one.confidence if one.outcome else f"{one.confidence}, unconfirmed",
                one.sizes[0],
                one.sizes[-1],
                "; ".join(one.evidence),
                one.outcome or ("not made yet" if one.counter else "none is known"),
                one.loop,
            )
            for one in findings
        ],
    )


def advice_table(advised: Advice) -> Table:
    """Return one row for neighbouring sizes with the same fastest layer; sizes without one are left out."""
    return Table(
        "which layer for which size",
        (
            Column("from_bytes", "from [B]"),
            Column("to_bytes", "to [B]"),
            Column("layer", "choose"),
            Column("least_times", "the next takes at least, times"),
        ),
        [(one.from_bytes, one.to_bytes, one.layer, one.least_times) for one in advised.wins],
    )


def accounts_table(accounts: list[Account]) -> Table:
    """Return one row a configuration and size: what crossed the wire for each message."""
    return Table(
        "what crossed the wire",
        (
            Column("layer", "layer"),
            Column("size_bytes", "size [B]"),
            Column("launches", "launches"),
            Column("messages", "messages"),
            Column("crossed", "the network?"),
            Column("carried_per_payload", "bytes carried / payload"),
            Column("packets_per_message", "packets / message"),
            Column("envelope_bytes", "own envelope [B]"),
            Column("resent_share", "sent again / payload"),
        ),
        [
            (
                one.layer,
                one.bytes,
                one.launches,
                one.messages,
                one.crossed,
                one.factor,
                one.packets_per_message,
                round(one.envelope, 1),
                one.resent_share,
            )
            for one in accounts
        ],
    )


def named(findings: list[Finding], layer: str) -> str:
    """Return what was found in a configuration, in a few words for a cell of a table."""
    words = {
        f"{one.name} ({one.confidence if one.outcome else 'unconfirmed'})": None
        for one in findings
        if one.layer == layer and one.confidence != "refuted"
    }
    return ", ".join(words) or "-"
