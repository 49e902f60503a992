"""The eight figures of the gallery: lines and crosses are what the model says now, circles the results."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from docutils import nodes
from docutils.parsers.rst import Directive
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx.application import Sphinx

from wiretwin.papers.published import FOLDER, opened

INK = "#010203"
"""Stands for the colour of the page's text, light or dark."""
COLOURS = ("#2a78d6", "#c8691c", "#2e9e63", "#8a5cd0")
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "wiretwin", "font.size": 8, "font.family": "sans-serif",
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 7,
    "lines.linewidth": 1.4, "lines.markersize": 5,
}  # fmt: skip

Draw = Callable[[Axes], None]


def _rows(paper: str, experiment: str, metric: str, words: str) -> list[tuple[dict[str, str], float, str]]:
    """Return key, value and what was published of each case that has these words."""
    with (FOLDER / "now" / f"{paper}.csv").open() as file:
        return [
            (
                dict(word.split("=", 1) for word in row["case"].split()),
                float(row["predicted"]),
                row["published"],
            )
            for row in csv.DictReader(file)
            if (row["experiment"], row["metric"]) == (experiment, metric)
            and set(words.split()) <= set(row["case"].split())
        ]


def curves(
    paper: str,
    metric: str,
    along: str,
    series: Sequence[tuple[str, str, str]],
    marks: tuple[str, str, float] | None,
) -> Draw:
    """Draw a line for each of `series`: its name, its experiment, and the words of its cases.

    `marks` are the published figures of the same cases: experiment, metric, and where on the axis they stand.
    """

    def draw(axes: Axes) -> None:
        for (name, experiment, words), colour in zip(series, COLOURS, strict=False):
            points = {
                float(keys[along]): value
                for keys, value, _ in _rows(paper, experiment, metric, words)
                if along in keys and "transport" not in keys
            }
            axes.plot(sorted(points), [points[one] for one in sorted(points)], label=name, color=colour)
            for keys, _, published in _rows(paper, *marks[:2], words) if marks else []:
                if published and along not in keys:
                    axes.plot([marks[2]], [float(published)], "o", mfc="none", color=colour, clip_on=False)

    return draw


def pairs(paper: str, what: Sequence[tuple[str, str, str]]) -> Draw:
    """Draw published results beside present values: the name of each, its metric, words of its case."""

    def draw(axes: Axes) -> None:
        found = [
            next(
                one
                for one in opened(paper)
                if one.metric == metric and set(words.split()) <= {one.experiment, *one.case.split()}
            )
            for _, metric, words in what
        ]
        places = range(len(found))
        axes.plot(places, [one.published for one in found], "o", mfc="none", color=INK, label="published")
        axes.plot(places, [one.now.value for one in found], "x", color=COLOURS[0], label="now")
        axes.set_xticks(list(places), [name for name, _, _ in what])
        axes.margins(x=0.15)
        axes.set_ylim(bottom=0)

    return draw


OVER_ATM = "network=atm host=4/690 adapter=series-200"
STACKS = {
    "Fore API": "fore/aal5",
    "sockets": "socket/tcp/aal5",
    "RPC": "rpc/tcp/aal5",
    "PVM": "pvm-advise/tcp/aal5",
}
PROGRAMS = {
    "sockets\nATM": "socket/tcp/aal5", "sockets\nEthernet": "socket/tcp/ethernet",
    "PVM\nATM": "pvm-advise/tcp/aal5", "PVM\nEthernet": "pvm-advise/tcp/ethernet",
}  # fmt: skip
ADAPTERS = {"GNIC-II": "gnic-ii", "ACEnic": "acenic", "SK-NET": "sk-net"}
LIBRARIES = {
    "LAM": "mpi mpi-lam/tcp/gige",
    "MPICH": "mpi mpi-mpich/tcp/gige",
    "MVICH": "mvich mpi-mvich/gige",
}
MECHANISMS = {"UBR": "ubr", "ABR": "abr", "LME/ECE": "lme-ece"}
THROUGHPUT = {"xscale": "log", "xlabel": "message [B]", "ylabel": "throughput [Mbit/s]"}

