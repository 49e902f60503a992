"""Why curves have their anomalies, what crossed the wire, what to choose."""

from __future__ import annotations

from wiretwin.plot import wire as draw
from wiretwin.plot import words
from wiretwin.report.inputs import Inputs
from wiretwin.report.page import (
    Block,
    CodeBlock,
    Column,
    FigureBlock,
    Group,
    Missing,
    Section,
    Table,
    TableBlock,
)
from wiretwin.understand.accounting import Account
from wiretwin.understand.settings import script


def build(inputs: Inputs) -> list[Section | Missing]:
    """Build what the result allows: anomalies and the wire, and at the end advice."""
    found, advice = inputs.understanding, inputs.advice
    if found is None or advice is None:
        return []
    groups: list[Group] = []
    if found.findings:
        groups.append(Group([_findings(inputs)]))
    if found.accounts:
        groups.append(Group([_wire(found.accounts, inputs.layers)]))
    blocks: list[Block] = []
    if advice.wins:
        blocks.append(_wins(inputs))
    if advice.settings:
        blocks.append(
            CodeBlock(
                "settings",
                "Settings worth having",
                script(advice.settings),
                "What is certainly better by this measurement, as its reader reads it. Nothing was applied.",
            )
        )
    if blocks:
        groups.append(Group(blocks))
    if not groups:
        return []
    lead = (
        "Anomalies are named by the data, with what speaks for the name; a name is a suspicion until a "
        "counter-run without the supposed cause has confirmed it. Advice is given where intervals separate."
    )
    if advice.undecided and not advice.wins:
        lead += " Here intervals touch at every size: no layer is certainly the fastest."
    return [Section("why", "Why, and what to choose", "Why", lead, groups)]


def _findings(inputs: Inputs) -> TableBlock:
    assert inputs.understanding is not None
    from wiretwin.understand.detect import DETECTORS

    rows = []
    for one in inputs.understanding.findings:
        first, last = one.sizes[0], one.sizes[-1]
        where = (
            words.size_text(first)
            if first == last
            else f"{words.size_text(first)} to {words.size_text(last)}"
        )
        state = one.outcome or (
            "unconfirmed: wiretwin understand --confirm" if one.counter else "unconfirmed"
        )
        rows.append(
            [
                one.layer,
                DETECTORS[one.name].title,
                where,
                "; ".join(one.evidence),
                f"{one.confidence}: {state}" if one.outcome else state,
            ]
        )
    columns = [
        Column("Layer"),
        Column("Finding"),
        Column("Sizes"),
        Column("Evidence"),
        Column("Counter-run"),
    ]
    return TableBlock(
        "findings", "Anomalies and their causes", Table("What is odd, and why", columns, rows, stacked=True)
    )


def _wire(accounts: list[Account], layers: list[str]) -> FigureBlock:
    rows = [
        [
            one.layer,
            words.size_text(one.bytes),
            "yes" if one.crossed else "no",
            f"{one.factor:.3f}",
            f"{one.packets_per_message:.2f}",
            f"{one.envelope:.0f} B" if one.envelope >= 0.5 else "none",
            words.percent_text(one.resent_share) if one.resent_share else "none",
        ]
        for one in accounts
    ]
    columns = [
        Column("Layer"),
        *(
            Column(title, True)
            for title in (
                "Size",
                "Over the network",
                "Carried / payload",
                "Packets / message",
                "Own envelope",
                "Sent again",
            )
        ),
    ]
    missed = sorted({one.layer for one in accounts if not one.crossed})
    summary = "The interface carried at least the payload of every message: it was the network."
    if missed:
        summary = (
            f"Less than the payload crossed the interface for some messages of {words.list_text(missed)}."
        )
    again = [one for one in accounts if one.resent_share >= 0.02 and one.bytes >= 256]
    if again:
        worst = max(again, key=lambda one: one.resent_share)
        summary += f" {worst.layer} sent at least {words.percent_text(worst.resent_share)} of it again."
    return FigureBlock(
        "wire",
        "Bytes on the wire for each byte of payload",
        summary,
        draw.overhead(accounts, layers=layers),
        Table("What crossed the wire, by configuration and size", columns, rows),
        note="Headers, acknowledgements and the control messages between the ranks are in it.",
    )


def _wins(inputs: Inputs) -> TableBlock:
    assert inputs.advice is not None
    rows = [
        [
            words.size_text(one.from_bytes)
            if one.from_bytes == one.to_bytes
            else f"{words.size_text(one.from_bytes)} to {words.size_text(one.to_bytes)}",
            one.layer,
            f"{one.least_times:.2f} times",
        ]
        for one in inputs.advice.wins
    ]
    summary = "The next layer takes at least so many times as long, and their intervals do not touch."
    if inputs.advice.undecided:
        count = words.count_text(len(inputs.advice.undecided), "size")
        summary += f" At {count} none is certainly the fastest."
    columns = [Column("Sizes"), Column("Choose"), Column("Ahead of the next by", True)]
    return TableBlock("advice", "Which layer for which size", Table("Advice by size", columns, rows), summary)
