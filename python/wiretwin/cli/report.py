"""``wiretwin report``: one self-contained HTML page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = ["register"]

HELP = """Write one self-contained HTML page that opens offline.

Curves with their intervals, the table of t_0, r_max and n_half, fit and residuals, predictions against actual
runs, and what was run, with which settings, on what. What joins the hosts is in the predictions: those of
`wiretwin predict --network` say so. Of the folder of a sweep: each metric against the values of its keys.

\b
Examples:
  wiretwin report results/measure-20240501-120000
  wiretwin report swept -o swept.html
  wiretwin report result --twin twin.toml --prediction predicted --comparison compared.json -o page.html
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command(help=HELP)
    def report(
        result: Annotated[
            Path | None, typer.Argument(help="A result folder, or that of a sweep.", show_default="none")
        ] = None,
        twin: Annotated[Path | None, typer.Option(help="A twin file.", show_default="none")] = None,
        prediction: Annotated[
            list[Path] | None,
            typer.Option(help="A prediction; may be given several times.", show_default="none"),
        ] = None,
        comparison: Annotated[
            list[Path] | None,
            typer.Option(
                help="What `wiretwin compare -o` wrote; may be given several times.", show_default="none"
            ),
        ] = None,
        out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("report.html"),
        salvage: Annotated[bool, typer.Option("--salvage", help="Leave out damaged launches.")] = False,
    ) -> None:
        from wiretwin.cli.fit import open_result
        from wiretwin.report import render
        from wiretwin.sweep.record import PLAN
        from wiretwin.twin import Twin

        if result is not None and (result / PLAN).exists():
            _of_sweep(result, out, others=bool(twin or prediction or comparison or salvage))
            return
        given: dict[str, Any] = {
            "result": open_result(result, salvage=salvage) if result is not None else None,
            "twin": Twin.read(twin) if twin is not None else None,
            "predictions": prediction or (),
            "comparisons": comparison or (),
        }
        print(f"report: {render(**given, out=out)}", file=sys.stderr)


def _of_sweep(folder: Path, out: Path, *, others: bool) -> None:
    from wiretwin.errors import InputError
    from wiretwin.report.sweep import write
    from wiretwin.sweep.run import Sweep

    if others:
        raise InputError(key="result", value=str(folder), reason="is a sweep", allowed="it alone, and --out")
    print(f"report: {write(Sweep.read(folder), out)}", file=sys.stderr)
