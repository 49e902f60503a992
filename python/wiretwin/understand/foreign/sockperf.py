"""sockperf ping-pong: the file of ``--full-log``, which has every observation, or what it prints.

The log holds the times at which a message was sent and its answer received. What is printed holds statistics
only, of which the median is taken, and no size, unless the log's line of parameters is there.
"""

from __future__ import annotations

import re
from pathlib import Path

from wiretwin.errors import InputError
from wiretwin.understand.foreign.reading import Reading, Row, bad_line, nanoseconds, number

__all__ = ["read"]

_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_HEAD = "packet, txTime(sec), rxTime(sec)"
_MEDIAN = re.compile(r"sockperf: ---> percentile 50\.0+ =\s+(\S+)")
_OBSERVATIONS = re.compile(r"Total (\d{1,12}) observations")
_ALLOWED = "NUMBER, SENT_S, RECEIVED_S, as in a full log of sockperf ping-pong"


def read(file: Path, text: str, size_bytes: int | None = None) -> Reading:
    """Read a full log or a printed summary.

    Parameters
    ----------
    file, text
        The file and what it holds.
    size_bytes
        Of a message, where the file does not say it.

    Raises
    ------
    InputError
        It is neither, a line of it is none, or nothing says the size.
    """
    rows: list[Row] = []
    median = observations = None
    told: int | None = None
    log = False
    for line, coloured in enumerate(text.splitlines(), 1):
        content = _COLOUR.sub("", coloured)
        parameter = re.search(r"--msg-size=(\d{1,9})\b", content)
        if parameter is not None:
            told = int(parameter[1])
        if content.startswith(_HEAD):
            log = True
        elif content.startswith("-----"):
            log = False
        elif log and content.strip():
            words = [word.strip() for word in content.split(",")]
            times = [number(word) for word in words[1:3]]
            sent, received = times if len(times) == 2 else (None, None)
            if sent is None or received is None:
                raise bad_line(file, line, content, "is no observation", _ALLOWED)
            value = nanoseconds((received - sent) * 10**9)
            if value is None:
                raise bad_line(file, line, content, "was received before it was sent", _ALLOWED)
            rows.append(Row(0, 1, value))
        elif (found := _MEDIAN.match(content)) is not None:
            half_us = number(found[1])
            median = nanoseconds(half_us * 2000) if half_us is not None else None
            if median is None:
                raise bad_line(file, line, content, "has no time", "a percentile in microseconds")
        elif (found := _OBSERVATIONS.search(content)) is not None:
            observations = int(found[1])
    size = told if told is not None else size_bytes
    if not rows and median is None:
        raise InputError(
            file, reason="has no observation and no median", allowed="a full log or the output of ping-pong"
        )
    if size is None:
        raise InputError(file, reason="does not say the size of a message", allowed="with --size BYTES")
    if rows:
        return Reading("echo", [Row(size, 1, row.value_ns) for row in rows], "a sample")
    count = "" if observations is None else f" of {observations} observations"
    return Reading("echo", [Row(size, 1, median or 0)], f"the median{count}")
