"""One self-contained HTML page about a result, a twin and the programs predicted with it."""

from wiretwin.report.render import render

__all__ = ["render"]