FIGURES: Sequence[tuple[str, str, Draw, dict[str, Any]]] = (
    (
        "lin1995", "Lin et al., figure 11: four interfaces over ATM; circles: table 1, 4 B.",
        curves(
            "lin1995", "latency_us", "size",
            [(name, "figure11", f"stack={stack} {OVER_ATM}") for name, stack in STACKS.items()],
            ("table1", "t0_us", 4),
        ),
        {"xscale": "log", "yscale": "log", "xlabel": "message [B]", "ylabel": "one-way latency [us]"},
    ),
    (
        "lin1995", "Lin et al., table 5: products of 128 x 128 matrices on four hosts.",
        pairs(
            "lin1995",
            [(name, "time_s", f"table5 size=128 stack={stack}") for name, stack in PROGRAMS.items()],
        ),
        {"ylabel": "time [s]"},
    ),
    (
        "ong2000", "Ong and Farrell: TCP over three Gigabit adapters; circles: the largest published.",
        curves(
            "ong2000", "throughput_Mbit_s", "size",
            [(name, "tcp", f"nic={nic}") for name, nic in ADAPTERS.items()],
            ("tcp", "throughput_Mbit_s", 2**22),
        ),
        THROUGHPUT,
    ),
    (
        "ong2000", "Ong and Farrell: LAM, MPICH and MVICH on the GNIC-II.",
        curves(
            "ong2000", "throughput_Mbit_s", "size",
            [
                (name, of.split()[0], f"stack={of.split()[1]} nic=gnic-ii") for name, of in LIBRARIES.items()
            ],
            None,
        ),
        THROUGHPUT,
    ),
    (
        "chen1996", "Chen et al.: parallel iterative matching, where every input has cells for all outputs.",
        curves(
            "chen1996", "matched_share", "iterations",
            [(f"{ports} ports", "pim", f"load=1.0 ports={ports}") for ports in (4, 16, 64)],
            None,
        ),
        {"xlabel": "rounds", "ylabel": "share of a maximal matching", "xticks": [1, 2, 3, 4]},
    ),
    (
        "chen1996", "Chen et al.: four sessions on a parking lot, with credits.",
        pairs("chen1996", [(one, "throughput_Mbit_s", f"parking-lot session={one}") for one in "ABCD"]),
        {"xlabel": "session", "ylabel": "throughput [Mbit/s]"},
    ),
    (
        "vila1998", "Vila-Sallent and Solé-Pareta: latency of PDE1 beside other load.",
        curves(
            "vila1998", "latency_us", "rho",
            [(name, "latency", f"program=PDE1 mechanism={one}") for name, one in MECHANISMS.items()],
            None,
        ),
        {"xlabel": "load on the port", "ylabel": "latency [us]", "yscale": "log"},
    ),
    (
        "vila1998", "Vila-Sallent and Solé-Pareta: what PDE1 sends with LME/ECE, at loads of 0.7 and 1.0.",
        pairs(
            "vila1998",
            [
                (f"{name}\n{rho}", f"{name.lower()}_kbit_s", f"bandwidth mechanism=lme-ece rho={rho}")
                for rho in ("0.7", "1.0")
                for name in ("UBR", "ABR", "VBR")
            ],
        ),
        {"ylabel": "rate [kbit/s]"},
    ),
)  # fmt: skip
"""The page that each leads to, its caption, what draws it, and its axes."""


def _svg(draw: Draw, axes_have: dict[str, Any], number: int) -> str:
    with mpl.rc_context(STYLE | {"svg.hashsalt": f"wiretwin-{number}"}):
        figure = Figure(figsize=(3.6, 2.5), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.set(**axes_have)
        axes.legend()
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :].replace(INK, "currentColor")


class Gallery(Directive):
    """``gallery``: the figures, two in a row where there is room, each a link to its paper's page."""

    def run(self) -> list[nodes.Node]:
        """Return the figures as they stand in the page."""
        shown = "\n".join(
            f'<a class="small" href="{page}.html"><figure>{_svg(draw, axes, number)}'
            f"<figcaption>{caption}</figcaption></figure></a>"
            for number, (page, caption, draw, axes) in enumerate(FIGURES)
        )
        return [nodes.raw("", f'<div class="gallery">{shown}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("gallery", Gallery)
    app.add_css_file("gallery.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
