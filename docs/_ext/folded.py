"""Long tables are folded: the page shows what is in one and how many rows, and opens it where somebody asks.

A page that shows all its values at once is a file, not a page: this site has none longer than ten screens.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx

MOST_ROWS = 12
"""Tables with more rows are folded."""
MOST_TABLES = 15
"""On pages with more tables all of them are folded."""


def fold(summary: str, *content: nodes.Node) -> list[nodes.Node]:
    """Return content that a page shows when its summary is opened."""
    shown = nodes.Text(summary).astext().replace("&", "&amp;").replace("<", "&lt;")
    opening = f'<details class="folded"><summary>{shown}</summary>'
    return [nodes.raw("", opening, format="html"), *content, nodes.raw("", "</details>", format="html")]


def _tables(app: Sphinx, tree: nodes.document, page: str) -> None:
    if app.builder.format != "html":
        return
    tables = list(tree.findall(nodes.table))
    for table in tables:
        rows = sum(len(body.children) for body in table.findall(nodes.tbody))
        if rows <= MOST_ROWS and len(tables) <= MOST_TABLES:
            continue
        heads = [entry.astext() for head in table.findall(nodes.thead) for entry in head.findall(nodes.entry)]
        named = ", ".join(head for head in heads if head)
        place = table.parent.index(table)
        table.parent[place : place + 1] = fold(f"{rows} rows: {named}" if named else f"{rows} rows", table)


def setup(app: Sphinx) -> dict[str, bool]:
    """Fold the tables of each page once it is complete."""
    app.connect("doctree-resolved", _tables)
    app.add_css_file("folded.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
