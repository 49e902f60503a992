"""A metric of a sweep against the key that takes most values, a curve for each combination of the others."""

from __future__ import annotations

import itertools
import math

import plotly.graph_objects as go

from wiretwin.errors import InputError
from wiretwin.plot import base, words
from wiretwin.plot.theme import LIGHT, Theme
from wiretwin.sweep.plan import Axis, Value
from wiretwin.sweep.run import Sweep

__all__ = ["curves", "key_of", "sweep"]


def key_of(found: Sweep) -> Axis:
    """Return the key along which a sweep is drawn: the first of those with most values."""
    return max(found.axes, key=lambda axis: len(axis.values))


def curves(found: Sweep) -> dict[str, list[int]]:
    """Return the numbers of the points of each curve, along `key_of`, by the values of the other keys."""
    along = key_of(found)
    others = [axis for axis in found.axes if axis is not along]
    named: dict[str, list[int]] = {}
    for values in itertools.product(*(axis.values for axis in others)):
        fixed = {axis.key: value for axis, value in zip(others, values, strict=True)}
        label = " ".join(f"{key}={value}" for key, value in fixed.items()) or "all runs"
        named[label] = [
            number
            for number, point in enumerate(found.points)
            if all(point[key] == value for key, value in fixed.items())
        ]
    return named


def sweep(found: Sweep, metric: str, *, theme: Theme = LIGHT) -> go.Figure:
    """Draw a metric of a sweep: the mean over the replications at each point, with its interval.

    Parameters
    ----------
    found
        As `wiretwin.sweep` returns it.
    metric
        One of its metrics: ``latency_us``.
    theme
        Colours.

    Raises
    ------
    InputError
        No run has such a metric.
    """
    if metric not in found.metrics:
        raise InputError(key="metric", value=metric, allowed=", ".join(found.metrics) or "none")
    along, named = key_of(found), curves(found)
    looks = base.looks(list(named))
    figure = base.empty(340, theme, f"sweep-{metric}")
    for name, numbers in named.items():
        look, label = looks[name], words.escape(name)
        at = [(found.points[number][along.key], found.at(number, metric)) for number in numbers]
        at = [(value, one) for value, one in at if one.count]
        ends = [(one.mean if one.low is None else one.low, one.high or one.mean) for _, one in at]
        figure.add_scatter(
            x=[value for value, _ in at],
            y=[one.mean for _, one in at],
            error_y={
                "type": "data",
                "array": [high - one.mean for (_, one), (_, high) in zip(at, ends, strict=True)],
                "arrayminus": [one.mean - low for (_, one), (low, _) in zip(at, ends, strict=True)],
                "width": 3,
                "color": look.colour,
            },
            mode="lines+markers",
            line={"color": look.colour, "width": 2, "dash": look.dash},
            marker={"size": 6, "color": look.colour, "symbol": look.symbol},
            name=label,
            legendgroup=label,
            text=[_hover(along, value, one.mean, one.count) for value, one in at],
            hovertemplate=f"<b>{label}</b><br>%{{text}}<extra></extra>",
            meta={"layer": name, "part": "curve"},
        )
    if not all(_number(value) for value in along.values):
        figure.update_xaxes(type="category", categoryarray=[str(value) for value in along.values])
    figure.update_xaxes(title={"text": along.key})
    base.caption_y(figure, metric)
    return figure


def _number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _hover(along: Axis, value: Value, mean: float, count: int) -> str:
    return f"{along.key}={words.escape(value)}: {words.digits(mean, 4)}, {words.count_text(count, 'run')}"
