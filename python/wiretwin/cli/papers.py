"""``wiretwin papers``: rebuild a paper's tables and figures."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

if TYPE_CHECKING:
    from wiretwin.papers import Record
    from wiretwin.papers.fit import Fit
    from wiretwin.papers.lin1995_sensitivity import Effect
    from wiretwin.papers.programs import Order
    from wiretwin.papers.records import Tried

__all__ = ["register"]

HELP = """Rebuild a paper's tables and figures in the simulated world: one record a value.

A value is calibration where the model was fitted to the published one, which is then printed beside it, and
a prediction otherwise. Without a paper, prints how far the models are from the results that were opened after
their prediction: as predicted blind, and now. --opened and --claims print each of these results and claims;
nothing is simulated for either.

\b
Examples:
  wiretwin papers
  wiretwin papers --opened --format csv > opened.csv
  wiretwin papers lin1995 --claims
  wiretwin papers lin1995 table3
  wiretwin papers lin1995 --format json > lin1995.json
  wiretwin papers lin1995 --out lin1995.html
  wiretwin papers lin1995 --fit
  wiretwin papers lin1995 table2 --sensitivity
  wiretwin papers ong2000 --live
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


def _tried_table(trials: Iterable[tuple[str, str, Tried]]) -> Table:
    rows: list[list[object]] = [
        [case, ability, "yes" if tried.able else "no", tried.evidence] for case, ability, tried in trials
    ]
    columns = (
        Column("case", "case"),
        Column("ability", "ability"),
        Column("able", "able"),
        Column("evidence", "what came of it"),
    )
    return Table("What was tried", columns, rows)


def _list_table() -> Table:
    from wiretwin.cli.experiments import ABOUT
    from wiretwin.papers import PAPERS

    rows = [
        [name, experiment, ABOUT[name][experiment]]
        for name, paper in PAPERS.items()
        for experiment in paper.EXPERIMENTS
    ]
    columns = (Column("paper", "paper"), Column("experiment", "experiment"), Column("about", "about"))
    return Table("\n".join(paper.TITLE for paper in PAPERS.values()), columns, rows)


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


def _refuse_together(given: dict[str, bool], paper: str | None) -> None:
    """Reject options that would be ignored."""
    from wiretwin.errors import InputError

    found = [name for name, one in given.items() if one]
    alone = ("--opened", "--claims")
    if paper is None and (others := [name for name in found if name not in alone]):
        raise InputError(key=others[0], reason="is given without a paper", allowed="wiretwin papers PAPER …")
    for verb in ("--fit", "--live", "--sensitivity", *alone):
        others = [name for name in found if name != verb]
        if verb in found and others:
            raise InputError(key=others[0], reason=f"is given with {verb}", allowed=f"{verb} alone")


def _refuse_experiments(paper: str | None, experiments: list[str] | None) -> None:
    """Reject a paper that is not known, and experiments where all of a paper is asked for."""
    from wiretwin.errors import InputError
    from wiretwin.papers import PAPERS

    if paper is not None and paper not in PAPERS:
        raise InputError(key="PAPER", value=paper, allowed=", ".join(PAPERS))
    if experiments:
        raise InputError(
            key="EXPERIMENT",
            value=experiments[0],
            allowed="none with --fit, --opened or --claims: they are of the whole paper",
        )


def _effects_table(effects: list[Effect]) -> Table:
    columns = (
        Column("experiment", "experiment"),
        Column("case", "case"),
        Column("metric", "metric"),
        Column("predicted", "predicted"),
        Column("published", "published"),
        Column("known", "known as"),
        Column("what", "what is changed"),
        Column("made", "to what"),
        Column("value", "then"),
        Column("change_percent", "change [%]", digits=3),
    )
    rows: list[list[object]] = [
        [getattr(one, column.key) for column in columns[:-1]]
        + [None if one.value is None else 100 * one.change]
        for one in effects
    ]
    return Table("What could move each value: by more than a quarter, and most", columns, rows)


def _sensitivity(paper: str, experiments: list[str]) -> list[Effect]:
    from wiretwin.cli.progress import Bar
    from wiretwin.errors import InputError
    from wiretwin.papers import PAPERS
    from wiretwin.papers.lin1995_sensitivity import notable

    able = [name for name, module in PAPERS.items() if hasattr(module, "sensitivity")]
    if paper not in able:
        raise InputError(key="PAPER", value=paper, allowed=f"with --sensitivity: {', '.join(able)}")
    found: list[Effect] = []
    for experiment in experiments or PAPERS[paper].SENSITIVITY:
        with Bar(f"sensitivity {experiment}") as bar:
            for done, (count, case, effects) in enumerate(PAPERS[paper].sensitivity(experiment), 1):
                found += notable(effects)
                bar.stage(done, count, case)
    return found


