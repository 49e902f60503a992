"""Figures, as plotly objects, from results, twins, predictions and comparisons.

The report and a notebook draw with the same functions::

    import wiretwin as wt
    result = wt.Result.open("measured")
    wt.plot.throughput(result)

`theme=wt.plot.DARK` gives any of them dark colours.
"""

from wiretwin.plot.curves import latency, saturation, signature, throughput
from wiretwin.plot.data import echo_curves, layer_order, loop_times
from wiretwin.plot.fits import fit, residual_table, residuals
from wiretwin.plot.programs import breakdown, predicted_vs_actual
from wiretwin.plot.sweep import sweep
from wiretwin.plot.theme import DARK, LIGHT, Theme
from wiretwin.plot.timelines import timeline
from wiretwin.plot.together import collective, distribution

__all__ = [
    "DARK",
    "LIGHT",
    "Theme",
    "breakdown",
    "collective",
    "distribution",
    "echo_curves",
    "fit",
    "latency",
    "layer_order",
    "loop_times",
    "predicted_vs_actual",
    "residual_table",
    "residuals",
    "saturation",
    "signature",
    "sweep",
    "throughput",
    "timeline",
]
