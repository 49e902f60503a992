"""Outputs that are tables of numbers under lines of comment: OSU micro-benchmarks, Intel MPI Benchmarks."""

from __future__ import annotations

import re
from pathlib import Path

from wiretwin.errors import InputError
from wiretwin.understand.foreign.reading import Reading, Row, bad_line, nanoseconds, number, size_of

__all__ = ["read_imb", "read_osu"]

_OSU_TITLE = re.compile(r"#\s*OSU MPI\S* (.+?) Test\s*v?([\d.]*)")
_OSU = "SIZE LATENCY_US, as osu_latency prints"
_IMB = "BYTES REPETITIONS USEC MBYTES_PER_S, as IMB-MPI1 PingPong prints"


def read_osu(file: Path, text: str, size_bytes: int | None = None) -> Reading:
    """Read what ``osu_latency`` prints: a size and the mean of the one-way latency, microseconds.

    Lines before the title and empty ones are passed over; further columns, of percentiles or of a validation
    that has passed, too.

    Raises
    ------
    InputError
        It is another test, a line under the title is no line of it, or a validation has failed.
    """
    rows: list[Row] = []
    version = None
    for line, content in enumerate(text.splitlines(), 1):
        title = _OSU_TITLE.match(content)
        if title is not None:
            if title[1] != "Latency":
                raise bad_line(file, line, content, "is another test", "the output of osu_latency")
            version = title[2]
        if version is None or content.startswith("#") or not content.strip():
            continue
        words = content.split()
        size = size_of(words[0])
        half_us = number(words[1]) if len(words) > 1 else None
        value = nanoseconds(half_us * 2000) if half_us is not None else None
        if size is None or value is None:
            raise bad_line(file, line, content, "is no size and latency", _OSU)
        if words[-1] == "Fail":
            raise bad_line(
                file, line, content, "is of messages that came damaged", "a validation that says Pass"
            )
        rows.append(Row(size, 1, value))
    if version is None:
        raise InputError(file, reason="has no title of an OSU test", allowed="the output of osu_latency")
    return Reading("echo", rows, "the mean of all iterations", {"version": version})


def read_imb(file: Path, text: str, size_bytes: int | None = None) -> Reading:
    """Read PingPong out of what ``IMB-MPI1`` prints: bytes, repetitions, mean of the one-way latency.

    Other benchmarks of the same output are passed over.

    Raises
    ------
    InputError
        There is no PingPong, or a line of its table is none.
    """
    rows: list[Row] = []
    seen = inside = table = False
    for line, content in enumerate(text.splitlines(), 1):
        name = re.match(r"#\s*Benchmarking\s+(\S+)", content)
        if name is not None:
            inside, table = name[1] == "PingPong", False
            seen = seen or inside
        elif inside and re.match(r"\s*#bytes\s+#repetitions\s+t\[usec\]", content):
            table = True
        elif table and not content.strip():
            table = False
        elif table and not content.startswith("#"):
            words = content.split()
            size = size_of(words[0])
            repetitions = size_of(words[1]) if len(words) > 2 else None
            half_us = number(words[2]) if len(words) > 2 else None
            if size is None or not repetitions or repetitions >= 2**31 or half_us is None:
                raise bad_line(file, line, content, "is no line of the table", _IMB)
            value = nanoseconds(half_us * 2000 * repetitions)
            if value is None:
                raise bad_line(file, line, content, "has a time that is none", _IMB)
            rows.append(Row(size, repetitions, value))
    if not seen:
        raise InputError(file, reason="has no `# Benchmarking PingPong`", allowed="the output of IMB-MPI1")
    return Reading("echo", rows, "the mean of all repetitions")
