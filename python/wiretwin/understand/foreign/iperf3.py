"""iperf3 ``--json``: one value for each interval, the time of as many blocks as it moved."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError
from wiretwin.understand.foreign.reading import Reading, Row, bad_line, nanoseconds

__all__ = ["read"]


def read(file: Path, text: str, size_bytes: int | None = None) -> Reading:
    """Read the JSON of a client.

    Raises
    ------
    InputError
        No JSON (names the line), the record of a failure, or a key that is not what it should be.
    """
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        lines = text.splitlines() or [""]
        content = lines[min(error.lineno, len(lines)) - 1]
        raise bad_line(file, error.lineno, content, error.msg, "the output of iperf3 --json") from None
    except (RecursionError, ValueError) as error:
        raise InputError(file, reason=str(error), allowed="the output of iperf3 --json") from None
    if isinstance(record, dict) and record.get("error"):
        raise InputError(file, "error", str(record["error"])[:80], "a run that did not fail")
    block = _whole(file, record, ("start", "test_start", "blksize"), 1)
    intervals = _get(file, record, ("intervals",))
    if not isinstance(intervals, list):
        raise InputError(file, "intervals", type(intervals).__name__, "a list")
    rows = []
    for number in range(len(intervals)):
        place = ("intervals", number, "sum")
        part = _get(file, record, place)
        if isinstance(part, dict) and part.get("omitted") is True:
            continue
        moved = _whole(file, record, (*place, "bytes"), 0)
        seconds = _get(file, record, (*place, "seconds"))
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e6:
            raise InputError(file, _key((*place, "seconds")), str(seconds)[:40], "seconds, above 0")
        blocks = round(moved / block)
        value = nanoseconds(Decimal(seconds) * 10**9)
        if blocks and blocks < 2**32 and value is not None:
            rows.append(Row(block, blocks, value))
    start = record["start"]["test_start"]
    return Reading(
        "flow",
        rows,
        "an interval of a stream one way",
        {key: start[key] for key in ("protocol", "num_streams") if isinstance(start.get(key), str | int)},
    )


def _key(place: tuple[str | int, ...]) -> str:
    return ".".join(map(str, place))


def _get(file: Path, record: Any, place: tuple[str | int, ...]) -> Any:
    found = record
    for depth, word in enumerate(place, 1):
        inside = (
            isinstance(found, list) if isinstance(word, int) else isinstance(found, dict) and word in found
        )
        if not inside:
            raise InputError(
                file, _key(place[:depth]), reason="is missing", allowed="as iperf3 --json has it"
            )
        found = found[word]
    return found


def _whole(file: Path, record: Any, place: tuple[str | int, ...], least: int) -> int:
    found = _get(file, record, place)
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found < 2**62:
        raise InputError(file, _key(place), str(found)[:40], f"a whole number from {least} on")
    return found
