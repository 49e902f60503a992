"""Chen, Brandt and Armstrong 1996: a network of switches that do not lose, and what shares it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from wiretwin.errors import InputError
from wiretwin.papers.chen1996.choices import under
from wiretwin.papers.chen1996.cluster import md, pvm
from wiretwin.papers.chen1996.mixed import mixed
from wiretwin.papers.chen1996.pim import pim
from wiretwin.papers.chen1996.sessions import echo_under_load, parking_lot, six_sessions
from wiretwin.papers.records import Record

__all__ = ["EXPERIMENTS", "PAPER", "TITLE", "experiment", "refit", "under"]

PAPER = "chen1996"
TITLE = "Chen, Brandt and Armstrong 1996: ATM-based cluster computing for multi-problem domains"

EXPERIMENTS: dict[str, Callable[[bool], tuple[list[Record], list[str]]]] = {
    "pim": pim,
    "echo-under-load": echo_under_load,
    "parking-lot": parking_lot,
    "six-sessions": six_sessions,
    "pvm": pvm,
    "md": md,
    "mixed": mixed,
}
"""What there is, by name: makes the records, and the digests of the runs."""


def experiment(name: str, *, quick: bool = False) -> tuple[list[Record], list[str]]:
    """Run one experiment."""
    return EXPERIMENTS[name](quick)


def refit() -> NoReturn:
    """Reject: every constant is the paper's."""
    raise InputError(
        key="--fit",
        value=PAPER,
        reason="has no constant that is free: all of its model are inputs or choices",
        allowed="a paper with fitted constants, such as lin1995",
    )
