"""From inputs to one HTML file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from wiretwin.errors import InputError, StorageError
from wiretwin.plot import words
from wiretwin.plot.theme import DARK, LIGHT, Theme, translation
from wiretwin.report import bundle
from wiretwin.report.findings import between, cautions, findings, headline, loop
from wiretwin.report.inputs import Inputs, gather
from wiretwin.report.page import Page
from wiretwin.report.sections import build


def render(
    *,
    result: Any = None,
    twin: Any = None,
    predictions: Sequence[Any] = (),
    comparisons: Sequence[Any] = (),
    out: str | os.PathLike[str] = "report.html",
) -> Path:
    """Write one self-contained HTML page that opens offline.

    Parameters
    ----------
    result
        A measured result (`wiretwin.results.Result`), or none.
    twin
        A twin (`wiretwin.twin.Twin`, or its mapping), or none.
    predictions
        Prediction records: mappings, models, or the files or folders that hold them. A timeline is taken from
        the key `timeline` (a Parquet file or a frame) or from `timeline.parquet` beside the file.
    comparisons
        Mappings or models with `prediction`, `run` and `error`.
    out
        The file to write.

    Returns
    -------
    pathlib.Path
        The file written. It is written whole or not at all.

    Raises
    ------
    InputError
        When there is nothing to show, or a record lacks what the report needs.
    StorageError
        When the file cannot be written.
    """
    inputs = gather(result, twin, predictions, comparisons)
    if not (inputs.manifest or inputs.twin or inputs.predictions or inputs.comparisons):
        raise InputError(
            key="report",
            reason="has nothing to show",
            allowed="a result, a twin, predictions or comparisons, at least one of them",
        )
    target = Path(out)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        partial.write_text(html(compose(inputs)), encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        raise StorageError(target, error.strerror or str(error)) from error
    finally:
        partial.unlink(missing_ok=True)
    return target


def compose(inputs: Inputs) -> Page:
    """Decide what the page says."""
    sections, missing = build(inputs)
    return Page(
        title=headline(inputs),
        subtitle=_subtitle(inputs),
        findings=findings(inputs),
        cautions=cautions(inputs),
        loop=loop(inputs),
        sections=sections,
        missing=missing,
    )


def _subtitle(inputs: Inputs) -> str:
    host = inputs.host
    parts = [str(host[key]) for key in ("name", "cpu_model") if host.get(key)]
    if host.get("cores"):
        parts.append(words.count_text(int(host["cores"]), "core"))
    if host.get("kernel"):
        parts.append(str(host["kernel"]))
    parts += between(inputs)
    made = str(inputs.manifest.get("created_utc") or inputs.twin.get("created_utc") or "")
    if made:
        parts.append(words.date_text(made))
    return " · ".join(parts)


_SYMBOLS = {
    "circle": '<circle cx="15" cy="6" r="3.2" fill="{0}"/>',
    "square": '<rect x="12" y="3" width="6" height="6" fill="{0}"/>',
    "triangle-up": '<path d="M15 2 L18.8 9 L11.2 9 Z" fill="{0}"/>',
    "x": '<path d="M12 3 L18 9 M18 3 L12 9" stroke="{0}" stroke-width="2.2"/>',
    "star": '<path d="M15 1.5 L16.3 4.8 L19.8 5 L17 7.2 L18 10.6 '
    'L15 8.7 L12 10.6 L13 7.2 L10.2 5 L13.7 4.8 Z" fill="{0}"/>',
    "hexagon": '<path d="M15 2.5 L18.1 4.2 L18.1 7.8 L15 9.5 L11.9 7.8 L11.9 4.2 Z" fill="{0}"/>',
}
"""The markers of `wiretwin.plot.base.SYMBOLS` as they look in the legend."""


_DASHES = {
    "solid": "none", "dash": "6 3", "dot": "2 3",
    "dashdot": "6 2 2 2", "longdash": "10 3", "longdashdot": "10 2 2 2",
}  # fmt: skip
"""The dashes of `wiretwin.plot.base.DASHES` as they look in the legend."""


_TERMS = {
    "t_0": Markup("t<sub>0</sub>"),
    "r_max": Markup("r<sub>max</sub>"),
    "n_half": Markup("n<sub>½</sub>"),
}


def _terms(text: str) -> Markup:
    """Set the three characteristic numbers as a book would; everything else is escaped as always."""
    out = escape(text)
    for name, term in _TERMS.items():
        out = Markup(str(out).replace(name, str(term)))
    # An option is not torn apart at its dashes.
    return Markup(re.sub(r"(?<!\S)(--[\w-]+)", r'<span class="whole">\1</span>', str(out)))


def _variables(theme: Theme) -> str:
    """Write a theme as CSS custom properties."""
    lines = [
        f"--{name}: {getattr(theme, name)};"
        for name in ("ink", "muted", "grid", "axis", "surface", "good", "warn")
    ]
    lines += [f"--series-{at}: {colour};" for at, colour in enumerate(theme.series)]
    lines += [f"--kind-{kind}: {colour};" for kind, colour in theme.kinds.items()]
    return " ".join(lines)


def html(page: Page) -> str:
    """Turn a page into HTML. Everything that is not ours is escaped by the template."""
    environment = Environment(
        loader=PackageLoader("wiretwin.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def asset(name: str) -> Markup:
        source = environment.loader.get_source(environment, name)[0]  # type: ignore[union-attr]
        return Markup(source)

    environment.filters["terms"] = _terms
    figures = {block.id: block.spec() for block in page.figures()}
    text = environment.get_template("page.html.j2").render(
        page=page,
        css=asset("report.css"),
        script=asset("report.js"),
        light=Markup(_variables(LIGHT)),
        dark=Markup(_variables(DARK)),
        dashes=_DASHES,
        symbols={name: Markup(path) for name, path in _SYMBOLS.items()},
        plotly=Markup(bundle.plotly_script()) if figures else "",
        figures=Markup(bundle.pack_figures(figures, translation())) if figures else "",
    )
    return text.strip() + "\n"
