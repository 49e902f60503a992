"""What a reader takes out of another program's output, and how it rejects what it cannot read."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError

__all__ = ["Reading", "Row", "bad_line", "nanoseconds", "number", "size_of"]

LARGEST_BYTES = 2**40
LARGEST_NS = 10**15
"""About eleven days; a larger time is no time of a message."""


@dataclass(frozen=True)
class Row:
    """One value of the output: the time of `batch` iterations with messages of `bytes`."""

    bytes: int
    batch: int
    value_ns: int


@dataclass(frozen=True)
class Reading:
    """The contents of one file: what it says and no more.

    Attributes
    ----------
    loop
        ``echo``: whole round trips; ``flow``: a stream one way, a block after the other.
    rows
        In the order of the file.
    statistic
        What a value is: a sample, or which statistic of how many.
    details
        What else the file says of the run.
    """

    loop: str
    rows: list[Row]
    statistic: str
    details: dict[str, Any] = field(default_factory=dict)


def bad_line(file: Path, line: int, content: str, reason: str, allowed: str) -> InputError:
    """Make the error that names a line and what it holds."""
    shown = content if len(content) <= 80 else content[:77] + "..."
    return InputError(file, f"line {line}", shown, allowed=allowed, reason=reason)


def number(text: str) -> Decimal | None:
    """Read a finite decimal number; ``None`` if it is none."""
    if len(text) > 40 or not text.isascii() or "_" in text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() and abs(value.adjusted()) < 30 else None


def size_of(text: str) -> int | None:
    """Read a message size in bytes, 0 to 2^40; ``None`` if it is none."""
    if not (text.isascii() and text.isdigit()) or len(text) > 13:
        return None
    value = int(text)
    return value if value <= LARGEST_BYTES else None


def nanoseconds(value: Decimal) -> int | None:
    """Round a time in ns; ``None`` unless it is at least 1 ns and at most 10^15."""
    if not 1 <= value <= LARGEST_NS:
        return None
    return int(value.to_integral_value())