def _live_table(paper: str, write: bool) -> Table:
    """Measure this machine for a paper's experiments; with `write` the values go on file."""
    from wiretwin import scratch
    from wiretwin.errors import InputError
    from wiretwin.papers import PAPERS

    able = [name for name, module in PAPERS.items() if hasattr(module, "measured")]
    if paper not in able:
        raise InputError(key="PAPER", value=paper, allowed=f"with --live: {', '.join(able)}")
    with scratch.folder(what="live") as folder:
        found = PAPERS[paper].measured(folder)
    rows: list[list[object]] = [
        [key, before, one.value, one.low, one.high] for key, (before, one) in found.items()
    ]
    if write:
        PAPERS[paper].write_live({key: one for key, (_, one) in found.items()})
    columns = (
        Column("key", "value"),
        Column("before", "on file"),
        Column("measured", "measured"),
        Column("low", "low (90 %)"),
        Column("high", "high (90 %)"),
    )
    return Table("This machine", columns, rows)


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def papers(
        paper: Annotated[str | None, typer.Argument(help="A paper.", show_default="the score of all")] = None,
        experiments: Annotated[
            list[str] | None, typer.Argument(help="Its experiments.", show_default="all")
        ] = None,
        quick: Annotated[bool, typer.Option("--quick", help="Fewer sizes.")] = False,
        refit: Annotated[bool, typer.Option("--fit", help="Fit the profiles again and print them.")] = False,
        live: Annotated[
            bool,
            typer.Option(
                "--live", help="Measure this machine, where experiments are about machines of today."
            ),
        ] = False,
        results: Annotated[
            bool, typer.Option("--opened", help="Opened results: published, predicted blind, and now.")
        ] = False,
        claimed: Annotated[
            bool, typer.Option("--claims", help="Claims of the papers, and whether the model agrees.")
        ] = False,
        write: Annotated[
            bool, typer.Option("--write", help="With --fit or --live: write the values into the data files.")
        ] = False,
        sensitive: Annotated[
            bool,
            typer.Option("--sensitivity", help="Say what could move values by more than a quarter."),
        ] = False,
        out: Annotated[
            Path | None, typer.Option("--out", "-o", help="A report page besides.", show_default="none")
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.cli.folders import refuse_unwritable
        from wiretwin.cli.opened import claims_table, opened_table, score_table
        from wiretwin.cli.progress import Bar
        from wiretwin.errors import InputError
        from wiretwin.papers import PAPERS, run_paper
        from wiretwin.papers.programs import orders
        from wiretwin.papers.records import digest

        _refuse_together(
            {
                "--fit": refit,
                "--live": live,
                "--sensitivity": sensitive,
                "--opened": results,
                "--claims": claimed,
                "--quick": quick,
                "--out": out is not None,
            },
            paper,
        )
        if write and not (refit or live):
            raise InputError(
                key="--write",
                reason="is given without --fit or --live",
                allowed="--fit --write, --live --write",
            )
        if results or claimed:
            _refuse_experiments(paper, experiments)
            emit((opened_table if results else claims_table)([paper] if paper else list(PAPERS)), form)
            return
        if paper is None:
            emit(score_table(list(PAPERS)), form)
            if form is Format.table:
                emit(_list_table(), form)
            return
        if live:
            emit(_live_table(paper, write), form)
            return
        if refit:
            _refuse_experiments(paper, experiments)
            fitted = PAPERS[paper].refit()
            if write:
                PAPERS[paper].write_fit(fitted)
            emit(_fit_table(fitted), form)
            return
        twice = [name for name in experiments or [] if (experiments or []).count(name) > 1]
        if twice:
            raise InputError(key="EXPERIMENT", value=twice[0], reason="is named twice", allowed="each once")
        if sensitive:
            emit(_effects_table(_sensitivity(paper, experiments or [])), form)
            return
        refuse_unwritable(out)
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
        if form is Format.table:
            rebuilt = {one.experiment for one in records}
            if (beside := opened_table([paper], rebuilt)).rows:
                emit(beside, form)
            for name, trials in getattr(PAPERS[paper], "EVIDENCE", {}).items():
                if name in rebuilt:
                    emit(_tried_table(trials()), form)
        print(f"digest {digest(records, runs)}", file=sys.stderr)
        if out is not None:
            from wiretwin.papers.report import render

            print(f"report: {render(paper, records, out)}", file=sys.stderr)
