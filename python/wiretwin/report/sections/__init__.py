"""The sections of the report, one module each; `build` returns them in reading order."""

from __future__ import annotations

from wiretwin.report.inputs import Inputs
from wiretwin.report.page import Missing, Section
from wiretwin.report.sections import (
    curves,
    fit,
    layers,
    pairs,
    programs,
    setting,
    timeline,
    together,
    understanding,
)


def build(inputs: Inputs) -> tuple[list[Section], list[Missing]]:
    """Build every section whose data are there, and name those whose data are not."""
    made: list[Section] = []
    missing: list[Missing] = []
    for module in (pairs, curves, together, layers, fit, programs, timeline, understanding, setting):
        for part in module.build(inputs):
            if isinstance(part, Section):
                made.append(part)
            else:
                missing.append(part)
    # What ranks did together has no round trips, and nothing is missing that these would be needed for.
    return made, [] if len(inputs.together) and not len(inputs.curves) else missing


__all__ = ["build"]
