"""One self-contained HTML page about a result, a twin and the programs predicted with it.

`wiretwin.report.render(…)` writes it, and so does `wiretwin.report(…)`.
"""

from wiretwin._verbs import make_callable
from wiretwin.report.writer import render

__all__ = ["render"]

make_callable(__name__, "wiretwin.report.writer:render")
