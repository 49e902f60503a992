"""``wiretwin baseline``: results kept by name, for later results to be compared with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wiretwin.cli.format import Column, Format, FormatOption, Table, emit

__all__ = ["register"]

HELP = """Keep results by name, for later results to be compared with.

A baseline is a folder of results; `wiretwin compare` takes one in place of a result, and then compares with
its newest.

\b
Examples:
  wiretwin baseline keep main results/measure-1
  wiretwin compare baselines/main new --fail-above 10%
  wiretwin baseline history main -o history.html
"""

KEEP_HELP = """Copy a result into a baseline, as its newest.

What was kept before stays beside it, as its history.

\b
Examples:
  wiretwin baseline keep main results/measure-1
  wiretwin baseline keep openmpi-5 new --folder ~/baselines
"""

LIST_HELP = """List the baselines, and what the newest result of each is.

\b
Examples:
  wiretwin baseline list
  wiretwin baseline list --folder ~/baselines --format json
"""

HISTORY_HELP = """Show how the times of a baseline have gone, result by result.

Each result is compared with the one before it, as `wiretwin compare` does; with -o as a page with figures.

\b
Examples:
  wiretwin baseline history main
  wiretwin baseline history main --loop stream -o history.html
"""

NameArgument = Annotated[str, typer.Argument(help="The name of the baseline.", show_default=False)]
FolderOption = Annotated[Path, typer.Option(help="Where baselines are kept.")]
BASELINES = Path("baselines")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    baseline = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(baseline, name="baseline", help=HELP)

    @baseline.command("keep", help=KEEP_HELP)
    def keep_(
        name: NameArgument,
        result: Annotated[Path, typer.Argument(help="A result of `measure`.", show_default=False)],
        folder: FolderOption = BASELINES,
    ) -> None:
        from wiretwin.cli.fit import open_result
        from wiretwin.understand.baselines import keep, of_name

        kept = keep(open_result(result), of_name(name, folder))
        print(f"baseline: {kept}", file=sys.stderr)

    @baseline.command("list", help=LIST_HELP)
    def list_(folder: FolderOption = BASELINES, form: FormatOption = Format.table) -> None:
        from wiretwin.results import Result
        from wiretwin.understand.baselines import baselines

        rows = []
        for name, results in baselines(folder).items():
            manifest = Result.open(results[-1]).manifest
            layers = ", ".join(layer.name for layer in manifest.layers)
            host = manifest.host.get("name")
            rows.append((name, len(results), manifest.created_utc, host, layers, str(results[-1])))
        columns = ("name", "results", "newest_utc", "host", "layers", "path")
        emit(
            Table("baselines", tuple(Column(one, one.replace("_utc", " (UTC)")) for one in columns), rows),
            form,
        )

    @baseline.command("history", help=HISTORY_HELP)
    def history_(
        name: NameArgument,
        folder: FolderOption = BASELINES,
        loop: Annotated[
            str | None,
            typer.Option(
                help="The loop that is shown; all: every one that ranks did together.",
                show_default="echo, or all",
            ),
        ] = None,
        out: Annotated[
            Path | None, typer.Option("--out", "-o", help="A page with figures.", show_default="none")
        ] = None,
        form: FormatOption = Format.table,
    ) -> None:
        from wiretwin.cli.folders import refuse_unwritable
        from wiretwin.understand.baselines import history, of_name

        refuse_unwritable(out)
        found = history(of_name(name, folder), loop=loop)
        names = [result.path.name for result in found.results]
        rows = [
            (names[row.number], row.layer, row.bytes, row.us, row.low, row.high, row.launches)
            for row in found.values
        ]
        columns = (
            Column("measured", "measured (UTC)"),
            Column("layer", "layer"),
            Column("size_bytes", "size [B]"),
            Column("time_us", "time [us]", ends=("low_us", "high_us")),
            Column("low_us", "low"),
            Column("high_us", "high"),
            Column("launches", "launches"),
        )
        emit(Table(f"history of {name}", columns, rows), form)
        for label, step in zip(names[1:], found.steps, strict=True):
            for line in step.summary():
                print(f"{label}: {line}", file=sys.stderr)
        if out is not None:
            from wiretwin.report.history import write

            print(f"page: {write(found, out)}", file=sys.stderr)
