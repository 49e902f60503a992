"""Tables of published results that were opened after their prediction, and of what the papers claim."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

from wiretwin.cli.format import Column, Table

if TYPE_CHECKING:
    from wiretwin.papers.published import Opened, Valued

__all__ = ["claims_table", "opened_table", "score_table"]


def score_table(papers: Sequence[str]) -> Table:
    """Return how far the models of papers are from the opened results; a row for each and one for all."""
    from wiretwin.papers.claims import claims
    from wiretwin.papers.published import opened, score

    columns = [Column("paper", "paper"), Column("results", "results")]
    for which in ("blind", "now"):
        columns += [
            Column(f"{which}_median_percent", f"{which}: median error [%]", digits=3),
            Column(f"{which}_ninth_decile_percent", f"{which}: 9th decile [%]", digits=3),
            Column(f"{which}_worst_percent", f"{which}: worst [%]", digits=3),
            Column(f"{which}_inside", f"{which}: inside 90 %"),
            Column(f"{which}_width_percent", f"{which}: median width [%]", digits=3),
            Column(
                f"{which}_ninth_width_percent", f"{which}: 9th decile [%] of widths", digits=3, people=False
            ),
            Column(f"{which}_interval_score", f"{which}: interval score", digits=3),
        ]
    columns += [Column("claims", "claims"), Column("claims_that_hold", "claims that hold")]
    rows: list[list[Any]] = []
    for name, of in [*((paper, [paper]) for paper in papers), ("all", list(papers))]:
        results = [one for paper in of for one in opened(paper)]
        held = [one.holds for paper in of for one in claims(paper)]
        row: list[Any] = [name, sum(one.counted for one in results)]
        for which in ("blind", "now"):
            found = score(results, which)
            row += [100 * found.median, 100 * found.ninth_decile, 100 * found.worst, found.inside]
            row += [100 * found.width, 100 * found.ninth_width, found.interval_score]
        rows.append([*row, len(held), sum(held)])
    return Table("Opened results: how far the models are from them", columns, rows)


def opened_table(papers: Sequence[str], experiments: Set[str] | None = None) -> Table:
    """Return the opened results of papers: published, blind and now; of some experiments, or of all."""
    from wiretwin.papers.published import opened

    columns = [Column("paper", "paper", people=False), Column("experiment", "experiment")]
    columns += [Column("case", "case"), Column("metric", "metric"), Column("published", "published")]
    for which in ("blind", "now"):
        columns += [
            Column(which, which),
            Column(f"{which}_low", "low", people=False),
            Column(f"{which}_high", "high", people=False),
            Column(f"{which}_error_percent", "error [%]", digits=3),
            Column(f"{which}_inside", f"{which}: inside 90 %"),
        ]
    columns += [Column("hangs_on", "hangs on")]
    columns += [Column("counted", "counted", people=False), Column("remark", "remark")]
    rows = [
        [
            *(one.paper, one.experiment, one.case, one.metric, one.published),
            *_of(one, "blind", one.blind),
            *_of(one, "now", one.now),
            *(one.hangs_on or None, one.counted, one.remark or None),
        ]
        for paper in papers
        for one in opened(paper)
        if experiments is None or one.experiment in experiments
    ]
    return Table("Opened results: published, predicted blind, and what the model says now", columns, rows)


def _of(one: Opened, which: str, value: Valued) -> list[Any]:
    error = one.error(which)
    return [
        value.value,
        value.low,
        value.high,
        None if error is None else 100 * error,
        one.inside(which),
    ]


def claims_table(papers: Sequence[str]) -> Table:
    """Return what papers claim, whether the models agree now, and where they do not, why."""
    from wiretwin.papers.claims import claims

    columns = [Column("paper", "paper"), Column("claim", "claim"), Column("holds", "holds")]
    columns += [Column("reason", "why not")]
    rows = [[paper, one.says, one.holds, one.reason or None] for paper in papers for one in claims(paper)]
    return Table("Claims of the papers, held against the models", columns, rows)
