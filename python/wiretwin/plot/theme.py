"""Colours and type of every figure: one light and one dark theme, translated into each other.

Figures are built in the light theme. The report carries a table that maps each light colour to its dark
counterpart, so a page can change its mind without building a figure twice. Each colour is used for one
thing only, which is what makes that table a function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif'

KINDS: tuple[str, ...] = ("compute", "endpoint", "wire", "waiting")
"""Kinds of time in the model, in the order in which they are drawn."""

OPACITIES: tuple[float, ...] = (0.07, 0.12, 0.18)
"""The opacities a band may have."""


@dataclass(frozen=True)
class Theme:
    """Colours as `#rrggbb`; `series` is for layers, `kinds` for kinds of time."""

    name: str
    ink: str
    muted: str
    grid: str
    axis: str
    surface: str
    good: str
    warn: str
    series: tuple[str, ...]
    kinds: Mapping[str, str]

    def colours(self) -> list[str]:
        """Every colour, in an order that is the same for each theme."""
        plain = [self.ink, self.muted, self.grid, self.axis, self.surface, self.good, self.warn]
        return plain + list(self.series) + [self.kinds[kind] for kind in (*KINDS, "mpi")]


LIGHT = Theme(
    name="light",
    ink="#1c2127",
    muted="#5c6670",
    grid="#e6e8ea",
    axis="#b4bac1",
    surface="#ffffff",
    good="#2d7d46",
    warn="#b3541e",
    series=("#1764ab", "#c2520a", "#157a55", "#7446b0", "#b8326f", "#86610f", "#0b7683", "#56606c"),
    kinds={
        "compute": "#2f5f9e",
        "endpoint": "#dd8427",
        "wire": "#199588",
        "waiting": "#bcc3cb",
        "mpi": "#8a5fc0",
    },
)

DARK = Theme(
    name="dark",
    ink="#e8ebee",
    muted="#9aa5b1",
    grid="#2b323a",
    axis="#525c67",
    surface="#171b20",
    good="#63c482",
    warn="#f0935a",
    series=("#69b1ff", "#ff9c59", "#4bcf9b", "#bb9bff", "#ff86b6", "#e2ba4e", "#4ecfdf", "#a9b4c1"),
    kinds={
        "compute": "#7aabf0",
        "endpoint": "#ffb168",
        "wire": "#4dd0bf",
        "waiting": "#55606c",
        "mpi": "#c1a0f3",
    },
)


def fade(colour: str, opacity: float) -> str:
    """Return `colour` (`#rrggbb`) at an opacity from `OPACITIES`."""
    if opacity not in OPACITIES:
        raise ValueError(f"opacity {opacity}: allowed are {', '.join(map(str, OPACITIES))}")
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def translation(source: Theme = LIGHT, target: Theme = DARK) -> dict[str, str]:
    """Map each colour string of one theme, faded ones included, to the other's."""
    table: dict[str, str] = {}
    for old, new in zip(source.colours(), target.colours(), strict=True):
        table[old] = new
        for opacity in OPACITIES:
            table[fade(old, opacity)] = fade(new, opacity)
    return table


def template(theme: Theme) -> dict[str, Any]:
    """Layout defaults for every figure."""
    axis = {
        "automargin": True,
        "gridcolor": theme.grid,
        "gridwidth": 1,
        "linecolor": theme.axis,
        "showline": False,
        "tickcolor": theme.axis,
        "tickfont": {"size": 12, "color": theme.muted},
        "title": {"font": {"size": 12, "color": theme.muted}, "standoff": 10},
        "zeroline": False,
        "ticklabelstandoff": 5,
    }
    return {
        "layout": {
            "font": {"family": FONT, "size": 13, "color": theme.ink},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 8, "r": 12, "t": 34, "b": 8},
            "hoverlabel": {
                "bgcolor": theme.surface,
                "bordercolor": theme.axis,
                "font": {"family": FONT, "size": 12, "color": theme.ink},
                "align": "left",
                "namelength": -1,
            },
            "legend": {
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "y": 1.06,
                "yanchor": "bottom",
                "font": {"size": 12, "color": theme.ink},
                "bgcolor": "rgba(0,0,0,0)",
            },
            "xaxis": {**axis, "ticks": "outside", "ticklen": 4, "showline": True, "ticklabelstandoff": 0},
            "yaxis": axis,
            "modebar": {
                "bgcolor": "rgba(0,0,0,0)",
                "color": theme.axis,
                "activecolor": theme.muted,
            },
        }
    }
