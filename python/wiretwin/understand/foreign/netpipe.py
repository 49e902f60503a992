"""NetPIPE 2.x to 3.x, the file that ``-o`` names (``np.out``): size, Mbit/s, seconds of the one-way latency.

A line is the fastest of several trials (Snell, Mikler & Gustafson 1996). Its Mbit is 2^20 bits, in later
versions 10^6; the rate has more digits than the seconds, so the time is taken from it, and the seconds are
what it is checked against.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from wiretwin.understand.foreign.reading import Reading, Row, bad_line, nanoseconds, number, size_of

__all__ = ["read"]

ALLOWED = "SIZE MBIT_PER_S SECONDS, as in np.out of NetPIPE"
MEGABITS = (Decimal(2**20), Decimal(10**6))
ROUNDING_S = Decimal("6e-9")
"""Seconds are printed with eight decimals."""


def read(file: Path, text: str, size_bytes: int | None = None) -> Reading:
    """Read np.out.

    Raises
    ------
    InputError
        A line is no line of NetPIPE's, or its rate and time contradict each other.
    """
    rows = []
    for line, content in enumerate(text.splitlines(), 1):
        words = content.split()
        if not words:
            continue
        if len(words) < 3:
            raise bad_line(file, line, content, "has too few columns", ALLOWED)
        size, rate, seconds = size_of(words[0]), number(words[1]), number(words[2])
        if not size or rate is None or seconds is None or rate <= 0 or seconds < 0:
            raise bad_line(file, line, content, "is no line of sizes and times", ALLOWED)
        halves = [Decimal(8 * size) / (rate * unit) for unit in MEGABITS]
        near = [half for half in halves if abs(half - seconds) <= ROUNDING_S + seconds / 1000]
        value = nanoseconds(near[0] * 2 * 10**9) if near else None
        if value is None:
            raise bad_line(
                file,
                line,
                content,
                f"contradicts itself: {size} B at that rate take {halves[0]:.3g} s",
                ALLOWED,
            )
        rows.append(Row(size, 1, value))
    return Reading("echo", rows, "the fastest trial")
