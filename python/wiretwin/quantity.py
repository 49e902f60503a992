"""Sizes, times, rates and shares as a person writes them: ``64KiB``, ``30s``, ``10Mbit``, ``5%``."""

from __future__ import annotations

import re
from decimal import Decimal

from wiretwin.errors import InputError

__all__ = [
    "MAX_SIZE",
    "format_rate",
    "format_size",
    "format_time",
    "parse_rate",
    "parse_share",
    "parse_size",
    "parse_time",
]

MAX_SIZE = 1 << 26
"""The largest message measured, 64 MiB."""

_SIZE_UNITS = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    # As the command lines of benches and shells have them.
    "k": 1 << 10,
    "K": 1 << 10,
    "M": 1 << 20,
    "G": 1 << 30,
}
"""With B, powers of 1000, as the SI has them, unless there is an i; a letter alone is a power of 1024."""
_TIME_UNITS = {"ns": "1e-9", "us": "1e-6", "µs": "1e-6", "ms": "1e-3", "s": "1", "min": "60", "h": "3600"}
_RATE_UNITS = {"kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}
# A number of Python where a text belongs reads as one without its unit.
_NUMBER = r"(\d+(?:\.\d+)?)\s*"


def parse_size(text: str, key: str = "size", *, least: int = 1) -> int:
    """Read a message size in bytes: ``4``, ``4B``, ``64KiB``, ``64k`` (the same), ``1.5MiB``, ``8kB``.

    Raises
    ------
    InputError
        Not of that form, not a whole number of bytes, or outside `least` bytes to 64 MiB.
    """
    allowed = f"a whole number of bytes from {least} to 64MiB, such as 4, 64KiB (or 64k), 1MiB, 8kB"
    match = re.fullmatch(_NUMBER + r"([A-Za-z]*)", str(text).strip())
    if match is None or match[2] not in _SIZE_UNITS:
        raise InputError(key=key, value=text, allowed=allowed, reason="is not a size")
    size = Decimal(match[1]) * _SIZE_UNITS[match[2]]
    if size != int(size) or not least <= size <= MAX_SIZE:
        raise InputError(key=key, value=text, allowed=allowed, reason="is out of range")
    return int(size)


def parse_time(text: str, key: str = "time", *, least_s: float = 0.0, most_s: float = 86400.0) -> float:
    """Read a time in seconds: ``30s``, ``500ms``, ``2min``, ``1h``. A bare number is rejected.

    Raises
    ------
    InputError
        Without a unit, not of that form, or outside `least_s` to `most_s`.
    """
    allowed = (
        f"a number with a unit (ns, us, ms, s, min, h) from {format_time(least_s)} to {format_time(most_s)},"
        " such as 30s or 500ms"
    )
    match = re.fullmatch(_NUMBER + r"([A-Za-zµ]*)", str(text).strip())
    if match is not None and match[2] == "":
        raise InputError(key=key, value=text, allowed=allowed, reason="has no unit")
    if match is None or match[2] not in _TIME_UNITS:
        raise InputError(key=key, value=text, allowed=allowed, reason="is not a time")
    seconds = float(Decimal(match[1]) * Decimal(_TIME_UNITS[match[2]]))
    if not least_s <= seconds <= most_s:
        raise InputError(key=key, value=text, allowed=allowed, reason="is out of range")
    return seconds


def parse_rate(text: str, key: str = "--rate", *, least_bit_s: int = 1, most_bit_s: int = 10**12) -> int:
    """Read a rate in bit/s: ``10Mbit``, ``1.5Gbit``, ``100 Mbit/s``. A bare number is rejected.

    Raises
    ------
    InputError
        Without a unit, not of that form, not a whole number of bit/s, or outside `least_bit_s` to
        `most_bit_s`.
    """
    ends = " to ".join(
        format_rate(end).removesuffix("/s").replace(" ", "") for end in (least_bit_s, most_bit_s)
    )
    allowed = f"a number with a unit ({', '.join(_RATE_UNITS)}) from {ends}, such as 100Mbit"
    match = re.fullmatch(_NUMBER + r"(?:([A-Za-z]+)(?:/s)?)?", str(text).strip())
    if match is not None and match[2] is None:
        raise InputError(key=key, value=text, allowed=allowed, reason="has no unit")
    if match is None or match[2] not in _RATE_UNITS:
        raise InputError(key=key, value=text, allowed=allowed, reason="is not a rate")
    rate = Decimal(match[1]) * _RATE_UNITS[match[2]]
    if rate != int(rate) or not least_bit_s <= rate <= most_bit_s:
        raise InputError(key=key, value=text, allowed=allowed, reason="is out of range")
    return int(rate)


def parse_share(text: str, key: str = "share") -> float:
    """Read a share: ``5%`` is 0.05. A bare number is rejected.

    Raises
    ------
    InputError
        Without a percent sign, not a number, or outside 0.1 % to 100 %.
    """
    allowed = "a percentage from 0.1% to 100%, such as 5%"
    match = re.fullmatch(_NUMBER + r"(%?)", str(text).strip())
    if match is None:
        raise InputError(key=key, value=text, allowed=allowed, reason="is not a percentage")
    if match[2] == "":
        raise InputError(key=key, value=text, allowed=allowed, reason="has no percent sign")
    share = float(Decimal(match[1]) / 100)
    if not 0.001 <= share <= 1.0:
        raise InputError(key=key, value=text, allowed=allowed, reason="is out of range")
    return share


def format_size(size: int) -> str:
    """Write a size: ``4 B``, ``64 KiB``, ``1.5 MiB``; exact, or in bytes."""
    for unit, bytes_ in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_ and size * 4 % bytes_ == 0:
            return f"{size / bytes_:g} {unit}"
    return f"{size} B"


def format_rate(rate_bit_s: int) -> str:
    """Write a rate: ``10 Mbit/s``."""
    for unit, worth in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
        if rate_bit_s >= worth:
            return f"{rate_bit_s / worth:g} {unit}"
    return f"{rate_bit_s} bit/s"


def format_time(seconds: float) -> str:
    """Write a time with a unit that suits it: ``1.25 us``, ``30 s``, ``24 h``."""
    for unit, worth in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= worth:
            return f"{seconds / worth:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns" if seconds else "0 s"
