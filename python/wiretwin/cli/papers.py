"""``wiretwin papers``: rebuild a paper's tables and figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

if TYPE_CHECKING:
    from wiretwin.papers import Record
    from wiretwin.papers.fit import Fit
    from wiretwin.papers.programs import Order

__all__ = ["register"]

HELP = """Rebuild a paper's tables and figures in the simulated world: one record a value.

A value is calibration where the model was fitted to the published one, which is then printed beside it, and
a prediction otherwise. Without a paper, lists the papers and their experiments.

\b
Examples:
  wiretwin papers
  wiretwin papers lin1995 table3
  wiretwin papers lin1995 --format json > lin1995.json
  wiretwin papers lin1995 --out lin1995.html
  wiretwin papers lin1995 --fit
"""

COLUMNS = (
    Column("paper", "paper", people=False),
    Column("experiment", "experiment"),
    Column("case", "case"),
    Column("metric", "metric"),
    Column("predicted", "predicted"),
    Column("low", "low"),
    Column("high", "high"),
    Column("role", "role"),
    Column("published", "published"),
)


def _records_table(records: list[Record]) -> Table:
    rows = [[getattr(record, column.key) for column in COLUMNS] for record in records]
    return Table("Published and predicted", COLUMNS, rows)


def _orders_table(found: list[Order]) -> Table:
    rows: list[list[object]] = [
        [one.of, at, who, time] for one in found for at, (who, time) in enumerate(one.fastest_first, 1)
    ]
    columns = (
        Column("of", "program"),
        Column("at", "place"),
        Column("who", "over"),
        Column("time_s", "time [s]"),
    )
    return Table("Fastest first", columns, rows)


def _list_table() -> Table:
    from wiretwin.papers import PAPERS

    rows = [[name, experiment] for name, paper in PAPERS.items() for experiment in paper.EXPERIMENTS]
    return Table("Papers", (Column("paper", "paper"), Column("experiment", "experiment")), rows)


def _fit_table(fitted: Fit) -> Table:
    columns = (
        Column("what", "what"),
        Column("name", "name"),
        Column("key", "constant or figure"),
        Column("before", "on file / published"),
        Column("value", "fitted / predicted"),
        Column("low", "low"),
        Column("high", "high"),
        Column("error", "error [%]"),
    )
    rows: list[list[object]] = [
        ["constant", one.sheet, one.key, one.before, one.value, one.low, one.high, None]
        for one in fitted.constants
    ]
    rows += [
        [one.experiment, one.case, one.metric, one.published, one.predicted, None, None, 100 * one.error]
        for one in fitted.residuals
    ]
    title = f"Fit: spread of the residuals {100 * fitted.spread:.1f} %, {fitted.evaluations} evaluations"
    return Table(title, columns, rows)


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def papers(
        paper: Annotated[str | None, typer.Argument(help="A paper.", show_default="list them")] = None,
        experiments: Annotated[
            list[str] | None, typer.Argument(help="Its experiments.", show_default="all")
        ] = None,
        quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes.")] = False,
        refit: Annotated[bool, typer.Option("--fit", help="Fit the profiles again and print them.")] = False,
        write: Annotated[
            bool, typer.Option("--write", help="With --fit: write the fitted values into the data files.")
        ] = False,
        out: Annotated[
            Path | None, typer.Option("--out", "-o", help="A report page besides.", show_default="none")
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.cli.progress import Bar
        from wiretwin.errors import InputError
        from wiretwin.papers import PAPERS, run_paper
        from wiretwin.papers.programs import orders
        from wiretwin.papers.records import digest

        if paper is None:
            emit(_list_table(), form)
            return
        if write and not refit:
            raise InputError(key="--write", reason="is given without --fit", allowed="--fit --write")
        if refit:
            if paper not in PAPERS:
                raise InputError(key="PAPER", value=paper, allowed=", ".join(PAPERS))
            if experiments:
                raise InputError(
                    key="EXPERIMENT", value=experiments[0], allowed="none with --fit: one profile serves all"
                )
            fitted = PAPERS[paper].refit()
            if write:
                PAPERS[paper].write_fit(fitted)
            emit(_fit_table(fitted), form)
            return
        records: list[Record] = []
        runs: list[str] = []
        with Bar(f"papers {paper}") as bar:
            for done, (count, name, made, digests) in enumerate(
                run_paper(paper, experiments or None, quick=quick), 1
            ):
                records += made
                runs += digests
                bar.stage(done, count, name)
        emit(_records_table(records), form)
        if form is Format.table and (found := orders(records)):
            emit(_orders_table(found), form)
        print(f"digest {digest(records, runs)}", file=sys.stderr)
        if out is not None:
            from wiretwin.papers.report import render

            print(f"report: {render(paper, records, out)}", file=sys.stderr)
