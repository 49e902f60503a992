"""Whether one view is faster than another at a size, by intervals that separate."""

from __future__ import annotations

from wiretwin.understand.view import View

__all__ = ["lower"]


def lower(before: View, after: View, size: int, *, loop: str = "echo", times: float = 1.0) -> bool | None:
    """Whether `after` takes less than `before` over `times`; ``None`` if either lacks the size.

    The intervals must separate by that factor, so a counter-run that is too short confirms nothing.
    """
    ends = []
    for view in (before, after):
        sizes, values = view.typical_us(loop)
        at = [value for known, value in zip(sizes, values, strict=True) if int(known) == size]
        if not at:
            return None
        ends.append(at[0])
    old, new = ends
    return new.high * times < old.low
