"""Papers by name."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from wiretwin.errors import InputError
from wiretwin.papers import chen1996, lin1995, ong2000, vila1998
from wiretwin.papers.records import Record

__all__ = ["PAPERS", "run_paper"]

PAPERS: dict[str, ModuleType] = {
    "lin1995": lin1995,
    "chen1996": chen1996,
    "ong2000": ong2000,
    "vila1998": vila1998,
}
"""Modules with ``TITLE``, ``EXPERIMENTS``, ``experiment``, ``under`` and ``refit``; ``write_fit`` where one
fits, and ``EVIDENCE`` where values rest on trials."""


def run_paper(
    paper: str, experiments: list[str] | None = None, *, quick: bool = False
) -> Iterator[tuple[int, str, list[Record], list[str]]]:
    """Run experiments of a paper, all by default.

    Yields how many there are in all, and the name, the records and the digests of the runs of each.

    Raises
    ------
    InputError
        There is no such paper or experiment.
    """
    if paper not in PAPERS:
        raise InputError(key="PAPER", value=paper, allowed=", ".join(PAPERS))
    known = PAPERS[paper].EXPERIMENTS
    chosen = list(known) if experiments is None else experiments
    for name in chosen:
        if name not in known:
            raise InputError(key="EXPERIMENT", value=name, allowed=", ".join(known))
    for name in chosen:
        records, runs = PAPERS[paper].experiment(name, quick=quick)
        yield len(chosen), name, records, runs
