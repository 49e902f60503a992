"""Numbers as a person reads them: three significant digits, a unit, an interval where there is one."""

from __future__ import annotations

import html
import math
from datetime import UTC, datetime

from wiretwin.fit.settled import NOT_SETTLED, settled

DASH, MINUS, NARROW, BLANK = "\u2013", "\u2212", "\u202f", "\u00a0"
"""A dash for ranges, a minus sign, blanks: in thousands, before a unit."""
TO = f"{NARROW}{DASH}\u2060{NARROW}"
"""Between the ends of an interval: no line breaks there, which a dash would allow without the word joiner."""

_TIME = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))
_RATE = ((1.0, "MB/s"), (1e3, "GB/s"))
_SIZE = ((1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"))


def escape(text: object) -> str:
    """Make `text` safe inside a figure: plotly reads a little HTML in names, labels and hover texts."""
    return html.escape(str(text), quote=True)


def digits(value: float, significant: int = 3) -> str:
    """Print a number with so many significant digits, thousands apart, never an exponent."""
    if not math.isfinite(value):
        return DASH
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    decimals = max(0, significant - 1 - magnitude)
    rounded = round(value, significant - 1 - magnitude)
    if rounded and math.floor(math.log10(abs(rounded))) > magnitude:
        decimals = max(0, decimals - 1)
    return f"{rounded:,.{decimals}f}".replace(",", NARROW).replace("-", MINUS)


def _scale(value: float, units: tuple[tuple[float, str], ...]) -> tuple[float, str]:
    """Choose the largest unit that leaves the value, as printed, at least one."""
    chosen = units[0]
    for unit in units[1:]:
        if abs(value) >= unit[0] * 0.9995:
            chosen = unit
    return chosen


def time_text(seconds: float) -> str:
    """`4.91 µs`."""
    scale, unit = _scale(seconds, _TIME)
    return f"{digits(seconds / scale)}{BLANK}{unit}"


def rate_text(megabytes_per_second: float) -> str:
    """`12.3 GB/s`; the argument is in 10^6 bytes per second."""
    scale, unit = _scale(megabytes_per_second, _RATE)
    return f"{digits(megabytes_per_second / scale)}{BLANK}{unit}"


def size_text(size: float) -> str:
    """`64 KiB`; exact, so `65 539 B` where the size is not a whole number of a larger unit."""
    for scale, unit in reversed(_SIZE):
        if size >= scale and size % scale == 0:
            return f"{size // scale:,.0f}{BLANK}{unit}".replace(",", NARROW)
    return f"{digits(size)}{BLANK}B"


def percent_text(share: float, signed: bool = False) -> str:
    """`4.3 %` of a share; with `signed`, `+4.3 %`."""
    value = share * 100
    text = f"{abs(value):.1f}" if abs(value) < 99.95 else digits(abs(value))
    sign = MINUS if value < 0 and float(f"{value:.1f}") != 0 else ("+" if signed else "")
    return f"{sign}{text}{BLANK}%"


def _range(low: float, high: float, value: float, scale: float) -> str:
    """Print both ends of an interval with the digits of the value, and more where the ends would meet."""
    for significant in (3, 4, 5):
        ends = [_like(end / scale, value / scale, significant) for end in (low, high)]
        if ends[0] != ends[1] or low == high:
            break
    return f"{ends[0]}{TO}{ends[1]}"


def _like(number: float, pattern: float, significant: int) -> str:
    """Print `number` with the decimals that `pattern` has at so many significant digits."""
    if not math.isfinite(number):
        return DASH
    magnitude = math.floor(math.log10(abs(pattern))) if pattern else 0
    decimals = max(0, significant - 1 - magnitude)
    text = f"{number:,.{decimals}f}" if decimals else f"{round(number, significant - 1 - magnitude):,.0f}"
    return text.replace(",", NARROW).replace("-", MINUS)


def _with_interval(
    value: float, low: float | None, high: float | None, units: tuple[tuple[float, str], ...]
) -> str:
    scale, unit = _scale(value, units)
    text = f"{digits(value / scale)}{BLANK}{unit}"
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return text
    if value > 0 and not settled(low, high):
        return f"{NOT_SETTLED} ({_range(low, high, value, scale)}{BLANK}{unit})"
    return f"{text} ({_range(low, high, value, scale)})"


def time_interval_text(seconds: float, low: float | None, high: float | None) -> str:
    """`4.91 µs (4.87 - 4.95)`; no interval, no brackets; a wide one: `not settled (19 - 477 ns)`."""
    return _with_interval(seconds, low, high, _TIME)


def rate_interval_text(value: float, low: float | None, high: float | None) -> str:
    """`12.3 GB/s (12.1 - 12.6)`; arguments in 10^6 bytes per second."""
    return _with_interval(value, low, high, _RATE)


def size_interval_text(value: float, low: float | None, high: float | None) -> str:
    """`5.01 KiB (4.80 - 5.22)`."""
    units = tuple((float(scale), unit) for scale, unit in _SIZE)
    return _with_interval(value, low, high, units)


def time_range_text(value: float, low: float, high: float) -> str:
    """`4.87 - 4.95 µs`: the interval of a value, in seconds."""
    scale, unit = _scale(value, _TIME)
    return f"{_range(low, high, value, scale)}{BLANK}{unit}"


def rate_range_text(value: float, low: float, high: float) -> str:
    """`12.1 - 12.6 GB/s`: the interval of a value, in 10^6 bytes per second."""
    scale, unit = _scale(value, _RATE)
    return f"{_range(low, high, value, scale)}{BLANK}{unit}"


def times_text(factor: float) -> str:
    """`2.3 times`, `41 times`."""
    return f"{digits(factor, 2)} times"


def at_least_text(factor: float) -> str:
    """`2.3 times`, `1.07 times`, rounded down: what is said to be at least so much is."""
    places = 3 if 1 <= factor < 1.1 else 2
    step = 10.0 ** (math.floor(math.log10(factor)) - places + 1) if factor > 0 else 1.0
    return f"{digits(math.floor(factor / step + 1e-9) * step, places)} times"


def list_text(items: list[str]) -> str:
    """Join words: `a`, `a and b`, `a, b and c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def count_text(number: int, singular: str, plural: str | None = None) -> str:
    """`1 layer`, `12 345 samples`."""
    word = singular if number == 1 else (plural or singular + "s")
    return f"{number:,}".replace(",", NARROW) + " " + word


def tick_text(value: float, units: str) -> str:
    """Label a tick of a logarithmic axis: `10 µs`, `1 GB/s`; `units` is `time` (seconds) or `rate` (MB/s)."""
    scale, unit = _scale(value, _TIME if units == "time" else _RATE)
    return f"{value / scale:.3g}{BLANK}{unit}"


def share_text(share: float) -> str:
    """Print a share as a person would say it: `56 %`, `3.2 %`."""
    return f"{digits(share * 100, 2)}{BLANK}%"


def within_text(share: float) -> str:
    """Print a bound in whole percent, rounded up, so that what is said to be within it is."""
    return f"{math.ceil(round(share * 100, 6))}{BLANK}%"


def date_text(stamp: str, seconds: bool = False) -> str:
    """Print an ISO 8601 time as `4 May 2031, 10:03 UTC`; anything else as it is."""
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    when = when.astimezone(UTC) if when.tzinfo else when
    return f"{when.day} {when:%B %Y, %H:%M:%S} UTC" if seconds else f"{when.day} {when:%B %Y, %H:%M} UTC"
